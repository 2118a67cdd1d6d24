//! Benchmark of one decision in a large world (design.md section 2): a million users with a membership and a link each,
//! 100,000 contracts with a grant each. The goal is a median of 2 µs and less than 1 GiB.
//!
//! Each call is measured twice: by one user, whose rows are in the processor's caches, and by 20,000 users in turn,
//! whose rows mostly are not. The unit is processor time, because the machine may run other work.

#![expect(clippy::expect_used, reason = "a benchmark stops when its world is wrong")]

use criterion::{
    Criterion, SamplingMode, criterion_group, criterion_main,
    measurement::{Measurement, ValueFormatter, WallTime},
};
use gw_evm::{
    BlockId, Call, CallRequest, CustomMethodNames, Method, MethodLookup, MethodSet, SignedTransaction, Simulation,
    SimulationKind, VisibleTo,
};
use gw_policy::{
    Change, PolicySettings, Snapshot,
    access::{AccessRequest, Caller, Decision, HeadFacts, NamedOrg, decide},
    snapshot::{
        AddressLink, Contract, ContractGrant, EventRules, Group, GroupAccess, LinkKind, Membership, MembershipState,
        Organization, User,
    },
};
use gw_types::{
    Address, B256, Bytes, Claim, Claims, ContractId, Epoch, ExternalId, GrantId, GroupId, LinkId, MembershipId, OrgId,
    Timestamp, UserId,
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const USERS: u128 = 1_000_000;
const CONTRACTS: u128 = 100_000;
const ORGS: u128 = 1_000;
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Maps a number to an id, evenly spread like random ids.
fn spread(n: u128) -> u128 {
    n.wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn address(kind: u8, n: u128) -> Address {
    let mut bytes = [kind; 20];
    bytes.split_at_mut(16).0.copy_from_slice(&spread(n).to_be_bytes());
    Address::from(bytes)
}

fn organizations() -> impl Iterator<Item = Change> {
    (0..ORGS).flat_map(|n| {
        let (org, id) = (OrgId::fixed(spread(n)), GroupId::fixed(spread(n)));
        let name: std::sync::Arc<str> = format!("organization-{n}").into();
        let group = Group {
            id,
            org,
            slug: name.clone(),
            is_org_admin: false,
            is_org_readonly_admin: false,
            is_system: false,
        };
        let access = GroupAccess {
            group: id,
            methods: MethodSet::ALL,
            custom_methods: CustomMethodNames::default(),
            claims: Claims::NONE.with(Claim::Deploy),
            expires_at: None,
            upstream_key: None,
        };
        [
            Change::Organization(
                org,
                Some(Organization {
                    id: org,
                    slug: name.clone(),
                    name,
                    is_system: false,
                }),
            ),
            Change::Group(id, Some(group)),
            Change::GroupAccess(id, Some(access)),
        ]
    })
}

fn users() -> impl Iterator<Item = Change> {
    (0..USERS).flat_map(|n| {
        let user = UserId::fixed(spread(n));
        let external_id =
            ExternalId::new(&format!("did:iden3:privado:main:2Sci{:036}", spread(n) >> 16)).expect("a valid DID");
        let (membership, link) = (MembershipId::fixed(spread(n)), LinkId::fixed(spread(n)));
        let group = GroupId::fixed(spread(n % ORGS));
        [
            Change::User(
                user,
                Some(User {
                    id: user,
                    external_id,
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
                    group,
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
                    address: address(1, n),
                    kind: LinkKind::User,
                    contract_wallet: false,
                    verified_at: Timestamp::from_secs(1_700_000_000),
                }),
            ),
        ]
    })
}

fn contracts() -> impl Iterator<Item = Change> {
    (0..CONTRACTS).flat_map(|n| {
        let (id, grant, owner) = (
            ContractId::fixed(spread(n)),
            GrantId::fixed(spread(n)),
            spread(n % ORGS),
        );
        let contract = Contract {
            id,
            org: OrgId::fixed(owner),
            address: address(2, n),
            since: Timestamp::from_secs(0),
            owned_from: None,
            name: format!("contract-{n}").into(),
            deployer: None,
            abi: None,
            allow_visibleto_unlock: false,
            events_allow_dynamic_payload: false,
            trusted_router: false,
        };
        let group = GroupId::fixed(owner);
        let events = EventRules::All;
        let row = ContractGrant {
            id: grant,
            contract: id,
            group,
            claims: Claims::NONE,
            functions: None,
            events,
        };
        [Change::Contract(id, Some(contract)), Change::Grant(grant, Some(row))]
    })
}

/// Resident memory of this process in MiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<usize> = line
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse().ok());
    kib.unwrap_or_default() / 1024
}

