//! Benchmark of grants of disclosure: 100,000 of them in the snapshot, 500 for each of 200 grantees (the most that one
//! may have). Reports the memory of the grants, and measures what a request of a grantee does: the level of an address,
//! one row of a list under an unrestricted and under a restricted grant, and the scope by which rows are selected. A
//! viewer without grants is measured beside it.

#![expect(clippy::expect_used, reason = "a benchmark stops when its world is wrong")]

use criterion::{Criterion, criterion_group, criterion_main};
use gw_evm::{CustomMethodNames, MethodSet};
use gw_policy::{
    Change, PolicySettings, Snapshot, Viewer,
    snapshot::{
        AddressLink, DisclosureGrant, DisclosureScope, Group, GroupAccess, LinkKind, Membership, MembershipState,
        Moment, Organization, User,
    },
    visibility::{TransactionRow, explorer::TransactionEntry},
};
use gw_types::{
    Address, B256, Claims, DisclosureGrantId, Epoch, ExternalId, GroupId, Level, LinkId, MembershipId, OrgId,
    SealedGrantSecret, Timestamp, UserId,
};
use std::{hint::black_box, time::Instant};

const OWNERS: u128 = 50_000;
const GRANTEES: u128 = 200;
const GRANTS_PER_GRANTEE: u128 = 500;
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const ORG: OrgId = OrgId::fixed(1);
const GROUP: GroupId = GroupId::fixed(1);

/// Maps a number to an id, evenly spread like random ids.
fn spread(n: u128) -> u128 {
    n.wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn wallet(n: u128) -> Address {
    let mut bytes = [1; 20];
    bytes.split_at_mut(16).0.copy_from_slice(&spread(n).to_be_bytes());
    Address::from(bytes)
}

fn did(n: u128) -> ExternalId {
    ExternalId::new(&format!("did:iden3:privado:main:2Sci{:036}", spread(n) >> 16)).expect("a valid DID")
}

/// The users: owners first, then grantees, then one without grants.
fn world() -> Snapshot {
    let org = Organization {
        id: ORG,
        slug: "bank".into(),
        name: "bank".into(),
        is_system: false,
    };
    let group = Group {
        id: GROUP,
        org: ORG,
        slug: "members".into(),
        is_org_admin: false,
        is_org_readonly_admin: false,
        is_system: false,
    };
    let access = GroupAccess {
        group: GROUP,
        methods: MethodSet::ALL,
        custom_methods: CustomMethodNames::default(),
        claims: Claims::NONE,
        expires_at: None,
        upstream_key: None,
    };
    let people = (0..=OWNERS + GRANTEES).flat_map(|n| {
        let user = UserId::fixed(spread(n));
        let (membership, link) = (MembershipId::fixed(spread(n)), LinkId::fixed(spread(n)));
        [
            Change::User(
                user,
                Some(User {
                    id: user,
                    external_id: did(n),
                    kyc: true,
                    banned: false,
                    tenant: None,
                    tokens_valid_from: None,
                }),
            ),
            Change::Membership(
                membership,
                Some(Membership {
                    id: membership,
                    user,
                    group: GROUP,
                    expires_at: None,
                    state: MembershipState::Accepted,
                    since: Timestamp::from_secs(0),
                }),
            ),
            Change::Link(
                link,
                Some(AddressLink {
                    id: link,
                    user,
                    address: wallet(n),
                    kind: LinkKind::User,
                    contract_wallet: false,
                    verified_at: Timestamp::from_secs(0),
                }),
            ),
        ]
    });
    let first = [
        Change::Organization(ORG, Some(org)),
        Change::Group(GROUP, Some(group)),
        Change::GroupAccess(GROUP, Some(access)),
    ];
    Snapshot::default().apply(Epoch(1), first.into_iter().chain(people))
}

/// The grants of a grantee: every second one is limited to a range of dates.
fn grants() -> impl Iterator<Item = Change> {
    (0..GRANTEES).flat_map(|grantee| {
        let grantee_did = did(OWNERS + grantee);
        (0..GRANTS_PER_GRANTEE).map(move |n| {
            let number = grantee * GRANTS_PER_GRANTEE + n;
            let id = DisclosureGrantId::fixed(spread(number));
            let dates = (Timestamp::from_secs(1_700_000_000), Timestamp::from_secs(1_750_000_000));
            let grant = DisclosureGrant {
                id,
                owner: UserId::fixed(spread(number % OWNERS)),
                grantee: grantee_did.clone(),
                org: ORG,
                granted_at: Timestamp::from_secs(1_700_000_000),
                expires_at: Timestamp::from_secs(1_900_000_000),
                revoked_at: None,
                include_future_addresses: false,
                scope: DisclosureScope {
                    level: Level::Full,
                    dates: (n % 2 == 1).then_some(dates),
                    addresses: None,
                    methods: None,
                },
                secret: SealedGrantSecret([7; SealedGrantSecret::SIZE]),
            };
            Change::Disclosure(id, Some(grant))
        })
    })
}

/// Resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

fn entry(from: u128) -> TransactionEntry<'static> {
    TransactionEntry {
        row: TransactionRow {
            hash: B256::repeat_byte(7),
            from: wallet(from),
            to: Some(Address::repeat_byte(9)),
            moment: Moment::Block(100),
            time: Some(Timestamp::from_secs(1_720_000_000)),
        },
        created: None,
        transfers: &[],
    }
}

fn disclosures(criterion: &mut Criterion) {
    let without = world();
    let (before, started) = (resident(), Instant::now());
    let snapshot = without.apply(Epoch(2), grants());
    let kib = resident().saturating_sub(before);
    eprintln!(
        "100,000 grants: {} MiB, {} bytes each, applied in {:?}",
        kib / 1024,
        kib * 1024 / 100_000,
        started.elapsed()
    );
    let settings = PolicySettings::default();
    let viewer = |snapshot, n| Viewer::new(snapshot, Some(UserId::fixed(spread(n))), NOW, &settings);
    let (grantee, nobody) = (viewer(&snapshot, OWNERS), viewer(&snapshot, OWNERS + GRANTEES));
    assert!(grantee.sees(wallet(0)) && !grantee.sees(wallet(1)) && !nobody.sees(wallet(0)));
    let mut group = criterion.benchmark_group("disclosures");
    for (name, viewer) in [("grantee of 500", &grantee), ("no grant", &nobody)] {
        group.bench_function(format!("level, {name}"), |bencher| {
            bencher.iter(|| black_box(viewer.level(black_box(wallet(0)))));
        });
        group.bench_function(format!("row, unrestricted grant, {name}"), |bencher| {
            let entry = entry(0);
            bencher.iter(|| black_box(viewer.transaction_entry(black_box(&entry))));
        });
        group.bench_function(format!("row, grant with dates, {name}"), |bencher| {
            let entry = entry(1);
            bencher.iter(|| black_box(viewer.transaction_entry(black_box(&entry))));
        });
        group.bench_function(format!("row scope, {name}"), |bencher| {
            bencher.iter(|| black_box(viewer.row_scope()));
        });
    }
    group.bench_function("one grant revoked", |bencher| {
        let id = DisclosureGrantId::fixed(spread(0));
        let grant = snapshot.find_disclosure(id).expect("a grant of the world");
        bencher.iter(|| {
            let revoked = DisclosureGrant {
                revoked_at: Some(NOW),
                ..DisclosureGrant::clone(grant)
            };
            black_box(snapshot.apply(Epoch(3), [Change::Disclosure(id, Some(revoked))]))
        });
    });
    group.finish();
}

criterion_group!(benches, disclosures);
criterion_main!(benches);
