//! Runs the indexer, and the index in memory beside it, and starts both again after a failure.

use super::{
    api::Unavailable,
    validation::{ValidatedBlocks, is_on_chain},
};
use crate::{config, system};
use gw_chain_store::{ChainStore, ChainStoreConfig, ChainStoreError, Location, OtherChain};
use gw_explorer::{BlockValidation, IndexFollower, SharedIndex};
use gw_indexer::{Indexer, IndexerConfig, IndexerError, IndexerProgress, ViewPolicy};
use gw_node::Node;
use gw_types::{Clock, Entropy};
use metrics::gauge;
use std::{convert::Infallible, fmt, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, interval, sleep},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Pause before the explorer is started again after it failed (spec/85 section 3, step 9).
const RETRY: Duration = Duration::from_secs(30);
/// How often the index looks for new blocks of the chain store.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// How often the stored chain is compared with that of the node until both agree.
const COMPARE_INTERVAL: Duration = Duration::from_millis(500);
/// How often the metrics are set.
const METRICS_INTERVAL: Duration = Duration::from_secs(2);
/// How often the memory of the index is measured: that visits all of it.
const MEASURE_INTERVAL: Duration = Duration::from_secs(60);

/// What is served from the index.
pub(crate) trait IndexApi: Send + Sync + fmt::Debug {
    /// From now on, answers from this index.
    fn serve(&self, parts: IndexParts);
    /// From now on, answers 503.
    fn suspend(&self, reason: Unavailable);
}

/// The index in memory, and what it is built from.
#[derive(Clone, Debug)]
pub(crate) struct IndexParts {
    pub(crate) store: ChainStore,
    pub(crate) index: SharedIndex,
    pub(crate) validation: Arc<dyn BlockValidation>,
}

/// The explorer of a process: its database, its indexer and its index.
#[derive(Debug)]
pub(crate) struct ExplorerRunner {
    pub(crate) config: config::Explorer,
    /// The database of the chain.
    pub(crate) location: Location,
    /// The most connections to the database.
    pub(crate) connections: u32,
    /// The name of the process, for its lease.
    pub(crate) name: String,
    pub(crate) api: Arc<dyn IndexApi>,
    pub(crate) node: Arc<Node>,
    /// What stored answers of tokens may depend on.
    pub(crate) view_policy: Arc<dyn ViewPolicy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// Why the explorer ended. It is started again.
#[derive(Debug, thiserror::Error)]
enum ExplorerError {
    #[error("the database of the explorer cannot be opened")]
    Open(#[source] ChainStoreError),
    #[error("the indexer ended")]
    Indexer(#[from] IndexerError),
    #[error("the index of the explorer ended unexpectedly")]
    Index,
}

impl ExplorerError {
    fn unavailable(&self) -> Unavailable {
        match self {
            Self::Open(ChainStoreError::OtherChain { .. })
            | Self::Indexer(IndexerError::ChainReset { .. } | IndexerError::OtherChain) => Unavailable::OtherChain,
            Self::Open(_) | Self::Indexer(IndexerError::Store(_)) | Self::Index => Unavailable::Failed,
        }
    }
}

impl ExplorerRunner {
    /// Runs the explorer until `stop` is cancelled; starts it again after a failure.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            match self.run_once(&stop).await {
                Ok(()) => return,
                Err(error) => {
                    self.api.suspend(error.unavailable());
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        retry_seconds = RETRY.as_secs(),
                        "the explorer is stopped and its data API answers 503; everything else is served"
                    );
                }
            }
            if stop.run_until_cancelled(sleep(RETRY)).await.is_none() {
                return;
            }
        }
    }

    /// Opens the database and indexes the chain, until `stop` is cancelled or the explorer fails.
    async fn run_once(&self, stop: &CancellationToken) -> Result<(), ExplorerError> {
        let Some(store) = stop.run_until_cancelled(ChainStore::open(self.store_config())).await else {
            return Ok(());
        };
        let store = store.map_err(ExplorerError::Open)?;
        let indexer = self.indexer(store.clone());
        let progress = indexer.progress();
        let serving = serve_index(Arc::clone(&self.api), Arc::clone(&self.node), store, progress);
        let mut serving = AbortOnDropHandle::new(tokio::spawn(serving));
        tokio::select! {
            // The indexer ends by itself when `stop` is cancelled, and releases its lease.
            result = indexer.run(stop) => {
                serving.abort();
                // Afterwards it cannot replace the routes any more.
                let _aborted = serving.await;
                Ok(result?)
            }
            _ = &mut serving => Err(ExplorerError::Index),
        }
    }

    fn store_config(&self) -> ChainStoreConfig {
        ChainStoreConfig {
            location: self.location.clone(),
            connections: self.connections,
            chain_id: self.node.chain_id(),
            other_chain: if self.config.force_reindex {
                OtherChain::Wipe
            } else {
                OtherChain::Refuse
            },
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
        }
    }

    fn indexer(&self, store: ChainStore) -> Indexer {
        let indexer = Indexer::new(
            Arc::clone(&self.node),
            store,
            indexer_config(&self.config, &self.name),
            Arc::clone(&self.clock),
        );
        let indexer = indexer.with_view_policy(Arc::clone(&self.view_policy));
        if self.config.traces {
            indexer
        } else {
            indexer.without_traces()
        }
    }
}

