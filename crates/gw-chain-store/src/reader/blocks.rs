//! Blocks, and one block with all its rows.

use super::ChainReader;
use crate::{
    ChainStoreError,
    convert::{self, Columns},
    entity::{blocks, changed_blocks, contracts, proxy_changes},
    rows::{BlockData, BlockRow, ChainRow, Contract, ProxyChange, TransactionData, TransactionRow},
};
use gw_postings::RowId;
use gw_types::B256;
use sea_orm::{ColumnTrait, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use std::{collections::HashMap, ops::Range};

impl ChainReader {
    /// Finds a block by its number.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_block(&self, number: u64) -> Result<Option<BlockRow>, ChainStoreError> {
        let Ok(number) = convert::to_column(number) else {
            return Ok(None);
        };
        let row = blocks::Entity::find_by_id(number).one(&self.tx).await?;
        row.map(convert::block_row).transpose()
    }

    /// Finds a block by its hash.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_block_by_hash(&self, hash: B256) -> Result<Option<BlockRow>, ChainStoreError> {
        let row = blocks::Entity::find()
            .filter(blocks::Column::Hash.eq(hash.to_vec()))
            .one(&self.tx)
            .await?;
        row.map(convert::block_row).transpose()
    }

    /// Lists the blocks with these numbers, as far as they are stored, the newest first and at most `limit`.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_blocks(&self, numbers: Range<u64>, limit: u64) -> Result<Vec<BlockRow>, ChainStoreError> {
        // No stored number is greater.
        let column = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = blocks::Entity::find()
            .filter(blocks::Column::Number.gte(column(numbers.start)))
            .filter(blocks::Column::Number.lt(column(numbers.end)))
            .order_by_desc(blocks::Column::Number)
            .limit(limit);
        let rows = rows.all(&self.tx).await?;
        rows.into_iter().map(convert::block_row).collect()
    }

    /// Lists the blocks whose trace is missing, the oldest first and at most `limit`.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_blocks_without_frames(&self, limit: u64) -> Result<Vec<u64>, ChainStoreError> {
        let numbers: Vec<i64> = blocks::Entity::find()
            .select_only()
            .column(blocks::Column::Number)
            .filter(Expr::col(blocks::Column::FramesComplete).not())
            .order_by_asc(blocks::Column::Number)
            .limit(limit)
            .into_tuple()
            .all(&self.tx)
            .await?;
        let columns = Columns("blocks");
        numbers
            .into_iter()
            .map(|number| columns.number("number", number))
            .collect()
    }

    /// The first of the blocks whose rows changed since this generation, other than by a reorganization: ids of its
    /// rows and of those of later blocks may stand for other rows.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn first_block_changed_since(&self, generation: u64) -> Result<Option<u64>, ChainStoreError> {
        let Ok(generation) = convert::to_column(generation) else {
            return Ok(None);
        };
        let first: Option<Option<i64>> = changed_blocks::Entity::find()
            .select_only()
            .column_as(changed_blocks::Column::Number.min(), "number")
            .filter(changed_blocks::Column::Generation.gt(generation))
            .into_tuple()
            .one(&self.tx)
            .await?;
        Columns("changed_blocks").optional("number", first.flatten(), Columns::number)
    }

    /// Finds a block with all its rows, as the indexer handed it over.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_block_data(&self, number: u64) -> Result<Option<BlockData>, ChainStoreError> {
        let Some(BlockRow { block, ids }) = self.find_block(number).await? else {
            return Ok(None);
        };
        let rows = self.list_transactions_of_block(number).await?;
        let mut logs = by_transaction(self.list_logs_between(ids.logs).await?);
        let mut transfers = by_transaction(self.list_transfers_between(ids.transfers).await?);
        let mut frames = by_transaction(self.list_frames_of_block(number).await?);
        let transactions = rows
            .into_iter()
            .map(|TransactionRow { id, transaction, .. }| TransactionData {
                transaction,
                logs: logs.remove(&id).unwrap_or_default(),
                transfers: transfers.remove(&id).unwrap_or_default(),
                frames: frames.remove(&id).unwrap_or_default(),
            });
        Ok(Some(BlockData {
            transactions: transactions.collect(),
            contracts: self.contracts_of_block(number).await?,
            proxy_changes: self.proxy_changes_of_block(number).await?,
            block,
        }))
    }

    async fn contracts_of_block(&self, number: u64) -> Result<Vec<Contract>, ChainStoreError> {
        let rows = contracts::Entity::find()
            .filter(contracts::Column::BlockNumber.eq(convert::to_column(number)?))
            .order_by_asc(contracts::Column::Address);
        let rows = rows.all(&self.tx).await?.into_iter();
        rows.map(|row| Ok(convert::contract_row(row, 0)?.contract)).collect()
    }

    async fn proxy_changes_of_block(&self, number: u64) -> Result<Vec<ProxyChange>, ChainStoreError> {
        let columns = Columns("proxy_changes");
        let rows = proxy_changes::Entity::find()
            .filter(proxy_changes::Column::BlockNumber.eq(convert::to_column(number)?))
            .order_by_asc(proxy_changes::Column::Address);
        let rows = rows.all(&self.tx).await?.into_iter();
        rows.map(|row| {
            Ok(ProxyChange {
                address: columns.address("address", &row.address)?,
                proxy: convert::proxy(columns, row.proxy_kind, row.implementation)?,
            })
        })
        .collect()
    }
}

fn by_transaction<T>(rows: Vec<ChainRow<T>>) -> HashMap<RowId, Vec<T>> {
    let mut grouped: HashMap<RowId, Vec<T>> = HashMap::new();
    for row in rows {
        grouped.entry(row.transaction_id).or_default().push(row.row);
    }
    grouped
}
