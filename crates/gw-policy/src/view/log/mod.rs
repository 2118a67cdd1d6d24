//! Event logs as JSON (spec/30 section 6; HD1): `eth_getLogs`, the logs of a receipt, and the logs of a simulation.
//!
//! `record` reads and writes one log of an upstream response; [`LogViewer`] and [`LogQuery`] evaluate its visibility.
//!
//! Invariant: topic criteria are matched against the log as rendered for this viewer; a masked slot matches only the
//! wildcard (HD1, I10).

mod record;

use super::{
    HIDDEN_FROM_TARGET, block, malformed_as,
    scan::{Malformed, Scan},
    transaction,
};
use crate::{
    access::TraceVerdict,
    sealed::{Disclosed, Parts, RawJson, Sealed},
    snapshot::Moment,
    visibility::{
        LogQuery, LogViewer, LogVisibility, PartySearch, SeesAnyLog, SimulatedLog, TransactionParties,
        TransactionRoles, TransactionRow, TxParties, Viewer,
    },
};
use alloy_primitives::{Address, B256};
use gw_evm::LogFilter;
use record::{Log, LogOrder};

/// A transaction whose sender and receiver [`logs`] needs, because the viewer might be one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartiesNeeded {
    /// Hash of its block. One request for a block returns the parties of all its transactions.
    pub block_hash: B256,
    /// Hash of the transaction.
    pub tx_hash: B256,
}

/// The parties of the transaction `hash`, from the answer to `eth_getTransactionByHash`. `None` if the answer is
/// malformed or another transaction.
#[must_use]
pub fn transaction_parties(hash: B256, answer: &Sealed<RawJson>) -> Option<TransactionParties> {
    let row = transaction::row(answer.peek().text()?).ok()?;
    (row.hash == hash).then(|| TransactionParties::new(row.from, row.to))
}

/// The parties of all transactions of the block `hash`, from the answer to `eth_getBlockByHash` with full transactions.
/// Empty if the answer is malformed, another block, or contains a transaction of another block.
#[must_use]
pub fn block_parties(hash: B256, answer: &Sealed<RawJson>) -> Vec<(B256, TransactionParties)> {
    let mut parties = Vec::new();
    let read = answer.peek().text().map(|text| {
        block::each_row(text, hash, |row| {
            parties.push((row.hash, TransactionParties::new(row.from, row.to)));
        })
    });
    if read == Some(Ok(())) { parties } else { Vec::new() }
}

/// The transactions whose parties must be known before [`logs`] can run, each once, in the order of the logs. Empty for
/// a viewer who owns no address.
#[must_use]
pub fn parties_needed(viewer: &Viewer<'_>, filter: &LogFilter, answer: &Sealed<RawJson>) -> Vec<PartiesNeeded> {
    let Some(mut search) = PartySearch::new(viewer, filter) else {
        return Vec::new();
    };
    let mut needed = Vec::new();
    let read = each_log(answer.peek(), |log| {
        if search.is_candidate(log.address, log.tx_hash, log.topics()) && search.needs_parties(&log.row()?)? {
            needed.push(PartiesNeeded {
                block_hash: log.block_hash()?,
                tx_hash: log.tx_hash,
            });
        }
        Ok(())
    });
    // If the response is malformed, `logs` reports it, so no parties are needed.
    if read.is_ok() { needed } else { Vec::new() }
}

/// The result of [`logs`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum LogsAnswer {
    /// The rows that the viewer sees, and their number.
    Rows(Disclosed, usize),
    /// The filter names an address that the viewer has no access to and that has no row in the viewer's own or shared
    /// transactions (decision 20): the opaque 404.
    NotPermitted,
}

/// A log of a simulated execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLog {
    /// The log as both the user and the administrator see it, or a placeholder for a log that is hidden from the user.
    pub shown: Disclosed,
    /// Whether the user would see the log.
    pub to_person: bool,
}

/// The logs of an evaluated execution of the user, in the order of its frames (V1). A log is left out unless both the
/// user and an impersonating administrator see it, or the administrator administers the emitter.
pub fn run_logs(viewer: &Viewer<'_>, verdict: &TraceVerdict) -> Vec<RunLog> {
    let trace = verdict.trace();
    let sender = trace.frames.first().map(|top| top.from);
    let roles = TransactionRoles::for_run(viewer, sender);
    let mut log_viewer = LogViewer::new(viewer);
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
        let shown = Log::read(&mut Scan::new(&text), &mut LogOrder::default())
            .and_then(|log| simulated_log(&mut log_viewer, &log, roles));
        // A log that cannot be read is left out.
        logs.extend(shown.ok().flatten());
    }
    logs
}

