//! From the journal, and from the outbox of mutations, into the audit store (spec/70 rules 7, 13 and 15).
//!
//! `chain` is one chain on its way into the store, `stream` one stream of the journal, `outbox` where entries of mutations
//! get their place in a chain, `health` what is told of chains that do not get on, `frontiers` what a chain has to
//! continue before it is signed, `worker` the loop of one chain.
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
mod worker;

pub(crate) use alarm::{Alarm, raise as raise_alarm};
pub(crate) use health::SealingHealth;
pub(crate) use outbox::{ADMIN_CHAIN, raise_ids as raise_outbox_ids};

use crate::{config::kind::signing_key, serve::outbox_mark::OutboxMarkFile, trust::Trust};
use alarm::record;
use anyhow::Context as _;
use chain::Signer;
use frontiers::Frontiers;
use futures_util::future::join_all;
use gw_audit::{CheckpointKey, SecurityKind, Stream};
use gw_journal::Journal;
use gw_store::{Store, audit::AuditStore};
use gw_types::{Clock, Secret};
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
use worker::{ChainWorker, Source, Tools};

/// Rest after a panic.
const RETRY: Duration = Duration::from_secs(1);
/// How often the backlog is measured.
const MEASURE: Duration = Duration::from_millis(500);
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
    let chains = join_all(sealer.chains.iter_mut().map(|chain| chain.run(&end)));
    let measured = end.run_until_cancelled(measure(&sealer.journal, &*sealer.clock));
    tokio::join!(chains, measured);
    let rest = async {
        // The last records may not be on disk yet, and only what is on disk is sealed.
        let journal = Arc::clone(&sealer.journal);
        tokio::task::spawn_blocking(move || journal.sync())
            .await
            .context("writing the journal failed")??;
        join_all(sealer.chains.iter_mut().map(ChainWorker::end))
            .await
            .into_iter()
            .collect()
    };
    timeout(FAREWELL, rest)
        .await
        .context("records are left for the next start")?
}

struct Sealer {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    chains: Vec<ChainWorker>,
}

impl Sealer {
    fn new(from: Sealing) -> anyhow::Result<Self> {
        let key = signing_key(from.key.expose()).context("the checkpoint key cannot be read")?;
        let key = CheckpointKey::from_seed(&key.to_bytes());
        let signer = Arc::new(Signer::new(key, from.cluster, from.interval));
        let tools = Tools {
            audit: from.audit,
            journal: Arc::clone(&from.journal),
            frontiers: Frontiers::new(from.trust, signer.public()),
            signer: Arc::clone(&signer),
            health: from.health,
        };
        let journaled = Stream::ALL.iter().copied().filter(|stream| *stream != Stream::Admin);
        let journaled = journaled.map(|stream| {
            (
                stream,
                Source::Journal(Box::new(JournalStream::new(Arc::clone(&from.journal), stream))),
            )
        });
        let (journal, clock) = (Arc::clone(&from.journal), Arc::clone(&from.clock));
        let holder = from.journal.shard().to_string();
        let outbox = Outbox::new(
            from.store,
            Arc::clone(&journal),
            from.clock,
            from.outbox_mark,
            &signer,
            holder,
        );
        let sources = journaled.chain([(Stream::Admin, Source::Outbox(Box::new(outbox)))]);
        let chains = sources.map(|(stream, source)| ChainWorker::new(stream, source, tools.clone()));
        Ok(Self {
            chains: chains.collect(),
            journal,
            clock,
        })
    }
}

/// Tells how much waits to be sealed, and for how long.
async fn measure(journal: &Journal, clock: &dyn Clock) {
    loop {
        let backlog = journal.backlog();
        let lag = backlog
            .oldest
            .map_or(0, |since| clock.now().micros().saturating_sub(since.micros()).max(0));
        metrics::gauge!("ledger_gateway_audit_lag_seconds").set(count(lag.unsigned_abs()) / 1e6);
        metrics::gauge!("ledger_gateway_audit_buffer_depth").set(count(backlog.records));
        metrics::gauge!("ledger_gateway_audit_buffer_bytes").set(count(backlog.bytes));
        sleep(MEASURE).await;
    }
}

/// A number as a gauge takes it; beyond 2^53 nobody counts records.
fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number >> 20).unwrap_or(u32::MAX)) * 1_048_576.0
        + f64::from(u32::try_from(number & 0xf_ffff).unwrap_or_default())
}
