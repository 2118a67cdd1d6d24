//! A chain with tokens of all standards, a factory, a proxy and failures.

use super::rpc::Rpc;
use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{TxKind, keccak256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::SolValue;
use gw_testkit::anvil;
use gw_types::{Address, B256, Bytes, U256, address};
use serde_json::{Value, json};

/// Accounts that anvil funds and signs for.
pub(crate) const ALICE: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
pub(crate) const BOB: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

/// The keys of [`ALICE`] and [`BOB`], which every development node funds.
const KEYS: [(Address, &str); 2] = [
    (
        ALICE,
        "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    ),
    (
        BOB,
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    ),
];

/// The deployed contracts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contracts {
    pub(crate) coin: Address,
    pub(crate) collection: Address,
    pub(crate) bundle: Address,
    pub(crate) workshop: Address,
    pub(crate) proxy: Address,
    pub(crate) prying: Address,
}

/// A node's chain; every transaction is mined in a block of its own.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) rpc: Rpc,
    signer: Signer,
}

/// Who signs transactions.
#[derive(Clone, Copy)]
enum Signer {
    Node,
    Test,
}

macro_rules! artifact {
    ($name:literal) => {
        include_str!(concat!("../../../../../contracts/artifacts/", $name, ".json"))
    };
}

pub(crate) fn calldata(signature: &str, arguments: Vec<u8>) -> Vec<u8> {
    [&keccak256(signature)[..4], &arguments].concat()
}