/// A log of a simulated execution, if it is shown.
fn simulated_log(
    log_viewer: &mut LogViewer<'_, '_>,
    log: &Log<'_>,
    roles: TransactionRoles,
) -> Result<Option<RunLog>, Malformed> {
    let shown = match log_viewer.simulated_log(&log.row_at(Moment::Now), roles)? {
        SimulatedLog::Dropped => return Ok(None),
        SimulatedLog::HiddenFromUser => {
            return Ok(Some(RunLog {
                shown: Disclosed::constant(HIDDEN_FROM_TARGET),
                to_person: false,
            }));
        }
        SimulatedLog::Shown(visibility) => visibility,
    };
    let mut out = String::new();
    log.write(&shown, log_viewer.viewer(), &mut out)?;
    // A simulated log has no transaction, so the placeholder hash is removed.
    let text = out.replace(&format!(",\"transactionHash\":\"{:#x}\"", B256::ZERO), "");
    Ok(Some(RunLog {
        shown: Disclosed::text(text),
        to_person: true,
    }))
}

/// The logs of a receipt that the viewer sees, as a JSON list, and which viewers see at least one.
pub(super) fn receipt_logs(
    log_viewer: &mut LogViewer<'_, '_>,
    transaction: &TransactionRow,
    list: &str,
) -> Result<(String, SeesAnyLog), Malformed> {
    let viewer = log_viewer.viewer();
    let roles = TransactionRoles::new(viewer, transaction.hash, Some((transaction.from, transaction.to)));
    let (mut out, mut order) = (String::from("["), LogOrder::default());
    let mut sees_any = SeesAnyLog::default();
    Scan::new(list).list(|scan| {
        let log = Log::read(scan, &mut order)?;
        if log.tx_hash != transaction.hash {
            return Err(Malformed);
        }
        let shown = log_viewer.receipt_log(&log.row()?, roles, &mut sees_any)?;
        if shown != LogVisibility::Dropped && out.len() > 1 {
            out.push(',');
        }
        log.write(&shown, viewer, &mut out).map(drop)
    })?;
    out.push(']');
    Ok((out, sees_any))
}

/// Opens a result of `eth_getLogs`. [`LogQuery`] determines which logs the viewer sees.
pub fn logs(
    viewer: &Viewer<'_>,
    filter: &LogFilter,
    shared_only: &[Address],
    parties: &TxParties,
    answer: Sealed<RawJson>,
) -> LogsAnswer {
    let raw = answer.open();
    let mut query = LogQuery::new(viewer, filter, shared_only, parties);
    let mut count = 0_usize;
    let rows = malformed_as(Disclosed::EMPTY_LIST, || {
        let mut out = String::with_capacity(raw.text().map_or(0, str::len));
        out.push('[');
        // `None` once the node has not reported the block of a log.
        let mut parts = Some(Vec::new());
        each_log(&raw, |log| {
            if !query.is_candidate(log.address, log.tx_hash, log.topics()) {
                return Ok(());
            }
            let visibility = query.log(&log.row()?)?;
            if visibility == LogVisibility::Dropped {
                return Ok(());
            }
            if out.len() > 1 {
                out.push(',');
            }
            count = count.saturating_add(1);
            let part = log.write_part(&visibility, viewer, &mut out)?;
            parts = parts.take().zip(part).map(|(mut parts, part)| {
                parts.push(part);
                parts
            });
            Ok(())
        })?;
        out.push(']');
        let rows = Disclosed::text(out);
        Ok(match parts {
            Some(parts) => rows.with_parts(Parts::Logs(parts)),
            None => rows,
        })
    });
    if !query.is_permitted() {
        return LogsAnswer::NotPermitted;
    }
    let count = if rows.is_malformed() { 0 } else { count };
    LogsAnswer::Rows(rows, count)
}

fn each_log(raw: &RawJson, mut each: impl FnMut(&Log<'_>) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let mut scan = Scan::new(raw.text().ok_or(Malformed)?);
    let mut order = LogOrder::default();
    scan.list(|scan| each(&Log::read(scan, &mut order)?))?;
    scan.end()
}
