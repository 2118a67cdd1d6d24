//! Seals entries: a writer claims a chain, and inserts entries at its end.
//!
//! Invariant: entries of a chain are inserted in the transaction that moves the chain's end from the first to after the
//! last of them, and only by the holder of the newest fence. So a crash at any point neither loses nor repeats an entry
//! (spec/70 rule 13), and a replaced writer cannot fork the chain.

use super::{
    chain_rows::{chain_row, head_of, raised, signed, unsigned},
    columns::Columns,
    store::AuditStore,
};
use crate::{
    StoreError, dialect,
    entity::{chains, entries},
};
use gw_audit::{ChainId, Hash, Head, StoredEntry};
use gw_types::Seconds;
use sea_orm::{
    ActiveModelTrait,
    ActiveValue::Set,
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter,
    sea_query::{Expr, OnConflict},
};

/// Number of columns in a row of `entries`.
const COLUMNS: usize = 21;

/// A writer's claim on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The chain.
    pub chain: ChainId,
    /// Fencing token; each write checks that no other writer took the chain over.
    pub fence: u64,
    /// The end of the sealed part; `None` if nothing is sealed yet.
    pub head: Option<Head>,
    /// The highest sequence number that a writer of the chain is known to have issued (HD25).
    pub issued: Option<u64>,
}

/// An entry to seal.
#[derive(Clone, Debug)]
pub struct ToSeal {
    /// The entry.
    pub entry: StoredEntry,
}

