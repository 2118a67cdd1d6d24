//! A scripted chain that grows and is reorganized, for filters and subscriptions.

use crate::world::World;
use gw_testkit::{
    FakeNode, TestUser,
    fake_node::{NodeReply, block},
};
use gw_types::{Address, B256, U256, b256};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub(crate) const TOKEN: Address = Address::repeat_byte(0x11);
pub(crate) const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
pub(crate) const HIDDEN: Address = Address::repeat_byte(0xbb);

pub(crate) fn erc20() -> Value {
    json!([{"type": "event", "name": "Transfer", "anonymous": false, "inputs": [
        {"name": "from", "type": "address", "indexed": true}, {"name": "to", "type": "address", "indexed": true},
        {"name": "value", "type": "uint256", "indexed": false}]}])
}

/// The blocks from 0 on, each with a hash and its transfers.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Arc<Mutex<Vec<MinedBlock>>>);

#[derive(Clone, Debug)]
struct MinedBlock {
    hash: B256,
    logs: Vec<(Address, Address)>,
}

impl Chain {
    /// A chain of empty blocks up to the fake node's usual head. The fake node serves it.
    pub(crate) fn start(fake: &FakeNode) -> Self {
        let empty_block = |number| MinedBlock {
            hash: hash(number, 0),
            logs: Vec::new(),
        };
        let chain = Self(Arc::new(Mutex::new((0..=FakeNode::HEAD).map(empty_block).collect())));
        let served = chain.clone();
        fake.script("eth_getBlockByNumber", move |params| {
            NodeReply::Result(served.by_number(&params[0]))
        });
        let served = chain.clone();
        fake.script("eth_getBlockByHash", move |params| {
            NodeReply::Result(served.by_hash(&params[0]))
        });
        let served = chain.clone();
        fake.script("eth_getLogs", move |params| NodeReply::Result(served.logs(&params[0])));
        chain
    }

    /// Mines one more block, with a transfer for each pair of addresses.
    pub(crate) fn mine(&self, branch: u64, logs: &[(Address, Address)]) -> B256 {
        let mut blocks = self.0.lock().unwrap();
        let hash = hash(blocks.len() as u64, branch);
        blocks.push(MinedBlock {
            hash,
            logs: logs.to_vec(),
        });
        hash
    }

    /// Removes the newest blocks from the chain.
    pub(crate) fn drop_newest(&self, count: usize) {
        let mut blocks = self.0.lock().unwrap();
        let length = blocks.len() - count;
        blocks.truncate(length);
    }

    fn at(&self, number: usize) -> Value {
        let blocks = self.0.lock().unwrap();
        let Some(mined) = blocks.get(number) else {
            return Value::Null;
        };
        let mut block = block(number as u64, &mined.hash.to_string());
        block["parentHash"] = json!(
            number
                .checked_sub(1)
                .map(|parent| blocks[parent].hash)
                .unwrap_or_default()
        );
        block["transactions"] = json!([{"hash": B256::repeat_byte(7), "from": HIDDEN, "to": HIDDEN,
            "blockHash": mined.hash, "blockNumber": block["number"], "transactionIndex": "0x0"}]);
        block
    }

    fn by_number(&self, tag: &Value) -> Value {
        let newest = self.0.lock().unwrap().len() - 1;
        self.at(if tag == "latest" { newest } else { number(tag) })
    }

    fn by_hash(&self, hash: &Value) -> Value {
        let number = self
            .0
            .lock()
            .unwrap()
            .iter()
            .position(|block| json!(block.hash) == *hash);
        number.map_or(Value::Null, |number| self.at(number))
    }

    fn logs(&self, filter: &Value) -> Value {
        let blocks = self.0.lock().unwrap();
        let (from, to) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
        let rows = blocks
            .iter()
            .enumerate()
            .filter(|(number, _)| (from..=to).contains(number))
            .flat_map(|(number, block)| {
                block.logs.iter().enumerate().map(move |(index, (sender, receiver))| {
                    json!({"address": TOKEN, "topics": [TRANSFER, sender.into_word(), receiver.into_word()],
                    "data": B256::with_last_byte(9), "blockHash": block.hash, "blockNumber": format!("{number:#x}"),
                    "transactionHash": block.hash, "transactionIndex": "0x0", "logIndex": format!("{index:#x}"),
                    "removed": false})
                })
            });
        Value::Array(rows.collect())
    }
}

fn number(text: &Value) -> usize {
    usize::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn hash(number: u64, branch: u64) -> B256 {
    B256::from(U256::from(number + 1) + (U256::from(branch) << 128))
}

/// The methods of filters and subscriptions, without their underlying reads.
pub(crate) const FILTERS: [&str; 7] = [
    "eth_newFilter",
    "eth_newBlockFilter",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_uninstallFilter",
    "eth_subscribe",
    "eth_unsubscribe",
];

/// A user who may read logs and blocks and create filters, with a grant on the token.
pub(crate) async fn holder(world: &World, name: &str) -> TestUser {
    let bank = world.fixture.create_org(&format!("bank-of-{name}")).await;
    let methods = [&FILTERS[..], &["eth_getLogs", "eth_getBlockByNumber"]].concat();
    let holder = world.person(name, bank, &methods, &[]).await;
    world.contract(bank, TOKEN, Some(&erc20()), &[holder.group]).await;
    holder
}
