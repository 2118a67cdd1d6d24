//! The policy tables: loads all rows, or those that change rows name.

use crate::{
    StoreError,
    dialect::{Engine, Transaction},
    entity::{
        address_links, approved_code, contract_grants, contracts, convictions, directory_tenants, disclosure_grants,
        former_links, group_access, groups, memberships, org_user_records, organizations, past_contracts,
        personal_urls, quarantines, reservations, retired_contracts, revocations, shared_infrastructure, suspensions,
        system_toggles, tx_visibility, users, withheld_changes,
    },
};
use gw_policy::{Change, Snapshot};
use gw_types::Epoch;
use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select, SelectModel, Selector,
};
use std::collections::HashSet;
use uuid::Uuid;

/// The entities of change rows. The migration's triggers write the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entity {
    User,
    Organization,
    Group,
    GroupAccess,
    Membership,
    OrgUserRecord,
    Contract,
    Conviction,
    RetiredContract,
    PastContract,
    Grant,
    Link,
    FormerLink,
    Reservation,
    Visibility,
    Revocation,
    Tenant,
    PersonalUrl,
    Quarantine,
    ApprovedCode,
    SharedInfra,
    Suspension,
    Toggle,
    Withheld,
    Disclosure,
}

impl Entity {
    pub(super) const ALL: [Self; 25] = [
        Self::User,
        Self::Organization,
        Self::Group,
        Self::GroupAccess,
        Self::Membership,
        Self::OrgUserRecord,
        Self::Contract,
        Self::RetiredContract,
        Self::PastContract,
        Self::Grant,
        Self::Link,
        Self::FormerLink,
        Self::Reservation,
        Self::Visibility,
        Self::Revocation,
        Self::Tenant,
        Self::PersonalUrl,
        Self::SharedInfra,
        Self::ApprovedCode,
        Self::Toggle,
        Self::Suspension,
        Self::Quarantine,
        Self::Conviction,
        Self::Withheld,
        Self::Disclosure,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Organization => "organization",
            Self::Group => "group",
            Self::GroupAccess => "group_access",
            Self::Membership => "membership",
            Self::OrgUserRecord => "org_user_record",
            Self::Contract => "contract",
            Self::RetiredContract => "retired_contract",
            Self::PastContract => "past_contract",
            Self::Grant => "grant",
            Self::Link => "link",
            Self::FormerLink => "former_link",
            Self::Reservation => "reservation",
            Self::Visibility => "visibility",
            Self::Revocation => "revocation",
            Self::Tenant => "directory_tenant",
            Self::PersonalUrl => "personal_url",
            Self::SharedInfra => "shared_infrastructure",
            Self::ApprovedCode => "approved_code",
            Self::Toggle => "system_toggle",
            Self::Suspension => "suspension",
            Self::Quarantine => "quarantine",
            Self::Conviction => "conviction",
            Self::Withheld => "withheld_change",
            Self::Disclosure => "disclosure_grant",
        }
    }

    /// The table whose triggers write the change rows.
    const fn table(self) -> &'static str {
        match self {
            Self::User => "users",
            Self::Organization => "organizations",
            Self::Group => "groups",
            Self::GroupAccess => "group_access",
            Self::Membership => "memberships",
            Self::OrgUserRecord => "org_user_records",
            Self::Contract => "contracts",
            Self::RetiredContract => "retired_contracts",
            Self::PastContract => "past_contracts",
            Self::Grant => "contract_grants",
            Self::Link => "address_links",
            Self::FormerLink => "former_links",
            Self::Reservation => "reservations",
            Self::Visibility => "tx_visibility",
            Self::Revocation => "revocations",
            Self::Tenant => "directory_tenants",
            Self::PersonalUrl => "personal_urls",
            Self::SharedInfra => "shared_infrastructure",
            Self::ApprovedCode => "approved_code",
            Self::Toggle => "system_toggles",
            Self::Suspension => "suspensions",
            Self::Quarantine => "quarantines",
            Self::Conviction => "convictions",
            Self::Withheld => "withheld_changes",
            Self::Disclosure => "disclosure_grants",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entity| entity.as_str() == text)
    }
}

/// The tables of the snapshot, each with the entity of its change rows.
pub(crate) fn recorded_tables() -> impl Iterator<Item = (&'static str, &'static str)> {
    Entity::ALL.into_iter().map(|entity| (entity.table(), entity.as_str()))
}

/// A table that is part of the snapshot.
pub(super) trait SnapshotTable: EntityTrait {
    /// The columns that the snapshot needs.
    type Row: FromQueryResult + Send;
    /// The column that change rows name.
    const KEY: Self::Column;
    /// Selects these columns.
    fn rows(select: Select<Self>) -> Selector<SelectModel<Self::Row>>;
    /// The row's key.
    fn key(row: &Self::Row) -> Uuid;
    /// Converts the row to a change of the snapshot; the change contains `None` if the row has no effect any more.
    fn change(row: Self::Row) -> Result<Change, StoreError>;
    /// Returns the change that removes the row with this key.
    fn removal(key: Uuid) -> Change;
}

