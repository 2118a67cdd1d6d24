//! Levels, grounds and admission (spec/30 section 2).

use alloy_primitives::{Address, address};
use gw_policy::{
    Knobs, Snapshot, Viewer,
    knobs::AddressQuery,
    snapshot::Moment,
    testing::{FUTURE, NOW, PAST, World, address_of, hash_of, user_id, world},
    visibility::Admission,
};
use gw_types::{Claim, Level, LevelReason};
use std::fmt::Write as _;

fn everybody() -> World {
    world()
        .org("alpha")
        .group("admins")
        .org_admin()
        .group("claimed")
        .claim(Claim::Admin)
        .group("deployers")
        .claim(Claim::Deploy)
        .group("staff")
        .group("rest")
        .contract("granted")
        .grant("staff")
        .contract("quiet")
        .grant("staff")
        .events([])
        .contract("deployed")
        .deployed_by("deployer")
        .contract("ungranted")
        .org("beta")
        .group("admins")
        .org_admin()
        .contract("foreign")
        .user("deployer")
        .member("alpha/deployers")
        .link("wallet")
        .org("alpha")
        .reservation("reserved", FUTURE)
        .user("holder")
        .member("alpha/staff")
        .link("holder-wallet")
        .user("former")
        .member_until("alpha/staff", PAST)
        .user("member")
        .member("alpha/rest")
        .system_link("inferred")
        .system_link("wallet")
        .user("admin")
        .member("alpha/admins")
        .user("claimant")
        .member("alpha/claimed")
        .user("other-admin")
        .member("beta/admins")
        .user("outcast")
        .banned()
        .member("alpha/admins")
        .link("outcast-wallet")
}

const VIEWERS: [&str; 10] = [
    "nobody",
    "unknown",
    "member",
    "former",
    "holder",
    "deployer",
    "admin",
    "claimant",
    "other-admin",
    "outcast",
];

fn viewer<'s>(snapshot: &'s Snapshot, name: &str) -> Viewer<'s> {
    Viewer::new(snapshot, (name != "nobody").then(|| user_id(name)), NOW, &Knobs::SPEC)
}

