//! The posting index in memory, kept in step with the chain store.
//!
//! [`IndexFollower`] writes it, requests read it. Its ids are those of the chain store in one generation: a reader of
//! the store that was opened for this generation ([`gw_chain_store::ChainStore::reader_at`]) finds all its rows.

mod follower;

pub use follower::{FollowError, IndexFollower, IndexStep};

use gw_chain_store::rows::BlockNumHash;
use gw_postings::PostingIndex;
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock},
};

/// The most reorganizations that are remembered for cursors.
const FORKS: usize = 1024;

/// The blocks that were validated: no data of another block is shown.
pub trait BlockValidation: Send + Sync + std::fmt::Debug {
    /// The newest validated block; `None` while no block is known to be validated.
    fn validated_head(&self) -> Option<BlockNumHash>;

    /// Whether this block is the validated head or one of its ancestors. `false` if that is not known.
    fn is_validated(&self, block: BlockNumHash) -> bool;
}

/// The index that requests read and the follower writes; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SharedIndex(Arc<RwLock<IndexState>>);

#[derive(Debug, Default)]
struct IndexState {
    postings: PostingIndex,
    /// The number of the first block.
    first: Option<u64>,
    /// The generation of the chain store in which the ids are valid.
    generation: u64,
    /// Whether the index reached the newest validated block since it was last empty.
    is_loaded: bool,
    forks: VecDeque<Fork>,
    /// Forks of later generations are all in `forks`.
    forks_known_since: u64,
}

/// A reorganization.
#[derive(Clone, Copy, Debug)]
struct Fork {
    /// The generation of the store after it.
    generation: u64,
    /// The first block that was removed.
    block: u64,
}

/// A state of the index. Two states with the same version contain the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexVersion {
    pub(crate) generation: u64,
    pub(crate) first: u64,
    pub(crate) newest: u64,
}

/// The index is not loaded, or the store or a request has gone on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the explorer's index is behind the chain store")]
pub(crate) struct IndexBehind;

impl SharedIndex {
    /// Creates an index without blocks. Requests are refused until a follower has loaded it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the newest block; `None` while the index is not loaded.
    pub fn newest_block(&self) -> Option<u64> {
        self.version().map(|version| version.newest)
    }

    /// The generation of the chain store in which the ids of the index are valid.
    pub fn generation(&self) -> u64 {
        self.with(|state| state.generation)
    }

    /// About how many bytes of memory the index takes. Visits every list of it.
    pub fn size_in_bytes(&self) -> usize {
        self.with(|state| state.postings.size_in_bytes())
    }

    pub(crate) fn version(&self) -> Option<IndexVersion> {
        self.with(|state| state.version())
    }

    /// Reads the index if it has this version. Only set operations belong into `read`: the follower waits for its end.
    pub(crate) fn read_at<T>(&self, version: IndexVersion, read: impl FnOnce(&PostingIndex) -> T) -> Option<T> {
        self.with(|state| (state.version() == Some(version)).then(|| read(&state.postings)))
    }

    /// Reads the index if the ids of this version still stand for the same rows. Later blocks may have been added.
    pub(crate) fn read_since<T>(
        &self,
        version: IndexVersion,
        read: impl FnOnce(&PostingIndex) -> T,
    ) -> Result<T, IndexBehind> {
        self.with(|state| {
            let same_ids = state.version().is_some_and(|now| now.generation == version.generation);
            same_ids.then(|| read(&state.postings)).ok_or(IndexBehind)
        })
    }

    /// The first block that reorganizations removed since this generation; `u64::MAX` if they removed none. `None` if
    /// that is not known.
    pub(crate) fn fork_since(&self, generation: u64) -> Option<u64> {
        self.with(|state| {
            if generation > state.generation || generation < state.forks_known_since {
                return None;
            }
            let later = state.forks.iter().filter(|fork| fork.generation > generation);
            Some(later.map(|fork| fork.block).min().unwrap_or(u64::MAX))
        })
    }

    fn with<T>(&self, read: impl FnOnce(&IndexState) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut IndexState) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl IndexState {
    fn version(&self) -> Option<IndexVersion> {
        Some(IndexVersion {
            generation: self.generation,
            first: self.first?,
            newest: self.postings.newest_block().filter(|_| self.is_loaded)?,
        })
    }

    fn note_fork(&mut self, fork: Fork) {
        self.forks.push_back(fork);
        if self.forks.len() > FORKS
            && let Some(oldest) = self.forks.pop_front()
        {
            self.forks_known_since = oldest.generation;
        }
    }

    /// Removes everything: the rows are read again.
    fn clear(&mut self, generation: u64) {
        *self = Self {
            generation,
            forks_known_since: generation,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_older_than_the_remembered_forks_is_of_unknown_age() {
        let mut state = IndexState::default();
        state.clear(1);
        let forks = FORKS as u64;
        for generation in 2..forks + 3 {
            let block = 5_000 - generation;
            state.note_fork(Fork { generation, block });
            state.generation = generation;
        }
        let newest = state.generation;
        let index = SharedIndex(Arc::new(RwLock::new(state)));
        assert_eq!(index.fork_since(newest), Some(u64::MAX), "nothing was removed since");
        assert_eq!(index.fork_since(newest + 1), None, "a generation that never was");
        assert_eq!(index.fork_since(newest - 1), Some(5_000 - newest));
        assert_eq!(index.fork_since(2), Some(5_000 - newest), "all later forks are known");
        assert_eq!(index.fork_since(1), None, "the fork of generation 2 is forgotten");
    }
}
