//! Verifies the audit log while the service runs (spec/70 rule 19): all entries at start and once a day, and in between
//! the entries that were sealed since the last pass.
//!
//! Each instance verifies for itself. A lease in the database would let anybody who can write there block the
//! verification on all instances. The trusted heads of an instance are meaningful because the instance verified the
//! entries itself.

use super::ADMIN_CHAIN;
use crate::{
    trust::{AuditTrust, adopt},
    verification::{ChainReport, Known, Pass, Verified, verify_all},
};
use anyhow::Context as _;
use gw_audit::{
    ChainId, CheckpointPublicKey, Discontinuity, ShardId, TrustedHead,
    verify::{Finding, FindingKind},
};
use gw_store::{
    IndexCheck, Store, StoreError,
    audit::{AuditStore, TamperedRead},
};
use gw_types::Clock;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two verifications of all entries.
const FULL_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Most findings of one chain that one pass raises; further findings are only counted.
const MAX_RAISED: usize = 16;
/// After each query, a pass sleeps this many times the query's duration.
const REST: u32 = 4;
/// Longest wait after a pass that the database did not answer.
const RETRY: Duration = Duration::from_secs(60);
/// Longest wait after a pass that verified only a part.
const SECOND_TRY: Duration = Duration::from_secs(5);

/// Whether a pass verified everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete,
    /// A part could not be read. Nothing was raised if this was the first such pass in a row.
    Incomplete,
}

/// The verification worker and its dependencies.
#[derive(Debug)]
pub(crate) struct Verification {
    pub(crate) audit: AuditStore,
    /// The policy store, whose schema is checked too.
    pub(crate) store: Option<Store>,
    pub(crate) trust: Arc<AuditTrust>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The public half of the key in use.
    pub(crate) key: CheckpointPublicKey,
    /// The shard of this instance.
    pub(crate) shard: ShardId,
    /// Time between passes; zero switches them off.
    pub(crate) every: Duration,
    /// Time between checkpoints.
    pub(crate) checkpoints: Duration,
}

/// Time between two checks for tampered rows in results of readers.
const READS_INTERVAL: Duration = Duration::from_secs(1);

/// Verifies the audit log until `end` is cancelled. Also raises tampered rows that readers of the log get.
pub(crate) async fn verify(verification: Verification, end: CancellationToken) {
    let reads = async {
        loop {
            verification.raise_reads();
            sleep(READS_INTERVAL).await;
        }
    };
    if verification.every.is_zero() {
        end.run_until_cancelled(reads).await;
        return;
    }
    let mut verified = BTreeMap::new();
    let mut last_full = None::<Instant>;
    let work = async {
        loop {
            if last_full.is_none_or(|time| time.elapsed() >= FULL_INTERVAL) {
                verified.clear();
            }
            let is_full = verified.is_empty();
            let rest = match verification.pass(&mut verified).await {
                Ok(Outcome::Complete) => {
                    last_full = if is_full { Some(Instant::now()) } else { last_full };
                    verification.every
                }
                Ok(Outcome::Incomplete) => verification.every.min(SECOND_TRY),
                Err(error) => {
                    verification.trust.alarm.set_verified(false);
                    tracing::warn!(error = format!("{error:#}"), "the audit log could not be verified");
                    verification.every.min(RETRY)
                }
            };
            sleep(rest).await;
        }
    };
    end.run_until_cancelled(async { tokio::join!(reads, work) }).await;
}

/// Whether the schema of the policy store is not as the migrations made it. Logs each object that differs.
pub(crate) async fn is_changed(store: &Store) -> anyhow::Result<bool> {
    let objects = store
        .schema_differences()
        .await
        .context("the schema of the policy store cannot be read")?;
    for object in &objects {
        tracing::error!(
            object,
            "an object of the policy database is not as the migrations made it: it can hide or change rows, or keep \
             changes from being applied; find out who changed it, and restore or remove it"
        );
    }
    Ok(!objects.is_empty())
}

/// Limit of the comparison of the rows of the policy store with their indexes.
const INDEX_CHECK: Duration = Duration::from_secs(60);

/// Returns the faults of the indexes of the policy store; each names its index. A lying index makes a change hit
/// another row than the one that it names.
///
/// # Errors
/// If the policy store cannot be read.
pub(crate) async fn index_faults(store: &Store) -> anyhow::Result<Vec<String>> {
    let check = store.check_indexes(INDEX_CHECK).await;
    match check.context("the indexes of the policy store cannot be compared with its rows")? {
        IndexCheck::Sound => Ok(Vec::new()),
        IndexCheck::Faulty(faults) => Ok(faults),
        IndexCheck::Unfinished => {
            tracing::warn!(
                limit_s = INDEX_CHECK.as_secs(),
                "the policy database is too large to compare all of its indexes with its rows in time; what was \
                 compared agrees"
            );
            Ok(Vec::new())
        }
    }
}

/// Whether an index of the policy store does not agree with the rows of its table. Logs the faults.
pub(crate) async fn is_index_faulty(store: &Store) -> anyhow::Result<bool> {
    let faults = index_faults(store).await?;
    if !faults.is_empty() {
        tracing::error!(
            faults = faults.join("; "),
            "the indexes of the policy database do not agree with its rows, so a change can hit another row than the \
             one that it names: the likely cause is manual SQL or a damaged disk; keep a copy of the database, run \
             REINDEX on each index that the faults name, and repeat the changes made since"
        );
    }
    Ok(!faults.is_empty())
}

/// Logs the faults of the indexes of the audit database.
pub(crate) fn log_index_faults(faults: &[String]) {
    tracing::error!(
        faults = faults.join("; "),
        "the indexes of the audit database do not agree with its rows, so queries can miss entries: the likely cause \
         is manual SQL or a damaged disk; keep a copy of the database, then run REINDEX on each index that the \
         faults name"
    );
}

