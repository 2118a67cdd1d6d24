//! Every mutation of policy, each with its audit entry in the same transaction (C6, spec/80 section 12).
//!
//! Invariant: a [`Tx`] holds the one epoch row from its first statement to its commit, so before-images are read
//! under lock, no two mutations interleave on any instance, and epochs are contiguous and in commit order (E-1).

mod access;
mod contracts;
mod declines;
mod entry;
mod groups;
mod links;
mod mined;
mod organizations;
mod retention;
mod sends;
mod tenants;
mod tokens;
mod urls;
mod users;

use crate::{
    Actor, Reads, StoreError,
    dialect::{self, Transaction},
    entity::audit_outbox,
    store::Inner,
};
use gw_types::{Epoch, Timestamp};
use std::sync::Arc;
use uuid::Uuid;

/// An open mutation. Dropping it rolls everything back; only [`Tx::commit`] keeps it.
#[must_use]
#[derive(Debug)]
pub struct Tx {
    pub(crate) db: Transaction,
    pub(crate) store: Arc<Inner>,
    pub(crate) actor: Actor,
    pub(crate) now: Timestamp,
    head: Epoch,
    entries: Vec<audit_outbox::Model>,
}

impl Tx {
    pub(crate) async fn begin(store: Arc<Inner>, actor: Actor) -> Result<Self, StoreError> {
        let db = store.pools.begin_write().await?;
        let head = dialect::lock_epoch(&db).await?;
        let now = store.now();
        Ok(Self { db, store, actor, now, head, entries: Vec::new() })
    }

    /// Queries that see what this mutation has written so far.
    pub fn read(&self) -> Reads<'_> {
        Reads::new((&self.db).into(), self.now)
    }

    /// The time all rows and entries of this mutation carry.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Keeps everything, and returns when another connection has seen it and this instance's [`crate::Feed`] has applied
    /// it.
    ///
    /// Runs to its end even if the caller goes away (HD21): a commit that nobody awaits is still published.
    ///
    /// # Errors
    /// [`StoreError::Unconfirmed`]: the change may stand, and nobody was told so yet. Every other error means that
    /// nothing was changed.
    pub async fn commit(mut self) -> Result<Epoch, StoreError> {
        let commits = self.store.commits.clone();
        let work = async move {
            let written = self.write_entries().await?;
            let Self { db, store, head, .. } = self;
            let raised = dialect::raise_epoch(&db).await?;
            db.commit_epoch(raised).await?;
            if let (Some(mark), Some(witness)) = (written, &store.config.outbox.witness) {
                witness.note(mark);
            }
            if let (Some(epoch), Some(feed)) = (raised, store.feed())
                && !feed.catch_up_to(epoch).await
            {
                // The feed is stale by now; the mutation stands.
                return Err(StoreError::Unconfirmed("this instance has not applied the change"));
            }
            Ok(raised.unwrap_or(head))
        };
        commits.spawn(work).await.map_err(|_| StoreError::Detached)?
    }

    /// Where policy stood when this mutation began.
    pub const fn head(&self) -> Epoch {
        self.head
    }

    fn new_id(&self) -> Uuid {
        self.store.config.entropy.uuid()
    }

    /// Undoes everything now, rather than when dropped.
    pub async fn rollback(self) -> Result<(), StoreError> {
        Ok(self.db.rollback().await?)
    }
}
