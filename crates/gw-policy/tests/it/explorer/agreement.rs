//! A row survives exactly if the scope of the viewer selects it, on random chains, worlds and settings.

use super::scenario::{Case, Scenario, address, block_time, case, scenario, settings};
use gw_policy::{
    PolicySettings, Viewer,
    settings::{HiddenTransferMode, PartialRowMode},
    testing::hash_of,
    visibility::{
        LogVisibility,
        explorer::{AddressBlocks, LogScope, ParticipantRows, RowScope},
    },
};
use gw_postings::{
    BlockRange, BlockRows, EventLogs, FrameParties, Grant, HiddenTransfers, LogParties, PartialRows, PostingIndex,
    RowId, Scope, Space, TransactionRows, TransferParties, VisibleAddress,
};
use gw_types::{Address, B256};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn in_blocks(visible: &AddressBlocks) -> VisibleAddress {
    VisibleAddress {
        address: visible.address,
        blocks: BlockRange {
            start: visible.blocks.start,
            end: visible.blocks.end,
        },
    }
}

fn in_some(list: &[AddressBlocks]) -> Vec<VisibleAddress> {
    list.iter().map(in_blocks).collect()
}

fn in_all(list: &[Address]) -> Vec<VisibleAddress> {
    list.iter().copied().map(VisibleAddress::in_all_blocks).collect()
}

/// The ids of the transactions of a scenario.
struct Ids(BTreeMap<B256, RowId>);

impl Ids {
    fn rows_of(&self, hashes: &[B256]) -> BTreeSet<RowId> {
        hashes.iter().filter_map(|hash| self.0.get(hash).copied()).collect()
    }

    /// The scope of transactions, transfers and frames.
    fn rows(&self, scope: &RowScope) -> Scope {
        Scope {
            visible: in_some(&scope.visible),
            public: in_all(&scope.public),
            own: in_all(&scope.own),
            own_receivers: in_all(&scope.own_receivers),
            administered: in_some(&scope.administered),
            event_tokens: in_some(&scope.event_tokens),
            members: in_all(&scope.members),
            grants: scope
                .disclosed
                .iter()
                .map(|rows| Grant {
                    target: in_blocks(&rows.target),
                    times: rows.times,
                    counterparties: rows.counterparties.clone(),
                })
                .collect(),
            shared: self.rows_of(&scope.shared),
            withheld: self.rows_of(&scope.withheld),
            closed: scope.closed.clone(),
            participant_rows: participant_rows(scope.participant_rows),
            one_sided: match scope.one_sided {
                PartialRowMode::Mask => PartialRows::Keep,
                PartialRowMode::Drop => PartialRows::Drop,
            },
            anchor: match scope.anchor {
                HiddenTransferMode::None => HiddenTransfers::None,
                HiddenTransferMode::Keep => HiddenTransfers::Keep,
            },
            ..Scope::default()
        }
    }

    fn logs(&self, scope: &LogScope, withheld: &[B256]) -> Scope {
        Scope {
            own: in_all(&scope.own),
            own_receivers: in_all(&scope.own_receivers),
            participant_rows: participant_rows(scope.participant_rows),
            shared: self.rows_of(&scope.shared),
            withheld: self.rows_of(withheld),
            closed: scope.closed.clone(),
            emitters: in_some(&scope.emitters),
            events: scope
                .events
                .iter()
                .map(|(emitter, topic0)| (in_blocks(emitter), *topic0))
                .collect(),
            event_logs: scope.event_logs.iter().map(event_logs).collect(),
            log_candidates: scope
                .candidates
                .iter()
                .map(|candidates| (in_blocks(&candidates.emitter), candidates.topic0()))
                .collect(),
            ..Scope::default()
        }
    }
}

fn event_logs(logs: &gw_policy::visibility::explorer::EventLogs) -> EventLogs {
    EventLogs {
        emitter: in_blocks(&logs.emitter),
        topic0: logs.topic0,
        topics: logs.topics,
        party: logs.party,
    }
}

fn participant_rows(rows: ParticipantRows) -> gw_postings::ParticipantRows {
    match rows {
        ParticipantRows::All => gw_postings::ParticipantRows::All,
        ParticipantRows::Granted => gw_postings::ParticipantRows::Granted,
    }
}