impl AuditStore {
    /// Claims a chain for writing and creates it if needed. The previous holder is fenced off. Fails with
    /// [`StoreError::OtherInstance`] while another holder's lease lasts, by the database's clock if it has one.
    ///
    /// # Errors
    /// [`StoreError::OtherInstance`] if another writer holds the chain; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn claim(&self, chain: ChainId, holder: &str, life: Seconds) -> Result<Claim, StoreError> {
        let tx = self.pools.begin_write().await?;
        let now = dialect::lease_time(&tx, self.config.clock.now()).await?;
        let fresh = chains::ActiveModel {
            id: self.next_id(&tx, "chains").await?,
            stream: Set(chain.stream.as_str().to_owned()),
            shard: Set(chain.shard.0),
            fence: Set(0),
            holder: Set(holder.to_owned()),
            leased_until: Set(0),
            issued: Set(-1),
            size: Set(0),
            head_hash: Set(Hash::ZERO.to_vec()),
            head_time: Set(0),
        };
        let on_conflict = OnConflict::columns([chains::Column::Stream, chains::Column::Shard])
            .do_nothing()
            .to_owned();
        chains::Entity::insert(fresh)
            .on_conflict(on_conflict)
            .try_insert()
            .exec_without_returning(&tx)
            .await?;
        let row = chain_row(&tx, chain, true).await?;
        // No holder takes a longer lease: a longer one was written by an attacker to keep the chain from being sealed.
        let possible = now.plus(life).plus(life).micros();
        if row.holder != holder && row.leased_until > now.micros() && row.leased_until <= possible {
            return Err(StoreError::OtherInstance(row.holder));
        }
        let issued = u64::try_from(row.issued).ok();
        let head = head_of(&row)?;
        // A restored store may have issued higher fences before: the clock keeps new fences above them.
        let fence = row.fence.saturating_add(1).max(now.micros());
        let mut row = row.into_active_model();
        row.fence = Set(fence);
        row.holder = Set(holder.to_owned());
        row.leased_until = Set(now.plus(life).micros());
        row.update(&tx).await?;
        tx.commit().await?;
        Ok(Claim {
            chain,
            fence: unsigned(fence, "fence")?,
            head,
            issued,
        })
    }

    /// Renews a claim and stores the highest sequence number issued so far. Fails with [`StoreError::Fenced`] if
    /// another writer took over.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the chain over; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn renew(&self, claim: &Claim, issued: Option<u64>, life: Seconds) -> Result<(), StoreError> {
        let end = dialect::lease_time(&self.pools.writer, self.config.clock.now())
            .await?
            .plus(life);
        let renewed = chains::Entity::update_many()
            .col_expr(chains::Column::LeasedUntil, Expr::value(end.micros()))
            .col_expr(
                chains::Column::Issued,
                issued.map_or_else(|| Expr::col(chains::Column::Issued), raised),
            )
            .filter(of_claim(claim))
            .exec(&self.pools.writer)
            .await?;
        if renewed.rows_affected == 1 {
            Ok(())
        } else {
            Err(StoreError::Fenced)
        }
    }

    /// Seals entries that continue the chain, all or none. Fails with [`StoreError::ChainMoved`] if the stored chain
    /// ends elsewhere, with [`StoreError::Fenced`] if another writer took over.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the chain over; [`StoreError::ChainMoved`] if the chain does not
    /// end where the batch begins; [`StoreError::Rule`] if the batch is out of order or holds a malformed entry;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn insert_sealed(&self, claim: &Claim, batch: &[ToSeal]) -> Result<(), StoreError> {
        let Some((first, last)) = ends(claim.chain, batch)? else {
            return Ok(());
        };
        let tx = self.pools.begin_write().await?;
        let moved = chains::Entity::update_many()
            .col_expr(
                chains::Column::Size,
                Expr::value(signed(last.header.seq.saturating_add(1))),
            )
            .col_expr(chains::Column::HeadHash, Expr::value(last.hash.to_vec()))
            .col_expr(chains::Column::HeadTime, Expr::value(last.header.time.micros()))
            .col_expr(chains::Column::Issued, raised(last.header.seq))
            .filter(of_claim(claim))
            .filter(chains::Column::Size.eq(signed(first.header.seq)))
            .filter(chains::Column::HeadHash.eq(first.header.prev.to_vec()))
            .exec(&tx)
            .await?;
        let row = chain_row(&tx, claim.chain, false).await?;
        if moved.rows_affected != 1 {
            let fenced = unsigned(row.fence, "fence")? != claim.fence;
            let stored = unsigned(row.size, "size")?;
            return Err(if fenced {
                StoreError::Fenced
            } else {
                StoreError::ChainMoved { stored }
            });
        }
        let mut rows = Vec::with_capacity(batch.len());
        for ToSeal { entry } in batch {
            let columns = Columns::from_entry(entry).map_err(|_| StoreError::Rule("entry"))?;
            rows.push(columns.row(row.id, signed(entry.header.seq), entry));
        }
        if let Some(first) = self.free_id(&tx, "entries").await? {
            for (row, id) in rows.iter_mut().zip(first..) {
                row.id = Set(id);
            }
        }
        while !rows.is_empty() {
            let rest = rows.split_off(self.pools.engine.batch_size(rows.len(), COLUMNS));
            if let Err(error) = entries::Entity::insert_many(rows).exec_without_returning(&tx).await {
                // A role without permission to read the sequence detects its exhaustion here.
                if dialect::is_numbering(&error) {
                    self.watch.distrust("entries");
                }
                return Err(error.into());
            }
            rows = rest;
        }
        tx.commit().await
    }
}

/// Returns the first and last entry of a batch; fails if the batch has gaps.
fn ends(chain: ChainId, batch: &[ToSeal]) -> Result<Option<(&StoredEntry, &StoredEntry)>, StoreError> {
    let follows = |pair: &[ToSeal]| match pair {
        [one, next] => {
            next.entry.header.seq == one.entry.header.seq.saturating_add(1) && next.entry.header.prev == one.entry.hash
        }
        _ => true,
    };
    let own = batch.iter().all(|sealed| sealed.entry.header.chain == chain);
    if !own || !batch.windows(2).all(follows) {
        return Err(StoreError::Rule("batch_in_order"));
    }
    Ok(batch
        .first()
        .zip(batch.last())
        .map(|(first, last)| (&first.entry, &last.entry)))
}

/// The condition that the row of a chain still has the fence of this claim.
fn of_claim(claim: &Claim) -> sea_orm::Condition {
    sea_orm::Condition::all()
        .add(chains::Column::Stream.eq(claim.chain.stream.as_str()))
        .add(chains::Column::Shard.eq(claim.chain.shard.0))
        .add(chains::Column::Fence.eq(signed(claim.fence)))
}
