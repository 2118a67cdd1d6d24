//! One chain on its way into the store: the claim on it, its end there, its tree and its checkpoints.

use super::frontiers::Frontiers;
use anyhow::{Context as _, bail};
use gw_audit::{ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, tree::Frontier};
use gw_store::{
    StoreError,
    audit::{AuditStore, Claim, ToSeal},
};
use gw_types::Seconds;
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
    key: CheckpointKey,
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
}

/// What is known of a chain while it is held.
#[derive(Debug)]
struct Held {
    claim: Claim,
    renewed: Instant,
    /// Entries in the store.
    size: u64,
    frontier: Frontier,
    signed: u64,
    signed_at: Instant,
}

impl SealedChain {
    pub(super) fn new(id: ChainId, holder: String) -> Self {
        Self { id, holder, held: None }
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
            let frontier = frontiers.take(self.id).filter(|kept| kept.size() <= size).unwrap_or_default();
            let signed = frontier.size();
            let now = Instant::now();
            self.held = Some(Held { claim, renewed: now, size, frontier, signed, signed_at: now });
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
            bail!("another instance holds the chain");
        }
        let Some(held) = &mut self.held else { bail!("the chain is not held") };
        batch.retain(|sealed| sealed.entry.header.seq >= held.size);
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        let (first, last) = (first.entry.header.seq, last.entry.header.seq);
        if let Err(error) = audit.insert_sealed(&held.claim, &batch).await {
            // The store knows better where the chain stands: ask it anew at the next try.
            self.held = None;
            return Err(error).with_context(|| format!("entries {first} to {last} were not taken"));
        }
        held.size = last + 1;
        if held.frontier.size() == first {
            for sealed in &batch {
                held.frontier.push(sealed.entry.hash);
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
            if let Err(error) = audit.renew(&held.claim, issued.unwrap_or(held.size).checked_sub(1), LIFE).await {
                self.held = None;
                return Err(error).context("the claim was not renewed");
            }
            held.renewed = Instant::now();
        }
        let new = held.size - held.signed.min(held.size);
        if new >= ENTRIES || (new > 0 && held.signed_at.elapsed() >= signer.interval) {
            self.sign(audit, signer, frontiers).await?;
        }
        Ok(())
    }

    /// Signs the chain as it is in the store, if that is not signed yet.
    pub(super) async fn sign(
        &mut self,
        audit: &AuditStore,
        signer: &Signer,
        frontiers: &mut Frontiers,
    ) -> anyhow::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        while held.frontier.size() < held.size {
            // Hashes of pruned entries are kept, so a tree can be built anew whatever was pruned.
            let leaves =
                audit.leaves(self.id, held.frontier.size(), PAGE.min(held.size - held.frontier.size())).await?;
            if leaves.is_empty() {
                bail!("the store lacks entry {} of a chain of {}", held.frontier.size(), held.size);
            }
            held.frontier.extend(leaves);
        }
        if held.signed < held.size {
            let checkpoint =
                Checkpoint { origin: self.id.origin(signer.cluster), size: held.size, root: held.frontier.root() };
            audit.insert_checkpoint(self.id, held.size, &checkpoint.sign(&signer.key)).await?;
            held.signed = held.size;
            frontiers.keep(self.id, &held.frontier);
        }
        held.signed_at = Instant::now();
        Ok(())
    }
}
