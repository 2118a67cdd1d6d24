//! All policy at one epoch: immutable, shared, cheap to change by one row.
//!
//! Invariant: a snapshot reached by applying any sequence of changes equals the one loaded fresh from the same
//! rows (property-tested in `tests/it/snapshot.rs` and, through the database, in `gw-store`).
//! Expiry is judged with the request's `now`, never by removing rows.

mod index;
mod map;
mod record;
mod withheld;

pub use record::{
    AddressLink, AllowedTenant, ApprovedCode, ClosedTo, CodePin, Comparison, Contract, ContractGrant, Conviction,
    EventRule, EventRules, FunctionRule, Group, GroupAccess, LinkKind, Membership, MembershipState, Moment, MustBe,
    OrgUserRecord, Organization, ParamRule, PastContract, PersonalUrl, Quarantine, Reservation, RetiredContract,
    Revocation, SharedInfra, Suspension, SystemToggle, ToggleState, TxVisibility, UrlReach, User,
};
pub(crate) use withheld::undone_balance;
pub use withheld::{AccountChange, VisibleState, Withheld};

use alloy_primitives::{Keccak256, keccak256};
use gw_evm::code::creates_minimal_proxy;
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, ContractId, ConvictionId, Epoch, ExternalId, GrantId, GroupId,
    LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId, SharedInfraId,
    SuspensionId, TenantId, Timestamp, ToggleId, TokenId, UserId, VisibilityId, WithheldId,
};
use index::{EndedLink, Index, Links};
use map::Map;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
    sync::Arc,
};
use withheld::WithheldRows;

/// One changed row: its new content, or `None` when it is gone.
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
    /// What an organization decided about a person.
    OrgUserRecord(OrgUserRecordId, Option<OrgUserRecord>),
    /// A contract.
    Contract(ContractId, Option<Contract>),
    /// A contract whose registration was deleted.
    RetiredContract(ContractId, Option<RetiredContract>),
    /// A registration that ended.
    PastContract(ContractId, Option<PastContract>),
    /// A contract grant.
    Grant(GrantId, Option<ContractGrant>),
    /// An address link that holds; `None` when the row is gone.
    Link(LinkId, Option<AddressLink>),
    /// An address link that its owner or an administrator ended: it gives nothing, and the address is no longer one that
    /// was never linked (HD13).
    LinkEnded(LinkId, Address),
    /// A reservation.
    Reservation(ReservationId, Option<Reservation>),
    /// A `visibleTo` row.
    Visibility(VisibilityId, Option<TxVisibility>),
    /// A revoked token or family.
    Revocation(TokenId, Option<Revocation>),
    /// A lost right to send.
    Suspension(SuspensionId, Option<Suspension>),
    /// A closed address.
    Quarantine(QuarantineId, Option<Quarantine>),
    /// A withheld transaction.
    Conviction(ConvictionId, Option<Conviction>),
    /// What a withheld transaction changed of an account.
    Withheld(WithheldId, Option<Withheld>),
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
}

/// All policy at one epoch.
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
    /// How many transactions are shared with each.
    shares: Map<ExternalId, u32>,
    revocations: Map<TokenId, Revocation>,
    suspensions: Index<B256, Arc<Suspension>>,
    quarantines: Index<Address, Arc<Quarantine>>,
    convictions: Index<B256, Arc<Conviction>>,
    /// The same by block.
    convicted_in: Index<B256, Arc<Conviction>>,
    withheld: WithheldRows,
    tenants: Map<AllowedTenantId, AllowedTenant>,
    tenants_by_name: Map<TenantId, AllowedTenant>,
    personal_urls: Map<PersonalUrlId, Arc<PersonalUrl>>,
    urls_by_secret: Map<B256, Arc<PersonalUrl>>,
    shared: Map<SharedInfraId, SharedInfra>,
    shared_by_address: Map<Address, SharedInfra>,
    approved_code: Map<ApprovedCodeId, ApprovedCode>,
    /// Size and hash of each approved code, in the order in which `approves_creation` compares prefixes.
    approved_by_size: Arc<BTreeSet<(u32, B256)>>,
    toggles: Map<ToggleId, ToggleState>,
}

