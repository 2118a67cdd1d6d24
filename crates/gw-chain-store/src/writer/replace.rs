//! Replacing the rows of a stored block, which was read again.
//!
//! The block is the same, so usually its rows have the same numbers, and their ids stay. A block that was stored from
//! half an answer of the node gets more rows: then the ids of all later rows move. A block without its trace may get
//! more frames, whose ids are not stored (see `frames`).

use super::{ChainWriter, append, insert_all, require_block, tasks};
use crate::{
    ChainReader, ChainStoreError, Job,
    convert::{self, BlockModels, FirstIds},
    dialect::Transaction,
    entity::{blocks, contracts, frames, logs, proxy_changes, token_transfers, tokens, transactions},
    rows::BlockData,
    state,
};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, sea_query::Expr};
use std::collections::BTreeSet;

impl ChainWriter {
    /// Replaces the rows of a stored block by those that the node returns now, and puts everything that depends on them
    /// into the queue: balances, supplies and metadata of its tokens. If addresses or numbers of rows differ, the
    /// generation rises, and the posting index is built again from this block on. Other numbers of rows move the ids of
    /// all later rows, which takes time on a long chain. A token that loses its only transfer stays.
    ///
    /// Returns whether any row differs.
    ///
    /// # Errors
    /// [`ChainStoreError::UnknownBlock`] if the block is not stored; [`ChainStoreError::InvalidBlock`] if the trace of
    /// a traced block is missing, or if its rows contradict each other; [`ChainStoreError::LeaseLost`] if another
    /// instance took the lease; any database error.
    pub async fn replace_block(&self, data: &BlockData) -> Result<bool, ChainStoreError> {
        let number = data.block.number;
        // No other instance writes. If this one changes the block meanwhile, its hash differs below.
        let reader = ChainReader::begin(&self.pools).await?;
        let stored = reader.find_block_data(number).await?;
        drop(reader);
        let stored = stored.ok_or(ChainStoreError::UnknownBlock { block: number })?;
        let invalid = |reason| ChainStoreError::InvalidBlock { block: number, reason };
        if stored.block.frames_complete && !data.block.frames_complete {
            return Err(invalid("its trace is missing"));
        }
        let tx = self.begin().await?;
        require_block(&tx, data.block.num_hash()).await?;
        let is_changed = stored != *data;
        if is_changed {
            let row = blocks::Entity::find_by_id(convert::to_column(number)?).one(&tx).await?;
            let row = row.ok_or(ChainStoreError::UnknownBlock { block: number })?;
            let models = BlockModels::new(data, first_ids(&row))?;
            replace(&tx, &row, models).await?;
            if stored.posting_rows() != data.posting_rows() {
                state::note_changed_block(&tx, row.number).await?;
            }
        }
        let mut jobs: BTreeSet<Job> = append::jobs_of(data).into_iter().collect();
        for token in data
            .transactions
            .iter()
            .flat_map(|data| &data.transfers)
            .map(|row| row.token)
        {
            jobs.insert(Job::TokenMetadata { token });
            jobs.insert(Job::TokenSupply { token });
        }
        tasks::enqueue(&tx, jobs, self.config.clock.now()).await?;
        tx.commit().await?;
        Ok(is_changed)
    }
}

fn first_ids(row: &blocks::Model) -> FirstIds {
    FirstIds {
        transactions: row.first_transaction,
        transfers: row.first_transfer,
        frames: row.first_frame,
        logs: row.first_log,
    }
}

async fn replace(tx: &Transaction, row: &blocks::Model, models: BlockModels) -> Result<(), ChainStoreError> {
    let (first, end) = (first_ids(row), FirstIds::after(row));
    transactions::Entity::delete_many()
        .filter(transactions::Column::Id.gte(first.transactions))
        .filter(transactions::Column::Id.lt(end.transactions))
        .exec(tx)
        .await?;
    logs::Entity::delete_many()
        .filter(logs::Column::Id.gte(first.logs))
        .filter(logs::Column::Id.lt(end.logs))
        .exec(tx)
        .await?;
    token_transfers::Entity::delete_many()
        .filter(token_transfers::Column::Id.gte(first.transfers))
        .filter(token_transfers::Column::Id.lt(end.transfers))
        .exec(tx)
        .await?;
    frames::Entity::delete_many()
        .filter(frames::Column::BlockNumber.eq(row.number))
        .exec(tx)
        .await?;
    contracts::Entity::delete_many()
        .filter(contracts::Column::BlockNumber.eq(row.number))
        .exec(tx)
        .await?;
    proxy_changes::Entity::delete_many()
        .filter(proxy_changes::Column::BlockNumber.eq(row.number))
        .exec(tx)
        .await?;
    let moved = FirstIds::after(&models.block).since(end);
    move_later_rows(tx, row.number, end, moved).await?;
    set_first_block_of_tokens(tx, row.number, &models.tokens).await?;
    let new_tokens = append::new_tokens(tx, models.tokens).await?;
    models.block.into_active_model().reset_all().update(tx).await?;
    insert_all::<transactions::Entity>(tx, models.transactions).await?;
    insert_all::<logs::Entity>(tx, models.logs).await?;
    insert_all::<token_transfers::Entity>(tx, models.transfers).await?;
    insert_all::<frames::Entity>(tx, models.frames).await?;
    insert_all::<contracts::Entity>(tx, models.contracts).await?;
    insert_all::<proxy_changes::Entity>(tx, models.proxy_changes).await?;
    insert_all::<tokens::Entity>(tx, new_tokens).await?;
    Ok(())
}

