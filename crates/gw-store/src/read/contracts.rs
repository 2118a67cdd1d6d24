//! Contracts and the grants on them.

use super::{Page, Paging, Reads, all, contains, one};
use crate::{
    StoreError,
    entity::{contract_grants, contracts, groups, reservations},
    record::{Contract, Grant, OpenReservation, ReservationState},
    row,
};
use gw_types::{Address, B256, ContractId, GroupId, OrgId, Timestamp};
use sea_orm::{ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

/// Which contracts of an organization.
#[derive(Clone, Debug, Default)]
pub struct ContractFilter {
    /// A substring of the name, or a whole address.
    pub search: Option<String>,
    /// Registered at or after this moment.
    pub created_after: Option<Timestamp>,
    /// Registered at or before this moment.
    pub created_before: Option<Timestamp>,
}

/// Who holds grants on a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantSummary {
    /// The contract.
    pub contract: ContractId,
    /// The groups, by name.
    pub groups: Vec<(GroupId, String)>,
}

impl Reads<'_> {
    /// The contract at an address, whoever owns it.
    pub async fn find_contract(&self, address: Address) -> Result<Option<Contract>, StoreError> {
        let found = contracts::Entity::find().filter(contracts::Column::Address.eq(row::address_text(address)));
        one(found.one(&self.conn).await?)
    }

    /// These contracts, whoever owns them; unknown ids are left out.
    pub async fn contracts_by_id(&self, ids: &[ContractId]) -> Result<Vec<Contract>, StoreError> {
        let found = contracts::Entity::find().filter(contracts::Column::Id.is_in(ids.iter().map(|id| id.0)));
        all(found
            .order_by_asc(contracts::Column::Name)
            .order_by_asc(contracts::Column::Id)
            .all(&self.conn)
            .await?)
    }

    /// Contracts of an organization by name, then id.
    pub async fn list_contracts(
        &self,
        org: OrgId,
        filter: &ContractFilter,
        paging: Paging,
    ) -> Result<Page<Contract>, StoreError> {
        let found = filter.search.as_deref().map(|text| {
            let address = text
                .trim()
                .parse::<Address>()
                .ok()
                .filter(|_| text.trim_start().starts_with("0x"));
            Condition::any()
                .add(contains(contracts::Column::Name, text))
                .add_option(address.map(|address| contracts::Column::Address.eq(row::address_text(address))))
        });
        let created = contracts::Column::CreatedAt;
        let which = Condition::all()
            .add(contracts::Column::OrgId.eq(org.0))
            .add_option(found)
            .add_option(filter.created_after.map(|at| created.gte(at.micros())))
            .add_option(filter.created_before.map(|at| created.lte(at.micros())));
        let select = contracts::Entity::find()
            .filter(which)
            .order_by_asc(contracts::Column::Name)
            .order_by_asc(contracts::Column::Id);
        self.page(select, paging).await
    }

    /// Who holds grants on the organization's contracts; contracts without grant are left out.
    pub async fn grant_summary(&self, org: OrgId) -> Result<Vec<GrantSummary>, StoreError> {
        let held: Vec<(Uuid, Uuid, String)> = contract_grants::Entity::find()
            .join(
                JoinType::InnerJoin,
                contract_grants::Entity::belongs_to(contracts::Entity)
                    .from(contract_grants::Column::ContractId)
                    .to(contracts::Column::Id)
                    .into(),
            )
            .join(
                JoinType::InnerJoin,
                contract_grants::Entity::belongs_to(groups::Entity)
                    .from(contract_grants::Column::GroupId)
                    .to(groups::Column::Id)
                    .into(),
            )
            .select_only()
            .column(contract_grants::Column::ContractId)
            .column(groups::Column::Id)
            .column(groups::Column::Name)
            .filter(contracts::Column::OrgId.eq(org.0))
            .order_by_asc(contract_grants::Column::ContractId)
            .order_by_asc(groups::Column::Name)
            .order_by_asc(groups::Column::Id)
            .into_tuple()
            .all(&self.conn)
            .await?;
        let mut summaries: Vec<GrantSummary> = Vec::new();
        for (contract, group, name) in held {
            let holder = (group.into(), name);
            match summaries.last_mut() {
                Some(last) if last.contract == contract.into() => last.groups.push(holder),
                _ => summaries.push(GrantSummary {
                    contract: contract.into(),
                    groups: vec![holder],
                }),
            }
        }
        Ok(summaries)
    }

    /// The grants on a contract, oldest first.
    pub async fn list_grants(&self, contract: ContractId) -> Result<Vec<Grant>, StoreError> {
        let found = contract_grants::Entity::find()
            .filter(contract_grants::Column::ContractId.eq(contract.0))
            .order_by_asc(contract_grants::Column::CreatedAt)
            .order_by_asc(contract_grants::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// The grant of a group on a contract.
    pub async fn find_grant(&self, contract: ContractId, group: GroupId) -> Result<Option<Grant>, StoreError> {
        let found = contract_grants::Entity::find()
            .filter(contract_grants::Column::ContractId.eq(contract.0))
            .filter(contract_grants::Column::GroupId.eq(group.0));
        one(found.one(&self.conn).await?)
    }

    /// Reservations that still wait for the chain, oldest first; of one transaction if given (R4).
    pub async fn open_reservations(&self, tx_hash: Option<B256>) -> Result<Vec<OpenReservation>, StoreError> {
        let open = [ReservationState::Reserved, ReservationState::Sent].map(ReservationState::as_str);
        let which = Condition::all()
            .add(reservations::Column::State.is_in(open))
            .add_option(tx_hash.map(|hash| reservations::Column::TxHash.eq(hash.to_string())));
        let found = reservations::Entity::find()
            .filter(which)
            .order_by_asc(reservations::Column::CreatedAt)
            .order_by_asc(reservations::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// The newest transaction for which the organization reserved the address, whatever became of it (K3).
    pub async fn reserving_transaction(&self, org: OrgId, address: Address) -> Result<Option<B256>, StoreError> {
        let found = reservations::Entity::find()
            .filter(reservations::Column::OrgId.eq(org.0))
            .filter(reservations::Column::Address.eq(row::address_text(address)))
            .filter(reservations::Column::TxHash.is_not_null())
            .order_by_desc(reservations::Column::CreatedAt)
            .order_by_desc(reservations::Column::Id);
        let found: Option<OpenReservation> = one(found.one(&self.conn).await?)?;
        Ok(found.and_then(|reservation| reservation.tx_hash))
    }
}
