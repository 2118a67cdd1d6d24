//! The invariant of snapshots: applying changes step by step gives the same rows as a fresh load.

use gw_evm::{CustomMethodNames, Method, MethodSet};
use gw_policy::{
    Change, Snapshot,
    snapshot::{
        AddressLink, AllowedTenant, ApprovedCode, Contract, ContractGrant, DisclosureGrant, DisclosureScope,
        EventRules, Group, GroupAccess, LinkKind, Membership, MembershipState, OrgUserRecord, Organization,
        PastContract, Reservation, RetiredContract, Revocation, SharedInfra, ToggleState, TxVisibility, User,
    },
};
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, Claim, Claims, ContractId, DisclosureGrantId, Epoch, ExternalId,
    GrantId, GroupId, LinkId, MembershipId, OrgId, OrgUserRecordId, ReservationId, SealedGrantSecret, SharedInfraId,
    TenantId, Timestamp, ToggleId, TokenId, UserId, VisibilityId,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// Few ids and few keys, so that rows collide, move and return.
const IDS: u8 = 4;

fn user(id: u8, name: u8) -> User {
    User {
        id: UserId::fixed(id.into()),
        external_id: ExternalId::new(&format!("did:test:{name}")).unwrap(),
        kyc: name.is_multiple_of(2),
        banned: false,
        tenant: None,
        tokens_valid_from: None,
    }
}

fn contract(id: u8, address_byte: u8) -> Contract {
    Contract {
        id: ContractId::fixed(id.into()),
        org: OrgId::fixed(1),
        address: Address::with_last_byte(address_byte),
        since: Timestamp::from_secs(i64::from(id)),
        owned_from: None,
        name: "contract".into(),
        deployer: None,
        abi: None,
        allow_visibleto_unlock: false,
        events_allow_dynamic_payload: false,
        trusted_router: false,
    }
}

