//! What became of sends once they were mined (HD2, HD28).

use super::{
    Tx,
    entry::{Action, WithReason},
};
use crate::{
    Missing, StoreError,
    entity::{contracts, convictions, quarantines, suspensions, users, watched_sends, withheld_changes},
    record::{Conviction, CreationKind, Finding, Mined, MinedContract, Object, Quarantine, Suspension, WithheldChange},
    row,
};
use gw_types::{B256, ConvictionId, OrgId, QuarantineId, SuspensionId, WatchId, WithheldId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter,
    sea_query::Expr,
};
use serde_json::json;

impl Tx {
    /// The transaction and what it changed are withheld, and its sender loses the right to send. What was found of the same
    /// transaction in the same block already stays as it is, cleared or not: each instance looks for itself.
    pub async fn record_finding(&mut self, finding: &Finding) -> Result<(), StoreError> {
        let Some(conviction) = self.convict(finding).await? else {
            return Ok(());
        };
        if finding.suspends {
            self.suspend(finding, conviction).await?;
        }
        self.withhold(finding, conviction).await?;
        for address in &finding.closed_to_side {
            let address = row::address_text(*address);
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
                side_external_id: Some(finding.external_id.as_str().to_owned()),
                side_org_ids: json!(finding.side),
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

    /// What it changed. It is noted nowhere: how many accounts those are would tell what it did.
    async fn withhold(&mut self, finding: &Finding, conviction: ConvictionId) -> Result<(), StoreError> {
        self.drop_changes(conviction).await?;
        // Whoever sent it first withholds it: it changed everything once.
        for other in self.other_convictions(finding.tx_hash, conviction).await? {
            let of = withheld_changes::Column::ConvictionId.eq(other.0);
            if withheld_changes::Entity::find()
                .filter(of)
                .one(&self.db)
                .await?
                .is_some()
            {
                return Ok(());
            }
        }
        for (address, change) in &finding.changes {
            let address = row::address_text(*address);
            let owner = contracts::Entity::find().filter(contracts::Column::Address.eq(&address));
            let owner = owner.one(&self.db).await?.map(|contract| contract.org_id);
            let made = withheld_changes::Model {
                id: self.new_id(),
                conviction_id: conviction.0,
                address,
                org_id: owner.filter(|owner| !finding.side.iter().any(|org| org.0 == *owner)),
                side_org_ids: json!(finding.side),
                block_number: i64::try_from(finding.block).unwrap_or(i64::MAX),
                block_time: finding.block_time.micros(),
                place: i64::try_from(finding.place).unwrap_or(i64::MAX),
                change: json!(change),
                created_at: self.now.micros(),
            };
            withheld_changes::Entity::insert(made.into_active_model().reset_all())
                .exec_without_returning(&self.db)
                .await?;
        }
        Ok(())
    }

    /// What else withholds the transaction: others sent it too.
    async fn other_convictions(&self, tx_hash: B256, but: ConvictionId) -> Result<Vec<ConvictionId>, StoreError> {
        let others = convictions::Entity::find()
            .filter(convictions::Column::TxHash.eq(tx_hash.to_string()))
            .filter(convictions::Column::ClearedAt.is_null())
            .filter(convictions::Column::Id.ne(but.0));
        Ok(others
            .all(&self.db)
            .await?
            .into_iter()
            .map(|row| row.id.into())
            .collect())
    }

    async fn drop_changes(&mut self, conviction: ConvictionId) -> Result<(), StoreError> {
        withheld_changes::Entity::delete_many()
            .filter(withheld_changes::Column::ConvictionId.eq(conviction.0))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// The transaction left the chain, or did nothing it may not where it is now: what it had changed elsewhere is no more.
    pub async fn forget_changes(&mut self, tx_hash: B256, but_in: Option<B256>) -> Result<(), StoreError> {
        let mut known = convictions::Entity::find().filter(convictions::Column::TxHash.eq(tx_hash.to_string()));
        if let Some(block) = but_in {
            known = known.filter(convictions::Column::BlockHash.ne(block.to_string()));
        }
        for conviction in known.all(&self.db).await? {
            self.drop_changes(conviction.id.into()).await?;
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
            // Who sees a withheld transaction is nobody: kept for the rows of before.
            touched_org_ids: json!([]),
            wronged_org_ids: json!(finding.wronged),
            reason: finding.reason.to_owned(),
            created_at: self.now.micros(),
            cleared_at: None,
            cleared_by: None,
            place: i64::try_from(finding.place).unwrap_or(i64::MAX),
            logs: i64::try_from(finding.logs).unwrap_or(i64::MAX),
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
        update
            .filter(watched_sends::Column::Id.is_in(ids.iter().map(|id| id.0)))
            .exec(&self.db)
            .await?;
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

    /// The transaction and what it changed show again by the ordinary rules; what it created is its organization's from now
    /// on (HD27). Its sender stays suspended until that is cleared for itself. Filed under `org`, the organization of who clears it, if it is one's.
    pub async fn clear_conviction(
        &mut self,
        id: ConvictionId,
        org: Option<OrgId>,
        reason: &str,
    ) -> Result<(), StoreError> {
        let row = convictions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row
            .filter(|row| row.cleared_at.is_none())
            .ok_or(StoreError::NotFound(Missing::Conviction))?;
        let before = Conviction::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.cleared_at = Set(Some(self.now.micros()));
        row.cleared_by = Set(Some(self.actor.external_id.clone()));
        let after = Conviction::try_from(row.update(&self.db).await?)?;
        if let Some(other) = self.other_convictions(after.tx_hash, id).await?.first() {
            withheld_changes::Entity::update_many()
                .col_expr(withheld_changes::Column::ConvictionId, Expr::value(other.0))
                .filter(withheld_changes::Column::ConvictionId.eq(id.0))
                .exec(&self.db)
                .await?;
        } else {
            self.register_created(&after).await?;
            self.drop_changes(id).await?;
        }
        let (before, after) = (
            WithReason {
                record: &before,
                reason,
            },
            WithReason { record: &after, reason },
        );
        self.note(Action::Update, org, Some(&before), Some(&after));
        Ok(())
    }

    async fn register_created(&mut self, conviction: &Conviction) -> Result<(), StoreError> {
        let of = withheld_changes::Column::ConvictionId.eq(conviction.id.0);
        let rows = withheld_changes::Entity::find().filter(of).all(&self.db).await?;
        let rows: Vec<WithheldChange> = rows.into_iter().map(TryFrom::try_from).collect::<Result<_, _>>()?;
        let created: Vec<&WithheldChange> = rows.iter().filter(|row| row.change.created).collect();
        let (Some(first), Some(org)) = (created.first(), conviction.org) else {
            return Ok(());
        };
        let user = users::Entity::find().filter(users::Column::ExternalId.eq(conviction.external_id.as_str()));
        let user = user.one(&self.db).await?.map(|user| user.id.into());
        let contract = |row: &&WithheldChange| MinedContract {
            address: row.address,
            kind: CreationKind::Runtime,
            metadata: Object::new(),
        };
        let mined = Mined {
            tx_hash: conviction.tx_hash,
            block_hash: conviction.block_hash,
            block_number: first.block,
            at: first.block_time,
            user,
            grant: false,
            org,
            created: created.iter().map(contract).collect(),
        };
        self.settle_mined(mined).await.map(drop)
    }

    /// Shows what a withheld transaction changed of one account again, for the organization of the contract there.
    pub async fn release_change(&mut self, id: WithheldId, reason: &str) -> Result<(), StoreError> {
        let row = withheld_changes::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = WithheldChange::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(
            Action::Delete,
            before.org,
            Some(&WithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }

    /// Gives a person the right to send back.
    pub async fn lift_suspension(&mut self, id: SuspensionId, reason: &str) -> Result<(), StoreError> {
        let row = suspensions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Suspension))?;
        let before = Suspension::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(
            Action::Delete,
            before.org,
            Some(&WithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }

    /// Opens an address again, as far as this finding closed it.
    pub async fn lift_quarantine(&mut self, id: QuarantineId, reason: &str) -> Result<(), StoreError> {
        let row = quarantines::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = Quarantine::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(
            Action::Delete,
            before.org,
            Some(&WithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }
}
