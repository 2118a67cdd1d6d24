//! Transactions, logs, token transfers and internal transactions: by id, by hash, of a block and of a transaction.
//!
//! The ids come from the posting index, so a list of them is short: a page. No query here reads a table without bounds.

use super::{ChainReader, distinct, timestamp_of};
use crate::{
    ChainStoreError,
    convert::{self, Columns, Owner},
    dialect::Engine,
    entity::{blocks, frames, logs, token_transfers, transactions},
    rows::{ChainRow, Frame, Log, TokenTransfer, TransactionRow},
};
use gw_postings::{RowId, Space};
use gw_types::B256;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

/// The most blocks of one statement: each adds a condition, and SQLite limits the depth of conditions.
const BLOCKS_PER_STATEMENT: usize = 100;

/// Where a block's rows begin.
#[derive(Clone, Copy, Debug)]
struct BlockStart {
    timestamp: i64,
    first_transaction: i64,
    first_frame: i64,
}

/// The rows that belong to a transaction.
#[derive(Clone, Copy, Debug)]
struct Extent {
    block_number: i64,
    first_transfer: i64,
    transfer_count: i64,
    frame_position: i64,
    frame_count: i64,
    first_log: i64,
    log_count: i64,
}

impl ChainReader {
    /// Gets transactions in the order of the ids, which must differ.
    ///
    /// # Errors
    /// [`ChainStoreError::MissingRow`] if there is no such transaction; [`ChainStoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn get_transactions(&self, ids: &[RowId]) -> Result<Vec<TransactionRow>, ChainStoreError> {
        let ids = columns_of(Space::Transactions, ids)?;
        let mut models = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.batch_size()) {
            let rows = transactions::Entity::find().filter(transactions::Column::Id.is_in(batch.to_vec()));
            models.extend(rows.all(&self.tx).await?);
        }
        let models = in_order(Space::Transactions, &ids, models, |model| model.id)?;
        self.transaction_rows(models).await
    }

    /// Finds a transaction by its hash; the newest, if there are several.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_transaction(&self, hash: B256) -> Result<Option<TransactionRow>, ChainStoreError> {
        let models = transactions::Entity::find()
            .filter(transactions::Column::Hash.eq(hash.to_vec()))
            .order_by_desc(transactions::Column::Id)
            .limit(1);
        let models = models.all(&self.tx).await?;
        Ok(self.transaction_rows(models).await?.pop())
    }

    /// Lists the transactions of a block in their order; none if the block is not stored.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_transactions_of_block(&self, number: u64) -> Result<Vec<TransactionRow>, ChainStoreError> {
        let Some(block) = self.find_block(number).await? else {
            return Ok(Vec::new());
        };
        let ids = block.ids.transactions;
        let models = transactions::Entity::find()
            .filter(transactions::Column::Id.gte(convert::to_column(ids.start)?))
            .filter(transactions::Column::Id.lt(convert::to_column(ids.end)?))
            .order_by_asc(transactions::Column::Id);
        self.transaction_rows(models.all(&self.tx).await?).await
    }

    /// Gets logs in the order of the ids, which must differ.
    ///
    /// # Errors
    /// [`ChainStoreError::MissingRow`] if there is no such log; [`ChainStoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn get_logs(&self, ids: &[RowId]) -> Result<Vec<ChainRow<Log>>, ChainStoreError> {
        let ids = columns_of(Space::Logs, ids)?;
        let mut models = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.batch_size()) {
            let rows = logs::Entity::find().filter(logs::Column::Id.is_in(batch.to_vec()));
            models.extend(rows.all(&self.tx).await?);
        }
        self.log_rows(in_order(Space::Logs, &ids, models, |model| model.id)?)
            .await
    }

    /// Lists the logs of a transaction in their order; none if the transaction is not stored.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_logs(&self, transaction: RowId) -> Result<Vec<ChainRow<Log>>, ChainStoreError> {
        let Some(extent) = self.extent(transaction).await? else {
            return Ok(Vec::new());
        };
        self.list_logs_between(range("first_log", extent.first_log, extent.log_count)?)
            .await
    }

    /// Gets token transfers in the order of the ids, which must differ.
    ///
    /// # Errors
    /// [`ChainStoreError::MissingRow`] if there is no such transfer; [`ChainStoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn get_transfers(&self, ids: &[RowId]) -> Result<Vec<ChainRow<TokenTransfer>>, ChainStoreError> {
        let ids = columns_of(Space::Transfers, ids)?;
        let mut models = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.batch_size()) {
            let rows = token_transfers::Entity::find().filter(token_transfers::Column::Id.is_in(batch.to_vec()));
            models.extend(rows.all(&self.tx).await?);
        }
        self.transfer_rows(in_order(Space::Transfers, &ids, models, |model| model.id)?)
            .await
    }

    /// Lists the token transfers of a transaction in their order; none if the transaction is not stored.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_transfers(&self, transaction: RowId) -> Result<Vec<ChainRow<TokenTransfer>>, ChainStoreError> {
        let Some(extent) = self.extent(transaction).await? else {
            return Ok(Vec::new());
        };
        self.list_transfers_between(range("first_transfer", extent.first_transfer, extent.transfer_count)?)
            .await
    }

    /// Gets internal transactions in the order of the ids, which must differ.
    ///
    /// # Errors
    /// [`ChainStoreError::MissingRow`] if there is no such internal transaction; [`ChainStoreError::Row`] if a stored
    /// row is malformed; any database error.
    pub async fn get_frames(&self, ids: &[RowId]) -> Result<Vec<ChainRow<Frame>>, ChainStoreError> {
        let ids = columns_of(Space::Frames, ids)?;
        let blocks = self.blocks_of_frames(&ids).await?;
        let starts = self.block_starts(blocks.values().copied()).await?;
        let mut positions: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for id in &ids {
            let number = *blocks.get(id).ok_or(ChainStoreError::MissingRow(Space::Frames))?;
            let start = start_of(&starts, Columns("frames"), number)?;
            positions
                .entry(number)
                .or_default()
                .push(id.saturating_sub(start.first_frame));
        }
        let positions: Vec<_> = positions.into_iter().collect();
        let mut models = Vec::with_capacity(ids.len());
        for batch in positions.chunks(BLOCKS_PER_STATEMENT) {
            let mut condition = Condition::any();
            for (number, positions) in batch {
                let of_block = Condition::all()
                    .add(frames::Column::BlockNumber.eq(*number))
                    .add(frames::Column::Position.is_in(positions.clone()));
                condition = condition.add(of_block);
            }
            models.extend(frames::Entity::find().filter(condition).all(&self.tx).await?);
        }
        let id_of = |model: &frames::Model| {
            let start = starts.get(&model.block_number);
            start.map_or(i64::MIN, |start| start.first_frame.saturating_add(model.position))
        };
        self.frame_rows(in_order(Space::Frames, &ids, models, id_of)?).await
    }

    /// Lists the internal transactions of a transaction in the order of the trace; none if the transaction is not
    /// stored or not traced.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_frames(&self, transaction: RowId) -> Result<Vec<ChainRow<Frame>>, ChainStoreError> {
        let Some(extent) = self.extent(transaction).await? else {
            return Ok(Vec::new());
        };
        let end = extent.frame_position.saturating_add(extent.frame_count);
        let models = frames::Entity::find()
            .filter(frames::Column::BlockNumber.eq(extent.block_number))
            .filter(frames::Column::Position.gte(extent.frame_position))
            .filter(frames::Column::Position.lt(end))
            .order_by_asc(frames::Column::Position);
        self.frame_rows(models.all(&self.tx).await?).await
    }

    /// Lists the internal transactions of a block in their order; none if the block is not stored or not traced.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_frames_of_block(&self, number: u64) -> Result<Vec<ChainRow<Frame>>, ChainStoreError> {
        let Ok(number) = convert::to_column(number) else {
            return Ok(Vec::new());
        };
        let models = frames::Entity::find()
            .filter(frames::Column::BlockNumber.eq(number))
            .order_by_asc(frames::Column::Position);
        self.frame_rows(models.all(&self.tx).await?).await
    }

    pub(super) async fn list_logs_between(&self, ids: Range<u64>) -> Result<Vec<ChainRow<Log>>, ChainStoreError> {
        let models = logs::Entity::find().order_by_asc(logs::Column::Id);
        self.log_rows(between(models, logs::Column::Id, ids)?.all(&self.tx).await?)
            .await
    }

    pub(super) async fn list_transfers_between(
        &self,
        ids: Range<u64>,
    ) -> Result<Vec<ChainRow<TokenTransfer>>, ChainStoreError> {
        let models = token_transfers::Entity::find().order_by_asc(token_transfers::Column::Id);
        let models = between(models, token_transfers::Column::Id, ids)?;
        self.transfer_rows(models.all(&self.tx).await?).await
    }

    async fn transaction_rows(&self, models: Vec<transactions::Model>) -> Result<Vec<TransactionRow>, ChainStoreError> {
        let starts = self.block_starts(models.iter().map(|model| model.block_number)).await?;
        let rows = models.into_iter().map(|model| {
            let start = start_of(&starts, Columns("transactions"), model.block_number)?;
            convert::transaction(model, start.first_transaction, start.timestamp)
        });
        rows.collect()
    }

    async fn log_rows(&self, models: Vec<logs::Model>) -> Result<Vec<ChainRow<Log>>, ChainStoreError> {
        let owners = self.owners(models.iter().map(|model| model.transaction_id)).await?;
        let rows = models.into_iter().map(|model| {
            let owner = owner_of(&owners, model.transaction_id)?;
            convert::log(model, owner)
        });
        rows.collect()
    }

    async fn transfer_rows(
        &self,
        models: Vec<token_transfers::Model>,
    ) -> Result<Vec<ChainRow<TokenTransfer>>, ChainStoreError> {
        let owners = self.owners(models.iter().map(|model| model.transaction_id)).await?;
        let rows = models.into_iter().map(|model| {
            let owner = owner_of(&owners, model.transaction_id)?;
            convert::transfer(model, owner)
        });
        rows.collect()
    }

    async fn frame_rows(&self, models: Vec<frames::Model>) -> Result<Vec<ChainRow<Frame>>, ChainStoreError> {
        let columns = Columns("frames");
        let owners = self.owners(models.iter().map(|model| model.transaction_id)).await?;
        let starts = self.block_starts(models.iter().map(|model| model.block_number)).await?;
        let rows = models.into_iter().map(|model| {
            let owner = owner_of(&owners, model.transaction_id)?;
            let start = start_of(&starts, columns, model.block_number)?;
            convert::frame(model, start.first_frame, owner)
        });
        rows.collect()
    }

    /// The transactions of rows, by id.
    async fn owners(&self, ids: impl IntoIterator<Item = i64>) -> Result<HashMap<i64, Owner>, ChainStoreError> {
        let ids = distinct(ids);
        let mut found: Vec<(i64, i64, Vec<u8>)> = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.batch_size()) {
            let rows = transactions::Entity::find()
                .select_only()
                .column(transactions::Column::Id)
                .column(transactions::Column::BlockNumber)
                .column(transactions::Column::Hash)
                .filter(transactions::Column::Id.is_in(batch.to_vec()));
            found.extend(rows.into_tuple::<(i64, i64, Vec<u8>)>().all(&self.tx).await?);
        }
        let timestamps = self.timestamps(found.iter().map(|(_, number, _)| *number)).await?;
        let columns = Columns("transactions");
        let owners = found.into_iter().map(|(id, number, hash)| {
            let owner = Owner {
                transaction_hash: columns.hash("hash", &hash)?,
                block_number: columns.number("block_number", number)?,
                timestamp: timestamp_of(&timestamps, columns, number)?,
            };
            Ok((id, owner))
        });
        owners.collect()
    }

    async fn block_starts(
        &self,
        numbers: impl IntoIterator<Item = i64>,
    ) -> Result<HashMap<i64, BlockStart>, ChainStoreError> {
        let numbers = distinct(numbers);
        let mut starts = HashMap::with_capacity(numbers.len());
        for batch in numbers.chunks(self.batch_size()) {
            let rows: Vec<(i64, i64, i64, i64)> = blocks::Entity::find()
                .select_only()
                .column(blocks::Column::Number)
                .column(blocks::Column::Timestamp)
                .column(blocks::Column::FirstTransaction)
                .column(blocks::Column::FirstFrame)
                .filter(blocks::Column::Number.is_in(batch.to_vec()))
                .into_tuple()
                .all(&self.tx)
                .await?;
            for (number, timestamp, first_transaction, first_frame) in rows {
                let start = BlockStart {
                    timestamp,
                    first_transaction,
                    first_frame,
                };
                starts.insert(number, start);
            }
        }
        Ok(starts)
    }

    /// The number of the block of each frame id: the last block that starts at or before it. Blocks without frames
    /// start where the next one does.
    async fn blocks_of_frames(&self, ids: &[i64]) -> Result<HashMap<i64, i64>, ChainStoreError> {
        let engine = Engine::for_connection(&self.tx);
        let mut blocks = HashMap::with_capacity(ids.len());
        for batch in ids.chunks(self.batch_size()) {
            let values: Vec<String> = batch.iter().map(|id| format!("({id})")).collect();
            let sql = format!(
                "SELECT CAST(wanted.column1 AS BIGINT) AS id, (SELECT number FROM blocks \
                 WHERE first_frame <= wanted.column1 ORDER BY first_frame DESC, number DESC LIMIT 1) AS block_number \
                 FROM (VALUES {}) AS wanted",
                values.join(", ")
            );
            for row in self.tx.query_all_raw(engine.statement(sql)).await? {
                let number: Option<i64> = row.try_get("", "block_number")?;
                if let Some(number) = number {
                    blocks.insert(row.try_get("", "id")?, number);
                }
            }
        }
        Ok(blocks)
    }

    async fn extent(&self, transaction: RowId) -> Result<Option<Extent>, ChainStoreError> {
        let Ok(id) = convert::to_column(transaction.0) else {
            return Ok(None);
        };
        let row: Option<(i64, i64, i64, i64, i64, i64, i64)> = transactions::Entity::find_by_id(id)
            .select_only()
            .column(transactions::Column::BlockNumber)
            .column(transactions::Column::FirstTransfer)
            .column(transactions::Column::TransferCount)
            .column(transactions::Column::FramePosition)
            .column(transactions::Column::FrameCount)
            .column(transactions::Column::FirstLog)
            .column(transactions::Column::LogCount)
            .into_tuple()
            .one(&self.tx)
            .await?;
        Ok(row.map(|row| Extent {
            block_number: row.0,
            first_transfer: row.1,
            transfer_count: row.2,
            frame_position: row.3,
            frame_count: row.4,
            first_log: row.5,
            log_count: row.6,
        }))
    }
}