impl Verification {
    /// Raises the alarm for rows that a reader got and that differ from the sealed entry, each once. Rows beyond
    /// [`MAX_RAISED`] are left to the next verification.
    pub(crate) fn raise_reads(&self) {
        let reads = self.audit.take_tampered_reads();
        if reads.is_empty() {
            return;
        }
        let (keys, heads) = (self.keys(), self.trust.file.heads());
        // A re-anchoring accepted the entries that it covers.
        let is_covered = |chain, seq| {
            let notes = heads.discontinuities(chain).iter();
            let mut discontinuities =
                notes.filter_map(|note| Discontinuity::open(note, self.trust.cluster, &keys).ok());
            discontinuities.any(|discontinuity| discontinuity.covers(seq))
        };
        for TamperedRead { chain, seq } in reads.into_iter().take(MAX_RAISED) {
            // A row with an unreadable chain is reported with the administrative chain, which always exists.
            let chain = chain.unwrap_or(ADMIN_CHAIN);
            if !seq.is_some_and(|seq| is_covered(chain, seq)) {
                self.trust
                    .alarm
                    .raise(chain, &Finding::new(FindingKind::HashMismatch, seq), 1, 0);
            }
        }
    }

    /// Runs one pass over all chains, each from the end of the last pass, and raises the findings. A busy database or
    /// an administrator's lock can make a part unreadable for a moment, so the findings of such a pass are raised only
    /// if the pass before had the same problem.
    pub(crate) async fn pass(&self, verified: &mut BTreeMap<ChainId, Verified>) -> anyhow::Result<Outcome> {
        let trust = &self.trust;
        let keys = self.keys();
        match self.audit.discontinuities().await {
            Ok(stored) => trust.file.update(|heads| adopt(heads, &stored, trust.cluster, &keys))?,
            // `verify_all` reports it.
            Err(error) => self.audit.ping().await.map_err(|_| error)?,
        }
        let heads = trust.file.heads();
        let (is_policy_changed, waiting_erasures) = match &self.store {
            Some(store) => (
                // Reads every row, so the indexes are part of a full pass alone.
                is_changed(store).await? | (verified.is_empty() && is_index_faulty(store).await?),
                match store.waiting_erasures().await {
                    // The sealer reports the missing row. It must not stop the verification.
                    Err(StoreError::PolicyStoreRow) => Vec::new(),
                    waiting => waiting.context("the outbox of the policy store cannot be read")?,
                },
            ),
            None => (false, Vec::new()),
        };
        let known = Known {
            keys,
            heads,
            shard: Some(self.shard),
            is_policy_changed,
            waiting_erasures,
            ..Known::default()
        };
        let pass = Pass {
            cluster: trust.cluster,
            interval: self.checkpoints,
            now: self.clock.now(),
            since: 0,
            rest: REST,
            report_index_faults: &log_index_faults,
        };
        let mut reports = Vec::new();
        verify_all(
            &self.audit,
            &known,
            &pass,
            verified,
            |_| true,
            |report| reports.push(report),
        )
        .await?;
        let is_incomplete = |report: &ChainReport| report.report.findings.iter().any(Finding::is_unverified);
        let outcome = if reports.iter().any(is_incomplete) {
            Outcome::Incomplete
        } else {
            Outcome::Complete
        };
        let was_complete = trust.alarm.set_verified(outcome == Outcome::Complete);
        if outcome == Outcome::Incomplete && was_complete != Some(false) {
            return Ok(outcome);
        }
        let waiting: Vec<_> = reports
            .iter()
            .filter(|report| report.chain.shard != self.shard && report.report.oldest_unsigned.is_some())
            .map(|report| (report.chain, report.report.signed))
            .collect();
        trust.file.update(|heads| heads.note_unsigned(waiting, pass.now))?;
        let mut clean = true;
        for report in reports {
            clean &= report.report.is_clean();
            self.process_report(report, verified)?;
        }
        if clean {
            tracing::debug!("the audit log was verified without a finding");
        }
        Ok(outcome)
    }

    /// Raises the findings of a chain, and trusts its newest verified note.
    fn process_report(
        &self,
        chain_report: ChainReport,
        verified: &mut BTreeMap<ChainId, Verified>,
    ) -> anyhow::Result<()> {
        let ChainReport {
            chain,
            report,
            newest_note,
            verified: progress,
            ..
        } = chain_report;
        let hidden = report.findings.len().saturating_sub(MAX_RAISED);
        for finding in report.findings.iter().take(MAX_RAISED) {
            self.trust
                .alarm
                .raise(chain, finding, report.scanned, report.null_hashes);
        }
        if hidden > 0 || report.omitted > 0 {
            let more = report.omitted.saturating_add(u64::try_from(hidden).unwrap_or(u64::MAX));
            tracing::error!(%chain, more, "there are more findings: `ledger-gateway audit verify` lists them");
        }
        let Some(progress) = progress else { return Ok(()) };
        verified.insert(chain, progress);
        // A note of another instance is trusted as soon as this instance has verified it.
        if let Some((note, edge)) = newest_note.zip(report.signed_edge) {
            let era = report
                .discontinuities
                .last()
                .map_or(0, |discontinuity| discontinuity.era);
            self.trust
                .file
                .update(|heads| heads.advance(chain, TrustedHead::new(Some(note), &edge, era)))?;
        }
        Ok(())
    }

    /// The current key and the older keys of this instance.
    fn keys(&self) -> Vec<CheckpointPublicKey> {
        let mut keys = vec![self.key.clone()];
        keys.extend(self.trust.file.heads().keys().filter(|key| *key != self.key));
        keys
    }
}
