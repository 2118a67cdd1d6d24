//! The effect of a membership before its member accepts it, and of decisions of one organization about a person
//! (HD32, decision 62; RT11, RT24).

use super::support::{RequestBuilder, denial, permit, reason, request_as, verdict};
use gw_policy::{Change, Snapshot, visibility::Viewer};
use gw_policy::{
    access::{Caller, Decision, IdentityError, active_orgs, admin, identify_url, upstream_key},
    settings::{KycGate, PolicySettings},
    snapshot::{PersonalUrl, UrlReach},
    testing::{FUTURE, NOW, PAST, World, address_of, did, org_id, user_id, world},
};
use gw_types::{Address, B256, Claim, DenyReason, Epoch, PersonalUrlId};
use serde_json::json;

/// A client of Meridian. `harbour` adds her to a group of Harbour with all rights.
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
fn rt11_an_invitation_has_no_effect_and_causes_no_ambiguity() {
    let alone = meridian_and(|world| world).snapshot();
    let invited = meridian_and(|world| world.invited("harbour/takers")).snapshot();
    let client = user_id("client");
    assert_eq!(active_orgs(&invited, client, NOW), [org_id("meridian")]);
    assert!(!admin::status(&invited, client, NOW).is_admin());
    assert_eq!(upstream_key(&invited, client, org_id("harbour"), NOW), None);
    assert!(!invited.has_accepted(client, org_id("harbour"), NOW));
    for snapshot in [&alone, &invited] {
        let request = request_as(snapshot, "client");
        let payment = request.send_raw(address_of("wallet"), Some(address_of("shop")), []);
        assert_eq!(permit(payment).org(), Some(org_id("meridian")));
        assert_eq!(
            reason(&request.eth_call(address_of("fund"), [1, 2, 3, 4])),
            DenyReason::ForeignOrg
        );
        let named_decision = request_as(snapshot, "client")
            .in_org("harbour")
            .rpc("eth_getBlockByNumber", json!(["latest", false]));
        assert_eq!(reason(&named_decision), DenyReason::OrgMismatch);
        let settings = PolicySettings::default();
        assert!(!Viewer::new(snapshot, Some(client), NOW, &settings).sees(address_of("fund")));
    }
    // After she accepts, she belongs to both, so a payment must name an organization (decision 40).
    let with_both = meridian_and(|world| world.member("harbour/takers")).snapshot();
    let payment = request_as(&with_both, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(reason(&payment), DenyReason::OrgAmbiguous);
}

/// HD38: a provisional membership does not bind a user to the organization. As soon as she accepts another
/// organization, only accepted memberships count.
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
    let with_both = meridian_and(|world| world.provisional("harbour/takers")).snapshot();
    assert_eq!(active_orgs(&with_both, client, NOW), [org_id("meridian")]);
    // A membership in the default organization does not count as another organization.
    let default = first.member("default/default").snapshot();
    assert!(active_orgs(&default, client, NOW).contains(&org_id("harbour")));
    // An expired membership does not displace a provisional one.
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
        "an expired membership is not an accepted one"
    );
}

