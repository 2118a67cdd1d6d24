//! Every mutation of policy, each with its audit entry in the same transaction (C6, spec/80 section 12).
//!
//! Invariant: a [`Tx`] locks the one epoch row from its first statement to its commit, so old values are read under the
//! lock, mutations do not interleave on any instance, and epochs are contiguous and in commit order (E-1).

mod access;
mod audit;
mod contracts;
mod declines;
mod disclosure;
mod disclosure_audit;
mod disclosure_error;
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
mod webhooks;

pub use disclosure::GrantTerms;
pub use disclosure_error::DisclosureError;

use crate::{
    Actor, Queries, StoreError,
    audit::{OutboxAlarm, outbox},
    dialect::{self, Transaction},
    entity::audit_outbox,
    snapshot,
    store::Inner,
};
use gw_types::{Epoch, OrgId, Timestamp};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::timeout;
use uuid::Uuid;

/// Timeout for reading the audit entries back.
const READ_BACK: Duration = Duration::from_secs(3);

/// Upper limit of plausible epochs: one at or above it was not written by a mutation.
const MOST_EPOCHS: u64 = 1 << 53;

/// An open mutation. Dropping it rolls everything back; only [`Tx::commit`] makes it permanent.
#[must_use]
#[derive(Debug)]
pub struct Tx {
    pub(crate) db: Transaction,
    pub(crate) store: Arc<Inner>,
    pub(crate) actor: Actor,
    pub(crate) now: Timestamp,
    head: Epoch,
    entries: Vec<audit_outbox::Model>,
    /// Number of webhook events that were dropped to make room for newer ones, by organization.
    dropped_events: BTreeMap<OrgId, u64>,
}

/// The raised epoch and its stamp, the epoch before, and whether the entries were read back as written.
type CommitResult = (Option<(Epoch, dialect::HistoryId)>, Epoch, Result<(), StoreError>);

impl Tx {
    pub(crate) async fn begin(store: Arc<Inner>, actor: Actor) -> Result<Self, StoreError> {
        let turn = async {
            let db = store.pools.begin_mutation().await?;
            let head = dialect::lock_epoch(&db).await?;
            Ok::<_, StoreError>((db, head))
        };
        let (db, head) = turn.await.inspect_err(|error| {
            store.note_refusal(error);
            if matches!(error, StoreError::EpochMissing) {
                tracing::error!(
                    "`policy_epoch` has no row, so every change is answered 503: the likely cause is manual SQL; \
                     repair it with `INSERT INTO policy_epoch (id, epoch) SELECT 1, max(epoch) FROM policy_history`"
                );
            }
        })?;
        if head.0 >= MOST_EPOCHS {
            let error = StoreError::EpochExhausted(head.0);
            store.note_refusal(&error);
            tracing::error!(
                epoch = head.0,
                "`policy_epoch` holds a number that no change can reach, so every change is answered 503: the likely \
                 cause is manual SQL; repair it with `UPDATE policy_epoch SET epoch = (SELECT max(epoch) FROM \
                 policy_history WHERE epoch < {MOST_EPOCHS})`"
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
            dropped_events: BTreeMap::new(),
        })
    }

