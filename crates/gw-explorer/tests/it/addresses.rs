//! I2, R11: the raw bytes of an answer contain no address that is hidden from the viewer.

use crate::{
    chain::{ChainMaker, NAMES, Naive},
    noninterference::every_path,
    world::{EVERYBODY, World},
};
use gw_policy::{
    PolicySettings, Viewer,
    settings::{HiddenTransferMode, TransactionLogs},
    snapshot::Moment,
    testing::address_of,
};
use gw_types::{Address, B256};
use serde_json::Value;
use std::collections::BTreeSet;

fn digits(address: Address) -> String {
    hex::encode(address)
}

/// The addresses of the world whose digits are in the text.
fn named_in(text: &str) -> BTreeSet<Address> {
    let text = text.to_ascii_lowercase();
    let all = NAMES.iter().map(|name| address_of(name));
    all.filter(|address| text.contains(&digits(*address))).collect()
}

/// What a viewer may learn, by the levels of addresses and the overrides of spec/30 section 2.4. It does not use the
/// evaluation of rows.
struct Oracle<'a> {
    viewer: &'a Viewer<'a>,
    settings: &'a PolicySettings,
}

impl Oracle<'_> {
    fn is_full(&self, address: Address, moment: Moment) -> bool {
        self.viewer.address_entry(address, moment).is_clear()
    }

    /// The addresses that rows of this transaction may name besides those that are Full.
    fn revealed(&self, tx: &Naive<'_>) -> BTreeSet<Address> {
        let (transaction, moment) = (&tx.data.transaction, Moment::Block(tx.number));
        let is_participant = self.viewer.is_participant(transaction.from, transaction.to);
        let is_recipient = self.viewer.is_recipient(transaction.hash);
        let is_full = |address| self.is_full(address, moment);
        let mut revealed = BTreeSet::new();
        let sees_both = is_full(transaction.from) && transaction.to.is_none_or(is_full);
        if is_participant || is_recipient || sees_both {
            // The payload of the transaction.
            revealed.extend(named_in(&hex::encode(&transaction.input)));
        }
        if is_participant || is_recipient {
            revealed.extend([transaction.from].into_iter().chain(transaction.to));
            revealed.extend(transaction.created_contract);
        }
        let sees_all = is_participant && self.settings.participant_logs == TransactionLogs::All;
        for transfer in &tx.data.transfers {
            let owns_side = self.viewer.owns(transfer.from) || self.viewer.owns(transfer.to);
            if sees_all || owns_side {
                revealed.extend([transfer.from, transfer.to]);
            }
        }
        for log in &tx.data.logs {
            let topics: Vec<_> = log
                .topics
                .iter()
                .skip(1)
                .map(|topic| Address::from_word(*topic))
                .collect();
            if sees_all || topics.iter().any(|address| self.viewer.owns(*address)) {
                revealed.extend(topics);
            }
            // K4: the logs of a shared transaction are admitted, and an admitted log names its emitter.
            revealed.extend((sees_all || is_recipient).then_some(log.address));
        }
        revealed
    }

    /// Whether a row may name the address. `of_row` are the transactions to which it may belong.
    fn may_name(&self, address: Address, of_row: &[&Naive<'_>]) -> bool {
        let of_transaction =
            |tx: &&Naive<'_>| self.is_full(address, Moment::Block(tx.number)) || self.revealed(tx).contains(&address);
        self.is_full(address, Moment::Now) || of_row.iter().any(of_transaction)
    }
}

/// The rows of an answer, and the answer without them.
fn rows_in(body: Value) -> (Vec<Value>, Value) {
    let is_row = |row: &Value| row["txHash"].is_string() || row["inputData"].is_string();
    match body {
        Value::Array(all) => {
            let (rows, rest) = all.into_iter().partition(is_row);
            (rows, Value::Array(rest))
        }
        Value::Object(mut members) if !is_row(&Value::Object(members.clone())) => {
            let mut rows = Vec::new();
            for member in ["data", "transactions", "transfers"] {
                if let Some(list) = members.get_mut(member) {
                    let (found, rest) = rows_in(list.take());
                    rows.extend(found);
                    *list = rest;
                }
            }
            (rows, Value::Object(members))
        }
        row @ Value::Object(_) => (vec![row], Value::Null),
        other => (Vec::new(), other),
    }
}

mod i2_no_answer_names_a_hidden_address {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_the_specification() {
        nothing_is_named(21, PolicySettings::SPEC).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_strict_settings() {
        nothing_is_named(22, PolicySettings::STRICT).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_hidden_transfers_and_for_administrators() {
        let settings = PolicySettings {
            anchor: HiddenTransferMode::Keep,
            org_admin_view_user_txs: true,
            ..PolicySettings::SPEC
        };
        nothing_is_named(23, settings).await;
    }
}

async fn nothing_is_named(seed: u64, settings: PolicySettings) {
    let chain = ChainMaker::new(seed).blocks(1, B256::ZERO, 16);
    let world = World::loaded(chain.clone(), settings.clone()).await;
    let (snapshot, all) = (world.snapshot(), Naive::newest_first(&chain));
    let hashes: BTreeSet<B256> = all.iter().map(|tx| tx.data.transaction.hash).collect();
    let (mut open, mut stripped) = (0, 0);
    for who in EVERYBODY {
        let viewer = who.viewer(&snapshot, &settings);
        let oracle = Oracle {
            viewer: &viewer,
            settings: &settings,
        };
        for (path, member) in every_path(&chain, &hashes) {
            let separator = if path.contains('?') { '&' } else { '?' };
            let path = match member {
                Some(_) => format!("{path}{separator}limit=100"),
                None => path,
            };
            let response = world.get(who, &path).await;
            let (rows, rest) = match serde_json::from_str(&response.text) {
                Ok(body) => rows_in(body),
                Err(_) => (Vec::new(), Value::from(response.text.as_str())),
            };
            for row in rows {
                let hash = row["txHash"].as_str().or(row["hash"].as_str()).unwrap();
                let of_row: Vec<_> = all
                    .iter()
                    .filter(|tx| match hash {
                        "[PRIVATE]" => row["blockNumber"] == tx.number,
                        hash => hash == format!("0x{}", hex::encode(tx.data.transaction.hash)),
                    })
                    .collect();
                for address in named_in(&row.to_string()) {
                    assert!(oracle.may_name(address, &of_row), "{who:?} {path} {address}: {row}");
                }
                if row["traceAddress"].is_string() {
                    *(if row["input"].is_string() {
                        &mut open
                    } else {
                        &mut stripped
                    }) += 1;
                }
            }
            for address in named_in(&rest.to_string()) {
                assert!(oracle.may_name(address, &[]), "{who:?} {path} {address}: {rest}");
            }
        }
    }
    assert!(open > 10 && stripped > 10, "{open} {stripped}");
}
