//! An open policy store.

use crate::{
    Actor, Feed, Reads, StoreConfig, StoreError, Tx,
    audit::{OutboxAlarms, UnsealedRows},
    dialect::{self, Pools},
    feed,
    migration::{self, Migrator},
    seed, snapshot,
};
use gw_policy::Snapshot;
use gw_types::Timestamp;
use std::sync::{Arc, OnceLock, Weak};
use tokio_util::task::TaskTracker;

/// An open policy store; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pools: Pools,
    pub(crate) config: StoreConfig,
    /// Told of each commit, so that the committing instance is the first to know.
    feed: OnceLock<Weak<feed::Shared>>,
    /// What was found wrong with outbox rows on their way into the database.
    pub(crate) outbox_alarms: OutboxAlarms,
    /// Outbox rows to be looked after until they are sealed.
    pub(crate) unsealed: UnsealedRows,
    /// Commits that run to their end whatever becomes of their callers (HD21).
    pub(crate) commits: TaskTracker,
}

impl Store {
    /// Connects; the schema may still be missing or old, see [`Store::migrate`].
    pub async fn open(config: StoreConfig) -> Result<Self, StoreError> {
        let pools = Pools::open(&config.location, config.connections).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                pools,
                config,
                feed: OnceLock::new(),
                outbox_alarms: OutboxAlarms::default(),
                unsealed: UnsealedRows::default(),
                commits: TaskTracker::new(),
            }),
        })
    }

    /// Brings the schema up to this build, under a lock of the database, and seeds the fixed rows (A2, A3, A6).
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let tx = self.inner.pools.begin_migration().await?;
        migration::run::<Migrator>(&tx).await?;
        tx.commit().await?;
        let tx = self.inner.pools.begin_write().await?;
        dialect::lock_epoch(&tx).await?;
        seed::plant(&tx, self.inner.now()).await?;
        let raised = dialect::raise_epoch(&tx).await?;
        tx.commit_epoch(raised).await.map(drop)
    }

    /// The schema as text, one object after the other.
    pub async fn schema(&self) -> Result<String, StoreError> {
        Ok(self.inner.pools.engine.describe(&self.inner.pools.reader).await?)
    }

    /// Fails unless the schema is exactly this build's (`MIGRATE=off`).
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        migration::check::<Migrator>(&self.inner.pools.reader).await
    }

    /// What is attached to the tables of the policy, or stands in their place, that no migration made.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn foreign_objects(&self) -> Result<Vec<String>, StoreError> {
        dialect::foreign_objects(&self.inner.pools.reader, migration::TABLES, migration::TRACKED).await
    }

    /// Whether there is room for writes, as far as is known: none was refused for want of it since [`Store::probe_room`]
    /// found some. Asks nothing.
    pub fn has_room(&self) -> bool {
        self.inner.pools.have_room()
    }

    /// Finds out whether there is room for writes again, by a write of its own that is taken back.
    ///
    /// # Errors
    /// There is none, or the database does not answer.
    pub async fn probe_room(&self) -> Result<(), StoreError> {
        self.inner.pools.probe_room(&self.inner.config.location).await
    }

    /// Starts a mutation. Waits until no other mutation is under way on any instance.
    pub async fn begin(&self, actor: &Actor) -> Result<Tx, StoreError> {
        Tx::begin(Arc::clone(&self.inner), actor.clone()).await
    }

    /// Queries outside a mutation.
    pub fn read(&self) -> Reads<'_> {
        Reads::new((&self.inner.pools.reader).into(), self.inner.now())
    }

    /// All policy as it stands, read in one transaction (HD23 E-3).
    pub async fn load(&self) -> Result<Snapshot, StoreError> {
        snapshot::load(&self.inner.pools).await.map(|(snapshot, _)| snapshot)
    }

    /// Waits for commits that are under way; called at shutdown, when no new ones begin (HD21).
    pub async fn drain(&self) {
        self.inner.commits.close();
        self.inner.commits.wait().await;
    }

    /// Whether mutations are taken, as far as was tried: there is room for them, SQLite's file is in its place, and none was refused lately for a lock that
    /// somebody holds. Asks nothing.
    pub fn takes_writes(&self) -> bool {
        let pools = &self.inner.pools;
        self.has_room() && pools.have_file() && pools.writer.liveness.takes_writes()
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.inner.pools.reader.ping().await?)
    }

    /// Connects the feed that is told of this store's commits; the first one stays.
    pub(crate) fn attach(&self, feed: Weak<feed::Shared>) {
        // A second feed on one store polls like any other instance would.
        let _first = self.inner.feed.set(feed);
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Notes that the database took no mutation for a reason of its own.
    pub(crate) fn note_refusal(&self, error: &StoreError) {
        if error.is_unavailable() {
            self.pools.writer.liveness.note_refusal();
        }
    }

    pub(crate) fn feed(&self) -> Option<Feed> {
        self.feed.get().and_then(Weak::upgrade).map(Feed::from_shared)
    }
}
