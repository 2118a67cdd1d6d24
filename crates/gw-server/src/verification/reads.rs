//! Reads of a pass. A read that fails is a finding, not the end of the pass: otherwise one row with a value of a wrong
//! type, or one missing or locked table, would hide the findings of all chains.

use gw_audit::verify::{Finding, FindingKind};
use gw_store::{StoreError, audit::AuditStore};
use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

/// The reads of one pass, with the tables that could not be read in it.
#[derive(Debug)]
pub(super) struct Reads<'a> {
    audit: &'a AuditStore,
    /// Not read again in this pass, because each attempt may wait for the same lock.
    unreadable: Mutex<BTreeSet<&'static str>>,
}

impl<'a> Reads<'a> {
    /// Checks that each table can be read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn new(audit: &'a AuditStore) -> Result<Self, StoreError> {
        let reads = Self {
            audit,
            unreadable: Mutex::default(),
        };
        for (table, error) in audit.unreadable_tables().await? {
            reads.note_unreadable(table, &error);
        }
        Ok(reads)
    }

    /// Returns the result of a read, or the finding that the table or one of its rows cannot be read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn read<'r, T: 'r, Read>(
        &'r self,
        table: &'static str,
        read: impl FnOnce() -> Read,
    ) -> impl Future<Output = Result<Result<T, Finding>, StoreError>> + Send + 'r
    where
        Read: Future<Output = Result<T, StoreError>> + Send + 'r,
    {
        self.read_boxed(table, on_heap(read))
    }

    async fn read_boxed<T>(
        &self,
        table: &'static str,
        read: Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + '_>>,
    ) -> Result<Result<T, Finding>, StoreError> {
        if self.lock().contains(table) {
            return Ok(Err(read_failed(table, None)));
        }
        let error = match read.await {
            Ok(value) => return Ok(Ok(value)),
            Err(error) => error,
        };
        if self.audit.ping().await.is_err() {
            return Err(error);
        }
        if let StoreError::Row { table, id, .. } = &error {
            return Ok(Err(read_failed(table, id.parse().ok())));
        }
        if error.is_about_row() {
            return Ok(Err(read_failed(table, None)));
        }
        self.note_unreadable(table, &error);
        Ok(Err(read_failed(table, None)))
    }

    /// The findings about the tables that could not be read.
    pub(super) fn findings(&self) -> Vec<Finding> {
        self.lock().iter().map(|table| read_failed(table, None)).collect()
    }

    fn note_unreadable(&self, table: &'static str, error: &StoreError) {
        if self.lock().insert(table) {
            let error = error as &dyn core::error::Error;
            tracing::warn!(
                table,
                error,
                "a table of the audit database cannot be read, so the audit log is verified only in part: check \
                 whether the table and its columns exist, whether a session has locked it, and the privileges of the \
                 role"
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a future on the heap. A pass has many reads with large states. Each is made in the stack frame of this
/// function, and not in that of the caller, which would grow by all of them together.
#[inline(never)]
pub(super) fn on_heap<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}

/// The finding that a row, or a table, cannot be read.
pub(super) fn read_failed(table: &'static str, id: Option<i64>) -> Finding {
    let kind = if table == "checkpoints" {
        FindingKind::CheckpointReadFailed
    } else {
        FindingKind::RowReadFailed
    };
    Finding::at(kind, table, id)
}

/// Returns the value of a read; keeps the finding of a failed one.
pub(super) fn value<T>(findings: &mut Vec<Finding>, read: Result<T, Finding>) -> Option<T> {
    read.map_err(|finding| findings.push(finding)).ok()
}