/// A change of one row, with id and content from small numbers; `None` removes the row. Rows with unique keys in the
/// store (external ids, contract addresses) are generated as whole sets by [`names`] and [`addresses`].
fn row() -> impl Strategy<Value = Change> {
    let numbers = (0..12u8, 0..IDS, 0..IDS, any::<bool>(), proptest::bool::weighted(0.75));
    numbers.prop_map(|(kind, id, key, flag, present)| {
        let (n, k) = (u128::from(id), u128::from(key));
        match kind {
            0 => {
                let (id, name) = (OrgId::fixed(n), if flag { "a" } else { "b" });
                let row = Organization {
                    id,
                    slug: name.into(),
                    name: name.into(),
                    is_system: flag,
                };
                Change::Organization(id, present.then_some(row))
            }
            1 => {
                let (id, org) = (GroupId::fixed(n), OrgId::fixed(k));
                let (is_org_admin, is_org_readonly_admin) = (flag, !flag);
                let slug = "group".into();
                let row = Group {
                    id,
                    org,
                    slug,
                    is_org_admin,
                    is_org_readonly_admin,
                    is_system: false,
                };
                Change::Group(id, present.then_some(row))
            }
            2 => {
                let group = GroupId::fixed(n);
                let methods = if flag {
                    MethodSet::ALL
                } else {
                    MethodSet::EMPTY.with(Method::Call)
                };
                let row = GroupAccess {
                    group,
                    methods,
                    custom_methods: CustomMethodNames::default(),
                    claims: Claims::NONE.with(Claim::Deploy),
                    expires_at: None,
                    upstream_key: None,
                };
                Change::GroupAccess(group, present.then_some(row))
            }
            3 => {
                let (id, user, group) = (MembershipId::fixed(n), UserId::fixed(k), GroupId::fixed(k));
                let expires_at = flag.then_some(Timestamp::from_secs(i64::from(key)));
                let state = if flag {
                    MembershipState::Invited
                } else {
                    MembershipState::Accepted
                };
                let since = Timestamp::from_secs(i64::from(key));
                Change::Membership(
                    id,
                    present.then_some(Membership {
                        id,
                        user,
                        group,
                        expires_at,
                        state,
                        since,
                    }),
                )
            }
            4 => {
                let (id, contract, group) = (GrantId::fixed(n), ContractId::fixed(k), GroupId::fixed(k));
                let functions = flag.then(Vec::new);
                let (claims, events) = (Claims::NONE, EventRules::All);
                let row = ContractGrant {
                    id,
                    contract,
                    group,
                    claims,
                    functions,
                    events,
                };
                Change::Grant(id, present.then_some(row))
            }
            5 => {
                // A link may change owner and address at once.
                let (id, user, address) = (LinkId::fixed(n), UserId::fixed(k), Address::with_last_byte(key));
                let kind = if flag { LinkKind::User } else { LinkKind::System };
                let verified_at = Timestamp::from_secs(1);
                if k == 0 {
                    return Change::LinkEnded(id, address);
                }
                Change::Link(
                    id,
                    present.then_some(AddressLink {
                        id,
                        user,
                        address,
                        kind,
                        contract_wallet: false,
                        verified_at,
                    }),
                )
            }
            6 => {
                let (id, address) = (ReservationId::fixed(n), Address::with_last_byte(key));
                let (org, user, expires_at) = (OrgId::fixed(k), UserId::fixed(k), Timestamp::from_secs(1));
                Change::Reservation(
                    id,
                    present.then_some(Reservation {
                        id,
                        address,
                        org,
                        user,
                        expires_at,
                    }),
                )
            }
            // A record may change its user and its organization.
            7 if flag => {
                let external_id = ExternalId::new(&format!("did:test:{key}")).unwrap();
                let (id, org) = (OrgUserRecordId::fixed(n), OrgId::fixed(k));
                let row = OrgUserRecord {
                    id,
                    org,
                    external_id,
                    kyc: key > 1,
                    banned: key < 3,
                };
                Change::OrgUserRecord(id, present.then_some(row))
            }
            7 => {
                let (id, tx_hash, sender) = (VisibilityId::fixed(n), B256::with_last_byte(key), UserId::fixed(k));
                let row = TxVisibility {
                    id,
                    tx_hash,
                    sender,
                    recipients: Vec::new(),
                    active: flag,
                };
                Change::Visibility(id, present.then_some(row))
            }
            8 => {
                let (id, address) = (ContractId::fixed(n), Address::with_last_byte(key));
                let (org, since, retired_at) = (OrgId::fixed(k), Timestamp::from_secs(1), Timestamp::from_secs(2));
                let row = RetiredContract {
                    id,
                    address,
                    org,
                    since,
                    retired_at,
                };
                Change::RetiredContract(id, present.then_some(row))
            }
            9 => {
                let contract = Arc::new(contract(id, key));
                let owned_until = flag.then_some(u64::from(key));
                let row = PastContract {
                    contract,
                    grants: Vec::new(),
                    owned_until,
                };
                Change::PastContract(row.contract.id, present.then_some(row))
            }
            10 => {
                let (id, grantee) = (DisclosureGrantId::fixed(n), format!("did:test:{key}"));
                let row = DisclosureGrant {
                    id,
                    owner: UserId::fixed(k),
                    grantee: ExternalId::new(&grantee).unwrap(),
                    org: OrgId::fixed(1),
                    granted_at: Timestamp::from_secs(1),
                    expires_at: Timestamp::from_secs(9),
                    revoked_at: flag.then_some(Timestamp::from_secs(5)),
                    include_future_addresses: flag,
                    scope: DisclosureScope::nothing(),
                    secret: SealedGrantSecret([key; SealedGrantSecret::SIZE]),
                };
                Change::Disclosure(id, present.then_some(row))
            }
            _ => {
                let (id, until) = (TokenId::fixed(n), Timestamp::from_secs(i64::from(key)));
                Change::Revocation(id, present.then_some(Revocation { id, until }))
            }
        }
    })
}

