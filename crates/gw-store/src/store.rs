//! An open policy store.

use crate::{
    Actor, Feed, Queries, StoreConfig, StoreError, Tx,
    audit::{OutboxAlarms, UnsealedRows},
    dialect::{
        self, Pools,
        schema::{self, IndexCheck},
    },
    feed,
    migration::{self, Migrator},
    seed, snapshot,
};
use gw_policy::Snapshot;
use gw_types::Timestamp;
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};
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
    /// The feed that is notified of each commit, so that the committing instance is the first to know.
    feed: OnceLock<Weak<feed::FeedState>>,
    /// Alarms about altered outbox rows.
    pub(crate) outbox_alarms: OutboxAlarms,
    /// Outbox rows to be checked until they are sealed.
    pub(crate) unsealed: UnsealedRows,
    /// Commits that run to their end even if their callers are dropped (HD21).
    pub(crate) commits: TaskTracker,
}

impl Store {
    /// Connects. The schema may still be missing or old; see [`Store::migrate`].
    ///
    /// # Errors
    /// Any database error.
    pub async fn open(config: StoreConfig) -> Result<Self, StoreError> {
        let pools = Pools::open(&config.location, config.connections, &migration::names::<Migrator>()).await?;
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

    /// Migrates the schema to the version of this build, under a lock of the database, and seeds the fixed rows (A2,
    /// A3, A6).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let tx = self.inner.pools.begin_migration().await?;
        migration::run::<Migrator>(&tx).await?;
        tx.commit().await?;
        let tx = self.inner.pools.begin_write().await?;
        dialect::lock_epoch(&tx).await?;
        seed::insert(&tx, self.inner.now()).await?;
        let raised = dialect::raise_epoch(&tx, snapshot::recorded_tables()).await?;
        tx.commit_epoch(raised).await.map(drop)
    }

    /// Returns the schema as text, object by object.
    ///
    /// # Errors
    /// Any database error.
    pub async fn schema(&self) -> Result<String, StoreError> {
        Ok(schema::describe(&self.inner.pools.reader).await?)
    }

    /// Fails unless the schema is exactly that of this build (`MIGRATE=off`).
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the schema is older or newer than this build; [`StoreError::PolicyStoreRow`] if the
    /// row of `policy_store` is missing; any database error.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        migration::check::<Migrator>(&self.inner.pools.reader).await?;
        self.outbox_mark().await.map(drop)
    }

    /// Returns the database objects that differ from those that the migrations make: tables, columns, constraints,
    /// indexes, triggers and functions, each with its kind, name and difference.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn schema_differences(&self) -> Result<Vec<String>, StoreError> {
        let pools = &self.inner.pools;
        schema::differences(pools, migration::POLICY.for_engine(pools.engine)).await
    }

    /// Compares the indexes with the rows, for at most `limit`; see [`IndexCheck`].
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn check_indexes(&self, limit: Duration) -> Result<IndexCheck, StoreError> {
        let pools = &self.inner.pools;
        schema::check_indexes(pools, migration::POLICY.for_engine(pools.engine), limit).await
    }

    /// Whether there is room for writes, as far as known: false after a write failed for lack of room, until
    /// [`Store::probe_room`] succeeds. Does not query the database.
    pub fn has_room(&self) -> bool {
        self.inner.pools.have_room()
    }

    /// Checks whether there is room for writes again, by a write that is undone.
    ///
    /// # Errors
    /// If there is no room or the database does not answer.
    pub async fn probe_room(&self) -> Result<(), StoreError> {
        self.inner.pools.probe_room(&self.inner.config.location).await
    }

    /// Starts a mutation. Waits until no other mutation is in progress on any instance.
    ///
    /// # Errors
    /// [`StoreError::NotPrimary`] if the database is a replica; [`StoreError::EpochExhausted`] if the epoch cannot be
    /// raised; [`StoreError::EpochMissing`] if its row is missing; any database error.
    pub async fn begin(&self, actor: &Actor) -> Result<Tx, StoreError> {
        Tx::begin(Arc::clone(&self.inner), actor.clone()).await
    }

    /// Returns queries outside a mutation.
    pub fn read(&self) -> Queries<'_> {
        Queries::new((&self.inner.pools.reader).into(), self.inner.now())
    }

    /// Loads all current policy in one transaction (HD23 E-3).
    ///
    /// # Errors
    /// [`StoreError::NotPrimary`] if the database is a replica; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn load(&self) -> Result<Snapshot, StoreError> {
        snapshot::load(&self.inner.pools).await.map(|(snapshot, _)| snapshot)
    }

    /// Waits for commits in progress; called at shutdown, when no new ones begin (HD21).
    pub async fn drain(&self) {
        self.inner.commits.close();
        self.inner.commits.wait().await;
    }

    /// Requests wait for answers from now on: a server that takes more than half a second for one counts as unreachable
    /// ([`Location::patient`](crate::Location::patient)).
    pub fn end_patience(&self) {
        self.inner.pools.writer.liveness.end_patience();
    }

    /// Whether mutations are accepted, as far as known: there is room for writes, the SQLite file is at its path, our
    /// credential has its privileges, and no mutation was recently rejected because of a lock. Does not query the
    /// database.
    pub fn takes_writes(&self) -> bool {
        let pools = &self.inner.pools;
        self.has_room() && pools.have_file() && pools.may_write() && pools.writer.liveness.takes_writes()
    }

    /// Looks up the privileges of our credential: it needs to read and write all tables. Returns those that it lacks,
    /// such as `INSERT on users`; until the next look-up, [`Store::takes_writes`] is false if there are any.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn missing_privileges(&self) -> Result<Vec<String>, StoreError> {
        let pools = &self.inner.pools;
        let tables = schema::tables(migration::POLICY.for_engine(pools.engine));
        // Migrations may have another credential.
        let tables = tables.into_iter().filter(|table| *table != "seaql_migrations");
        let needed =
            tables.flat_map(|table| ["SELECT", "INSERT", "UPDATE", "DELETE"].map(|privilege| (table, privilege)));
        dialect::missing_privileges(pools, &needed.collect::<Vec<_>>()).await
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// Any database error.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.inner.pools.reader.ping().await?)
    }

    /// Connects the feed that is notified of this store's commits; only the first call counts.
    pub(crate) fn attach(&self, feed: Weak<feed::FeedState>) {
        // A second feed on one store polls like that of another instance.
        let _first = self.inner.feed.set(feed);
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Records that the database rejected a mutation because of its own state.
    pub(crate) fn note_refusal(&self, error: &StoreError) {
        if error.is_unavailable() {
            self.pools.writer.liveness.note_refusal();
        }
    }

    pub(crate) fn feed(&self) -> Option<Feed> {
        self.feed.get().and_then(Weak::upgrade).map(Feed::from_shared)
    }
}
