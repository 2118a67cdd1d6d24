//! All policy rows at one epoch: immutable, shared, and cheap to change by one row.
//!
//! Invariant: a snapshot that results from any sequence of changes equals the one loaded from the same rows
//! (property-tested in `tests/it/snapshot.rs` and, through the database, in `gw-store`).
//! Expiry is evaluated with the request's `now`, never by removing rows.

mod index;
mod inverse;
mod map;
mod record;
mod withheld;

pub use record::{
    AddressLink, AllowedTenant, ApprovedCode, BlockRange, ClosedTo, CodePin, Comparison, Constraint, Contract,
    ContractGrant, Conviction, DisclosureGrant, DisclosureScope, EventRule, EventRules, FunctionRule, Group,
    GroupAccess, LinkKind, Membership, MembershipState, Moment, OrgUserRecord, Organization, ParamRule, PastContract,
    PersonalUrl, Quarantine, Reservation, RetiredContract, Revocation, SharedInfra, Suspension, SystemToggle,
    ToggleState, TxVisibility, UrlReach, User,
};
pub(crate) use withheld::undone_balance;
pub use withheld::{AccountChange, VisibleState, WithheldState};

use alloy_primitives::{Keccak256, keccak256};
use gw_evm::code::creates_minimal_proxy;
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, ContractId, ConvictionId, DisclosureGrantId, Epoch, ExternalId,
    GrantId, GroupId, LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId,
    SharedInfraId, SuspensionId, TenantId, Timestamp, ToggleId, TokenId, UserId, VisibilityId, WithheldId,
};
use index::{EndedLink, Index, Links};
use inverse::InverseIndexes;
use map::Map;
use std::{collections::BTreeMap, hash::Hash, sync::Arc};
use withheld::WithheldRows;

/// One changed row: its new content, or `None` if the row was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A user.
    User(UserId, Option<User>),
    /// An organization.
    Organization(OrgId, Option<Organization>),
    /// A group.
    Group(GroupId, Option<Group>),
    /// A group's access.
    GroupAccess(GroupId, Option<GroupAccess>),
    /// A membership.
    Membership(MembershipId, Option<Membership>),
    /// The KYC and ban decisions of an organization about a person.
    OrgUserRecord(OrgUserRecordId, Option<OrgUserRecord>),
    /// A contract.
    Contract(ContractId, Option<Contract>),
    /// A contract whose registration was deleted.
    RetiredContract(ContractId, Option<RetiredContract>),
    /// A registration that ended.
    PastContract(ContractId, Option<PastContract>),
    /// A contract grant.
    Grant(GrantId, Option<ContractGrant>),
    /// A valid address link; `None` if the row was deleted.
    Link(LinkId, Option<AddressLink>),
    /// An address link that its owner or an administrator ended. It gives no rights, but the address counts as once
    /// linked (HD13).
    LinkEnded(LinkId, Address),
    /// A reservation.
    Reservation(ReservationId, Option<Reservation>),
    /// A `visibleTo` row.
    Visibility(VisibilityId, Option<TxVisibility>),
    /// A revoked token or family.
    Revocation(TokenId, Option<Revocation>),
    /// A suspension of the right to send.
    Suspension(SuspensionId, Option<Suspension>),
    /// A closed address.
    Quarantine(QuarantineId, Option<Quarantine>),
    /// A withheld transaction.
    Conviction(ConvictionId, Option<Conviction>),
    /// The changes of a withheld transaction to one account.
    Withheld(WithheldId, Option<WithheldState>),
    /// An allowed directory tenant.
    Tenant(AllowedTenantId, Option<AllowedTenant>),
    /// A personal RPC URL.
    PersonalUrl(PersonalUrlId, Option<PersonalUrl>),
    /// A shared contract.
    SharedInfra(SharedInfraId, Option<SharedInfra>),
    /// Approved creation code.
    ApprovedCode(ApprovedCodeId, Option<ApprovedCode>),
    /// The override of a system toggle.
    Toggle(ToggleId, Option<ToggleState>),
    /// A grant of disclosure.
    Disclosure(DisclosureGrantId, Option<DisclosureGrant>),
}

