//! Conversion of each table's rows to [`Change`]s. Of the large tables only the columns that decisions read are
//! fetched.

use super::tables::SnapshotTable;
use crate::{
    StoreError,
    entity::{
        address_links, approved_code, contract_grants, contracts, convictions, directory_tenants, disclosure_grants,
        former_links, group_access, groups, memberships, org_user_records, organizations, past_contracts,
        personal_urls, quarantines, reservations, retired_contracts, revocations, shared_infrastructure, suspensions,
        system_toggles, tx_visibility, users, withheld_changes,
    },
    record::{self, ReservationState},
    row::{self, RowRef},
};
use gw_evm::{CustomMethodNames, Method, MethodSet, abi::ContractAbi};
use gw_policy::{
    Change,
    snapshot::{
        AddressLink, AllowedTenant, ApprovedCode, ClosedTo, CodePin, Constraint, Contract, ContractGrant, Conviction,
        DisclosureGrant, EventRule, EventRules, FunctionRule, Group, GroupAccess, Membership, OrgUserRecord,
        Organization, ParamRule, PastContract, PersonalUrl, Quarantine, Reservation, RetiredContract, Revocation,
        SharedInfra, Suspension, ToggleState, TxVisibility, User, WithheldState,
    },
};
use gw_types::Timestamp;
use sea_orm::{DerivePartialModel, Select, SelectModel, Selector};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

#[derive(DerivePartialModel)]
#[sea_orm(entity = "users::Entity")]
pub(super) struct UserRow {
    id: Uuid,
    external_id: String,
    kyc: bool,
    banned: bool,
    auth_tenant_id: Option<String>,
    tokens_valid_from: Option<i64>,
}

#[derive(DerivePartialModel)]
#[sea_orm(entity = "memberships::Entity")]
pub(super) struct MembershipRow {
    id: Uuid,
    user_id: Uuid,
    group_id: Uuid,
    expires_at: Option<i64>,
    created_at: i64,
    state: String,
    accepted_at: Option<i64>,
}

#[derive(DerivePartialModel)]
#[sea_orm(entity = "disclosure_grants::Entity")]
pub(super) struct DisclosureRow {
    id: Uuid,
    owner_user_id: Uuid,
    grantee_did: Option<String>,
    org_id: Uuid,
    disclosure_level: String,
    scope: Value,
    include_future_addresses: bool,
    granted_at: i64,
    expires_at: i64,
    revoked_at: Option<i64>,
    secret: Option<Vec<u8>>,
}

#[derive(DerivePartialModel)]
#[sea_orm(entity = "address_links::Entity")]
pub(super) struct LinkRow {
    id: Uuid,
    user_id: Uuid,
    address: String,
    link_type: String,
    contract_wallet: bool,
    verified_at: i64,
    revoked_at: Option<i64>,
}

/// The items of a [`SnapshotTable`] that only name things: the row and how it is selected, the key's column and field,
/// and the variant of [`Change`] that a removed row becomes.
macro_rules! snapshot_table {
    ($row:ty, $select:ident, $column:ident = $field:ident, $change:ident) => {
        type Row = $row;
        const KEY: Self::Column = Self::Column::$column;

        fn rows(select: Select<Self>) -> Selector<SelectModel<Self::Row>> {
            select.$select()
        }

        fn key(row: &Self::Row) -> Uuid {
            row.$field
        }

        fn removal(key: Uuid) -> Change {
            Change::$change(key.into(), None)
        }
    };
}

impl SnapshotTable for users::Entity {
    snapshot_table!(UserRow, into_partial_model, Id = id, User);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let id = row.id.into();
        let place = RowRef::new("users", row.id);
        let external_id = place.parse("external_id", &row.external_id)?;
        let tenant = row
            .auth_tenant_id
            .map(|tenant| place.parse("auth_tenant_id", &tenant))
            .transpose()?;
        let tokens_valid_from = row.tokens_valid_from.map(Timestamp::from_micros);
        let (kyc, banned) = (row.kyc, row.banned);
        Ok(Change::User(
            id,
            Some(User {
                id,
                external_id,
                kyc,
                banned,
                tenant,
                tokens_valid_from,
            }),
        ))
    }
}

