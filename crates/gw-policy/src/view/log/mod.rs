//! Event logs (spec/30 section 6; HD1, decisions 17 to 20 and 50).
//!
//! `record` reads one log from the node's text, `judge` says whether and how it is shown and renders it, and this file
//! answers `eth_getLogs`. Receipts use the same judge, so the same log shows the same addresses everywhere (I8, R24).
//!
//! Invariant: topic criteria are matched against the log as rendered for this viewer; a masked slot matches only the
//! wildcard (HD1, I10).

mod judge;
mod record;

pub(super) use judge::LogReader;

use super::{
    Parties, block, malformed_as,
    scan::{Malformed, Scan},
};
use crate::{
    access::TraceVerdict,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Person, Viewer, is_precompile},
};
use alloy_primitives::{Address, B256};
use gw_evm::{LogFilter, TopicFilter, abi::clean_address};
use judge::{Rendering, TxRight, TxRights};
use record::{Log, LogOrder};
use std::collections::{HashMap, HashSet};

/// What may be said upstream of a log filter (HD1): a position that names an address-shaped word which is not Full
/// becomes the wildcard. [`logs`] then applies the caller's own criteria.
#[must_use]
pub fn upstream_filter(viewer: &Viewer<'_>, filter: &LogFilter) -> LogFilter {
    let may_say = |word: &B256| clean_address(word).is_none_or(|address| viewer.sees(address));
    let topics = filter.topics.iter().map(|position| match position {
        TopicFilter::OneOf(words) if words.iter().all(may_say) => position.clone(),
        TopicFilter::OneOf(_) | TopicFilter::Any => TopicFilter::Any,
    });
    LogFilter {
        topics: topics.collect(),
        ..filter.clone()
    }
}

/// A transaction whose parties [`logs`] needs to know, because the viewer might be one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartiesNeeded {
    /// Its block: the parties of one block's transactions can be asked for together.
    pub block_hash: B256,
    /// The transaction.
    pub tx_hash: B256,
}

/// Senders and receivers of transactions, read from the node, for [`logs`]. A transaction that is missing counts as
/// somebody else's.
#[derive(Debug, Default)]
pub struct TxParties {
    known: HashMap<B256, Parties>,
}

impl TxParties {
    /// Adds what an answer says: one transaction, or a block with full transactions. Anything else adds nothing.
    pub fn learn(&mut self, answer: &Sealed<RawJson>) {
        let mut found = Vec::new();
        let read = answer
            .peek()
            .text()
            .map(|text| block::parties(text, |parties| found.push(parties)));
        if read == Some(Ok(())) {
            self.known
                .extend(found.into_iter().map(|parties| (parties.tx_hash, parties)));
        }
    }
}

/// The transactions whose parties must be known before [`logs`] can answer, each once, in the order of the logs.
///
/// Empty for a viewer who owns no address; and a log is passed over if being a participant would change nothing: it is
/// shown whole anyway, or does not even match what was asked upstream. The caller's own criteria are not looked at: how
/// many questions the node is asked must not tell whether a hidden address occurs (HD1). What was shared (`visibleTo`)
/// is known without the node.
#[must_use]
pub fn parties_needed(viewer: &Viewer<'_>, filter: &LogFilter, answer: &Sealed<RawJson>) -> Vec<PartiesNeeded> {
    if !viewer.owns_any() {
        return Vec::new();
    }
    let asked = upstream_filter(viewer, filter);
    let mut reader = LogReader::new(viewer);
    let (mut needed, mut seen) = (Vec::new(), HashSet::new());
    let read = each_log(answer.peek(), |log| {
        if seen.contains(&log.tx_hash) || viewer.withholds(log.tx_hash) || !could_match(&asked, log) {
            return Ok(());
        }
        let right = TxRights::of(viewer, |person| TxRight {
            is_participant: false,
            is_recipient: person.is_recipient(log.tx_hash),
        });
        if !reader.render(log, right)?.is_whole() {
            seen.insert(log.tx_hash);
            needed.push(PartiesNeeded {
                block_hash: log.block_hash()?,
                tx_hash: log.tx_hash,
            });
        }
        Ok(())
    });
    // The answer is malformed then, and `logs` will say so whatever is known.
    if read.is_ok() { needed } else { Vec::new() }
}

/// The answer of [`logs`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum LogsAnswer {
    /// The rows this viewer sees, and how many they are.
    Rows(Disclosed, usize),
    /// An address the viewer has no grant on, without a row of the viewer's own or shared transactions (decision 20):
    /// the opaque 404.
    NotPermitted,
}

/// An event of a run that has not happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLog {
    /// The event as both see it, or that it is visible to the one, or hidden from them.
    pub shown: Disclosed,
    /// Whether the person would see it.
    pub to_person: bool,
}

