//! What this process has seen of the audit store and must tell, or remember, beside the rows themselves.

use gw_audit::ChainId;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Tampered rows that wait to be told of; further ones are told of by the next reader, or by a verification.
const MAX_TAMPERED: usize = 1000;
/// How long the engine's numbering of a table is not used after it failed.
const DISTRUST: Duration = Duration::from_secs(60);
/// How long after a failed attempt a note still counts as being written: its writer tries again each second.
const RETRIED: Duration = Duration::from_secs(30);

/// A row that was read for somebody and is not what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TamperedRead {
    /// The chain; `None` if its own row cannot be read.
    pub chain: Option<ChainId>,
    /// The number under which the row is stored; `None` if it cannot be read.
    pub seq: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    tampered: Mutex<BTreeSet<TamperedRead>>,
    /// Chains whose signed note is on its way into the store: since when, or `None` while an attempt is under way.
    writing: Mutex<BTreeMap<ChainId, Option<Instant>>>,
    distrusted: Mutex<BTreeMap<&'static str, Instant>>,
    told: Mutex<BTreeSet<String>>,
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

    /// A note of the chain is about to be written.
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

    /// Whether nobody was told of a table, or of something attached to one, yet.
    pub(super) fn tells_of(&self, what: &str) -> bool {
        lock(&self.told).insert(what.to_owned())
    }
}

/// An attempt to write a note; given up, it counts as failed.
#[derive(Debug)]
pub(super) struct NoteAttempt<'a> {
    watch: &'a Watch,
    chain: ChainId,
    is_kept: bool,
}

impl NoteAttempt<'_> {
    /// The store has the note.
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
