//! A node that answers every read from one block of transactions.

use alloy_primitives::keccak256;
use gw_policy::testing::{address_of, hash_of};
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply},
    scenario::{CONTRACTS, ScenarioTx, transfer, word},
};
use gw_types::{Address, B256, U256};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The transactions of the newest block, which is the only block.
#[derive(Clone, Default)]
pub(super) struct Chain(Arc<Mutex<Vec<ScenarioTx>>>);

impl Chain {
    pub(super) fn set(&self, transactions: &[ScenarioTx]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = transactions.to_vec();
    }

    fn transactions(&self) -> Vec<ScenarioTx> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `fake` the node of this chain.
    pub(super) fn serve(&self, fake: &FakeNode) {
        let serve = |method: &str, answer: fn(&[ScenarioTx], &Value) -> Value| {
            let chain = self.clone();
            fake.script(method, move |params| {
                NodeReply::Result(answer(&chain.transactions(), params))
            });
        };
        serve("eth_getBlockByNumber", |chain, _| block(chain));
        serve("eth_getBlockByHash", |chain, _| block(chain));
        serve("eth_getBlockReceipts", |chain, _| json!(each(chain, receipt)));
        serve("eth_getTransactionByHash", |chain, params| {
            by_hash(chain, params, transaction)
        });
        serve("eth_getTransactionReceipt", |chain, params| {
            by_hash(chain, params, receipt)
        });
        serve("eth_getTransactionByBlockHashAndIndex", by_index);
        serve("eth_getTransactionByBlockNumberAndIndex", by_index);
        serve("eth_getLogs", |chain, params| logs(chain, &params[0]));
        serve("eth_getBalance", |chain, params| {
            json!(format!("0x{:x}", 1000 + sent(chain, &params[0])))
        });
        serve("eth_getTransactionCount", |chain, params| {
            json!(format!("0x{:x}", sent(chain, &params[0])))
        });
        serve("eth_getCode", |_, params| {
            let address: Address = serde_json::from_value(params[0].clone()).unwrap_or_default();
            code(address).map_or_else(|| json!("0x"), |code| json!(code))
        });
        serve("eth_getStorageAt", |_, params| json!(keccak256(params.to_string())));
        serve("eth_maxPriorityFeePerGas", |_, _| json!("0x3b9aca00"));
        serve("eth_blobBaseFee", |_, _| json!("0x1"));
        serve("eth_protocolVersion", |_, _| json!("0x44"));
        serve("net_peerCount", |_, _| json!("0x2"));
        // Sums over the block's transactions. The base fee is an exception of decision 34, and constant here.
        serve("eth_feeHistory", |chain, _| {
            let filled = 0.001 * f64::from(u32::try_from(chain.len()).unwrap_or(u32::MAX));
            json!({"oldestBlock": "0x64", "baseFeePerGas": ["0x7", "0x7"], "gasUsedRatio": [filled],
                "baseFeePerBlobGas": ["0x1", "0x1"], "blobGasUsedRatio": [filled],
                "reward": [[format!("0x{:x}", chain.len())]]})
        });
        // The account's branch depends on all accounts; its storage only on itself.
        serve("eth_getProof", |chain, params| {
            let branch = keccak256(format!("{:?}", chain.iter().map(|tx| &tx.name).collect::<Vec<_>>()));
            let entry = |key: &Value| json!({"key": key, "value": "0x0", "proof": [keccak256(key.to_string())]});
            let slots: Vec<_> = params[1].as_array().into_iter().flatten().map(entry).collect();
            json!({"address": params[0], "accountProof": [branch], "balance": "0x5", "codeHash": B256::ZERO,
                "nonce": "0x1",
                "storageHash": keccak256(params[0].to_string()), "storageProof": slots})
        });
        serve("eth_getTransactionBySenderAndNonce", |chain, params| {
            let index = chain.iter().position(|tx| json!(address_of(tx.from)) == params[0]);
            index.map_or(Value::Null, |index| transaction(chain, index))
        });
        fake.script("debug_traceCall", trace);
        let chain = self.clone();
        fake.script("debug_traceTransaction", move |params| {
            let chain = chain.transactions();
            let Some(tx) = chain.iter().find(|tx| json!(hash_of(&tx.name)) == params[0]) else {
                return NodeReply::Error(-32000, "transaction not found", Value::Null);
            };
            let input = format!("0xa9059cbb{:x}", word(tx.mentions));
            let call =
                json!({"from": address_of(tx.from), "to": tx.to.map(address_of), "input": input, "value": "0x5"});
            trace(&json!([call, "latest", params[1]]))
        });
    }
}

