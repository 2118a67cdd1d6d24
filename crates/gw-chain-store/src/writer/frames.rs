//! Frames of a block that was stored without them.
//!
//! The ids of frames are dense, so the frames of an old block change the ids of all later frames. Leaving room for them
//! would break the density on which counts rest. A frame therefore has no id of its own in the database: its key is its
//! block and its position there, and its id is the first id of the block plus the position. Completing a block changes
//! one number of each later block, no frame. It raises the generation, since ids that were taken before stand for other
//! frames; the posting index is built again from this block on.

use super::{ChainWriter, append, insert_all, require_block, tasks};
use crate::{
    ChainStoreError, Job, convert,
    convert::FramePlace,
    dialect::{Engine, Transaction},
    entity::{blocks, contracts, frames, transactions},
    rows::{BlockNumHash, Contract, Frame},
    state,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, OnConflict},
};
use std::collections::BTreeSet;

/// The trace of a block that was stored without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockFrames {
    /// What the trace says of each transaction, in the order of the transactions.
    pub transactions: Vec<TransactionTrace>,
    /// The contracts that frames created. A contract that is stored already keeps its row.
    pub contracts: Vec<Contract>,
}

/// The trace of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionTrace {
    /// The frames below the top frame, in the order of the trace.
    pub frames: Vec<Frame>,
    /// The error of the top frame.
    pub error: Option<String>,
    /// The decoded reason of a revert.
    pub revert_reason: Option<String>,
}

impl ChainWriter {
    /// Adds the frames of a stored block, with the errors of its transactions, and raises the generation if there are
    /// any frames. Puts the balances that the frames change into the queue.
    ///
    /// # Errors
    /// [`ChainStoreError::UnknownBlock`] if the block is not stored; [`ChainStoreError::FramesComplete`] if its frames
    /// are; [`ChainStoreError::InvalidBlock`] if the number of transactions differs; [`ChainStoreError::LeaseLost`] if
    /// another instance took the lease; any database error.
    pub async fn complete_frames(&self, block: BlockNumHash, trace: &BlockFrames) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        require_block(&tx, block).await?;
        let number = convert::to_column(block.number)?;
        let ids: Vec<i64> = transactions_of(&tx, number).await?;
        let unknown = ChainStoreError::UnknownBlock { block: block.number };
        let stored = blocks::Entity::find_by_id(number).one(&tx).await?.ok_or(unknown)?;
        if stored.frames_complete {
            return Err(ChainStoreError::FramesComplete { block: block.number });
        }
        if ids.len() != trace.transactions.len() {
            return Err(ChainStoreError::InvalidBlock {
                block: block.number,
                reason: "its trace has another number of transactions",
            });
        }
        let mut models = Vec::new();
        for (id, traced) in ids.into_iter().zip(&trace.transactions) {
            let first = convert::count(models.len());
            set_trace_of_transaction(&tx, id, first, traced).await?;
            models.extend((first..).zip(&traced.frames).map(|(position, row)| {
                let place = FramePlace {
                    block_number: number,
                    position,
                    transaction_id: id,
                };
                convert::frame_model(row, place)
            }));
        }
        let count = convert::count(models.len());
        insert_all::<frames::Entity>(&tx, models).await?;
        insert_contracts(&tx, &trace.contracts, number).await?;
        set_frames_of_block(&tx, number, count).await?;
        if count > 0 {
            move_later_blocks(&tx, number, count).await?;
            state::note_changed_block(&tx, number).await?;
        }
        let jobs: BTreeSet<Job> = trace
            .transactions
            .iter()
            .flat_map(|traced| append::jobs_of_frames(&traced.frames))
            .collect();
        tasks::enqueue(&tx, jobs, self.config.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

/// The ids of a block's transactions.
async fn transactions_of(tx: &Transaction, number: i64) -> Result<Vec<i64>, ChainStoreError> {
    let Some(block) = blocks::Entity::find_by_id(number).one(tx).await? else {
        return Ok(Vec::new());
    };
    let ids = transactions::Entity::find()
        .select_only()
        .column(transactions::Column::Id)
        .filter(transactions::Column::Id.gte(block.first_transaction))
        .filter(transactions::Column::Id.lt(block.first_transaction.saturating_add(block.transaction_count)))
        .order_by_asc(transactions::Column::Id);
    Ok(ids.into_tuple().all(tx).await?)
}

async fn set_trace_of_transaction(
    tx: &Transaction,
    id: i64,
    position: i64,
    traced: &TransactionTrace,
) -> Result<(), ChainStoreError> {
    let count = convert::count(traced.frames.len());
    let text = |text: &Option<String>| Expr::value(text.as_ref().map(|text| text.as_bytes().to_vec()));
    transactions::Entity::update_many()
        .col_expr(transactions::Column::FramePosition, Expr::value(position))
        .col_expr(transactions::Column::FrameCount, Expr::value(count))
        .col_expr(transactions::Column::Error, text(&traced.error))
        .col_expr(transactions::Column::RevertReason, text(&traced.revert_reason))
        .filter(transactions::Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}

async fn set_frames_of_block(tx: &Transaction, number: i64, count: i64) -> Result<(), ChainStoreError> {
    blocks::Entity::update_many()
        .col_expr(blocks::Column::FramesComplete, Expr::value(true))
        .col_expr(blocks::Column::FrameCount, Expr::value(count))
        .filter(blocks::Column::Number.eq(number))
        .exec(tx)
        .await?;
    Ok(())
}

pub(super) async fn move_later_blocks(tx: &Transaction, number: i64, count: i64) -> Result<(), ChainStoreError> {
    let column = blocks::Column::FirstFrame;
    blocks::Entity::update_many()
        .col_expr(column, Expr::col(column).add(count))
        .filter(blocks::Column::Number.gt(number))
        .exec(tx)
        .await?;
    Ok(())
}

async fn insert_contracts(tx: &Transaction, rows: &[Contract], number: i64) -> Result<(), ChainStoreError> {
    let keep = OnConflict::columns([contracts::Column::Address, contracts::Column::BlockNumber])
        .do_nothing()
        .to_owned();
    for batch in rows.chunks(Engine::for_connection(tx).batch_size(8)) {
        let models = batch
            .iter()
            .map(|row| convert::contract_model(row, number).into_active_model().reset_all());
        contracts::Entity::insert_many(models)
            .on_conflict(keep.clone())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}
