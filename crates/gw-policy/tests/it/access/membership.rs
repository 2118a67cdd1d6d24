//! What a membership gives before its member agreed to it, and what one organization's decisions about a person bind
//! (HD32, decision 62; RT11, RT24).

use super::support::{Ask, ask, denial, permit, reason, verdict};
use gw_policy::{Change, Snapshot, visibility::Viewer};
use gw_policy::{
    access::{Caller, Decision, Refused, active_orgs, admin, identify_url, upstream_key},
    knobs::{Knobs, KycGate},
    snapshot::{PersonalUrl, UrlReach},
    testing::{FUTURE, NOW, PAST, World, address_of, did, org_id, user_id, world},
};
use gw_types::{Address, B256, Claim, DenyReason, Epoch, PersonalUrlId};
use serde_json::json;

/// A client of Meridian; Harbour put her into an all-powerful group of its own as well.
fn meridian_and(harbour: impl FnOnce(World) -> World) -> World {
    let world = world()
        .org("meridian")
        .group("clients")
        .every_method()
        .contract("bond")
        .grant("clients")
        .org("harbour")
        .group("takers")
        .every_method()
        .claim(Claim::Deploy)
        .claim(Claim::Admin)
        .upstream_key("stored")
        .contract("fund")
        .grant("takers")
        .user("client")
        .member("meridian/clients")
        .link("wallet");
    harbour(world)
}

