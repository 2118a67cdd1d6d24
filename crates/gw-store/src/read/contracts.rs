//! Contracts and the grants on them.

use super::{Page, Paging, Queries, all, contains, one};
use crate::{
    StoreError,
    entity::{contract_grants, contracts, groups, reservations},
    record::{Contract, Grant, OpenReservation, ReservationState},
    row,
};
use gw_types::{Address, B256, ContractId, GroupId, OrgId, Timestamp};
use sea_orm::{ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

/// Filter for contracts of an organization.
#[derive(Clone, Debug, Default)]
pub struct ContractFilter {
    /// A substring of the name, or a whole address.
    pub search: Option<String>,
    /// Registered at or after this time.
    pub created_after: Option<Timestamp>,
    /// Registered at or before this time.
    pub created_before: Option<Timestamp>,
}

/// The groups that hold grants on a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantSummary {
    /// The contract.
    pub contract: ContractId,
    /// The groups, by name.
    pub groups: Vec<(GroupId, String)>,
}

impl Queries<'_> {
    /// Returns the contract at an address, in any organization.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_contract(&self, address: Address) -> Result<Option<Contract>, StoreError> {
        let query = contracts::Entity::find().filter(contracts::Column::Address.eq(row::address_text(address)));
        one(query.one(&self.conn).await?)
    }

    /// Returns the contracts with these ids, in any organization; unknown ids are left out.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn contracts_by_id(&self, ids: &[ContractId]) -> Result<Vec<Contract>, StoreError> {
        let query = contracts::Entity::find().filter(contracts::Column::Id.is_in(ids.iter().map(|id| id.0)));
        all(query
            .order_by_asc(contracts::Column::Name)
            .order_by_asc(contracts::Column::Id)
            .all(&self.conn)
            .await?)
    }

    /// Lists the contracts of an organization by name, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_contracts(
        &self,
        org: OrgId,
        filter: &ContractFilter,
        paging: Paging,
    ) -> Result<Page<Contract>, StoreError> {
        let search_condition = filter.search.as_deref().map(|text| {
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
        let condition = Condition::all()
            .add(contracts::Column::OrgId.eq(org.0))
            .add_option(search_condition)
            .add_option(filter.created_after.map(|at| created.gte(at.micros())))
            .add_option(filter.created_before.map(|at| created.lte(at.micros())));
        let select = contracts::Entity::find()
            .filter(condition)
            .order_by_asc(contracts::Column::Name)
            .order_by_asc(contracts::Column::Id);
        self.page(select, paging).await
    }

    /// Returns the groups with grants on the organization's contracts; contracts without grants are left out.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn grant_summary(&self, org: OrgId) -> Result<Vec<GrantSummary>, StoreError> {
        let rows: Vec<(Uuid, Uuid, String)> = contract_grants::Entity::find()
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
        for (contract, group, name) in rows {
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

    /// Lists the grants on a contract, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_grants(&self, contract: ContractId) -> Result<Vec<Grant>, StoreError> {
        let query = contract_grants::Entity::find()
            .filter(contract_grants::Column::ContractId.eq(contract.0))
            .order_by_asc(contract_grants::Column::CreatedAt)
            .order_by_asc(contract_grants::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns the grant of a group on a contract.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_grant(&self, contract: ContractId, group: GroupId) -> Result<Option<Grant>, StoreError> {
        let query = contract_grants::Entity::find()
            .filter(contract_grants::Column::ContractId.eq(contract.0))
            .filter(contract_grants::Column::GroupId.eq(group.0));
        one(query.one(&self.conn).await?)
    }

    /// Returns reservations that still wait for the chain, oldest first; only of one transaction if given (R4).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn open_reservations(&self, tx_hash: Option<B256>) -> Result<Vec<OpenReservation>, StoreError> {
        let open = [ReservationState::Reserved, ReservationState::Sent].map(ReservationState::as_str);
        let condition = Condition::all()
            .add(reservations::Column::State.is_in(open))
            .add_option(tx_hash.map(|hash| reservations::Column::TxHash.eq(hash.to_string())));
        let query = reservations::Entity::find()
            .filter(condition)
            .order_by_asc(reservations::Column::CreatedAt)
            .order_by_asc(reservations::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns the newest transaction for which the organization reserved the address, whatever its outcome (K3).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn reserving_transaction(&self, org: OrgId, address: Address) -> Result<Option<B256>, StoreError> {
        let query = reservations::Entity::find()
            .filter(reservations::Column::OrgId.eq(org.0))
            .filter(reservations::Column::Address.eq(row::address_text(address)))
            .filter(reservations::Column::TxHash.is_not_null())
            .order_by_desc(reservations::Column::CreatedAt)
            .order_by_desc(reservations::Column::Id);
        let reservation: Option<OpenReservation> = one(query.one(&self.conn).await?)?;
        Ok(reservation.and_then(|reservation| reservation.tx_hash))
    }
}
