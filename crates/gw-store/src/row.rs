//! Conversion of rows to records: a row that breaks an invariant is an error with table, column and key.

mod webhook;

pub(crate) use webhook::webhook_secret;

use crate::{
    StoreError,
    entity::{
        address_links, approved_code, contract_grants, contracts, convictions, directory_tenants, disclosure_grants,
        disclosure_requests, group_access, groups, legal_holds, memberships, org_user_records, organizations,
        personal_urls, quarantines, refresh_tokens, reservations, shared_infrastructure, suspensions, system_toggles,
        users, watched_sends, withheld_changes,
    },
    record::{
        AllowedTenant, ApprovedCode, Contract, Conviction, CreationKind, DisclosureGrant, DisclosureRequest,
        EventRules, Grant, Group, GroupAccess, HoldScope, JsonObject, LegalHold, Link, Membership, MembershipSource,
        OpenReservation, OrgUserRecord, Organization, PersonalUrl, Quarantine, RefreshToken, ReservationState,
        SharedInfra, Suspension, ToggleUpdate, TokenHash, User, WatchedSend, WithheldChange,
    },
};
use gw_policy::{
    access::AuthorizedRuns,
    disclosure::{RequestStatus, scope::stored_level},
    snapshot::{DisclosureScope, LinkKind, MembershipState, SystemToggle, UrlReach},
};
use gw_types::{Address, Claims, SealedGrantSecret, Secret, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Table and key of a row, for errors.
#[derive(Clone, Copy)]
pub(crate) struct RowRef {
    table: &'static str,
    id: uuid::Uuid,
}

impl RowRef {
    pub(crate) const fn new(table: &'static str, id: uuid::Uuid) -> Self {
        Self { table, id }
    }

    pub(crate) fn invalid_column(self, column: &'static str) -> StoreError {
        StoreError::Row {
            table: self.table,
            column,
            id: self.id.to_string(),
        }
    }

    pub(crate) fn parse<T: core::str::FromStr>(self, column: &'static str, text: &str) -> Result<T, StoreError> {
        text.parse().map_err(|_| self.invalid_column(column))
    }

    pub(crate) fn json<T: DeserializeOwned>(self, column: &'static str, value: Value) -> Result<T, StoreError> {
        serde_json::from_value(value).map_err(|_| self.invalid_column(column))
    }

    pub(crate) fn object(self, column: &'static str, value: Value) -> Result<JsonObject, StoreError> {
        match value {
            Value::Object(object) => Ok(object),
            _ => Err(self.invalid_column(column)),
        }
    }

    pub(crate) fn claims(self, text: &str) -> Result<Claims, StoreError> {
        text.split(',')
            .filter(|name| !name.is_empty())
            .map(|name| self.parse("claims", name))
            .collect()
    }
}

/// Returns the column text of claims.
pub(crate) fn claims_text(claims: Claims) -> String {
    claims.iter().map(gw_types::Claim::as_str).collect::<Vec<_>>().join(",")
}

/// Returns the column text of an address: lower-case hex.
pub(crate) fn address_text(address: Address) -> String {
    format!("{address:#x}")
}

pub(crate) fn link_kind(text: &str) -> Option<LinkKind> {
    match text {
        "user" => Some(LinkKind::User),
        "system" => Some(LinkKind::System),
        _ => None,
    }
}

/// Returns the column text of a link's kind.
pub(crate) const fn link_kind_text(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::User => "user",
        LinkKind::System => "system",
    }
}

const fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

