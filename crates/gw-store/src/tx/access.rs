//! Shared infrastructure, approved code and system toggles (spec/80 sections 9 and 11).

use super::{
    Tx,
    audit::{Action, RecordWithReason},
};
use crate::{
    Missing, StoreError,
    entity::{approved_code, shared_infrastructure, system_toggles},
    record::{ApprovedCode, SharedInfra, SharedInfraInput, ToggleUpdate},
    row,
};
use gw_policy::snapshot::SystemToggle;
use gw_types::{Address, B256, Timestamp};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter};

impl Tx {
    /// Tags a contract as shared infrastructure.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the address is tagged already; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn create_shared_infra(
        &mut self,
        address: Address,
        new: SharedInfraInput,
    ) -> Result<SharedInfra, StoreError> {
        let row = shared_infrastructure::ActiveModel {
            id: Set(self.new_id()),
            address: Set(row::address_text(address)),
            name: Set(new.name),
            description: Set(new.description),
            codehash: Set(hash_text(new.codehash)),
            implementation_codehash: Set(hash_text(new.implementation_codehash)),
            broken_codehash: Set(None),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let shared = SharedInfra::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, None, None, Some(&shared));
        Ok(shared)
    }

    /// Replaces the description of a shared contract. A voided tag becomes effective again only with a new pin.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such shared contract; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn update_shared_infra(
        &mut self,
        address: Address,
        input: SharedInfraInput,
    ) -> Result<SharedInfra, StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        let repinned =
            (before.codehash, before.implementation_codehash) != (input.codehash, input.implementation_codehash);
        let mut row = row.into_active_model();
        row.name = Set(input.name);
        row.description = Set(input.description);
        row.codehash = Set(hash_text(input.codehash));
        row.implementation_codehash = Set(hash_text(input.implementation_codehash));
        if repinned {
            row.broken_codehash = Set(None);
        }
        self.changed_shared(before, row).await
    }

    /// Pins a shared contract to the code that is on the chain now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such shared contract; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn pin_shared_infra(
        &mut self,
        address: Address,
        codehash: B256,
        implementation: Option<B256>,
    ) -> Result<SharedInfra, StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.codehash = Set(hash_text(Some(codehash)));
        row.implementation_codehash = Set(hash_text(implementation));
        row.broken_codehash = Set(None);
        self.changed_shared(before, row).await
    }

    /// Voids a shared contract's pin because other code was found there. Does nothing if the pin is already voided,
    /// absent, or equal to `current_codehash`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such shared contract; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn void_shared_infra_pin(&mut self, address: Address, current_codehash: B256) -> Result<(), StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        if before.broken_codehash.is_some() || before.codehash.is_none_or(|pin| pin == current_codehash) {
            return Ok(());
        }
        let mut row = row.into_active_model();
        row.broken_codehash = Set(hash_text(Some(current_codehash)));
        self.changed_shared(before, row).await.map(drop)
    }

    /// Removes the tag of a contract.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such shared contract; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn delete_shared_infra(&mut self, address: Address) -> Result<SharedInfra, StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Approves creation code with this keccak256 and length in bytes.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the code is approved already; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn approve_code(&mut self, hash: B256, size: u32, name: String) -> Result<ApprovedCode, StoreError> {
        let row = approved_code::ActiveModel {
            id: Set(self.new_id()),
            code_hash: Set(hash.to_string()),
            code_size: Set(size.into()),
            name: Set(name),
            approved_by: Set(self.actor.external_id.clone()),
            created_at: Set(self.now.micros()),
        };
        let approved_code = ApprovedCode::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, None, None, Some(&approved_code));
        Ok(approved_code)
    }

    /// Withdraws an approval: existing contracts stay, and no new ones are created from the code.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the code is not approved; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn withdraw_approval(&mut self, hash: B256) -> Result<ApprovedCode, StoreError> {
        let query = approved_code::Entity::find().filter(approved_code::Column::CodeHash.eq(hash.to_string()));
        let row = query
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::ApprovedCode))?;
        let before = ApprovedCode::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Sets a toggle until a time.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn set_toggle(
        &mut self,
        toggle: SystemToggle,
        enabled: bool,
        reason: String,
        expires_at: Timestamp,
    ) -> Result<ToggleUpdate, StoreError> {
        let stored = system_toggles::Entity::find_by_id(toggle.id().0).one(&self.db).await?;
        let before = stored.clone().map(ToggleUpdate::try_from).transpose()?;
        let row = system_toggles::ActiveModel {
            id: Set(toggle.id().0),
            enabled: Set(enabled),
            reason: Set(reason),
            changed_by: Set(self.actor.external_id.clone()),
            changed_at: Set(self.now.micros()),
            expires_at: Set(expires_at.micros()),
        };
        let row = if stored.is_some() {
            row.update(&self.db).await?
        } else {
            row.insert(&self.db).await?
        };
        let after = ToggleUpdate::try_from(row)?;
        self.record_audit(Action::Update, None, before.as_ref(), Some(&after));
        Ok(after)
    }

    /// Removes all overrides: the configuration decides again.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn clear_toggles(&mut self, reason: &str) -> Result<usize, StoreError> {
        let rows = system_toggles::Entity::find().all(&self.db).await?;
        let count = rows.len();
        for row in rows {
            let before = ToggleUpdate::try_from(row.clone())?;
            row.delete(&self.db).await?;
            let end = RecordWithReason {
                record: &before,
                reason,
            };
            self.record_audit(Action::Delete, None, Some(&end), None);
        }
        Ok(count)
    }

    async fn changed_shared(
        &mut self,
        before: SharedInfra,
        mut row: shared_infrastructure::ActiveModel,
    ) -> Result<SharedInfra, StoreError> {
        row.updated_at = Set(self.now.micros());
        let after = SharedInfra::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, None, Some(&before), Some(&after));
        Ok(after)
    }

    async fn shared_row(&self, address: Address) -> Result<shared_infrastructure::Model, StoreError> {
        let at = shared_infrastructure::Column::Address.eq(row::address_text(address));
        let row = shared_infrastructure::Entity::find().filter(at).one(&self.db).await?;
        row.ok_or(StoreError::NotFound(Missing::SharedInfra))
    }
}

fn hash_text(hash: Option<B256>) -> Option<String> {
    hash.map(|hash| format!("{hash:#x}"))
}
