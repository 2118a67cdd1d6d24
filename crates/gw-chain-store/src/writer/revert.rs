//! Removing blocks after a reorganization.

use super::{ChainWriter, tasks};
use crate::{
    ChainStoreError, Job, JobKind,
    convert::{self, Columns, FirstIds, MetadataColumns, amount_column, metadata_column},
    dialect::{Engine, Transaction},
    entity::{
        balances, blocks, changed_blocks, contracts, frames, logs, proxy_changes, tasks as queue, token_balances,
        token_transfers, tokens, transactions,
    },
    state,
};
use gw_types::{Address, U256};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, Statement,
    sea_query::Expr,
};
use std::collections::{BTreeMap, BTreeSet};

impl ChainWriter {
    /// Removes all blocks above `ancestor`, with their rows and everything derived from them, and raises the
    /// generation, in one transaction. Returns the number of removed blocks; with 0, nothing is changed.
    ///
    /// Values that were read at a removed block (balances, supplies, metadata) are removed too, and put into the queue
    /// to be read again. A value that was read at `ancestor` or before is still right: later changes of it were either
    /// removed, or are in the queue.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn revert_to(&self, ancestor: u64) -> Result<u64, ChainStoreError> {
        let ancestor_column = convert::to_column(ancestor)?;
        let tx = self.begin().await?;
        let lowest = blocks::Entity::find()
            .filter(blocks::Column::Number.gt(ancestor_column))
            .order_by_asc(blocks::Column::Number);
        let Some(lowest) = lowest.one(&tx).await? else {
            return Ok(0);
        };
        let first = FirstIds {
            transactions: lowest.first_transaction,
            transfers: lowest.first_transfer,
            frames: lowest.first_frame,
            logs: lowest.first_log,
        };
        let removed = remove_rows(&tx, ancestor_column, first).await?;
        let mut jobs = BTreeSet::new();
        let tokens = remove_tokens(&tx, ancestor_column).await?;
        discard_token_balances(&tx, ancestor_column, &mut jobs).await?;
        discard_balances(&tx, ancestor_column, &mut jobs).await?;
        discard_token_facts(&tx, ancestor_column, &mut jobs).await?;
        remove_tasks(&tx, ancestor, &tokens).await?;
        tasks::enqueue(&tx, jobs, self.config.clock.now()).await?;
        let finalized = state::read(&tx).await?.finalized;
        if finalized.is_some_and(|finalized| finalized > ancestor_column) {
            let remains = state::head(&tx)
                .await?
                .map(|head| Columns("blocks").number("number", head.number));
            state::set_finalized(&tx, remains.transpose()?).await?;
        }
        state::raise_generation(&tx).await?;
        tx.commit().await?;
        Ok(removed)
    }
}

/// Removes the blocks above `ancestor` and their rows; returns the number of blocks.
async fn remove_rows(tx: &Transaction, ancestor: i64, first: FirstIds) -> Result<u64, ChainStoreError> {
    transactions::Entity::delete_many()
        .filter(transactions::Column::Id.gte(first.transactions))
        .exec(tx)
        .await?;
    changed_blocks::Entity::delete_many()
        .filter(changed_blocks::Column::Number.gt(ancestor))
        .exec(tx)
        .await?;
    logs::Entity::delete_many()
        .filter(logs::Column::Id.gte(first.logs))
        .exec(tx)
        .await?;
    token_transfers::Entity::delete_many()
        .filter(token_transfers::Column::Id.gte(first.transfers))
        .exec(tx)
        .await?;
    frames::Entity::delete_many()
        .filter(frames::Column::BlockNumber.gt(ancestor))
        .exec(tx)
        .await?;
    contracts::Entity::delete_many()
        .filter(contracts::Column::BlockNumber.gt(ancestor))
        .exec(tx)
        .await?;
    proxy_changes::Entity::delete_many()
        .filter(proxy_changes::Column::BlockNumber.gt(ancestor))
        .exec(tx)
        .await?;
    let blocks = blocks::Entity::delete_many()
        .filter(blocks::Column::Number.gt(ancestor))
        .exec(tx)
        .await?;
    Ok(blocks.rows_affected)
}

/// Removes the tokens whose first transfer was removed, and what was read about them; returns their addresses.
async fn remove_tokens(tx: &Transaction, ancestor: i64) -> Result<Vec<Vec<u8>>, ChainStoreError> {
    let is_removed = tokens::Column::BlockNumber.gt(ancestor);
    let addresses: Vec<Vec<u8>> = tokens::Entity::find()
        .select_only()
        .column(tokens::Column::Address)
        .filter(is_removed.clone())
        .into_tuple()
        .all(tx)
        .await?;
    for batch in addresses.chunks(Engine::for_connection(tx).batch_size(1)) {
        token_balances::Entity::delete_many()
            .filter(token_balances::Column::TokenAddress.is_in(batch.to_vec()))
            .exec(tx)
            .await?;
    }
    tokens::Entity::delete_many().filter(is_removed).exec(tx).await?;
    Ok(addresses)
}

/// Removes the balances in tokens that were read at removed blocks.
async fn discard_token_balances(
    tx: &Transaction,
    ancestor: i64,
    jobs: &mut BTreeSet<Job>,
) -> Result<(), ChainStoreError> {
    for (token, holders) in lost_holders(tx, ancestor).await? {
        let column = tokens::Column::HolderCount;
        tokens::Entity::update_many()
            .col_expr(column, Expr::col(column).sub(holders))
            .filter(tokens::Column::Address.eq(token))
            .exec(tx)
            .await?;
    }
    let is_removed = token_balances::Column::BlockNumber.gt(ancestor);
    for model in token_balances::Entity::find()
        .filter(is_removed.clone())
        .all(tx)
        .await?
    {
        let row = convert::token_balance(&model)?;
        jobs.insert(Job::TokenBalance {
            token: row.token,
            holder: row.holder,
            token_id: row.token_id,
        });
    }
    token_balances::Entity::delete_many()
        .filter(is_removed)
        .exec(tx)
        .await?;
    Ok(())
}