/// The configuration of the indexer of a process with this name.
pub(crate) fn indexer_config(config: &config::Explorer, name: &str) -> IndexerConfig {
    IndexerConfig {
        // Operators read it where another process waits for the lease.
        name: format!("{name}, {}", system::process_name()),
        confirmations: config.confirmations,
        concurrent_reads: config.concurrent_reads,
        reindex_after_reset: config.force_reindex,
        ..IndexerConfig::default()
    }
}

/// Keeps the index in step with the chain store, and serves the data API from it. Blocks that another chain left in the
/// store are never shown: the index is loaded once the stored chain is that of the node.
async fn serve_index(
    api: Arc<dyn IndexApi>,
    node: Arc<Node>,
    store: ChainStore,
    progress: watch::Receiver<IndexerProgress>,
) -> Infallible {
    loop {
        match is_on_chain(&store, &node).await {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the indexed blocks cannot be compared with those of the node; this is retried"
            ),
        }
        sleep(COMPARE_INTERVAL).await;
    }
    let (index, validation) = (SharedIndex::new(), Arc::new(ValidatedBlocks::new(node)));
    let blocks: Arc<dyn BlockValidation> = Arc::clone(&validation) as _;
    let follower = IndexFollower::new(store.clone(), Arc::clone(&blocks), index.clone());
    api.serve(IndexParts {
        store,
        index: index.clone(),
        validation: blocks,
    });
    tokio::join!(
        validation.follow(),
        follower.run(FOLLOW_INTERVAL),
        publish_metrics(index, progress)
    );
    std::future::pending().await
}

/// Sets the gauges of the indexer and of the index that the crates themselves do not set.
async fn publish_metrics(index: SharedIndex, progress: watch::Receiver<IndexerProgress>) {
    let mut ticks = interval(METRICS_INTERVAL);
    let mut measured: Option<(Instant, Option<u64>)> = None;
    loop {
        ticks.tick().await;
        let progress = *progress.borrow();
        set("ledger_gateway_indexer_lag_blocks", progress.lag());
        gauge!("ledger_gateway_indexer_blocks_per_second").set(progress.blocks_per_second);
        gauge!("ledger_gateway_indexer_transactions_per_second").set(progress.transactions_per_second);
        // A gauge without a value would keep the last one: not a number says that it is not known.
        let left = progress.time_left.map_or(f64::NAN, |left| left.as_secs_f64());
        gauge!("ledger_gateway_indexer_remaining_seconds").set(left);
        let newest = index.newest_block();
        set("ledger_gateway_explorer_index_height", newest);
        set("ledger_gateway_explorer_index_generation", Some(index.generation()));
        // Whether it has just been loaded, and whether a minute has passed.
        let is_due = measured
            .is_none_or(|(at, height)| height.is_none() && newest.is_some() || at.elapsed() >= MEASURE_INTERVAL);
        if is_due {
            let measure = {
                let index = index.clone();
                move || index.size_in_bytes()
            };
            if let Ok(bytes) = tokio::task::spawn_blocking(measure).await {
                gauge!("ledger_gateway_explorer_index_bytes").set(to_float(bytes));
            }
            measured = Some((Instant::now(), newest));
        }
    }
}

fn set(name: &'static str, value: Option<u64>) {
    if let Some(value) = value {
        // No chain has more blocks.
        gauge!(name).set(f64::from(u32::try_from(value).unwrap_or(u32::MAX)));
    }
}

/// To four kilobytes exactly, which covers sizes up to 16 TiB.
fn to_float(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes >> 12).unwrap_or(u32::MAX)) * 4096.0
}
