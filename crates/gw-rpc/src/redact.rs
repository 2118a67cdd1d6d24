//! What of a call's parameters the access record keeps (spec/70 rule 30), written from the typed call.
//!
//! Invariant: nothing here copies client text; a call that could not be read leaves a sentinel only.

use crate::question::Asked;
use gw_evm::{BlockId, BlockTag, Call, CallRequest, Live, LogFilter, LogRange, Topic, TransactionRef};
use gw_types::Address;
use serde_json::{Value, json};

const HIDDEN: &str = "[REDACTED]";

/// The parameters as JSON text.
pub(crate) fn params(asked: &Asked) -> String {
    asked
        .call()
        .map_or_else(|| json!({"_redacted": "unreadable parameters"}), redacted)
        .to_string()
}

fn redacted(call: &Call) -> Value {
    match call {
        Call::Plain(_) | Call::UncleCount | Call::Uncle => json!([]),
        Call::FeeHistory { count, newest, .. } => json!([hex(*count), block(*newest)]),
        Call::Balance(address, at) | Call::Nonce(address, at) | Call::Code(address, at) => {
            json!([text(*address), block(*at)])
        }
        Call::Storage { address, block: at, .. } => json!([text(*address), HIDDEN, block(*at)]),
        Call::Simulate(simulation) => json!([object(&simulation.request), block(simulation.block)]),
        Call::Logs(filter) | Call::Live(Live::NewFilter(filter)) => json!([criteria(filter)]),
        Call::Live(Live::Subscribe(Topic::Logs(filter))) => json!(["logs", criteria(filter)]),
        Call::Live(Live::Subscribe(Topic::Heads)) => json!(["newHeads"]),
        Call::Live(Live::NewBlockFilter) => json!([]),
        // Whoever reads an id could not use it, but has no need of it either.
        Call::Live(Live::Changes(_) | Live::Logs(_) | Live::Uninstall(_) | Live::Unsubscribe(_)) => json!([HIDDEN]),
        Call::Transaction(TransactionRef::Hash(hash)) | Call::Receipt(hash) => json!([hash]),
        Call::Transaction(TransactionRef::BlockHashAndIndex(hash, index)) => json!([hash, hex(*index)]),
        Call::Transaction(TransactionRef::BlockNumberAndIndex(at, index)) => json!([block(*at), hex(*index)]),
        Call::Block { block: at, full } => json!([block(*at), full]),
        Call::BlockTransactionCount(at) | Call::BlockReceipts(at) => json!([block(*at)]),
        Call::SendRaw(signed) => json!([cut(&signed.raw.to_string(), 20)]),
        Call::Send(send) => json!([object(&send.request)]),
        Call::Sha3(_)
        | Call::Proof { .. }
        | Call::Transaction(TransactionRef::SenderAndNonce(..))
        | Call::TraceTransaction(_)
        | Call::Unexamined(_) => json!({"_redacted": "unsupported method"}),
    }
}

fn criteria(filter: &LogFilter) -> Value {
    match filter.range {
        LogRange::Hash(hash) => json!({"blockHash": hash, "address": HIDDEN, "topics": HIDDEN}),
        LogRange::Range { from, to } => {
            json!({"fromBlock": block(from), "toBlock": block(to), "address": HIDDEN, "topics": HIDDEN})
        }
    }
}

/// From, to, value, gas, gas price, and the head of the calldata.
fn object(request: &CallRequest) -> Value {
    json!({
        "from": request.from.map(text), "to": request.to.map(text), "value": request.value,
        "gas": request.gas.map(hex), "gasPrice": request.gas_price.map(|price| format!("{price:#x}")),
        "input": cut(&request.input.to_string(), 10),
    })
}

fn text(address: Address) -> String {
    format!("{address:#x}")
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn block(id: BlockId) -> Value {
    match id {
        BlockId::Number(number) => json!(hex(number)),
        BlockId::Hash { hash, .. } => json!(hash),
        BlockId::Tag(tag) => json!(match tag {
            BlockTag::Latest => "latest",
            BlockTag::Pending => "pending",
            BlockTag::Safe => "safe",
            BlockTag::Finalized => "finalized",
            BlockTag::Earliest => "earliest",
        }),
    }
}

fn cut(text: &str, keep: usize) -> String {
    match text.get(..keep) {
        Some(head) if text.len() > keep => format!("{head}..."),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_rule_30_bytes_are_cut_and_words_of_logs_and_storage_hidden() {
        let request = CallRequest {
            input: vec![0xab; 100].into(),
            ..CallRequest::default()
        };
        assert_eq!(object(&request)["input"], "0xabababab...");
        assert_eq!(cut("0x1234", 10), "0x1234");
        let slot = Call::Storage {
            address: Address::ZERO,
            slot: gw_types::B256::repeat_byte(7),
            full_word: true,
            block: BlockId::LATEST,
        };
        assert_eq!(redacted(&slot)[1], HIDDEN);
    }
}