/// Tokens, each with the number of holders whose positive balances were all read at removed blocks.
async fn lost_holders(tx: &Transaction, ancestor: i64) -> Result<BTreeMap<Vec<u8>, i64>, ChainStoreError> {
    let sql = "SELECT token_address, holder FROM token_balances AS removed \
         WHERE block_number > $1 AND balance <> $2 AND NOT EXISTS (SELECT 1 FROM token_balances AS kept \
         WHERE kept.token_address = removed.token_address AND kept.holder = removed.holder \
         AND kept.block_number <= $1 AND kept.balance <> $2)";
    let values = [ancestor.into(), amount_column(U256::ZERO).into()];
    let statement = Statement::from_sql_and_values(tx.get_database_backend(), sql, values);
    let mut pairs = BTreeSet::new();
    for row in tx.query_all_raw(statement).await? {
        let pair: (Vec<u8>, Vec<u8>) = (row.try_get("", "token_address")?, row.try_get("", "holder")?);
        pairs.insert(pair);
    }
    let mut lost = BTreeMap::new();
    for (token, _) in pairs {
        let holders: &mut i64 = lost.entry(token).or_default();
        *holders = holders.saturating_add(1);
    }
    Ok(lost)
}

/// Removes the balances in wei that were read at removed blocks.
async fn discard_balances(tx: &Transaction, ancestor: i64, jobs: &mut BTreeSet<Job>) -> Result<(), ChainStoreError> {
    let is_removed = balances::Column::BlockNumber.gt(ancestor);
    let addresses: Vec<Vec<u8>> = balances::Entity::find()
        .select_only()
        .column(balances::Column::Address)
        .filter(is_removed.clone())
        .into_tuple()
        .all(tx)
        .await?;
    for address in addresses {
        let address = Columns("balances").address("address", &address)?;
        jobs.insert(Job::Balance { address });
    }
    balances::Entity::delete_many().filter(is_removed).exec(tx).await?;
    Ok(())
}

/// Removes metadata and supplies that were read at removed blocks.
async fn discard_token_facts(tx: &Transaction, ancestor: i64, jobs: &mut BTreeSet<Job>) -> Result<(), ChainStoreError> {
    let metadata_removed = tokens::Column::MetadataBlock.gt(ancestor);
    let supply_removed = tokens::Column::SupplyBlock.gt(ancestor);
    for token in addresses(tx, metadata_removed.clone()).await? {
        jobs.insert(Job::TokenMetadata { token });
    }
    for token in addresses(tx, supply_removed.clone()).await? {
        jobs.insert(Job::TokenSupply { token });
    }
    let bytes = || Expr::value(Option::<Vec<u8>>::None);
    tokens::Entity::update_many()
        .col_expr(
            tokens::Column::MetadataState,
            Expr::value(metadata_column(MetadataColumns::Pending)),
        )
        .col_expr(tokens::Column::Name, bytes())
        .col_expr(tokens::Column::Symbol, bytes())
        .col_expr(tokens::Column::Decimals, Expr::value(Option::<i16>::None))
        .col_expr(tokens::Column::NameKey, bytes())
        .col_expr(tokens::Column::SymbolKey, bytes())
        .col_expr(tokens::Column::MetadataBlock, Expr::value(Option::<i64>::None))
        .filter(metadata_removed)
        .exec(tx)
        .await?;
    tokens::Entity::update_many()
        .col_expr(tokens::Column::TotalSupply, bytes())
        .col_expr(tokens::Column::SupplyBlock, Expr::value(Option::<i64>::None))
        .filter(supply_removed)
        .exec(tx)
        .await?;
    Ok(())
}

/// The addresses of the tokens that meet a condition.
async fn addresses(tx: &Transaction, condition: Expr) -> Result<Vec<Address>, ChainStoreError> {
    let addresses: Vec<Vec<u8>> = tokens::Entity::find()
        .select_only()
        .column(tokens::Column::Address)
        .filter(condition)
        .into_tuple()
        .all(tx)
        .await?;
    let columns = Columns("tokens");
    addresses
        .iter()
        .map(|address| columns.address("address", address))
        .collect()
}

/// Removes the tasks about removed blocks and removed tokens.
async fn remove_tasks(tx: &Transaction, ancestor: u64, tokens: &[Vec<u8>]) -> Result<(), ChainStoreError> {
    let kind = |kind: JobKind| queue::Column::Kind.eq(kind.column());
    let first = Job::Frames { block: ancestor }.key();
    for about_block in [JobKind::Frames, JobKind::Block] {
        queue::Entity::delete_many()
            .filter(kind(about_block))
            .filter(queue::Column::Key.gt(first.clone()))
            .exec(tx)
            .await?;
    }
    for token in tokens {
        for about_token in [JobKind::TokenMetadata, JobKind::TokenSupply] {
            queue::Entity::delete_many()
                .filter(kind(about_token))
                .filter(queue::Column::Key.eq(token.clone()))
                .exec(tx)
                .await?;
        }
        // The keys that start with the address of the token.
        let end = [token.as_slice(), &[0xff; 53]].concat();
        queue::Entity::delete_many()
            .filter(kind(JobKind::TokenBalance))
            .filter(queue::Column::Key.gte(token.clone()))
            .filter(queue::Column::Key.lte(end))
            .exec(tx)
            .await?;
    }
    Ok(())
}