/// All policy rows at one epoch.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    epoch: Epoch,
    users: Map<UserId, Arc<User>>,
    users_by_external: Map<ExternalId, Arc<User>>,
    orgs: Map<OrgId, Arc<Organization>>,
    groups: Map<GroupId, Arc<Group>>,
    access: Map<GroupId, Arc<GroupAccess>>,
    memberships: Index<UserId, Membership>,
    org_users: Index<ExternalId, OrgUserRecord>,
    contracts: Map<ContractId, Arc<Contract>>,
    contracts_by_address: Map<Address, Arc<Contract>>,
    retired: Index<Address, RetiredContract>,
    past: Index<Address, Arc<PastContract>>,
    grants: Index<ContractId, Arc<ContractGrant>>,
    links: Links,
    ended_links: Index<Address, EndedLink>,
    reservations: Index<Address, Reservation>,
    visibility: Index<B256, Arc<TxVisibility>>,
    revocations: Map<TokenId, Revocation>,
    suspensions: Index<B256, Arc<Suspension>>,
    quarantines: Index<Address, Arc<Quarantine>>,
    convictions: Index<B256, Arc<Conviction>>,
    /// Convictions by block hash.
    convictions_by_block: Index<B256, Arc<Conviction>>,
    withheld: WithheldRows,
    tenants: Map<AllowedTenantId, AllowedTenant>,
    tenants_by_name: Map<TenantId, AllowedTenant>,
    personal_urls: Map<PersonalUrlId, Arc<PersonalUrl>>,
    urls_by_secret: Map<B256, Arc<PersonalUrl>>,
    shared: Map<SharedInfraId, SharedInfra>,
    shared_by_address: Map<Address, SharedInfra>,
    approved_code: Map<ApprovedCodeId, ApprovedCode>,
    /// Size and hash of each approved code, in the order in which `approves_creation` compares prefixes.
    approved_by_size: Arc<BTreeMap<(u32, B256), ApprovedCodeId>>,
    toggles: Map<ToggleId, ToggleState>,
    /// Grants of disclosure by the user whose addresses they disclose.
    disclosures: Index<UserId, Arc<DisclosureGrant>>,
    /// The same grants by the person to whom they disclose.
    disclosures_by_grantee: Index<ExternalId, Arc<DisclosureGrant>>,
    inverse: InverseIndexes,
}

impl Snapshot {
    /// The snapshot after `changes`, at `epoch`. The last change of a row wins.
    #[must_use]
    pub fn apply(&self, epoch: Epoch, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut next = self.clone();
        next.epoch = epoch;
        for change in changes {
            next.apply_one(change);
        }
        next
    }

