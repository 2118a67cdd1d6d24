//! The part of a call's parameters that the access record keeps (spec/70 rule 30), written from the typed call.
//!
//! Invariant: nothing here copies client text. A call with unreadable parameters leaves only a sentinel.

use crate::call::RpcCall;
use gw_evm::{BlockId, BlockTag, Call, CallRequest, LogFilter, LogRange, SubscriptionCall, Topic, TransactionRef};
use gw_types::Address;
use serde_json::{Value, json};

const HIDDEN: &str = "[REDACTED]";

/// The parameters as JSON text.
pub(crate) fn params(rpc_call: &RpcCall) -> String {
    rpc_call
        .call()
        .map_or_else(|| json!({"_redacted": "unreadable parameters"}), redacted)
        .to_string()
}

fn redacted(call: &Call) -> Value {
    match call {
        Call::Plain(_) | Call::UncleCount | Call::Uncle => json!([]),
        Call::FeeHistory { count, newest, .. } => json!([hex(*count), block_json(*newest)]),
        Call::Balance(address, block) | Call::Nonce(address, block) | Call::Code(address, block) => {
            json!([address_text(*address), block_json(*block)])
        }
        Call::Storage { address, block, .. } => json!([address_text(*address), HIDDEN, block_json(*block)]),
        Call::Simulate(simulation) => json!([call_object(&simulation.request), block_json(simulation.block)]),
        Call::Logs(filter) | Call::Subscription(SubscriptionCall::NewFilter(filter)) => {
            json!([filter_criteria(filter)])
        }
        Call::Subscription(SubscriptionCall::Subscribe(Topic::Logs(filter))) => {
            json!(["logs", filter_criteria(filter)])
        }
        Call::Subscription(SubscriptionCall::Subscribe(Topic::Heads)) => json!(["newHeads"]),
        Call::Subscription(SubscriptionCall::NewBlockFilter) => json!([]),
        // Only the owner can use a filter id, and readers of the record do not need it.
        Call::Subscription(
            SubscriptionCall::Changes(_)
            | SubscriptionCall::Logs(_)
            | SubscriptionCall::Uninstall(_)
            | SubscriptionCall::Unsubscribe(_),
        ) => json!([HIDDEN]),
        Call::Transaction(TransactionRef::Hash(hash)) | Call::Receipt(hash) => json!([hash]),
        Call::Transaction(TransactionRef::BlockHashAndIndex(hash, index)) => json!([hash, hex(*index)]),
        Call::Transaction(TransactionRef::BlockNumberAndIndex(block, index)) => {
            json!([block_json(*block), hex(*index)])
        }
        Call::Block { block, full } => json!([block_json(*block), full]),
        Call::BlockTransactionCount(block) | Call::BlockReceipts(block) => json!([block_json(*block)]),
        Call::SendRaw(signed) => json!([shorten(&signed.raw.to_string(), 20)]),
        Call::Send(send) => json!([call_object(&send.request)]),
        Call::Sha3(_)
        | Call::Proof { .. }
        | Call::Transaction(TransactionRef::SenderAndNonce(..))
        | Call::TraceTransaction(_)
        | Call::Passthrough(_) => json!({"_redacted": "unsupported method"}),
    }
}

fn filter_criteria(filter: &LogFilter) -> Value {
    match filter.range {
        LogRange::Hash(hash) => json!({"blockHash": hash, "address": HIDDEN, "topics": HIDDEN}),
        LogRange::Range { from, to } => {
            json!({"fromBlock": block_json(from), "toBlock": block_json(to), "address": HIDDEN, "topics": HIDDEN})
        }
    }
}

/// From, to, value, gas, gas price, and the first bytes of the calldata.
fn call_object(request: &CallRequest) -> Value {
    json!({
        "from": request.from.map(address_text), "to": request.to.map(address_text), "value": request.value,
        "gas": request.gas.map(hex), "gasPrice": request.gas_price.map(|price| format!("{price:#x}")),
        "input": shorten(&request.input.to_string(), 10),
    })
}

fn address_text(address: Address) -> String {
    format!("{address:#x}")
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn block_json(id: BlockId) -> Value {
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

fn shorten(text: &str, max_length: usize) -> String {
    match text.get(..max_length) {
        Some(head) if text.len() > max_length => format!("{head}..."),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_rule_30_bytes_are_shortened_and_storage_slots_hidden() {
        let request = CallRequest {
            input: vec![0xab; 100].into(),
            ..CallRequest::default()
        };
        assert_eq!(call_object(&request)["input"], "0xabababab...");
        assert_eq!(shorten("0x1234", 10), "0x1234");
        let slot = Call::Storage {
            address: Address::ZERO,
            slot: gw_types::B256::repeat_byte(7),
            full_word: true,
            block: BlockId::LATEST,
        };
        assert_eq!(redacted(&slot)[1], HIDDEN);
    }
}
