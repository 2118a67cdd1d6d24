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

mod contracts;
pub mod corpus;
mod executions;
mod members;
mod names;

pub use names::{address_of, calldata, contract_id, did, function, group_id, hash_of, org_id, selector, user_id};

use crate::snapshot::{
    AddressLink, ApprovedCode, Change, Contract, ContractGrant, Conviction, DisclosureGrant, Group, GroupAccess,
    Membership, OrgUserRecord, Organization, PastContract, Quarantine, Reservation, RetiredContract, Revocation,
    SharedInfra, Snapshot, Suspension, ToggleState, TxVisibility, User, WithheldState,
};
use gw_evm::Method;
use gw_types::{
    Address, ApprovedCodeId, ContractId, ConvictionId, DisclosureGrantId, Epoch, GrantId, GroupId, LinkId,
    MembershipId, OrgId, OrgUserRecordId, QuarantineId, ReservationId, Seconds, SharedInfraId, SuspensionId, Timestamp,
    ToggleId, TokenId, UserId, VisibilityId, WithheldId,
};
use std::collections::BTreeMap;

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
            .chain(rows(&self.disclosures, Change::Disclosure))
            .collect()
    }

    /// The snapshot of this world, at epoch 1.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::default().apply(Epoch(1), self.changes())
    }
}
