//! Builder of snapshots for tests, so that each test states only what matters to it.
//!
//! Ids and addresses are derived from names ([`org_id`], [`address_of`], …), so tests refer to things by name instead
//! of passing ids around. For tests only: the builder panics where production code would return an error.
//!
//! ```
//! use gw_policy::testing::world;
//! use gw_evm::Method;
//!
//! let snapshot = world()
//!     .org("meridian")
//!     .group("analysts").methods([Method::Call])
//!     .user("analyst").member("analysts").link("analyst-wallet")
//!     .contract("bond").grant("analysts")
//!     .snapshot();
//! assert_eq!(snapshot.organizations().count(), 3, "meridian, the default and the anonymous organization");
//! ```

pub mod corpus;

use crate::snapshot::{
    AccountChange, AddressLink, ApprovedCode, Change, ClosedTo, CodePin, Constraint, Contract, ContractGrant,
    Conviction, DisclosureGrant, DisclosureScope, EventRule, EventRules, FunctionRule, Group, GroupAccess, LinkKind,
    Membership, MembershipState, OrgUserRecord, Organization, ParamRule, PastContract, Quarantine, Reservation,
    RetiredContract, Revocation, SharedInfra, Snapshot, Suspension, SystemToggle, ToggleState, TxVisibility, User,
    WithheldState,
};
use alloy_primitives::keccak256;
use gw_evm::{CustomMethodNames, Method, MethodSet, abi::ContractAbi};
use gw_types::{
    Address, ApprovedCodeId, B256, Claim, Claims, ContractId, ConvictionId, DisclosureGrantId, Epoch, ExternalId,
    GrantId, GroupId, Level, LinkId, MembershipId, OrgId, OrgUserRecordId, QuarantineId, ReservationId, Seconds,
    SharedInfraId, SuspensionId, Timestamp, ToggleId, TokenId, UserId, VisibilityId, WithheldId,
};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// The current time of every test world.
pub const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// An hour before [`NOW`].
pub const PAST: Timestamp = NOW.minus(Seconds(3600));

/// An hour after [`NOW`].
pub const FUTURE: Timestamp = NOW.plus(Seconds(3600));

/// The six methods that every world grants to anonymous callers.
pub const METADATA: [Method; 6] = [
    Method::BlockNumber,
    Method::ChainId,
    Method::GasPrice,
    Method::NetVersion,
    Method::NetListening,
    Method::ClientVersion,
];

fn uuid(kind: &str, name: &str) -> Uuid {
    let digest = keccak256(format!("{kind}:{name}"));
    Uuid::from_bytes(digest.first_chunk().copied().unwrap_or_default())
}

/// The id of the organization with this name.
pub fn org_id(name: &str) -> OrgId {
    match name {
        "default" => Organization::DEFAULT,
        "anonymous" => Organization::ANONYMOUS,
        name => OrgId(uuid("org", name)),
    }
}

/// The id of a group, named `organization/group`.
pub fn group_id(path: &str) -> GroupId {
    match path {
        "default/default" => Group::DEFAULT,
        "anonymous/anonymous" => Group::ANONYMOUS,
        path => GroupId(uuid("group", path)),
    }
}

/// The id of the user with this name.
pub fn user_id(name: &str) -> UserId {
    UserId(uuid("user", name))
}

/// The DID of the user with this name: `did:test:<name>`.
///
/// # Panics
/// The name has characters that a DID may not contain.
pub fn did(name: &str) -> ExternalId {
    #[expect(clippy::expect_used, reason = "a test names its users in characters a DID may have")]
    ExternalId::new(&format!("did:test:{name}")).expect("the user name has only characters allowed in a DID")
}

/// The id of the contract with this name.
pub fn contract_id(name: &str) -> ContractId {
    ContractId(uuid("contract", name))
}

/// The address of the wallet or contract with this name.
pub fn address_of(name: &str) -> Address {
    Address::from_word(keccak256(format!("address:{name}")))
}

/// The hash of the transaction with this name.
pub fn hash_of(name: &str) -> B256 {
    keccak256(format!("transaction:{name}"))
}

