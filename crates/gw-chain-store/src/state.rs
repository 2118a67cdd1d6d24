//! The numbers of the whole store, its newest block, and its wipe.

use crate::{
    ChainStoreError, convert,
    dialect::{Engine, Transaction},
    entity::{blocks, chain_state, changed_blocks},
    migration::CHAIN_TABLES,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryOrder,
    sea_query::{Expr, OnConflict},
};

/// Reads the one row of `chain_state`.
pub(crate) async fn read(tx: &Transaction) -> Result<chain_state::Model, ChainStoreError> {
    let row = chain_state::Entity::find_by_id(1).one(tx).await?;
    row.ok_or(ChainStoreError::Schema("without its state"))
}

/// Sets the chain of an empty store.
pub(crate) async fn set_chain(tx: &Transaction, chain_id: u64) -> Result<(), ChainStoreError> {
    set(tx, chain_state::Column::ChainId, Some(chain_id.cast_signed())).await
}

/// Sets the newest finalized block.
pub(crate) async fn set_finalized(tx: &Transaction, number: Option<u64>) -> Result<(), ChainStoreError> {
    let number = number.map(convert::to_column).transpose()?;
    set(tx, chain_state::Column::Finalized, number).await
}

async fn set(tx: &Transaction, column: chain_state::Column, value: Option<i64>) -> Result<(), ChainStoreError> {
    chain_state::Entity::update_many()
        .col_expr(column, Expr::value(value))
        .filter(chain_state::Column::Id.eq(1))
        .exec(tx)
        .await?;
    Ok(())
}

/// Raises the generation: ids taken before stand for other rows from now on.
pub(crate) async fn raise_generation(tx: &Transaction) -> Result<(), ChainStoreError> {
    let column = chain_state::Column::Generation;
    chain_state::Entity::update_many()
        .col_expr(column, Expr::col(column).add(1))
        .filter(chain_state::Column::Id.eq(1))
        .exec(tx)
        .await?;
    Ok(())
}

/// Raises the generation because the ids of rows of this block and of later blocks stand for other rows now.
pub(crate) async fn note_changed_block(tx: &Transaction, number: i64) -> Result<(), ChainStoreError> {
    raise_generation(tx).await?;
    let row = changed_blocks::Model {
        number,
        generation: read(tx).await?.generation,
    };
    let newer = OnConflict::column(changed_blocks::Column::Number)
        .update_column(changed_blocks::Column::Generation)
        .to_owned();
    changed_blocks::Entity::insert_many([row.into_active_model().reset_all()])
        .on_conflict(newer)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Reads the newest block.
pub(crate) async fn head(tx: &Transaction) -> Result<Option<blocks::Model>, ChainStoreError> {
    let newest = blocks::Entity::find().order_by_desc(blocks::Column::Number);
    Ok(newest.one(tx).await?)
}

/// Removes all rows of the chain and of the queue, and raises the generation.
pub(crate) async fn wipe(tx: &Transaction) -> Result<(), ChainStoreError> {
    for sql in Engine::for_connection(tx).clear(&CHAIN_TABLES) {
        tx.execute_unprepared(&sql).await?;
    }
    set_finalized(tx, None).await?;
    raise_generation(tx).await
}
