//! Observations of this process about the audit store that it must report or remember.

use gw_audit::ChainId;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum tampered rows waiting to be reported; the next read or a verification reports further ones.
const MAX_TAMPERED: usize = 1000;
/// How long the engine's ids of a table are not used after they failed.
const DISTRUST: Duration = Duration::from_secs(60);
/// How long after a failed attempt a note still counts as being written: its writer retries each second.
const RETRIED: Duration = Duration::from_secs(30);

/// A row that was read and found tampered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TamperedRead {
    /// The chain; `None` if its own row cannot be read.
    pub chain: Option<ChainId>,
    /// The sequence number of the row; `None` if it cannot be read.
    pub seq: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    tampered: Mutex<BTreeSet<TamperedRead>>,
    /// Chains whose signed note is being written: time of the last failure, or `None` during an attempt.
    writing: Mutex<BTreeMap<ChainId, Option<Instant>>>,
    distrusted: Mutex<BTreeMap<&'static str, Instant>>,
    reported: Mutex<BTreeSet<String>>,
}

impl Watch {
    pub(super) fn note_tampered(&self, read: TamperedRead) {
        let mut tampered = lock(&self.tampered);
        if tampered.len() < MAX_TAMPERED {
            tampered.insert(read);
        }
    }

    pub(super) fn take_tampered(&self) -> BTreeSet<TamperedRead> {
        core::mem::take(&mut *lock(&self.tampered))
    }

    /// Records the start of an attempt to write a note of the chain.
    pub(super) fn begin_note(&self, chain: ChainId) -> NoteAttempt<'_> {
        lock(&self.writing).insert(chain, None);
        NoteAttempt {
            watch: self,
            chain,
            is_kept: false,
        }
    }

    pub(super) fn is_writing_note(&self, chain: ChainId) -> bool {
        lock(&self.writing)
            .get(&chain)
            .is_some_and(|failed| failed.is_none_or(|at| at.elapsed() < RETRIED))
    }

    pub(super) fn distrust(&self, table: &'static str) {
        lock(&self.distrusted).insert(table, Instant::now());
    }

    pub(super) fn is_distrusted(&self, table: &'static str) -> bool {
        lock(&self.distrusted)
            .get(table)
            .is_some_and(|at| at.elapsed() < DISTRUST)
    }

    /// Whether `object` (a table or an attached object) is reported for the first time.
    pub(super) fn is_first_report_of(&self, object: &str) -> bool {
        lock(&self.reported).insert(object.to_owned())
    }
}

/// An attempt to write a note; dropping it counts as a failure.
#[derive(Debug)]
pub(super) struct NoteAttempt<'a> {
    watch: &'a Watch,
    chain: ChainId,
    is_kept: bool,
}

impl NoteAttempt<'_> {
    /// Records that the store has the note.
    pub(super) fn succeed(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NoteAttempt<'_> {
    fn drop(&mut self) {
        let mut writing = lock(&self.watch.writing);
        if self.is_kept {
            writing.remove(&self.chain);
        } else {
            writing.insert(self.chain, Some(Instant::now()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