/// Spec/30 sections 2.2 and 2.3: address kind by viewer kind, grounds 1, 2, 4 to 8, 10, 11; R2 to R4, R6.
#[test]
fn levels_by_address_and_viewer() {
    let snapshot = everybody().snapshot();
    let addresses: [(&str, Address); 14] = [
        ("zero", Address::ZERO),
        ("precompile 1", address!("0000000000000000000000000000000000000001")),
        ("precompile 0x100", address!("0000000000000000000000000000000000000100")),
        ("below 0x100", address!("00000000000000000000000000000000000000ff")),
        ("granted", address_of("granted")),
        ("quiet", address_of("quiet")),
        ("deployed", address_of("deployed")),
        ("ungranted", address_of("ungranted")),
        ("foreign", address_of("foreign")),
        ("reserved", address_of("reserved")),
        ("wallet", address_of("wallet")),
        ("inferred", address_of("inferred")),
        ("outcast-wallet", address_of("outcast-wallet")),
        ("unknown", address_of("unknown")),
    ];
    let mut table = format!("{:<17}", "");
    VIEWERS.iter().for_each(|name| write!(table, "{name:<13}").unwrap());
    for (label, address) in addresses {
        write!(table, "\n{label:<17}").unwrap();
        for name in VIEWERS {
            let cell = match viewer(&snapshot, name).level(address) {
                (Level::Full, LevelReason::OwnAddress) => "Full own",
                (Level::Full, LevelReason::PublicAddress) => "Full public",
                (Level::Full, LevelReason::RbacGroupMember) => "Full rbac",
                (Level::Redacted, LevelReason::NoAccess) => "redacted",
                (Level::Hidden, LevelReason::NoAccess) => "-",
                other => panic!("{other:?}"),
            };
            write!(table, "{cell:<13}").unwrap();
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(table.join("\n"));
}

/// R5, A8: grounds end with the memberships and reservations they rest on, at the viewer's own moment.
#[test]
fn grounds_end_by_the_clock() {
    let snapshot = world()
        .org("a")
        .group("g")
        .claim(Claim::Deploy)
        .user("u")
        .member_until("g", FUTURE)
        .reservation("r", FUTURE);
    let snapshot = snapshot.contract("c").grant("g").snapshot();
    for (now, full) in [(NOW, true), (FUTURE, false)] {
        let viewer = Viewer::new(&snapshot, Some(user_id("u")), now, &Knobs::SPEC);
        assert_eq!(viewer.sees(address_of("c")), full);
        assert_eq!(viewer.sees(address_of("r")), full);
    }
}

/// K11: the claim `admin` without the flag sees all contracts of its organization, unless switched off.
#[test]
fn k11_the_admin_claim_sees_all_or_what_is_granted() {
    let snapshot = everybody().snapshot();
    let granted_only = Knobs {
        admin_claim_sees_all: false,
        ..Knobs::SPEC
    };
    for (knobs, by_claim) in [(&Knobs::SPEC, true), (&granted_only, false)] {
        let sees = |name| Viewer::new(&snapshot, Some(user_id(name)), NOW, knobs).sees(address_of("ungranted"));
        assert_eq!(sees("claimant"), by_claim);
        assert!(sees("admin"));
    }
}

/// R6, HD13: an inferred link counts while nobody else proved the address; a proved one always does.
#[test]
fn r6_inferred_links_yield_to_proved_ones() {
    let base = world()
        .org("a")
        .group("g")
        .user("forwarder")
        .member("g")
        .system_link("w");
    let owns = |snapshot: &Snapshot, name: &str| viewer(snapshot, name).owns(address_of("w"));
    assert!(owns(&base.snapshot(), "forwarder"));
    let proved = base.clone().user("owner").link("w").snapshot();
    assert!(owns(&proved, "owner") && !owns(&proved, "forwarder"));
    let both = base.clone().link("w").user("owner").link("w").snapshot();
    assert!(
        owns(&both, "owner") && owns(&both, "forwarder"),
        "several identities may prove one address [S]"
    );
    let two_inferred = base.user("late").system_link("w").snapshot();
    assert!(owns(&two_inferred, "forwarder") && owns(&two_inferred, "late"));
}

/// Spec/30 section 5, HD10: by what right a viewer sees a transaction; the strongest counts.
#[test]
fn hd10_admission_by_party_share_and_administration() {
    let snapshot = everybody()
        .user("holder")
        .share("shared", &["member", "admin", "outcast"])
        .org("alpha")
        .contract("wallet-contract")
        .user("odd")
        .member("alpha/rest")
        .link("wallet-contract")
        .snapshot();
    let (wallet, other) = (address_of("wallet"), address_of("unknown"));
    let admission =
        |name: &str, tx: &str, from, to| viewer(&snapshot, name).admission(hash_of(tx), from, to, Moment::Block(100));
    assert_eq!(admission("deployer", "t", wallet, Some(other)), Admission::Participant);
    assert_eq!(admission("deployer", "t", other, Some(wallet)), Admission::Participant);
    assert_eq!(
        admission("member", "t", wallet, None),
        Admission::None,
        "inferred, and proved by another"
    );
    assert_eq!(admission("member", "shared", wallet, Some(other)), Admission::Shared);
    assert_eq!(
        admission("admin", "shared", other, Some(address_of("granted"))),
        Admission::Shared
    );
    assert_eq!(
        admission("admin", "t", other, Some(address_of("granted"))),
        Admission::OrgAdmin
    );
    assert_eq!(admission("admin", "t", address_of("granted"), None), Admission::None);
    assert_eq!(
        admission("other-admin", "t", other, Some(address_of("granted"))),
        Admission::None
    );
    assert_eq!(
        admission("holder", "t", other, Some(address_of("granted"))),
        Admission::None,
        "a grant is no admission"
    );
    assert_eq!(
        admission("odd", "t", other, Some(address_of("wallet-contract"))),
        Admission::None
    );
    for name in ["nobody", "unknown", "outcast"] {
        assert_eq!(
            admission(name, "shared", address_of("outcast-wallet"), Some(other)),
            Admission::None,
            "{name}"
        );
    }
}

/// HD10: who is linked by the word of a contract's code sees the contract's address, and nothing of what others send
/// there.
#[test]
fn hd10_a_contract_wallets_owner_takes_part_in_nothing_sent_to_it() {
    let by = |contract: bool| {
        let world = world().user("owner");
        if contract {
            world.contract_link("w")
        } else {
            world.link("w")
        }
        .snapshot()
    };
    let (wallet, other) = (address_of("w"), address_of("unknown"));
    let admission =
        |contract, from, to| viewer(&by(contract), "owner").admission(hash_of("t"), from, Some(to), Moment::Block(100));
    assert_eq!(
        admission(false, other, wallet),
        Admission::Participant,
        "without the rule"
    );
    assert_eq!(admission(true, other, wallet), Admission::None);
    let snapshot = by(true);
    assert!(viewer(&snapshot, "owner").owns(wallet) && viewer(&snapshot, "owner").sees(wallet));
}

/// RTS11, HD10, HD27: an organization's contract that was linked as a wallet is its linker's while they are a member
/// there and the contract is registered.
#[test]
fn rts11_hd27_a_wallet_of_an_organization_is_owned_no_longer_than_its_contract() {
    let told = |contract_link: bool, member: bool, retired: bool| {
        let world = world()
            .org("bank")
            .group("treasury")
            .contract("w")
            .grant("treasury")
            .user("owner");
        let world = if contract_link {
            world.contract_link("w")
        } else {
            world.link("w")
        };
        let world = if member { world.member("treasury") } else { world };
        let snapshot = if retired { world.retired() } else { world }.snapshot();
        let viewer = viewer(&snapshot, "owner");
        (viewer.owns(address_of("w")), viewer.sees(address_of("w")))
    };
    assert_eq!(told(true, true, false), (true, true));
    assert_eq!(told(true, false, false), (false, false), "no member any more");
    assert_eq!(told(true, true, true), (false, false), "the registration was deleted");
    assert_eq!(
        told(false, false, false),
        (true, true),
        "a key is a key, whoever registered its address"
    );
}

/// W5, R27: a share counts once the node has accepted its transaction.
#[test]
fn w5_a_share_that_was_not_accepted_admits_nobody() {
    use gw_policy::{Change, snapshot::TxVisibility};
    use gw_types::{Epoch, VisibilityId};
    let base = world().user("sender").user("friend").snapshot();
    for active in [true, false] {
        let row = TxVisibility {
            id: VisibilityId::fixed(1),
            tx_hash: hash_of("t"),
            sender: user_id("sender"),
            recipients: vec![gw_policy::testing::did("friend")],
            active,
        };
        let snapshot = base.apply(Epoch(2), [Change::Visibility(row.id, Some(row))]);
        assert_eq!(viewer(&snapshot, "friend").is_recipient(hash_of("t")), active);
        assert!(!viewer(&snapshot, "sender").is_recipient(hash_of("t")));
        assert!(!viewer(&snapshot, "friend").is_recipient(hash_of("other")));
    }
}

/// K8, decision 5, HD6: `strict` tells nothing of what is not Full; `linked` and `off` are for those who ask for them.
#[test]
fn k8_balances_show_by_knob() {
    let snapshot = everybody().snapshot();
    let shows = |address_query, name: &str| {
        let knobs = Knobs {
            address_query,
            ..Knobs::SPEC
        };
        Viewer::new(&snapshot, Some(user_id("holder")), NOW, &knobs).shows_account(address_of(name))
    };
    let by = |name| [AddressQuery::Strict, AddressQuery::Linked, AddressQuery::Off].map(|knob| shows(knob, name));
    assert_eq!(by("holder-wallet"), [true, true, true]);
    assert_eq!(by("granted"), [true, true, true]);
    assert_eq!(by("wallet"), [false, false, true]);
    assert_eq!(by("unknown"), [false, true, true]);
    assert_eq!(by("foreign"), [false, true, true]);
}

/// Decision 40's kin: the caller's own addresses, each once, in the order they were linked.
#[test]
fn own_addresses_are_those_that_count() {
    let snapshot = everybody()
        .user("deployer")
        .system_link("wallet")
        .link("second")
        .snapshot();
    let own = viewer(&snapshot, "deployer").own_addresses();
    assert_eq!(own.len(), 2);
    assert!(own.contains(&address_of("wallet")) && own.contains(&address_of("second")));
    assert_eq!(viewer(&snapshot, "member").own_addresses(), [address_of("inferred")]);
    assert!(!viewer(&snapshot, "nobody").owns_any() && !viewer(&snapshot, "outcast").owns_any());
}
