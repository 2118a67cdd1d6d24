//! What became of sends once they were mined (HD2).

use super::{
    Tx,
    entry::{Action, WithReason},
};
use crate::{
    Missing, StoreError,
    entity::{contracts, quarantines, suspensions, watched_sends},
    record::{Finding, Quarantine, Suspension},
    row,
};
use gw_types::{QuarantineId, SuspensionId, WatchId};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, sea_query::Expr};

impl Tx {
    /// The sender loses the right to send, and what may be loot is closed. Whoever is suspended already, and what is
    /// closed already, stays so for its first reason.
    pub async fn record_finding(&mut self, finding: &Finding) -> Result<(), StoreError> {
        let (tx_hash, block_hash) = (finding.tx_hash.to_string(), finding.block_hash.to_string());
        let known = suspensions::Entity::find().filter(suspensions::Column::UserId.eq(finding.user.0));
        if known.one(&self.db).await?.is_none() {
            let made = suspensions::Model {
                id: self.new_id(),
                user_id: finding.user.0,
                org_id: Some(finding.org.0),
                tx_hash: tx_hash.clone(),
                block_hash: block_hash.clone(),
                reason: finding.reason.to_owned(),
                created_at: self.now.micros(),
            };
            let made = Suspension::try_from(made.into_active_model().reset_all().insert(&self.db).await?)?;
            self.note(Action::Create, made.org, None, Some(&made));
        }
        for address in &finding.tainted {
            let address = row::address_text(*address);
            let known = quarantines::Entity::find().filter(quarantines::Column::Address.eq(&address));
            if known.one(&self.db).await?.is_some() {
                continue;
            }
            let owner = contracts::Entity::find().filter(contracts::Column::Address.eq(&address));
            let owner = owner.one(&self.db).await?.map_or(finding.org.0, |contract| contract.org_id);
            let made = quarantines::Model {
                id: self.new_id(),
                address,
                org_id: Some(owner),
                tx_hash: tx_hash.clone(),
                block_hash: block_hash.clone(),
                reason: finding.reason.to_owned(),
                created_at: self.now.micros(),
            };
            let made = Quarantine::try_from(made.into_active_model().reset_all().insert(&self.db).await?)?;
            self.note(Action::Create, made.org, None, Some(&made));
        }
        Ok(())
    }

    /// The sends were found in this block.
    pub async fn settle_watched(&mut self, ids: &[WatchId], block_number: u64) -> Result<(), StoreError> {
        let number = i64::try_from(block_number).unwrap_or(i64::MAX);
        watched_sends::Entity::update_many()
            .col_expr(watched_sends::Column::BlockNumber, Expr::value(number))
            .filter(watched_sends::Column::Id.is_in(ids.iter().map(|id| id.0)))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// Gives a user the right to send back.
    pub async fn lift_suspension(&mut self, id: SuspensionId, reason: &str) -> Result<(), StoreError> {
        let row = suspensions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Suspension))?;
        let before = Suspension::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, before.org, Some(&WithReason { record: &before, reason }), None);
        Ok(())
    }

    /// Opens an address again.
    pub async fn lift_quarantine(&mut self, id: QuarantineId, reason: &str) -> Result<(), StoreError> {
        let row = quarantines::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = Quarantine::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, before.org, Some(&WithReason { record: &before, reason }), None);
        Ok(())
    }
}