/// The users after one transaction, with distinct names, in any order of rows.
fn names() -> impl Strategy<Value = Vec<Change>> {
    assignment().prop_map(|rows| {
        rows.into_iter()
            .map(|(id, name)| Change::User(UserId::fixed(id.into()), name.map(|name| user(id, name))))
            .collect()
    })
}

/// The contracts after one transaction, with distinct addresses.
fn addresses() -> impl Strategy<Value = Vec<Change>> {
    assignment().prop_map(|rows| {
        rows.into_iter()
            .map(|(id, address_byte)| {
                Change::Contract(
                    ContractId::fixed(id.into()),
                    address_byte.map(|address_byte| contract(id, address_byte)),
                )
            })
            .collect()
    })
}

fn assignment() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
    let ids = Just((0..IDS).collect::<Vec<_>>()).prop_shuffle();
    let keys = Just((0..IDS).collect::<Vec<_>>()).prop_shuffle();
    let present = proptest::collection::vec(any::<bool>(), usize::from(IDS));
    (ids, keys, present).prop_map(|(ids, keys, present)| {
        ids.into_iter()
            .zip(
                keys.into_iter()
                    .zip(present)
                    .map(|(key, present)| present.then_some(key)),
            )
            .collect()
    })
}

/// The allowed tenants after one transaction.
fn tenants() -> impl Strategy<Value = Vec<Change>> {
    assignment().prop_map(|rows| {
        let row = |id, tenant: u8| AllowedTenant {
            id,
            tenant: TenantId::fixed(tenant.into()),
            disabled: tenant.is_multiple_of(2),
        };
        let ids = rows
            .into_iter()
            .map(|(id, tenant)| (AllowedTenantId::fixed(id.into()), tenant));
        ids.map(|(id, tenant)| Change::Tenant(id, tenant.map(|tenant| row(id, tenant))))
            .collect()
    })
}

/// The shared addresses, the approved code and the toggles after one transaction.
fn shared() -> impl Strategy<Value = Vec<Change>> {
    assignment().prop_map(|rows| {
        let rows = rows.into_iter().flat_map(|(id, address_byte)| {
            let (code, toggle) = (ApprovedCodeId::fixed(id.into()), ToggleId::fixed(id.into()));
            let id = SharedInfraId::fixed(id.into());
            let row = |address_byte| SharedInfra {
                id,
                address: Address::with_last_byte(address_byte),
                pin: None,
                broken: false,
            };
            let state = |n: u8| ToggleState {
                id: toggle,
                enabled: n > 2,
                until: Timestamp::from_secs(n.into()),
            };
            let approved = |n: u8| ApprovedCode {
                id: code,
                hash: B256::with_last_byte(n),
                size: n.into(),
            };
            [
                Change::SharedInfra(id, address_byte.map(row)),
                Change::ApprovedCode(code, address_byte.map(approved)),
                Change::Toggle(toggle, address_byte.map(state)),
            ]
        });
        rows.collect()
    })
}

/// One committed transaction.
fn transaction() -> impl Strategy<Value = Vec<Change>> {
    let rows = proptest::collection::vec(row(), 1..6);
    prop_oneof![4 => rows, 1 => names(), 1 => addresses(), 1 => tenants(), 1 => shared()]
}

