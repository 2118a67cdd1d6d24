//! Conversion of rows to a [`Snapshot`]: all rows, or those that changed since an epoch (HD23 E-1, E-3).
//!
//! Invariant: head, change rows and rows are read in one transaction that sees one state of a primary, so the result
//! belongs to exactly the epoch it carries.

mod rows;
mod tables;

use crate::{
    StoreError,
    dialect::{self, Engine, HistoryId, PolicyHead, Pools, Transaction},
    feed_rules::{Succession, is_gapless, succession},
};
use gw_policy::{Change, Snapshot};
use gw_types::Epoch;
use sea_orm::{ConnectionTrait, Statement, Value};
use std::collections::BTreeMap;
use tables::Entity;
pub(crate) use tables::recorded_tables;
use uuid::Uuid;

/// Changes since an epoch.
#[derive(Debug)]
pub(crate) enum ChangesSince {
    /// Nothing.
    Nothing,
    /// These rows changed; they belong to the returned head.
    Changes(Vec<Change>),
    /// Some steps in between are missing or unknown: a full load is needed (E-1).
    Broken(&'static str),
}

/// Loads all policy, with the head it was read at.
pub(crate) async fn load(pools: &Pools) -> Result<(Snapshot, PolicyHead), StoreError> {
    let tx = pools.begin_read().await?;
    let head = primary_head(&tx).await?;
    let mut snapshot = Snapshot::default();
    for entity in Entity::ALL {
        snapshot = tables::load_all(&tx, entity, snapshot, head.epoch).await?;
    }
    tx.rollback().await?;
    Ok((snapshot.apply(head.epoch, []), head))
}

/// Returns the head, and the changes after the epoch `from` with this stamp.
pub(crate) async fn changes_since(
    pools: &Pools,
    from: Epoch,
    stamp: HistoryId,
) -> Result<(PolicyHead, ChangesSince), StoreError> {
    let tx = pools.begin_read().await?;
    let head = primary_head(&tx).await?;
    let recorded = if head.epoch == from {
        Some(head.stamp)
    } else {
        dialect::stamp(&tx, from).await?
    };
    let since = match succession(from, stamp, head.epoch, recorded) {
        Succession::Same => ChangesSince::Nothing,
        Succession::Later => read_changes(&tx, from, head.epoch).await?,
        Succession::WentBack => ChangesSince::Broken("the head went back"),
        Succession::Another => ChangesSince::Broken("the history is another one"),
    };
    tx.rollback().await?;
    Ok((head, since))
}

async fn primary_head(tx: &Transaction) -> Result<PolicyHead, StoreError> {
    let head = dialect::head(tx).await?;
    if head.primary {
        Ok(head)
    } else {
        Err(StoreError::NotPrimary)
    }
}

async fn read_changes(tx: &Transaction, from: Epoch, to: Epoch) -> Result<ChangesSince, StoreError> {
    let rows = tx
        .query_all_raw(Statement::from_sql_and_values(
            Engine::for_connection(tx).backend(),
            "SELECT epoch, entity, row_id FROM policy_changes WHERE epoch > $1 AND epoch <= $2 ORDER BY epoch",
            [signed(from), signed(to)],
        ))
        .await?;
    let mut epochs = Vec::with_capacity(rows.len());
    let mut changed: BTreeMap<Entity, Vec<Uuid>> = BTreeMap::new();
    for row in rows {
        let epoch: i64 = row.try_get("", "epoch")?;
        epochs.push(u64::try_from(epoch).ok().map(Epoch));
        let entity: String = row.try_get("", "entity")?;
        let Some(entity) = Entity::parse(&entity) else {
            return Ok(ChangesSince::Broken("a change names an unknown entity"));
        };
        changed.entry(entity).or_default().push(row.try_get("", "row_id")?);
    }
    if !is_gapless(from, to, epochs) {
        return Ok(ChangesSince::Broken("an epoch is missing"));
    }
    let mut changes = Vec::new();
    let mut present = Vec::new();
    for (entity, mut ids) in changed {
        ids.sort_unstable();
        ids.dedup();
        tables::load_some(tx, entity, &ids, &mut changes, &mut present).await?;
    }
    // Removals first: a name or address that moved to another row must not be removed with the old one.
    changes.append(&mut present);
    Ok(ChangesSince::Changes(changes))
}

fn signed(epoch: Epoch) -> Value {
    i64::try_from(epoch.0).unwrap_or(i64::MAX).into()
}
