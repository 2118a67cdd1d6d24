//! The posting index in memory, kept in step with the chain store.
//!
//! [`IndexFollower`] writes it, requests read it. Its ids are those of the chain store in one generation. A generation
//! alone does not name a state: a database that was put back from a copy or made anew counts its generations again. So
//! a request compares the newest block and the next ids of the index with those of the store
//! ([`IndexVersion::is_stored`]) before it reads rows by ids.

mod follower;

pub use follower::{FollowError, IndexFollower, IndexStep};

use gw_chain_store::{
    ChainReader, ChainStoreError,
    rows::{BlockIds, BlockNumHash},
};
use gw_postings::{BlockRange, PostingIndex, Space};
use gw_types::B256;
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock},
};

/// The most reorganizations that are remembered for cursors.
const FORKS: usize = 1024;
const SPACES: [Space; 4] = [Space::Transactions, Space::Transfers, Space::Frames, Space::Logs];

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
    /// How often the index was loaded from its first block: ids of another load may stand for other rows.
    load: u64,
    /// The hash of the newest block; `None` while it is not known.
    newest_hash: Option<B256>,
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
    /// How often this process loaded the index from its first block.
    pub(crate) load: u64,
    pub(crate) first: u64,
    pub(crate) newest: u64,
    pub(crate) newest_hash: B256,
    /// The ids after the newest block, in the order of [`SPACES`].
    pub(crate) next_ids: NextIds,
}

/// The first ids after a block: of transactions, transfers, frames and logs.
pub(crate) type NextIds = [u64; SPACES.len()];

impl IndexVersion {
    /// Whether the store has the newest block of this version, with rows of the same ids. Otherwise its ids must not be
    /// used: the database was put back from a copy, or made anew.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn is_stored(&self, reader: &ChainReader) -> Result<bool, ChainStoreError> {
        is_stored(reader, self.newest, Some(self.newest_hash), self.next_ids).await
    }

    /// Whether the ids of the other version stand for the same rows.
    pub(crate) const fn has_ids_of(&self, other: &Self) -> bool {
        self.generation == other.generation && self.load == other.load
    }
}

/// Whether the store has this block, with rows up to these ids. Without a hash, the ids alone are compared.
async fn is_stored(
    reader: &ChainReader,
    number: u64,
    hash: Option<B256>,
    next_ids: NextIds,
) -> Result<bool, ChainStoreError> {
    let same = |block_hash: B256, ids: &BlockIds| {
        hash.is_none_or(|hash| hash == block_hash) && SPACES.map(|space| ids.of(space).end) == next_ids
    };
    if let Some(head) = reader
        .progress()
        .head
        .as_ref()
        .filter(|head| head.block.number == number)
    {
        return Ok(same(head.block.hash, &head.ids));
    }
    let row = reader.find_block(number).await?;
    Ok(row.is_some_and(|row| same(row.block.hash, &row.ids)))
}

/// The ids after a block of the index.
fn next_ids(postings: &PostingIndex, number: u64) -> NextIds {
    let block = BlockRange {
        start: number,
        end: number.saturating_add(1),
    };
    SPACES.map(|space| postings.ids_in_blocks(space, block).end)
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
            let same_ids = state.version().is_some_and(|now| now.has_ids_of(&version));
            same_ids.then(|| read(&state.postings)).ok_or(IndexBehind)
        })
    }

    /// The first block that reorganizations removed since this generation of this load; `u64::MAX` if they removed
    /// none. `None` if that is not known.
    pub(crate) fn fork_since(&self, load: u64, generation: u64) -> Option<u64> {
        self.with(|state| {
            if load != state.load || generation > state.generation || generation < state.forks_known_since {
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
        let newest = self.postings.newest_block().filter(|_| self.is_loaded)?;
        Some(IndexVersion {
            generation: self.generation,
            load: self.load,
            first: self.first?,
            newest,
            newest_hash: self.newest_hash?,
            next_ids: next_ids(&self.postings, newest),
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
            load: self.load.saturating_add(1),
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
        let (newest, load) = (state.generation, state.load);
        let index = SharedIndex(Arc::new(RwLock::new(state)));
        assert_eq!(
            index.fork_since(load, newest),
            Some(u64::MAX),
            "nothing was removed since"
        );
        assert_eq!(index.fork_since(load, newest + 1), None, "a generation that never was");
        assert_eq!(index.fork_since(load, newest - 1), Some(5_000 - newest));
        assert_eq!(
            index.fork_since(load, 2),
            Some(5_000 - newest),
            "all later forks are known"
        );
        assert_eq!(index.fork_since(load, 1), None, "the fork of generation 2 is forgotten");
        assert_eq!(index.fork_since(load + 1, newest), None, "x5: another load");
    }
}
