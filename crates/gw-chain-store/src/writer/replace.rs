//! Replacing the rows of a stored block, which was read again.
//!
//! The block is the same, so its rows have the same numbers: the ids of transactions, transfers and logs stay. Only a
//! block without its trace may get more frames, whose ids are not stored (see `frames`).

use super::{ChainWriter, append, frames::move_later_blocks, insert_all, require_block, tasks};
use crate::{
    ChainReader, ChainStoreError, Job,
    convert::{self, BlockModels, FirstIds},
    dialect::Transaction,
    entity::{blocks, contracts, frames, logs, proxy_changes, token_transfers, tokens, transactions},
    rows::BlockData,
    state,
};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use std::collections::BTreeSet;

impl ChainWriter {
    /// Replaces the rows of a stored block by those that the node returns now, and puts everything that depends on them
    /// into the queue: balances, supplies and metadata of its tokens. Ids stay. If addresses of rows differ, the
    /// generation rises, and the posting index is built again from this block on.
    ///
    /// Returns whether any row differs.
    ///
    /// # Errors
    /// [`ChainStoreError::UnknownBlock`] if the block is not stored; [`ChainStoreError::InvalidBlock`] if it has
    /// another number of transactions, transfers or logs, if the trace of a traced block is missing, or if its rows
    /// contradict each other; [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
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
            let counts = |block: &blocks::Model| (block.transaction_count, block.transfer_count, block.log_count);
            if counts(&models.block) != counts(&row) {
                return Err(invalid("the node returns another number of rows than are stored"));
            }
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
    let added_frames = models.block.frame_count.saturating_sub(row.frame_count);
    let new_tokens = append::new_tokens(tx, models.tokens).await?;
    models.block.into_active_model().reset_all().update(tx).await?;
    insert_all::<transactions::Entity>(tx, models.transactions).await?;
    insert_all::<logs::Entity>(tx, models.logs).await?;
    insert_all::<token_transfers::Entity>(tx, models.transfers).await?;
    insert_all::<frames::Entity>(tx, models.frames).await?;
    insert_all::<contracts::Entity>(tx, models.contracts).await?;
    insert_all::<proxy_changes::Entity>(tx, models.proxy_changes).await?;
    insert_all::<tokens::Entity>(tx, new_tokens).await?;
    if added_frames != 0 {
        move_later_blocks(tx, row.number, added_frames).await?;
    }
    Ok(())
}