impl SnapshotTable for organizations::Entity {
    snapshot_table!(organizations::Model, into_model, Id = id, Organization);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let id = row.id.into();
        let (slug, name) = (row.slug.into(), row.name.into());
        Ok(Change::Organization(
            id,
            Some(Organization {
                id,
                slug,
                name,
                is_system: row.is_system,
            }),
        ))
    }
}

impl SnapshotTable for groups::Entity {
    snapshot_table!(groups::Model, into_model, Id = id, Group);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let group = Group {
            id: row.id.into(),
            org: row.org_id.into(),
            slug: row.slug.into(),
            is_org_admin: row.is_org_admin,
            is_org_readonly_admin: row.is_org_readonly_admin,
            is_system: row.is_system,
        };
        Ok(Change::Group(group.id, Some(group)))
    }
}

impl SnapshotTable for group_access::Entity {
    snapshot_table!(group_access::Model, into_model, GroupId = group_id, GroupAccess);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let access = record::GroupAccess::try_from(row)?;
        // G1: a group's denied methods are removed from its own allowed ones before the union; other groups may still
        // allow them.
        let methods = method_set(&access.allowed_methods).without(method_set(&access.denied_methods));
        let custom_methods = CustomMethodNames::new(&access.allowed_methods, &access.denied_methods);
        let (group, claims, expires_at) = (access.group, access.claims, access.expires_at);
        let upstream_key = access.rpc_api_key;
        Ok(Change::GroupAccess(
            group,
            Some(GroupAccess {
                group,
                methods,
                custom_methods,
                claims,
                expires_at,
                upstream_key,
            }),
        ))
    }
}

/// Returns the registered methods among the names; other names are ignored.
fn method_set(names: &[String]) -> MethodSet {
    names.iter().fold(MethodSet::EMPTY, |set, name| match name.as_str() {
        "*" => set.union(MethodSet::ALL),
        name => Method::by_name(name).map_or(set, |method| set.with(method)),
    })
}

impl SnapshotTable for memberships::Entity {
    snapshot_table!(MembershipRow, into_partial_model, Id = id, Membership);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let membership = Membership {
            id: row.id.into(),
            user: row.user_id.into(),
            group: row.group_id.into(),
            expires_at: row.expires_at.map(Timestamp::from_micros),
            state: row::membership_state(&row.state)
                .ok_or_else(|| RowRef::new("memberships", row.id).invalid_column("state"))?,
            since: Timestamp::from_micros(row.accepted_at.unwrap_or(row.created_at)),
        };
        Ok(Change::Membership(membership.id, Some(membership)))
    }
}

impl SnapshotTable for org_user_records::Entity {
    snapshot_table!(org_user_records::Model, into_model, Id = id, OrgUserRecord);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let (id, org) = (row.id.into(), row.org_id.into());
        let external_id = RowRef::new("org_user_records", row.id).parse("external_id", &row.external_id)?;
        let (kyc, banned) = (row.kyc, row.banned);
        Ok(Change::OrgUserRecord(
            id,
            Some(OrgUserRecord {
                id,
                org,
                external_id,
                kyc,
                banned,
            }),
        ))
    }
}

impl SnapshotTable for contracts::Entity {
    snapshot_table!(contracts::Model, into_model, Id = id, Contract);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let row = record::Contract::try_from(row)?;
        let contract = Contract {
            id: row.id,
            org: row.org,
            address: row.address,
            since: row.since(),
            owned_from: row.owned_from,
            // A malformed text or an unknown token type gives no ABI: checks that need an ABI then deny (F3).
            abi: row.abi.as_deref().map_or_else(
                || built_in_abi(&row.metadata),
                |text| ContractAbi::parse(text).ok().map(Arc::new),
            ),
            name: row.name.into(),
            deployer: row.deployer,
            allow_visibleto_unlock: row.allow_visibleto_unlock,
            events_allow_dynamic_payload: row.events_allow_dynamic_payload,
            trusted_router: row.trusted_router,
        };
        Ok(Change::Contract(contract.id, Some(contract)))
    }
}

