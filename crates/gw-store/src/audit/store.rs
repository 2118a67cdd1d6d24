//! The open audit store: its schema, its indexes and the privileges of our credential.

use super::watch::{TamperedRead, Watch};
use crate::{
    StoreConfig, StoreError,
    dialect::{
        self, Pools,
        schema::{self, IndexCheck},
    },
    migration::{self, AuditMigrator},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The privileges that sealing needs.
const NEEDED_PRIVILEGES: [(&str, &str); 9] = [
    ("entries", "SELECT"),
    ("entries", "INSERT"),
    ("checkpoints", "SELECT"),
    ("checkpoints", "INSERT"),
    ("chains", "SELECT"),
    ("chains", "INSERT"),
    ("chains", "UPDATE"),
    ("journal_starts", "SELECT"),
    ("journal_starts", "INSERT"),
];

/// An open audit store; cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditStore {
    pub(super) pools: Pools,
    pub(super) config: Arc<StoreConfig>,
    pub(super) watch: Arc<Watch>,
}

impl AuditStore {
    /// Connects. The schema may still be missing or old; see [`AuditStore::migrate`].
    ///
    /// # Errors
    /// Any database error.
    pub async fn open(config: StoreConfig) -> Result<Self, StoreError> {
        let pools = Pools::open(
            &config.location,
            config.connections,
            &migration::names::<AuditMigrator>(),
        )
        .await?;
        Ok(Self {
            pools,
            config: Arc::new(config),
            watch: Arc::default(),
        })
    }

    /// Migrates the schema to the version of this build.
    ///
    /// # Errors
    /// Any database error.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let tx = self.pools.begin_migration().await?;
        migration::run::<AuditMigrator>(&tx).await?;
        tx.commit().await
    }

    /// Fails unless the schema is exactly that of this build.
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the schema is older or newer than this build; any database error.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        migration::check::<AuditMigrator>(&self.pools.reader).await
    }

    /// As [`Store::end_patience`](crate::Store::end_patience).
    pub fn end_patience(&self) {
        self.pools.writer.liveness.end_patience();
    }

    /// Returns the schema as text, object by object.
    ///
    /// # Errors
    /// Any database error.
    pub async fn schema(&self) -> Result<String, StoreError> {
        Ok(schema::describe(&self.pools.reader).await?)
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// Any database error.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.pools.reader.ping().await?)
    }

    /// Whether our database credential may change or delete entries; production refuses to run then (spec/70 rule 25).
    ///
    /// # Errors
    /// Any database error.
    pub async fn may_rewrite(&self) -> Result<bool, StoreError> {
        dialect::may_rewrite(&self.pools.reader, "entries").await
    }

    /// Returns the database objects that differ from those that the migrations make: they can prevent rows from being
    /// stored, or hide rows from readers. Each name is logged once.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn schema_differences(&self) -> Result<Vec<String>, StoreError> {
        let expected = migration::AUDIT.for_engine(self.pools.engine);
        let objects = schema::differences(&self.pools, expected).await?;
        for object in objects.iter().filter(|object| self.watch.is_first_report_of(object)) {
            tracing::error!(
                object,
                "an object of the audit database is not as the migrations made it: it can hide entries or prevent \
                 them from being stored; find out who changed it, and restore or remove it"
            );
        }
        Ok(objects)
    }

    /// Looks up the privileges of our credential that sealing needs (spec/70 rule 25). Returns those that it lacks,
    /// such as `INSERT on entries`; until the next look-up, [`AuditStore::may_write`] is false if there are any.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn missing_privileges(&self) -> Result<Vec<String>, StoreError> {
        dialect::missing_privileges(&self.pools, &NEEDED_PRIVILEGES).await
    }

    /// Whether our credential had the privileges that sealing needs when they were last looked up.
    pub fn may_write(&self) -> bool {
        self.pools.may_write()
    }

    /// Compares the indexes with the rows, for at most `limit`; see [`IndexCheck`].
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn check_indexes(&self, limit: Duration) -> Result<IndexCheck, StoreError> {
        schema::check_indexes(&self.pools, migration::AUDIT.for_engine(self.pools.engine), limit).await
    }

    /// Takes the tampered rows that were read since the last call.
    pub fn take_tampered_reads(&self) -> BTreeSet<TamperedRead> {
        self.watch.take_tampered()
    }
}