/// A function rule: the selector of `signature`, with conditions on parameters.
pub fn function(signature: &str, params: impl IntoIterator<Item = (usize, Constraint)>) -> FunctionRule {
    FunctionRule {
        selector: selector(signature),
        params: params
            .into_iter()
            .map(|(index, must_be)| ParamRule { index, must_be })
            .collect(),
    }
}

/// The selector of `signature`.
pub fn selector(signature: &str) -> [u8; 4] {
    keccak256(signature).first_chunk().copied().unwrap_or_default()
}

/// Calldata: the selector of `signature` and one word per argument.
pub fn calldata(signature: &str, arguments: impl IntoIterator<Item = B256>) -> alloy_primitives::Bytes {
    let words = arguments.into_iter().flat_map(|word| word.0);
    selector(signature).into_iter().chain(words).collect::<Vec<u8>>().into()
}

/// A world with only the default and the anonymous organization and group, as the database is seeded, and without
/// users.
pub fn world() -> World {
    let mut world = World::default();
    for (name, id) in [
        ("default", Organization::DEFAULT),
        ("anonymous", Organization::ANONYMOUS),
    ] {
        world = world.org(name).group(name).methods(METADATA);
        world.orgs.entry(id).and_modify(|org| org.is_system = true);
        let group = group_id(&format!("{name}/{name}"));
        world.groups.entry(group).and_modify(|group| group.is_system = true);
    }
    world
}

/// A world under construction. Each method applies to the organization, group, user, contract or grant that was named
/// last. A group of another organization is named `organization/group`.
#[derive(Clone, Debug, Default)]
pub struct World {
    orgs: BTreeMap<OrgId, Organization>,
    groups: BTreeMap<GroupId, Group>,
    access: BTreeMap<GroupId, GroupAccess>,
    users: BTreeMap<UserId, User>,
    memberships: BTreeMap<MembershipId, Membership>,
    org_users: BTreeMap<OrgUserRecordId, OrgUserRecord>,
    contracts: BTreeMap<ContractId, Contract>,
    retired: BTreeMap<ContractId, RetiredContract>,
    past: BTreeMap<ContractId, PastContract>,
    grants: BTreeMap<GrantId, ContractGrant>,
    links: BTreeMap<LinkId, AddressLink>,
    ended_links: BTreeMap<LinkId, Address>,
    reservations: BTreeMap<ReservationId, Reservation>,
    visibility: BTreeMap<VisibilityId, TxVisibility>,
    revocations: BTreeMap<TokenId, Revocation>,
    shared: BTreeMap<SharedInfraId, SharedInfra>,
    approved_code: BTreeMap<ApprovedCodeId, ApprovedCode>,
    toggles: BTreeMap<ToggleId, ToggleState>,
    suspensions: BTreeMap<SuspensionId, Suspension>,
    withheld: BTreeMap<WithheldId, WithheldState>,
    quarantines: BTreeMap<QuarantineId, Quarantine>,
    convictions: BTreeMap<ConvictionId, Conviction>,
    disclosures: BTreeMap<DisclosureGrantId, DisclosureGrant>,
    org: String,
    group: Option<GroupId>,
    user: Option<UserId>,
    contract: Option<ContractId>,
    grant: Option<GrantId>,
}