impl Snapshot {
    /// The snapshot after `changes`, at `epoch`. Later changes of one row win.
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
                    // Unless another row of the same change set has taken the name over already.
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
            Change::Group(id, row) => put(&mut self.groups, id, row.map(Arc::new)),
            Change::GroupAccess(id, row) => put(&mut self.access, id, row.map(Arc::new)),
            Change::Membership(id, row) => self.memberships.put(id, row.map(|m| (m.user, m))),
            Change::OrgUserRecord(id, row) => self.org_users.put(id, row.map(|r| (r.external_id.clone(), r))),
            Change::Contract(id, row) => {
                let row = row.map(Arc::new);
                if let Some(old) = self.contracts.get(&id) {
                    // As with names.
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
                self.past
                    .put(id, row.map(|past| (past.contract.address, Arc::new(past))));
            }
            Change::Grant(id, row) => self.grants.put(id, row.map(|g| (g.contract, Arc::new(g)))),
            Change::Link(id, row) => {
                self.links.put(id, row);
                self.ended_links.put(id, None);
            }
            Change::LinkEnded(id, address) => {
                self.links.put(id, None);
                self.ended_links.put(id, Some((address, EndedLink { id })));
            }
            Change::Reservation(id, row) => self.reservations.put(id, row.map(|r| (r.address, r))),
            Change::Visibility(id, row) => {
                let row = row.map(Arc::new);
                let old = self.visibility.find(id).cloned();
                self.count_shares(old.as_deref(), |count| count.saturating_sub(1));
                self.count_shares(row.as_deref(), |count| count.saturating_add(1));
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
                self.convicted_in.put(id, row.clone().map(|row| (row.block_hash, row)));
                self.convictions.put(id, row.map(|row| (row.tx_hash, row)));
            }
            Change::Withheld(id, row) => self.withheld.put(id, row),
            Change::Tenant(id, row) => {
                if let Some(old) = self.tenants.get(&id).copied() {
                    // As with names.
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
                    // As with names.
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
                    // As with names.
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
                    by_size.remove(&(old.size, old.hash));
                }
                if let Some(code) = &row {
                    by_size.insert((code.size, code.hash));
                }
                put(&mut self.approved_code, id, row);
            }
            Change::Toggle(id, row) => put(&mut self.toggles, id, row),
        }
    }

    fn count_shares(&mut self, row: Option<&TxVisibility>, count: impl Fn(u32) -> u32) {
        for recipient in row.filter(|row| row.active).into_iter().flat_map(|row| &row.recipients) {
            let count = count(self.shares.get(recipient).copied().unwrap_or(0));
            put(&mut self.shares, recipient.clone(), (count > 0).then_some(count));
        }
    }

    /// Whether any transaction is shared with this name, and was accepted.
    pub fn shares_with(&self, recipient: &ExternalId) -> bool {
        self.shares.get(recipient).is_some()
    }

    /// The personal URL with this hash of its secret, expired or not.
    pub fn personal_url(&self, secret: B256) -> Option<&Arc<PersonalUrl>> {
        self.urls_by_secret.get(&secret)
    }

    /// The epoch these rows belong to.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The user with this id.
    pub fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    /// The user who logs in under this name.
    pub fn user_by_external(&self, external: &ExternalId) -> Option<&Arc<User>> {
        self.users_by_external.get(external)
    }

    /// Whether a user may not come in: banned (A10), or the directory tenant that vouched for them is not allowed
    /// any more (TK-8).
    pub fn shuts_out(&self, user: &User) -> bool {
        user.banned || user.tenant.is_some_and(|tenant| !self.allows_tenant(tenant))
    }

    /// Whether users of a directory tenant may come in (DS-7).
    pub fn allows_tenant(&self, tenant: TenantId) -> bool {
        self.tenants_by_name.get(&tenant).is_some_and(|tenant| !tenant.disabled)
    }

    /// The organization with this id.
    pub fn organization(&self, id: OrgId) -> Option<&Arc<Organization>> {
        self.orgs.get(&id)
    }

    /// All organizations, in no order.
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

    /// The access of all groups, in no order.
    pub fn accesses(&self) -> impl Iterator<Item = &Arc<GroupAccess>> {
        self.access.values()
    }

    /// All memberships of a user: ended ones and invitations included. Rights follow from
    /// [`Snapshot::active_memberships`].
    pub fn memberships(&self, user: UserId) -> &[Membership] {
        self.memberships.get(user)
    }

    /// The memberships that count, with their groups (A8, HD32): not ended, agreed to, and in an organization that did not
    /// ban the person. Provisional ones count while the person has accepted no other organization, those of one organization
    /// only: of several that wait, the first.
    pub fn active_memberships(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (&Membership, &Arc<Group>)> {
        let (all, first) = (self.memberships(user), self.first_provisional(user, now));
        all.iter().filter_map(move |membership| {
            let group = self.groups.get(&membership.group).filter(|_| membership.active(now))?;
            let is_void = self.is_banned_in(user, group.org);
            let is_outranked = membership.state == MembershipState::Provisional
                && (self.has_accepted_another(all, group.org, now)
                    || (self.is_plain(group.org) && first != Some(group.org)));
            (!is_void && !is_outranked).then_some((membership, group))
        })
    }

    /// Whether the user has a membership in the organization that counts.
    pub fn is_member(&self, user: UserId, org: OrgId, now: Timestamp) -> bool {
        self.active_memberships(user, now).any(|(_, group)| group.org == org)
    }

    /// The organization whose provisional memberships may count (HD32): the one that made its first one before the others.
    /// So a later one takes nobody over, and keeps nobody out. A ban gives the place up, as an end does; system
    /// organizations have no part in it.
    fn first_provisional(&self, user: UserId, now: Timestamp) -> Option<OrgId> {
        self.provisional(user, now).min().map(|(_, org)| org)
    }

    /// Since when which organizations wait for the user's word.
    fn provisional(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (Timestamp, OrgId)> {
        self.memberships(user).iter().filter_map(move |membership| {
            let waits = membership.state == MembershipState::Provisional && !membership.has_ended(now);
            let group = self.groups.get(&membership.group).filter(|_| waits)?;
            let counts = self.is_plain(group.org) && !self.is_banned_in(user, group.org);
            counts.then_some((membership.since, group.org))
        })
    }

    /// Whether several organizations wait for the word of a user who has accepted none (HD32). Then no call that names none
    /// of them is any one's: not to be sent in its name, nor to be put on its record.
    pub fn is_undecided(&self, user: UserId, now: Timestamp) -> bool {
        let Some((_, first)) = self.provisional(user, now).next() else {
            return false;
        };
        let of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let mut accepted = self
            .memberships(user)
            .iter()
            .filter(|membership| membership.is_accepted(now));
        !accepted.any(|membership| of(membership).is_some_and(|org| self.is_plain(org)))
            && self.provisional(user, now).any(|(_, org)| org != first)
    }

    /// Whether there is such an organization, and it is not one of the system's.
    fn is_plain(&self, org: OrgId) -> bool {
        self.orgs.get(&org).is_some_and(|org| !org.is_system)
    }

    /// Whether one of the memberships is accepted in an organization other than `org`; system organizations do not count.
    fn has_accepted_another(&self, memberships: &[Membership], org: OrgId, now: Timestamp) -> bool {
        let of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let accepted = memberships.iter().filter(|membership| membership.is_accepted(now));
        accepted
            .filter_map(of)
            .any(|other| other != org && self.is_plain(other))
    }

    /// Whether the user agreed to be a member of the organization, and still is: what gives its administrators rights over
    /// them, a ban of the organization or not.
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

    /// Whether the organization banned the user. Bans of the platform stand in the user's row.
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

    /// The contract at an address as it was registered when something happened, by the present registration or one that
    /// ended (HD41). Each moment belongs to one registration at most.
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

    /// Every registration of an address that blocks may be seen by: the present one, and those that ended (HD41).
    pub fn registrations(&self, address: Address) -> impl Iterator<Item = &Arc<Contract>> {
        let past = self
            .past
            .get(address)
            .iter()
            .filter(|past| past.owned_until.is_some())
            .map(|past| &past.contract);
        self.contract(address).into_iter().chain(past)
    }

    /// Whether a registration of the address ended.
    pub fn was_registered(&self, address: Address) -> bool {
        !self.past.get(address).is_empty() || !self.retired.get(address).is_empty()
    }

    /// Which organization owns an address, for judgement: the one its contract is registered to, or was until the
    /// registration was deleted (HD27).
    pub fn owner(&self, address: Address) -> Option<OrgId> {
        let retired = || self.retired(address).map(|retired| retired.org);
        self.contract(address).map(|contract| contract.org).or_else(retired)
    }

    /// Every registered contract, in no order.
    pub fn contracts(&self) -> impl Iterator<Item = &Arc<Contract>> {
        self.contracts.values()
    }

    /// All grants on a contract; of a registration that ended, those it ended with.
    pub fn grants(&self, contract: ContractId) -> &[Arc<ContractGrant>] {
        self.past
            .find(contract)
            .map_or_else(|| self.grants.get(contract), |past| &past.grants)
    }

    /// All links of a user.
    pub fn links_of(&self, user: UserId) -> &[AddressLink] {
        self.links.of(user)
    }

    /// All links of an address, whoever holds them.
    pub fn links_at(&self, address: Address) -> &[AddressLink] {
        self.links.at(address)
    }

    /// Whether anybody holds or ever held a link to the address, deleted accounts included.
    pub fn was_ever_linked(&self, address: Address) -> bool {
        !self.links.at(address).is_empty() || self.was_unlinked(address)
    }

    /// Whether somebody's link to the address was ended, by itself or with the account, and not proved again by the same.
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

    /// The revocation of a token or family.
    pub fn revocation(&self, id: TokenId) -> Option<&Revocation> {
        self.revocations.get(&id)
    }

    /// The shared contract at an address, unless other code than its pin was found there.
    pub fn shared(&self, address: Address) -> Option<&SharedInfra> {
        self.shared_by_address.get(&address).filter(|shared| !shared.broken)
    }

    /// Whether a creation runs code that a super admin approved: it begins with approved creation code, whose constructor
    /// arguments follow, or makes a minimal proxy (ERC-1167), which is code that is there already.
    pub fn approves_creation(&self, init_code: &[u8]) -> bool {
        if creates_minimal_proxy(init_code) {
            return true;
        }
        let mut hasher = Keccak256::new();
        let mut done = 0;
        for (size, hash) in self.approved_by_size.iter() {
            let Some(more) = usize::try_from(*size).ok().and_then(|size| init_code.get(done..size)) else {
                return false;
            };
            hasher.update(more);
            done = done.saturating_add(more.len());
            if hasher.clone().finalize() == *hash {
                return true;
            }
        }
        false
    }

    /// Whether an address is tagged as shared, whatever was found there.
    pub fn is_tagged_shared(&self, address: Address) -> bool {
        self.shared_by_address.get(&address).is_some()
    }

    /// What a toggle is overridden to now, if it is (X9).
    pub fn toggle(&self, toggle: SystemToggle, now: Timestamp) -> Option<bool> {
        self.toggles
            .get(&toggle.id())
            .filter(|state| state.until > now)
            .map(|state| state.enabled)
    }

    /// Whether the user lost the right to send (HD2), under this row or an earlier one of the same name (HD37).
    pub fn is_suspended(&self, user: UserId) -> bool {
        self.users
            .get(&user)
            .is_some_and(|user| !self.suspensions.get(name_key(&user.external_id)).is_empty())
    }

    /// Whether nobody may read the state of the address (HD28).
    pub fn is_quarantined(&self, address: Address) -> bool {
        self.quarantines
            .get(address)
            .iter()
            .any(|row| row.closed_to == ClosedTo::Everybody)
    }

    /// Whether the state of the address is closed to this user, who is a member where `is_member` says so (HD28).
    pub fn is_closed_to(&self, address: Address, user: Option<UserId>, is_member: impl Fn(OrgId) -> bool) -> bool {
        self.quarantines.get(address).iter().any(|row| match &row.closed_to {
            ClosedTo::Everybody => true,
            ClosedTo::SenderSide(sender, orgs) => {
                let user = user.and_then(|user| self.users.get(&user));
                orgs.iter().any(|org| is_member(*org)) || user.is_some_and(|user| user.external_id == *sender)
            }
        })
    }

    /// The convictions of a transaction: one for each person who sent it.
    pub fn convictions(&self, tx_hash: B256) -> &[Arc<Conviction>] {
        self.convictions.get(tx_hash)
    }

    /// How many events of withheld transactions stand in this block before the transaction at this place: what is shown of
    /// it is numbered as if they were not there (HD28).
    pub fn logs_withheld_before(&self, block: B256, place: u64) -> u64 {
        let before = self.convicted_in.get(block).iter().filter(|found| found.place < place);
        // One transaction may be several people's.
        let counts: BTreeMap<u64, u64> = before.map(|found| (found.place, found.logs)).collect();
        counts.into_values().fold(0, u64::saturating_add)
    }

    /// Whether both hold the same rows, whatever their history. For tests and the periodic self-check.
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
            && self.shares == other.shares
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
            && self.toggles == other.toggles
    }
}

/// A key of fixed size for a name.
fn name_key(name: &ExternalId) -> B256 {
    keccak256(name.as_str())
}

fn put<K: Eq + Hash + Clone, V: Clone>(map: &mut Map<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