/// The index of the scenario's chain.
fn index(scenario: &Scenario) -> (PostingIndex, Ids) {
    let (mut index, mut ids) = (PostingIndex::new(), BTreeMap::new());
    let last = scenario.transactions.last().map_or(0, |tx| tx.block);
    for number in 0..=last {
        let mut block = BlockRows {
            number,
            time: block_time(number),
            transactions: Vec::new(),
        };
        for tx in scenario.transactions.iter().filter(|tx| tx.block == number) {
            ids.insert(hash_of(&tx.name), RowId(ids.len() as u64));
            let transfer = |[token, from, to]: &[&str; 3]| TransferParties {
                token: address(token),
                from: address(from),
                to: address(to),
            };
            let frame = |(from, to): &(&str, Option<&str>)| FrameParties {
                from: address(from),
                to: to.map(address),
            };
            let log = |log: &super::scenario::Log| LogParties::new(address(log.emitter), &log.topics);
            block.transactions.push(TransactionRows {
                from: address(tx.from),
                to: tx.to.map(address),
                transfers: tx.transfers.iter().map(transfer).collect(),
                frames: tx.frames.iter().map(frame).collect(),
                logs: tx.logs.iter().map(log).collect(),
            });
        }
        index.append(&block).unwrap();
    }
    (index, Ids(ids))
}

/// The ids of the rows for which the verdicts hold.
fn positions(verdicts: impl IntoIterator<Item = bool>) -> Vec<u64> {
    let verdicts = verdicts.into_iter().zip(0..);
    verdicts.filter(|(holds, _)| *holds).map(|(_, id)| id).collect()
}

fn selected(index: &PostingIndex, space: Space, scope: &Scope) -> Vec<u64> {
    ascending(&index.select(space, scope))
}

fn ascending(rows: &gw_postings::RowSet) -> Vec<u64> {
    let mut ids: Vec<u64> = rows.page_before(None, usize::MAX).iter().map(|row| row.0).collect();
    ids.reverse();
    ids
}

fn assert_agrees(scenario: &Scenario, case: Case, settings: &PolicySettings) {
    let snapshot = scenario.world().snapshot();
    let viewer: Viewer<'_> = case.viewer(&snapshot, settings);
    let scope = viewer.row_scope();
    let (index, ids) = index(scenario);
    let rows = ids.rows(&scope);
    let transfers: Vec<_> = scenario.transactions.iter().map(|tx| tx.transfer_entries()).collect();
    let transactions = || scenario.transactions.iter().zip(&transfers);

    let verdicts = transactions().map(|(tx, transfers)| viewer.transaction_entry(&tx.entry(transfers)).is_some());
    assert_eq!(
        positions(verdicts),
        selected(&index, Space::Transactions, &rows),
        "transactions by {scope:#?}"
    );
    let verdicts = transactions().flat_map(|(tx, transfers)| {
        let entry = tx.entry(transfers);
        let verdicts = transfers
            .iter()
            .map(|transfer| viewer.transfer_entry(&entry, transfer).is_some());
        verdicts.collect::<Vec<_>>()
    });
    assert_eq!(
        positions(verdicts),
        selected(&index, Space::Transfers, &rows),
        "transfers by {scope:#?}"
    );
    let verdicts = transactions().flat_map(|(tx, transfers)| {
        let (entry, frames) = (tx.entry(transfers), tx.frame_entries());
        let verdicts = frames.iter().map(|frame| viewer.frame_entry(&entry, frame).is_some());
        verdicts.collect::<Vec<_>>()
    });
    assert_eq!(
        positions(verdicts),
        selected(&index, Space::Frames, &rows),
        "frames by {scope:#?}"
    );

    let shown = scenario.transactions.iter().flat_map(|tx| {
        let shown = |log: &super::scenario::Log| log.visibility(&viewer, tx) != LogVisibility::Dropped;
        tx.logs.iter().map(shown).collect::<Vec<_>>()
    });
    let shown = positions(shown);
    assert_eq!(scope.logs.len(), 1 + usize::from(case.impersonator.is_some()));
    let (mut certain, mut possible) = (Vec::new(), Vec::new());
    for logs in &scope.logs {
        let logs = ids.logs(logs, &scope.withheld);
        let selected = index.select(Space::Logs, &logs);
        let all = selected.union(&index.select_log_candidates(&logs));
        certain.push(selected);
        possible.push(all);
    }
    let intersection = |sets: &[gw_postings::RowSet]| {
        let first = sets[0].clone();
        ascending(&sets.iter().skip(1).fold(first, |rows, more| rows.intersection(more)))
    };
    let (certain, possible) = (intersection(&certain), intersection(&possible));
    assert!(
        certain.iter().all(|log| shown.contains(log)),
        "{certain:?} of {shown:?} by {scope:#?}"
    );
    assert!(
        shown.iter().all(|log| possible.contains(log)),
        "{shown:?} in {possible:?} by {scope:#?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// R12 to R18, K1, K2, K10, K12, HD7, HD9, HD10, HD28, HD41.
    #[test]
    fn r17_a_row_survives_exactly_if_the_scope_selects_it(
        scenario in scenario(),
        case in case(),
        settings in settings(),
    ) {
        assert_agrees(&scenario, case, &settings);
    }
}
