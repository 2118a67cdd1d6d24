//! Seals records of the journal and of the outbox of mutations into the audit store (spec/70 rules 7, 13 and 15).
//!
//! `chain` writes and signs one chain in the store, `stream` feeds a stream of the journal into its chain, `outbox`
//! feeds the entries of mutations into the administrative chain, `health` tracks stalled and hanging chains,
//! `frontiers` holds the trusted heads that a chain must continue before it is signed, and `worker` is the loop of one
//! chain.
//!
//! Invariants: a record leaves the journal's backlog, or a row the outbox, only after a read confirmed that the store
//! has it. A failed step is retried from the chain's head in the store, so a crash at any point neither loses nor
//! repeats an entry. A stalled chain does not block the others.

mod alarm;
mod chain;
mod frontiers;
mod health;
mod outbox;
mod rows;
mod stream;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use alarm::{Alarm, raise as raise_alarm};
pub(crate) use health::SealingHealth;
pub(crate) use outbox::{ADMIN_CHAIN, raise_ids as raise_outbox_ids};

use crate::{config::kind::signing_key, serve::outbox_mark::OutboxMarkFile, trust::AuditTrust};
use alarm::record;
use anyhow::Context as _;
use chain::Signer;
use frontiers::Frontiers;
use futures_util::future::join_all;
use gw_audit::{CheckpointKey, SecurityKind, Stream};
use gw_journal::Journal;
use gw_store::{Store, audit::AuditStore};
use gw_types::{Clock, Secret};
use health::StallReason;
use outbox::Outbox;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use stream::JournalStream;
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use worker::{ChainWorker, Source, Tools, report_stall};

/// Wait after a panic.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two measurements of the backlog.
const MEASURE_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two looks at the oldest records.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long shutdown waits until the remaining records are sealed; unsealed records stay in the journal.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The sealer's dependencies.
#[derive(Clone, Debug)]
pub(crate) struct Sealing {
    pub(crate) journal: Arc<Journal>,
    pub(crate) audit: AuditStore,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// The highest known id of the outbox, kept outside the databases.
    pub(crate) outbox_mark: Arc<OutboxMarkFile>,
    /// Receives the state of the chains.
    pub(crate) health: Arc<SealingHealth>,
    /// Name of the deployment, part of the origin of its chains.
    pub(crate) cluster: &'static str,
    /// Signs checkpoints.
    pub(crate) key: Secret,
    /// Time between checkpoints.
    pub(crate) interval: Duration,
    /// Trusted heads of the chains, kept outside their store.
    pub(crate) trust: Arc<AuditTrust>,
}

/// Seals until `end` is cancelled, then seals the remaining records. Blocks the thread. After a panic, records it and
/// starts again.
pub(crate) fn seal(sealing: &Sealing, end: &CancellationToken) -> anyhow::Result<()> {
    loop {
        let run = || Handle::current().block_on(seal_until(sealing.clone(), end.clone()));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(ended) => return ended,
            Err(_) if end.is_cancelled() => {
                anyhow::bail!("the sealer panicked during shutdown; unsealed records stay in the journal")
            }
            Err(_) => {
                tracing::error!("the sealer panicked and is restarted; unsealed records stay in the journal");
                record(&sealing.journal, SecurityKind::SealingStalled, "panic".to_owned(), None);
                std::thread::sleep(RETRY);
            }
        }
    }
}

async fn seal_until(sealing: Sealing, end: CancellationToken) -> anyhow::Result<()> {
    let mut sealer = Sealer::new(sealing)?;
    let chains = join_all(sealer.chains.iter_mut().map(|chain| chain.run(&end)));
    let measured = end.run_until_cancelled(measure(&sealer.journal, &*sealer.clock));
    let watched = end.run_until_cancelled(watch(&sealer.journal, &sealer.store, &sealer.health));
    tokio::join!(chains, measured, watched);
    let rest = async {
        // Only records on disk are sealed, and the last ones may not be there yet.
        let journal = Arc::clone(&sealer.journal);
        tokio::task::spawn_blocking(move || journal.sync())
            .await
            .context("writing the journal failed")??;
        join_all(sealer.chains.iter_mut().map(ChainWorker::end))
            .await
            .into_iter()
            .collect()
    };
    timeout(DRAIN_TIMEOUT, rest)
        .await
        .context("not all records were sealed in time; the next start seals the rest")?
}

