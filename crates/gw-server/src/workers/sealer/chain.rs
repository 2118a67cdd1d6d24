//! One chain on its way into the store: the claim on it, its end there, its tree and its checkpoints.

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

/// Life of a claim, and how often it is renewed.
const LIFE: Seconds = Seconds(15);
const RENEW: Duration = Duration::from_secs(1);
/// A checkpoint is signed after this many entries, however little time has passed (spec/70 rule 7).
const ENTRIES: u64 = 10_000;
/// Rows read at once to catch up with the store.
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

    /// What verifies its signatures.
    pub(super) fn public(&self) -> CheckpointPublicKey {
        self.key.public()
    }
}

/// A chain this instance writes.
#[derive(Debug)]
pub(super) struct SealedChain {
    id: ChainId,
    holder: String,
    held: Option<Held>,
    /// What the chain has to continue to be signed. Outlives the claim: what was seen stays seen.
    guard: Option<SigningGuard>,
    /// How many entries are signed.
    signed: u64,
    signed_at: Instant,
    /// The times of the oldest and of the newest entry sealed since.
    unsigned: Option<(Timestamp, Timestamp)>,
    /// The size at which the chain was too short to be signed when that was due last.
    too_short: Option<u64>,
    /// Why the chain is signed no more.
    contradiction: Option<Finding>,
}

/// What is known of a chain while it is held.
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

    /// Forgets what was known of the chain: the next claim asks the store where it stands.
    pub(super) fn release(&mut self) {
        self.held = None;
    }

    /// The claim on the chain, taken if needed; `None` while another instance holds it.
    pub(super) async fn claim(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
    ) -> anyhow::Result<Option<Claim>> {
        if self.held.is_none() {
            let claim = match audit.claim(self.id, &self.holder, LIFE).await {
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
                    // Nobody knows how long the end that an earlier process left has waited: it is signed at once.
                    if let Some(head) = claim.head.filter(|head| head.size > self.signed) {
                        self.unsigned = Some((Timestamp::from_micros(0), head.time));
                    }
                    self.guard.insert(guard)
                }
            };
            if size < guard.next() {
                guard.rewind();
                // An older store is made whole: what was signed of it is signed again, before the entries are back.
                if let Some((signed, note)) = frontiers.newest_note(self.id).filter(|(signed, _)| *signed > size) {
                    audit
                        .insert_checkpoint(self.id, signed, &note)
                        .await
                        .context("a signed note cannot be put back")?;
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

    /// Inserts what the store does not have yet. Afterwards the store has all of it.
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
        // A genesis has no time of its own.
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
            // The store knows better where the chain stands: ask it anew at the next try.
            self.held = None;
            return Err(error).with_context(|| format!("entries {first} to {last} were not taken"));
        }
        held.size = last + 1;
        self.unsigned = Some((self.unsigned.map_or(times.0, |(oldest, _)| oldest), times.1));
        if let Some(guard) = self.guard.as_mut().filter(|guard| guard.next() == first) {
            let mut pushed = batch
                .iter()
                .map(|one| guard.push(one.entry.header.seq, one.entry.hash, &one.entry.bytes));
            if let Some(finding) = pushed.find_map(Result::err) {
                self.stop_signing(frontiers, finding);
            }
        }
        Ok(())
    }

    /// Renews the claim and signs a checkpoint, whichever is due. `issued` is how many numbers of the chain were given
    /// out so far, sealed or not: where that is known, a lost tail is found (HD25).
    pub(super) async fn keep(
        &mut self,
        audit: &AuditStore,
        signer: &Signer,
        frontiers: &mut Frontiers,
        issued: Option<u64>,
    ) -> anyhow::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        if held.renewed.elapsed() >= RENEW {
            if let Err(error) = audit
                .renew(&held.claim, issued.unwrap_or(held.size).checked_sub(1), LIFE)
                .await
            {
                self.held = None;
                return Err(error).context("the claim was not renewed");
            }
            held.renewed = Instant::now();
        }
        let new = held.size - self.signed.min(held.size);
        let interval = signer.interval;
        // A backlog that is sealed at once may be hours of records: nobody shall find them unsigned.
        let span = self
            .unsigned
            .map_or(0, |(oldest, newest)| newest.micros().saturating_sub(oldest.micros()));
        let spans = u128::from(span.max(0).unsigned_abs()) >= interval.as_micros();
        let is_short = held.size < self.signed;
        let waited = self.signed_at.elapsed() >= interval;
        if new >= ENTRIES || (new > 0 && (spans || waited)) || (is_short && waited) {
            self.sign(audit, signer, frontiers).await?;
        }
        Ok(())
    }

    /// Signs the chain as it is in the store, if that is not signed yet and continues what was signed and seen of it.
    pub(super) async fn sign(
        &mut self,
        audit: &AuditStore,
        signer: &Signer,
        frontiers: &mut Frontiers,
    ) -> anyhow::Result<()> {
        // What fails stays due.
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
            // Hashes of pruned entries are kept, so a tree can be built anew whatever was pruned (rule 24).
            let leaves = if due < first {
                audit.leaves(self.id, due, PAGE.min(first - due)).await?
            } else {
                Vec::new()
            };
            let mut pruned = leaves.into_iter().map(|leaf| guard.push_pruned(leaf));
            let contradiction = pruned.find_map(Result::err);
            let reached = guard.next();
            let due_rows = rows.iter().filter(|row| row.seq < held.size && reached == first);
            let mut pushed = due_rows.map(|row| guard.push(row.seq, row.hash, &row.bytes));
            let contradiction = contradiction.or_else(|| pushed.find_map(Result::err));
            let missing = (guard.next() == due).then_some(Finding::of(FindingKind::SeqGap, Some(due)));
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
            // The journal may be about to seal again what the store lost; if nothing came since the last time, it is not.
            Err(_) if self.too_short != Some(held.size) => self.too_short = Some(held.size),
            Err(finding) => self.stop_signing(frontiers, finding),
        }
        Ok(())
    }

    /// Nothing is signed over a contradiction, until the chain is re-anchored. Records are sealed all the same.
    pub(super) fn stop_signing(&mut self, frontiers: &Frontiers, finding: Finding) {
        frontiers.raise(self.id, &finding);
        tracing::error!(
            chain = %self.id,
            reason = finding.kind.as_str(),
            entry = finding.seq,
            "the chain in the audit store does not continue what was signed of it: it is signed no more until              `ledger-gateway audit re-anchor`"
        );
        self.contradiction = Some(finding);
    }
}