fn load() -> Snapshot {
    let (before, started) = (resident(), Instant::now());
    let snapshot = Snapshot::default().apply(Epoch(1), organizations().chain(users()).chain(contracts()));
    eprintln!(
        "world: {} MiB, loaded in {:?}",
        resident().saturating_sub(before),
        started.elapsed()
    );
    snapshot
}

/// Typical calls of user `n`, on a contract of the user's organization.
fn calls(n: u128) -> [(Method, Call); 4] {
    let contract = address(2, n % CONTRACTS);
    let request = CallRequest {
        from: Some(address(1, n)),
        to: Some(contract),
        input: Bytes::from_static(&[0x70, 0xa0, 0x82, 0x31]),
        nonce: Some(7),
        ..CallRequest::default()
    };
    let simulation = Simulation {
        kind: SimulationKind::Call,
        request: request.clone(),
        block: BlockId::LATEST,
    };
    let signed = SignedTransaction {
        raw: Bytes::new(),
        hash: B256::ZERO,
        tx_type: 2,
        sender: address(1, n),
        nonce: 7,
        request,
    };
    [
        (Method::GetBalance, Call::Balance(address(1, n), BlockId::LATEST)),
        (Method::Call, Call::Simulate(Box::new(simulation))),
        (Method::SendRawTransaction, Call::SendRaw(Box::new(signed))),
        (Method::ChainId, Call::Plain(Method::ChainId)),
    ]
}

/// Processor time of this process.
struct Cpu;

impl Cpu {
    fn used() -> Duration {
        let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or_default())
    }
}

impl Measurement for Cpu {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        Self::used()
    }

    fn end(&self, start: Duration) -> Duration {
        Self::used().saturating_sub(start)
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

fn decisions(criterion: &mut Criterion<Cpu>) {
    let snapshot = load();
    let (policy_settings, visible_to) = (PolicySettings::default(), VisibleTo::default());
    let requests: Vec<(Caller, [(Method, Call); 4])> = (0..20_000u128)
        .map(|n| {
            let n = n * 49;
            let user = snapshot
                .user(UserId::fixed(spread(n)))
                .expect("a user of the world")
                .clone();
            (Caller::User(user), calls(n))
        })
        .collect();
    let mut group = criterion.benchmark_group("decide");
    // Few long samples, because the system counts processor time in ticks.
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(12)
        .measurement_time(Duration::from_secs(4));
    let names = ["eth_getBalance", "eth_call", "eth_sendRawTransaction", "eth_chainId"];
    for (people, requests) in [
        ("one person", requests.get(..1).unwrap_or_default()),
        ("20,000 people", &requests),
    ] {
        for (position, name) in names.into_iter().enumerate() {
            let mut cycle = requests.iter().cycle();
            group.bench_function(format!("{name}, {people}"), |bencher| {
                bencher.iter(|| {
                    let (caller, calls) = cycle.next().expect("a cycle has no end");
                    let (method, call) = calls.get(position).expect("four calls");
                    let request = AccessRequest {
                        caller,
                        lookup: MethodLookup::Registered(*method),
                        call: Ok(call),
                        visible_to: &visible_to,
                        named_org: NamedOrg::Unnamed,
                        now: NOW,
                        head: HeadFacts { number: 1000 },
                        policy_settings: &policy_settings,
                    };
                    let decision = decide(&snapshot, &request);
                    assert!(matches!(decision, Decision::Allow(_)), "{decision:?}");
                    black_box(decision)
                });
            });
        }
    }
    // The cost of applying one change to the snapshot.
    let user = snapshot
        .user(UserId::fixed(spread(1)))
        .expect("a user of the world")
        .clone();
    group.bench_function("one change applied", |bencher| {
        bencher.iter(|| {
            let banned = User {
                banned: true,
                ..User::clone(&user)
            };
            black_box(snapshot.apply(Epoch(2), [Change::User(user.id, Some(banned))]))
        });
    });
    group.finish();
}

criterion_group!(name = benches; config = Criterion::default().with_measurement(Cpu); targets = decisions);
criterion_main!(benches);
