//! Contracts and the grants on them (spec/80 section 8).

use super::{Tx, audit::Action};
use crate::{
    Conflict, Missing, StoreError,
    entity::{address_links, contract_grants, contracts, past_contracts, retired_contracts},
    record::{
        AbiText, Contract, ContractPatch, EventRules, FunctionRule, Grant, GrantPatch, NewContract, NewGrant, PastGrant,
    },
    row,
};
use gw_types::{Address, ContractId, GroupId, OrgId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, PaginatorTrait,
    QueryFilter, QueryOrder, sea_query::Expr,
};
use serde_json::Value;

impl Tx {
    /// Registers a contract. If its previous registration was deleted, only the same organization may register it
    /// again, unless `takes_over_retired` is set (HD27). If another organization had it before, it belongs to the new
    /// one only from the given block on (HD41).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the address is registered, or was by another organization and `takes_over_retired`
    /// is unset; [`StoreError::Rule`] if the first block is missing, or the organization does not exist;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn create_contract(&mut self, new: NewContract) -> Result<Contract, StoreError> {
        let retired = self.retired_row(new.address).await?;
        if retired
            .as_ref()
            .is_some_and(|row| row.org_id != new.org.0 && !new.takes_over_retired)
        {
            return Err(StoreError::Conflict(Conflict::ContractAddress));
        }
        let owned_from = self.owned_from(&new, retired.as_ref()).await?;
        let row = contracts::ActiveModel {
            id: Set(self.new_id()),
            org_id: Set(new.org.0),
            address: Set(row::address_text(new.address)),
            name: Set(new.name),
            abi: Set(new.abi.map(AbiText::into_text)),
            metadata: Set(Value::Object(new.metadata)),
            deployed_at: Set(new.deployed_at.map(|at| at.micros())),
            deployed_by_user_id: Set(new.deployer.map(|user| user.0)),
            allow_visibleto_unlock: Set(false),
            events_allow_dynamic_payload: Set(false),
            trusted_router: Set(false),
            owned_from: Set(owned_from),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let contract = Contract::try_from(row.insert(&self.db).await?)?;
        if let Some(retired) = retired {
            retired.delete(&self.db).await?;
        }
        self.record_audit(Action::Create, Some(contract.org), None, Some(&contract));
        Ok(contract)
    }