impl Chain {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            rpc: Rpc::new(url),
            signer: Signer::Node,
        }
    }

    /// The chain of a node that holds no keys: the test signs its transactions.
    pub(crate) fn of_unsigning_node(url: &str) -> Self {
        Self {
            signer: Signer::Test,
            ..Self::new(url)
        }
    }

    /// Sends a transaction and returns its receipt.
    pub(crate) async fn send(&self, from: Address, to: Option<Address>, value: u64, input: Vec<u8>) -> Value {
        let hash = match self.signer {
            Signer::Node => self.send_unsigned(from, to, value, input).await,
            Signer::Test => self.send_signed(from, to, value, input).await,
        };
        loop {
            let receipt = self.rpc.call("eth_getTransactionReceipt", json!([hash])).await;
            if !receipt.is_null() {
                return receipt;
            }
        }
    }

    async fn send_unsigned(&self, from: Address, to: Option<Address>, value: u64, input: Vec<u8>) -> Value {
        let mut transaction = json!({"from": from, "value": U256::from(value), "input": Bytes::from(input),
            "gas": "0x300000"});
        if let Some(to) = to {
            transaction["to"] = json!(to);
        }
        self.rpc.call("eth_sendTransaction", json!([transaction])).await
    }

    async fn send_signed(&self, from: Address, to: Option<Address>, value: u64, input: Vec<u8>) -> Value {
        let (_, key) = KEYS.iter().find(|(address, _)| *address == from).unwrap();
        let key: PrivateKeySigner = key.parse().unwrap();
        let nonce = self.rpc.call("eth_getTransactionCount", json!([from, "latest"])).await;
        let nonce: U256 = serde_json::from_value(nonce).unwrap();
        let transaction = TxEip1559 {
            chain_id: anvil::CHAIN_ID,
            nonce: nonce.to(),
            gas_limit: 0x30_0000,
            max_fee_per_gas: 20_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to: to.map_or(TxKind::Create, TxKind::Call),
            value: U256::from(value),
            access_list: Default::default(),
            input: input.into(),
        };
        let signature = key.sign_hash_sync(&transaction.signature_hash()).unwrap();
        let raw = TxEnvelope::Eip1559(transaction.into_signed(signature)).encoded_2718();
        self.rpc.call("eth_sendRawTransaction", json!([Bytes::from(raw)])).await
    }

    async fn deploy(&self, artifact: &str, arguments: Vec<u8>) -> Address {
        let artifact: Value = serde_json::from_str(artifact).unwrap();
        let code: Bytes = serde_json::from_value(artifact["bytecode"].clone()).unwrap();
        let receipt = self.send(ALICE, None, 0, [code.to_vec(), arguments].concat()).await;
        assert_eq!(receipt["status"], "0x1");
        serde_json::from_value(receipt["contractAddress"].clone()).unwrap()
    }

    pub(crate) async fn deploy_contracts(&self) -> Contracts {
        let supply = U256::from(1_000_000);
        let coin = ("Demo coin".to_owned(), "DMO".to_owned(), supply).abi_encode_params();
        let coin = self.deploy(artifact!("DemoERC20"), coin).await;
        let collection = self.deploy(artifact!("Collection"), vec![]).await;
        Contracts {
            coin,
            collection,
            bundle: self.deploy(artifact!("Bundle"), vec![]).await,
            workshop: self.deploy(artifact!("Workshop"), vec![]).await,
            proxy: self
                .deploy(artifact!("UpgradeableProxy"), (coin,).abi_encode_params())
                .await,
            prying: self.deploy(artifact!("PryingToken"), (coin,).abi_encode_params()).await,
        }
    }

    pub(crate) async fn transfer(&self, coin: Address, to: Address, value: u64) -> Value {
        let input = calldata("transfer(address,uint256)", (to, U256::from(value)).abi_encode_params());
        self.send(ALICE, Some(coin), 0, input).await
    }

    /// Transactions of all kinds. `seed` makes them differ between two branches of the chain.
    pub(crate) async fn send_transactions(&self, contracts: &Contracts, seed: u64) {
        let Contracts {
            coin,
            collection,
            bundle,
            workshop,
            proxy,
            ..
        } = *contracts;
        let number = |offset: u64| U256::from(seed * 10 + offset);
        self.send(ALICE, Some(BOB), 1000 + seed, vec![]).await;
        self.transfer(coin, BOB, 5 + seed).await;
        let approval = calldata("approve(address,uint256)", (BOB, number(3)).abi_encode_params());
        self.send(ALICE, Some(coin), 0, approval).await;
        // Bob has too few: the transaction fails.
        let fails = calldata(
            "transfer(address,uint256)",
            (ALICE, U256::from(1_u64 << 60)).abi_encode_params(),
        );
        let receipt = self.send(BOB, Some(coin), 0, fails).await;
        assert_eq!(receipt["status"], "0x0");
        let mint = calldata("mint(address,uint256)", (ALICE, number(1)).abi_encode_params());
        self.send(ALICE, Some(collection), 0, mint).await;
        let moved = calldata(
            "transferFrom(address,address,uint256)",
            (ALICE, BOB, number(1)).abi_encode_params(),
        );
        self.send(ALICE, Some(collection), 0, moved).await;
        let for_all = calldata("setApprovalForAll(address,bool)", (BOB, true).abi_encode_params());
        self.send(ALICE, Some(collection), 0, for_all).await;
        let single = calldata(
            "mint(address,uint256,uint256)",
            (BOB, number(7), U256::from(70)).abi_encode_params(),
        );
        self.send(ALICE, Some(bundle), 0, single).await;
        let (ids, values) = (vec![number(8), number(9)], vec![U256::from(80), U256::from(90)]);
        let batch = calldata(
            "mintBatch(address,uint256[],uint256[])",
            (ALICE, ids, values).abi_encode_params(),
        );
        self.send(ALICE, Some(bundle), 0, batch).await;
        let salt = |offset| B256::from(number(offset));
        let make = calldata("make(bytes32,bool)", (salt(1), false).abi_encode_params());
        self.send(ALICE, Some(workshop), 0, make).await;
        let undone = calldata("make(bytes32,bool)", (salt(2), true).abi_encode_params());
        // Called by code, so that the transaction succeeds and the frames fail.
        let forward = calldata(
            "forward(address,bytes)",
            (workshop, Bytes::from(undone.clone())).abi_encode_params(),
        );
        self.send(ALICE, Some(workshop), 0, forward).await;
        self.send(ALICE, Some(workshop), 0, undone).await;
        let pay = calldata("forward(address,bytes)", (BOB, Bytes::new()).abi_encode_params());
        self.send(ALICE, Some(workshop), 77, pay).await;
        let upgrade = calldata(
            "upgrade(address)",
            (Address::repeat_byte(7 + u8::try_from(seed).unwrap()),).abi_encode_params(),
        );
        self.send(ALICE, Some(proxy), 0, upgrade).await;
    }

    /// Mines this many empty blocks.
    pub(crate) async fn mine(&self, blocks: u64) {
        self.rpc.call("anvil_mine", json!([format!("{blocks:#x}")])).await;
    }

    /// Mines one block with several transactions.
    pub(crate) async fn one_block(&self, contracts: &Contracts) {
        self.rpc.call("evm_setAutomine", json!([false])).await;
        for value in 1..6_u64 {
            let input = calldata(
                "transfer(address,uint256)",
                (BOB, U256::from(value)).abi_encode_params(),
            );
            let transaction = json!({"from": ALICE, "to": contracts.coin, "input": Bytes::from(input),
                "gas": "0x30000"});
            self.rpc.call("eth_sendTransaction", json!([transaction])).await;
        }
        self.mine(1).await;
        self.rpc.call("evm_setAutomine", json!([true])).await;
    }
}