    fn apply_one(&mut self, change: Change) {
        match change {
            Change::User(id, row) => {
                let row = row.map(Arc::new);
                if let Some(old) = self.users.get(&id) {
                    // An earlier change of this change set may have given the name to another user.
                    if self
                        .users_by_external
                        .get(&old.external_id)
                        .is_some_and(|user| user.id == id)
                    {
                        self.users_by_external.remove(&old.external_id);
                    }
                }
                if let Some(user) = &row {
                    self.users_by_external
                        .insert(user.external_id.clone(), Arc::clone(user));
                }
                put(&mut self.users, id, row);
            }
            Change::Organization(id, row) => put(&mut self.orgs, id, row.map(Arc::new)),
            Change::Group(id, row) => {
                let old = self.groups.get(&id).map(Arc::as_ref);
                self.inverse.put_group(id, old, row.as_ref());
                put(&mut self.groups, id, row.map(Arc::new));
            }
            Change::GroupAccess(id, row) => put(&mut self.access, id, row.map(Arc::new)),
            Change::Membership(id, row) => {
                self.inverse.put_membership(id, self.memberships.find(id), row.as_ref());
                self.memberships.put(id, row.map(|m| (m.user, m)));
            }
            Change::OrgUserRecord(id, row) => self.org_users.put(id, row.map(|r| (r.external_id.clone(), r))),
            Change::Contract(id, row) => {
                let row = row.map(Arc::new);
                let old = self.contracts.get(&id).map(Arc::as_ref);
                self.inverse.put_contract(id, old, row.as_deref());
                if let Some(old) = self.contracts.get(&id) {
                    // As for user names: another row may own the key by now.
                    if self
                        .contracts_by_address
                        .get(&old.address)
                        .is_some_and(|contract| contract.id == id)
                    {
                        self.contracts_by_address.remove(&old.address);
                    }
                }
                if let Some(contract) = &row {
                    self.contracts_by_address.insert(contract.address, Arc::clone(contract));
                }
                put(&mut self.contracts, id, row);
            }
            Change::RetiredContract(id, row) => self.retired.put(id, row.map(|r| (r.address, r))),
            Change::PastContract(id, row) => {
                let old = self.past.find(id).map(Arc::as_ref);
                self.inverse.put_past_contract(id, old, row.as_ref());
                self.past
                    .put(id, row.map(|past| (past.contract.address, Arc::new(past))));
            }
            Change::Grant(id, row) => {
                let old = self.grants.find(id).map(Arc::as_ref);
                self.inverse.put_grant(id, old, row.as_ref());
                self.grants.put(id, row.map(|g| (g.contract, Arc::new(g))));
            }
            Change::Link(id, row) => {
                self.links.put(id, row);
                self.ended_links.put(id, None);
            }
            Change::LinkEnded(id, address) => {
                self.links.put(id, None);
                self.ended_links.put(id, Some((address, EndedLink { id })));
            }
            Change::Disclosure(id, row) => {
                let row = row.map(Arc::new);
                self.disclosures_by_grantee
                    .put(id, row.clone().map(|row| (row.grantee.clone(), row)));
                self.disclosures.put(id, row.map(|row| (row.owner, row)));
            }
            Change::Reservation(id, row) => {
                self.inverse
                    .put_reservation(id, self.reservations.find(id), row.as_ref());
                self.reservations.put(id, row.map(|r| (r.address, r)));
            }
            Change::Visibility(id, row) => {
                let row = row.map(Arc::new);
                let old = self.visibility.find(id).map(Arc::as_ref);
                self.inverse.put_visibility(id, old, row.as_deref());
                self.visibility.put(id, row.map(|v| (v.tx_hash, v)));
            }
            Change::Revocation(id, row) => put(&mut self.revocations, id, row),
            Change::Suspension(id, row) => {
                self.suspensions
                    .put(id, row.map(|s| (name_key(&s.external_id), Arc::new(s))));
            }
            Change::Quarantine(id, row) => self.quarantines.put(id, row.map(|q| (q.address, Arc::new(q)))),
            Change::Conviction(id, row) => {
                let row = row.map(Arc::new);
                self.convictions_by_block
                    .put(id, row.clone().map(|row| (row.block_hash, row)));
                self.convictions.put(id, row.map(|row| (row.tx_hash, row)));
            }
            Change::Withheld(id, row) => self.withheld.put(id, row),
            Change::Tenant(id, row) => {
                if let Some(old) = self.tenants.get(&id).copied() {
                    // As for user names: another row may own the key by now.
                    if self
                        .tenants_by_name
                        .get(&old.tenant)
                        .is_some_and(|tenant| tenant.id == id)
                    {
                        self.tenants_by_name.remove(&old.tenant);
                    }
                }
                if let Some(tenant) = row {
                    self.tenants_by_name.insert(tenant.tenant, tenant);
                }
                put(&mut self.tenants, id, row);
            }
            Change::PersonalUrl(id, row) => {
                let row = row.map(Arc::new);
                if let Some(old) = self.personal_urls.get(&id) {
                    // As for user names: another row may own the key by now.
                    if self.urls_by_secret.get(&old.secret).is_some_and(|url| url.id == id) {
                        self.urls_by_secret.remove(&old.secret);
                    }
                }
                if let Some(url) = &row {
                    self.urls_by_secret.insert(url.secret, Arc::clone(url));
                }
                put(&mut self.personal_urls, id, row);
            }
            Change::SharedInfra(id, row) => {
                if let Some(old) = self.shared.get(&id).copied() {
                    // As for user names: another row may own the key by now.
                    if self
                        .shared_by_address
                        .get(&old.address)
                        .is_some_and(|shared| shared.id == id)
                    {
                        self.shared_by_address.remove(&old.address);
                    }
                }
                if let Some(shared) = row {
                    self.shared_by_address.insert(shared.address, shared);
                }
                put(&mut self.shared, id, row);
            }
            Change::ApprovedCode(id, row) => {
                let by_size = Arc::make_mut(&mut self.approved_by_size);
                if let Some(old) = self.approved_code.get(&id) {
                    // As for user names: another row may own the key by now.
                    let key = (old.size, old.hash);
                    if by_size.get(&key) == Some(&id) {
                        by_size.remove(&key);
                    }
                }
                if let Some(code) = &row {
                    by_size.insert((code.size, code.hash), id);
                }
                put(&mut self.approved_code, id, row);
            }
            Change::Toggle(id, row) => put(&mut self.toggles, id, row),
        }
    }