/// The events of a judged run of the viewer's own, in the order of its frames (V1): what neither sees is left out.
pub fn run_logs(viewer: &Viewer<'_>, verdict: &TraceVerdict) -> Vec<RunLog> {
    let trace = verdict.trace();
    let sender = trace.frames.first().map(|top| top.from);
    let knows = |person: &Person<'_>| sender.is_some_and(|sender| person.sees(sender));
    // The run is the person's whoever its sender turns out to be.
    let mut right = TxRights::of(viewer, |person| TxRight {
        is_participant: knows(person),
        is_recipient: false,
    });
    right.person.is_participant = true;
    let mut reader = LogReader::new(viewer);
    let mut logs = Vec::new();
    for log in trace.frames.iter().flat_map(|frame| &frame.logs) {
        let text = format!(
            r#"{{"address":"{:#x}","topics":[{}],"data":"{}","transactionHash":"{:#x}"}}"#,
            log.address,
            log.topics
                .iter()
                .map(|topic| format!("\"{topic:#x}\""))
                .collect::<Vec<_>>()
                .join(","),
            log.data,
            B256::ZERO,
        );
        let shown = Log::read(&mut Scan::new(&text), &mut LogOrder::default()).and_then(|log| reader.told(&log, right));
        // What cannot be read shows to nobody.
        logs.extend(shown.ok().flatten());
    }
    logs
}

/// The emitters of a filter that the viewer holds no grant on, nor held one while they were the organization's (HD41).
fn ungranted(viewer: &Viewer<'_>, filter: &LogFilter, shared_only: &[Address]) -> Vec<Address> {
    let mut ungranted: Vec<Address> = filter.addresses.clone();
    ungranted
        .retain(|address| shared_only.contains(address) || !(viewer.reaches_ever(*address) || is_precompile(*address)));
    ungranted
}

/// Whether [`logs`] answers [`LogsAnswer::NotPermitted`] whatever the node says: then it is not asked, so that the time
/// of the answer tells nothing of logs that nobody is shown.
#[must_use]
pub fn shows_nothing(viewer: &Viewer<'_>, filter: &LogFilter, shared_only: &[Address]) -> bool {
    filter.addresses.is_empty()
        || (!viewer.owns_or_was_shared_any() && !ungranted(viewer, filter, shared_only).is_empty())
}

/// `eth_getLogs`. `filter` is the caller's own: it is matched against the logs as rendered (HD1). Of the emitters
/// `shared_only` ([`Permit::shared_logs_only`](crate::access::Permit::shared_logs_only)) only rows of own and shared
/// transactions show, also where the viewer reaches the contract: the owner's groups must list the method (decision 40).
pub fn logs(
    viewer: &Viewer<'_>,
    filter: &LogFilter,
    shared_only: &[Address],
    parties: &TxParties,
    answer: Sealed<RawJson>,
) -> LogsAnswer {
    let raw = answer.open();
    let mut ungranted = ungranted(viewer, filter, shared_only);
    let mut count = 0_usize;
    let rows = malformed_as(Disclosed::EMPTY_LIST, || {
        let mut reader = LogReader::new(viewer);
        let mut out = String::with_capacity(raw.text().map_or(0, str::len));
        out.push('[');
        let mut last: Option<(B256, TxRights)> = None;
        each_log(&raw, |log| {
            if viewer.withholds(log.tx_hash) || !could_match(filter, log) {
                return Ok(());
            }
            let right = match last {
                Some((hash, right)) if hash == log.tx_hash => right,
                Some(_) | None => right_to(viewer, parties, log.tx_hash),
            };
            last = Some((log.tx_hash, right));
            if !(right.person.is_participant || right.person.is_recipient) && shared_only.contains(&log.address) {
                return Ok(());
            }
            let rendering = reader.render(log, right)?;
            if !rendering.matches(log, &filter.topics) {
                return Ok(());
            }
            if out.len() > 1 {
                out.push(',');
            }
            count = count.saturating_add(1);
            rendering.write(log, viewer.person().snapshot, &mut out)?;
            if !ungranted.is_empty() {
                ungranted.retain(|address| *address != log.address);
            }
            Ok(())
        })?;
        out.push(']');
        Ok(Disclosed::text(out))
    });
    if filter.addresses.is_empty() || !ungranted.is_empty() {
        return LogsAnswer::NotPermitted;
    }
    let count = if rows.is_malformed() { 0 } else { count };
    LogsAnswer::Rows(rows, count)
}

fn right_to(viewer: &Viewer<'_>, parties: &TxParties, tx_hash: B256) -> TxRights {
    let known = parties.known.get(&tx_hash);
    TxRights::of(viewer, |person| TxRight {
        is_participant: !person.withholds(tx_hash)
            && known.is_some_and(|parties| person.is_participant(parties.from, parties.to)),
        is_recipient: person.is_recipient(tx_hash),
    })
}

fn each_log(raw: &RawJson, mut each: impl FnMut(&Log<'_>) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let mut scan = Scan::new(raw.text().ok_or(Malformed)?);
    let mut order = LogOrder::default();
    scan.list(|scan| each(&Log::read(scan, &mut order)?))?;
    scan.end()
}

/// Whether the log would be in the answer if all of it were shown. What the node was asked is not relied upon.
fn could_match(filter: &LogFilter, log: &Log<'_>) -> bool {
    filter.addresses.contains(&log.address) && Rendering::Whole.matches(log, &filter.topics)
}