/// Returns the built-in ABI that `metadata.token_type` names (K1).
fn built_in_abi(metadata: &record::JsonObject) -> Option<Arc<ContractAbi>> {
    metadata
        .get("token_type")
        .and_then(serde_json::Value::as_str)
        .and_then(gw_evm::abi::builtin)
}

impl SnapshotTable for retired_contracts::Entity {
    snapshot_table!(retired_contracts::Model, into_model, Id = id, RetiredContract);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let retired = RetiredContract {
            id: row.id.into(),
            address: RowRef::new("retired_contracts", row.id).parse("address", &row.address)?,
            org: row.org_id.into(),
            since: Timestamp::from_micros(row.since),
            retired_at: Timestamp::from_micros(row.retired_at),
        };
        Ok(Change::RetiredContract(retired.id, Some(retired)))
    }
}

impl SnapshotTable for past_contracts::Entity {
    snapshot_table!(past_contracts::Model, into_model, Id = id, PastContract);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let place = RowRef::new("past_contracts", row.id);
        let id = row.id.into();
        let grants: Vec<record::PastGrant> = place.json("grants", row.grants)?;
        let grant = |grant: record::PastGrant| {
            let (group, claims) = (grant.group.into(), place.claims(&grant.claims)?);
            // A past registration permits no calls.
            let functions = Some(Vec::new());
            let events = events(grant.events);
            Ok(Arc::new(ContractGrant {
                id: grant.id.into(),
                contract: id,
                group,
                claims,
                functions,
                events,
            }))
        };
        let grants = grants.into_iter().map(grant).collect::<Result<_, StoreError>>()?;
        let metadata = place.object("metadata", row.metadata)?;
        let contract = Contract {
            id,
            org: row.org_id.into(),
            address: place.parse("address", &row.address)?,
            since: Timestamp::from_micros(row.since),
            owned_from: row.owned_from.map(crate::row::block),
            name: "".into(),
            deployer: row.deployed_by_user_id.map(Into::into),
            abi: row.abi.as_deref().map_or_else(
                || built_in_abi(&metadata),
                |text| ContractAbi::parse(text).ok().map(Arc::new),
            ),
            allow_visibleto_unlock: row.allow_visibleto_unlock,
            events_allow_dynamic_payload: row.events_allow_dynamic_payload,
            trusted_router: false,
        };
        let owned_until = row.owned_until.map(crate::row::block);
        Ok(Change::PastContract(
            id,
            Some(PastContract {
                contract: Arc::new(contract),
                grants,
                owned_until,
            }),
        ))
    }
}

impl SnapshotTable for contract_grants::Entity {
    snapshot_table!(contract_grants::Model, into_model, Id = id, Grant);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let grant = record::Grant::try_from(row)?;
        let grant = ContractGrant {
            id: grant.id,
            contract: grant.contract,
            group: grant.group,
            claims: grant.claims,
            functions: grant
                .functions
                .map(|rules| rules.into_iter().map(function_rule).collect()),
            events: events(grant.event_rules),
        };
        Ok(Change::Grant(grant.id, Some(grant)))
    }
}

fn events(rules: record::EventRules) -> EventRules {
    match rules {
        record::EventRules::Unset | record::EventRules::Wildcard => EventRules::All,
        record::EventRules::List(rules) => EventRules::Only(rules.into_iter().map(event_rule).collect()),
    }
}

fn function_rule(rule: record::FunctionRule) -> FunctionRule {
    FunctionRule {
        selector: rule.selector,
        params: param_rules(&rule.param_rules),
    }
}

fn event_rule(rule: record::EventRule) -> EventRule {
    EventRule {
        topic0: rule.topic0,
        params: param_rules(&rule.param_rules),
    }
}

