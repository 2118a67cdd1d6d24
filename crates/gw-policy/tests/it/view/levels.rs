//! Tests of levels, their reasons, and transaction access (spec/30 section 2).

use alloy_primitives::{Address, address};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    access::{Impersonation, Principal},
    settings::HiddenBalanceMode,
    snapshot::{DisclosureGrant, Moment},
    testing::{FUTURE, NOW, PAST, World, address_of, did, hash_of, org_id, user_id, world},
    visibility::{TransactionAccess, TransactionRow},
};
use gw_types::{Claim, Level, LevelReason, Timestamp};
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
    Viewer::new(
        snapshot,
        (name != "nobody").then(|| user_id(name)),
        NOW,
        &PolicySettings::SPEC,
    )
}

/// Spec/30 sections 2.2 and 2.3: the level of each kind of address for each kind of viewer, bases 1, 2, 4 to 8, 10,
/// 11; R2 to R4, R6.
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

/// R2 to R4: own, public, rbac, disclosure, in this order. A grant of disclosure raises a level, never lowers it, and
/// is the reason only where it raises it.
#[test]
fn r2_r4_a_grant_of_disclosure_is_the_last_basis() {
    let precompile = address!("0000000000000000000000000000000000000001");
    let base = everybody()
        .shared("foreign")
        .user("holder")
        .link_address(precompile)
        .link("granted")
        .user("owner")
        .link("holder-wallet")
        .link_address(precompile)
        .link_address(Address::ZERO)
        .link("granted")
        .link("foreign")
        .link("quiet")
        .link("ungranted")
        .link("plain")
        .org("alpha");
    for disclosed in [Level::Redacted, Level::Pseudonymous, Level::Full] {
        let snapshot = base.clone().disclosed_to("holder", disclosed).snapshot();
        let level = |address| viewer(&snapshot, "holder").level(address);
        let full = |reason| (Level::Full, reason);
        assert_eq!(level(address_of("holder-wallet")), full(LevelReason::OwnAddress));
        assert_eq!(level(precompile), full(LevelReason::OwnAddress), "own before public");
        assert_eq!(
            level(address_of("granted")),
            full(LevelReason::OwnAddress),
            "own before rbac"
        );
        assert_eq!(level(Address::ZERO), full(LevelReason::PublicAddress));
        assert_eq!(level(address_of("foreign")), full(LevelReason::PublicAddress));
        assert_eq!(level(address_of("quiet")), full(LevelReason::RbacGroupMember));
        // Registered, without access: redacted.
        let expected = if disclosed > Level::Redacted {
            (disclosed, LevelReason::DisclosureGrant)
        } else {
            (Level::Redacted, LevelReason::NoAccess)
        };
        assert_eq!(level(address_of("ungranted")), expected);
        assert_eq!(level(address_of("plain")), (disclosed, LevelReason::DisclosureGrant));
        assert_eq!(level(address_of("wallet")), (Level::Hidden, LevelReason::NoAccess));
        for name in ["nobody", "member", "outcast"] {
            assert_eq!(
                viewer(&snapshot, name).level(address_of("plain")).0,
                Level::Hidden,
                "{name}"
            );
        }
    }
    let shared_and_granted = everybody().shared("quiet").snapshot();
    assert_eq!(
        viewer(&shared_and_granted, "holder").level(address_of("quiet")).1,
        LevelReason::PublicAddress,
        "public before rbac"
    );
}

