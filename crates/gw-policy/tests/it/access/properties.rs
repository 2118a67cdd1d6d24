//! Properties that hold for every world.

use super::support::{RequestBuilder, anonymous_request, payment, request_as, request_from, simulate, verdict};
use gw_evm::{Method, SimulationKind};
use gw_policy::{
    PolicySettings, Snapshot,
    access::{Caller, Decision, Principal, contract_access},
    testing::{FUTURE, NOW, PAST, World, address_of, function, user_id, world},
    visibility::Viewer,
};
use gw_types::{Claim, Level};
use proptest::prelude::*;
use serde_json::json;

const TARGETS: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "wallet"];
const GROUPS: [&str; 3] = ["readers", "makers", "chiefs"];

/// A row of an organization.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Contract {
        target: usize,
        deployer: bool,
    },
    Grant {
        target: usize,
        group: usize,
        restricted: bool,
        claim: Option<Claim>,
    },
    Member {
        group: usize,
        ends: Option<bool>,
    },
    Methods {
        group: usize,
        all: bool,
        claim: Option<Claim>,
        admin: bool,
    },
    Link {
        target: usize,
        proved: bool,
    },
    Reservation {
        target: usize,
        live: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (target, group) = (0..TARGETS.len(), 0..GROUPS.len());
    let claim = prop_oneof![3 => Just(None), 1 => Just(Some(Claim::Deploy)), 1 => Just(Some(Claim::Admin))];
    prop_oneof![
        (target.clone(), any::<bool>()).prop_map(|(target, deployer)| Step::Contract { target, deployer }),
        (target.clone(), group.clone(), any::<bool>(), claim.clone()).prop_map(|(target, group, restricted, claim)| {
            Step::Grant {
                target,
                group,
                restricted,
                claim,
            }
        }),
        (group.clone(), any::<Option<bool>>()).prop_map(|(group, ends)| Step::Member { group, ends }),
        (group, any::<bool>(), claim, proptest::bool::weighted(0.1)).prop_map(|(group, all, claim, admin)| {
            Step::Methods {
                group,
                all,
                claim,
                admin,
            }
        }),
        (target.clone(), any::<bool>()).prop_map(|(target, proved)| Step::Link { target, proved }),
        (target, any::<bool>()).prop_map(|(target, live)| Step::Reservation { target, live }),
    ]
}

/// Adds an organization with these rows and its person. Contracts of two organizations never share an address (K1).
pub(super) fn organization(mut world: World, org: &str, person: &str, steps: &[Step], taken: &mut Vec<usize>) -> World {
    let start = taken.len();
    world = world.org(org).user(person);
    for group in GROUPS {
        world = world.group(group);
    }
    for step in steps {
        world = match *step {
            Step::Contract { target, deployer } if !taken[..start].contains(&target) => {
                taken.push(target);
                let name = format!("{org}-{target}");
                let world = world.contract(&name).at(address_of(TARGETS[target]));
                if deployer { world.deployed_by(person) } else { world }
            }
            Step::Grant {
                target,
                group,
                restricted,
                claim,
            } if taken[start..].contains(&target) => {
                let mut world = world.contract(&format!("{org}-{target}")).grant(GROUPS[group]);
                if restricted {
                    world = world.functions([function("a()", [])]);
                }
                match claim {
                    Some(claim) => world.grant_claim(claim),
                    None => world,
                }
            }
            Step::Contract { .. } | Step::Grant { .. } => world,
            Step::Member { group, ends } => match ends {
                None => world.member(GROUPS[group]),
                Some(over) => world.member_until(GROUPS[group], if over { PAST } else { FUTURE }),
            },
            Step::Methods {
                group,
                all,
                claim,
                admin,
            } => {
                let mut world = world.group(GROUPS[group]);
                world = if all {
                    world.every_method()
                } else {
                    world.methods([Method::Call, Method::GetBalance])
                };
                if admin {
                    world = world.org_admin();
                }
                match claim {
                    Some(claim) => world.claim(claim),
                    None => world,
                }
            }
            Step::Link { target, proved: true } => world.link(TARGETS[target]),
            Step::Link { target, proved: false } => world.system_link(TARGETS[target]),
            Step::Reservation { target, live } => world.reservation(TARGETS[target], if live { FUTURE } else { PAST }),
        };
    }
    world
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..24)
}

/// Decisions for all kinds of requests on all targets of the world.
pub(super) fn decisions(request: &RequestBuilder<'_>) -> Vec<(String, Decision)> {
    let mut decisions = vec![
        ("eth_chainId".to_owned(), request.rpc("eth_chainId", json!([]))),
        ("eth_syncing".to_owned(), request.rpc("eth_syncing", json!([]))),
        (
            "deployment".to_owned(),
            request.rpc("eth_estimateGas", json!([{"data": "0x6001"}])),
        ),
    ];
    for target in TARGETS {
        let to = address_of(target);
        let selector = gw_policy::testing::selector("a()");
        let logs = json!([{"address": [to, address_of("p0")]}]);
        let calls = [
            (
                "call",
                request.call(Method::Call, &simulate(SimulationKind::Call, to, selector)),
            ),
            ("call other", request.eth_call(to, [9, 9, 9, 9])),
            (
                "estimate",
                request.call(Method::EstimateGas, &simulate(SimulationKind::EstimateGas, to, [])),
            ),
            ("send", request.send_raw(address_of("wallet"), Some(to), selector)),
            (
                "payment",
                request.call(Method::SendRawTransaction, &payment(address_of("wallet"), to)),
            ),
            ("balance", request.rpc("eth_getBalance", json!([to]))),
            ("old balance", request.rpc("eth_getBalance", json!([to, "0x1"]))),
            ("code", request.rpc("eth_getCode", json!([to]))),
            ("storage", request.rpc("eth_getStorageAt", json!([to, "0x0"]))),
            ("logs", request.rpc("eth_getLogs", logs)),
        ];
        decisions.extend(
            calls
                .into_iter()
                .map(|(what, decision)| (format!("{what} {target}"), decision)),
        );
    }
    decisions
}

