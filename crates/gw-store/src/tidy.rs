//! Clearing away what has no meaning any more. Nothing depends on it: expiry is judged at use (A8).

use crate::{
    Actor, Store, StoreError,
    dialect::Engine,
    entity::{personal_urls, refresh_tokens, reservations, revocations, watched_sends},
    record::ReservationState,
};
use gw_types::{Epoch, Seconds};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter};

/// Feeds that are further behind than this many epochs load everything anew.
const KEPT_EPOCHS: u64 = 100_000;
/// How long settled reservations are kept for people to look at.
const KEPT_RESERVATIONS: Seconds = Seconds(7 * 86_400);

/// How long sends are watched that were found in a block, and how long those that were not.
const KEPT_SETTLED: Seconds = Seconds(86_400);
const KEPT_AWAITED: Seconds = Seconds(30 * 86_400);

impl Store {
    /// Removes expired tokens, spent revocations, long settled reservations and change rows nobody needs.
    pub async fn tidy(&self) -> Result<(), StoreError> {
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
        let over = personal_urls::Column::ExpiresAt.lt(now.micros());
        personal_urls::Entity::delete_many().filter(over).exec(&tx.db).await?;
        let open = [ReservationState::Reserved, ReservationState::Sent].map(ReservationState::as_str);
        reservations::Entity::delete_many()
            .filter(reservations::Column::State.is_not_in(open))
            .filter(reservations::Column::CreatedAt.lt(now.minus(KEPT_RESERVATIONS).micros()))
            .exec(&tx.db)
            .await?;
        // A send that was never mined may be replaced any day; one that was is kept until no instance is that far behind.
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
            tx.db.execute_raw(Engine::of(&tx.db).statement(sql)).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
