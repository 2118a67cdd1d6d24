//! A second, simple implementation of the rules: lists of rows that are scanned for every request. It shares only the
//! names of the outcomes with the engine, and must agree with it for every world and every call.
//!
//! Event rules, traces and reservations are left out; they have their own property tests.

use super::support::{RequestBuilder, request_as, verdict};
use gw_evm::Method;
use gw_policy::testing::{FUTURE, PAST, World, address_of, function, selector, world};
use gw_types::{Address, Claim};
use proptest::prelude::*;
use serde_json::json;

const ORGS: [&str; 2] = ["bank", "rival"];
const GROUPS: [&str; 2] = ["readers", "makers"];
const PEOPLE: [&str; 3] = ["ann", "bob", "eve"];
const TARGETS: [&str; 4] = ["p0", "p1", "p2", "p3"];
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
    target: usize,
    group: usize,
    /// `None`: all functions.
    functions: Option<Vec<usize>>,
    claim: Option<Claim>,
}

/// All rows of a world.
#[derive(Clone, Debug)]
struct Rows {
    groups: Vec<GroupRow>,
    /// Person, group, and whether the membership has expired.
    members: Vec<(usize, usize, bool)>,
    /// Owner and deployer of each target; `None` if the target is not registered.
    contracts: Vec<Option<(usize, Option<usize>)>>,
    grants: Vec<GrantRow>,
    /// Person, wallet, and whether the link is proved.
    links: Vec<(usize, usize, bool)>,
    banned: Vec<bool>,
    kyc: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Operation {
    Meta,
    Chain,
    Balance(usize),
    BalanceOfWallet(usize),
    Call {
        target: usize,
        selector: Option<usize>,
    },
    Send {
        target: usize,
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
    let groups = proptest::collection::vec(group, ORGS.len() * GROUPS.len()).prop_map(|groups| {
        let row = |(index, (methods, claim, admin)): (usize, (Vec<Method>, Option<Claim>, bool))| {
            // A5: a group of administrators has no claims.
            let claim = claim.filter(|_| !admin);
            GroupRow {
                org: index / GROUPS.len(),
                name: index % GROUPS.len(),
                methods,
                claim,
                admin,
            }
        };
        groups.into_iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let all_groups = ORGS.len() * GROUPS.len();
    let members = proptest::collection::vec((0..PEOPLE.len(), 0..all_groups, any::<bool>()), 0..7);
    let owner = proptest::option::of((0..ORGS.len(), proptest::option::weighted(0.2, 0..PEOPLE.len())));
    let contracts = proptest::collection::vec(owner, TARGETS.len());
    let functions = proptest::option::of(proptest::sample::subsequence(vec![0, 1], 0..=2));
    let grants = proptest::collection::vec((0..TARGETS.len(), 0..all_groups, functions, claim()), 0..6);
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
            // Of several rows with the same key, only the first counts.
            for member in members {
                if !rows
                    .members
                    .iter()
                    .any(|existing| (existing.0, existing.1) == (member.0, member.1))
                {
                    rows.members.push(member);
                }
            }
            for (target, group, functions, claim) in grants {
                let owner = rows.contracts[target].map(|(owner, _)| owner);
                let is_owner_group = owner == Some(rows.groups[group].org);
                if is_owner_group
                    && !rows
                        .grants
                        .iter()
                        .any(|existing| (existing.target, existing.group) == (target, group))
                {
                    rows.grants.push(GrantRow {
                        target,
                        group,
                        functions,
                        claim,
                    });
                }
            }
            for link in links {
                if !rows
                    .links
                    .iter()
                    .any(|existing| (existing.0, existing.1) == (link.0, link.1))
                {
                    rows.links.push(link);
                }
            }
            rows
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let (target, wallet) = (0..TARGETS.len(), 0..WALLETS.len());
    let selector = || proptest::option::weighted(0.8, 0..SIGNATURES.len());
    prop_oneof![
        1 => Just(Operation::Meta),
        1 => Just(Operation::Chain),
        2 => target.clone().prop_map(Operation::Balance),
        1 => wallet.clone().prop_map(Operation::BalanceOfWallet),
        4 => (target.clone(), selector()).prop_map(|(target, selector)| Operation::Call { target, selector }),
        4 => (target, selector(), wallet)
            .prop_map(|(target, selector, sender)| Operation::Send { target, selector, sender }),
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
        for (index, person) in PEOPLE.iter().enumerate() {
            world = world.user(person);
            if self.banned[index] {
                world = world.banned();
            }
            if !self.kyc[index] {
                world = world.no_kyc();
            }
            for (_, group, over) in self.members.iter().filter(|row| row.0 == index) {
                let group = &self.groups[*group];
                let path = format!("{}/{}", ORGS[group.org], GROUPS[group.name]);
                world = if *over {
                    world.member_until(&path, PAST)
                } else {
                    world.member_until(&path, FUTURE)
                };
            }
            for (_, wallet, proved) in self.links.iter().filter(|row| row.0 == index) {
                world = if *proved {
                    world.link(WALLETS[*wallet])
                } else {
                    world.system_link(WALLETS[*wallet])
                };
            }
        }
        for (target, owner) in self.contracts.iter().enumerate() {
            let Some((org, deployer)) = owner else { continue };
            world = world.org(ORGS[*org]).contract(TARGETS[target]);
            if let Some(deployer) = deployer {
                world = world.deployed_by(PEOPLE[*deployer]);
            }
            for grant in self.grants.iter().filter(|grant| grant.target == target) {
                world = world.grant(GROUPS[self.groups[grant.group].name]);
                if let Some(functions) = &grant.functions {
                    world = world.functions(functions.iter().map(|index| function(SIGNATURES[*index], [])));
                }
                if let Some(claim) = grant.claim {
                    world = world.grant_claim(claim);
                }
            }
        }
        world
    }

    /// The groups of `org` in which a person has a membership that has not expired (A8).
    fn groups_in(&self, person: usize, org: usize) -> Vec<usize> {
        let is_active = |row: &&(usize, usize, bool)| row.0 == person && !row.2 && self.groups[row.1].org == org;
        self.members.iter().filter(is_active).map(|row| row.1).collect()
    }

    fn orgs_of(&self, person: usize) -> Vec<usize> {
        (0..ORGS.len())
            .filter(|org| !self.groups_in(person, *org).is_empty())
            .collect()
    }

    fn administers(&self, person: usize, org: usize) -> bool {
        let is_admin_group = |group: usize| self.groups[group].admin || self.groups[group].claim == Some(Claim::Admin);
        self.groups_in(person, org).into_iter().any(is_admin_group)
    }

    /// Whether a method list of one of these organizations contains the method. Either send method allows a raw send.
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

    /// The functions of a registered target that a person may call. `None` means no access, `Some(None)` means all
    /// functions.
    fn functions(&self, person: usize, target: usize) -> Option<Option<Vec<usize>>> {
        let (org, deployer) = self.contracts[target]?;
        if self.groups_in(person, org).is_empty() {
            return None;
        }
        if self.administers(person, org) || deployer == Some(person) {
            return Some(None);
        }
        let mut open = Vec::new();
        let mut any = false;
        for grant in self.grants.iter().filter(|grant| grant.target == target) {
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

    /// Whether a person has access to a target. If the request names an organization, only the rights there count
    /// (HD39).
    fn reaches(&self, person: usize, target: usize, named: Option<usize>) -> bool {
        let counts = |org: usize| named.is_none_or(|named| named == org);
        self.contracts[target].is_some_and(|(org, _)| counts(org)) && self.functions(person, target).is_some()
    }

    /// R6: a proved link always counts, an inferred one only while nobody else has proved the address.
    fn owns(&self, person: usize, wallet: usize) -> bool {
        let links = self.links.iter().filter(|link| link.1 == wallet);
        let own_link = links.clone().find(|link| link.0 == person);
        let proved_elsewhere = links.clone().any(|link| link.0 != person && link.2);
        own_link.is_some_and(|link| link.2 || !proved_elsewhere)
    }

    fn target(&self, person: usize, target: usize, selector: Option<usize>) -> Option<&'static str> {
        if self.contracts[target].is_none() {
            return Some("unregistered");
        }
        match self.functions(person, target) {
            None => Some("contract_not_permitted"),
            Some(None) => None,
            Some(Some(open)) if selector.is_some_and(|selector| open.contains(&selector)) => None,
            Some(Some(_)) => Some("function_not_permitted"),
        }
    }

    /// HD13 under the default policy: the sender belongs to the caller or to nobody. A sender that a banned or
    /// unverified person has proved is always rejected.
    fn sender(&self, person: usize, wallet: usize) -> Option<&'static str> {
        let links: Vec<_> = self.links.iter().filter(|link| link.1 == wallet).collect();
        let is_barred =
            |link: &&&(usize, usize, bool)| link.2 && link.0 != person && (self.banned[link.0] || !self.kyc[link.0]);
        if links.iter().any(|link| is_barred(&link)) {
            return Some("sender_not_owned");
        }
        (!self.owns(person, wallet) && !links.is_empty()).then_some("sender_not_owned")
    }

    /// The outcome, in the format of [`verdict`]. `named` is the organization in the path.
    fn outcome(&self, person: usize, operation: &Operation, named: Option<usize>) -> String {
        if self.banned[person] {
            return "banned".to_owned();
        }
        let method = match operation {
            Operation::Meta => return "FORWARD".to_owned(),
            Operation::Chain => Method::Syncing,
            Operation::Balance(_) | Operation::BalanceOfWallet(_) => Method::GetBalance,
            Operation::Call { .. } => Method::Call,
            Operation::Send { .. } => Method::SendRawTransaction,
        };
        if method == Method::SendRawTransaction && !self.kyc[person] {
            return "kyc_required".to_owned();
        }
        let own_orgs = self.orgs_of(person);
        // The organization whose rights apply is the owner of the target, if the owner affects the outcome.
        let owner = match operation {
            Operation::Call { target, .. } | Operation::Send { target, .. } => {
                self.contracts[*target].map(|(org, _)| org)
            }
            // HD39: access in an organization other than the named one does not count, and without access the balance
            // is zero (K8).
            Operation::Balance(target) if self.reaches(person, *target, named) => {
                self.contracts[*target].map(|(org, _)| org)
            }
            Operation::Balance(_) | Operation::Meta | Operation::Chain | Operation::BalanceOfWallet(_) => None,
        };
        let orgs = match (owner, named) {
            (_, Some(named)) if !own_orgs.contains(&named) => return "org_mismatch".to_owned(),
            (Some(owner), _) if !own_orgs.contains(&owner) => return "foreign_org".to_owned(),
            (Some(owner), Some(named)) if owner != named => return "org_mismatch".to_owned(),
            (Some(owner), _) => vec![owner],
            (None, Some(named)) => vec![named],
            (None, None) if method == Method::SendRawTransaction && own_orgs.len() > 1 => {
                return "org_ambiguous".to_owned();
            }
            (None, None) => own_orgs,
        };
        if !self.lists(person, &orgs, method) {
            return "method_not_allowed".to_owned();
        }
        let denial = match operation {
            Operation::Meta | Operation::Chain => None,
            Operation::Balance(target) => {
                return if self.reaches(person, *target, named) {
                    "FORWARD"
                } else {
                    "ZERO"
                }
                .to_owned();
            }
            Operation::BalanceOfWallet(wallet) => {
                return if self.owns(person, *wallet) { "FORWARD" } else { "ZERO" }.to_owned();
            }
            Operation::Call { target, selector } => self.target(person, *target, *selector),
            Operation::Send {
                target,
                selector,
                sender,
            } => self
                .target(person, *target, *selector)
                .or_else(|| self.sender(person, *sender)),
        };
        let allowed = match operation {
            Operation::Call { .. } => "TRACE",
            Operation::Send { .. } => "SEND",
            _ => "FORWARD",
        };
        denial.unwrap_or(allowed).to_owned()
    }
}

fn submit(request: &RequestBuilder<'_>, operation: &Operation) -> String {
    let input = |index: &Option<usize>| index.map_or_else(Vec::new, |index| selector(SIGNATURES[index]).to_vec());
    let target = |index: usize| -> Address { address_of(TARGETS[index]) };
    verdict(&match operation {
        Operation::Meta => request.rpc("eth_chainId", json!([])),
        Operation::Chain => request.rpc("eth_syncing", json!([])),
        Operation::Balance(index) => request.rpc("eth_getBalance", json!([target(*index), "latest"])),
        Operation::BalanceOfWallet(index) => {
            request.rpc("eth_getBalance", json!([address_of(WALLETS[*index]), "latest"]))
        }
        Operation::Call {
            target: index,
            selector,
        } => request.eth_call(target(*index), input(selector)),
        Operation::Send {
            target: index,
            selector,
            sender,
        } => {
            // Plain payments have their own rules, so a call without selector gets one byte of data.
            let data = if selector.is_some() { input(selector) } else { vec![1] };
            request.send_raw(address_of(WALLETS[*sender]), Some(target(*index)), data)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The engine and the simple rules agree on every outcome and reason.
    #[test]
    fn the_engine_agrees_with_the_simple_rules(
        rows in rows(),
        operation in operation(),
        person in 0..PEOPLE.len(),
        named in proptest::option::weighted(0.3, 0..ORGS.len()),
    ) {
        let snapshot = rows.build().snapshot();
        let mut request = request_as(&snapshot, PEOPLE[person]);
        if let Some(named) = named {
            request = request.in_org(ORGS[named]);
        }
        prop_assert_eq!(submit(&request, &operation), rows.outcome(person, &operation, named), "{:?}", operation);
    }
}
