//! The rules a second time, slow and flat: lists of rows, read from the start for every question. It shares nothing
//! with the engine but the names of the outcomes, and must agree with it on any world and any call.
//!
//! Not here: event rules, traces and reservations, which have property tests of their own.

use super::support::{Ask, ask, verdict};
use gw_evm::Method;
use gw_policy::testing::{FUTURE, PAST, World, address_of, function, selector, world};
use gw_types::{Address, Claim};
use proptest::prelude::*;
use serde_json::json;

const ORGS: [&str; 2] = ["bank", "rival"];
const GROUPS: [&str; 2] = ["readers", "makers"];
const PEOPLE: [&str; 3] = ["ann", "bob", "eve"];
const PLACES: [&str; 4] = ["p0", "p1", "p2", "p3"];
const WALLETS: [&str; 3] = ["w0", "w1", "w2"];
const SIGNATURES: [&str; 2] = ["a()", "b()"];

#[derive(Clone, Debug)]
struct GroupRow {
    org: usize,
    name: usize,
    methods: Vec<Method>,
    claim: Option<Claim>,
    admin: bool,
}

#[derive(Clone, Debug)]
struct GrantRow {
    place: usize,
    group: usize,
    /// `None`: all functions.
    functions: Option<Vec<usize>>,
    claim: Option<Claim>,
}

