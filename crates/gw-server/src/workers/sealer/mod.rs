//! From the journal, and from the outbox of mutations, into the audit store (spec/70 rules 7, 13 and 15).
//!
//! `chain` is one chain on its way into the store, `stream` one stream of the journal, `outbox` where entries of mutations
//! get their place in a chain, `health` what is told of chains that do not get on, `frontiers` what a chain has to
//! continue before it is signed.
//!
//! Invariants: a record leaves the journal's backlog, or a row the outbox, only after the store was seen to hold it. What
//! fails is tried again from where the store says it stands, so a crash at any point neither loses nor repeats an entry. A
//! chain that does not get on keeps no other from doing so.

mod alarm;
mod chain;
mod frontiers;
mod health;
mod outbox;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use alarm::raise as raise_alarm;
pub(crate) use health::SealingHealth;
pub(crate) use outbox::{ADMIN_CHAIN, raise_ids as raise_outbox_ids};

use crate::{config::kind::signing_key, serve::outbox_mark::OutboxMarkFile, trust::Trust};
use alarm::record;
use anyhow::Context as _;
use chain::Signer;
use frontiers::Frontiers;
use gw_audit::{CheckpointKey, SecurityKind, Stream};
use gw_journal::Journal;
use gw_store::{Store, audit::AuditStore};
use gw_types::{Clock, Secret};
use health::StallReason;
use outbox::Outbox;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use stream::JournalStream;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Entries of one transaction at most.
const BATCH: usize = 5000;
/// Rest while there is nothing to do.
const IDLE: Duration = Duration::from_millis(100);
/// Rest of a chain after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How long the end of the process waits for what is left; the rest stays in the journal.
const FAREWELL: Duration = Duration::from_secs(5);

/// What sealing takes.
#[derive(Clone, Debug)]
pub(crate) struct Sealing {
    pub(crate) journal: Arc<Journal>,
    pub(crate) audit: AuditStore,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// How far the outbox got, kept outside the databases.
    pub(crate) outbox_mark: Arc<OutboxMarkFile>,
    /// Told how the chains get on.
    pub(crate) health: Arc<SealingHealth>,
    /// Names the chains of this deployment.
    pub(crate) cluster: &'static str,
    /// Signs checkpoints.
    pub(crate) key: Secret,
    /// Time between checkpoints.
    pub(crate) interval: Duration,
    /// What is known of the chains outside their store.
    pub(crate) trust: Arc<Trust>,
}

/// Seals until told to end, and then what is left. Blocks the thread. A panic is recorded, and sealing begins anew.
pub(crate) fn seal(sealing: &Sealing, end: &CancellationToken) -> anyhow::Result<()> {
    loop {
        let run = || Handle::current().block_on(seal_until(sealing.clone(), end.clone()));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(ended) => return ended,
            Err(_) if end.is_cancelled() => {
                anyhow::bail!("the sealer panicked; the journal keeps what it did not seal")
            }
            Err(_) => {
                tracing::error!("the sealer panicked and begins anew; the journal keeps what is not sealed");
                record(&sealing.journal, SecurityKind::SealingStalled, "panic".to_owned(), None);
                std::thread::sleep(RETRY);
            }
        }
    }
}