/// R7, HD8, HD39, spec/50 rules 27 and 28: the conditions of a grant of disclosure.
#[test]
fn r7_hd8_a_grant_of_disclosure_counts_only_while_its_conditions_hold() {
    let base = everybody()
        .user("owner")
        .link("plain")
        .system_link("relayed")
        .unlinked("former-wallet")
        .org("alpha")
        .disclosed_to("holder", Level::Redacted)
        .disclosed_to("holder", Level::Full);
    let seen = |world: &World, name: &str| viewer(&world.snapshot(), "holder").sees(address_of(name));
    assert!(seen(&base, "plain"), "of several grants the highest counts");
    assert!(!seen(&base, "relayed"), "an inferred link");
    assert!(!seen(&base, "former-wallet"), "a link that ended");
    let is_seen_if = |change: &dyn Fn(&mut DisclosureGrant)| seen(&base.clone().with_disclosures(change), "plain");
    assert!(is_seen_if(&|_| {}));
    assert!(!is_seen_if(&|grant| grant.expires_at = NOW), "expired");
    assert!(!is_seen_if(&|grant| grant.grantee = did("admin")), "of another grantee");
    assert!(
        !is_seen_if(&|grant| grant.owner = user_id("deployer")),
        "of another owner"
    );
    assert!(!is_seen_if(&|grant| grant.org = org_id("beta")), "not a member there");
    assert!(!is_seen_if(&|grant| grant.scope.dates = Some((PAST, FUTURE))));
    assert!(!is_seen_if(
        &|grant| grant.scope.addresses = Some(vec![address_of("plain")])
    ));
    assert!(!is_seen_if(
        &|grant| grant.scope.methods = Some(vec!["full_disclosure".into()])
    ));
    let before_the_link = Timestamp::from_secs(0);
    assert!(!is_seen_if(&|grant| grant.granted_at = before_the_link), "a later link");
    assert!(is_seen_if(&|grant| {
        grant.granted_at = before_the_link;
        grant.include_future_addresses = true;
    }));
    let snapshot = base.snapshot();
    let scoped = |org: &str| viewer(&snapshot, "holder").scoped_to_org(Some(org_id(org)));
    assert!(scoped("alpha").sees(address_of("plain")));
    assert!(!scoped("beta").sees(address_of("plain")), "HD39");
    assert!(viewer(&snapshot, "holder").shows_account(address_of("plain")));
    // HD10: a contract that its own code linked is not the owner's any more without membership.
    let contract = everybody().user("owner").contract_link("granted").org("alpha");
    let disclosed = |world: World| {
        let snapshot = world.disclosed_to("claimant", Level::Full).snapshot();
        let settings = PolicySettings {
            admin_claim_sees_all: false,
            ..PolicySettings::SPEC
        };
        Viewer::new(&snapshot, Some(user_id("claimant")), NOW, &settings).sees(address_of("granted"))
    };
    assert!(!disclosed(contract.clone()) && disclosed(contract.member("alpha/rest")));
}

/// HD7: an address that its owner disclosed to the impersonating administrator is known to the administrator, but only
/// at level Full.
#[test]
fn hd7_an_impersonator_knows_addresses_by_grants_of_disclosure() {
    for disclosed in [None, Some(Level::Pseudonymous), Some(Level::Full)] {
        let world = everybody().user("holder").org("alpha");
        let world = match disclosed {
            None => world,
            Some(level) => world.disclosed_to("admin", level),
        };
        let snapshot = world.snapshot();
        let wallet = address_of("holder-wallet");
        let impersonation = |now| {
            let impersonation = Impersonation::new(user_id("admin"), org_id("alpha"));
            Principal::impersonated(&snapshot, user_id("holder"), now, Some(impersonation)).owns(&snapshot, wallet)
        };
        let is_known = disclosed == Some(Level::Full);
        assert_eq!(impersonation(NOW), is_known);
        assert!(!impersonation(FUTURE), "expired");
        let restricted = viewer(&snapshot, "holder").restricted_to(user_id("admin"));
        assert_eq!(restricted.level(wallet).0, disclosed.unwrap_or(Level::Hidden));
    }
}

/// R5, A8: a basis ends with its membership or reservation, at the time of the viewer.
#[test]
fn grounds_end_with_their_membership_or_reservation() {
    let snapshot = world()
        .org("a")
        .group("g")
        .claim(Claim::Deploy)
        .user("u")
        .member_until("g", FUTURE)
        .reservation("r", FUTURE);
    let snapshot = snapshot.contract("c").grant("g").snapshot();
    for (now, full) in [(NOW, true), (FUTURE, false)] {
        let viewer = Viewer::new(&snapshot, Some(user_id("u")), now, &PolicySettings::SPEC);
        assert_eq!(viewer.sees(address_of("c")), full);
        assert_eq!(viewer.sees(address_of("r")), full);
    }
}