/// Everything there is, as tables.
#[derive(Clone, Debug)]
struct Rows {
    groups: Vec<GroupRow>,
    /// Person, group, whether it is over.
    members: Vec<(usize, usize, bool)>,
    /// Owner of each place, if it is registered, and who deployed it.
    contracts: Vec<Option<(usize, Option<usize>)>>,
    grants: Vec<GrantRow>,
    /// Person, wallet, proved.
    links: Vec<(usize, usize, bool)>,
    banned: Vec<bool>,
    kyc: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Asked {
    Meta,
    Chain,
    Balance(usize),
    BalanceOfWallet(usize),
    Call {
        place: usize,
        selector: Option<usize>,
    },
    Send {
        place: usize,
        selector: Option<usize>,
        sender: usize,
    },
}

fn rows() -> impl Strategy<Value = Rows> {
    let methods = proptest::sample::subsequence(
        vec![
            Method::Syncing,
            Method::GetBalance,
            Method::Call,
            Method::SendTransaction,
            Method::SendRawTransaction,
        ],
        0..=5,
    );
    let claim = || prop_oneof![4 => Just(None), 1 => Just(Some(Claim::Deploy)), 1 => Just(Some(Claim::Admin))];
    let group = (methods, claim(), proptest::bool::weighted(0.15));
    let groups = proptest::collection::vec(group, ORGS.len() * GROUPS.len()).prop_map(|drawn| {
        let row = |(at, (methods, claim, admin)): (usize, (Vec<Method>, Option<Claim>, bool))| {
            // A5: a group of administrators has no claims of its own.
            let claim = claim.filter(|_| !admin);
            GroupRow {
                org: at / GROUPS.len(),
                name: at % GROUPS.len(),
                methods,
                claim,
                admin,
            }
        };
        drawn.into_iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let all_groups = ORGS.len() * GROUPS.len();
    let members = proptest::collection::vec((0..PEOPLE.len(), 0..all_groups, any::<bool>()), 0..7);
    let owner = proptest::option::of((0..ORGS.len(), proptest::option::weighted(0.2, 0..PEOPLE.len())));
    let contracts = proptest::collection::vec(owner, PLACES.len());
    let functions = proptest::option::of(proptest::sample::subsequence(vec![0, 1], 0..=2));
    let grants = proptest::collection::vec((0..PLACES.len(), 0..all_groups, functions, claim()), 0..6);
    let links = proptest::collection::vec((0..PEOPLE.len(), 0..WALLETS.len(), any::<bool>()), 0..5);
    let flags = |weight| proptest::collection::vec(proptest::bool::weighted(weight), PEOPLE.len());
    (groups, members, contracts, grants, links, flags(0.1), flags(0.7)).prop_map(
        |(groups, members, contracts, grants, links, banned, kyc)| {
            let mut rows = Rows {
                groups,
                members: Vec::new(),
                contracts,
                grants: Vec::new(),
                links: Vec::new(),
                banned,
                kyc,
            };
            // One row each: the last one drawn counts for nothing.
            for member in members {
                if !rows
                    .members
                    .iter()
                    .any(|known| (known.0, known.1) == (member.0, member.1))
                {
                    rows.members.push(member);
                }
            }
            for (place, group, functions, claim) in grants {
                let owner = rows.contracts[place].map(|(owner, _)| owner);
                let fits = owner == Some(rows.groups[group].org);
                if fits
                    && !rows
                        .grants
                        .iter()
                        .any(|known| (known.place, known.group) == (place, group))
                {
                    rows.grants.push(GrantRow {
                        place,
                        group,
                        functions,
                        claim,
                    });
                }
            }
            for link in links {
                if !rows.links.iter().any(|known| (known.0, known.1) == (link.0, link.1)) {
                    rows.links.push(link);
                }
            }
            rows
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let (place, wallet) = (0..PLACES.len(), 0..WALLETS.len());
    let selector = || proptest::option::weighted(0.8, 0..SIGNATURES.len());
    prop_oneof![
        1 => Just(Asked::Meta),
        1 => Just(Asked::Chain),
        2 => place.clone().prop_map(Asked::Balance),
        1 => wallet.clone().prop_map(Asked::BalanceOfWallet),
        4 => (place.clone(), selector()).prop_map(|(place, selector)| Asked::Call { place, selector }),
        4 => (place, selector(), wallet).prop_map(|(place, selector, sender)| Asked::Send { place, selector, sender }),
    ]
}

impl Rows {
    fn build(&self) -> World {
        let mut world = world();
        for (org, name) in ORGS.iter().enumerate() {
            world = world.org(name);
            for group in self.groups.iter().filter(|group| group.org == org) {
                world = world.group(GROUPS[group.name]).methods(group.methods.clone());
                if group.admin {
                    world = world.org_admin();
                }
                if let Some(claim) = group.claim {
                    world = world.claim(claim);
                }
            }
        }
        for (at, person) in PEOPLE.iter().enumerate() {
            world = world.user(person);
            if self.banned[at] {
                world = world.banned();
            }
            if !self.kyc[at] {
                world = world.no_kyc();
            }
            for (_, group, over) in self.members.iter().filter(|row| row.0 == at) {
                let group = &self.groups[*group];
                let path = format!("{}/{}", ORGS[group.org], GROUPS[group.name]);
                world = if *over {
                    world.member_until(&path, PAST)
                } else {
                    world.member_until(&path, FUTURE)
                };
            }
            for (_, wallet, proved) in self.links.iter().filter(|row| row.0 == at) {
                world = if *proved {
                    world.link(WALLETS[*wallet])
                } else {
                    world.system_link(WALLETS[*wallet])
                };
            }
        }
        for (place, owner) in self.contracts.iter().enumerate() {
            let Some((org, deployer)) = owner else { continue };
            world = world.org(ORGS[*org]).contract(PLACES[place]);
            if let Some(deployer) = deployer {
                world = world.deployed_by(PEOPLE[*deployer]);
            }
            for grant in self.grants.iter().filter(|grant| grant.place == place) {
                world = world.grant(GROUPS[self.groups[grant.group].name]);
                if let Some(functions) = &grant.functions {
                    world = world.functions(functions.iter().map(|at| function(SIGNATURES[*at], [])));
                }
                if let Some(claim) = grant.claim {
                    world = world.grant_claim(claim);
                }
            }
        }
        world
    }

    /// The groups of `org` that count for a person: memberships that are not over (A8).
    fn groups_in(&self, person: usize, org: usize) -> Vec<usize> {
        let counts = |row: &&(usize, usize, bool)| row.0 == person && !row.2 && self.groups[row.1].org == org;
        self.members.iter().filter(counts).map(|row| row.1).collect()
    }

    fn orgs_of(&self, person: usize) -> Vec<usize> {
        (0..ORGS.len())
            .filter(|org| !self.groups_in(person, *org).is_empty())
            .collect()
    }

    fn administers(&self, person: usize, org: usize) -> bool {
        let admin = |group: usize| self.groups[group].admin || self.groups[group].claim == Some(Claim::Admin);
        self.groups_in(person, org).into_iter().any(admin)
    }

    /// Whether a method list of any of these organizations holds the method; a signed send may stand under either name.
    fn lists(&self, person: usize, orgs: &[usize], method: Method) -> bool {
        let names = match method {
            Method::SendRawTransaction => vec![Method::SendRawTransaction, Method::SendTransaction],
            other => vec![other],
        };
        orgs.iter().any(|org| {
            let groups = self.groups_in(person, *org);
            groups
                .into_iter()
                .any(|group| self.groups[group].methods.iter().any(|known| names.contains(known)))
        })
    }

    /// Which functions of a registered place a person may call: `None` is none at all, an empty answer all of them.
    fn functions(&self, person: usize, place: usize) -> Option<Option<Vec<usize>>> {
        let (org, deployer) = self.contracts[place]?;
        if self.groups_in(person, org).is_empty() {
            return None;
        }
        if self.administers(person, org) || deployer == Some(person) {
            return Some(None);
        }
        let mut open = Vec::new();
        let mut any = false;
        for grant in self.grants.iter().filter(|grant| grant.place == place) {
            if !self.groups_in(person, org).contains(&grant.group) {
                continue;
            }
            any = true;
            match &grant.functions {
                Some(functions) if grant.claim != Some(Claim::Admin) => open.extend(functions.iter().copied()),
                Some(_) | None => return Some(None),
            }
        }
        any.then_some(Some(open))
    }

    /// Whether a person reaches a place, by their rights in the named organization if one is named (HD39).
    fn reaches(&self, person: usize, place: usize, named: Option<usize>) -> bool {
        let counts = |org: usize| named.is_none_or(|named| named == org);
        self.contracts[place].is_some_and(|(org, _)| counts(org)) && self.functions(person, place).is_some()
    }

    /// R6: a proof counts, an inference only while nobody else has proved the address.
    fn owns(&self, person: usize, wallet: usize) -> bool {
        let here = self.links.iter().filter(|link| link.1 == wallet);
        let mine = here.clone().find(|link| link.0 == person);
        let proved_elsewhere = here.clone().any(|link| link.0 != person && link.2);
        mine.is_some_and(|link| link.2 || !proved_elsewhere)
    }

    fn target(&self, person: usize, place: usize, selector: Option<usize>) -> Option<&'static str> {
        if self.contracts[place].is_none() {
            return Some("unregistered");
        }
        match self.functions(person, place) {
            None => Some("contract_not_permitted"),
            Some(None) => None,
            Some(Some(open)) if selector.is_some_and(|asked| open.contains(&asked)) => None,
            Some(Some(_)) => Some("function_not_permitted"),
        }
    }

    /// HD13 under the default policy: the sender is the caller's, or nobody's; never that of somebody proved who may
    /// not send.
    fn sender(&self, person: usize, wallet: usize) -> Option<&'static str> {
        let here: Vec<_> = self.links.iter().filter(|link| link.1 == wallet).collect();
        let barred =
            |link: &&&(usize, usize, bool)| link.2 && link.0 != person && (self.banned[link.0] || !self.kyc[link.0]);
        if here.iter().any(|link| barred(&link)) {
            return Some("sender_not_owned");
        }
        (!self.owns(person, wallet) && !here.is_empty()).then_some("sender_not_owned")
    }

    /// The outcome, in the words of [`verdict`]. `named`: the organization in the path.
    fn outcome(&self, person: usize, asked: &Asked, named: Option<usize>) -> String {
        if self.banned[person] {
            return "banned".to_owned();
        }
        let method = match asked {
            Asked::Meta => return "FORWARD".to_owned(),
            Asked::Chain => Method::Syncing,
            Asked::Balance(_) | Asked::BalanceOfWallet(_) => Method::GetBalance,
            Asked::Call { .. } => Method::Call,
            Asked::Send { .. } => Method::SendRawTransaction,
        };
        if method == Method::SendRawTransaction && !self.kyc[person] {
            return "kyc_required".to_owned();
        }
        let mine = self.orgs_of(person);
        // Whose rights judge: the owner of what is touched, where its owner may make a difference at all.
        let owner = match asked {
            Asked::Call { place, .. } | Asked::Send { place, .. } => self.contracts[*place].map(|(org, _)| org),
            // HD39: reach in another organization than the named one counts for nothing, and nothing is zero (K8).
            Asked::Balance(place) if self.reaches(person, *place, named) => self.contracts[*place].map(|(org, _)| org),
            Asked::Balance(_) | Asked::Meta | Asked::Chain | Asked::BalanceOfWallet(_) => None,
        };
        let judged = match (owner, named) {
            (_, Some(named)) if !mine.contains(&named) => return "org_mismatch".to_owned(),
            (Some(owner), _) if !mine.contains(&owner) => return "foreign_org".to_owned(),
            (Some(owner), Some(named)) if owner != named => return "org_mismatch".to_owned(),
            (Some(owner), _) => vec![owner],
            (None, Some(named)) => vec![named],
            (None, None) if method == Method::SendRawTransaction && mine.len() > 1 => {
                return "org_ambiguous".to_owned();
            }
            (None, None) => mine,
        };
        if !self.lists(person, &judged, method) {
            return "method_not_allowed".to_owned();
        }
        let refusal = match asked {
            Asked::Meta | Asked::Chain => None,
            Asked::Balance(place) => {
                return if self.reaches(person, *place, named) {
                    "FORWARD"
                } else {
                    "ZERO"
                }
                .to_owned();
            }
            Asked::BalanceOfWallet(wallet) => {
                return if self.owns(person, *wallet) { "FORWARD" } else { "ZERO" }.to_owned();
            }
            Asked::Call { place, selector } => self.target(person, *place, *selector),
            Asked::Send {
                place,
                selector,
                sender,
            } => self
                .target(person, *place, *selector)
                .or_else(|| self.sender(person, *sender)),
        };
        let allowed = match asked {
            Asked::Call { .. } => "TRACE",
            Asked::Send { .. } => "SEND",
            _ => "FORWARD",
        };
        refusal.unwrap_or(allowed).to_owned()
    }
}

fn put(ask: &Ask<'_>, asked: &Asked) -> String {
    let input = |at: &Option<usize>| at.map_or_else(Vec::new, |at| selector(SIGNATURES[at]).to_vec());
    let place = |at: usize| -> Address { address_of(PLACES[at]) };
    verdict(&match asked {
        Asked::Meta => ask.rpc("eth_chainId", json!([])),
        Asked::Chain => ask.rpc("eth_syncing", json!([])),
        Asked::Balance(at) => ask.rpc("eth_getBalance", json!([place(*at), "latest"])),
        Asked::BalanceOfWallet(at) => ask.rpc("eth_getBalance", json!([address_of(WALLETS[*at]), "latest"])),
        Asked::Call { place: at, selector } => ask.eth_call(place(*at), input(selector)),
        Asked::Send {
            place: at,
            selector,
            sender,
        } => {
            // Not a plain payment, which has rules of its own: without a selector there is one byte.
            let data = if selector.is_some() { input(selector) } else { vec![1] };
            ask.send_raw(address_of(WALLETS[*sender]), Some(place(*at)), data)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The engine and the flat rules agree, reason for reason.
    #[test]
    fn the_engine_agrees_with_the_rules_read_from_lists(
        rows in rows(),
        asked in asked(),
        person in 0..PEOPLE.len(),
        named in proptest::option::weighted(0.3, 0..ORGS.len()),
    ) {
        let snapshot = rows.build().snapshot();
        let mut ask = ask(&snapshot, PEOPLE[person]);
        if let Some(named) = named {
            ask = ask.naming(ORGS[named]);
        }
        prop_assert_eq!(put(&ask, &asked), rows.outcome(person, &asked, named), "{:?}", asked);
    }
}
