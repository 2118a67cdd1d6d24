//! Writes and signs one chain in the store: its claim, its head, its tree and its checkpoints.

#![expect(
    clippy::result_large_err,
    reason = "a finding ends the signing of a chain, so its size costs nothing in the usual case"
)]

use super::{
    frontiers::Frontiers,
    health::{OutOfStep, StallReason},
};
use anyhow::{Context as _, bail};
use gw_audit::{
    ChainId, CheckpointKey, CheckpointPublicKey, SigningGuard,
    verify::{Finding, FindingKind},
};
use gw_store::{
    StoreError,
    audit::{AuditStore, Claim, ToSeal},
};
use gw_types::{Seconds, Timestamp};
use std::time::Duration;
use tokio::time::Instant;

/// Lifetime of a claim.
const CLAIM_LIFETIME: Seconds = Seconds(15);
/// Time between two renewals of the claim.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);
/// Entries after which a checkpoint is signed before its interval has passed (spec/70 rule 7).
const CHECKPOINT_ENTRIES: u64 = 10_000;
/// Rows per query while catching up with the store.
const PAGE: u64 = 5000;

/// Signs checkpoints.
#[derive(Debug)]
pub(super) struct Signer {
    pub(super) key: CheckpointKey,
    pub(super) cluster: &'static str,
    interval: Duration,
}

impl Signer {
    pub(super) fn new(key: CheckpointKey, cluster: &'static str, interval: Duration) -> Self {
        Self { key, cluster, interval }
    }

    /// The public key that verifies the signatures.
    pub(super) fn public(&self) -> CheckpointPublicKey {
        self.key.public()
    }
}

/// A chain that this instance writes.
#[derive(Debug)]
pub(super) struct SealedChain {
    id: ChainId,
    holder: String,
    held: Option<Held>,
    /// The head that the chain must continue to be signed. It outlives the claim, so that a loss of the claim does not
    /// discard the observed entries.
    guard: Option<SigningGuard>,
    /// Count of signed entries.
    signed: u64,
    signed_at: Instant,
    /// The times of the oldest and of the newest entry that were sealed since the last signature.
    unsigned: Option<(Timestamp, Timestamp)>,
    /// Size of the chain when it was last too short to be signed.
    too_short: Option<u64>,
    /// The finding because of which the chain is no longer signed.
    contradiction: Option<Finding>,
}

/// The state of a chain while this instance holds its claim.
#[derive(Debug)]
struct Held {
    claim: Claim,
    renewed: Instant,
    /// Entries in the store.
    size: u64,
}

impl SealedChain {
    pub(super) fn new(id: ChainId, holder: String) -> Self {
        Self {
            id,
            holder,
            held: None,
            guard: None,
            signed: 0,
            signed_at: Instant::now(),
            unsigned: None,
            too_short: None,
            contradiction: None,
        }
    }

    /// Drops the claim and the cached head; the next claim reads the head from the store.
    pub(super) fn release(&mut self) {
        self.held = None;
    }

    /// The claim on the chain, acquired if needed; `None` while another instance holds it.
    pub(super) async fn claim(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
    ) -> anyhow::Result<Option<Claim>> {
        if self.held.is_none() {
            let claim = match audit.claim(self.id, &self.holder, CLAIM_LIFETIME).await {
                Ok(claim) => claim,
                Err(StoreError::OtherInstance(_)) => return Ok(None),
                Err(error) => return Err(error).context("the chain cannot be claimed"),
            };
            let size = claim.head.map_or(0, |head| head.size);
            let guard = match &mut self.guard {
                Some(guard) => guard,
                None => {
                    let guard = frontiers
                        .guard(audit, self.id)
                        .await
                        .context("the signed notes cannot be read")?;
                    self.signed = guard.next();
                    // Entries that an earlier process left unsigned have waited for an unknown time. Sign them at once.
                    if let Some(head) = claim.head.filter(|head| head.size > self.signed) {
                        self.unsigned = Some((Timestamp::from_micros(0), head.time));
                    }
                    self.guard.insert(guard)
                }
            };
            if size < guard.next() {
                guard.rewind();
                // The store is older than the trusted head. Restore the signed note before the entries are sealed
                // again.
                if let Some((signed, note)) = frontiers.newest_note(self.id).filter(|(signed, _)| *signed > size) {
                    audit
                        .insert_checkpoint(self.id, signed, &note)
                        .await
                        .context("a signed note cannot be written back to the audit store")?;
                }
            }
            self.held = Some(Held {
                claim,
                renewed: Instant::now(),
                size,
            });
        }
        Ok(self.held.as_ref().map(|held| held.claim))
    }