impl World {
    fn group_path(&self, name: &str) -> String {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("{}/{name}", self.org)
        }
    }

    fn existing_group(&self, name: &str) -> GroupId {
        let path = self.group_path(name);
        let id = group_id(&path);
        assert!(
            self.groups.contains_key(&id),
            "the test world has no group `{path}`: add it first"
        );
        id
    }

    fn current_user(&self) -> UserId {
        assert!(
            self.user.is_some(),
            "the test world has no current user: call `user` first"
        );
        self.user.unwrap_or(user_id(""))
    }

    /// Adds an organization. The following groups, contracts and reservations belong to it.
    #[must_use]
    pub fn org(mut self, name: &str) -> Self {
        let id = org_id(name);
        self.org = name.to_owned();
        let new_row = Organization {
            id,
            slug: name.into(),
            name: name.into(),
            is_system: false,
        };
        self.orgs.entry(id).or_insert(new_row);
        self
    }

    /// Adds a group to the organization.
    #[must_use]
    pub fn group(mut self, name: &str) -> Self {
        let id = group_id(&self.group_path(name));
        self.group = Some(id);
        let new_row = Group {
            id,
            org: org_id(&self.org),
            slug: name.into(),
            is_org_admin: false,
            is_org_readonly_admin: false,
            is_system: false,
        };
        self.groups.entry(id).or_insert(new_row);
        self
    }

    fn with_group(mut self, change: impl FnOnce(&mut Group)) -> Self {
        let group = self.group.and_then(|id| self.groups.get_mut(&id));
        assert!(
            group.is_some(),
            "the test world has no current group: call `group` first"
        );
        if let Some(group) = group {
            change(group);
        }
        self
    }

    fn with_access(mut self, change: impl FnOnce(&mut GroupAccess)) -> Self {
        assert!(
            self.group.is_some(),
            "the test world has no current group: call `group` first"
        );
        if let Some(group) = self.group {
            let new_row = GroupAccess {
                group,
                methods: MethodSet::EMPTY,
                custom_methods: CustomMethodNames::default(),
                claims: Claims::NONE,
                expires_at: None,
                upstream_key: None,
            };
            change(self.access.entry(group).or_insert(new_row));
        }
        self
    }

    /// Sets the upstream API key of the group, in its stored form.
    #[must_use]
    pub fn upstream_key(self, stored: &str) -> Self {
        self.with_access(|access| access.upstream_key = Some(gw_types::Secret::new(stored)))
    }

    /// Grants these methods to the group.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with_access(|access| {
            access.methods = access.methods.union(methods.into_iter().collect());
        })
    }

    /// Grants every method of the registry to the group (`*`).
    #[must_use]
    pub fn every_method(self) -> Self {
        self.with_access(|access| access.methods = MethodSet::ALL)
    }

    /// Sets the custom methods that the group's lists allow and deny.
    #[must_use]
    pub fn custom_methods(self, allowed: &[&str], denied: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        self.with_access(|access| access.custom_methods = CustomMethodNames::new(&owned(allowed), &owned(denied)))
    }

    /// Gives a claim to the group.
    #[must_use]
    pub fn claim(self, claim: Claim) -> Self {
        self.with_access(|access| access.claims = access.claims.with(claim))
    }

    /// Makes the members of the group administrators of its organization.
    #[must_use]
    pub fn org_admin(self) -> Self {
        self.with_group(|group| group.is_org_admin = true)
    }

    /// Gives the members of the group read-only access to the administration of its organization.
    #[must_use]
    pub fn readonly_admin(self) -> Self {
        self.with_group(|group| group.is_org_readonly_admin = true)
    }

    /// Adds a user with KYC and without memberships.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        let id = user_id(name);
        self.user = Some(id);
        let new_row = User {
            id,
            external_id: did(name),
            kyc: true,
            banned: false,
            tenant: None,
            tokens_valid_from: None,
        };
        self.users.entry(id).or_insert(new_row);
        self
    }

    fn with_user(mut self, change: impl FnOnce(&mut User)) -> Self {
        let id = self.current_user();
        if let Some(user) = self.users.get_mut(&id) {
            change(user);
        }
        self
    }

    /// Removes the user's KYC.
    #[must_use]
    pub fn no_kyc(self) -> Self {
        self.with_user(|user| user.kyc = false)
    }

    /// Bans the user.
    #[must_use]
    pub fn banned(self) -> Self {
        self.with_user(|user| user.banned = true)
    }

    /// Invalidates the user's tokens that were issued before this time.
    #[must_use]
    pub fn tokens_valid_from(self, valid_from: Timestamp) -> Self {
        self.with_user(|user| user.tokens_valid_from = Some(valid_from))
    }

    fn membership(self, group: &str, expires_at: Option<Timestamp>) -> Self {
        self.membership_in(group, expires_at, MembershipState::Accepted, Timestamp::from_secs(0))
    }

    fn membership_in(
        mut self,
        group: &str,
        expires_at: Option<Timestamp>,
        state: MembershipState,
        since: Timestamp,
    ) -> Self {
        let (user, group) = (self.current_user(), self.existing_group(group));
        let id = MembershipId(uuid("membership", &format!("{user}{group}")));
        self.memberships.insert(
            id,
            Membership {
                id,
                user,
                group,
                expires_at,
                state,
                since,
            },
        );
        self
    }

    /// Adds an invited membership, which the user has not accepted.
    #[must_use]
    pub fn invited(self, group: &str) -> Self {
        self.membership_in(group, None, MembershipState::Invited, Timestamp::from_secs(0))
    }

    /// Adds a provisional membership, which the user has not accepted.
    #[must_use]
    pub fn provisional(self, group: &str) -> Self {
        self.provisional_since(group, 0)
    }

    /// Adds a provisional membership that was created at this Unix time in seconds.
    #[must_use]
    pub fn provisional_since(self, group: &str, since: i64) -> Self {
        self.membership_in(group, None, MembershipState::Provisional, Timestamp::from_secs(since))
    }

    fn org_user(mut self, org: &str, change: impl FnOnce(&mut OrgUserRecord)) -> Self {
        let (user, org) = (self.current_user(), org_id(org));
        let Some(user) = self.users.get(&user) else { return self };
        let id = OrgUserRecordId(uuid("org_user_record", &format!("{org}{}", user.external_id)));
        let external_id = user.external_id.clone();
        let new_row = OrgUserRecord {
            id,
            org,
            external_id,
            kyc: false,
            banned: false,
        };
        change(self.org_users.entry(id).or_insert(new_row));
        self
    }

    /// Bans the user in the organization.
    #[must_use]
    pub fn banned_in(self, org: &str) -> Self {
        self.org_user(org, |record| record.banned = true)
    }

    /// Marks the user's KYC as completed by the organization.
    #[must_use]
    pub fn verified_in(self, org: &str) -> Self {
        self.org_user(org, |record| record.kyc = true)
    }

    /// Adds a permanent, accepted membership.
    #[must_use]
    pub fn member(self, group: &str) -> Self {
        self.membership(group, None)
    }

    /// Adds an accepted membership that expires at `end`.
    #[must_use]
    pub fn member_until(self, group: &str, end: Timestamp) -> Self {
        self.membership(group, Some(end))
    }

    fn linked(mut self, address: Address, kind: LinkKind, verified_at: Timestamp) -> Self {
        let user = self.current_user();
        let id = LinkId(uuid("link", &format!("{user}{address}{kind:?}")));
        self.links.insert(
            id,
            AddressLink {
                id,
                user,
                address,
                kind,
                contract_wallet: false,
                verified_at,
            },
        );
        self
    }

    /// Adds a proved link of the user to the wallet with this name.
    #[must_use]
    pub fn link(self, wallet: &str) -> Self {
        self.linked(address_of(wallet), LinkKind::User, PAST)
    }

    /// Adds an inferred link of the user to the wallet with this name.
    #[must_use]
    pub fn system_link(self, wallet: &str) -> Self {
        self.linked(address_of(wallet), LinkKind::System, PAST)
    }

    /// Adds a link of the user to the wallet with this name that the wallet's own code proved (ERC-1271).
    #[must_use]
    pub fn contract_link(mut self, wallet: &str) -> Self {
        self = self.linked(address_of(wallet), LinkKind::User, PAST);
        let user = self.current_user();
        for link in self
            .links
            .values_mut()
            .filter(|link| link.user == user && link.address == address_of(wallet))
        {
            link.contract_wallet = true;
        }
        self
    }

    /// Adds a proved link of the user to this address.
    #[must_use]
    pub fn link_address(self, address: Address) -> Self {
        self.linked(address, LinkKind::User, PAST)
    }

    /// Adds an ended link of the user to the wallet with this name.
    #[must_use]
    pub fn unlinked(mut self, wallet: &str) -> Self {
        let (user, address) = (self.current_user(), address_of(wallet));
        self.ended_links
            .insert(LinkId(uuid("link", &format!("{user}{address}"))), address);
        self
    }

    /// Adds a contract of the organization, at the address of its name.
    #[must_use]
    pub fn contract(mut self, name: &str) -> Self {
        let id = contract_id(name);
        self.contract = Some(id);
        let new_row = Contract {
            id,
            org: org_id(&self.org),
            address: address_of(name),
            since: PAST,
            owned_from: None,
            name: name.into(),
            deployer: None,
            abi: None,
            allow_visibleto_unlock: false,
            events_allow_dynamic_payload: false,
            trusted_router: false,
        };
        self.contracts.entry(id).or_insert(new_row);
        self
    }

    fn with_contract(mut self, change: impl FnOnce(&mut Contract)) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.get_mut(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(contract) = contract {
            change(contract);
        }
        self
    }

    /// Sets the address of the contract.
    #[must_use]
    pub fn at(self, address: Address) -> Self {
        self.with_contract(|contract| contract.address = address)
    }

    /// Sets since when the organization owns the contract. The default is [`PAST`].
    #[must_use]
    pub fn since(self, since: Timestamp) -> Self {
        self.with_contract(|contract| contract.since = since)
    }

    /// Deletes the registration of the contract.
    #[must_use]
    pub fn retired(mut self) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.remove(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(Contract {
            id,
            org,
            address,
            since,
            ..
        }) = contract
        {
            self.grants.retain(|_, grant| grant.contract != id);
            self.retired.insert(
                id,
                RetiredContract {
                    id,
                    address,
                    org,
                    since,
                    retired_at: NOW,
                },
            );
        }
        self
    }

    /// Ends the registration of the contract and its grants after this block (HD41).
    #[must_use]
    pub fn owned_until(mut self, block: u64) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.remove(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(contract) = contract {
            let id = contract.id;
            let grants = self
                .grants
                .values()
                .filter(|grant| grant.contract == id)
                .cloned()
                .map(Arc::new)
                .collect();
            self.grants.retain(|_, grant| grant.contract != id);
            let past = PastContract {
                contract: Arc::new(contract),
                grants,
                owned_until: Some(block),
            };
            self.past.insert(id, past);
        }
        self
    }

    /// Registers the contract with this name, whose registration in another organization ended, in the current
    /// organization from this block on (HD41).
    #[must_use]
    pub fn owned_from(mut self, name: &str, block: u64) -> Self {
        let id = contract_id(&format!("{}/{name}", self.org));
        self = self.contract(name);
        let contract = self
            .contract
            .replace(id)
            .and_then(|new_row| self.contracts.remove(&new_row));
        if let Some(contract) = contract {
            self.contracts.insert(
                id,
                Contract {
                    id,
                    owned_from: Some(block),
                    ..contract
                },
            );
        }
        self
    }

    /// Sets the deployer of the contract.
    #[must_use]
    pub fn deployed_by(self, user: &str) -> Self {
        self.with_contract(|contract| contract.deployer = Some(user_id(user)))
    }

    /// Sets the contract's ABI, as JSON text.
    #[must_use]
    pub fn abi(self, json: &str) -> Self {
        let abi = ContractAbi::parse(json);
        assert!(abi.is_ok(), "the ABI of the test contract is invalid: {:?}", abi.err());
        self.with_contract(|contract| contract.abi = abi.ok().map(Arc::new))
    }

    /// R29: makes shared transactions show all events of the contract.
    #[must_use]
    pub fn visibleto_unlock(self) -> Self {
        self.with_contract(|contract| contract.allow_visibleto_unlock = true)
    }

    /// K5: attests that the contract's dynamic event fields contain no addresses.
    #[must_use]
    pub fn dynamic_payload(self) -> Self {
        self.with_contract(|contract| contract.events_allow_dynamic_payload = true)
    }

    /// F5: exempts frames below the contract from function rules.
    #[must_use]
    pub fn trusted_router(self) -> Self {
        self.with_contract(|contract| contract.trusted_router = true)
    }

    /// Tags the address of this name as shared infrastructure without a code pin.
    #[must_use]
    pub fn shared(self, name: &str) -> Self {
        self.tagged(name, None, false)
    }

    /// Tags the address of this name as shared infrastructure with a pin of its code and, for a proxy, of the code of
    /// its implementation.
    #[must_use]
    pub fn shared_pinned(self, name: &str, code: &[u8], implementation: Option<&[u8]>) -> Self {
        let pin = CodePin {
            code: keccak256(code),
            implementation: implementation.map(keccak256),
        };
        self.tagged(name, Some(pin), false)
    }

    /// Tags the address of this name as shared infrastructure with a broken pin.
    #[must_use]
    pub fn shared_broken(self, name: &str) -> Self {
        self.tagged(name, None, true)
    }

    /// Tags this address as shared infrastructure.
    #[must_use]
    pub fn shared_at(mut self, address: Address, pin: Option<CodePin>) -> Self {
        let id = SharedInfraId(uuid("shared", &address.to_string()));
        self.shared.insert(
            id,
            SharedInfra {
                id,
                address,
                pin,
                broken: false,
            },
        );
        self
    }

    fn tagged(mut self, name: &str, pin: Option<CodePin>, broken: bool) -> Self {
        let id = SharedInfraId(uuid("shared", name));
        self.shared.insert(
            id,
            SharedInfra {
                id,
                address: address_of(name),
                pin,
                broken,
            },
        );
        self
    }

    /// Approves this creation code.
    #[must_use]
    pub fn approved_code(mut self, code: &[u8]) -> Self {
        let (hash, size) = (keccak256(code), u32::try_from(code.len()).unwrap_or(u32::MAX));
        let id = ApprovedCodeId(uuid("approved code", &hash.to_string()));
        self.approved_code.insert(id, ApprovedCode { id, hash, size });
        self
    }

    /// Overrides a toggle until a time.
    #[must_use]
    pub fn toggle(mut self, toggle: SystemToggle, enabled: bool, until: Timestamp) -> Self {
        self.toggles.insert(
            toggle.id(),
            ToggleState {
                id: toggle.id(),
                enabled,
                until,
            },
        );
        self
    }

    /// Sets when the access of the group expires.
    #[must_use]
    pub fn access_until(self, end: Timestamp) -> Self {
        self.with_access(|access| access.expires_at = Some(end))
    }

    /// Adds an unrestricted grant of a group on the contract.
    #[must_use]
    pub fn grant(mut self, group: &str) -> Self {
        assert!(
            self.contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        let group = self.existing_group(group);
        if let Some(contract) = self.contract {
            let id = GrantId(uuid("grant", &format!("{contract}{group}")));
            self.grant = Some(id);
            let new_row = ContractGrant {
                id,
                contract,
                group,
                claims: Claims::NONE,
                functions: None,
                events: EventRules::All,
            };
            self.grants.insert(id, new_row);
        }
        self
    }

    fn with_grant(mut self, change: impl FnOnce(&mut ContractGrant)) -> Self {
        let grant = self.grant.and_then(|id| self.grants.get_mut(&id));
        assert!(
            grant.is_some(),
            "the test world has no current grant: call `grant` first"
        );
        if let Some(grant) = grant {
            change(grant);
        }
        self
    }

    /// Restricts the grant to these functions.
    #[must_use]
    pub fn functions(self, functions: impl IntoIterator<Item = FunctionRule>) -> Self {
        self.with_grant(|grant| grant.functions = Some(functions.into_iter().collect()))
    }

    /// Restricts the grant to these events.
    #[must_use]
    pub fn events(self, events: impl IntoIterator<Item = EventRule>) -> Self {
        self.with_grant(|grant| grant.events = EventRules::Only(events.into_iter().collect()))
    }

    /// Adds a claim to the grant.
    #[must_use]
    pub fn grant_claim(self, claim: Claim) -> Self {
        self.with_grant(|grant| grant.claims = grant.claims.with(claim))
    }

    /// Adds a reservation by the user of the address of this name for the organization.
    #[must_use]
    pub fn reservation(self, name: &str, expires_at: Timestamp) -> Self {
        self.reserved(address_of(name), expires_at)
    }

    /// Adds a reservation by the user of this address for the organization, until [`FUTURE`].
    #[must_use]
    pub fn reservation_at(self, address: Address) -> Self {
        self.reserved(address, FUTURE)
    }

    fn reserved(mut self, address: Address, expires_at: Timestamp) -> Self {
        let (user, org) = (self.current_user(), org_id(&self.org));
        let id = ReservationId(uuid("reservation", &format!("{org}{address}")));
        self.reservations.insert(
            id,
            Reservation {
                id,
                address,
                org,
                user,
                expires_at,
            },
        );
        self
    }

    /// Adds a share of an accepted transaction by the user.
    #[must_use]
    pub fn share(mut self, transaction: &str, with: &[&str]) -> Self {
        let sender = self.current_user();
        let id = VisibilityId(uuid("visibility", transaction));
        let recipients = with.iter().map(|name| did(name)).collect();
        let row = TxVisibility {
            id,
            tx_hash: hash_of(transaction),
            sender,
            recipients,
            active: true,
        };
        self.visibility.insert(id, row);
        self
    }

    /// Adds a grant of disclosure of all current addresses of the user, for the current organization, from [`NOW`] to
    /// [`FUTURE`].
    #[must_use]
    pub fn disclosed_to(mut self, grantee: &str, level: Level) -> Self {
        let owner = self.current_user();
        let id = DisclosureGrantId(uuid("disclosure", &format!("{owner}{grantee}{level:?}")));
        let new_row = DisclosureGrant {
            id,
            owner,
            grantee: did(grantee),
            org: org_id(&self.org),
            granted_at: NOW,
            expires_at: FUTURE,
            include_future_addresses: false,
            scope: DisclosureScope {
                level,
                dates: None,
                addresses: None,
                methods: None,
            },
        };
        self.disclosures.insert(id, new_row);
        self
    }

    /// Changes every grant of disclosure.
    #[must_use]
    pub fn with_disclosures(mut self, change: impl Fn(&mut DisclosureGrant)) -> Self {
        self.disclosures.values_mut().for_each(change);
        self
    }

    /// Suspends the user's right to send (HD2).
    #[must_use]
    pub fn suspended(mut self) -> Self {
        let user = self.current_user();
        let id = SuspensionId(uuid("suspension", &user.to_string()));
        if let Some(user) = self.users.get(&user) {
            self.suspensions.insert(
                id,
                Suspension {
                    id,
                    external_id: user.external_id.clone(),
                },
            );
        }
        self
    }

    /// Quarantines the address of this name for everybody (HD28).
    #[must_use]
    pub fn quarantined(self, name: &str) -> Self {
        self.quarantined_at(address_of(name))
    }

    /// Quarantines this address for everybody (HD28).
    #[must_use]
    pub fn quarantined_at(mut self, address: Address) -> Self {
        let id = QuarantineId(uuid("quarantine", &address.to_string()));
        self.quarantines.insert(
            id,
            Quarantine {
                id,
                address,
                closed_to: ClosedTo::Everybody,
            },
        );
        self
    }

    /// Closes the address to a sender and the members of these organizations (HD28).
    #[must_use]
    pub fn closed_to_side(mut self, address: Address, sender: &str, orgs: &[&str]) -> Self {
        let id = QuarantineId(uuid("quarantine", &address.to_string()));
        let closed_to = ClosedTo::SenderSide(did(sender), orgs.iter().map(|org| org_id(org)).collect());
        self.quarantines.insert(id, Quarantine { id, address, closed_to });
        self
    }

    /// Adds a conviction of a transaction of this sender (HD28).
    #[must_use]
    pub fn convicted(mut self, tx_hash: B256, sender: &str) -> Self {
        let id = ConvictionId(uuid("conviction", &format!("{tx_hash}{sender}")));
        let (block_hash, place, logs) = (B256::ZERO, 0, 0);
        self.convictions.insert(
            id,
            Conviction {
                id,
                tx_hash,
                external_id: did(sender),
                block_hash,
                place,
                logs,
            },
        );
        self
    }

    /// Adds a conviction of a transaction of this sender that is at this block hash and index and emitted `logs` logs.
    #[must_use]
    pub fn convicted_at(mut self, tx_hash: B256, sender: &str, at: (B256, u64), logs: u64) -> Self {
        let id = ConvictionId(uuid("conviction", &format!("{tx_hash}{sender}")));
        let (block_hash, place) = at;
        self.convictions.insert(
            id,
            Conviction {
                id,
                tx_hash,
                external_id: did(sender),
                block_hash,
                place,
                logs,
            },
        );
        self
    }

    /// Adds a withheld change to another account by the last withheld transaction.
    #[must_use]
    pub fn withheld_with_last(mut self, address: Address, change: AccountChange) -> Self {
        let last = self.withheld.values().max_by_key(|row| row.place).cloned();
        let id = WithheldId(uuid("withheld with last", &address.to_string()));
        self.withheld.extend(last.map(|row| {
            (
                id,
                WithheldState {
                    id,
                    address,
                    change,
                    ..row
                },
            )
        }));
        self
    }

    /// Adds a withheld change to an account, by a transaction in this block whose sender's side is the organization
    /// `bank` (HD28).
    #[must_use]
    pub fn withheld(mut self, address: Address, block: u64, change: AccountChange) -> Self {
        let place = self.withheld.len() as u64;
        let id = WithheldId(uuid("withheld", &format!("{address}{place}")));
        let side = vec![org_id("bank")];
        self.withheld.insert(
            id,
            WithheldState {
                id,
                address,
                block,
                place,
                side,
                change,
            },
        );
        self
    }

    /// Adds the revocation of a token or token family.
    #[must_use]
    pub fn revoked(mut self, id: TokenId) -> Self {
        self.revocations.insert(id, Revocation { id, until: FUTURE });
        self
    }

    /// Every row as a change; rows come after the rows that they refer to.
    pub fn changes(&self) -> Vec<Change> {
        fn rows<'a, I: Copy, R: Clone>(
            rows: &'a BTreeMap<I, R>,
            change: impl Fn(I, Option<R>) -> Change + 'a,
        ) -> impl Iterator<Item = Change> + 'a {
            rows.iter().map(move |(id, row)| change(*id, Some(row.clone())))
        }
        rows(&self.orgs, Change::Organization)
            .chain(rows(&self.groups, Change::Group))
            .chain(rows(&self.access, Change::GroupAccess))
            .chain(rows(&self.users, Change::User))
            .chain(rows(&self.memberships, Change::Membership))
            .chain(rows(&self.org_users, Change::OrgUserRecord))
            .chain(rows(&self.contracts, Change::Contract))
            .chain(rows(&self.retired, Change::RetiredContract))
            .chain(rows(&self.past, Change::PastContract))
            .chain(rows(&self.grants, Change::Grant))
            .chain(rows(&self.links, Change::Link))
            .chain(
                self.ended_links
                    .iter()
                    .map(|(id, address)| Change::LinkEnded(*id, *address)),
            )
            .chain(rows(&self.reservations, Change::Reservation))
            .chain(rows(&self.visibility, Change::Visibility))
            .chain(rows(&self.revocations, Change::Revocation))
            .chain(rows(&self.shared, Change::SharedInfra))
            .chain(rows(&self.approved_code, Change::ApprovedCode))
            .chain(rows(&self.toggles, Change::Toggle))
            .chain(rows(&self.suspensions, Change::Suspension))
            .chain(rows(&self.quarantines, Change::Quarantine))
            .chain(rows(&self.convictions, Change::Conviction))
            .chain(rows(&self.withheld, Change::Withheld))
            .collect()
    }

    /// The snapshot of this world, at epoch 1.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::default()
            .apply(Epoch(1), self.changes())
            .with_disclosures(self.disclosures.values().cloned())
    }
}