async fn seal_until(sealing: Sealing, end: CancellationToken) -> anyhow::Result<()> {
    let mut sealer = Sealer::new(sealing)?;
    while !end.is_cancelled() {
        if !sealer.step().await {
            end.run_until_cancelled(sleep(IDLE)).await;
        }
    }
    let rest = async {
        // The last records may not be on disk yet, and only what is on disk is sealed.
        let journal = Arc::clone(&sealer.journal);
        tokio::task::spawn_blocking(move || journal.sync()).await.context("writing the journal failed")??;
        sealer.retry_at.clear();
        while sealer.step().await {}
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
    health: Arc<SealingHealth>,
    /// The streams of this instance's journal.
    streams: BTreeMap<Stream, JournalStream>,
    /// When a chain that failed is tried again.
    retry_at: BTreeMap<Stream, Instant>,
}

impl Sealer {
    fn new(from: Sealing) -> anyhow::Result<Self> {
        let key = signing_key(from.key.expose()).context("the checkpoint key cannot be read")?;
        let key = CheckpointKey::from_seed(&key.to_bytes());
        let signer = Signer::new(key, from.cluster, from.interval);
        let frontiers = Frontiers::new(from.trust, signer.public());
        let holder = from.journal.shard().to_string();
        let journaled = Stream::ALL.iter().copied().filter(|stream| *stream != Stream::Admin);
        let streams = journaled.map(|stream| (stream, JournalStream::new(Arc::clone(&from.journal), stream)));
        Ok(Self {
            streams: streams.collect(),
            outbox: Outbox::new(
                from.store,
                Arc::clone(&from.journal),
                Arc::clone(&from.clock),
                from.outbox_mark,
                &signer,
                holder,
            ),
            journal: from.journal,
            clock: from.clock,
            audit: from.audit,
            signer,
            frontiers,
            health: from.health,
            retry_at: BTreeMap::new(),
        })
    }

    /// One step of each chain; whether there may be more to seal at once.
    async fn step(&mut self) -> bool {
        let mut more = false;
        for stream in Stream::ALL.iter().copied() {
            if self.retry_at.get(&stream).is_some_and(|at| *at > Instant::now()) {
                continue;
            }
            match self.chain_step(stream).await {
                Ok(full) => {
                    more |= full;
                    self.succeeded(stream);
                }
                Err(error) => self.failed(stream, &error),
            }
        }
        self.measure();
        more
    }

    /// Seals one batch of a chain and signs what is due; whether there may be more at once.
    async fn chain_step(&mut self, stream: Stream) -> anyhow::Result<bool> {
        let Self { audit, signer, frontiers, outbox, streams, .. } = self;
        match streams.get_mut(&stream) {
            Some(journaled) => {
                let full = journaled.step(audit, frontiers, BATCH).await?;
                let issued = journaled.issued();
                journaled.chain().keep(audit, signer, frontiers, issued).await?;
                Ok(full)
            }
            None => {
                let full = outbox.step(audit, frontiers, BATCH).await?;
                outbox.chain().keep(audit, signer, frontiers, None).await?;
                Ok(full)
            }
        }
    }

    fn succeeded(&mut self, stream: Stream) {
        self.retry_at.remove(&stream);
        if let Some(waited) = self.health.note_success(stream) {
            tracing::info!(%stream, waited_s = waited.as_secs(), "records are sealed again");
        }
    }

    fn failed(&mut self, stream: Stream, error: &anyhow::Error) {
        self.retry_at.insert(stream, Instant::now() + RETRY);
        let reason = StallReason::of(error);
        tracing::warn!(%stream, reason = reason.as_str(), error = format!("{error:#}"), "records wait to be sealed");
        if self.health.note_failure(stream, reason) {
            tracing::error!(
                %stream,
                reason = reason.as_str(),
                "records are not sealed for too long: check the audit store; `ledger-gateway audit verify` tells its state. \
                 The journal keeps them until then"
            );
            let reason = format!("{stream}:{}", reason.as_str());
            record(&self.journal, SecurityKind::SealingStalled, reason, None);
        }
    }

    fn measure(&self) {
        let backlog = self.journal.backlog();
        let lag = backlog.oldest.map_or(0, |since| self.clock.now().micros().saturating_sub(since.micros()).max(0));
        metrics::gauge!("ledger_gateway_audit_lag_seconds").set(count(lag.unsigned_abs()) / 1e6);
        metrics::gauge!("ledger_gateway_audit_buffer_depth").set(count(backlog.records));
        metrics::gauge!("ledger_gateway_audit_buffer_bytes").set(count(backlog.bytes));
    }

    /// Signs whatever is not signed yet.
    async fn sign_all(&mut self) -> anyhow::Result<()> {
        for stream in self.streams.values_mut() {
            stream.chain().sign(&self.audit, &self.signer, &mut self.frontiers).await?;
        }
        self.outbox.chain().sign(&self.audit, &self.signer, &mut self.frontiers).await
    }
}

/// A number as a gauge takes it; beyond 2^53 nobody counts records.
fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number >> 20).unwrap_or(u32::MAX)) * 1_048_576.0
        + f64::from(u32::try_from(number & 0xf_ffff).unwrap_or_default())
}
