//! Verifies the audit log beside the service (spec/70 rule 19): everything at start and once a day, in between what was
//! sealed since.
//!
//! Each instance does so for itself. A lease in the database would let whoever may write there keep all of them from it,
//! and the heads that each instance keeps are worth something because it looked itself.

use super::ADMIN_CHAIN;
use crate::{
    trust::{Trust, adopt},
    verification::{ChainReport, Erased, Known, Pass, Verified, verify_all},
};
use anyhow::Context as _;
use gw_audit::{
    ChainId, CheckpointPublicKey, Discontinuity, ShardId, TrustedHead,
    verify::{Finding, FindingKind},
};
use gw_store::{
    Store,
    audit::{AuditStore, TamperedRead},
};
use gw_types::Clock;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often everything is looked at.
const FULL: Duration = Duration::from_secs(24 * 3600);
/// Findings of one chain that are raised by one pass; all of them are counted.
const RAISED: usize = 16;
/// How much longer than it reads a pass rests.
const REST: u32 = 4;
/// Rest after a pass that could not be made.
const RETRY: Duration = Duration::from_secs(60);

/// What verification takes.
#[derive(Debug)]
pub(crate) struct Verification {
    pub(crate) audit: AuditStore,
    /// The policy store, whose schema is looked at, too.
    pub(crate) store: Option<Store>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The public half of the key in use.
    pub(crate) key: CheckpointPublicKey,
    /// The shard of this instance.
    pub(crate) shard: ShardId,
    /// Time between passes; zero for none at all.
    pub(crate) every: Duration,
    /// Time between checkpoints.
    pub(crate) checkpoints: Duration,
}

/// How often it is asked what readers of the log were shown as tampered.
const READ: Duration = Duration::from_secs(1);

/// Verifies until told to end, and raises what readers of the log are shown as tampered meanwhile.
pub(crate) async fn verify(verification: Verification, end: CancellationToken) {
    let reads = async {
        loop {
            verification.raise_reads();
            sleep(READ).await;
        }
    };
    if verification.every.is_zero() {
        end.run_until_cancelled(reads).await;
        return;
    }
    let mut verified = BTreeMap::new();
    let mut full = None::<Instant>;
    let work = async {
        loop {
            if full.is_none_or(|at| at.elapsed() >= FULL) {
                verified.clear();
            }
            let is_full = verified.is_empty();
            let rest = match verification.pass(&mut verified).await {
                Ok(()) => {
                    full = if is_full { Some(Instant::now()) } else { full };
                    verification.every
                }
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "the audit log could not be verified");
                    verification.every.min(RETRY)
                }
            };
            sleep(rest).await;
        }
    };
    end.run_until_cancelled(async { tokio::join!(reads, work) }).await;
}

/// Whether something is attached to the policy store that no migration made; it is named in the log.
pub(crate) async fn is_changed(store: &Store) -> anyhow::Result<bool> {
    let found = store
        .foreign_objects()
        .await
        .context("the schema of the policy store cannot be read")?;
    for object in &found {
        tracing::error!(
            object,
            "somebody attached this to the policy database, or put it in the place of a table: it can hide rows or change \
             them on their way; find out who did, and remove it"
        );
    }
    Ok(!found.is_empty())
}

impl Verification {
    /// Raises the rows that were read for somebody and are not what was sealed: nobody is to be shown what nobody is told
    /// of. Each once; further ones of one look are for the next verification.
    pub(crate) fn raise_reads(&self) {
        let reads = self.audit.take_tampered_reads();
        if reads.is_empty() {
            return;
        }
        let (keys, heads) = (self.keys(), self.trust.file.heads());
        // What a re-anchoring covers is decided and listed.
        let is_covered = |chain, seq| {
            let notes = heads.discontinuities(chain).iter();
            let mut known = notes.filter_map(|note| Discontinuity::open(note, self.trust.cluster, &keys).ok());
            known.any(|one| one.covers(seq))
        };
        for TamperedRead { chain, seq } in reads.into_iter().take(RAISED) {
            // A row of which not even the chain can be read is told of with the chain that is always there.
            let chain = chain.unwrap_or(ADMIN_CHAIN);
            if !seq.is_some_and(|seq| is_covered(chain, seq)) {
                self.trust
                    .alarm
                    .raise(chain, &Finding::of(FindingKind::HashMismatch, seq), 1, 0);
            }
        }
    }

    /// One pass over all chains, from where the last one ended.
    pub(crate) async fn pass(&self, verified: &mut BTreeMap<ChainId, Verified>) -> anyhow::Result<()> {
        let trust = &self.trust;
        let keys = self.keys();
        let stored = self.audit.discontinuities().await?;
        trust.file.update(|heads| adopt(heads, &stored, trust.cluster, &keys))?;
        let heads = trust.file.heads();
        let is_policy_changed = match &self.store {
            Some(store) => is_changed(store).await?,
            None => false,
        };
        let known = Known {
            keys,
            heads,
            shard: Some(self.shard),
            is_policy_changed,
            ..Known::default()
        };
        let erased: Erased<'_> = &|_, _| false;
        let pass = Pass {
            cluster: trust.cluster,
            interval: self.checkpoints,
            now: self.clock.now(),
            since: 0,
            rest: REST,
            erased,
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
        let mut clean = true;
        for report in reports {
            clean &= report.report.is_clean();
            self.conclude(report, verified)?;
        }
        if clean {
            tracing::debug!("the audit log is as it was signed");
        }
        Ok(())
    }

    fn conclude(&self, found: ChainReport, verified: &mut BTreeMap<ChainId, Verified>) -> anyhow::Result<()> {
        let ChainReport {
            chain,
            report,
            newest_note,
            verified: progress,
            ..
        } = found;
        let hidden = report.findings.len().saturating_sub(RAISED);
        for finding in report.findings.iter().take(RAISED) {
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
        // What another instance signed is trusted from the moment it was verified here.
        if let Some((note, edge)) = newest_note.zip(report.signed_edge) {
            let era = report.discontinuities.last().map_or(0, |one| one.era);
            self.trust
                .file
                .update(|heads| heads.advance(chain, TrustedHead::new(Some(note), &edge, era)))?;
        }
        Ok(())
    }

    /// The key in use and those that were in use here before.
    fn keys(&self) -> Vec<CheckpointPublicKey> {
        let mut keys = vec![self.key.clone()];
        keys.extend(self.trust.file.heads().keys().filter(|key| *key != self.key));
        keys
    }
}