/// K11: the claim `admin` without the flag covers all contracts of the organization, unless switched off.
#[test]
fn k11_the_admin_claim_covers_all_or_granted_contracts() {
    let snapshot = everybody().snapshot();
    let granted_only = PolicySettings {
        admin_claim_sees_all: false,
        ..PolicySettings::SPEC
    };
    for (settings, by_claim) in [(&PolicySettings::SPEC, true), (&granted_only, false)] {
        let sees = |name| Viewer::new(&snapshot, Some(user_id(name)), NOW, settings).sees(address_of("ungranted"));
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
    let proved_twice = base.clone().link("w").user("owner").link("w").snapshot();
    assert!(
        owns(&proved_twice, "owner") && owns(&proved_twice, "forwarder"),
        "several identities may prove one address [S]"
    );
    let two_inferred = base.user("late").system_link("w").snapshot();
    assert!(owns(&two_inferred, "forwarder") && owns(&two_inferred, "late"));
}

/// Spec/30 section 5, HD10: the transaction access of a viewer. Of several bases, the strongest counts.
#[test]
fn hd10_access_by_participation_share_and_administration() {
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
    let access = |name: &str, tx: &str, from, to| {
        let row = TransactionRow {
            hash: hash_of(tx),
            from,
            to,
            moment: Moment::Block(100),
            time: None,
        };
        viewer(&snapshot, name).transaction_access(&row)
    };
    assert_eq!(
        access("deployer", "t", wallet, Some(other)),
        TransactionAccess::Participant
    );
    assert_eq!(
        access("deployer", "t", other, Some(wallet)),
        TransactionAccess::Participant
    );
    assert_eq!(
        access("member", "t", wallet, None),
        TransactionAccess::None,
        "inferred, and proved by another"
    );
    assert_eq!(
        access("member", "shared", wallet, Some(other)),
        TransactionAccess::Shared
    );
    assert_eq!(
        access("admin", "shared", other, Some(address_of("granted"))),
        TransactionAccess::Shared
    );
    assert_eq!(
        access("admin", "t", other, Some(address_of("granted"))),
        TransactionAccess::OrgAdmin
    );
    assert_eq!(
        access("admin", "t", address_of("granted"), None),
        TransactionAccess::None
    );
    assert_eq!(
        access("other-admin", "t", other, Some(address_of("granted"))),
        TransactionAccess::None
    );
    assert_eq!(
        access("holder", "t", other, Some(address_of("granted"))),
        TransactionAccess::None,
        "a grant gives no transaction access"
    );
    assert_eq!(
        access("odd", "t", other, Some(address_of("wallet-contract"))),
        TransactionAccess::None
    );
    for name in ["nobody", "unknown", "outcast"] {
        assert_eq!(
            access(name, "shared", address_of("outcast-wallet"), Some(other)),
            TransactionAccess::None,
            "{name}"
        );
    }
}

/// HD10: a user whose link was verified by the code of a contract wallet sees the address, but not the transactions
/// that others send to it.
#[test]
fn hd10_the_owner_of_a_contract_wallet_does_not_participate_in_transactions_to_it() {
    let linked_by = |contract: bool| {
        let world = world().user("owner");
        if contract {
            world.contract_link("w")
        } else {
            world.link("w")
        }
        .snapshot()
    };
    let (wallet, other) = (address_of("w"), address_of("unknown"));
    let access = |contract, from, to| {
        let row = TransactionRow {
            hash: hash_of("t"),
            from,
            to: Some(to),
            moment: Moment::Block(100),
            time: None,
        };
        viewer(&linked_by(contract), "owner").transaction_access(&row)
    };
    assert_eq!(
        access(false, other, wallet),
        TransactionAccess::Participant,
        "without the rule"
    );
    assert_eq!(access(true, other, wallet), TransactionAccess::None);
    let snapshot = linked_by(true);
    assert!(viewer(&snapshot, "owner").owns(wallet) && viewer(&snapshot, "owner").sees(wallet));
}

/// RTS11, HD10, HD27: a contract of an organization that is linked as a wallet belongs to the linked user while that
/// user is a member and the contract is registered.
#[test]
fn rts11_hd27_a_linked_contract_is_owned_while_member_and_registered() {
    let owns_and_sees = |contract_link: bool, member: bool, retired: bool| {
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
    assert_eq!(owns_and_sees(true, true, false), (true, true));
    assert_eq!(owns_and_sees(true, false, false), (false, false), "no longer a member");
    assert_eq!(
        owns_and_sees(true, true, true),
        (false, false),
        "the registration was deleted"
    );
    assert_eq!(
        owns_and_sees(false, false, false),
        (true, true),
        "a link by key does not depend on the registration of its address"
    );
}

/// W5, R27: a share takes effect when the node accepts its transaction.
#[test]
fn w5_a_share_of_an_unaccepted_transaction_has_no_effect() {
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

/// K8, decision 5, HD6: `strict` shows nothing of addresses without level Full; `linked` and `off` are opt-in.
#[test]
fn k8_balances_by_setting() {
    let snapshot = everybody().snapshot();
    let shows = |address_query, name: &str| {
        let settings = PolicySettings {
            address_query,
            ..PolicySettings::SPEC
        };
        Viewer::new(&snapshot, Some(user_id("holder")), NOW, &settings).shows_account(address_of(name))
    };
    let shown_by_mode = |name| {
        [
            HiddenBalanceMode::Strict,
            HiddenBalanceMode::Linked,
            HiddenBalanceMode::Off,
        ]
        .map(|mode| shows(mode, name))
    };
    assert_eq!(shown_by_mode("holder-wallet"), [true, true, true]);
    assert_eq!(shown_by_mode("granted"), [true, true, true]);
    assert_eq!(shown_by_mode("wallet"), [false, false, true]);
    assert_eq!(shown_by_mode("unknown"), [false, true, true]);
    assert_eq!(shown_by_mode("foreign"), [false, true, true]);
}

/// Related to decision 40: the caller's own addresses, each once, in the order in which they were linked.
#[test]
fn own_addresses_are_the_effective_links() {
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
