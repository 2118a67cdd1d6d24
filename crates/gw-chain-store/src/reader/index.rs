//! The rows from which the posting index is built again.

use super::ChainReader;
use crate::{
    ChainStoreError,
    convert::{self, Columns, FirstIds},
    entity::{blocks, frames, logs, token_transfers, transactions},
};
use gw_postings::{BlockRows, FrameParties, LogParties, Space, TransactionRows, TransferParties};
use gw_types::{B256, Timestamp};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use std::{ops::Range, vec};

/// The columns of a transaction that the index needs.
type TransactionColumns = (Vec<u8>, Option<Vec<u8>>, i64, i64, i64);

/// The columns of a log that the index needs: its emitter and its topics.
type LogColumns = (
    Vec<u8>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
);

/// The rows of some blocks, in the order of the chain; each is taken once.
struct Rows {
    transactions: vec::IntoIter<TransactionColumns>,
    transfers: vec::IntoIter<TransferParties>,
    frames: vec::IntoIter<FrameParties>,
    logs: vec::IntoIter<LogParties>,
}

impl ChainReader {
    /// Lists the addresses in the rows of at most `limit` blocks from `from_block` on, oldest first. The next call
    /// starts after the last of them; an empty list is the end.
    ///
    /// # Errors
    /// [`ChainStoreError::MissingRow`] or [`ChainStoreError::Row`] if stored rows contradict each other; any database
    /// error.
    pub async fn index_rows(&self, from_block: u64, limit: u64) -> Result<Vec<BlockRows>, ChainStoreError> {
        let Ok(from_block) = convert::to_column(from_block) else {
            return Ok(Vec::new());
        };
        let blocks = blocks::Entity::find()
            .filter(blocks::Column::Number.gte(from_block))
            .order_by_asc(blocks::Column::Number)
            .limit(limit)
            .all(&self.tx)
            .await?;
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok(Vec::new());
        };
        let end = FirstIds::after(last);
        let transaction_ids = first.first_transaction..end.transactions;
        let mut rows = Rows {
            transactions: self.transaction_columns(transaction_ids).await?.into_iter(),
            transfers: self
                .transfer_parties(first.first_transfer..end.transfers)
                .await?
                .into_iter(),
            frames: self
                .frame_parties(first.number..last.number.saturating_add(1))
                .await?
                .into_iter(),
            logs: self.log_parties(first.first_log..end.logs).await?.into_iter(),
        };
        let blocks = blocks.iter().map(|block| rows.take_block(block));
        blocks.collect()
    }

    async fn transaction_columns(&self, ids: Range<i64>) -> Result<Vec<TransactionColumns>, ChainStoreError> {
        let rows = transactions::Entity::find()
            .select_only()
            .column(transactions::Column::FromAddress)
            .column(transactions::Column::ToAddress)
            .column(transactions::Column::TransferCount)
            .column(transactions::Column::FrameCount)
            .column(transactions::Column::LogCount)
            .filter(transactions::Column::Id.gte(ids.start))
            .filter(transactions::Column::Id.lt(ids.end))
            .order_by_asc(transactions::Column::Id);
        Ok(rows.into_tuple().all(&self.tx).await?)
    }

    async fn transfer_parties(&self, ids: Range<i64>) -> Result<Vec<TransferParties>, ChainStoreError> {
        let rows: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> = token_transfers::Entity::find()
            .select_only()
            .column(token_transfers::Column::TokenAddress)
            .column(token_transfers::Column::FromAddress)
            .column(token_transfers::Column::ToAddress)
            .filter(token_transfers::Column::Id.gte(ids.start))
            .filter(token_transfers::Column::Id.lt(ids.end))
            .order_by_asc(token_transfers::Column::Id)
            .into_tuple()
            .all(&self.tx)
            .await?;
        let columns = Columns("token_transfers");
        let rows = rows.into_iter().map(|(token, from, to)| {
            Ok(TransferParties {
                token: columns.address("token_address", &token)?,
                from: columns.address("from_address", &from)?,
                to: columns.address("to_address", &to)?,
            })
        });
        rows.collect()
    }

    async fn frame_parties(&self, blocks: Range<i64>) -> Result<Vec<FrameParties>, ChainStoreError> {
        let rows: Vec<(Vec<u8>, Option<Vec<u8>>)> = frames::Entity::find()
            .select_only()
            .column(frames::Column::FromAddress)
            .column(frames::Column::ToAddress)
            .filter(frames::Column::BlockNumber.gte(blocks.start))
            .filter(frames::Column::BlockNumber.lt(blocks.end))
            .order_by_asc(frames::Column::BlockNumber)
            .order_by_asc(frames::Column::Position)
            .into_tuple()
            .all(&self.tx)
            .await?;
        let columns = Columns("frames");
        let rows = rows.into_iter().map(|(from, to)| {
            Ok(FrameParties {
                from: columns.address("from_address", &from)?,
                to: to.map(|to| columns.address("to_address", &to)).transpose()?,
            })
        });
        rows.collect()
    }

    async fn log_parties(&self, ids: Range<i64>) -> Result<Vec<LogParties>, ChainStoreError> {
        let rows: Vec<LogColumns> = logs::Entity::find()
            .select_only()
            .column(logs::Column::Address)
            .column(logs::Column::Topic0)
            .column(logs::Column::Topic1)
            .column(logs::Column::Topic2)
            .column(logs::Column::Topic3)
            .filter(logs::Column::Id.gte(ids.start))
            .filter(logs::Column::Id.lt(ids.end))
            .order_by_asc(logs::Column::Id)
            .into_tuple()
            .all(&self.tx)
            .await?;
        let columns = Columns("logs");
        let rows = rows.into_iter().map(|(emitter, topic0, topic1, topic2, topic3)| {
            let topics = [topic0, topic1, topic2, topic3];
            let topics = topics.iter().flatten().map(|topic| columns.hash("topic0", topic));
            let topics: Vec<B256> = topics.collect::<Result<_, _>>()?;
            Ok(LogParties::new(columns.address("address", &emitter)?, &topics))
        });
        rows.collect()
    }
}

impl Rows {
    fn take_block(&mut self, block: &blocks::Model) -> Result<BlockRows, ChainStoreError> {
        let columns = take(&mut self.transactions, block.transaction_count, Space::Transactions)?;
        let transactions = columns.into_iter().map(|columns| self.take_transaction(columns));
        Ok(BlockRows {
            number: Columns("blocks").number("number", block.number)?,
            time: Timestamp::from_secs(block.timestamp),
            transactions: transactions.collect::<Result<_, _>>()?,
        })
    }

    fn take_transaction(&mut self, row: TransactionColumns) -> Result<TransactionRows, ChainStoreError> {
        let columns = Columns("transactions");
        let (from, to, transfers, frames, logs) = row;
        Ok(TransactionRows {
            from: columns.address("from_address", &from)?,
            to: to.map(|to| columns.address("to_address", &to)).transpose()?,
            transfers: take(&mut self.transfers, transfers, Space::Transfers)?,
            frames: take(&mut self.frames, frames, Space::Frames)?,
            logs: take(&mut self.logs, logs, Space::Logs)?,
        })
    }
}

/// Takes `count` rows.
fn take<T>(rows: &mut impl Iterator<Item = T>, count: i64, space: Space) -> Result<Vec<T>, ChainStoreError> {
    let count = usize::try_from(count).map_err(|_| ChainStoreError::MissingRow(space))?;
    let taken: Vec<T> = rows.take(count).collect();
    if taken.len() == count {
        Ok(taken)
    } else {
        Err(ChainStoreError::MissingRow(space))
    }
}
