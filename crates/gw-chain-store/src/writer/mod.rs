//! The writer: one at a time among all instances.

mod append;
mod frames;
mod readings;
mod replace;
mod revert;
pub(crate) mod tasks;

pub use frames::{BlockFrames, TransactionTrace};
pub use readings::Reading;

use crate::{
    ChainStoreConfig, ChainStoreError, convert,
    dialect::{Engine, Pools, ProcessLock, Transaction},
    entity::blocks,
    lease,
    rows::BlockNumHash,
    state,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DbErr, EntityTrait, IntoActiveModel, Iterable, PaginatorTrait, QueryFilter,
};
use std::sync::Arc;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Writes to the chain store; cheap to clone. Holds the lease of the writer until it is released or ends because it was
/// not renewed. Each write renews it. Once all clones are dropped, or their process ended, another instance takes the
/// lease without waiting for its end. After [`ChainStoreError::LeaseLost`] nothing can be written any more.
#[derive(Clone, Debug)]
pub struct ChainWriter {
    pools: Pools,
    config: Arc<ChainStoreConfig>,
    holder: Uuid,
    /// `None` while the lock cannot be used: the lease ends by its time alone then.
    lock: Arc<Mutex<Option<ProcessLock>>>,
}

impl ChainWriter {
    pub(crate) async fn acquire(
        pools: &Pools,
        config: &Arc<ChainStoreConfig>,
        name: &str,
    ) -> Result<Self, ChainStoreError> {
        let lock = pools.try_lock().await;
        let holder = config.entropy.uuid();
        let tx = pools.begin_write().await?;
        lease::acquire(&tx, holder, name, lock.is_some(), config.clock.now()).await?;
        tasks::release_claims(&tx, config.clock.now()).await?;
        tx.commit().await?;
        Ok(Self {
            pools: pools.clone(),
            config: Arc::clone(config),
            holder,
            lock: Arc::new(Mutex::new(lock)),
        })
    }

    /// Renews the lease; to be called every few seconds while there is nothing to write. It ends 30 seconds after the
    /// last write or renewal.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn renew(&self) -> Result<(), ChainStoreError> {
        self.begin().await?.commit().await?;
        let mut lock = self.lock.lock().await;
        let is_held = match &mut *lock {
            Some(lock) => lock.is_held().await,
            None => false,
        };
        if !is_held {
            // The old connection, if any, is closed first: it may be alive without having answered in time.
            *lock = None;
            *lock = self.pools.try_lock().await;
        }
        Ok(())
    }

    /// Releases the lease, so that another instance need not wait for its end.
    ///
    /// # Errors
    /// Any database error.
    pub async fn release(&self) -> Result<(), ChainStoreError> {
        let tx = self.pools.begin_write().await?;
        lease::release(&tx, self.holder).await?;
        tx.commit().await?;
        *self.lock.lock().await = None;
        Ok(())
    }

    /// Notes that no reorganization removes this block or an earlier one, according to the node.
    ///
    /// # Errors
    /// [`ChainStoreError::UnknownBlock`] if the block is not stored; [`ChainStoreError::LeaseLost`] if another instance
    /// took the lease; any database error.
    pub async fn set_finalized(&self, block: BlockNumHash) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        require_block(&tx, block).await?;
        state::set_finalized(&tx, Some(block.number)).await?;
        Ok(tx.commit().await?)
    }

    /// Removes all blocks, everything derived from them, and all tasks. Raises the generation.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn wipe(&self) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        state::wipe(&tx).await?;
        Ok(tx.commit().await?)
    }

    /// Begins a transaction of the holder of the lease.
    async fn begin(&self) -> Result<Transaction, ChainStoreError> {
        let tx = self.pools.begin_write().await?;
        lease::renew(&tx, self.holder, self.config.clock.now()).await?;
        Ok(tx)
    }
}

/// # Errors
/// [`ChainStoreError::UnknownBlock`] if the block is not stored; any database error.
async fn require_block(tx: &Transaction, block: BlockNumHash) -> Result<(), ChainStoreError> {
    let stored = blocks::Entity::find_by_id(convert::to_column(block.number)?)
        .filter(blocks::Column::Hash.eq(block.hash.to_vec()))
        .count(tx)
        .await?;
    match stored {
        0 => Err(ChainStoreError::UnknownBlock { block: block.number }),
        _ => Ok(()),
    }
}

/// Inserts rows in statements of limited size. There are few different sizes, so that drivers find the statements
/// prepared.
async fn insert_all<E>(tx: &Transaction, models: Vec<E::Model>) -> Result<(), DbErr>
where
    E: EntityTrait,
    E::Model: IntoActiveModel<E::ActiveModel>,
    E::ActiveModel: Send,
{
    let limit = Engine::for_connection(tx).batch_size(E::Column::iter().count());
    let mut models = models.into_iter();
    while models.len() > 0 {
        let size = limit.min(models.len());
        // A power of four.
        let size = 1 << (size.ilog2() & !1);
        let rows = models
            .by_ref()
            .take(size)
            .map(|model| model.into_active_model().reset_all());
        E::insert_many(rows).exec_without_returning(tx).await?;
    }
    Ok(())
}