/// The number of transactions that an address has sent.
fn sent(chain: &[ScenarioTx], address: &Value) -> usize {
    chain.iter().filter(|tx| json!(address_of(tx.from)) == *address).count()
}

fn code(address: Address) -> Option<&'static str> {
    let contract = CONTRACTS.into_iter().find(|name| address_of(name) == address)?;
    // ADDRESS BALANCE STOP for the contract that reads balances, else PUSH1 1 STOP.
    Some(if contract == "b-multi" { "0x303100" } else { "0x600100" })
}

fn each(chain: &[ScenarioTx], show: fn(&[ScenarioTx], usize) -> Value) -> Vec<Value> {
    (0..chain.len()).map(|index| show(chain, index)).collect()
}

fn by_hash(chain: &[ScenarioTx], params: &Value, show: fn(&[ScenarioTx], usize) -> Value) -> Value {
    let index = chain.iter().position(|tx| json!(hash_of(&tx.name)) == params[0]);
    index.map_or(Value::Null, |index| show(chain, index))
}

fn by_index(chain: &[ScenarioTx], params: &Value) -> Value {
    let index = params[1]
        .as_str()
        .and_then(|text| usize::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    index
        .filter(|index| *index < chain.len())
        .map_or(Value::Null, |index| transaction(chain, index))
}

fn transaction(chain: &[ScenarioTx], index: usize) -> Value {
    let tx = &chain[index];
    json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "from": address_of(tx.from),
        "to": tx.to.map(address_of), "hash": hash_of(&tx.name), "gas": "0x5208", "gasPrice": "0x8",
        "input": format!("0xa9059cbb{:x}", word(tx.mentions)), "nonce": "0x3",
        "transactionIndex": format!("0x{index:x}"), "value": "0x5", "type": "0x1", "chainId": "0x7a69", "v": "0x1",
        "r": "0x1234", "s": "0x5678", "yParity": "0x1",
        "accessList": [{"address": address_of(tx.mentions), "storageKeys": []}], "publicKey": word(tx.from),
    })
}

fn receipt(chain: &[ScenarioTx], index: usize) -> Value {
    let tx = &chain[index];
    json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "contractAddress": null,
        "cumulativeGasUsed": format!("0x{:x}", (index + 1) * 21_000), "effectiveGasPrice": "0x8",
        "from": address_of(tx.from), "to": tx.to.map(address_of), "gasUsed": "0x5208", "logs": logs_of(chain, index),
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "transactionHash": hash_of(&tx.name),
        "transactionIndex": format!("0x{index:x}"), "type": "0x1", "feePayer": address_of(tx.mentions),
    })
}

fn logs_of(chain: &[ScenarioTx], index: usize) -> Vec<Value> {
    let before: usize = chain[..index].iter().map(|tx| tx.logs.len()).sum();
    let tx = &chain[index];
    let entry = |(position, (emitter, [first, second, third])): (usize, &(&str, [&str; 3]))| {
        let (topics, data) = match *emitter {
            // Data without an ABI passes unmodified [S]; this data contains no address.
            "a-plain" | "nobody's" => (
                vec![keccak256("X()"), word(first), word(second)],
                vec![B256::with_last_byte(7)],
            ),
            "b-multi" => (
                vec![keccak256("Paid(address,address[2])"), word(first)],
                vec![word(second), word(third)],
            ),
            _ => (
                vec![transfer(), word(first), word(second)],
                vec![B256::from(U256::from(7))],
            ),
        };
        json!({
            "address": address_of(emitter), "topics": topics,
            "data": format!("0x{}", data.iter().map(|word| format!("{word:x}")).collect::<String>()),
            "blockNumber": "0x64", "blockHash": FakeNode::HEAD_HASH, "transactionHash": hash_of(&tx.name),
            "transactionIndex": format!("0x{index:x}"), "logIndex": format!("0x{:x}", before + position),
            "removed": false,
        })
    };
    tx.logs.iter().enumerate().map(entry).collect()
}