/// How much a decision reveals or allows: 0 for nothing, 1 for a constant or only own data, 2 for more.
fn weight(decision: &Decision) -> u8 {
    match decision {
        Decision::Deny(_) => 0,
        Decision::Invalid(_) => 1,
        Decision::Allow(permit) => match permit.plan() {
            gw_policy::access::Plan::ZeroQuantity | gw_policy::access::Plan::CodeCheck => 1,
            gw_policy::access::Plan::Forward if !permit.shared_logs_only().is_empty() => 1,
            _ => 2,
        },
    }
}

fn one_bank(steps: &[Step]) -> World {
    organization(world(), "bank", "person", steps, &mut Vec::new())
}

proptest! {
    // Each case makes sixty decisions in several worlds.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Rows of other organizations may deny a request, but never allow one or change its result.
    #[test]
    fn rows_of_others_allow_nothing(mine in steps(), theirs in steps()) {
        let mut taken = Vec::new();
        let alone = organization(world(), "bank", "person", &mine, &mut taken);
        let together = organization(alone.clone(), "rival", "stranger", &theirs, &mut taken);
        let (alone, together) = (alone.snapshot(), together.snapshot());
        for ((what, before), (_, after)) in
            decisions(&request_as(&alone, "person")).into_iter().zip(decisions(&request_as(&together, "person")))
        {
            prop_assert!(weight(&after) <= weight(&before), "{what}: {before:?} became {after:?}");
            // If both requests are allowed in full, the plan is the same.
            if weight(&after) == 2 {
                prop_assert_eq!(verdict(&after), verdict(&before), "{}", what);
            }
        }
    }

    /// HD6: decisions on balance, nonce and code do not depend on links, reservations or registrations elsewhere.
    #[test]
    fn rows_of_others_do_not_affect_account_reads(mine in steps(), theirs in steps(), target in 0..5usize) {
        let mut taken = Vec::new();
        let alone = organization(world(), "bank", "person", &mine, &mut taken);
        let together = organization(alone.clone(), "rival", "stranger", &theirs, &mut taken).snapshot();
        let alone = alone.snapshot();
        let address = address_of(TARGETS[target]);
        // By rule R6, an inferred address stops being the caller's when somebody else proves it.
        prop_assume!(alone.links_at(address).is_empty());
        for (name, params) in
            [("eth_getBalance", json!([address])), ("eth_getTransactionCount", json!([address])),
                ("eth_getCode", json!([address]))]
        {
            let before = request_as(&alone, "person").rpc(name, params.clone());
            let after = request_as(&together, "person").rpc(name, params);
            prop_assert_eq!(verdict(&before), verdict(&after), "{}", name);
        }
    }

    /// A10: regardless of grants.
    #[test]
    fn a_banned_user_is_allowed_nothing(rows in steps()) {
        let before = one_bank(&rows).snapshot();
        let banned = one_bank(&rows).user("person").banned().snapshot();
        for request in [request_as(&banned, "person"), request_from(&banned, request_as(&before, "person").caller)] {
            for (what, decision) in decisions(&request) {
                prop_assert_eq!(verdict(&decision), "banned", "{}", what);
            }
        }
    }

    /// A9.
    #[test]
    fn an_unknown_user_is_allowed_nothing(rows in steps()) {
        let elsewhere = world().user("stranger").snapshot();
        let caller = Caller::User(elsewhere.user(user_id("stranger")).unwrap().clone());
        let snapshot = one_bank(&rows).snapshot();
        for (what, decision) in decisions(&request_from(&snapshot, caller)) {
            prop_assert_eq!(verdict(&decision), "unknown_user", "{}", what);
        }
    }

    /// A3: no row of an organization gives rights to anonymous callers.
    #[test]
    fn anonymous_callers_have_metadata_only(rows in steps()) {
        let snapshot = one_bank(&rows).snapshot();
        for (what, decision) in decisions(&anonymous_request(&snapshot)) {
            let expected = if what == "eth_chainId" { "FORWARD" } else { "auth_required" };
            prop_assert_eq!(verdict(&decision), expected, "{}", what);
        }
    }

    /// T1, I1: access to a contract by RPC and full visibility in the explorer are equivalent.
    #[test]
    fn t1_access_and_visibility_agree(mine in steps(), theirs in steps()) {
        let mut taken = Vec::new();
        let bank_world = organization(world(), "bank", "person", &mine, &mut taken);
        let snapshot: Snapshot = organization(bank_world, "rival", "stranger", &theirs, &mut taken).snapshot();
        for settings in [PolicySettings::SPEC, PolicySettings { admin_claim_sees_all: false, ..PolicySettings::SPEC }] {
            for person in ["person", "stranger"] {
                let member = Principal::new(&snapshot, user_id(person), NOW);
                let viewer = Viewer::new(&snapshot, Some(user_id(person)), NOW, &settings);
                for target in TARGETS {
                    let address = address_of(target);
                    let Some(contract) = snapshot.contract(address) else { continue };
                    let has_access = contract_access(&snapshot, &member, contract, &settings).is_some();
                    prop_assert_eq!(has_access, viewer.reaches(address), "{} {}", person, target);
                    let is_full = viewer.level(address).0 == Level::Full;
                    prop_assert_eq!(has_access || viewer.owns(address), is_full, "{} {}", person, target);
                }
            }
        }
    }
}
