//! Leases of live instances (HD24): an instance without a shared cache, or on SQLite, must be the only one. Leases use
//! the database's clock if it has one: an instance whose own clock is an hour ahead neither ends another's lease nor
//! keeps its own too long.

use crate::{
    Store, StoreError,
    dialect::{self, Engine},
    entity::instances,
};
use gw_types::Seconds;
use sea_orm::{ActiveValue::Set, ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, sea_query::Expr};
use uuid::Uuid;

/// A held lease; renew it well before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceLease {
    id: Uuid,
    alone: bool,
}

impl InstanceLease {
    /// Whether no other instance was alive when this one started.
    pub const fn began_alone(&self) -> bool {
        self.alone
    }
}

impl Store {
    /// Takes a lease for this process; other instances show `name`. Fails with [`StoreError::OtherInstance`] while
    /// another instance is alive and either of the two has no shared cache.
    ///
    /// # Errors
    /// [`StoreError::OtherInstance`] if another live instance holds the lease; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn take_lease(&self, name: &str, shared_cache: bool, life: Seconds) -> Result<InstanceLease, StoreError> {
        let tx = self.inner.pools.begin_write().await?;
        // The lock on the epoch row keeps two starting instances from both finding no other.
        dialect::lock_epoch(&tx).await?;
        let now = dialect::lease_time(&tx, self.inner.now()).await?;
        // No instance takes a lease for twice its duration: such a row was written by hand, to keep instances from
        // starting.
        let possible = now.plus(life).plus(life).micros();
        let impossible = instances::Column::ExpiresAt.gt(possible);
        for row in instances::Entity::find().filter(impossible.clone()).all(&tx).await? {
            tracing::warn!(
                instance = row.name,
                expires_at = row.expires_at,
                "a row of `instances` in the policy database expires later than any instance sets: the likely cause is \
                 manual SQL or a clock that was far ahead; the row is deleted; check the clocks of all instances"
            );
        }
        let ended = Condition::any()
            .add(instances::Column::ExpiresAt.lte(now.micros()))
            .add(impossible);
        instances::Entity::delete_many().filter(ended).exec(&tx).await?;
        let others = instances::Entity::find()
            .order_by_asc(instances::Column::StartedAt)
            .all(&tx)
            .await?;
        let may_share = shared_cache && Engine::for_connection(&tx).serves_many();
        if let Some(other) = others.iter().find(|other| !(may_share && other.shared_cache)) {
            return Err(StoreError::OtherInstance(other.name.clone()));
        }
        let id = self.inner.config.entropy.uuid();
        let row = instances::ActiveModel {
            id: Set(id),
            name: Set(name.to_owned()),
            shared_cache: Set(shared_cache),
            started_at: Set(now.micros()),
            expires_at: Set(now.plus(life).micros()),
        };
        instances::Entity::insert(row).exec_without_returning(&tx).await?;
        tx.commit().await?;
        Ok(InstanceLease {
            id,
            alone: others.is_empty(),
        })
    }

    /// Renews a lease; fails with [`StoreError::OtherInstance`] if it had expired and was removed.
    ///
    /// # Errors
    /// [`StoreError::OtherInstance`] if another instance took the lease; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn renew_lease(&self, lease: InstanceLease, life: Seconds) -> Result<(), StoreError> {
        let end = dialect::lease_time(&self.inner.pools.writer, self.inner.now())
            .await?
            .plus(life);
        let renewed = instances::Entity::update_many()
            .col_expr(instances::Column::ExpiresAt, Expr::value(end.micros()))
            .filter(instances::Column::Id.eq(lease.id))
            .exec(&self.inner.pools.writer)
            .await?;
        match renewed.rows_affected {
            0 => Err(StoreError::OtherInstance("this instance's lease ended".to_owned())),
            _ => Ok(()),
        }
    }

    /// Releases a lease.
    ///
    /// # Errors
    /// Any database error.
    pub async fn release_lease(&self, lease: InstanceLease) -> Result<(), StoreError> {
        instances::Entity::delete_by_id(lease.id)
            .exec(&self.inner.pools.writer)
            .await?;
        Ok(())
    }
}