    /// Whether any accepted transaction is shared with this person.
    pub fn shares_with(&self, recipient: &ExternalId) -> bool {
        self.inverse.shares_by_recipient.has(recipient)
    }

    /// The hashes of the accepted transactions that are shared with this person, in no particular order.
    pub fn shared_transactions(&self, recipient: &ExternalId) -> impl Iterator<Item = B256> {
        let rows = self.inverse.shares_by_recipient.get(recipient);
        rows.filter_map(|id| Some(self.visibility.find(*id)?.tx_hash))
    }

    /// The personal URL whose secret has this hash, expired or not.
    pub fn personal_url(&self, secret: B256) -> Option<&Arc<PersonalUrl>> {
        self.urls_by_secret.get(&secret)
    }

    /// The grant of disclosure with this id. One that has ended is found until its secret is destroyed.
    pub fn find_disclosure(&self, id: DisclosureGrantId) -> Option<&Arc<DisclosureGrant>> {
        self.disclosures.find(id)
    }

    /// All grants of disclosure, ended ones included, in no particular order.
    pub fn disclosures(&self) -> impl Iterator<Item = &Arc<DisclosureGrant>> {
        self.disclosures.rows()
    }

    /// The grants that disclose addresses of this user, ended ones included.
    pub fn disclosures_by(&self, owner: UserId) -> &[Arc<DisclosureGrant>] {
        self.disclosures.get(owner)
    }

    /// The grants that disclose addresses to this person, ended ones included.
    pub fn disclosures_to(&self, grantee: &ExternalId) -> &[Arc<DisclosureGrant>] {
        self.disclosures_by_grantee.get(grantee)
    }

    /// The epoch of these rows.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The user with this id.
    pub fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    /// The user with this external id.
    pub fn user_by_external(&self, external: &ExternalId) -> Option<&Arc<User>> {
        self.users_by_external.get(external)
    }

    /// Whether a user has no access at all: the user is banned (A10), or the directory tenant that vouched for the user
    /// is no longer allowed (TK-8).
    pub fn is_excluded(&self, user: &User) -> bool {
        user.banned || user.tenant.is_some_and(|tenant| !self.allows_tenant(tenant))
    }

    /// Whether users of a directory tenant have access (DS-7).
    pub fn allows_tenant(&self, tenant: TenantId) -> bool {
        self.tenants_by_name.get(&tenant).is_some_and(|tenant| !tenant.disabled)
    }

    /// The organization with this id.
    pub fn organization(&self, id: OrgId) -> Option<&Arc<Organization>> {
        self.orgs.get(&id)
    }

    /// All organizations, in no particular order.
    pub fn organizations(&self) -> impl Iterator<Item = &Arc<Organization>> {
        self.orgs.values()
    }

    /// The group with this id.
    pub fn group(&self, id: GroupId) -> Option<&Arc<Group>> {
        self.groups.get(&id)
    }

    /// The access of a group.
    pub fn access(&self, group: GroupId) -> Option<&Arc<GroupAccess>> {
        self.access.get(&group)
    }

    /// The access of all groups, in no particular order.
    pub fn accesses(&self) -> impl Iterator<Item = &Arc<GroupAccess>> {
        self.access.values()
    }

    /// All memberships of a user, including ended ones and invitations. [`Snapshot::active_memberships`] gives those
    /// that grant rights.
    pub fn memberships(&self, user: UserId) -> &[Membership] {
        self.memberships.get(user)
    }

