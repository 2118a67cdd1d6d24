//! Helpers of the view tests.

use alloy_primitives::{Address, B256, Bytes as Hex};
use bytes::Bytes;
use gw_evm::{BlockId, Call, LogFilter, LogRange, Method, MethodLookup, TopicFilter, TransactionRef, VisibleTo};
use gw_policy::{
    PolicySettings, RawJson, Sealed, Snapshot, Viewer,
    access::{AccessRequest, Caller, Decision, HeadFacts, Impersonation, NamedOrg, decide},
    testing::{NOW, address_of, hash_of, org_id, user_id},
    view::{self, LogsAnswer, TxParties},
};
pub(super) use gw_testkit::scenario::{transfer, word};
use serde_json::{Value, json};

pub(super) fn sealed(value: &Value) -> Sealed<RawJson> {
    sealed_text(&value.to_string())
}

pub(super) fn sealed_text(text: &str) -> Sealed<RawJson> {
    Sealed::new(RawJson::new(Bytes::from(text.to_owned())))
}

pub(super) fn viewer<'s>(snapshot: &'s Snapshot, name: &str, settings: &'s PolicySettings) -> Viewer<'s> {
    Viewer::new(snapshot, (name != "nobody").then(|| user_id(name)), NOW, settings)
}

/// A viewer who is restricted to what an impersonating administrator may also see (HD7).
pub(super) fn restricted_viewer<'s>(
    snapshot: &'s Snapshot,
    name: &str,
    impersonator: &str,
    settings: &'s PolicySettings,
) -> Viewer<'s> {
    viewer(snapshot, name, settings).restricted_to(user_id(impersonator))
}

/// The viewer of an impersonated read in an organization, created from its permit as in the impersonation routes.
pub(super) fn impersonated_viewer<'s>(snapshot: &'s Snapshot, name: &str, impersonator: &str, org: &str) -> Viewer<'s> {
    let user = snapshot.user(user_id(name)).unwrap().clone();
    let caller = Caller::Impersonated(user, Impersonation::new(user_id(impersonator), org_id(org)));
    let call = Call::Transaction(TransactionRef::Hash(B256::ZERO));
    let request = AccessRequest {
        caller: &caller,
        lookup: MethodLookup::Registered(Method::GetTransactionByHash),
        call: Ok(&call),
        visible_to: &VisibleTo::default(),
        named_org: NamedOrg::Org(org_id(org)),
        now: NOW,
        head: HeadFacts { number: 100 },
        policy_settings: &PolicySettings::SPEC,
    };
    match decide(snapshot, &request) {
        Decision::Allow(permit) => permit.viewer(snapshot, NOW, &PolicySettings::SPEC),
        other => panic!("{other:?}"),
    }
}

/// Whether `shown` is contained in `seen`: equal, masked or shortened.
pub(super) fn is_contained_in(shown: &Value, seen: &Value) -> bool {
    let masks = [
        "0x0",
        "0x",
        "0x0000000000000000000000000000000000000000",
        &format!("{:#x}", B256::ZERO),
    ];
    match (shown, seen) {
        (Value::Null, _) => true,
        (Value::String(text), _) if masks.contains(&text.as_str()) => true,
        (Value::String(text), Value::String(seen)) => {
            text.len() == seen.len()
                && text
                    .bytes()
                    .zip(seen.bytes())
                    .all(|(shown, seen)| shown == seen || shown == b'0')
        }
        (Value::Array(rows), Value::Array(seen)) => rows
            .iter()
            .all(|row| seen.iter().any(|seen| is_contained_in(row, seen))),
        (Value::Object(members), Value::Object(seen)) => members
            .iter()
            .all(|(name, member)| seen.get(name).is_some_and(|seen| is_contained_in(member, seen))),
        (shown, seen) => shown == seen,
    }
}

pub(super) fn number(n: u64) -> B256 {
    B256::from(alloy_primitives::U256::from(n))
}

/// One log of transaction `tx`.
pub(super) fn log(emitter: Address, tx: &str, topics: &[B256], data: &[u8]) -> Value {
    json!({
        "address": emitter, "topics": topics, "data": Hex::copy_from_slice(data), "blockNumber": "0x64",
        "transactionHash": hash_of(tx), "transactionIndex": "0x0", "blockHash": hash_of("block"), "logIndex": "0x0",
        "removed": false,
    })
}

/// A token transfer in transaction `tx`.
pub(super) fn transfer_log(token: &str, tx: &str, from: &str, to: &str) -> Value {
    log(
        address_of(token),
        tx,
        &[transfer(), word(from), word(to)],
        number(7).as_slice(),
    )
}

/// Transaction `tx` with these parties, in the format of the node.
pub(super) fn transaction(tx: &str, from: Address, to: Option<Address>) -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "from": from, "to": to, "hash": hash_of(tx), "gas": "0x1",
        "gasPrice": "0x1", "input": "0x", "nonce": "0x0", "transactionIndex": "0x0", "value": "0x0", "type": "0x0",
        "v": "0x1b", "r": "0x1", "s": "0x1",
    })
}

pub(super) fn filter(emitters: &[&str], topics: Vec<TopicFilter>) -> LogFilter {
    let range = LogRange::Range {
        from: BlockId::LATEST,
        to: BlockId::LATEST,
    };
    LogFilter {
        addresses: emitters.iter().map(|name| address_of(name)).collect(),
        topics,
        range,
    }
}

pub(super) fn topic_is(word: B256) -> TopicFilter {
    TopicFilter::OneOf(vec![word])
}

/// The logs that a node returns for a filter.
pub(super) fn node_logs(logs: &[Value], filter: &LogFilter) -> Value {
    let matches = |log: &&Value| {
        let address: Address = serde_json::from_value(log["address"].clone()).unwrap();
        let topics: Vec<B256> = serde_json::from_value(log["topics"].clone()).unwrap();
        let position = |(criterion, topic): (&TopicFilter, &B256)| match criterion {
            TopicFilter::Any => true,
            TopicFilter::OneOf(words) => words.contains(topic),
        };
        filter.addresses.contains(&address)
            && filter.topics.len() <= topics.len()
            && filter.topics.iter().zip(&topics).all(position)
    };
    Value::Array(logs.iter().filter(matches).cloned().collect())
}

/// A complete `eth_getLogs`: upstream filter, response of the node, transaction parties and view.
pub(super) fn get_logs(viewer: &Viewer<'_>, filter: &LogFilter, logs: &[Value], transactions: &[Value]) -> LogsAnswer {
    let answer = sealed(&node_logs(logs, &view::upstream_filter(viewer, filter)));
    let mut parties = TxParties::default();
    for needed in view::parties_needed(viewer, filter, &answer) {
        let hash = json!(needed.tx_hash);
        let matching = transactions.iter().filter(|tx| tx["hash"] == hash);
        let known = matching.filter_map(|tx| view::transaction_parties(needed.tx_hash, &sealed(tx)));
        parties.extend(known.map(|known| (needed.tx_hash, known)));
    }
    view::logs(viewer, filter, &[], &parties, answer)
}

pub(super) fn rows(answer: &LogsAnswer) -> Vec<Value> {
    match answer {
        LogsAnswer::Rows(rows, _) => serde_json::from_str(rows.as_str()).unwrap(),
        LogsAnswer::NotPermitted => panic!("not permitted"),
    }
}