    /// Returns queries that see what this mutation has written so far.
    pub fn read(&self) -> Queries<'_> {
        Queries::new((&self.db).into(), self.now)
    }

    /// Returns the time of all rows and entries of this mutation.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Commits, and returns when another connection has seen the commit and this instance's [`crate::Feed`] has applied
    /// it.
    ///
    /// Runs to its end even if the caller is dropped (HD21): the commit is published anyway.
    ///
    /// # Errors
    /// [`StoreError::Unconfirmed`]: the change may be committed. Any other error means that nothing was changed.
    pub async fn commit(mut self) -> Result<Epoch, StoreError> {
        let dropped_events = std::mem::take(&mut self.dropped_events);
        let commits = self.store.commits.clone();
        let work = async move {
            let store = Arc::clone(&self.store);
            let kept = self
                .write_entries_and_commit()
                .await
                .inspect_err(|error| store.note_refusal(error))?;
            store.pools.writer.liveness.note_taken();
            webhooks::report_dropped(&dropped_events);
            let (raised, head, standing) = kept;
            if let (Some((epoch, stamp)), Some(feed)) = (raised, store.feed())
                && !(feed.catch_up_to(epoch).await && feed.has_applied(&store, epoch, stamp).await)
            {
                // The feed is stale by now, and the mutation is committed; or a failover lost it, and another has its
                // number.
                return Err(StoreError::Unconfirmed("this instance has not applied the change"));
            }
            standing.map(|()| raised.map_or(head, |(epoch, _)| epoch))
        };
        commits.spawn(work).await.map_err(|_| StoreError::Detached)?
    }

    /// Writes the entries and commits.
    ///
    /// The rows are compared with what was written before the commit, so that no mutation is committed with an altered
    /// entry, and again after it: alterations by the commit itself or afterwards are at least reported (rule 15).
    async fn write_entries_and_commit(mut self) -> Result<CommitResult, StoreError> {
        let batch = self.number_entries().await?;
        let Self { db, store, head, .. } = self;
        let Some(batch) = batch else {
            let raised = dialect::raise_epoch(&db, snapshot::recorded_tables()).await;
            let raised = db
                .commit_epoch(raised.inspect_err(|error| report(error, &store))?)
                .await?;
            return Ok((raised, head, Ok(())));
        };
        let witness = store.config.outbox.witness.as_deref();
        let raised = match batch.write_and_commit(db).await {
            Ok(raised) => raised,
            Err(error) => {
                // An unconfirmed mutation may be committed after all.
                if !matches!(error, StoreError::Unconfirmed(_))
                    && let Some(witness) = witness
                {
                    witness.note_undone(batch.mark.store, &batch.codes());
                }
                return Err(refused(error, &store, batch.first()));
            }
        };
        store.unsealed.add(&batch.codes());
        if let Some(witness) = witness {
            witness.note(batch.mark, &batch.digests());
        }
        let standing = match timeout(READ_BACK, outbox::stand(&store.pools.reader, &batch.rows, true)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => {
                store.outbox_alarms.raise(OutboxAlarm::Lost(batch.first()));
                Err(StoreError::Unconfirmed("its audit entry is not what was written"))
            }
            Ok(Err(_)) | Err(_) => Err(StoreError::Unconfirmed("its audit entry could not be read back")),
        };
        Ok((raised, head, standing))
    }

    /// Returns the policy epoch at the start of this mutation.
    pub const fn head(&self) -> Epoch {
        self.head
    }

    fn new_id(&self) -> Uuid {
        self.store.config.entropy.uuid()
    }

    /// Rolls back now, rather than on drop.
    ///
    /// # Errors
    /// If the database fails; the transaction is rolled back when its connection is closed.
    pub async fn rollback(self) -> Result<(), StoreError> {
        Ok(self.db.rollback().await?)
    }
}

/// Raises the alarm for a change that the triggers did not record.
fn report(error: &StoreError, store: &Inner) {
    if let StoreError::ChangeUnrecorded(table) = error {
        store.outbox_alarms.raise(OutboxAlarm::Unrecorded(table));
    }
}

/// Maps the error of a mutation that failed while its entries were written. The caller's request cannot cause such
/// errors.
fn refused(error: StoreError, store: &Inner, id: i64) -> StoreError {
    if matches!(error, StoreError::EntryAltered) {
        store.outbox_alarms.raise(OutboxAlarm::Altered(id));
    }
    report(&error, store);
    if error.is_unavailable() {
        return error;
    }
    tracing::error!(
        id,
        error = &error as &dyn std::error::Error,
        "the policy database rejected the audit entry of a change or its commit: the change was undone and answered \
         503; the likely cause is a trigger or rule: find and remove triggers and rules on `audit_outbox`, \
         `policy_store` and `policy_epoch`"
    );
    StoreError::EntryRefused
}