/// Ids as columns.
fn columns_of(space: Space, ids: &[RowId]) -> Result<Vec<i64>, ChainStoreError> {
    let columns = ids
        .iter()
        .map(|id| i64::try_from(id.0).map_err(|_| ChainStoreError::MissingRow(space)));
    columns.collect()
}

/// Puts models in the order of the ids.
fn in_order<M>(
    space: Space,
    ids: &[i64],
    models: Vec<M>,
    id_of: impl Fn(&M) -> i64,
) -> Result<Vec<M>, ChainStoreError> {
    let mut found: HashMap<i64, M> = models.into_iter().map(|model| (id_of(&model), model)).collect();
    let models = ids
        .iter()
        .map(|id| found.remove(id).ok_or(ChainStoreError::MissingRow(space)));
    models.collect()
}

fn between<E: EntityTrait>(
    select: Select<E>,
    id: impl ColumnTrait,
    ids: Range<u64>,
) -> Result<Select<E>, ChainStoreError> {
    Ok(select
        .filter(id.gte(convert::to_column(ids.start)?))
        .filter(id.lt(convert::to_column(ids.end)?)))
}

fn range(column: &'static str, first: i64, count: i64) -> Result<Range<u64>, ChainStoreError> {
    let columns = Columns("transactions");
    Ok(columns.number(column, first)?..columns.number(column, first.saturating_add(count))?)
}

/// The transaction of a row. Transactions are removed together with their rows.
fn owner_of(owners: &HashMap<i64, Owner>, id: i64) -> Result<Owner, ChainStoreError> {
    let owner = owners.get(&id).copied();
    owner.ok_or(ChainStoreError::MissingRow(Space::Transactions))
}

/// Where the rows of a row's block begin. Blocks are removed together with their rows.
fn start_of(starts: &HashMap<i64, BlockStart>, columns: Columns, number: i64) -> Result<BlockStart, ChainStoreError> {
    starts
        .get(&number)
        .copied()
        .ok_or_else(|| columns.malformed("block_number"))
}
