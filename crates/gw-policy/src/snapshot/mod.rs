//! All policy rows at one epoch: immutable, shared, and cheap to change by one row.
//!
//! `change` applies changed rows. `people`, `contracts` and `convictions` hold the queries of their areas; the others
//! are here.
//!
//! Invariant: a snapshot that results from any sequence of changes equals the one loaded from the same rows
//! (property-tested in `tests/it/snapshot.rs` and, through the database, in `gw-store`).
//! Expiry is evaluated with the request's `now`, never by removing rows.

mod change;
mod contracts;
mod convictions;
mod index;
mod inverse;
mod map;
mod people;
mod record;
mod withheld;

pub use change::Change;
pub use record::{
    AddressLink, AllowedTenant, ApprovedCode, BlockRange, ClosedTo, CodePin, Comparison, Constraint, Contract,
    ContractGrant, Conviction, DisclosureGrant, DisclosureScope, EventRule, EventRules, FunctionRule, Group,
    GroupAccess, LinkKind, Membership, MembershipState, Moment, OrgUserRecord, Organization, ParamRule, PastContract,
    PersonalUrl, Quarantine, Reservation, RetiredContract, Revocation, SharedInfra, Suspension, SystemToggle,
    ToggleState, TxVisibility, UrlReach, User,
};
pub(crate) use withheld::undone_balance;
pub use withheld::{AccountChange, VisibleState, WithheldState};

use alloy_primitives::keccak256;
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, ContractId, DisclosureGrantId, Epoch, ExternalId, GroupId, OrgId,
    PersonalUrlId, SharedInfraId, TenantId, Timestamp, ToggleId, TokenId, UserId,
};
use index::{EndedLink, Index, Links};
use inverse::InverseIndexes;
use map::Map;
use std::{collections::BTreeMap, sync::Arc};
use withheld::WithheldRows;

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

    /// The visibility rows of a transaction.
    pub fn visibility(&self, tx_hash: B256) -> &[Arc<TxVisibility>] {
        self.visibility.get(tx_hash)
    }

    /// The revocation of a token or token family.
    pub fn revocation(&self, id: TokenId) -> Option<&Revocation> {
        self.revocations.get(&id)
    }

    /// The current override of a toggle, if any (X9).
    pub fn toggle(&self, toggle: SystemToggle, now: Timestamp) -> Option<bool> {
        self.toggles
            .get(&toggle.id())
            .filter(|state| state.until > now)
            .map(|state| state.enabled)
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
