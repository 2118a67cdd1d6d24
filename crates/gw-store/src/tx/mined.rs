//! Post-execution results of sends (HD2, HD28).

use super::{
    Tx,
    audit::{Action, RecordWithReason},
};
use crate::{
    Missing, StoreError,
    entity::{contracts, convictions, quarantines, suspensions, users, watched_sends, withheld_changes},
    record::{
        Conviction, CreationKind, JsonObject, Mined, MinedContract, Quarantine, Suspension, Violation, WithheldChange,
    },
    row,
};
use gw_types::{B256, ConvictionId, OrgId, QuarantineId, SuspensionId, WatchId, WithheldId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter,
    sea_query::Expr,
};
use serde_json::json;

impl Tx {
    /// Withholds a transaction and its state changes, and suspends its sender if the finding says so. An existing
    /// finding for the same transaction in the same block stays unchanged, cleared or not: each instance evaluates
    /// blocks by itself.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn record_finding(&mut self, finding: &Violation) -> Result<(), StoreError> {
        let Some(conviction) = self.convict(finding).await? else {
            return Ok(());
        };
        if finding.suspends {
            self.suspend(finding, conviction).await?;
        }
        self.withhold(finding, conviction).await?;
        for address in &finding.closed_to_side {
            let address = row::address_text(*address);
            let existing = quarantines::Entity::find()
                .filter(quarantines::Column::Address.eq(&address))
                .filter(quarantines::Column::TxHash.eq(finding.tx_hash.to_string()));
            if existing.one(&self.db).await?.is_some() {
                continue;
            }
            let owner = contracts::Entity::find().filter(contracts::Column::Address.eq(&address));
            let owner = owner.one(&self.db).await?.map(|contract| contract.org_id);
            let quarantine = quarantines::Model {
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
            let quarantine = Quarantine::try_from(quarantine.into_active_model().reset_all().insert(&self.db).await?)?;
            self.record_audit(Action::Create, quarantine.org, None, Some(&quarantine));
        }
        Ok(())
    }

    /// Stores the withheld state changes, without audit entries: the number of accounts would reveal what the
    /// transaction did.
    async fn withhold(&mut self, finding: &Violation, conviction: ConvictionId) -> Result<(), StoreError> {
        self.drop_changes(conviction).await?;
        // Another sender's conviction already withholds the changes: the transaction made them once.
        for other_conviction in self.other_convictions(finding.tx_hash, conviction).await? {
            let of_conviction = withheld_changes::Column::ConvictionId.eq(other_conviction.0);
            if withheld_changes::Entity::find()
                .filter(of_conviction)
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
            let row = withheld_changes::Model {
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
            withheld_changes::Entity::insert(row.into_active_model().reset_all())
                .exec_without_returning(&self.db)
                .await?;
        }
        Ok(())
    }

    /// Returns the other uncleared convictions of the transaction: several users may have sent it.
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

    /// Deletes withheld changes of a transaction that left the chain, or violates nothing where it is mined now.
    /// Changes in block `but_in` stay.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn forget_changes(&mut self, tx_hash: B256, but_in: Option<B256>) -> Result<(), StoreError> {
        let mut query = convictions::Entity::find().filter(convictions::Column::TxHash.eq(tx_hash.to_string()));
        if let Some(block) = but_in {
            query = query.filter(convictions::Column::BlockHash.ne(block.to_string()));
        }
        for conviction in query.all(&self.db).await? {
            self.drop_changes(conviction.id.into()).await?;
        }
        Ok(())
    }