/// Moves the ids of the rows after this block, which begin at `end`.
async fn move_later_rows(tx: &Transaction, number: i64, end: FirstIds, moved: FirstIds) -> Result<(), ChainStoreError> {
    if moved == FirstIds::default() {
        return Ok(());
    }
    blocks::Entity::update_many()
        .col_expr(
            blocks::Column::FirstTransaction,
            plus(blocks::Column::FirstTransaction, moved.transactions),
        )
        .col_expr(
            blocks::Column::FirstTransfer,
            plus(blocks::Column::FirstTransfer, moved.transfers),
        )
        .col_expr(
            blocks::Column::FirstFrame,
            plus(blocks::Column::FirstFrame, moved.frames),
        )
        .col_expr(blocks::Column::FirstLog, plus(blocks::Column::FirstLog, moved.logs))
        .filter(blocks::Column::Number.gt(number))
        .exec(tx)
        .await?;
    if moved.transactions != 0 {
        frames::Entity::update_many()
            .col_expr(
                frames::Column::TransactionId,
                plus(frames::Column::TransactionId, moved.transactions),
            )
            .filter(frames::Column::BlockNumber.gt(number))
            .exec(tx)
            .await?;
    }
    let of_transactions = [
        (transactions::Column::FirstTransfer, moved.transfers),
        (transactions::Column::FirstLog, moved.logs),
    ];
    move_ids::<transactions::Entity>(
        tx,
        (transactions::Column::Id, end.transactions, moved.transactions),
        &of_transactions,
    )
    .await?;
    let of_logs = [(logs::Column::TransactionId, moved.transactions)];
    move_ids::<logs::Entity>(tx, (logs::Column::Id, end.logs, moved.logs), &of_logs).await?;
    let of_transfers = [(token_transfers::Column::TransactionId, moved.transactions)];
    move_ids::<token_transfers::Entity>(
        tx,
        (token_transfers::Column::Id, end.transfers, moved.transfers),
        &of_transfers,
    )
    .await
}

/// Moves the ids of a table from an id on, and with them other columns of the same rows. Each id has to be unique after
/// each row: so the ids are negative in between.
async fn move_ids<E: EntityTrait>(
    tx: &Transaction,
    (id, first, moved): (E::Column, i64, i64),
    others: &[(E::Column, i64)],
) -> Result<(), ChainStoreError> {
    if moved == 0 && others.iter().all(|(_, moved)| *moved == 0) {
        return Ok(());
    }
    let mut update = E::update_many().filter(id.gte(first));
    if moved != 0 {
        update = update.col_expr(id, Expr::value(-1_i64).sub(plus(id, moved)));
    }
    for (column, moved) in others {
        update = update.col_expr(*column, plus(*column, *moved));
    }
    update.exec(tx).await?;
    if moved != 0 {
        E::update_many()
            .col_expr(id, Expr::value(-1_i64).sub(Expr::col(id)))
            .filter(id.lt(0))
            .exec(tx)
            .await?;
    }
    Ok(())
}

fn plus<C: ColumnTrait>(column: C, number: i64) -> Expr {
    Expr::col(column).add(number)
}

/// The first transfer of the block's tokens is in this block at the latest, and gives their standard.
async fn set_first_block_of_tokens(
    tx: &Transaction,
    number: i64,
    rows: &[tokens::Model],
) -> Result<(), ChainStoreError> {
    for token in rows {
        tokens::Entity::update_many()
            .col_expr(tokens::Column::BlockNumber, Expr::value(number))
            .col_expr(tokens::Column::Standard, Expr::value(token.standard))
            .filter(tokens::Column::Address.eq(token.address.clone()))
            .filter(tokens::Column::BlockNumber.gt(number))
            .exec(tx)
            .await?;
    }
    Ok(())
}
