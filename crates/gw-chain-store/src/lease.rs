//! The lease of the writer: one instance at a time writes.
//!
//! Each transaction that writes renews the lease first. This locks its row until the commit, so the lease cannot change
//! hands between the check and the commit.
//!
//! A lease ends 30 seconds after it was last renewed. The lock of the writer's process
//! ([`ProcessLock`](dialect::ProcessLock)) shows earlier that the holder is gone.

use crate::{
    ChainStoreError,
    dialect::{self, Transaction},
    entity::writer_lease as lease,
};
use gw_types::{Seconds, Timestamp};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, sea_query::Expr};
use uuid::Uuid;

/// How long a lease lasts after it was last renewed.
pub(crate) const DURATION: Seconds = Seconds(30);

/// Takes the lease for this holder. `has_lock` says that it holds the lock of the writer's process: then the process of
/// another holder has ended, or lost the lock, and its lease does not count.
///
/// # Errors
/// [`ChainStoreError::OtherWriter`] if another holder's lease has not ended; any database error.
pub(crate) async fn acquire(
    tx: &Transaction,
    holder: Uuid,
    name: &str,
    has_lock: bool,
    local: Timestamp,
) -> Result<(), ChainStoreError> {
    let now = dialect::lease_time(tx, local).await?;
    // No instance sets a later end: a clock that was ahead set it, or manual SQL.
    let longest = now.plus(DURATION).plus(DURATION);
    let mut is_free = Condition::any()
        .add(lease::Column::Holder.is_null())
        .add(lease::Column::ExpiresAt.lte(now.micros()))
        .add(lease::Column::ExpiresAt.gt(longest.micros()));
    if has_lock {
        is_free = Condition::all();
    }
    let taken = lease::Entity::update_many()
        .col_expr(lease::Column::Holder, Expr::value(holder))
        .col_expr(lease::Column::Name, Expr::value(name))
        .col_expr(lease::Column::ExpiresAt, Expr::value(now.plus(DURATION).micros()))
        .filter(lease::Column::Id.eq(1))
        .filter(is_free)
        .exec(tx)
        .await?;
    if taken.rows_affected == 1 {
        return Ok(());
    }
    let row = lease::Entity::find_by_id(1).one(tx).await?;
    Err(row.map_or(ChainStoreError::Schema("without its lease"), |row| {
        ChainStoreError::OtherWriter { name: row.name }
    }))
}

/// Renews the lease of this holder. A lease that has ended is renewed too, unless another holder took it.
///
/// # Errors
/// [`ChainStoreError::LeaseLost`] if another holder took it; any database error.
pub(crate) async fn renew(tx: &Transaction, holder: Uuid, local: Timestamp) -> Result<(), ChainStoreError> {
    let end = dialect::lease_time(tx, local).await?.plus(DURATION);
    let renewed = lease::Entity::update_many()
        .col_expr(lease::Column::ExpiresAt, Expr::value(end.micros()))
        .filter(lease::Column::Id.eq(1))
        .filter(lease::Column::Holder.eq(holder))
        .exec(tx)
        .await?;
    match renewed.rows_affected {
        0 => Err(ChainStoreError::LeaseLost),
        _ => Ok(()),
    }
}

/// Ends the lease of this holder, if it still has it.
///
/// # Errors
/// Any database error.
pub(crate) async fn release(tx: &Transaction, holder: Uuid) -> Result<(), ChainStoreError> {
    lease::Entity::update_many()
        .col_expr(lease::Column::Holder, Expr::value(Option::<Uuid>::None))
        .filter(lease::Column::Id.eq(1))
        .filter(lease::Column::Holder.eq(holder))
        .exec(tx)
        .await?;
    Ok(())
}