    /// Creates or updates the conviction of a transaction; `None` if it already exists for this block.
    async fn convict(&mut self, finding: &Violation) -> Result<Option<ConvictionId>, StoreError> {
        let stored = convictions::Entity::find()
            .filter(convictions::Column::TxHash.eq(finding.tx_hash.to_string()))
            .filter(convictions::Column::ExternalId.eq(finding.external_id.as_str()));
        let stored = stored.one(&self.db).await?;
        let block_hash = finding.block_hash.to_string();
        if stored.as_ref().is_some_and(|stored| stored.block_hash == block_hash) {
            return Ok(None);
        }
        let before = stored.clone().map(Conviction::try_from).transpose()?;
        let row = convictions::Model {
            id: stored.map_or_else(|| self.new_id(), |stored| stored.id),
            tx_hash: finding.tx_hash.to_string(),
            block_hash,
            sender: Some(row::address_text(finding.sender)),
            external_id: finding.external_id.as_str().to_owned(),
            org_id: Some(finding.org.0),
            // A withheld transaction is hidden from all users; the column remains for older rows.
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
        // In another block the transaction did something else: a clearance for the first block does not apply.
        let (action, row) = match &before {
            Some(_) => (Action::Update, row.update(&self.db).await?),
            None => (Action::Create, row.insert(&self.db).await?),
        };
        let conviction = Conviction::try_from(row)?;
        self.record_audit(action, None, before.as_ref(), Some(&conviction));
        Ok(Some(conviction.id))
    }

    async fn suspend(&mut self, finding: &Violation, conviction: ConvictionId) -> Result<(), StoreError> {
        let existing = suspensions::Entity::find()
            .filter(suspensions::Column::ExternalId.eq(finding.external_id.as_str()))
            .filter(suspensions::Column::TxHash.eq(finding.tx_hash.to_string()));
        if existing.one(&self.db).await?.is_some() {
            return Ok(());
        }
        let suspension = suspensions::Model {
            id: self.new_id(),
            external_id: finding.external_id.as_str().to_owned(),
            org_id: Some(finding.org.0),
            conviction_id: Some(conviction.0),
            tx_hash: finding.tx_hash.to_string(),
            block_hash: finding.block_hash.to_string(),
            reason: finding.reason.to_owned(),
            created_at: self.now.micros(),
        };
        let suspension = Suspension::try_from(suspension.into_active_model().reset_all().insert(&self.db).await?)?;
        self.record_audit(Action::Create, suspension.org, None, Some(&suspension));
        Ok(())
    }

    /// Records the block in which sends were found, and their transaction if known.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
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

    /// Marks sends as pending again: their block left the chain.
    ///
    /// # Errors
    /// Any database error.
    pub async fn await_again(&mut self, ids: &[WatchId]) -> Result<(), StoreError> {
        watched_sends::Entity::update_many()
            .col_expr(watched_sends::Column::BlockNumber, Expr::value(Option::<i64>::None))
            .filter(watched_sends::Column::Id.is_in(ids.iter().map(|id| id.0)))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// Clears a conviction: the transaction and its changes become visible by the ordinary rules, and contracts it
    /// created belong to its organization from now on (HD27). The sender stays suspended until the suspension is
    /// cleared. The audit entry belongs to `org`, the organization of the clearing administrator, if any.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such conviction or it is cleared; the errors of [`Tx::settle_mined`];
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
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
            RecordWithReason {
                record: &before,
                reason,
            },
            RecordWithReason { record: &after, reason },
        );
        self.record_audit(Action::Update, org, Some(&before), Some(&after));
        Ok(())
    }

    async fn register_created(&mut self, conviction: &Conviction) -> Result<(), StoreError> {
        let of_conviction = withheld_changes::Column::ConvictionId.eq(conviction.id.0);
        let rows = withheld_changes::Entity::find()
            .filter(of_conviction)
            .all(&self.db)
            .await?;
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
            metadata: JsonObject::new(),
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

    /// Makes the change of one account by a withheld transaction visible again, for the organization of the contract
    /// there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such withheld change; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn release_change(&mut self, id: WithheldId, reason: &str) -> Result<(), StoreError> {
        let row = withheld_changes::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = WithheldChange::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(
            Action::Delete,
            before.org,
            Some(&RecordWithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }

    /// Ends one suspension: the person may send again if no other one is in force.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such suspension; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn clear_suspension(&mut self, id: SuspensionId, reason: &str) -> Result<(), StoreError> {
        let row = suspensions::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Suspension))?;
        let before = Suspension::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(
            Action::Delete,
            before.org,
            Some(&RecordWithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }

    /// Removes one quarantine of an address; others stay in force.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such quarantine; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn clear_quarantine(&mut self, id: QuarantineId, reason: &str) -> Result<(), StoreError> {
        let row = quarantines::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Quarantine))?;
        let before = Quarantine::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(
            Action::Delete,
            before.org,
            Some(&RecordWithReason {
                record: &before,
                reason,
            }),
            None,
        );
        Ok(())
    }
}
