//! From the journal, and from the outbox of mutations, into the audit store (spec/70 rules 7, 13 and 15).
//!
//! `chain` is one chain on its way into the store, `outbox` where entries of mutations get their place in one,
//! `frontiers` what a chain has to continue before it is signed.
//!
//! Invariant: a record leaves the journal's backlog, or the outbox, only after the store has it. Whatever fails is
//! tried again from where the store says it stands, so a crash at any point neither loses nor repeats an entry.

mod chain;
mod frontiers;
mod outbox;

use crate::{config::kind::signing_key, trust::Trust};
use anyhow::Context as _;
use chain::{SealedChain, Signer};
use frontiers::Frontiers;
use gw_audit::{ChainId, CheckpointKey, StoredEntry, Stream};
use gw_journal::{Journal, Unsealed};
use gw_store::{
    Store,
    audit::{AuditStore, ToSeal},
};
use gw_types::{Clock, Entropy, Secret};
use outbox::Outbox;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Entries of one transaction at most.
const BATCH: usize = 5000;
/// Rest while there is nothing to do.
const IDLE: Duration = Duration::from_millis(100);
/// Rest after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How long the end of the process waits for what is left; the rest stays in the journal.
const FAREWELL: Duration = Duration::from_secs(5);

/// What sealing takes.
#[derive(Debug)]
pub(crate) struct Sealing {
    pub(crate) journal: Arc<Journal>,
    pub(crate) audit: AuditStore,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Names the chains of this deployment.
    pub(crate) cluster: &'static str,
    /// Signs checkpoints.
    pub(crate) key: Secret,
    /// Time between checkpoints.
    pub(crate) interval: Duration,
    /// What is known of the chains outside their store.
    pub(crate) trust: Arc<Trust>,
}

/// Seals until told to end, and then what is left.
pub(crate) async fn seal(sealing: Sealing, end: CancellationToken) -> anyhow::Result<()> {
    let mut sealer = Sealer::new(sealing)?;
    while !end.is_cancelled() {
        let rest = match sealer.step().await {
            Ok(true) => continue,
            Ok(false) => IDLE,
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "records wait to be sealed");
                RETRY
            }
        };
        end.run_until_cancelled(sleep(rest)).await;
    }
    let rest = async {
        // The last records may not be on disk yet, and only what is on disk is sealed.
        let journal = Arc::clone(&sealer.journal);
        tokio::task::spawn_blocking(move || journal.sync()).await.context("writing the journal failed")??;
        while sealer.step().await? {}
        sealer.sign_all().await
    };
    timeout(FAREWELL, rest).await.context("records are left for the next start")?
}

struct Sealer {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    audit: AuditStore,
    outbox: Outbox,
    signer: Signer,
    frontiers: Frontiers,
    /// The chains of this instance's journal.
    chains: BTreeMap<Stream, SealedChain>,
}

impl Sealer {
    fn new(from: Sealing) -> anyhow::Result<Self> {
        let key = signing_key(from.key.expose()).context("the checkpoint key cannot be read")?;
        let key = CheckpointKey::from_seed(&key.to_bytes());
        let signer = Signer::new(key, from.cluster, from.interval);
        let frontiers = Frontiers::new(from.trust, signer.public());
        let holder = from.journal.shard().to_string();
        Ok(Self {
            outbox: Outbox::new(from.store, from.entropy, &signer, holder),
            journal: from.journal,
            clock: from.clock,
            audit: from.audit,
            signer,
            frontiers,
            chains: BTreeMap::new(),
        })
    }

    /// Seals one batch of each source and signs what is due; whether there may be more to seal at once.
    async fn step(&mut self) -> anyhow::Result<bool> {
        let from_journal = self.journal_batch().await?;
        let from_outbox = self.outbox.step(&self.audit, &mut self.frontiers, BATCH).await?;
        let issued = self.journal.heads().unwrap_or_default();
        for (stream, chain) in &mut self.chains {
            let issued = issued.iter().find(|(id, _)| id.stream == *stream).map(|(_, head)| head.size);
            chain.keep(&self.audit, &self.signer, &mut self.frontiers, issued).await?;
        }
        if let Some(chain) = self.outbox.chain() {
            chain.keep(&self.audit, &self.signer, &mut self.frontiers, None).await?;
        }
        let backlog = self.journal.backlog();
        // How old the oldest record is that waits to be sealed, at most: since the last sealed one.
        let waiting = backlog.sealed_until.filter(|_| backlog.records > 0);
        let lag = waiting.map_or(0, |since| self.clock.now().micros().saturating_sub(since.micros()).max(0));
        metrics::gauge!("ledger_gateway_audit_lag_seconds").set(count(lag.unsigned_abs()) / 1e6);
        metrics::gauge!("ledger_gateway_audit_buffer_depth").set(count(backlog.records));
        metrics::gauge!("ledger_gateway_audit_buffer_bytes").set(count(backlog.bytes));
        Ok(from_journal || from_outbox)
    }

    /// Signs whatever is not signed yet.
    async fn sign_all(&mut self) -> anyhow::Result<()> {
        for chain in self.chains.values_mut().chain(self.outbox.chain()) {
            chain.sign(&self.audit, &self.signer, &mut self.frontiers).await?;
        }
        Ok(())
    }

    async fn journal_batch(&mut self) -> anyhow::Result<bool> {
        let journal = Arc::clone(&self.journal);
        // Reads files and hashes.
        let read =
            tokio::task::spawn_blocking(move || read_batch(&journal)).await.context("reading the journal failed")?;
        let Some((last, batches)) = read? else { return Ok(false) };
        let full = batches.values().map(Vec::len).sum::<usize>() >= BATCH;
        let shard = self.journal.shard();
        for (stream, batch) in batches {
            let id = ChainId { stream, shard };
            let chain = self.chains.entry(stream).or_insert_with(|| SealedChain::new(id, shard.to_string()));
            chain.seal(&self.audit, &mut self.frontiers, batch).await.with_context(|| format!("chain {stream}"))?;
        }
        let journal = Arc::clone(&self.journal);
        tokio::task::spawn_blocking(move || journal.mark_sealed(last)).await.context("marking failed")??;
        Ok(full)
    }
}

/// Records of the journal by chain, and the number of the last of them.
type Batches = (u64, BTreeMap<Stream, Vec<ToSeal>>);

/// The oldest records that are on disk and not sealed.
fn read_batch(journal: &Journal) -> anyhow::Result<Option<Batches>> {
    let mut batches: BTreeMap<Stream, Vec<ToSeal>> = BTreeMap::new();
    let mut last = None;
    for Unsealed { stream, lsn, bytes, openings } in journal.unsealed(BATCH)? {
        let entry = StoredEntry::new(bytes, openings).with_context(|| format!("record {lsn} of the journal"))?;
        batches.entry(stream).or_default().push(ToSeal { entry, outbox_id: None });
        last = Some(lsn);
    }
    Ok(last.map(|last| (last, batches)))
}

/// A number as a gauge takes it; beyond 2^53 nobody counts records.
fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number >> 20).unwrap_or(u32::MAX)) * 1_048_576.0
        + f64::from(u32::try_from(number & 0xf_ffff).unwrap_or_default())
}
