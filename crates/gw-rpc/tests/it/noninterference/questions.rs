//! Every read method, with parameters about every address and transaction.

use gw_evm::{Class, Method};
use gw_policy::testing::{address_of, calldata, hash_of};
use gw_testkit::{
    FakeNode,
    scenario::{CONTRACTS, Scenario, ScenarioTx, USERS, WALLETS, transfer, word},
};
use serde_json::{Value, json};

/// The function that callers with restricted grants may call.
pub(super) const ASK: &str = "ask(address)";

/// Further queried addresses: one that is reserved later, and an unknown one.
const OTHERS: [&str; 2] = ["c-soon", "random"];

/// A method and its parameters.
pub(super) type Question = (&'static str, Value);

/// The questions about a chain. For two chains with the same `known` and `added` transactions they correspond: a
/// transaction that is not in the block yet is queried at an index that does not exist.
pub(super) fn all(scenario: &Scenario, known: &[ScenarioTx], added: &[ScenarioTx]) -> Vec<Question> {
    let reads = Method::ALL.iter().filter(|method| method.class() != Class::Write);
    reads
        .flat_map(|method| {
            params_of(*method, scenario, known, added)
                .into_iter()
                .map(|params| (method.as_str(), params))
        })
        .collect()
}

fn params_of(method: Method, scenario: &Scenario, known: &[ScenarioTx], added: &[ScenarioTx]) -> Vec<Value> {
    let names = || WALLETS.iter().chain(&CONTRACTS).chain(&OTHERS).copied();
    let addresses = || names().map(address_of);
    let hashes = || known.iter().chain(added).map(|tx| hash_of(&tx.name));
    let places = || {
        known.iter().chain(added).map(|tx| {
            let place = scenario
                .transactions
                .iter()
                .position(|known_tx| known_tx.name == tx.name);
            format!("0x{:x}", place.unwrap_or(0x1000))
        })
    };
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
        Method::FeeHistory => vec![json!(["0x1", "latest", []]), json!(["0x1", "latest", [50.0]])],
        Method::Sha3 => vec![json!(["0x68"])],
        Method::GetBalance | Method::GetTransactionCount => {
            let pending = addresses().take(1).map(|address| json!([address, "pending"]));
            addresses()
                .map(|address| json!([address, "latest"]))
                .chain(pending)
                .collect()
        }
        Method::GetCode => addresses().map(|address| json!([address, "latest"])).collect(),
        Method::GetStorageAt => {
            let implementation = gw_evm::code::IMPLEMENTATION_SLOT;
            let slots = |address| {
                [
                    json!([address, implementation, "latest"]),
                    json!([address, "0x0", "latest"]),
                ]
            };
            addresses().flat_map(slots).collect()
        }
        Method::GetProof => {
            let implementation = gw_evm::code::IMPLEMENTATION_SLOT;
            addresses()
                .flat_map(|address| {
                    [
                        json!([address, [], "latest"]),
                        json!([address, [implementation], "latest"]),
                    ]
                })
                .collect()
        }
        Method::Call => {
            let queries = |target: &str| {
                let target = address_of(target);
                names().map(move |name| json!([{"to": target, "input": calldata(ASK, [word(name)])}, "latest"]))
            };
            let direct = addresses().map(|address| json!([{"to": address, "input": "0x12345678"}, "latest"]));
            let created = json!([{"input": "0x6001600155"}, "latest"]);
            ["a-token", "a-plain", "b-multi"]
                .into_iter()
                .flat_map(queries)
                .chain(direct)
                .chain([created])
                .collect()
        }
        Method::EstimateGas => addresses()
            .map(|address| json!([{"to": address, "value": "0x1"}]))
            .collect(),
        Method::CreateAccessList => addresses().map(|address| json!([{"to": address}, "latest"])).collect(),
        Method::GetLogs => {
            let by_address = |address| json!([{"address": address, "fromBlock": "0x64", "toBlock": "0x64"}]);
            let both = json!([address_of("a-token"), address_of("b-multi")]);
            let named = names().map(|name| json!([{"address": both, "topics": [transfer(), word(name)]}]));
            let third =
                names().map(|name| json!([{"address": address_of("a-token"), "topics": [null, null, word(name)]}]));
            let by_hash = json!([{"address": both, "blockHash": FakeNode::HEAD_HASH}]);
            addresses()
                .map(by_address)
                .chain(named)
                .chain(third)
                .chain([json!([{}]), by_hash])
                .collect()
        }
        Method::GetTransactionByHash | Method::GetTransactionReceipt => hashes().map(|hash| json!([hash])).collect(),
        Method::DebugTraceTransaction => hashes().map(|hash| json!([hash, {"tracer": "callTracer"}])).collect(),
        Method::GetTransactionByBlockHashAndIndex => {
            places().map(|place| json!([FakeNode::HEAD_HASH, place])).collect()
        }
        Method::GetTransactionByBlockNumberAndIndex => places().map(|place| json!(["0x64", place])).collect(),
        Method::GetTransactionBySenderAndNonce => addresses().map(|address| json!([address, "0x3"])).collect(),
        Method::GetBlockByHash => [true, false].map(|full| json!([FakeNode::HEAD_HASH, full])).into(),
        Method::GetBlockByNumber => vec![json!(["0x64", true]), json!(["latest", false])],
        Method::GetBlockTransactionCountByHash => vec![json!([FakeNode::HEAD_HASH])],
        Method::GetBlockTransactionCountByNumber | Method::GetBlockReceipts => vec![json!(["0x64"])],
        Method::GetUncleCountByBlockHash => vec![json!([FakeNode::HEAD_HASH])],
        Method::GetUncleCountByBlockNumber => vec![json!(["0x64"])],
        Method::GetUncleByBlockHashAndIndex => vec![json!([FakeNode::HEAD_HASH, "0x0"])],
        Method::GetUncleByBlockNumberAndIndex => vec![json!(["0x64", "0x0"])],
        Method::DebugTraceCall => vec![json!([{"to": address_of("a-plain")}, "latest", {"tracer": "callTracer"}])],
        // Their underlying reads are queried above; their ids are random.
        Method::NewFilter | Method::NewBlockFilter => Vec::new(),
        Method::GetFilterChanges | Method::GetFilterLogs | Method::UninstallFilter | Method::Unsubscribe => {
            vec![json!(["0x00000000000000000000000000000001"])]
        }
        Method::Subscribe => vec![json!(["newHeads"]), json!(["logs", {"address": address_of("a-token")}])],
        Method::SendTransaction | Method::SendRawTransaction => panic!("{} is no read", method.as_str()),
    }
}

/// Replaces addresses in a text by their names, for messages.
pub(super) fn name_addresses(text: &str) -> String {
    WALLETS
        .iter()
        .chain(&CONTRACTS)
        .chain(&OTHERS)
        .chain(&USERS)
        .fold(text.to_owned(), |text, name| {
            text.replace(&format!("{:x}", address_of(name)), name)
        })
}