impl TryFrom<organizations::Model> for Organization {
    type Error = StoreError;
    fn try_from(row: organizations::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("organizations", row.id);
        Ok(Self {
            id: row.id.into(),
            slug: row.slug,
            name: row.name,
            settings: place.object("settings", row.settings)?,
            is_system: row.is_system,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<groups::Model> for Group {
    type Error = StoreError;
    fn try_from(row: groups::Model) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id.into(),
            org: row.org_id.into(),
            parent: row.parent_id.map(Into::into),
            slug: row.slug,
            name: row.name,
            description: row.description,
            is_org_admin: row.is_org_admin,
            is_org_readonly_admin: row.is_org_readonly_admin,
            is_system: row.is_system,
            auto_created: row.auto_created,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<group_access::Model> for GroupAccess {
    type Error = StoreError;
    fn try_from(row: group_access::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("group_access", row.group_id);
        Ok(Self {
            group: row.group_id.into(),
            allowed_methods: place.json("allowed_methods", row.allowed_methods)?,
            claims: place.claims(&row.claims)?,
            rpc_api_key: row.rpc_api_key.map(Secret::new),
            verbose_errors: row.verbose_errors,
            denied_methods: place.json("denied_methods", row.denied_methods)?,
            expires_at: row.expires_at.map(at),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<users::Model> for User {
    type Error = StoreError;
    fn try_from(row: users::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("users", row.id);
        Ok(Self {
            id: row.id.into(),
            external_id: place.parse("external_id", &row.external_id)?,
            kyc: row.kyc,
            banned: row.banned,
            note: row.note,
            metadata: place.object("metadata", row.metadata)?,
            auth_tenant_id: row
                .auth_tenant_id
                .map(|tenant| place.parse("auth_tenant_id", &tenant))
                .transpose()?,
            tokens_valid_from: row.tokens_valid_from.map(at),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<directory_tenants::Model> for AllowedTenant {
    type Error = StoreError;
    fn try_from(row: directory_tenants::Model) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id.into(),
            tenant: RowRef::new("directory_tenants", row.id).parse("tenant_id", &row.tenant_id)?,
            label: row.label,
            auto_provision: row.auto_provision,
            disabled: row.disabled,
            default_org: row.default_org_id.map(Into::into),
            default_group: row.default_group_id.map(Into::into),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<shared_infrastructure::Model> for SharedInfra {
    type Error = StoreError;
    fn try_from(row: shared_infrastructure::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("shared_infrastructure", row.id);
        let hash = |column, text: Option<String>| text.map(|text| place.parse(column, &text)).transpose();
        Ok(Self {
            id: row.id.into(),
            address: place.parse("address", &row.address)?,
            name: row.name,
            description: row.description,
            codehash: hash("codehash", row.codehash)?,
            implementation_codehash: hash("implementation_codehash", row.implementation_codehash)?,
            broken_codehash: hash("broken_codehash", row.broken_codehash)?,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<approved_code::Model> for ApprovedCode {
    type Error = StoreError;
    fn try_from(row: approved_code::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("approved_code", row.id);
        Ok(Self {
            id: row.id.into(),
            hash: place.parse("code_hash", &row.code_hash)?,
            size: u32::try_from(row.code_size).map_err(|_| place.invalid_column("code_size"))?,
            name: row.name,
            approved_by: row.approved_by,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<legal_holds::Model> for LegalHold {
    type Error = StoreError;
    fn try_from(row: legal_holds::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("legal_holds", row.id);
        let scope = match (row.org_id, &row.stream) {
            (Some(org), None) => HoldScope::Organization(org.into()),
            (None, Some(stream)) => HoldScope::Stream(place.parse("stream", stream)?),
            (Some(_), Some(_)) | (None, None) => return Err(place.invalid_column("stream")),
        };
        Ok(Self {
            id: row.id.into(),
            scope,
            reason: row.reason,
            placed_by: row.placed_by,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<system_toggles::Model> for ToggleUpdate {
    type Error = StoreError;
    fn try_from(row: system_toggles::Model) -> Result<Self, StoreError> {
        let known = SystemToggle::ALL.into_iter().find(|toggle| toggle.id().0 == row.id);
        Ok(Self {
            toggle: known.ok_or_else(|| RowRef::new("system_toggles", row.id).invalid_column("id"))?,
            enabled: row.enabled,
            reason: row.reason,
            changed_by: row.changed_by,
            changed_at: at(row.changed_at),
            expires_at: at(row.expires_at),
        })
    }
}

impl TryFrom<personal_urls::Model> for PersonalUrl {
    type Error = StoreError;
    fn try_from(row: personal_urls::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("personal_urls", row.id);
        let contracts: Vec<Address> = place.json("contracts", row.contracts)?;
        Ok(Self {
            id: row.id.into(),
            secret: place.parse("secret_hash", &row.secret_hash)?,
            user: row.user_id.into(),
            org: row.org_id.into(),
            name: row.name,
            reach: match row.scope.as_str() {
                "wallet" => UrlReach::Wallet,
                "contracts" => UrlReach::Contracts(contracts.into()),
                "all" => UrlReach::All,
                _ => return Err(place.invalid_column("scope")),
            },
            created_at: at(row.created_at),
            expires_at: at(row.expires_at),
            login: row.login.map(Into::into),
        })
    }
}

impl TryFrom<memberships::Model> for Membership {
    type Error = StoreError;
    fn try_from(row: memberships::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("memberships", row.id);
        Ok(Self {
            id: row.id.into(),
            user: row.user_id.into(),
            group: row.group_id.into(),
            source: MembershipSource::parse(&row.source).ok_or_else(|| place.invalid_column("source"))?,
            zk_credential_ref: row.zk_credential_ref,
            expires_at: row.expires_at.map(at),
            state: membership_state(&row.state).ok_or_else(|| place.invalid_column("state"))?,
            accepted_at: row.accepted_at.map(at),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

/// Reads a block number from a column.
pub(crate) fn block(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Converts a block number to a column value; numbers above `i64::MAX` become `i64::MAX`.
pub(crate) fn block_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the column text of a membership's state.
pub(crate) const fn membership_state_text(state: MembershipState) -> &'static str {
    match state {
        MembershipState::Accepted => "accepted",
        MembershipState::Provisional => "provisional",
        MembershipState::Invited => "invited",
    }
}

pub(crate) fn membership_state(text: &str) -> Option<MembershipState> {
    let states = [
        MembershipState::Accepted,
        MembershipState::Provisional,
        MembershipState::Invited,
    ];
    states.into_iter().find(|state| membership_state_text(*state) == text)
}

impl TryFrom<org_user_records::Model> for OrgUserRecord {
    type Error = StoreError;
    fn try_from(row: org_user_records::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("org_user_records", row.id);
        Ok(Self {
            id: row.id.into(),
            org: row.org_id.into(),
            external_id: place.parse("external_id", &row.external_id)?,
            kyc: row.kyc,
            banned: row.banned,
            note: row.note,
            metadata: place.object("metadata", row.metadata)?,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<contracts::Model> for Contract {
    type Error = StoreError;
    fn try_from(row: contracts::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("contracts", row.id);
        Ok(Self {
            id: row.id.into(),
            org: row.org_id.into(),
            address: place.parse("address", &row.address)?,
            name: row.name,
            abi: row.abi,
            metadata: place.object("metadata", row.metadata)?,
            deployed_at: row.deployed_at.map(at),
            deployer: row.deployed_by_user_id.map(Into::into),
            allow_visibleto_unlock: row.allow_visibleto_unlock,
            events_allow_dynamic_payload: row.events_allow_dynamic_payload,
            trusted_router: row.trusted_router,
            owned_from: row.owned_from.map(block),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<contract_grants::Model> for Grant {
    type Error = StoreError;
    fn try_from(row: contract_grants::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("contract_grants", row.id);
        Ok(Self {
            id: row.id.into(),
            contract: row.contract_id.into(),
            group: row.group_id.into(),
            claims: place.claims(&row.claims)?,
            functions: row.functions.map(|rules| place.json("functions", rules)).transpose()?,
            event_rules: match row.event_rules {
                Some(rules) => place.json("event_rules", rules)?,
                None => EventRules::Unset,
            },
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl TryFrom<address_links::Model> for Link {
    type Error = StoreError;
    fn try_from(row: address_links::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("address_links", row.id);
        Ok(Self {
            id: row.id.into(),
            user: row.user_id.into(),
            address: place.parse("address", &row.address)?,
            kind: link_kind(&row.link_type).ok_or_else(|| place.invalid_column("link_type"))?,
            contract_wallet: row.contract_wallet,
            verified_at: at(row.verified_at),
            ens_name: row.ens_name,
            ens_resolved_at: row.ens_resolved_at.map(at),
            revoked_at: row.revoked_at.map(at),
            revoked_by_admin: row.revoked_by_admin,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<refresh_tokens::Model> for RefreshToken {
    type Error = StoreError;
    fn try_from(row: refresh_tokens::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("refresh_tokens", row.id);
        Ok(Self {
            hash: TokenHash(row.hash.try_into().map_err(|_| place.invalid_column("hash"))?),
            id: row.id.into(),
            family: row.family.into(),
            login: row.login.unwrap_or(row.family).into(),
            user: row.user_id.into(),
            amr: row.amr,
            family_started: at(row.family_started),
            created_at: at(row.created_at),
            expires_at: at(row.expires_at),
            used_at: row.used_at.map(at),
        })
    }
}

impl TryFrom<watched_sends::Model> for WatchedSend {
    type Error = StoreError;
    fn try_from(row: watched_sends::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("watched_sends", row.id);
        Ok(Self {
            id: row.id.into(),
            tx_hash: row.tx_hash.map(|hash| place.parse("tx_hash", &hash)).transpose()?,
            sender: place.parse("sender", &row.sender)?,
            nonce: place.parse("nonce", &row.nonce)?,
            external_id: place.parse("external_id", &row.external_id)?,
            org: row.org_id.into(),
            orgs: place.json("org_ids", row.org_ids)?,
            is_named: row.is_named,
            block_number: row.block_number.map(|number| u64::try_from(number).unwrap_or_default()),
            authorized_runs: match (row.judged_block, row.judged_number, row.judged_runs) {
                (Some(block), Some(number), Some(digests)) => Some(AuthorizedRuns {
                    block: place.parse("judged_block", &block)?,
                    number: u64::try_from(number).unwrap_or_default(),
                    digests: place.json("judged_runs", digests)?,
                    may_vary: row.judged_may_vary.unwrap_or(true),
                    changes: row
                        .judged_changes
                        .map(|changes| place.json("judged_changes", changes))
                        .transpose()?,
                }),
                _ => None,
            },
        })
    }
}

impl TryFrom<convictions::Model> for Conviction {
    type Error = StoreError;
    fn try_from(row: convictions::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("convictions", row.id);
        Ok(Self {
            id: row.id.into(),
            tx_hash: place.parse("tx_hash", &row.tx_hash)?,
            block_hash: place.parse("block_hash", &row.block_hash)?,
            place: u64::try_from(row.place).unwrap_or_default(),
            logs: u64::try_from(row.logs).unwrap_or_default(),
            sender: row.sender.map(|sender| place.parse("sender", &sender)).transpose()?,
            external_id: place.parse("external_id", &row.external_id)?,
            org: row.org_id.map(Into::into),
            wronged: place.json("wronged_org_ids", row.wronged_org_ids)?,
            reason: row.reason,
            created_at: at(row.created_at),
            cleared_at: row.cleared_at.map(at),
            cleared_by: row.cleared_by,
        })
    }
}

impl TryFrom<suspensions::Model> for Suspension {
    type Error = StoreError;
    fn try_from(row: suspensions::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("suspensions", row.id);
        Ok(Self {
            id: row.id.into(),
            external_id: place.parse("external_id", &row.external_id)?,
            org: row.org_id.map(Into::into),
            conviction: row.conviction_id.map(Into::into),
            tx_hash: place.parse("tx_hash", &row.tx_hash)?,
            block_hash: place.parse("block_hash", &row.block_hash)?,
            reason: row.reason,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<quarantines::Model> for Quarantine {
    type Error = StoreError;
    fn try_from(row: quarantines::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("quarantines", row.id);
        let orgs = place.json("side_org_ids", row.side_org_ids)?;
        let sender = row
            .side_external_id
            .map(|name| place.parse("side_external_id", &name))
            .transpose()?;
        Ok(Self {
            id: row.id.into(),
            address: place.parse("address", &row.address)?,
            org: row.org_id.map(Into::into),
            conviction: row.conviction_id.map(Into::into),
            side: sender.map(|sender| (sender, orgs)),
            tx_hash: place.parse("tx_hash", &row.tx_hash)?,
            block_hash: place.parse("block_hash", &row.block_hash)?,
            reason: row.reason,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<withheld_changes::Model> for WithheldChange {
    type Error = StoreError;
    fn try_from(row: withheld_changes::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("withheld_changes", row.id);
        Ok(Self {
            id: row.id.into(),
            conviction: row.conviction_id.into(),
            address: place.parse("address", &row.address)?,
            org: row.org_id.map(Into::into),
            side: place.json("side_org_ids", row.side_org_ids)?,
            block: u64::try_from(row.block_number).map_err(|_| place.invalid_column("block_number"))?,
            block_time: at(row.block_time),
            place: u64::try_from(row.place).map_err(|_| place.invalid_column("place"))?,
            change: place.json("change", row.change)?,
            created_at: at(row.created_at),
        })
    }
}

impl TryFrom<reservations::Model> for OpenReservation {
    type Error = StoreError;
    fn try_from(row: reservations::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("reservations", row.id);
        Ok(Self {
            id: row.id.into(),
            address: place.parse("address", &row.address)?,
            org: row.org_id.into(),
            user: row.user_id.into(),
            kind: CreationKind::parse(&row.kind).ok_or_else(|| place.invalid_column("kind"))?,
            sender: place.parse("sender", &row.sender)?,
            nonce: place.parse("nonce", &row.nonce)?,
            tx_hash: row.tx_hash.map(|hash| place.parse("tx_hash", &hash)).transpose()?,
            state: ReservationState::parse(&row.state).ok_or_else(|| place.invalid_column("state"))?,
            expires_at: at(row.expires_at),
        })
    }
}

/// The restrictions of a scope as the column `scope` holds them; the level has its own column. Dates are microseconds
/// since 1970.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeColumn {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    methods: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<Address>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dates: Option<(i64, i64)>,
}

/// Returns the column value of a scope, without its level.
pub(crate) fn scope_column(scope: &DisclosureScope) -> Result<Value, StoreError> {
    let column = ScopeColumn {
        methods: scope.methods.clone(),
        addresses: scope.addresses.clone(),
        dates: scope.dates.map(|(start, end)| (start.micros(), end.micros())),
    };
    serde_json::to_value(column).map_err(|_| StoreError::Rule("disclosure_scope"))
}

/// Reads a scope. One that cannot be parsed covers nothing: a restriction of a later version must not be lost.
pub(crate) fn disclosure_scope(level: &str, column: Value) -> DisclosureScope {
    // A list would parse, too: as the members in their order.
    let column = Some(column).filter(Value::is_object);
    let column = column.and_then(|column| serde_json::from_value::<ScopeColumn>(column).ok());
    column.map_or_else(DisclosureScope::nothing, |column| DisclosureScope {
        level: stored_level(level),
        dates: column.dates.map(|(start, end)| (at(start), at(end))),
        addresses: column.addresses,
        methods: column.methods,
    })
}

/// Reads the encrypted secret of a grant; `None` if it has another length.
pub(crate) fn sealed_secret(bytes: &[u8]) -> Option<SealedGrantSecret> {
    bytes.try_into().ok().map(SealedGrantSecret)
}

impl TryFrom<disclosure_requests::Model> for DisclosureRequest {
    type Error = StoreError;
    fn try_from(row: disclosure_requests::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("disclosure_requests", row.id);
        let requester = row.requester_did.map(|did| place.parse("requester_did", &did));
        Ok(Self {
            id: row.id.into(),
            requester: row.requester_user_id.map(Into::into),
            requester_did: requester.transpose()?,
            target: row.target_user_id.into(),
            org: row.org_id.into(),
            scope: disclosure_scope(&row.disclosure_level, row.scope),
            reason: row.reason,
            legal_basis: row.legal_basis,
            status: RequestStatus::parse(&row.status).ok_or_else(|| place.invalid_column("status"))?,
            requested_at: at(row.requested_at),
            expires_at: row.expires_at.map(at),
            decided_at: row.decided_at.map(at),
            decided_by: row.decided_by_user_id.map(Into::into),
            decision_reason: row.decision_reason,
        })
    }
}

impl TryFrom<disclosure_grants::Model> for DisclosureGrant {
    type Error = StoreError;
    fn try_from(row: disclosure_grants::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("disclosure_grants", row.id);
        let grantee = row.grantee_did.map(|did| place.parse("grantee_did", &did));
        Ok(Self {
            id: row.id.into(),
            request: row.request_id.into(),
            owner: row.owner_user_id.into(),
            grantee: grantee.transpose()?,
            org: row.org_id.into(),
            scope: disclosure_scope(&row.disclosure_level, row.scope),
            include_future_addresses: row.include_future_addresses,
            granted_at: at(row.granted_at),
            expires_at: at(row.expires_at),
            revoked_at: row.revoked_at.map(at),
            revoked_reason: row.revoked_reason,
            has_secret: row.secret.is_some(),
        })
    }
}
