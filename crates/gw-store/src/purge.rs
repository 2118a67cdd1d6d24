//! Removal of expired rows. Nothing depends on it: expiry is checked at use (A8).

use crate::{
    Actor, Store, StoreError,
    dialect::Engine,
    entity::{personal_urls, refresh_tokens, reservations, revocations, watched_sends},
    record::ReservationState,
};
use gw_types::{Epoch, Seconds};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter};

/// Feeds that are further behind than this many epochs load all policy again.
const KEPT_EPOCHS: u64 = 100_000;
/// How long settled reservations are kept for inspection.
const KEPT_RESERVATIONS: Seconds = Seconds(7 * 86_400);

/// How long sends are watched that were found in a block (`KEPT_SETTLED`), and that were not (`KEPT_AWAITED`).
const KEPT_SETTLED: Seconds = Seconds(86_400);
const KEPT_AWAITED: Seconds = Seconds(30 * 86_400);

impl Store {
    /// Removes expired tokens and personal URLs, spent revocations, old settled reservations, old watched sends and old
    /// change rows.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn purge_expired(&self) -> Result<(), StoreError> {
        let tx = self.begin(&Actor::named(gw_audit::SYSTEM_RETENTION)).await?;
        let now = tx.now();
        refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::ExpiresAt.lt(now.micros()))
            .exec(&tx.db)
            .await?;
        revocations::Entity::delete_many()
            .filter(revocations::Column::Until.lt(now.micros()))
            .exec(&tx.db)
            .await?;
        let expired = personal_urls::Column::ExpiresAt.lt(now.micros());
        personal_urls::Entity::delete_many()
            .filter(expired)
            .exec(&tx.db)
            .await?;
        let open = [ReservationState::Reserved, ReservationState::Sent].map(ReservationState::as_str);
        reservations::Entity::delete_many()
            .filter(reservations::Column::State.is_not_in(open))
            .filter(reservations::Column::CreatedAt.lt(now.minus(KEPT_RESERVATIONS).micros()))
            .exec(&tx.db)
            .await?;
        // A send that was never mined may be replaced any day; a mined one is kept until no instance is that far
        // behind.
        let block = watched_sends::Column::BlockNumber;
        let created = watched_sends::Column::CreatedAt;
        let settled = Condition::all()
            .add(block.is_not_null())
            .add(created.lt(now.minus(KEPT_SETTLED).micros()));
        let awaited = Condition::all()
            .add(block.is_null())
            .add(created.lt(now.minus(KEPT_AWAITED).micros()));
        let watched = Condition::any().add(settled).add(awaited);
        watched_sends::Entity::delete_many()
            .filter(watched)
            .exec(&tx.db)
            .await?;
        let oldest = Epoch(tx.head().0.saturating_sub(KEPT_EPOCHS));
        for table in ["policy_changes", "policy_history"] {
            let sql = format!("DELETE FROM {table} WHERE epoch < {oldest}");
            tx.db.execute_raw(Engine::for_connection(&tx.db).statement(sql)).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
