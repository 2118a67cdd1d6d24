//! What became of sends once they were mined (HD2, HD28).

use super::{
    Tx,
    entry::{Action, WithReason},
};
use crate::{
    Missing, StoreError,
    entity::{contracts, convictions, quarantines, suspensions, watched_sends},
    record::{Conviction, Finding, Quarantine, Suspension},
    row,
};
use gw_types::{B256, ConvictionId, OrgId, QuarantineId, SuspensionId, WatchId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter,
    sea_query::Expr,
};
use serde_json::json;

impl Tx {
    /// The transaction is withheld, its sender loses the right to send, and what may be loot is closed. What was found of
    /// the same transaction in the same block already stays as it is, cleared or not: each instance looks for itself.
    pub async fn record_finding(&mut self, finding: &Finding) -> Result<(), StoreError> {
        let Some(conviction) = self.convict(finding).await? else { return Ok(()) };
        if finding.suspends {
            self.suspend(finding, conviction).await?;
        }
        let to_all = finding.closed.iter().map(|address| (*address, false));
        let to_side = finding.closed_to_side.iter().map(|address| (*address, true));
        for (address, side_only) in to_all.chain(to_side) {
            let address = row::address_text(address);
            let known = quarantines::Entity::find()
                .filter(quarantines::Column::Address.eq(&address))
                .filter(quarantines::Column::TxHash.eq(finding.tx_hash.to_string()));
            if known.one(&self.db).await?.is_some() {
                continue;
            }
            let owner = contracts::Entity::find().filter(contracts::Column::Address.eq(&address));
            let owner = owner.one(&self.db).await?.map(|contract| contract.org_id);
            let made = quarantines::Model {
                id: self.new_id(),
                address,
                org_id: owner,
                conviction_id: Some(conviction.0),
                side_external_id: side_only.then(|| finding.external_id.as_str().to_owned()),
                side_org_ids: json!(if side_only { finding.side.as_slice() } else { &[] }),
                tx_hash: finding.tx_hash.to_string(),
                block_hash: finding.block_hash.to_string(),
                reason: finding.reason.to_owned(),
                created_at: self.now.micros(),
            };
            let made = Quarantine::try_from(made.into_active_model().reset_all().insert(&self.db).await?)?;
            self.note(Action::Create, made.org, None, Some(&made));
        }
        Ok(())
    }

    /// The row that withholds the transaction; nothing if it stands for this block already.
    async fn convict(&mut self, finding: &Finding) -> Result<Option<ConvictionId>, StoreError> {
        let known = convictions::Entity::find()
            .filter(convictions::Column::TxHash.eq(finding.tx_hash.to_string()))
            .filter(convictions::Column::ExternalId.eq(finding.external_id.as_str()));
        let known = known.one(&self.db).await?;
        let block_hash = finding.block_hash.to_string();
        if known.as_ref().is_some_and(|known| known.block_hash == block_hash) {
            return Ok(None);
        }
        let before = known.clone().map(Conviction::try_from).transpose()?;
        let row = convictions::Model {
            id: known.map_or_else(|| self.new_id(), |known| known.id),
            tx_hash: finding.tx_hash.to_string(),
            block_hash,
            sender: Some(row::address_text(finding.sender)),
            external_id: finding.external_id.as_str().to_owned(),
            org_id: Some(finding.org.0),
            touched_org_ids: json!(finding.touched),
            wronged_org_ids: json!(finding.wronged),
            reason: finding.reason.to_owned(),
            created_at: self.now.micros(),
            cleared_at: None,
            cleared_by: None,
        };
        let row = row.into_active_model().reset_all();
        // In another block it did something else: what was cleared of the first is not cleared of this one.
        let (action, row) = match &before {
            Some(_) => (Action::Update, row.update(&self.db).await?),
            None => (Action::Create, row.insert(&self.db).await?),
        };
        let made = Conviction::try_from(row)?;
        self.note(action, None, before.as_ref(), Some(&made));
        Ok(Some(made.id))
    }

    async fn suspend(&mut self, finding: &Finding, conviction: ConvictionId) -> Result<(), StoreError> {
        let known = suspensions::Entity::find()
            .filter(suspensions::Column::ExternalId.eq(finding.external_id.as_str()))
            .filter(suspensions::Column::TxHash.eq(finding.tx_hash.to_string()));
        if known.one(&self.db).await?.is_some() {
            return Ok(());
        }
        let made = suspensions::Model {
            id: self.new_id(),
            external_id: finding.external_id.as_str().to_owned(),
            org_id: Some(finding.org.0),
            conviction_id: Some(conviction.0),
            tx_hash: finding.tx_hash.to_string(),
            block_hash: finding.block_hash.to_string(),
            reason: finding.reason.to_owned(),
            created_at: self.now.micros(),
        };
        let made = Suspension::try_from(made.into_active_model().reset_all().insert(&self.db).await?)?;
        self.note(Action::Create, made.org, None, Some(&made));
        Ok(())
    }

    /// The sends were found in this block, as this transaction if it is known.
    pub async fn settle_watched(
        &mut self,
        ids: &[WatchId],
        tx_hash: Option<B256>,
        block_number: u64,
    ) -> Result<(), StoreError> {
        let number = i64::try_from(block_number).unwrap_or(i64::MAX);
        let mut update =
            watched_sends::Entity::update_many().col_expr(watched_sends::Column::BlockNumber, Expr::value(number));
        if let Some(hash) = tx_hash {
            update = update.col_expr(watched_sends::Column::TxHash, Expr::value(hash.to_string()));
        }
        update.filter(watched_sends::Column::Id.is_in(ids.iter().map(|id| id.0))).exec(&self.db).await?;
        Ok(())
    }

    /// The block they were found in left the chain.
    pub async fn await_again(&mut self, ids: &[WatchId]) -> Result<(), StoreError> {
        watched_sends::Entity::update_many()
            .col_expr(watched_sends::Column::BlockNumber, Expr::value(Option::<i64>::None))
            .filter(watched_sends::Column::Id.is_in(ids.iter().map(|id| id.0)))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// The transaction shows again by the ordinary rules. What it wrote stays closed, and its sender suspended, until each
    /// is cleared for itself. Filed under `org`, the organization of who clears it, if it is one's.
    pub async fn clear_conviction(
        &mut self,
        id: ConvictionId,
        org: Option<OrgId>,
        reason: &str,
    ) -> Result<(), StoreError> {
        let row = convictions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.filter(|row| row.cleared_at.is_none()).ok_or(StoreError::NotFound(Missing::Conviction))?;
        let before = Conviction::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.cleared_at = Set(Some(self.now.micros()));
        row.cleared_by = Set(Some(self.actor.external_id.clone()));
        let after = Conviction::try_from(row.update(&self.db).await?)?;
        let (before, after) = (WithReason { record: &before, reason }, WithReason { record: &after, reason });
        self.note(Action::Update, org, Some(&before), Some(&after));
        Ok(())
    }

    /// Gives a person the right to send back.
    pub async fn lift_suspension(&mut self, id: SuspensionId, reason: &str) -> Result<(), StoreError> {
        let row = suspensions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Suspension))?;
        let before = Suspension::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, before.org, Some(&WithReason { record: &before, reason }), None);
        Ok(())
    }

    /// Opens an address again, as far as this finding closed it.
    pub async fn lift_quarantine(&mut self, id: QuarantineId, reason: &str) -> Result<(), StoreError> {
        let row = quarantines::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = Quarantine::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, before.org, Some(&WithReason { record: &before, reason }), None);
        Ok(())
    }
}
