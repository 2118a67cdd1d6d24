//! Shared infrastructure and system toggles (spec/80 sections 9 and 11).

use super::{
    Tx,
    entry::{Action, WithReason},
};
use crate::{
    Missing, StoreError,
    entity::{approved_code, shared_infrastructure, system_toggles},
    record::{ApprovedCode, SharedInfra, SharedInfraInput, ToggleChange},
    row,
};
use gw_policy::snapshot::SystemToggle;
use gw_types::{Address, B256, Timestamp};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter};

impl Tx {
    /// Tags a contract as shared infrastructure.
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
        let made = SharedInfra::try_from(row.insert(&self.db).await?)?;
        self.note(Action::Create, None, None, Some(&made));
        Ok(made)
    }

    /// Replaces what is said of a shared contract. A tag that was found broken counts again only with a new pin.
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

    /// Pins a shared contract to the code that the chain shows now.
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

    /// Notes that other code than the pinned was found at a shared address. Nothing happens if that is known, or no
    /// longer true of the pin as it stands.
    pub async fn break_shared_infra(&mut self, address: Address, found: B256) -> Result<(), StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        if before.broken_codehash.is_some() || before.codehash.is_none_or(|pin| pin == found) {
            return Ok(());
        }
        let mut row = row.into_active_model();
        row.broken_codehash = Set(hash_text(Some(found)));
        self.changed_shared(before, row).await.map(drop)
    }

    /// Takes the tag off a contract.
    pub async fn delete_shared_infra(&mut self, address: Address) -> Result<SharedInfra, StoreError> {
        let row = self.shared_row(address).await?;
        let before = SharedInfra::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Approves creation code, of which this is the keccak256 and the length in bytes.
    pub async fn approve_code(&mut self, hash: B256, size: u32, name: String) -> Result<ApprovedCode, StoreError> {
        let row = approved_code::ActiveModel {
            id: Set(self.new_id()),
            code_hash: Set(hash.to_string()),
            code_size: Set(size.into()),
            name: Set(name),
            approved_by: Set(self.actor.external_id.clone()),
            created_at: Set(self.now.micros()),
        };
        let made = ApprovedCode::try_from(row.insert(&self.db).await?)?;
        self.note(Action::Create, None, None, Some(&made));
        Ok(made)
    }

    /// Takes an approval back: what was created stays, nothing more is created of it.
    pub async fn withdraw_approval(&mut self, hash: B256) -> Result<ApprovedCode, StoreError> {
        let found = approved_code::Entity::find().filter(approved_code::Column::CodeHash.eq(hash.to_string()));
        let row = found
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::ApprovedCode))?;
        let before = ApprovedCode::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Turns a toggle until a moment.
    pub async fn set_toggle(
        &mut self,
        toggle: SystemToggle,
        enabled: bool,
        reason: String,
        expires_at: Timestamp,
    ) -> Result<ToggleChange, StoreError> {
        let stored = system_toggles::Entity::find_by_id(toggle.id().0).one(&self.db).await?;
        let before = stored.clone().map(ToggleChange::try_from).transpose()?;
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
        let after = ToggleChange::try_from(row)?;
        self.note(Action::Update, None, before.as_ref(), Some(&after));
        Ok(after)
    }

    /// Ends all overrides: the configuration decides again.
    pub async fn clear_toggles(&mut self, reason: &str) -> Result<usize, StoreError> {
        let rows = system_toggles::Entity::find().all(&self.db).await?;
        let count = rows.len();
        for row in rows {
            let before = ToggleChange::try_from(row.clone())?;
            row.delete(&self.db).await?;
            let end = WithReason {
                record: &before,
                reason,
            };
            self.note(Action::Delete, None, Some(&end), None);
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
        self.note(Action::Update, None, Some(&before), Some(&after));
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
