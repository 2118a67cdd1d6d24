//! What holds for every world, whatever its rows.

use super::support::{Ask, ask, ask_anonymously, ask_as, payment, simulate, verdict};
use gw_evm::{Method, SimulationKind};
use gw_policy::{
    Knobs, Snapshot,
    access::{Caller, Decision, Member, reach},
    testing::{FUTURE, NOW, PAST, World, address_of, function, user_id, world},
    visibility::Viewer,
};
use gw_types::{Claim, Level};
use proptest::prelude::*;
use serde_json::json;

const PLACES: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "wallet"];
const GROUPS: [&str; 3] = ["readers", "makers", "chiefs"];

/// One more row of an organization.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Contract {
        place: usize,
        deployer: bool,
    },
    Grant {
        place: usize,
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
        place: usize,
        proved: bool,
    },
    Reservation {
        place: usize,
        live: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (place, group) = (0..PLACES.len(), 0..GROUPS.len());
    let claim = prop_oneof![3 => Just(None), 1 => Just(Some(Claim::Deploy)), 1 => Just(Some(Claim::Admin))];
    prop_oneof![
        (place.clone(), any::<bool>()).prop_map(|(place, deployer)| Step::Contract { place, deployer }),
        (place.clone(), group.clone(), any::<bool>(), claim.clone()).prop_map(|(place, group, restricted, claim)| {
            Step::Grant {
                place,
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
        (place.clone(), any::<bool>()).prop_map(|(place, proved)| Step::Link { place, proved }),
        (place, any::<bool>()).prop_map(|(place, live)| Step::Reservation { place, live }),
    ]
}

/// An organization of these rows and its person. Contracts of two organizations never share an address (K1).
pub(super) fn organization(mut world: World, org: &str, person: &str, steps: &[Step], taken: &mut Vec<usize>) -> World {
    let start = taken.len();
    world = world.org(org).user(person);
    for group in GROUPS {
        world = world.group(group);
    }
    for step in steps {
        world = match *step {
            Step::Contract { place, deployer } if !taken[..start].contains(&place) => {
                taken.push(place);
                let name = format!("{org}-{place}");
                let world = world.contract(&name).at(address_of(PLACES[place]));
                if deployer { world.deployed_by(person) } else { world }
            }
            Step::Grant {
                place,
                group,
                restricted,
                claim,
            } if taken[start..].contains(&place) => {
                let mut world = world.contract(&format!("{org}-{place}")).grant(GROUPS[group]);
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
            Step::Link { place, proved: true } => world.link(PLACES[place]),
            Step::Link { place, proved: false } => world.system_link(PLACES[place]),
            Step::Reservation { place, live } => world.reservation(PLACES[place], if live { FUTURE } else { PAST }),
        };
    }
    world
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..24)
}

/// Everything worth asking about the places of the world.
pub(super) fn questions(asked: &Ask<'_>) -> Vec<(String, Decision)> {
    let mut answers = vec![
        ("eth_chainId".to_owned(), asked.rpc("eth_chainId", json!([]))),
        ("eth_syncing".to_owned(), asked.rpc("eth_syncing", json!([]))),
        (
            "deployment".to_owned(),
            asked.rpc("eth_estimateGas", json!([{"data": "0x6001"}])),
        ),
    ];
    for place in PLACES {
        let to = address_of(place);
        let selector = gw_policy::testing::selector("a()");
        let logs = json!([{"address": [to, address_of("p0")]}]);
        let calls = [
            (
                "call",
                asked.call(Method::Call, &simulate(SimulationKind::Call, to, selector)),
            ),
            ("call other", asked.eth_call(to, [9, 9, 9, 9])),
            (
                "estimate",
                asked.call(Method::EstimateGas, &simulate(SimulationKind::EstimateGas, to, [])),
            ),
            ("send", asked.send_raw(address_of("wallet"), Some(to), selector)),
            (
                "payment",
                asked.call(Method::SendRawTransaction, &payment(address_of("wallet"), to)),
            ),
            ("balance", asked.rpc("eth_getBalance", json!([to]))),
            ("old balance", asked.rpc("eth_getBalance", json!([to, "0x1"]))),
            ("code", asked.rpc("eth_getCode", json!([to]))),
            ("storage", asked.rpc("eth_getStorageAt", json!([to, "0x0"]))),
            ("logs", asked.rpc("eth_getLogs", logs)),
        ];
        answers.extend(
            calls
                .into_iter()
                .map(|(what, decision)| (format!("{what} {place}"), decision)),
        );
    }
    answers
}

/// How much a decision gives away or sets in motion: nothing, a constant or what is one's own anyway, or more.
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
    // Each case asks sixty questions of several worlds.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What others own, link and reserve can close something to a caller, but opens nothing and moves nothing.
    #[test]
    fn rows_of_others_open_nothing(mine in steps(), theirs in steps()) {
        let mut taken = Vec::new();
        let alone = organization(world(), "bank", "person", &mine, &mut taken);
        let together = organization(alone.clone(), "rival", "stranger", &theirs, &mut taken);
        let (alone, together) = (alone.snapshot(), together.snapshot());
        for ((what, before), (_, after)) in
            questions(&ask(&alone, "person")).into_iter().zip(questions(&ask(&together, "person")))
        {
            prop_assert!(weight(&after) <= weight(&before), "{what}: {before:?} became {after:?}");
            // As long as both are answered in full, they are answered the same.
            if weight(&after) == 2 {
                prop_assert_eq!(verdict(&after), verdict(&before), "{}", what);
            }
        }
    }

    /// HD6: linking, reserving or registering elsewhere does not show in balance, nonce and code.
    #[test]
    fn rows_of_others_do_not_show_in_accounts(mine in steps(), theirs in steps(), place in 0..5usize) {
        let mut taken = Vec::new();
        let alone = organization(world(), "bank", "person", &mine, &mut taken);
        let together = organization(alone.clone(), "rival", "stranger", &theirs, &mut taken).snapshot();
        let alone = alone.snapshot();
        let address = address_of(PLACES[place]);
        // An address the caller shares with somebody who proved it stops being the caller's: that is the rule (R6).
        prop_assume!(alone.links_at(address).is_empty());
        for (name, params) in
            [("eth_getBalance", json!([address])), ("eth_getTransactionCount", json!([address])), ("eth_getCode", json!([address]))]
        {
            let (before, after) = (ask(&alone, "person").rpc(name, params.clone()), ask(&together, "person").rpc(name, params));
            prop_assert_eq!(verdict(&before), verdict(&after), "{}", name);
        }
    }

    /// A10: whatever was granted.
    #[test]
    fn a_banned_user_is_allowed_nothing(rows in steps()) {
        let before = one_bank(&rows).snapshot();
        let banned = one_bank(&rows).user("person").banned().snapshot();
        for asked in [ask(&banned, "person"), ask_as(&banned, ask(&before, "person").caller)] {
            for (what, decision) in questions(&asked) {
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
        for (what, decision) in questions(&ask_as(&snapshot, caller)) {
            prop_assert_eq!(verdict(&decision), "unknown_user", "{}", what);
        }
    }

    /// A3: nothing any organization does reaches anonymous callers.
    #[test]
    fn anonymous_callers_have_metadata_only(rows in steps()) {
        let snapshot = one_bank(&rows).snapshot();
        for (what, decision) in questions(&ask_anonymously(&snapshot)) {
            let expected = if what == "eth_chainId" { "FORWARD" } else { "auth_required" };
            prop_assert_eq!(verdict(&decision), expected, "{}", what);
        }
    }

    /// T1, I1: whoever reaches a contract by RPC sees it in the explorer, and the other way round.
    #[test]
    fn t1_reach_and_visibility_agree(mine in steps(), theirs in steps()) {
        let mut taken = Vec::new();
        let both = organization(world(), "bank", "person", &mine, &mut taken);
        let snapshot: Snapshot = organization(both, "rival", "stranger", &theirs, &mut taken).snapshot();
        for knobs in [Knobs::SPEC, Knobs { admin_claim_sees_all: false, ..Knobs::SPEC }] {
            for person in ["person", "stranger"] {
                let member = Member::new(&snapshot, user_id(person), NOW);
                let viewer = Viewer::new(&snapshot, Some(user_id(person)), NOW, &knobs);
                for place in PLACES {
                    let address = address_of(place);
                    let Some(contract) = snapshot.contract(address) else { continue };
                    let reached = reach(&snapshot, &member, contract, &knobs).is_some();
                    prop_assert_eq!(reached, viewer.reaches(address), "{} {}", person, place);
                    let full = viewer.level(address).0 == Level::Full;
                    prop_assert_eq!(reached || viewer.owns(address), full, "{} {}", person, place);
                }
            }
        }
    }
}
