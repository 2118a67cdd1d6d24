//! All queries, on one state of the database.

mod blocks;
mod index;
mod rows;
mod search;
mod tokens;

pub use search::HashPrefix;
pub use tokens::{HolderPosition, TokenHolding, TokenPosition};

use crate::{
    ChainStoreError,
    convert::{self, Columns},
    dialect::{Engine, Pools, Transaction},
    entity::blocks as block_table,
    rows::BlockRow,
    state,
};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use std::collections::HashMap;

/// Queries on the state that the database had when the reader was made. Row ids are valid in the generation of
/// [`ChainReader::progress`]. To be dropped soon: it holds a connection, and keeps the database from freeing space.
#[derive(Debug)]
pub struct ChainReader {
    tx: Transaction,
    progress: Progress,
}

/// How far the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The generation: it rises when ids begin to stand for other rows.
    pub generation: u64,
    /// The number of the first block; `None` while the store is empty.
    pub first: Option<u64>,
    /// The newest block, with the ids of its rows: all ids of the store are below their ends.
    pub head: Option<BlockRow>,
    /// The number of the newest block that no reorganization removes, according to the node.
    pub finalized: Option<u64>,
}

impl ChainReader {
    pub(crate) async fn begin(pools: &Pools) -> Result<Self, ChainStoreError> {
        let tx = pools.begin_read().await?;
        let columns = Columns("chain_state");
        let state = state::read(&tx).await?;
        let head = state::head(&tx).await?.map(convert::block_row).transpose()?;
        let first: Option<i64> = block_table::Entity::find()
            .select_only()
            .column(block_table::Column::Number)
            .order_by_asc(block_table::Column::Number)
            .limit(1)
            .into_tuple()
            .one(&tx)
            .await?;
        let number = Columns::number;
        let progress = Progress {
            generation: columns.number("generation", state.generation)?,
            first: Columns("blocks").optional("number", first, number)?,
            head,
            finalized: columns.optional("finalized", state.finalized, number)?,
        };
        Ok(Self { tx, progress })
    }

    /// How far the store is.
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The most values of one list in a statement.
    fn batch_size(&self) -> usize {
        Engine::for_connection(&self.tx).batch_size(1)
    }

    /// The timestamps of blocks, by number.
    async fn timestamps(&self, numbers: impl IntoIterator<Item = i64>) -> Result<HashMap<i64, i64>, ChainStoreError> {
        let numbers = distinct(numbers);
        let mut timestamps = HashMap::with_capacity(numbers.len());
        for batch in numbers.chunks(self.batch_size()) {
            let rows: Vec<(i64, i64)> = block_table::Entity::find()
                .select_only()
                .column(block_table::Column::Number)
                .column(block_table::Column::Timestamp)
                .filter(block_table::Column::Number.is_in(batch.to_vec()))
                .into_tuple()
                .all(&self.tx)
                .await?;
            timestamps.extend(rows);
        }
        Ok(timestamps)
    }
}

/// The values in order, each once.
fn distinct(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut values: Vec<i64> = values.into_iter().collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The timestamp of a row's block. Blocks are removed together with their rows.
fn timestamp_of(timestamps: &HashMap<i64, i64>, columns: Columns, block_number: i64) -> Result<i64, ChainStoreError> {
    let timestamp = timestamps.get(&block_number).copied();
    timestamp.ok_or_else(|| columns.malformed("block_number"))
}
