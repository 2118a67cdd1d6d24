//! A chain with contracts, databases of both engines, and an indexer between them.

pub(crate) mod chain;
pub(crate) mod database;
pub(crate) mod relay;
pub(crate) mod rpc;

use database::Database;
use gw_chain_store::ChainStore;
use gw_indexer::{Delays, Indexer, IndexerConfig, IndexerError, IndexerProgress};
use gw_node::{HealthCheckConfig, Node, NodeConfig};
use gw_types::testing::ManualClock;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Short delays, so that retries do not slow tests down.
pub(crate) fn config() -> IndexerConfig {
    IndexerConfig {
        delays: Delays {
            poll: Duration::from_millis(100),
            first_retry: Duration::from_millis(20),
            longest_retry: Duration::from_millis(200),
            standby: Duration::from_millis(100),
            lease: Duration::from_millis(200),
            finalized: Duration::from_millis(100),
        },
        ..IndexerConfig::default()
    }
}

/// A connection to the node at `url` that notices new blocks quickly.
pub(crate) async fn connect(url: &str) -> Arc<Node> {
    let checks = HealthCheckConfig {
        head: Duration::from_millis(50),
        grace: Duration::from_millis(400),
        ..HealthCheckConfig::default()
    };
    let config = NodeConfig::new(url).unwrap().with_health_checks(checks);
    Node::connect(&config).await.unwrap()
}

/// An indexer that runs in a task.
pub(crate) struct Running {
    pub(crate) progress: watch::Receiver<IndexerProgress>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), IndexerError>>,
}

impl Running {
    pub(crate) async fn start(url: &str, store: ChainStore, clock: &ManualClock, config: IndexerConfig) -> Self {
        let indexer = Indexer::new(connect(url).await, store, config, Arc::new(clock.clone()));
        let (progress, stop) = (indexer.progress(), CancellationToken::new());
        let token = stop.clone();
        let task = tokio::spawn(async move { indexer.run(&token).await });
        Self { progress, stop, task }
    }

    /// Waits until the newest stored block is this one, and the queue of work is empty.
    pub(crate) async fn reaches(&self, database: &Database, number: u64, hash: &str) {
        within(120, async {
            loop {
                if database.newest_block().await == Some((number, hash.to_owned())) && database.tasks().await == 0 {
                    return;
                }
                assert!(!self.task.is_finished(), "the indexer ended");
                database.clock.pass(1);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        within(20, self.task).await.unwrap().unwrap();
    }
}

pub(crate) async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(seconds), future).await {
        Ok(output) => output,
        Err(_) => panic!("nothing happened for {seconds} seconds"),
    }
}

/// Indexes a chain from its beginning into an empty database, and returns all tables.
pub(crate) async fn indexed(url: &str, database: &Database) -> database::Tables {
    let running = Running::start(url, database.open().await, &database.clock, config()).await;
    let (number, hash) = rpc::Rpc::new(url).head().await;
    running.reaches(database, number, &hash).await;
    running.end().await;
    database.tables().await
}