/// The key of the changed row, and whether the change removes it.
fn row_key(change: &Change) -> ((u8, u128), bool) {
    let (kind, id, is_removed) = match change {
        Change::User(id, row) => (0, id.0, row.is_none()),
        Change::Organization(id, row) => (1, id.0, row.is_none()),
        Change::Group(id, row) => (2, id.0, row.is_none()),
        Change::GroupAccess(id, row) => (3, id.0, row.is_none()),
        Change::Membership(id, row) => (4, id.0, row.is_none()),
        Change::Contract(id, row) => (5, id.0, row.is_none()),
        Change::Grant(id, row) => (6, id.0, row.is_none()),
        Change::Link(id, row) => (7, id.0, row.is_none()),
        Change::LinkEnded(id, _) => (7, id.0, false),
        Change::Reservation(id, row) => (8, id.0, row.is_none()),
        Change::Visibility(id, row) => (9, id.0, row.is_none()),
        Change::Revocation(id, row) => (10, id.0, row.is_none()),
        Change::Tenant(id, row) => (11, id.0, row.is_none()),
        Change::SharedInfra(id, row) => (12, id.0, row.is_none()),
        Change::Toggle(id, row) => (13, id.0, row.is_none()),
        Change::PersonalUrl(id, row) => (14, id.0, row.is_none()),
        Change::Suspension(id, row) => (15, id.0, row.is_none()),
        Change::Quarantine(id, row) => (16, id.0, row.is_none()),
        Change::Conviction(id, row) => (17, id.0, row.is_none()),
        Change::RetiredContract(id, row) => (18, id.0, row.is_none()),
        Change::OrgUserRecord(id, row) => (19, id.0, row.is_none()),
        Change::PastContract(id, row) => (20, id.0, row.is_none()),
        Change::Withheld(id, row) => (21, id.0, row.is_none()),
        Change::ApprovedCode(id, row) => (22, id.0, row.is_none()),
        Change::Disclosure(id, row) => (23, id.0, row.is_none()),
    };
    ((kind, id.as_u128()), is_removed)
}

/// The final rows, as a load returns them, in another order.
fn final_rows(history: &[Vec<Change>]) -> Vec<Change> {
    let mut rows: BTreeMap<(u8, u128), Change> = BTreeMap::new();
    for change in history.iter().flatten() {
        match row_key(change) {
            (row, true) => rows.remove(&row),
            (row, false) => rows.insert(row, change.clone()),
        };
    }
    rows.into_values().rev().collect()
}

proptest! {
    /// design.md section 2: for every history, the rows are those of a fresh load.
    #[test]
    fn changes_step_by_step_equal_a_fresh_load(history in proptest::collection::vec(transaction(), 0..24)) {
        let mut stepped = Snapshot::default();
        for (epoch, changes) in history.iter().enumerate() {
            stepped = stepped.apply(Epoch(epoch as u64), changes.clone());
        }
        let fresh = Snapshot::default().apply(Epoch(99), final_rows(&history));
        prop_assert!(stepped.same_rows(&fresh), "{stepped:#?}\n{fresh:#?}");
    }
}

/// A name or an address moves from one row to another in one transaction, in both orders of the rows.
#[test]
fn a_unique_key_may_move_between_rows_in_any_order() {
    let start = Snapshot::default().apply(
        Epoch(1),
        [
            Change::User(UserId::fixed(1), Some(user(1, 7))),
            Change::Contract(ContractId::fixed(1), Some(contract(1, 7))),
        ],
    );
    let moved = [
        Change::User(UserId::fixed(1), Some(user(1, 8))),
        Change::User(UserId::fixed(2), Some(user(2, 7))),
        Change::Contract(ContractId::fixed(1), None),
        Change::Contract(ContractId::fixed(2), Some(contract(2, 7))),
    ];
    let mut reversed = moved.clone();
    reversed.reverse();
    for changes in [moved, reversed] {
        let after = start.apply(Epoch(2), changes);
        let owner = after.user_by_external(&user(2, 7).external_id).map(|user| user.id);
        assert_eq!(owner, Some(UserId::fixed(2)));
        assert_eq!(
            after.contract(Address::with_last_byte(7)).map(|contract| contract.id),
            Some(ContractId::fixed(2))
        );
    }
}

/// Readers keep the version that they hold.
#[test]
fn a_pinned_snapshot_does_not_change() {
    let older = Snapshot::default().apply(Epoch(1), [Change::User(UserId::fixed(1), Some(user(1, 7)))]);
    let newer = older.apply(Epoch(2), [Change::User(UserId::fixed(1), None)]);
    assert!(older.user(UserId::fixed(1)).is_some() && newer.user(UserId::fixed(1)).is_none());
    assert_eq!((older.epoch(), newer.epoch()), (Epoch(1), Epoch(2)));
    assert!(!older.same_rows(&newer));
}
