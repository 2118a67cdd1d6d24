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
    audit::{OutboxAlarm, outbox},
    dialect::{self, Transaction},
    entity::audit_outbox,
    store::Inner,
};
use gw_types::{Epoch, Timestamp};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use uuid::Uuid;

/// How long reading the entries back may take.
const READ_BACK: Duration = Duration::from_secs(3);

/// More mutations than there ever are: an epoch from here on was written by hand.
const MOST_EPOCHS: u64 = 1 << 53;

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

/// The epoch that was raised and its stamp, the epoch before, and whether the entries stand.
type Kept = (Option<(Epoch, dialect::Stamp)>, Epoch, Result<(), StoreError>);

impl Tx {
    pub(crate) async fn begin(store: Arc<Inner>, actor: Actor) -> Result<Self, StoreError> {
        let turn = async {
            let db = store.pools.begin_mutation().await?;
            let head = dialect::lock_epoch(&db).await?;
            Ok::<_, StoreError>((db, head))
        };
        let (db, head) = turn.await.inspect_err(|error| store.note_refusal(error))?;
        if head.0 >= MOST_EPOCHS {
            let error = StoreError::EpochExhausted(head.0);
            store.note_refusal(&error);
            tracing::error!(
                epoch = head.0,
                "the epoch of policy was set to a number that no mutation gave, and nothing can be changed: somebody wrote to \
                 `policy_epoch`; put it right with `UPDATE policy_epoch SET epoch = (SELECT max(epoch) FROM policy_history \
                 WHERE epoch < {MOST_EPOCHS})`"
            );
            return Err(error);
        }
        let now = store.now();
        Ok(Self {
            db,
            store,
            actor,
            now,
            head,
            entries: Vec::new(),
        })
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
    pub async fn commit(self) -> Result<Epoch, StoreError> {
        let commits = self.store.commits.clone();
        let work = async move {
            let store = Arc::clone(&self.store);
            let kept = self.keep().await.inspect_err(|error| store.note_refusal(error))?;
            store.pools.writer.liveness.note_taken();
            let (raised, head, standing) = kept;
            if let (Some((epoch, stamp)), Some(feed)) = (raised, store.feed())
                && !(feed.catch_up_to(epoch).await && feed.has_applied(&store, epoch, stamp).await)
            {
                // The feed is stale by now, and the mutation stands; or a failover lost it, and another bears its number.
                return Err(StoreError::Unconfirmed("this instance has not applied the change"));
            }
            standing.map(|()| raised.map_or(head, |(epoch, _)| epoch))
        };
        commits.spawn(work).await.map_err(|_| StoreError::Detached)?
    }

    /// Writes the entries and commits: the epoch it raised, the one before, and whether the entries stand.
    ///
    /// Rows are compared with what was written before the commit, so that nothing is kept whose entry somebody changed, and
    /// again after it: what the commit itself sets off, or somebody does then, is at least told (rule 15).
    async fn keep(mut self) -> Result<Kept, StoreError> {
        let written = self.number_entries().await?;
        let Self { db, store, head, .. } = self;
        let Some(written) = written else {
            let raised = dialect::raise_epoch(&db).await?;
            let raised = db.commit_epoch(raised).await?;
            return Ok((raised, head, Ok(())));
        };
        let witness = store.config.outbox.witness.as_deref();
        let raised = match written.keep(db).await {
            Ok(raised) => raised,
            Err(error) => {
                // It may stand after all where it is not confirmed.
                if !matches!(error, StoreError::Unconfirmed(_))
                    && let Some(witness) = witness
                {
                    witness.note_undone(written.mark.store, &written.codes());
                }
                return Err(refused(error, &store, written.first()));
            }
        };
        store.unsealed.add(&written.codes());
        if let Some(witness) = witness {
            witness.note(written.mark, &written.digests());
        }
        let standing = match timeout(READ_BACK, outbox::stand(&store.pools.reader, &written.rows, true)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => {
                store.outbox_alarms.raise(OutboxAlarm::Lost(written.first()));
                Err(StoreError::Unconfirmed("its audit entry is not what was written"))
            }
            Ok(Err(_)) | Err(_) => Err(StoreError::Unconfirmed("its audit entry could not be read back")),
        };
        Ok((raised, head, standing))
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

/// Why a mutation was undone once its entries were to be written. Nothing its caller asked for makes that fail.
fn refused(error: StoreError, store: &Inner, id: i64) -> StoreError {
    if matches!(error, StoreError::EntryAltered) {
        store.outbox_alarms.raise(OutboxAlarm::Altered(id));
    }
    if error.is_unavailable() {
        return error;
    }
    tracing::error!(
        id,
        error = &error as &dyn std::error::Error,
        "the policy database refused the audit entry of a change, or its commit: the change was undone; look for triggers and \
         rules on `audit_outbox`, `policy_store` and `policy_epoch`"
    );
    StoreError::EntryRefused
}