macro_rules! by_entity {
    ($entity:expr, $run:ident($($argument:expr),*)) => {
        match $entity {
            Entity::User => $run::<users::Entity>($($argument),*).await,
            Entity::Organization => $run::<organizations::Entity>($($argument),*).await,
            Entity::Group => $run::<groups::Entity>($($argument),*).await,
            Entity::GroupAccess => $run::<group_access::Entity>($($argument),*).await,
            Entity::Membership => $run::<memberships::Entity>($($argument),*).await,
            Entity::OrgUserRecord => $run::<org_user_records::Entity>($($argument),*).await,
            Entity::Contract => $run::<contracts::Entity>($($argument),*).await,
            Entity::RetiredContract => $run::<retired_contracts::Entity>($($argument),*).await,
            Entity::PastContract => $run::<past_contracts::Entity>($($argument),*).await,
            Entity::Grant => $run::<contract_grants::Entity>($($argument),*).await,
            Entity::Link => $run::<address_links::Entity>($($argument),*).await,
            Entity::FormerLink => $run::<former_links::Entity>($($argument),*).await,
            Entity::Reservation => $run::<reservations::Entity>($($argument),*).await,
            Entity::Visibility => $run::<tx_visibility::Entity>($($argument),*).await,
            Entity::Revocation => $run::<revocations::Entity>($($argument),*).await,
            Entity::Tenant => $run::<directory_tenants::Entity>($($argument),*).await,
            Entity::PersonalUrl => $run::<personal_urls::Entity>($($argument),*).await,
            Entity::SharedInfra => $run::<shared_infrastructure::Entity>($($argument),*).await,
            Entity::ApprovedCode => $run::<approved_code::Entity>($($argument),*).await,
            Entity::Toggle => $run::<system_toggles::Entity>($($argument),*).await,
            Entity::Suspension => $run::<suspensions::Entity>($($argument),*).await,
            Entity::Quarantine => $run::<quarantines::Entity>($($argument),*).await,
            Entity::Conviction => $run::<convictions::Entity>($($argument),*).await,
            Entity::Withheld => $run::<withheld_changes::Entity>($($argument),*).await,
            Entity::Disclosure => $run::<disclosure_grants::Entity>($($argument),*).await,
        }
    };
}

/// Adds every row of a table to `snapshot`.
pub(super) async fn load_all(
    tx: &Transaction,
    entity: Entity,
    snapshot: Snapshot,
    epoch: Epoch,
) -> Result<Snapshot, StoreError> {
    by_entity!(entity, all_rows(tx, snapshot, epoch))
}

/// Reads the named rows: adds removals for missing rows to `removed`, and changes for existing ones to `present`.
pub(super) async fn load_some(
    tx: &Transaction,
    entity: Entity,
    keys: &[Uuid],
    removed: &mut Vec<Change>,
    present: &mut Vec<Change>,
) -> Result<(), StoreError> {
    by_entity!(entity, some_rows(tx, keys, removed, present))
}

/// Maximum rows in memory at a time while loading.
const CHUNK: u64 = 20_000;

async fn all_rows<E: SnapshotTable>(
    tx: &Transaction,
    mut snapshot: Snapshot,
    epoch: Epoch,
) -> Result<Snapshot, StoreError> {
    let mut after: Option<Uuid> = None;
    loop {
        // Keyset paging: one index range per chunk, for any size of the table.
        let mut page = E::find().order_by_asc(E::KEY).limit(CHUNK);
        if let Some(after) = after {
            page = page.filter(E::KEY.gt(after));
        }
        let rows = E::rows(page).all(tx).await?;
        let Some(last) = rows.last().map(E::key) else {
            return Ok(snapshot);
        };
        after = Some(last);
        let changes = rows.into_iter().map(E::change).collect::<Result<Vec<_>, _>>()?;
        snapshot = snapshot.apply(epoch, changes);
    }
}

async fn some_rows<E: SnapshotTable>(
    tx: &Transaction,
    keys: &[Uuid],
    removed: &mut Vec<Change>,
    present: &mut Vec<Change>,
) -> Result<(), StoreError> {
    let mut missing: HashSet<Uuid> = keys.iter().copied().collect();
    for keys in keys.chunks(Engine::for_connection(tx).max_parameters()) {
        let named = E::find().filter(E::KEY.is_in(keys.iter().copied()));
        for row in E::rows(named).all(tx).await? {
            missing.remove(&E::key(&row));
            present.push(E::change(row)?);
        }
    }
    removed.extend(missing.into_iter().map(E::removal));
    Ok(())
}