struct Sealer {
    journal: Arc<Journal>,
    store: Store,
    health: Arc<SealingHealth>,
    clock: Arc<dyn Clock>,
    chains: Vec<ChainWorker>,
}

impl Sealer {
    fn new(sealing: Sealing) -> anyhow::Result<Self> {
        let key = signing_key(sealing.key.expose()).context("the checkpoint key cannot be read")?;
        let key = CheckpointKey::from_seed(&key.to_bytes());
        let signer = Arc::new(Signer::new(key, sealing.cluster, sealing.interval));
        let trust = Arc::clone(&sealing.trust);
        let (store, health) = (sealing.store.clone(), Arc::clone(&sealing.health));
        let tools = Tools {
            audit: sealing.audit,
            journal: Arc::clone(&sealing.journal),
            frontiers: Frontiers::new(sealing.trust, signer.public()),
            signer: Arc::clone(&signer),
            health: sealing.health,
        };
        let journaled = Stream::ALL.iter().copied().filter(|stream| *stream != Stream::Admin);
        let journaled = journaled.map(|stream| {
            (
                stream,
                Source::Journal(Box::new(JournalStream::new(Arc::clone(&sealing.journal), stream))),
            )
        });
        let (journal, clock) = (Arc::clone(&sealing.journal), Arc::clone(&sealing.clock));
        let holder = sealing.journal.shard().to_string();
        let outbox = Outbox::new(
            sealing.store,
            trust,
            sealing.clock,
            sealing.outbox_mark,
            &signer,
            holder,
        );
        let sources = journaled.chain([(Stream::Admin, Source::Outbox(Box::new(outbox)))]);
        let chains = sources.map(|(stream, source)| ChainWorker::new(stream, source, tools.clone()));
        Ok(Self {
            chains: chains.collect(),
            journal,
            store,
            health,
            clock,
        })
    }
}

/// Publishes the backlog and the age of its oldest record as metrics.
async fn measure(journal: &Journal, clock: &dyn Clock) {
    loop {
        let backlog = journal.backlog();
        let lag = backlog
            .oldest
            .map_or(0, |since| clock.now().micros().saturating_sub(since.micros()).max(0));
        metrics::gauge!("ledger_gateway_audit_lag_seconds").set(gauge_value(lag.unsigned_abs()) / 1e6);
        metrics::gauge!("ledger_gateway_audit_buffer_depth").set(gauge_value(backlog.records));
        metrics::gauge!("ledger_gateway_audit_buffer_bytes").set(gauge_value(backlog.bytes));
        sleep(MEASURE_INTERVAL).await;
    }
}

/// Watches from beside the workers whether the oldest record of each chain gets sealed: a worker that hangs cannot
/// tell.
async fn watch(journal: &Journal, store: &Store, health: &SealingHealth) {
    loop {
        let backlog = journal.backlog();
        let journaled = backlog.streams.iter().map(|waiting| (waiting.stream, waiting.oldest));
        // While the policy database does not answer, its rows are no fault of the audit store.
        let row = match timeout(WATCH_INTERVAL, store.outbox(i64::MIN, 1)).await {
            Ok(Ok(rows)) => rows.first().map(|row| row.created_at),
            Ok(Err(_)) | Err(_) => None,
        };
        for (stream, oldest) in journaled.chain([(Stream::Admin, row)]) {
            if health.observe(stream, oldest) {
                report_stall(journal, stream, StallReason::Hanging);
            }
        }
        sleep(WATCH_INTERVAL).await;
    }
}

/// Converts a number to the floating-point value of a gauge; numbers from 2^52 on saturate.
fn gauge_value(number: u64) -> f64 {
    f64::from(u32::try_from(number >> 20).unwrap_or(u32::MAX)) * 1_048_576.0
        + f64::from(u32::try_from(number & 0xf_ffff).unwrap_or_default())
}
