//! The state of a database, for operators: read without a migration, beside running instances.

use crate::{
    ChainStoreError, JobKind, Location,
    convert::{self, Columns},
    dialect::{self, Pools, Transaction},
    entity::{blocks, tasks, writer_lease},
    lease, migration,
    rows::Block,
    state,
};
use gw_types::{Seconds, Timestamp};
use sea_orm::{
    ColumnTrait, EntityTrait, ExprTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The id of the chain; `None` if no instance has opened the database yet.
    pub chain_id: Option<u64>,
    /// The generation: it rises when ids begin to stand for other rows.
    pub generation: u64,
    /// The number of the first block; `None` while the store is empty.
    pub first: Option<u64>,
    /// The newest block.
    pub head: Option<Block>,
    /// The number of the newest block that no reorganization removes, according to the node.
    pub finalized: Option<u64>,
    /// Blocks between the first and the newest that are missing. Blocks are written in order, so each is a defect.
    pub missing_blocks: u64,
    /// Blocks whose trace is missing.
    pub blocks_without_frames: u64,
    /// The queue of work, by kind.
    pub queue: Vec<QueueStatus>,
    /// The lease of the writer; `None` if it was released.
    pub lease: Option<LeaseStatus>,
    /// The size of the database in bytes.
    pub bytes: u64,
}

/// The tasks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// The kind.
    pub kind: JobKind,
    /// The number of tasks.
    pub tasks: u64,
    /// Those that failed at least once and are tried again.
    pub failed: u64,
}

/// The lease of the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The name that the holder gave.
    pub name: String,
    /// The time since it was last renewed.
    pub age: Seconds,
    /// Whether it has not ended.
    pub is_valid: bool,
}

/// Reads the state of a database. `None` if there is no database, or none of its tables. It changes nothing.
///
/// # Errors
/// [`ChainStoreError::Schema`] if the schema is not that of this build; any database error.
pub async fn status(location: &Location, local: Timestamp) -> Result<Option<StoreStatus>, ChainStoreError> {
    let Some(pools) = Pools::open_existing(location).await? else {
        return Ok(None);
    };
    let tx = pools.begin_read().await?;
    match migration::state(&tx).await? {
        migration::SchemaState::Missing => return Ok(None),
        migration::SchemaState::Older => {
            return Err(ChainStoreError::Schema(
                "older than this build: the next start of the indexer updates it",
            ));
        }
        migration::SchemaState::Current => {}
    }
    let chain = state::read(&tx).await?;
    let columns = Columns("chain_state");
    let head = state::head(&tx).await?.map(convert::block_row).transpose()?;
    let head = head.map(|row| row.block);
    let first: Option<i64> = blocks::Entity::find()
        .select_only()
        .column(blocks::Column::Number)
        .order_by_asc(blocks::Column::Number)
        .limit(1)
        .into_tuple()
        .one(&tx)
        .await?;
    let first = Columns("blocks").optional("number", first, Columns::number)?;
    let expected = match (first, &head) {
        (Some(first), Some(head)) => head.number.saturating_sub(first).saturating_add(1),
        _ => 0,
    };
    let stored = blocks::Entity::find().count(&tx).await?;
    let without_frames = blocks::Entity::find()
        .filter(Expr::col(blocks::Column::FramesComplete).not())
        .count(&tx)
        .await?;
    Ok(Some(StoreStatus {
        chain_id: chain.chain_id.map(i64::cast_unsigned),
        generation: columns.number("generation", chain.generation)?,
        first,
        head,
        finalized: columns.optional("finalized", chain.finalized, Columns::number)?,
        missing_blocks: expected.saturating_sub(stored),
        blocks_without_frames: without_frames,
        queue: queue(&tx).await?,
        lease: lease_status(&tx, local).await?,
        bytes: dialect::size(&tx).await?,
    }))
}

async fn queue(tx: &Transaction) -> Result<Vec<QueueStatus>, ChainStoreError> {
    let mut queue = Vec::with_capacity(JobKind::ALL.len());
    for kind in JobKind::ALL {
        let of_kind = tasks::Entity::find().filter(tasks::Column::Kind.eq(kind.column()));
        queue.push(QueueStatus {
            kind,
            tasks: of_kind.clone().count(tx).await?,
            failed: of_kind.filter(tasks::Column::Attempts.gt(0)).count(tx).await?,
        });
    }
    Ok(queue)
}

async fn lease_status(tx: &Transaction, local: Timestamp) -> Result<Option<LeaseStatus>, ChainStoreError> {
    let row = writer_lease::Entity::find_by_id(1).one(tx).await?;
    let Some(row) = row.filter(|row| row.holder.is_some()) else {
        return Ok(None);
    };
    let now = dialect::lease_time(tx, local).await?;
    let left = row.expires_at.saturating_sub(now.micros());
    let age = i64::from(lease::DURATION.0).saturating_sub(left / 1_000_000);
    Ok(Some(LeaseStatus {
        name: row.name,
        age: Seconds(u32::try_from(age).unwrap_or(0)),
        is_valid: left > 0,
    }))
}