    /// Changes a contract: name, metadata, ABI, flags.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such contract; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn update_contract(&mut self, id: ContractId, patch: ContractPatch) -> Result<Contract, StoreError> {
        let row = self.contract_row(id).await?;
        let before = Contract::try_from(row.clone())?;
        let mut row = row.into_active_model();
        if let Some(name) = patch.name {
            row.name = Set(name);
        }
        if let Some(metadata) = patch.metadata {
            row.metadata = Set(Value::Object(metadata));
        }
        if let Some(abi) = patch.abi {
            row.abi = Set(abi.map(AbiText::into_text));
        }
        if let Some(flag) = patch.allow_visibleto_unlock {
            row.allow_visibleto_unlock = Set(flag);
        }
        if let Some(flag) = patch.events_allow_dynamic_payload {
            row.events_allow_dynamic_payload = Set(flag);
        }
        if let Some(flag) = patch.trusted_router {
            row.trusted_router = Set(flag);
        }
        row.updated_at = Set(self.now.micros());
        let after = Contract::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, Some(after.org), Some(&before), Some(&after));
        Ok(after)
    }

    /// Deletes a contract with its grants. Policy decisions still treat its organization as owner (HD27), and logs up
    /// to `last_block` stay visible to its former grant holders (HD41); without `last_block` no logs do.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such contract; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn delete_contract(&mut self, id: ContractId, last_block: Option<u64>) -> Result<Contract, StoreError> {
        let grants = contract_grants::Entity::find().filter(contract_grants::Column::ContractId.eq(id.0));
        let grants = grants.order_by_asc(contract_grants::Column::Id).all(&self.db).await?;
        let deleted = self.drop_contract(id).await?;
        let grants = grants.into_iter().map(Grant::try_from).collect::<Result<Vec<_>, _>>()?;
        self.retire(&deleted, &grants, last_block).await?;
        Ok(deleted)
    }

    /// Returns the first block that a new registration shows, if another organization had the contract before. A
    /// contract that returns to its last organization continues with the stored value.
    async fn owned_from(
        &self,
        new: &NewContract,
        retired: Option<&retired_contracts::Model>,
    ) -> Result<Option<i64>, StoreError> {
        let past = past_contracts::Entity::find()
            .filter(past_contracts::Column::Address.eq(row::address_text(new.address)))
            .order_by_desc(past_contracts::Column::EndedAt)
            .order_by_desc(past_contracts::Column::Id)
            .all(&self.db)
            .await?;
        let continued = match past.first() {
            Some(last) => (last.org_id == new.org.0).then_some(last.owned_from),
            // Deleted before `past_contracts` rows were written.
            None => retired
                .is_none_or(|retired| retired.org_id == new.org.0)
                .then_some(None),
        };
        if let Some(owned_from) = continued {
            return Ok(owned_from);
        }
        let first = new
            .first_block
            .map(row::block_column)
            .ok_or(StoreError::Rule("contract_first_block"))?;
        // No block may belong to two organizations, whatever blocks the node reported.
        let after_all = past
            .iter()
            .filter_map(|past| past.owned_until)
            .map(|last| last.saturating_add(1))
            .max();
        Ok(Some(after_all.map_or(first, |after| after.max(first))))
    }

    /// Deletes a contract that is no longer on the chain, so that it needs no past owner.
    pub(super) async fn drop_contract(&mut self, id: ContractId) -> Result<Contract, StoreError> {
        let row = self.contract_row(id).await?;
        let before = Contract::try_from(row.clone())?;
        let grants = contract_grants::Entity::find().filter(contract_grants::Column::ContractId.eq(id.0));
        for grant in grants.order_by_asc(contract_grants::Column::Id).all(&self.db).await? {
            self.record_audit::<Grant>(Action::Revoke, Some(before.org), Some(&grant.try_into()?), None);
        }
        row.delete(&self.db).await?;
        self.record_audit(Action::Delete, Some(before.org), Some(&before), None);
        Ok(before)
    }

    /// Stores the past owner of a contract. An address that signed a challenge is a wallet: the organization that
    /// registered it gets no claim on it.
    pub(super) async fn retire(
        &self,
        contract: &Contract,
        grants: &[Grant],
        last_block: Option<u64>,
    ) -> Result<(), StoreError> {
        let address = row::address_text(contract.address);
        let signed = address_links::Entity::find()
            .filter(address_links::Column::Address.eq(&address))
            .filter(address_links::Column::ContractWallet.eq(false));
        let is_wallet = signed.count(&self.db).await? > 0;
        let grants = grants.iter().map(|grant| PastGrant {
            id: grant.id.0,
            group: grant.group.0,
            claims: row::claims_text(grant.claims),
            events: grant.event_rules.clone(),
        });
        let past = past_contracts::Model {
            id: contract.id.0,
            address: address.clone(),
            org_id: contract.org.0,
            abi: contract.abi.clone(),
            metadata: Value::Object(contract.metadata.clone()),
            deployed_by_user_id: contract.deployer.map(|user| user.0),
            allow_visibleto_unlock: contract.allow_visibleto_unlock,
            events_allow_dynamic_payload: contract.events_allow_dynamic_payload,
            grants: serde_json::json!(grants.collect::<Vec<_>>()),
            owned_from: contract.owned_from.map(row::block_column),
            owned_until: last_block.filter(|_| !is_wallet).map(row::block_column),
            since: contract.since().micros(),
            ended_at: self.now.micros(),
        };
        past.into_active_model().reset_all().insert(&self.db).await?;
        if is_wallet {
            return Ok(());
        }
        let row = retired_contracts::Model {
            id: contract.id.0,
            address,
            org_id: contract.org.0,
            deployed_by_user_id: contract.deployer.map(|user| user.0),
            since: contract.since().micros(),
            retired_at: self.now.micros(),
        };
        row.into_active_model().reset_all().insert(&self.db).await?;
        Ok(())
    }

    /// Removes the visibility of past registrations of an address: its owner proved the key, so it never was a
    /// contract.
    pub(super) async fn forget_past_contracts(&self, address: Address) -> Result<(), StoreError> {
        past_contracts::Entity::update_many()
            .col_expr(past_contracts::Column::OwnedUntil, Expr::value(None::<i64>))
            .filter(past_contracts::Column::Address.eq(row::address_text(address)))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// Returns the row of a deleted registration at this address.
    pub(super) async fn retired_row(&self, address: Address) -> Result<Option<retired_contracts::Model>, StoreError> {
        let at = retired_contracts::Column::Address.eq(row::address_text(address));
        Ok(retired_contracts::Entity::find().filter(at).one(&self.db).await?)
    }

    /// Grants a group rights on a contract; both must be of one organization.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the contract or the group does not exist; [`StoreError::Rule`] if they belong to
    /// different organizations; [`StoreError::Conflict`] if the group has a grant on the contract; [`StoreError::Row`]
    /// if a stored row is malformed; any database error.
    pub async fn create_grant(&mut self, new: NewGrant) -> Result<Grant, StoreError> {
        let org = OrgId::from(self.contract_row(new.contract).await?.org_id);
        if OrgId::from(self.group_row(new.group).await?.org_id) != org {
            return Err(StoreError::Rule("grant_organization"));
        }
        let row = contract_grants::ActiveModel {
            id: Set(self.new_id()),
            contract_id: Set(new.contract.0),
            group_id: Set(new.group.0),
            claims: Set(row::claims_text(new.claims)),
            functions: Set(functions_json(new.functions.as_deref())),
            event_rules: Set(event_rules_json(&new.event_rules)),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let grant = Grant::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Assign, Some(org), None, Some(&grant));
        Ok(grant)
    }

    /// Changes a grant.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the contract does not exist or the group has no grant on it; [`StoreError::Row`] if
    /// a stored row is malformed; any database error.
    pub async fn update_grant(
        &mut self,
        contract: ContractId,
        group: GroupId,
        patch: GrantPatch,
    ) -> Result<Grant, StoreError> {
        let org = OrgId::from(self.contract_row(contract).await?.org_id);
        let row = self.grant_row(contract, group).await?;
        let before = Grant::try_from(row.clone())?;
        let mut row = row.into_active_model();
        if let Some(claims) = patch.claims {
            row.claims = Set(row::claims_text(claims));
        }
        if let Some(functions) = patch.functions {
            row.functions = Set(functions_json(functions.as_deref()));
        }
        if let Some(rules) = patch.event_rules {
            row.event_rules = Set(event_rules_json(&rules));
        }
        row.updated_at = Set(self.now.micros());
        let after = Grant::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, Some(org), Some(&before), Some(&after));
        Ok(after)
    }

    /// Deletes a grant.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the contract does not exist or the group has no grant on it; [`StoreError::Row`] if
    /// a stored row is malformed; any database error.
    pub async fn delete_grant(&mut self, contract: ContractId, group: GroupId) -> Result<Grant, StoreError> {
        let org = OrgId::from(self.contract_row(contract).await?.org_id);
        let row = self.grant_row(contract, group).await?;
        let before = Grant::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Revoke, Some(org), Some(&before), None);
        Ok(before)
    }

    async fn contract_row(&self, id: ContractId) -> Result<contracts::Model, StoreError> {
        contracts::Entity::find_by_id(id.0)
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::Contract))
    }

    async fn grant_row(&self, contract: ContractId, group: GroupId) -> Result<contract_grants::Model, StoreError> {
        contract_grants::Entity::find()
            .filter(contract_grants::Column::ContractId.eq(contract.0))
            .filter(contract_grants::Column::GroupId.eq(group.0))
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::Grant))
    }
}

fn functions_json(rules: Option<&[FunctionRule]>) -> Option<Value> {
    rules.map(|rules| serde_json::json!(rules))
}

fn event_rules_json(rules: &EventRules) -> Option<Value> {
    match rules {
        EventRules::Unset => None,
        EventRules::Wildcard | EventRules::List(_) => Some(serde_json::json!(rules)),
    }
}