#[test]
fn rt24_a_ban_by_one_organization_applies_there_only() {
    let world = || meridian_and(|world| world.member("harbour/takers"));
    let banned = world().banned_in("harbour").snapshot();
    let client = user_id("client");
    assert_eq!(active_orgs(&banned, client, NOW), [org_id("meridian")]);
    assert!(!admin::status(&banned, client, NOW).is_admin());
    assert_eq!(upstream_key(&banned, client, org_id("harbour"), NOW), None);
    let request = request_as(&banned, "client");
    assert_eq!(
        reason(&request.eth_call(address_of("fund"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
    assert_eq!(verdict(&request.eth_call(address_of("bond"), [1, 2, 3, 4])), "TRACE");
    // Without another organization she has no rights, but the organization still administers her.
    let banned_everywhere = meridian_and(|world| world.banned_in("meridian")).snapshot();
    assert!(active_orgs(&banned_everywhere, client, NOW).is_empty());
    assert!(banned_everywhere.has_accepted(client, org_id("meridian"), NOW));
    assert_eq!(
        reason(&request_as(&banned_everywhere, "client").rpc("eth_syncing", json!([]))),
        DenyReason::MethodNotAllowed
    );
    // The ban refers to her external id, so it also applies before she enrolls.
    assert!(banned.user_by_external(&did("client")).is_some_and(|user| !user.banned));
}

#[test]
fn rt24_a_personal_url_of_the_banning_organization_is_revoked() {
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
    let (user, personal_url) = identify_url(&open, harbour.secret, NOW).unwrap();
    let banned = before.banned_in("harbour").snapshot().apply(Epoch(2), changes);
    assert_eq!(
        identify_url(&banned, harbour.secret, NOW).err(),
        Some(IdentityError::Revoked)
    );
    assert!(identify_url(&banned, meridian.secret, NOW).is_ok());
    // A URL that was looked up before the ban is invalid in a decision after it.
    let decision = super::support::request_from(&banned, Caller::Url(user, personal_url)).rpc("eth_chainId", json!([]));
    assert_eq!(reason(&decision), DenyReason::AuthRequired);
}

#[test]
fn rt24_kyc_by_one_organization_counts_there_only() {
    let world = || meridian_and(|world| world.member("harbour/takers").no_kyc());
    for gate in [KycGate::All, KycGate::Writes] {
        let settings = PolicySettings {
            kyc_gate: gate,
            ..PolicySettings::default()
        };
        let decide_in = |snapshot, org: Option<&str>| {
            let request = request_as(snapshot, "client").with_settings(|current| *current = settings.clone());
            let request = if let Some(org) = org {
                request.in_org(org)
            } else {
                request
            };
            request.send_raw(address_of("wallet"), Some(address_of("shop")), [])
        };
        let unverified = world().snapshot();
        assert_eq!(reason(&decide_in(&unverified, None)), DenyReason::KycRequired);
        let verified = world().verified_in("harbour").snapshot();
        assert_eq!(
            permit(decide_in(&verified, Some("harbour"))).org(),
            Some(org_id("harbour")),
            "{gate:?}"
        );
        let elsewhere = decide_in(&verified, Some("meridian"));
        assert_eq!(
            denial(&elsewhere),
            (DenyReason::KycRequired, Some(org_id("meridian"))),
            "{gate:?}"
        );
        // Contracts of the other organization stay closed to calls that need KYC.
        let decision = request_as(&verified, "client").with_settings(|current| *current = settings.clone());
        let decision = decision.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
        assert_eq!(reason(&decision), DenyReason::ForeignOrg, "{gate:?}");
    }
    let settings = PolicySettings {
        kyc_gate: KycGate::All,
        ..PolicySettings::default()
    };
    let verified = world().verified_in("harbour").snapshot();
    let viewer = Viewer::new(&verified, Some(user_id("client")), NOW, &settings);
    assert!(viewer.sees(address_of("fund")) && !viewer.sees(address_of("bond")));
}

/// HD13, RT24: a colleague cannot relay a transaction of a user who is banned in the organization of the call.
#[test]
fn hd13_transactions_of_a_banned_member_are_not_relayed() {
    use gw_policy::settings::RawSenderPolicy;
    let settings = PolicySettings {
        raw_sender_policy: RawSenderPolicy::Any,
        ..PolicySettings::default()
    };
    let unbanned = meridian_and(|world| world.user("colleague").member("meridian/clients")).snapshot();
    let world = || meridian_and(|world| world.user("colleague").member("meridian/clients"));
    let relay = |snapshot: &Snapshot| {
        let request = request_as(snapshot, "colleague").with_settings(|current| *current = settings.clone());
        request.send_raw(address_of("wallet"), Some(address_of("shop")), [])
    };
    assert_eq!(permit(relay(&unbanned)).org(), Some(org_id("meridian")));
    let banned = world().user("client").banned_in("meridian").snapshot();
    assert_eq!(reason(&relay(&banned)), DenyReason::SenderNotOwned);
    let elsewhere = world().user("client").banned_in("harbour").snapshot();
    assert_eq!(permit(relay(&elsewhere)).org(), Some(org_id("meridian")));
}

/// A client without accepted membership and with provisional memberships in Harbour and Meridian, since these times.
fn provisional_in(harbour: i64, meridian: i64, change: impl FnOnce(World) -> World) -> Snapshot {
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
    change(world.link("wallet")).snapshot()
}

/// HD32: of several provisional memberships, only the first one counts. A later one neither replaces it nor
/// invalidates it.
#[test]
fn hd32_the_first_of_several_provisional_memberships_counts() {
    let client = user_id("client");
    for (since, first, other) in [((10, 20), "harbour", "meridian"), ((20, 10), "meridian", "harbour")] {
        let snapshot = provisional_in(since.0, since.1, |world| world);
        assert_eq!(active_orgs(&snapshot, client, NOW), [org_id(first)]);
        let banned = provisional_in(since.0, since.1, |world| world.banned_in(first));
        assert_eq!(
            active_orgs(&banned, client, NOW),
            [org_id(other)],
            "a banned membership does not count as the first"
        );
        let default = provisional_in(since.0, since.1, |world| world.member("default/default"));
        assert!(!active_orgs(&default, client, NOW).contains(&org_id(other)));
    }
    let snapshot = provisional_in(10, 20, |world| world);
    let request = request_as(&snapshot, "client");
    assert_eq!(
        reason(&request.eth_call(address_of("bond"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
    assert_eq!(verdict(&request.eth_call(address_of("fund"), [1, 2, 3, 4])), "TRACE");
}

/// HD12, HD32: with several provisional memberships, requests that name no organization are recorded for none.
/// Otherwise the admins of the first organization would own deployments and read the log of every call.
#[test]
fn hd32_with_several_provisional_memberships_unnamed_calls_have_no_organization() {
    let send =
        |request: &RequestBuilder<'_>, to: Option<Address>| request.send_raw(address_of("wallet"), to, [1, 2, 3, 4]);
    let snapshot = provisional_in(10, 20, |world| world);
    for to in [Some(address_of("shop")), None] {
        assert_eq!(
            reason(&send(&request_as(&snapshot, "client"), to)),
            DenyReason::OrgAmbiguous,
            "{to:?}"
        );
    }
    let payment = request_as(&snapshot, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(reason(&payment), DenyReason::OrgAmbiguous);
    let recorded_org = |snapshot: &Snapshot, method: &str| {
        let decision = request_as(snapshot, "client").rpc(method, json!([]));
        match decision {
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
        assert_eq!(recorded_org(&snapshot, method), None, "{method}");
    }
    // A named organization records its requests, and so does the owner of the target.
    let named_decision =
        request_as(&snapshot, "client")
            .in_org("harbour")
            .send_raw(address_of("wallet"), Some(address_of("shop")), []);
    assert_eq!(permit(named_decision).org(), Some(org_id("harbour")));
    assert_eq!(
        permit(request_as(&snapshot, "client").eth_call(address_of("fund"), [1, 2, 3, 4])).org(),
        Some(org_id("harbour"))
    );
    // With one effective membership, or after an acceptance, there is no ambiguity.
    for world in [
        provisional_in(10, 20, |world| world.banned_in("meridian")),
        provisional_in(10, 20, |world| world.member("harbour/takers")),
    ] {
        let payment = request_as(&world, "client").send_raw(address_of("wallet"), Some(address_of("shop")), []);
        assert_eq!(permit(payment).org(), Some(org_id("harbour")));
        assert_eq!(recorded_org(&world, "eth_blockNumber"), Some(org_id("harbour")));
    }
}

/// HD32, RT24: a KYC record of an organization without effective membership has no effect.
#[test]
fn hd32_a_kyc_record_without_effective_membership_has_no_effect() {
    let snapshot = provisional_in(10, 20, |world| world.no_kyc().verified_in("meridian"));
    for gate in [KycGate::All, KycGate::Writes] {
        for org in [None, Some("harbour"), Some("meridian")] {
            let request = request_as(&snapshot, "client").with_settings(|settings| settings.kyc_gate = gate);
            let request = if let Some(org) = org {
                request.in_org(org)
            } else {
                request
            };
            let decision = request.send_raw(address_of("wallet"), Some(address_of("shop")), []);
            let expected = if org == Some("meridian") {
                DenyReason::OrgMismatch
            } else {
                DenyReason::KycRequired
            };
            let denied_by = reason(&decision);
            assert!(
                denied_by == expected || denied_by == DenyReason::KycRequired,
                "{gate:?} {org:?}: {denied_by:?}"
            );
        }
    }
}

/// HD35: a personal URL is valid only while the membership of its owner in its organization is effective.
#[test]
fn hd35_a_personal_url_is_valid_while_the_membership_is_effective() {
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
    let (user, personal_url) = identify_url(&member, url.secret, NOW).unwrap();
    for (why, world) in [
        (
            "expired",
            meridian_and(|world| world.member_until("harbour/takers", PAST)),
        ),
        ("removed", meridian_and(|world| world)),
        ("invited again", meridian_and(|world| world.invited("harbour/takers"))),
        ("displaced", meridian_and(|world| world.provisional("harbour/takers"))),
    ] {
        let snapshot = with_url(world);
        assert_eq!(
            identify_url(&snapshot, url.secret, NOW).err(),
            Some(IdentityError::Revoked),
            "{why}"
        );
        let caller = Caller::Url(user.clone(), personal_url.clone());
        let decision = super::support::request_from(&snapshot, caller).rpc("eth_chainId", json!([]));
        assert_eq!(
            reason(&decision),
            DenyReason::AuthRequired,
            "{why}: the URL was looked up before the change"
        );
    }
}
