//! Keeps the index in step with the chain store.

use super::{BlockValidation, Fork, SPACES, SharedIndex, is_stored, next_ids};
use gw_chain_store::{
    ChainReader, ChainStore, ChainStoreError,
    rows::{BlockNumHash, BlockRow},
};
use gw_postings::{AppendError, BlockRange, BlockRows, PostingIndex};
use gw_types::B256;
use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

/// The most blocks of one step.
const BATCH: u64 = 500;
/// The newest blocks whose hashes are noted. A reorganization below them loads the index anew.
const RECENT: usize = 8192;
/// The blocks that are compared at once to find a fork.
const COMPARED: u64 = 256;
/// How often progress is logged while the index is loaded.
const LOGGED: u64 = 100_000;

/// Why the index could not follow.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The store failed, or contradicts itself.
    #[error("the chain store could not be read")]
    Store(#[from] ChainStoreError),
    /// The rows of the store do not continue the index. It is loaded anew.
    #[error("the blocks of the chain store do not continue the index: {0}")]
    Index(&'static str),
}

impl From<AppendError> for FollowError {
    fn from(error: AppendError) -> Self {
        Self::Index(match error {
            AppendError::NotNext { .. } => "a block is missing",
            AppendError::TimeRunsBack { .. } => "a block is older than the one before it",
        })
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStep {
    /// The index has every validated block.
    UpToDate,
    /// There are more blocks to load.
    More,
}

/// Follows the chain store. One follower writes an index.
#[derive(Debug)]
pub struct IndexFollower {
    store: ChainStore,
    validation: Arc<dyn BlockValidation>,
    index: SharedIndex,
    /// The newest block, its hash and those of the blocks before it, the newest last.
    recent: VecDeque<BlockNumHash>,
    generation: Option<u64>,
    logged: u64,
}

/// A change of the index, prepared without its lock.
#[derive(Debug)]
struct Change {
    generation: u64,
    removal: Option<Removal>,
    rows: Vec<BlockRows>,
    /// The headers of `rows`.
    blocks: Vec<BlockRow>,
    is_up_to_date: bool,
    /// Whether the index has every validated block afterwards.
    is_complete: bool,
}

/// What of the index is not in the store any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// This block and all later ones. `is_fork` says that a reorganization is the reason.
    From { block: u64, is_fork: bool },
    /// All blocks: where the chains part is not known, or the database was put back or made anew.
    All,
}

impl IndexFollower {
    /// Creates a follower of an empty index.
    pub fn new(store: ChainStore, validation: Arc<dyn BlockValidation>, index: SharedIndex) -> Self {
        Self {
            store,
            validation,
            index,
            recent: VecDeque::new(),
            generation: None,
            logged: 0,
        }
    }

    /// Follows until the future is dropped: loads all validated blocks, then looks for new ones every `interval`.
    pub async fn run(mut self, interval: Duration) {
        loop {
            match self.step().await {
                Ok(IndexStep::More) => continue,
                Ok(IndexStep::UpToDate) => {}
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the explorer's index does not follow the chain store; the explorer answers 503 once it is behind"
                ),
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Loads the next blocks.
    ///
    /// # Errors
    /// [`FollowError::Store`] if the store failed; [`FollowError::Index`] if its rows do not continue the index, which
    /// is empty then and will be loaded anew.
    pub async fn step(&mut self) -> Result<IndexStep, FollowError> {
        let reader = self.store.reader().await?;
        let change = self.prepare(&reader).await?;
        drop(reader);
        let up_to_date = change.is_up_to_date;
        if let Err(error) = self.apply(change) {
            self.reset();
            return Err(error);
        }
        Ok(if up_to_date {
            IndexStep::UpToDate
        } else {
            IndexStep::More
        })
    }

    fn reset(&mut self) {
        self.recent.clear();
        self.generation = None;
        self.index.change(|state| state.clear(0));
    }

    async fn prepare(&self, reader: &ChainReader) -> Result<Change, FollowError> {
        let progress = reader.progress();
        let removal = self.removal(reader).await?;
        let newest = match removal {
            Some(Removal::From { block, .. }) => block.checked_sub(1),
            Some(Removal::All) => None,
            None => self.newest(),
        };
        let next = match newest {
            Some(newest) => newest.saturating_add(1),
            None => progress.first.unwrap_or_default(),
        };
        let target = self.target(reader).await?;
        let mut change = Change {
            generation: progress.generation,
            removal,
            rows: Vec::new(),
            blocks: Vec::new(),
            is_up_to_date: target.is_none_or(|target| target < next),
            is_complete: target.is_some_and(|target| target < next),
        };
        if let Some(target) = target.filter(|target| next <= *target) {
            let numbers = next..target.saturating_add(1).min(next.saturating_add(BATCH));
            change.is_up_to_date = numbers.end > target;
            change.is_complete = change.is_up_to_date;
            change.rows = reader.index_rows(numbers.start, numbers.end - numbers.start).await?;
            change.blocks = blocks(reader, numbers).await?;
        }
        Ok(change)
    }

    fn newest(&self) -> Option<u64> {
        self.recent.back().map(|block| block.number)
    }

    /// The newest block that is stored and validated. `None` if the stored chain is not known to be the validated one.
    async fn target(&self, reader: &ChainReader) -> Result<Option<u64>, ChainStoreError> {
        let (Some(stored), Some(validated)) = (&reader.progress().head, self.validation.validated_head()) else {
            return Ok(None);
        };
        let stored = stored.block.num_hash();
        if stored.number < validated.number {
            return Ok(self.validation.is_validated(stored).then_some(stored.number));
        }
        let block = reader.find_block(validated.number).await?;
        let is_same = block.is_some_and(|row| row.block.hash == validated.hash);
        Ok(is_same.then_some(validated.number))
    }

    /// What of the index is not in the store any more.
    async fn removal(&self, reader: &ChainReader) -> Result<Option<Removal>, ChainStoreError> {
        let Some(generation) = self.generation else {
            return Ok(None);
        };
        let stored = reader.progress().generation;
        let removal = if stored == generation {
            None
        } else {
            self.first_changed(reader, generation).await?
        };
        let kept = match removal {
            Some(Removal::From { block, .. }) => block.checked_sub(1),
            Some(Removal::All) => None,
            None => self.newest(),
        };
        let Some(kept) = kept else { return Ok(removal) };
        // X5: the generation of a database never sinks, and the rows below a change keep their ids.
        if stored >= generation && self.is_kept(reader, kept).await? {
            return Ok(removal);
        }
        tracing::warn!("the explorer's database was put back from a copy or made anew: its index is loaded again");
        Ok(Some(Removal::All))
    }

    /// Whether the store has this block of the index, with rows of the same ids.
    async fn is_kept(&self, reader: &ChainReader, number: u64) -> Result<bool, ChainStoreError> {
        let known = self.recent.iter().rev().find(|block| block.number == number);
        let ids = self.index.with(|state| next_ids(&state.postings, number));
        is_stored(reader, number, known.map(|block| block.hash), ids).await
    }

    /// The first block whose rows changed in the store.
    async fn first_changed(&self, reader: &ChainReader, generation: u64) -> Result<Option<Removal>, ChainStoreError> {
        let Some(newest) = self.newest() else { return Ok(None) };
        let oldest = self.recent.front().map_or(newest, |block| block.number);
        let mut end = newest.saturating_add(1);
        let mut removed_from = end;
        // From the newest noted block down to the first one that is still stored.
        'search: loop {
            let start = end.saturating_sub(COMPARED).max(oldest);
            let stored = blocks(reader, start..end).await?;
            let hash_of = |number: u64| -> Option<B256> {
                let stored = stored.iter().find(|row| row.block.number == number);
                stored.map(|row| row.block.hash)
            };
            for number in (start..end).rev() {
                let noted = self.recent.iter().rev().find(|block| block.number == number);
                if noted.map(|block| block.hash) == hash_of(number) {
                    break 'search;
                }
                removed_from = number;
            }
            if start == oldest {
                // No noted block is left: nothing tells where the chains part.
                return Ok(Some(Removal::All));
            }
            end = start;
        }
        // Blocks whose rows were completed or replaced.
        let changed = reader.first_block_changed_since(generation).await?;
        let is_fork = removed_from <= newest;
        Ok(match changed {
            Some(block) if block < removed_from => Some(Removal::From { block, is_fork }),
            Some(_) | None => is_fork.then_some(Removal::From {
                block: removed_from,
                is_fork,
            }),
        })
    }

    fn apply(&mut self, change: Change) -> Result<(), FollowError> {
        match change.removal {
            Some(Removal::From { block, .. }) => self.recent.retain(|known| known.number < block),
            Some(Removal::All) => self.recent.clear(),
            None => {}
        }
        let newest = (change.blocks.last().map(|row| row.block.num_hash())).or(self.recent.back().copied());
        let is_anew = self.generation.is_none() || change.removal == Some(Removal::All);
        self.index.change(|state| {
            if is_anew {
                // No cursor of the old rows can be continued.
                state.clear(change.generation);
            } else if let Some(Removal::From { block, is_fork }) = change.removal {
                state.postings.truncate(block);
                if is_fork {
                    state.note_fork(Fork {
                        generation: change.generation,
                        block,
                    });
                }
                if state.postings.newest_block().is_none() {
                    state.first = None;
                    state.is_loaded = false;
                }
            }
            state.newest_hash = newest.map(|block| block.hash);
            state.generation = change.generation;
            for rows in &change.rows {
                state.postings.append(rows)?;
                state.first.get_or_insert(rows.number);
            }
            state.is_loaded |= change.is_complete;
            verify(&state.postings, &change.blocks)
        })?;
        self.generation = Some(change.generation);
        for row in &change.blocks {
            self.recent.push_back(row.block.num_hash());
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
            self.logged += 1;
            if self.logged.is_multiple_of(LOGGED) {
                tracing::info!(block = row.block.number, "loading the explorer's index");
            }
        }
        Ok(())
    }
}

/// These blocks, as far as they are stored, the oldest first.
async fn blocks(reader: &ChainReader, numbers: Range<u64>) -> Result<Vec<BlockRow>, ChainStoreError> {
    let count = numbers.end.saturating_sub(numbers.start);
    let mut blocks = reader.list_blocks(numbers, count).await?;
    blocks.reverse();
    Ok(blocks)
}

/// The ids of the index are those of the store.
fn verify(postings: &PostingIndex, blocks: &[BlockRow]) -> Result<(), FollowError> {
    for row in blocks {
        let number = row.block.number;
        let of_block = BlockRange {
            start: number,
            end: number.saturating_add(1),
        };
        for space in SPACES {
            if postings.ids_in_blocks(space, of_block) != row.ids.of(space) {
                return Err(FollowError::Index("the numbers of rows differ"));
            }
        }
    }
    Ok(())
}