fn param_rules(rules: &[record::ParamRule]) -> Vec<ParamRule> {
    let core = |must_be: &record::MustBe| match must_be {
        record::MustBe::Own => Constraint::Own,
        record::MustBe::Org => Constraint::Org,
        record::MustBe::Literal(literal) => Constraint::Word(literal.word),
        record::MustBe::OneOf(literals) => Constraint::OneOf(literals.iter().map(|literal| literal.word).collect()),
        record::MustBe::Compare(comparison, literal) => Constraint::Compare(*comparison, literal.word),
    };
    rules
        .iter()
        .map(|rule| ParamRule {
            index: usize::from(rule.index),
            must_be: core(&rule.must_be),
        })
        .collect()
}

impl SnapshotTable for address_links::Entity {
    snapshot_table!(LinkRow, into_partial_model, Id = id, Link);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let place = RowRef::new("address_links", row.id);
        let link = AddressLink {
            id: row.id.into(),
            user: row.user_id.into(),
            address: place.parse("address", &row.address)?,
            kind: row::link_kind(&row.link_type).ok_or_else(|| place.invalid_column("link_type"))?,
            contract_wallet: row.contract_wallet,
            verified_at: Timestamp::from_micros(row.verified_at),
        };
        Ok(match row.revoked_at {
            None => Change::Link(link.id, Some(link)),
            Some(_) => Change::LinkEnded(link.id, link.address),
        })
    }
}

/// In the snapshot, a link deleted with its account is an ended link.
impl SnapshotTable for former_links::Entity {
    snapshot_table!(former_links::Model, into_model, Id = id, Link);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let address = RowRef::new("former_links", row.id).parse("address", &row.address)?;
        Ok(Change::LinkEnded(row.id.into(), address))
    }
}

impl SnapshotTable for directory_tenants::Entity {
    snapshot_table!(directory_tenants::Model, into_model, Id = id, Tenant);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let tenant = RowRef::new("directory_tenants", row.id).parse("tenant_id", &row.tenant_id)?;
        let tenant = AllowedTenant {
            id: row.id.into(),
            tenant,
            disabled: row.disabled,
        };
        Ok(Change::Tenant(tenant.id, Some(tenant)))
    }
}

impl SnapshotTable for personal_urls::Entity {
    snapshot_table!(personal_urls::Model, into_model, Id = id, PersonalUrl);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let record::PersonalUrl {
            id,
            secret,
            user,
            org,
            reach,
            created_at,
            expires_at,
            ..
        } = row.try_into()?;
        let url = PersonalUrl {
            id,
            secret,
            user,
            org,
            reach,
            created_at,
            expires_at,
        };
        Ok(Change::PersonalUrl(id, Some(url)))
    }
}

impl SnapshotTable for reservations::Entity {
    snapshot_table!(reservations::Model, into_model, Id = id, Reservation);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let place = RowRef::new("reservations", row.id);
        let state = ReservationState::parse(&row.state).ok_or_else(|| place.invalid_column("state"))?;
        let reservation = Reservation {
            id: row.id.into(),
            address: place.parse("address", &row.address)?,
            org: row.org_id.into(),
            user: row.user_id.into(),
            expires_at: Timestamp::from_micros(row.expires_at),
        };
        Ok(Change::Reservation(
            reservation.id,
            state.is_open().then_some(reservation),
        ))
    }
}

impl SnapshotTable for tx_visibility::Entity {
    snapshot_table!(tx_visibility::Model, into_model, Id = id, Visibility);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let place = RowRef::new("tx_visibility", row.id);
        let visibility = TxVisibility {
            id: row.id.into(),
            tx_hash: place.parse("tx_hash", &row.tx_hash)?,
            sender: row.sender_user_id.into(),
            recipients: place.json("recipients", row.recipients)?,
            active: row.active,
        };
        Ok(Change::Visibility(visibility.id, Some(visibility)))
    }
}

impl SnapshotTable for suspensions::Entity {
    snapshot_table!(suspensions::Model, into_model, Id = id, Suspension);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let external_id = RowRef::new("suspensions", row.id).parse("external_id", &row.external_id)?;
        let suspension = Suspension {
            id: row.id.into(),
            external_id,
        };
        Ok(Change::Suspension(suspension.id, Some(suspension)))
    }
}

impl SnapshotTable for disclosure_grants::Entity {
    snapshot_table!(DisclosureRow, into_partial_model, Id = id, Disclosure);