    /// The memberships that give rights, with their groups (A8, HD32): not ended, accepted or provisional, and in an
    /// organization that did not ban the person. Provisional memberships count only while the person has accepted no
    /// other organization, and only those of the organization that created one first.
    pub fn active_memberships(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (&Membership, &Arc<Group>)> {
        let (memberships, first) = (self.memberships(user), self.first_provisional(user, now));
        memberships.iter().filter_map(move |membership| {
            let group = self.groups.get(&membership.group).filter(|_| membership.active(now))?;
            let is_banned = self.is_banned_in(user, group.org);
            let is_outranked = membership.state == MembershipState::Provisional
                && (self.has_accepted_another(memberships, group.org, now)
                    || (self.is_non_system(group.org) && first != Some(group.org)));
            (!is_banned && !is_outranked).then_some((membership, group))
        })
    }

    /// The users with a membership in a group of the organization, including ended ones and invitations, in no
    /// particular order. A user may occur several times.
    pub fn users_of(&self, org: OrgId) -> impl Iterator<Item = UserId> {
        let groups = self.inverse.groups_by_org.get(&org);
        let memberships = groups.flat_map(|group| self.inverse.members_by_group.get(group));
        memberships.filter_map(|id| Some(self.memberships.find(*id)?.user))
    }

    /// Whether the user has an active membership in the organization.
    pub fn is_member(&self, user: UserId, org: OrgId, now: Timestamp) -> bool {
        self.active_memberships(user, now).any(|(_, group)| group.org == org)
    }

    /// The organization whose provisional memberships may count (HD32): the one that created one first. A later
    /// organization therefore neither takes a person over nor blocks the person's rights in the first one. An
    /// organization that bans the person, or whose membership ends, is no longer the first. System organizations are
    /// not considered.
    fn first_provisional(&self, user: UserId, now: Timestamp) -> Option<OrgId> {
        self.provisional(user, now).min().map(|(_, org)| org)
    }

    /// The non-system organizations that wait for the user's acceptance, each with the time since when.
    fn provisional(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (Timestamp, OrgId)> {
        self.memberships(user).iter().filter_map(move |membership| {
            let is_pending = membership.state == MembershipState::Provisional && !membership.has_ended(now);
            let group = self.groups.get(&membership.group).filter(|_| is_pending)?;
            let counts = self.is_non_system(group.org) && !self.is_banned_in(user, group.org);
            counts.then_some((membership.since, group.org))
        })
    }

    /// Whether several organizations wait for the acceptance of a user who has accepted none (HD32). A call that names
    /// none of them then belongs to no organization: it is not sent in the name of one, nor recorded for one.
    pub fn is_undecided(&self, user: UserId, now: Timestamp) -> bool {
        let Some((_, first)) = self.provisional(user, now).next() else {
            return false;
        };
        let org_of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let mut accepted = self
            .memberships(user)
            .iter()
            .filter(|membership| membership.is_accepted(now));
        !accepted.any(|membership| org_of(membership).is_some_and(|org| self.is_non_system(org)))
            && self.provisional(user, now).any(|(_, org)| org != first)
    }

    /// Whether the organization exists and is not a system organization.
    fn is_non_system(&self, org: OrgId) -> bool {
        self.orgs.get(&org).is_some_and(|org| !org.is_system)
    }

    /// Whether one of the memberships is accepted in an organization other than `org`; system organizations do not
    /// count.
    fn has_accepted_another(&self, memberships: &[Membership], org: OrgId, now: Timestamp) -> bool {
        let org_of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let accepted = memberships.iter().filter(|membership| membership.is_accepted(now));
        accepted
            .filter_map(org_of)
            .any(|other| other != org && self.is_non_system(other))
    }

    /// Whether the user accepted a membership of the organization that has not ended. It gives the organization's
    /// administrators rights over the user, even if the organization banned the user.
    pub fn has_accepted(&self, user: UserId, org: OrgId, now: Timestamp) -> bool {
        let mut accepted = self
            .memberships(user)
            .iter()
            .filter(|membership| membership.is_accepted(now));
        accepted.any(|membership| self.groups.get(&membership.group).is_some_and(|group| group.org == org))
    }

    fn org_users(&self, user: UserId) -> &[OrgUserRecord] {
        self.users
            .get(&user)
            .map_or(&[], |user| self.org_users.get(&user.external_id))
    }

    /// Whether the organization banned the user. Bans by the platform are in the user's row.
    pub fn is_banned_in(&self, user: UserId, org: OrgId) -> bool {
        self.org_users(user)
            .iter()
            .any(|record| record.org == org && record.banned)
    }

    /// Whether KYC of the user is completed, by the platform or by this organization.
    pub fn is_verified_in(&self, user: UserId, org: OrgId) -> bool {
        self.users.get(&user).is_some_and(|user| user.kyc)
            || self
                .org_users(user)
                .iter()
                .any(|record| record.org == org && record.kyc)
    }

    /// The contract with this id.
    pub fn contract_by_id(&self, id: ContractId) -> Option<&Arc<Contract>> {
        self.contracts.get(&id)
    }

    /// The contract registered at an address.
    pub fn contract(&self, address: Address) -> Option<&Arc<Contract>> {
        self.contracts_by_address.get(&address)
    }

    /// The contract at an address whose registration was deleted, unless it is registered again.
    pub fn retired(&self, address: Address) -> Option<&RetiredContract> {
        self.retired
            .get(address)
            .last()
            .filter(|_| self.contract(address).is_none())
    }

    /// The contract at an address as it was registered at this moment, by the current registration or one that ended
    /// (HD41). At most one registration covers a moment.
    pub fn contract_at(&self, address: Address, moment: Moment) -> Option<&Arc<Contract>> {
        let past = || {
            self.past
                .get(address)
                .iter()
                .find(|past| past.owned_at(moment))
                .map(|past| &past.contract)
        };
        self.contract(address)
            .filter(|contract| contract.owned_at(moment))
            .or_else(past)
    }

    /// Every registration of an address that can make blocks visible: the current one, and those that ended (HD41).
    pub fn registrations(&self, address: Address) -> impl Iterator<Item = &Arc<Contract>> {
        let past = self
            .past
            .get(address)
            .iter()
            .filter(|past| past.owned_until.is_some())
            .map(|past| &past.contract);
        self.contract(address).into_iter().chain(past)
    }

    /// The addresses of the contracts that are, or were (HD41), registered to the organization, in no particular order.
    pub fn contracts_of_org(&self, org: OrgId) -> impl Iterator<Item = Address> {
        let current = self.inverse.contracts_by_org.get(&org);
        self.addresses_of(current, self.inverse.past_by_org.get(&org))
    }

    /// The addresses of the contracts that the user deployed, by registrations that hold or ended (HD41), in no
    /// particular order.
    pub fn contracts_deployed_by(&self, user: UserId) -> impl Iterator<Item = Address> {
        let current = self.inverse.contracts_by_deployer.get(&user);
        self.addresses_of(current, self.inverse.past_by_deployer.get(&user))
    }

    /// The addresses of the contracts that the group has grants on, or had when their registrations ended (HD41), in no
    /// particular order.
    pub fn contracts_granted_to(&self, group: GroupId) -> impl Iterator<Item = Address> {
        let grants = self.inverse.grants_by_group.get(&group);
        let current = grants.filter_map(|id| Some(&self.grants.find(*id)?.contract));
        self.addresses_of(current, self.inverse.past_by_group.get(&group))
    }

    fn addresses_of<'s>(
        &'s self,
        current: impl Iterator<Item = &'s ContractId>,
        past: impl Iterator<Item = &'s ContractId>,
    ) -> impl Iterator<Item = Address> {
        let current = current.filter_map(|id| self.contracts.get(id));
        let past = past.filter_map(|id| Some(&self.past.find(*id)?.contract));
        current.chain(past).map(|contract| contract.address)
    }

    /// The addresses that are reserved for the organization, expired reservations included, in no particular order.
    pub fn reserved_by(&self, org: OrgId) -> impl Iterator<Item = Address> {
        let rows = self.inverse.reservations_by_org.get(&org);
        rows.filter_map(|id| Some(self.reservations.find(*id)?.address))
    }

    /// The blocks of the chain, divided so that in each range [`Self::contract_at`] is one registration, or none. The
    /// ranges are in order and cover all blocks.
    pub fn registration_ranges(&self, address: Address) -> Vec<BlockRange> {
        let past = self.past.get(address).iter();
        let ends = past.clone().filter_map(|past| past.owned_until?.checked_add(1));
        let starts = past
            .map(|past| &past.contract)
            .chain(self.contract(address))
            .filter_map(|contract| contract.owned_from);
        let mut borders: Vec<u64> = [0, u64::MAX].into_iter().chain(starts).chain(ends).collect();
        borders.sort_unstable();
        borders.dedup();
        let next = borders.iter().skip(1);
        borders
            .iter()
            .zip(next)
            .map(|(start, end)| BlockRange {
                start: *start,
                end: *end,
            })
            .collect()
    }

    /// Whether any registration of the address ended.
    pub fn was_registered(&self, address: Address) -> bool {
        !self.past.get(address).is_empty() || !self.retired.get(address).is_empty()
    }

    /// The organization that owns an address for decisions: the one that its contract is registered to, or was
    /// registered to until the registration was deleted (HD27).
    pub fn owner(&self, address: Address) -> Option<OrgId> {
        let retired = || self.retired(address).map(|retired| retired.org);
        self.contract(address).map(|contract| contract.org).or_else(retired)
    }

    /// Every registered contract, in no particular order.
    pub fn contracts(&self) -> impl Iterator<Item = &Arc<Contract>> {
        self.contracts.values()
    }

    /// All grants on a contract; for a registration that ended, the grants at its end.
    pub fn grants(&self, contract: ContractId) -> &[Arc<ContractGrant>] {
        self.past
            .find(contract)
            .map_or_else(|| self.grants.get(contract), |past| &past.grants)
    }

    /// All links of a user.
    pub fn links_of(&self, user: UserId) -> &[AddressLink] {
        self.links.by_user(user)
    }

    /// All links of an address, of all users.
    pub fn links_at(&self, address: Address) -> &[AddressLink] {
        self.links.by_address(address)
    }

    /// Whether any user, including deleted accounts, has or ever had a link to the address.
    pub fn was_ever_linked(&self, address: Address) -> bool {
        !self.links.by_address(address).is_empty() || self.was_unlinked(address)
    }

    /// Whether a user's link to the address ended, alone or with the account, and that user did not prove it again.
    pub fn was_unlinked(&self, address: Address) -> bool {
        !self.ended_links.get(address).is_empty()
    }

    /// All reservations of an address.
    pub fn reservations(&self, address: Address) -> &[Reservation] {
        self.reservations.get(address)
    }

    /// The visibility rows of a transaction.
    pub fn visibility(&self, tx_hash: B256) -> &[Arc<TxVisibility>] {
        self.visibility.get(tx_hash)
    }

    /// The revocation of a token or token family.
    pub fn revocation(&self, id: TokenId) -> Option<&Revocation> {
        self.revocations.get(&id)
    }

    /// The shared contract at an address, unless code other than its pin was seen there.
    pub fn shared(&self, address: Address) -> Option<&SharedInfra> {
        self.shared_by_address.get(&address).filter(|shared| !shared.broken)
    }

    /// Whether a creation runs code that a super admin approved: `init_code` is approved creation code followed by
    /// constructor arguments, or creates a minimal proxy (ERC-1167), which only runs code that exists already.
    pub fn approves_creation(&self, init_code: &[u8]) -> bool {
        if creates_minimal_proxy(init_code) {
            return true;
        }
        let mut hasher = Keccak256::new();
        let mut hashed = 0;
        for (size, hash) in self.approved_by_size.keys() {
            let Some(chunk) = usize::try_from(*size).ok().and_then(|size| init_code.get(hashed..size)) else {
                return false;
            };
            hasher.update(chunk);
            hashed = hashed.saturating_add(chunk.len());
            if hasher.clone().finalize() == *hash {
                return true;
            }
        }
        false
    }

    /// Whether an address is tagged as shared, even if its pin is broken.
    pub fn is_tagged_shared(&self, address: Address) -> bool {
        self.shared_by_address.get(&address).is_some()
    }

    /// The current override of a toggle, if any (X9).
    pub fn toggle(&self, toggle: SystemToggle, now: Timestamp) -> Option<bool> {
        self.toggles
            .get(&toggle.id())
            .filter(|state| state.until > now)
            .map(|state| state.enabled)
    }

    /// Whether the user's right to send is suspended (HD2), including by a suspension of an earlier account with the
    /// same external id (HD37).
    pub fn is_suspended(&self, user: UserId) -> bool {
        self.users
            .get(&user)
            .is_some_and(|user| !self.suspensions.get(name_key(&user.external_id)).is_empty())
    }

    /// The addresses that are closed to any user (HD28), in no particular order.
    pub fn closed_addresses(&self) -> impl Iterator<Item = Address> {
        self.quarantines.keys().copied()
    }

    /// The hashes of the transactions that are withheld from all viewers (HD28), in no particular order.
    pub fn withheld_transactions(&self) -> impl Iterator<Item = B256> {
        self.convictions.keys().copied()
    }

    /// Whether the state of the address is closed to all users (HD28).
    pub fn is_quarantined(&self, address: Address) -> bool {
        self.quarantines
            .get(address)
            .iter()
            .any(|row| row.closed_to == ClosedTo::Everybody)
    }

    /// Whether the state of the address is closed to this user, who is a member of the organizations for which
    /// `is_member` returns `true` (HD28).
    pub fn is_closed_to(&self, address: Address, user: Option<UserId>, is_member: impl Fn(OrgId) -> bool) -> bool {
        self.quarantines.get(address).iter().any(|row| match &row.closed_to {
            ClosedTo::Everybody => true,
            ClosedTo::SenderSide(sender, orgs) => {
                let user = user.and_then(|user| self.users.get(&user));
                orgs.iter().any(|org| is_member(*org)) || user.is_some_and(|user| user.external_id == *sender)
            }
        })
    }

    /// The convictions of a transaction, one for each person who sent it.
    pub fn convictions(&self, tx_hash: B256) -> &[Arc<Conviction>] {
        self.convictions.get(tx_hash)
    }

    /// Number of logs that withheld transactions emitted in this block before the transaction at index `place`. The
    /// logs of that transaction are numbered as if the withheld ones did not exist (HD28).
    pub fn logs_withheld_before(&self, block: B256, place: u64) -> u64 {
        let convictions = self.convictions_by_block.get(block).iter();
        let before = convictions.filter(|conviction| conviction.place < place);
        // One transaction may have several convictions, one per sender; its logs count once.
        let counts: BTreeMap<u64, u64> = before.map(|conviction| (conviction.place, conviction.logs)).collect();
        counts.into_values().fold(0, u64::saturating_add)
    }

    /// Whether both snapshots hold the same rows, regardless of their epochs and history. For tests and the periodic
    /// self-check.
    pub fn same_rows(&self, other: &Self) -> bool {
        self.users == other.users
            && self.users_by_external == other.users_by_external
            && self.orgs == other.orgs
            && self.groups == other.groups
            && self.access == other.access
            && self.memberships == other.memberships
            && self.org_users == other.org_users
            && self.contracts == other.contracts
            && self.contracts_by_address == other.contracts_by_address
            && self.retired == other.retired
            && self.past == other.past
            && self.grants == other.grants
            && self.links == other.links
            && self.ended_links == other.ended_links
            && self.reservations == other.reservations
            && self.visibility == other.visibility
            && self.revocations == other.revocations
            && self.suspensions == other.suspensions
            && self.quarantines == other.quarantines
            && self.convictions == other.convictions
            && self.withheld == other.withheld
            && self.tenants == other.tenants
            && self.tenants_by_name == other.tenants_by_name
            && self.personal_urls == other.personal_urls
            && self.urls_by_secret == other.urls_by_secret
            && self.shared == other.shared
            && self.shared_by_address == other.shared_by_address
            && self.approved_code == other.approved_code
            && self.approved_by_size == other.approved_by_size
            && self.toggles == other.toggles
            && self.disclosures == other.disclosures
            && self.disclosures_by_grantee == other.disclosures_by_grantee
            && self.inverse == other.inverse
    }
}

/// A fixed-size key for an external id.
fn name_key(name: &ExternalId) -> B256 {
    keccak256(name.as_str())
}

fn put<K: Eq + Hash + Clone, V: Clone>(map: &mut Map<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