#[test]
fn rt11_an_invitation_counts_for_nothing_and_makes_nothing_ambiguous() {
    let alone = meridian_and(|world| world).snapshot();
    let invited = meridian_and(|world| world.invited("harbour/takers")).snapshot();
    let client = user_id("client");
    assert_eq!(active_orgs(&invited, client, NOW), [org_id("meridian")]);
    assert!(!admin::status(&invited, client, NOW).is_admin());
    assert_eq!(upstream_key(&invited, client, org_id("harbour"), NOW), None);
    assert!(!invited.has_accepted(client, org_id("harbour"), NOW));
    for snapshot in [&alone, &invited] {
        let asked = ask(snapshot, "client");
        let paid = asked.send_raw(address_of("wallet"), Some(address_of("shop")), []);
        assert_eq!(permit(paid).org(), Some(org_id("meridian")));
        assert_eq!(
            reason(&asked.eth_call(address_of("fund"), [1, 2, 3, 4])),
            DenyReason::ForeignOrg
        );
        let named = ask(snapshot, "client")
            .naming("harbour")
            .rpc("eth_getBlockByNumber", json!(["latest", false]));
        assert_eq!(reason(&named), DenyReason::OrgMismatch);
        let knobs = Knobs::default();
        assert!(!Viewer::new(snapshot, Some(client), NOW, &knobs).sees(address_of("fund")));
    }
    // Agreed, both are hers, and a payment needs a name (decision 40).
    let both = meridian_and(|world| world.member("harbour/takers")).snapshot();
    let paid = ask(&both, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(reason(&paid), DenyReason::OrgAmbiguous);
}

/// HD38: who was taken in before her own bank enrolled her is not kept by it: what she agreed to counts, the rest waits.
#[test]
fn hd32_a_provisional_membership_counts_until_another_organization_is_accepted() {
    let client = user_id("client");
    let first = world()
        .org("harbour")
        .group("takers")
        .every_method()
        .user("client")
        .provisional("takers");
    assert_eq!(active_orgs(&first.snapshot(), client, NOW), [org_id("harbour")]);
    let both = meridian_and(|world| world.provisional("harbour/takers")).snapshot();
    assert_eq!(active_orgs(&both, client, NOW), [org_id("meridian")]);
    // The default organization is no banking elsewhere.
    let default = first.member("default/default").snapshot();
    assert!(active_orgs(&default, client, NOW).contains(&org_id("harbour")));
    // An ended membership keeps no other out.
    let ended = world()
        .org("meridian")
        .group("clients")
        .org("harbour")
        .group("takers")
        .user("client")
        .member_until("meridian/clients", PAST)
        .provisional("harbour/takers");
    assert_eq!(active_orgs(&ended.snapshot(), client, NOW), [org_id("harbour")]);
    assert!(
        !ended.snapshot().has_accepted(client, org_id("meridian"), NOW),
        "nor is it one"
    );
}

#[test]
fn rt24_a_ban_of_one_organization_binds_there_only() {
    let world = || meridian_and(|world| world.member("harbour/takers"));
    let banned = world().banned_in("harbour").snapshot();
    let client = user_id("client");
    assert_eq!(active_orgs(&banned, client, NOW), [org_id("meridian")]);
    assert!(!admin::status(&banned, client, NOW).is_admin());
    assert_eq!(upstream_key(&banned, client, org_id("harbour"), NOW), None);
    let asked = ask(&banned, "client");
    assert_eq!(
        reason(&asked.eth_call(address_of("fund"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
    assert_eq!(verdict(&asked.eth_call(address_of("bond"), [1, 2, 3, 4])), "TRACE");
    // Where she belongs to nobody else, nothing is left; her administrators still are hers.
    let nowhere = meridian_and(|world| world.banned_in("meridian")).snapshot();
    assert!(active_orgs(&nowhere, client, NOW).is_empty());
    assert!(nowhere.has_accepted(client, org_id("meridian"), NOW));
    assert_eq!(
        reason(&ask(&nowhere, "client").rpc("eth_syncing", json!([]))),
        DenyReason::MethodNotAllowed
    );
    // Before she was enrolled, too: it stands by her name.
    assert!(banned.user_by_external(&did("client")).is_some_and(|user| !user.banned));
}

#[test]
fn rt24_a_personal_url_of_the_banning_organization_is_none() {
    let url = |org: &str, n: u8| PersonalUrl {
        id: PersonalUrlId::fixed(n.into()),
        secret: B256::repeat_byte(n),
        user: user_id("client"),
        org: org_id(org),
        reach: UrlReach::All,
        created_at: PAST,
        expires_at: FUTURE,
    };
    let (harbour, meridian) = (url("harbour", 1), url("meridian", 2));
    let changes = [&harbour, &meridian].map(|url| Change::PersonalUrl(url.id, Some(url.clone())));
    let before = meridian_and(|world| world.member("harbour/takers"));
    let open = before.snapshot().apply(Epoch(2), changes.clone());
    let (user, held) = identify_url(&open, harbour.secret, NOW).unwrap();
    let banned = before.banned_in("harbour").snapshot().apply(Epoch(2), changes);
    assert_eq!(identify_url(&banned, harbour.secret, NOW).err(), Some(Refused::Revoked));
    assert!(identify_url(&banned, meridian.secret, NOW).is_ok());
    // One that was looked up before the ban is none for the decision after it.
    let asked = super::support::ask_as(&banned, Caller::Url(user, held)).rpc("eth_chainId", json!([]));
    assert_eq!(reason(&asked), DenyReason::AuthRequired);
}

#[test]
fn rt24_kyc_by_one_organization_counts_there_only() {
    let world = || meridian_and(|world| world.member("harbour/takers").no_kyc());
    for gate in [KycGate::All, KycGate::Writes] {
        let knobs = Knobs {
            kyc_gate: gate,
            ..Knobs::default()
        };
        let of = |snapshot, org: Option<&str>| {
            let asked = ask(snapshot, "client").with(|k| *k = knobs.clone());
            let asked = if let Some(org) = org { asked.naming(org) } else { asked };
            asked.send_raw(address_of("wallet"), Some(address_of("shop")), [])
        };
        let none = world().snapshot();
        assert_eq!(reason(&of(&none, None)), DenyReason::KycRequired);
        let verified = world().verified_in("harbour").snapshot();
        assert_eq!(
            permit(of(&verified, Some("harbour"))).org(),
            Some(org_id("harbour")),
            "{gate:?}"
        );
        let other = of(&verified, Some("meridian"));
        assert_eq!(
            denial(&other),
            (DenyReason::KycRequired, Some(org_id("meridian"))),
            "{gate:?}"
        );
        // Contracts of the other one stay closed to what needs KYC.
        let sent = ask(&verified, "client").with(|k| *k = knobs.clone());
        let sent = sent.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
        assert_eq!(reason(&sent), DenyReason::ForeignOrg, "{gate:?}");
    }
    let knobs = Knobs {
        kyc_gate: KycGate::All,
        ..Knobs::default()
    };
    let verified = world().verified_in("harbour").snapshot();
    let viewer = Viewer::new(&verified, Some(user_id("client")), NOW, &knobs);
    assert!(viewer.sees(address_of("fund")) && !viewer.sees(address_of("bond")));
}

/// HD13, RT24: who is banned in the organization of the call is not relayed by a colleague.
#[test]
fn hd13_who_is_banned_in_the_organization_is_not_relayed() {
    use gw_policy::knobs::RawSenderPolicy;
    let knobs = Knobs {
        raw_sender_policy: RawSenderPolicy::Any,
        ..Knobs::default()
    };
    let open = meridian_and(|world| world.user("colleague").member("meridian/clients")).snapshot();
    let world = || meridian_and(|world| world.user("colleague").member("meridian/clients"));
    let relayed = |snapshot: &Snapshot| {
        let asked = ask(snapshot, "colleague").with(|k| *k = knobs.clone());
        asked.send_raw(address_of("wallet"), Some(address_of("shop")), [])
    };
    assert_eq!(permit(relayed(&open)).org(), Some(org_id("meridian")));
    let banned = world().user("client").banned_in("meridian").snapshot();
    assert_eq!(reason(&relayed(&banned)), DenyReason::SenderNotOwned);
    let elsewhere = world().user("client").banned_in("harbour").snapshot();
    assert_eq!(permit(relayed(&elsewhere)).org(), Some(org_id("meridian")));
}

/// A client of nobody yet, whom two organizations took in, Harbour and Meridian, at these moments.
fn taken_in(harbour: i64, meridian: i64, more: impl FnOnce(World) -> World) -> Snapshot {
    let world = world()
        .org("meridian")
        .group("clients")
        .every_method()
        .contract("bond")
        .grant("clients");
    let world = world
        .org("harbour")
        .group("takers")
        .every_method()
        .contract("fund")
        .grant("takers")
        .user("client");
    let world = world
        .provisional_since("harbour/takers", harbour)
        .provisional_since("meridian/clients", meridian);
    more(world.link("wallet")).snapshot()
}

/// HD32: of several organizations that took somebody in, the first one's rights count; the next neither takes the person
/// over nor keeps them out.
#[test]
fn hd32_of_several_that_wait_the_first_counts() {
    let client = user_id("client");
    for (at, first, other) in [((10, 20), "harbour", "meridian"), ((20, 10), "meridian", "harbour")] {
        let snapshot = taken_in(at.0, at.1, |world| world);
        assert_eq!(active_orgs(&snapshot, client, NOW), [org_id(first)]);
        let banned = taken_in(at.0, at.1, |world| world.banned_in(first));
        assert_eq!(
            active_orgs(&banned, client, NOW),
            [org_id(other)],
            "a ban does not keep the place"
        );
        let default = taken_in(at.0, at.1, |world| world.member("default/default"));
        assert!(!active_orgs(&default, client, NOW).contains(&org_id(other)));
    }
    let snapshot = taken_in(10, 20, |world| world);
    let asked = ask(&snapshot, "client");
    assert_eq!(
        reason(&asked.eth_call(address_of("bond"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
    assert_eq!(verdict(&asked.eth_call(address_of("fund"), [1, 2, 3, 4])), "TRACE");
}

/// HD12, HD32: while several organizations wait for somebody's word, what is sent without naming one is nobody's: the first
/// one's administrators would own what is deployed, and read of every call.
#[test]
fn hd32_of_several_that_wait_none_has_unnamed_calls_on_its_record() {
    let send = |asked: &Ask<'_>, to: Option<Address>| asked.send_raw(address_of("wallet"), to, [1, 2, 3, 4]);
    let snapshot = taken_in(10, 20, |world| world);
    for to in [Some(address_of("shop")), None] {
        assert_eq!(
            reason(&send(&ask(&snapshot, "client"), to)),
            DenyReason::OrgAmbiguous,
            "{to:?}"
        );
    }
    let paid = ask(&snapshot, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(reason(&paid), DenyReason::OrgAmbiguous);
    let filed = |snapshot: &Snapshot, method: &str| {
        let asked = ask(snapshot, "client").rpc(method, json!([]));
        match asked {
            Decision::Allow(permit) => permit.org(),
            Decision::Deny(denial) => denial.org,
            Decision::Invalid(invalid) => invalid.org,
        }
    };
    for method in [
        "eth_chainId",
        "eth_blockNumber",
        "eth_getFilterChanges",
        "debug_traceTransaction",
    ] {
        assert_eq!(filed(&snapshot, method), None, "{method}");
    }
    // One that asks for what is its own has that on record, and so has the one that is named.
    let named = ask(&snapshot, "client")
        .naming("harbour")
        .send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(permit(named).org(), Some(org_id("harbour")));
    assert_eq!(
        permit(ask(&snapshot, "client").eth_call(address_of("fund"), [1, 2, 3, 4])).org(),
        Some(org_id("harbour"))
    );
    // With one there is nothing to choose; nor is there after the choice.
    for world in [
        taken_in(10, 20, |world| world.banned_in("meridian")),
        taken_in(10, 20, |world| world.member("harbour/takers")),
    ] {
        let paid = ask(&world, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
        assert_eq!(permit(paid).org(), Some(org_id("harbour")));
        assert_eq!(filed(&world, "eth_blockNumber"), Some(org_id("harbour")));
    }
}

/// HD32, RT24: a KYC mark of an organization whose membership does not count opens nothing.
#[test]
fn hd32_a_mark_of_an_organization_that_waits_opens_nothing() {
    let snapshot = taken_in(10, 20, |world| world.no_kyc().verified_in("meridian"));
    for gate in [KycGate::All, KycGate::Writes] {
        for org in [None, Some("harbour"), Some("meridian")] {
            let asked = ask(&snapshot, "client").with(|knobs| knobs.kyc_gate = gate);
            let asked = if let Some(org) = org { asked.naming(org) } else { asked };
            let sent = asked.send_raw(address_of("wallet"), Some(address_of("shop")), []);
            let expected = if org == Some("meridian") {
                DenyReason::OrgMismatch
            } else {
                DenyReason::KycRequired
            };
            let told = reason(&sent);
            assert!(
                told == expected || told == DenyReason::KycRequired,
                "{gate:?} {org:?}: {told:?}"
            );
        }
    }
}

/// HD35: a personal URL is one while its owner's membership in its organization counts, and no longer.
#[test]
fn hd35_a_personal_url_is_one_while_the_membership_counts() {
    let url = PersonalUrl {
        id: PersonalUrlId::fixed(1),
        secret: B256::repeat_byte(1),
        user: user_id("client"),
        org: org_id("harbour"),
        reach: UrlReach::All,
        created_at: PAST,
        expires_at: FUTURE,
    };
    let with_url = |world: World| {
        world
            .snapshot()
            .apply(Epoch(2), [Change::PersonalUrl(url.id, Some(url.clone()))])
    };
    let member = with_url(meridian_and(|world| world.member("harbour/takers")));
    let (user, held) = identify_url(&member, url.secret, NOW).unwrap();
    for (why, world) in [
        (
            "its time has come",
            meridian_and(|world| world.member_until("harbour/takers", PAST)),
        ),
        ("removed", meridian_and(|world| world)),
        ("invited again", meridian_and(|world| world.invited("harbour/takers"))),
        ("outranked", meridian_and(|world| world.provisional("harbour/takers"))),
    ] {
        let snapshot = with_url(world);
        assert_eq!(
            identify_url(&snapshot, url.secret, NOW).err(),
            Some(Refused::Revoked),
            "{why}"
        );
        let caller = Caller::Url(user.clone(), held.clone());
        let asked = super::support::ask_as(&snapshot, caller).rpc("eth_chainId", json!([]));
        assert_eq!(
            reason(&asked),
            DenyReason::AuthRequired,
            "{why}: looked up before, decided after"
        );
    }
}