fn logs(chain: &[ScenarioTx], filter: &Value) -> Value {
    let listed = |criterion: &Value, held: &Value| match criterion {
        Value::Null => true,
        Value::Array(words) => words.is_empty() || words.contains(held),
        word => word == held,
    };
    let matches = |log: &Value| {
        let criteria = filter["topics"].as_array().cloned().unwrap_or_default();
        let topics = log["topics"].as_array().cloned().unwrap_or_default();
        listed(&filter["address"], &log["address"])
            && criteria.len() <= topics.len()
            && criteria
                .iter()
                .zip(&topics)
                .all(|(criterion, topic)| listed(criterion, topic))
    };
    (0..chain.len())
        .flat_map(|index| logs_of(chain, index))
        .filter(matches)
        .collect()
}

fn block(chain: &[ScenarioTx]) -> Value {
    let sum = |label: &str| {
        keccak256(format!(
            "{label}{:?}",
            chain.iter().map(|tx| &tx.name).collect::<Vec<_>>()
        ))
    };
    let count = |each: usize| format!("0x{:x}", chain.len() * each);
    let mut block = fake_node::block(FakeNode::HEAD, FakeNode::HEAD_HASH);
    let sums = json!({
        "stateRoot": sum("state"), "transactionsRoot": sum("transactions"), "receiptsRoot": sum("receipts"),
        "requestsHash": sum("requests"), "withdrawalsRoot": sum("withdrawals"), "gasUsed": count(21_000),
        "size": count(100), "blobGasUsed": count(1), "excessBlobGas": count(1),
        "logsBloom": format!("0x{}", format!("{:02x}", chain.len()).repeat(256)),
        "withdrawals": chain.iter().map(|tx| json!({ "address": address_of(tx.from) })).collect::<Vec<_>>(),
        "transactions": each(chain, transaction),
        // Exceptions of decision 34: time and base fee depend on others' transactions.
        "timestamp": format!("0x{:x}", 0x6500_0000 + chain.len()), "baseFeePerGas": count(7),
    });
    if let (Value::Object(block), Value::Object(sums)) = (&mut block, sums) {
        block.extend(sums);
    }
    block
}

/// The trace of a call to its target, which calls the address in its argument.
fn trace(params: &Value) -> NodeReply {
    let zero = json!(Address::ZERO);
    let (to, input) = (
        params[0]["to"].clone(),
        params[0]["input"].as_str().unwrap_or("0x").to_owned(),
    );
    if to.is_null() {
        return fake_node::trace(params);
    }
    let from = params[0].get("from").cloned().unwrap_or(zero);
    // 0x, a selector, and a word that holds an address.
    let callee = input
        .get(34..)
        .filter(|digits| digits.len() == 40)
        .map(|digits| json!(format!("0x{digits}")));
    match params[2]["tracer"].as_str() {
        Some("callTracer") => {
            let gas_used = if input == "0x" { "0x5208" } else { "0x7000" };
            let value = params[0].get("value").cloned().unwrap_or(json!("0x0"));
            let inner: Vec<_> = callee
                .iter()
                .map(|callee| {
                    json!({"type": "CALL", "from": to, "to": callee, "input": "0x", "output": "0x", "value": "0x0",
                        "gas": "0x100", "gasUsed": "0x10"})
                })
                .collect();
            NodeReply::Result(
                json!({"type": "CALL", "from": from, "to": to, "input": input, "output": word("output"),
                "value": value, "gas": "0x1c97158", "gasUsed": gas_used, "calls": inner}),
            )
        }
        Some("prestateTracer") => {
            let mut accounts = serde_json::Map::new();
            for address in [from, to].into_iter().chain(callee) {
                let known: Address = serde_json::from_value(address.clone()).unwrap_or_default();
                let mut account = json!({"balance": "0x0"});
                if let Some(code) = code(known) {
                    account["code"] = json!(code);
                }
                accounts.insert(address.as_str().unwrap_or_default().to_owned(), account);
            }
            NodeReply::Result(Value::Object(accounts))
        }
        _ => NodeReply::Error(-32602, "unsupported tracer type", Value::Null),
    }
}