    /// Inserts the entries of the batch that the store does not have yet.
    ///
    /// # Errors
    ///
    /// [`OutOfStep`] if another instance holds the chain, or the error of the store.
    pub(super) async fn seal(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        mut batch: Vec<ToSeal>,
    ) -> anyhow::Result<()> {
        if self.claim(audit, frontiers).await?.is_none() {
            return Err(OutOfStep(StallReason::HeldElsewhere).into());
        }
        let Some(held) = &mut self.held else {
            bail!("the chain is not held")
        };
        batch.retain(|sealed| sealed.entry.header.seq >= held.size);
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
            return Ok(());
        };
        // A genesis entry may have no real time, so its time must not count as the oldest.
        let times = (
            first.entry.header.time.max(last.entry.header.time),
            last.entry.header.time,
        );
        let times = if first.entry.header.seq == 0 {
            times
        } else {
            (first.entry.header.time, times.1)
        };
        let (first, last) = (first.entry.header.seq, last.entry.header.seq);
        if let Err(error) = audit.insert_sealed(&held.claim, &batch).await {
            // The cached head may be wrong. Read it from the store at the next attempt.
            self.held = None;
            return Err(error).with_context(|| format!("the audit store did not accept entries {first} to {last}"));
        }
        held.size = last + 1;
        self.unsigned = Some((self.unsigned.map_or(times.0, |(oldest, _)| oldest), times.1));
        if let Some(guard) = self.guard.as_mut().filter(|guard| guard.next() == first) {
            let mut pushed = batch
                .iter()
                .map(|sealed| guard.push(sealed.entry.header.seq, sealed.entry.hash, &sealed.entry.bytes));
            if let Some(finding) = pushed.find_map(Result::err) {
                self.stop_signing(frontiers, finding);
            }
        }
        Ok(())
    }

    /// Renews the claim and signs a checkpoint if they are due. `issued` is the count of the chain's numbers that were
    /// issued so far, sealed or not; if it is known, verification can detect a lost tail (HD25).
    pub(super) async fn keep(
        &mut self,
        audit: &AuditStore,
        signer: &Signer,
        frontiers: &mut Frontiers,
        issued: Option<u64>,
    ) -> anyhow::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        if held.renewed.elapsed() >= RENEW_INTERVAL {
            if let Err(error) = audit
                .renew(&held.claim, issued.unwrap_or(held.size).checked_sub(1), CLAIM_LIFETIME)
                .await
            {
                self.held = None;
                return Err(error).context("the claim was not renewed");
            }
            held.renewed = Instant::now();
        }
        let unsigned_entries = held.size - self.signed.min(held.size);
        let interval = signer.interval;
        // A backlog that is sealed at once may cover hours of records. Sign it at once if it covers a checkpoint
        // interval.
        let span = self
            .unsigned
            .map_or(0, |(oldest, newest)| newest.micros().saturating_sub(oldest.micros()));
        let covers_interval = u128::from(span.max(0).unsigned_abs()) >= interval.as_micros();
        let is_short = held.size < self.signed;
        let is_interval_over = self.signed_at.elapsed() >= interval;
        if unsigned_entries >= CHECKPOINT_ENTRIES
            || (unsigned_entries > 0 && (covers_interval || is_interval_over))
            || (is_short && is_interval_over)
        {
            self.sign(audit, signer, frontiers).await?;
        }
        Ok(())
    }

    /// Signs the chain as it is in the store, if it has unsigned entries and continues the guard's head.
    pub(super) async fn sign(
        &mut self,
        audit: &AuditStore,
        signer: &Signer,
        frontiers: &mut Frontiers,
    ) -> anyhow::Result<()> {
        // After a failure, the signature stays due.
        self.try_sign(audit, signer, frontiers).await?;
        self.signed_at = Instant::now();
        self.unsigned = None;
        Ok(())
    }

    async fn try_sign(&mut self, audit: &AuditStore, signer: &Signer, frontiers: &mut Frontiers) -> anyhow::Result<()> {
        if self.contradiction.is_some() {
            let era = self.guard.as_ref().map_or(0, SigningGuard::era);
            if frontiers.is_re_anchored(audit, self.id, era).await? {
                tracing::warn!(chain = %self.id, "the chain was re-anchored; it is signed again");
                (self.contradiction, self.guard, self.held, self.too_short) = (None, None, None, None);
            }
            return Ok(());
        }
        let (Some(held), Some(guard)) = (&self.held, &mut self.guard) else {
            return Ok(());
        };
        if held.size == self.signed {
            return Ok(());
        }
        while guard.next() < held.size {
            let due = guard.next();
            let rows = audit.rows(self.id, due, PAGE).await?;
            let first = rows.first().map_or(held.size, |row| row.seq);
            // The hashes of pruned entries are kept, so the tree can be rebuilt after any prune (rule 24).
            let leaves = if due < first {
                audit.leaves(self.id, due, PAGE.min(first - due)).await?
            } else {
                Vec::new()
            };
            let mut pruned = leaves.into_iter().map(|leaf| guard.push_pruned(leaf));
            let contradiction = pruned.find_map(Result::err);
            let after_pruned = guard.next();
            let due_rows = rows.iter().filter(|row| row.seq < held.size && after_pruned == first);
            let mut pushed = due_rows.map(|row| guard.push(row.seq, row.hash, &row.bytes));
            let contradiction = contradiction.or_else(|| pushed.find_map(Result::err));
            let missing = (guard.next() == due).then_some(Finding::new(FindingKind::SeqGap, Some(due)));
            if let Some(finding) = contradiction.or(missing) {
                self.stop_signing(frontiers, finding);
                return Ok(());
            }
        }
        match guard.checkpoint(&self.id.origin(signer.cluster)) {
            Ok(checkpoint) => {
                let note = checkpoint.sign(&signer.key);
                audit.insert_checkpoint(self.id, checkpoint.size, &note).await?;
                frontiers.keep(self.id, guard, &checkpoint, &note, &signer.key);
                self.signed = checkpoint.size;
            }
            // The journal may be about to seal lost entries again. If the chain has not grown since the last attempt,
            // it is not.
            Err(_) if self.too_short != Some(held.size) => self.too_short = Some(held.size),
            Err(finding) => self.stop_signing(frontiers, finding),
        }
        Ok(())
    }

    /// Stops signing because of a contradiction, until the chain is re-anchored. Sealing continues.
    pub(super) fn stop_signing(&mut self, frontiers: &Frontiers, finding: Finding) {
        frontiers.raise(self.id, &finding);
        tracing::error!(
            chain = %self.id,
            reason = finding.kind.as_str(),
            entry = finding.seq,
            "the chain in the audit store does not continue its signed head: it is not signed until it is re-anchored \
             with `ledger-gateway audit re-anchor`"
        );
        self.contradiction = Some(finding);
    }
}
