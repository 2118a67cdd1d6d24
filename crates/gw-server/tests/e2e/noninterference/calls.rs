//! Calls of every JSON-RPC method about the planted data.

use super::seed::{SLOT, SUMS, Side, UNKNOWN, balance_slot, recipient, third_wallet, wallets};
use crate::{
    harness::init_code,
    world::{balance_of, codeHashOfCall, forwardCall, payCall, transfer},
};
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_sol_types::SolCall;
use gw_evm::{Class, Method};
use serde_json::{Value, json};

/// A method and its parameters. `<name>` in them is replaced by the value of this name in each world.
pub(super) type Call = (&'static str, Value);

/// Contracts that have the same address in both worlds.
struct Addresses {
    vault: Address,
    maybe: Address,
    probe: Address,
    forwarder: Address,
    payer: Address,
}

impl Addresses {
    fn new(side: &Side) -> Self {
        let address = |name: &str| side.names[name].parse().unwrap();
        Self {
            vault: address("vault"),
            maybe: address("maybe"),
            probe: address("probe"),
            forwarder: address("forwarder"),
            payer: address("payer"),
        }
    }

    /// The addresses of planted wallets and contracts.
    fn planted(&self) -> Vec<Address> {
        let [left, right] = wallets();
        vec![left, right, third_wallet(), recipient(), self.vault, self.maybe]
    }
}

/// All calls except those of [`slow`], including sends that fail.
pub(super) fn reads(side: &Side) -> Vec<Call> {
    let addresses = Addresses::new(side);
    let quick = Method::ALL.iter().filter(|method| method.class() != Class::Trace);
    quick
        .flat_map(|method| {
            params(*method, &addresses)
                .into_iter()
                .map(|params| (method.as_str(), params))
        })
        .collect()
}

/// Calls of the methods that a caller may use once a second.
pub(super) fn slow(side: &Side) -> Vec<Call> {
    let addresses = Addresses::new(side);
    let slow = Method::ALL.iter().filter(|method| method.class() == Class::Trace);
    slow.flat_map(|method| {
        params(*method, &addresses)
            .into_iter()
            .map(|params| (method.as_str(), params))
    })
    .collect()
}

/// One call of each method, and calls of two unknown methods, for the paths that name an organization.
pub(super) fn each_once(side: &Side) -> Vec<Call> {
    let mut calls = reads(side);
    let mut last = "";
    calls.retain(|(method, _)| std::mem::replace(&mut last, method) != *method);
    calls.extend([
        ("eth_getRawTransactionByHash", json!(["<tx>"])),
        ("trace_transaction", json!(["<tx>"])),
    ]);
    calls
}

/// Init code that applies one opcode to an address and returns the resulting word.
fn apply_opcode(opcode: u8, address: Address) -> Bytes {
    let code = [
        &[0x73][..],
        address.as_slice(),
        &[opcode, 0x60, 0, 0x52, 0x60, 0x20, 0x60, 0, 0xf3],
    ]
    .concat();
    code.into()
}

/// Init code that returns the word that `opcode` pushes.
fn word_of(opcode: u8) -> Bytes {
    vec![opcode, 0x60, 0, 0x52, 0x60, 0x20, 0x60, 0, 0xf3].into()
}

/// Init code that calls the address with a value of one wei and returns the remaining gas.
fn pay_and_return_gas(address: Address) -> Bytes {
    let call = [
        &[0x60, 0, 0x60, 0, 0x60, 0, 0x60, 0, 0x60, 1, 0x73][..],
        address.as_slice(),
        &[0x5a, 0xf1, 0x5a],
    ];
    [call.concat(), vec![0x60, 0, 0x52, 0x60, 0x20, 0x60, 0, 0xf3]]
        .concat()
        .into()
}

/// Call objects for execution, direct and through contracts of the caller's bank.
fn executions(a: &Addresses) -> Vec<Value> {
    let mut calls = Vec::new();
    for address in a.planted() {
        let word = codeHashOfCall { account: address }.abi_encode();
        calls.extend([
            json!({"to": address, "data": balance_of(recipient())}),
            json!({"to": address, "value": "0x1"}),
            json!({"to": a.probe, "data": balance_of(address)}),
            json!({"to": a.probe, "data": hex::encode_prefixed(word)}),
            json!({"to": a.payer, "value": "0x5",
                "data": Bytes::from(payCall { to: address, value: U256::from(1) }.abi_encode())}),
        ]);
        for opcode in [0x31, 0x3b, 0x3f] {
            calls.push(json!({"data": apply_opcode(opcode, address)}));
        }
        calls.push(json!({"data": pay_and_return_gas(address)}));
    }
    for inner in [
        balance_of(recipient()),
        balance_of(wallets()[0]),
        transfer(recipient(), 1),
    ] {
        for target in [a.vault, a.maybe] {
            let data = Bytes::from(
                forwardCall {
                    target,
                    data: inner.clone(),
                }
                .abi_encode(),
            );
            calls.push(json!({"to": a.forwarder, "data": data}));
        }
    }
    // BASEFEE, GASPRICE, BLOBBASEFEE, and a gas price between the two base fees.
    calls.extend([0x48, 0x3a, 0x4a].map(|opcode| json!({"data": word_of(opcode)})));
    for price in ["maxFeePerGas", "gasPrice"] {
        calls.push(json!({"to": recipient(), price: "0x2cb41780"}));
        calls.push(json!({"data": word_of(0x3a), price: "0x77359400"}));
    }
    calls.push(json!({"data": init_code("Child", &[])}));
    calls
}

fn topic(address: Address) -> B256 {
    address.into_word()
}

fn log_filters(a: &Addresses) -> Vec<Value> {
    let transfers = alloy_primitives::keccak256("Transfer(address,address,uint256)");
    let mut filters = vec![
        json!({"fromBlock": "0x0"}),
        json!({"blockHash": "<block_hash>"}),
        json!({"fromBlock": "0x0", "address": [a.vault, a.maybe]}),
        json!({"fromBlock": "<block>", "toBlock": "<block>", "topics": [transfers]}),
        json!({"blockHash": "<block_hash>", "address": a.vault}),
    ];
    for address in a.planted() {
        filters.push(json!({"fromBlock": "0x0", "address": address}));
        filters.push(json!({"fromBlock": "0x0", "address": a.vault, "topics": [null, topic(address)]}));
        filters.push(json!({"fromBlock": "0x0", "topics": [null, null, [topic(address)]]}));
    }
    filters
}

/// Storage slots of the vault: the planted one, its supply, and the balances of the recipient and of a wallet.
fn slots() -> Vec<B256> {
    vec![
        B256::from(U256::from(SLOT)),
        B256::with_last_byte(2),
        balance_slot(recipient()),
        balance_slot(wallets()[0]),
    ]
}

/// The parameters of each call of a method.
fn params(method: Method, a: &Addresses) -> Vec<Value> {
    let planted = || a.planted().into_iter();
    let hashes = || ["<tx>", "<payment>", "<acted>", "<other_tx>", "<other_acted>"].into_iter();
    let tags = ["latest", "<block>", "pending", "safe", "earliest"];
    match method {
        Method::BlockNumber
        | Method::ChainId
        | Method::GasPrice
        | Method::NetVersion
        | Method::NetListening
        | Method::ClientVersion
        | Method::Syncing
        | Method::MaxPriorityFeePerGas
        | Method::BlobBaseFee
        | Method::ProtocolVersion
        | Method::PeerCount
        | Method::Accounts
        | Method::Coinbase => vec![json!([])],
        Method::FeeHistory => vec![
            json!(["0x1", "latest", []]),
            json!(["0x400", "latest", [1, 50, 99]]),
            json!(["0x5", "pending", [50]]),
            json!(["0x2", "<block>", [10]]),
        ],
        Method::Sha3 => vec![json!(["0x68"])],
        Method::GetBalance | Method::GetTransactionCount | Method::GetCode => {
            let latest = planted().map(|address| json!([address, "latest"]));
            let other_tags = tags.into_iter().skip(1).map(|tag| json!([wallets()[0], tag]));
            let contract = ["pending", "<block>"].map(|tag| json!([a.maybe, tag]));
            let by_hash = [wallets()[0], a.vault].map(|address| json!([address, {"blockHash": "<block_hash>"}]));
            latest.chain(other_tags).chain(contract).chain(by_hash).collect()
        }
        Method::GetStorageAt => {
            let slot = |address: Address| slots().into_iter().map(move |slot| json!([address, slot, "latest"]));
            planted()
                .flat_map(slot)
                .chain([json!([a.vault, slots()[0], "<block>"])])
                .collect()
        }
        Method::GetProof => planted().map(|address| json!([address, slots(), "latest"])).collect(),
        Method::Call => {
            let history = ["<block>", "pending", "finalized"]
                .into_iter()
                .flat_map(|tag| [a.vault, a.maybe].map(|to| json!([{"to": to, "data": balance_of(recipient())}, tag])));
            let overrides = json!([{"to": a.vault, "data": balance_of(recipient())}, "latest",
                {(a.vault.to_string()): {"code": "0x"}}]);
            let as_wallet =
                wallets().map(|from| json!([{"from": from, "to": a.probe, "data": balance_of(from)}, "latest"]));
            let latest = executions(a).into_iter().map(|call| json!([call, "latest"]));
            latest.chain(history).chain([overrides]).chain(as_wallet).collect()
        }
        // The same executions as for `eth_call`. Every third is enough to show that the same checks apply.
        Method::EstimateGas => {
            let as_wallet = wallets().map(|from| json!({"from": from, "to": recipient(), "value": "0x1"}));
            executions(a)
                .into_iter()
                .step_by(3)
                .chain(as_wallet)
                .map(|call| json!([call]))
                .collect()
        }
        Method::CreateAccessList => executions(a)
            .into_iter()
            .skip(1)
            .step_by(3)
            .map(|call| json!([call, "latest"]))
            .collect(),
        Method::DebugTraceCall => {
            let calls = [
                json!({"to": a.vault, "data": balance_of(recipient())}),
                json!({"to": a.probe, "data": balance_of(wallets()[0])}),
            ];
            calls
                .into_iter()
                .map(|call| json!([call, "latest", {"tracer": "callTracer"}]))
                .collect()
        }
        Method::DebugTraceTransaction => hashes()
            .take(3)
            .map(|hash| json!([hash, {"tracer": "callTracer"}]))
            .collect(),
        Method::GetLogs => log_filters(a).into_iter().map(|filter| json!([filter])).collect(),
        Method::GetTransactionByHash | Method::GetTransactionReceipt => hashes().map(|hash| json!([hash])).collect(),
        Method::GetTransactionByBlockHashAndIndex => {
            vec![json!(["<block_hash>", "0x0"]), json!(["<block_hash>", "0x1"])]
        }
        Method::GetTransactionByBlockNumberAndIndex => {
            ["<block>", "latest", "pending"].map(|tag| json!([tag, "0x0"])).into()
        }
        Method::GetTransactionBySenderAndNonce => planted()
            .flat_map(|address| ["0x0", "0x3"].map(|nonce| json!([address, nonce])))
            .collect(),
        Method::GetBlockByHash => [true, false].map(|full| json!(["<block_hash>", full])).into(),
        Method::GetBlockByNumber => tags
            .into_iter()
            .flat_map(|tag| [true, false].map(|full| json!([tag, full])))
            .collect(),
        Method::GetBlockTransactionCountByHash | Method::GetUncleCountByBlockHash => vec![json!(["<block_hash>"])],
        Method::GetBlockTransactionCountByNumber | Method::GetUncleCountByBlockNumber => {
            tags.map(|tag| json!([tag])).into()
        }
        Method::GetBlockReceipts => vec![json!(["<block>"]), json!(["latest"]), json!(["<block_hash>"])],
        Method::GetUncleByBlockHashAndIndex => vec![json!(["<block_hash>", "0x0"])],
        Method::GetUncleByBlockNumberAndIndex => vec![json!(["<block>", "0x0"])],
        // The created filters are read afterwards, see `Worlds::reads`.
        Method::NewFilter => log_filters(a)
            .into_iter()
            .take(6)
            .map(|filter| json!([filter]))
            .collect(),
        Method::NewBlockFilter => vec![json!([])],
        Method::GetFilterChanges | Method::GetFilterLogs | Method::UninstallFilter | Method::Unsubscribe => {
            vec![json!(["0x00000000000000000000000000000001"]), json!([UNKNOWN])]
        }
        Method::Subscribe => vec![json!(["newHeads"]), json!(["logs", {"address": a.vault}])],
        // Accepted sends change the chain, so they come last, see `sends`.
        Method::SendTransaction => wallets()
            .map(|from| json!([{"from": from, "to": a.vault, "data": "0x00"}]))
            .into(),
        Method::SendRawTransaction => vec![json!(["0x00"])],
    }
}

/// Transactions that try to find out planted data: payments to the planted wallets, calls of planted contracts,
/// directly and through own contracts, and init code that inspects addresses. Each is target, value in wei and input.
pub(super) fn sends(side: &Side) -> Vec<(Option<Address>, u64, Bytes)> {
    let a = Addresses::new(side);
    let [left, right] = wallets();
    let mut sends = vec![
        (Some(left), 1, Bytes::new()),
        (Some(right), 1, Bytes::new()),
        (Some(a.vault), 0, transfer(recipient(), SUMS[0])),
        (Some(a.maybe), 0, Bytes::from(vec![0x85, 0xbb, 0x7d, 0x69])),
        (None, 0, apply_opcode(0x31, left)),
        (None, 0, apply_opcode(0x3b, a.maybe)),
        (
            Some(a.payer),
            5,
            payCall {
                to: right,
                value: U256::from(1),
            }
            .abi_encode()
            .into(),
        ),
    ];
    for target in [a.vault, a.maybe] {
        let data = Bytes::from(
            forwardCall {
                target,
                data: balance_of(left),
            }
            .abi_encode(),
        );
        sends.push((Some(a.forwarder), 0, data));
    }
    sends
}

/// Calls about a transaction that was just sent.
pub(super) fn about_sent(hash: &str) -> Vec<Call> {
    vec![
        ("eth_getTransactionReceipt", json!([hash])),
        ("eth_getTransactionByHash", json!([hash])),
        ("eth_getBlockByNumber", json!(["latest", true])),
        ("eth_getBlockReceipts", json!(["latest"])),
        ("eth_feeHistory", json!(["0x2", "latest", [50]])),
        ("eth_gasPrice", json!([])),
        ("eth_getLogs", json!([{"fromBlock": "latest"}])),
    ]
}