    /// A grant that nobody can use has no effect, nor has one whose secret is destroyed or malformed: nothing could be
    /// named under it.
    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let id = row.id.into();
        let secret = row.secret.as_deref().and_then(row::sealed_secret);
        let (Some(secret), Some(grantee)) = (secret, row.grantee_did) else {
            return Ok(Change::Disclosure(id, None));
        };
        let grant = DisclosureGrant {
            id,
            owner: row.owner_user_id.into(),
            grantee: RowRef::new("disclosure_grants", row.id).parse("grantee_did", &grantee)?,
            org: row.org_id.into(),
            granted_at: Timestamp::from_micros(row.granted_at),
            expires_at: Timestamp::from_micros(row.expires_at),
            revoked_at: row.revoked_at.map(Timestamp::from_micros),
            include_future_addresses: row.include_future_addresses,
            scope: row::disclosure_scope(&row.disclosure_level, row.scope),
            secret,
        };
        Ok(Change::Disclosure(id, Some(grant)))
    }
}

impl SnapshotTable for quarantines::Entity {
    snapshot_table!(quarantines::Model, into_model, Id = id, Quarantine);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let record::Quarantine { id, address, side, .. } = row.try_into()?;
        let closed_to = side.map_or(ClosedTo::Everybody, |(sender, orgs)| {
            ClosedTo::SenderSide(sender, orgs.into())
        });
        Ok(Change::Quarantine(id, Some(Quarantine { id, address, closed_to })))
    }
}

impl SnapshotTable for convictions::Entity {
    snapshot_table!(convictions::Model, into_model, Id = id, Conviction);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let record::Conviction {
            id,
            tx_hash,
            external_id,
            block_hash,
            place,
            logs,
            cleared_at,
            ..
        } = row.try_into()?;
        let conviction = Conviction {
            id,
            tx_hash,
            external_id,
            block_hash,
            place,
            logs,
        };
        Ok(Change::Conviction(id, cleared_at.is_none().then_some(conviction)))
    }
}

impl SnapshotTable for withheld_changes::Entity {
    snapshot_table!(withheld_changes::Model, into_model, Id = id, Withheld);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let record::WithheldChange {
            id,
            address,
            side,
            block,
            place,
            change,
            ..
        } = row.try_into()?;
        Ok(Change::Withheld(
            id,
            Some(WithheldState {
                id,
                address,
                block,
                place,
                side,
                change,
            }),
        ))
    }
}

impl SnapshotTable for revocations::Entity {
    snapshot_table!(revocations::Model, into_model, Id = id, Revocation);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let id = row.id.into();
        Ok(Change::Revocation(
            id,
            Some(Revocation {
                id,
                until: Timestamp::from_micros(row.until),
            }),
        ))
    }
}

impl SnapshotTable for shared_infrastructure::Entity {
    snapshot_table!(shared_infrastructure::Model, into_model, Id = id, SharedInfra);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let row = record::SharedInfra::try_from(row)?;
        let pin = row.codehash.map(|code| CodePin {
            code,
            implementation: row.implementation_codehash,
        });
        let broken = row.broken_codehash.is_some();
        Ok(Change::SharedInfra(
            row.id,
            Some(SharedInfra {
                id: row.id,
                address: row.address,
                pin,
                broken,
            }),
        ))
    }
}

impl SnapshotTable for approved_code::Entity {
    snapshot_table!(approved_code::Model, into_model, Id = id, ApprovedCode);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let record::ApprovedCode { id, hash, size, .. } = row.try_into()?;
        Ok(Change::ApprovedCode(id, Some(ApprovedCode { id, hash, size })))
    }
}

impl SnapshotTable for system_toggles::Entity {
    snapshot_table!(system_toggles::Model, into_model, Id = id, Toggle);

    fn change(row: Self::Row) -> Result<Change, StoreError> {
        let (id, until) = (row.id.into(), Timestamp::from_micros(row.expires_at));
        Ok(Change::Toggle(
            id,
            Some(ToggleState {
                id,
                enabled: row.enabled,
                until,
            }),
        ))
    }
}
