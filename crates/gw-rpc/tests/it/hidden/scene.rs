//! Random worlds: memberships, owners of wallets, one block of transactions, and additions that one viewer may not
//! notice.

use alloy_primitives::keccak256;
use gw_evm::{Class, Method};
use gw_policy::{
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{FUTURE, World, address_of, function, world},
};
use gw_types::{B256, Claim};
use proptest::{prelude::*, sample::select};

pub(super) const USERS: [&str; 4] = ["u0", "u1", "u2", "u3"];
pub(super) const WALLETS: [&str; 7] = ["w0", "w1", "w2", "w3", "w4", "s0", "s1"];
const GROUPS: [&str; 5] = ["a/admins", "a/staff", "a/own", "b/staff", "b/rest"];
/// All of them have code from the start; `c-token` is registered later, `nobody's` never.
pub(super) const CONTRACTS: [&str; 6] = ["a-token", "a-plain", "b-token", "b-multi", "nobody's", "c-token"];
/// Further queried addresses: one that is reserved later, and an unknown one.
pub(super) const OTHERS: [&str; 2] = ["c-soon", "random"];

/// The random part of a world.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) members: Vec<Vec<&'static str>>,
    pub(super) owners: Vec<Option<usize>>,
    pub(super) transactions: Vec<Tx>,
    /// `None` for an anonymous viewer.
    pub(super) viewer: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Tx {
    pub(super) name: String,
    pub(super) from: &'static str,
    pub(super) to: Option<&'static str>,
    pub(super) mentions: &'static str,
    pub(super) shared_with: Vec<usize>,
    pub(super) logs: Vec<(&'static str, [&'static str; 3])>,
}

/// Transactions to add, each with an index in the block.
pub(super) type More = Vec<(Tx, prop::sample::Index)>;

fn tx() -> impl Strategy<Value = Tx> {
    let wallet = || select(WALLETS.to_vec());
    let to = prop_oneof![
        wallet().prop_map(Some),
        select(CONTRACTS.to_vec()).prop_map(Some),
        Just(None)
    ];
    let entry = (select(CONTRACTS.to_vec()), [wallet(), wallet(), wallet()]);
    (
        wallet(),
        to,
        wallet(),
        prop::collection::vec(0..USERS.len(), 0..2),
        prop::collection::vec(entry, 0..4),
    )
        .prop_map(|(from, to, mentions, shared_with, logs)| Tx {
            name: String::new(),
            from,
            to,
            mentions,
            shared_with,
            logs,
        })
}

pub(super) fn more() -> impl Strategy<Value = More> {
    prop::collection::vec((tx(), any::<prop::sample::Index>()), 4..10)
}

pub(super) fn scene() -> impl Strategy<Value = Scene> {
    (
        prop::collection::vec(prop::collection::vec(select(GROUPS.to_vec()), 0..3), USERS.len()),
        prop::collection::vec(prop::option::weighted(0.8, 0..USERS.len()), 5),
        prop::collection::vec(tx(), 2..6),
        prop::option::weighted(0.9, 0..USERS.len()),
    )
        .prop_map(|(members, owners, mut transactions, viewer)| {
            name(&mut transactions, "t");
            Scene {
                members,
                owners,
                transactions,
                viewer,
            }
        })
}

fn name(transactions: &mut [Tx], prefix: &str) {
    for (index, tx) in transactions.iter_mut().enumerate() {
        tx.name = format!("{prefix}{index}");
    }
}

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

const MULTI: &str = r#"[{"type":"event","name":"Paid","anonymous":false,"inputs":[
    {"name":"who","type":"address","indexed":true},{"name":"pair","type":"address[2]","indexed":false}]}]"#;

pub(super) fn transfer() -> B256 {
    keccak256("Transfer(address,address,uint256)")
}

/// The function that restricted callers may call.
pub(super) const ASK: &str = "ask(address)";

impl Scene {
    pub(super) fn viewer(&self) -> Option<&'static str> {
        self.viewer.map(|user| USERS[user])
    }

    pub(super) fn world(&self) -> World {
        let own = |index| EventRule {
            topic0: transfer(),
            params: vec![ParamRule {
                index,
                must_be: Constraint::Own,
            }],
        };
        let open = |method: &&Method| matches!(method.class(), Class::Meta | Class::Chain | Class::Tx | Class::Block);
        let mut policy_world = world()
            .org("anonymous")
            .group("anonymous")
            .methods(Method::ALL.iter().filter(open).copied())
            .org("a")
            .group("admins")
            .every_method()
            .org_admin()
            .group("staff")
            .every_method()
            .claim(Claim::Deploy)
            .group("own")
            .every_method()
            .contract("a-token")
            .abi(TRANSFER)
            .grant("staff")
            .grant("own")
            .events([own(0), own(1)])
            .functions([function(ASK, [])])
            .contract("a-plain")
            .grant("staff")
            .org("b")
            .group("staff")
            .every_method()
            .group("rest")
            .every_method()
            .contract("b-token")
            .abi(TRANSFER)
            .grant("staff")
            .contract("b-multi")
            .abi(MULTI)
            .grant("staff");
        for (user, groups) in USERS.iter().zip(&self.members) {
            policy_world = policy_world.user(user);
            policy_world = groups
                .iter()
                .fold(policy_world, |policy_world, group| policy_world.member(group));
        }
        for (wallet, owner) in WALLETS.iter().zip(&self.owners) {
            policy_world = owner.iter().fold(policy_world, |policy_world, owner| {
                policy_world.user(USERS[*owner]).link(wallet)
            });
        }
        shares(policy_world, "u0", &self.transactions)
    }

    /// The world after others have acted: transactions that do not concern the viewer, at any index of the block; a new
    /// organization with users, links, a contract and a reservation; new colleagues with links, groups and grants in
    /// the old organizations; transactions shared with others.
    ///
    /// The added transactions are returned as well.
    pub(super) fn grown(&self, more: More) -> (Self, World, Vec<Tx>) {
        let mut scene = self.clone();
        let (mut added, indexes): (Vec<Tx>, Vec<_>) = more.into_iter().unzip();
        name(&mut added, "hidden");
        let mut hidden = Vec::new();
        for (tx, index) in added.into_iter().zip(indexes) {
            if self.viewer.is_none_or(|viewer| !self.concerns(viewer, &tx)) {
                scene
                    .transactions
                    .insert(index.index(scene.transactions.len() + 1), tx.clone());
                hidden.push(tx);
            }
        }
        let grown = self
            .world()
            .org("c")
            .group("all")
            .every_method()
            .claim(Claim::Deploy)
            .org("a")
            .group("fresh")
            .every_method()
            .org_admin()
            .org("b")
            .group("fresh")
            .every_method();
        let grown = grown
            .user("newcomer")
            .member("c/all")
            .member("b/fresh")
            .link("s0")
            .user("colleague")
            .member("a/fresh")
            .member("a/staff")
            .link("s1")
            .system_link("random");
        let grown = grown
            .org("c")
            .contract("c-token")
            .abi(TRANSFER)
            .deployed_by("newcomer")
            .grant("all");
        let grown = grown.user("newcomer").reservation("c-soon", FUTURE);
        // New grants on old contracts, for newcomers only.
        let grown = grown
            .org("b")
            .contract("b-token")
            .grant("fresh")
            .grant_claim(Claim::Upgrade);
        let grown = grown.org("a").contract("a-plain").grant("fresh");
        let grown = shares(grown, "newcomer", &hidden);
        // Old transactions are shared with more users.
        let unshared = self.transactions.iter().filter(|tx| tx.shared_with.is_empty());
        let grown = unshared.fold(grown.user("newcomer"), |grown, tx| {
            grown.share(&tx.name, &["colleague"])
        });
        (scene, grown, hidden)
    }

    fn owns(&self, user: usize, wallet: &str) -> bool {
        let index = WALLETS.iter().position(|name| *name == wallet);
        index.and_then(|index| self.owners.get(index).copied().flatten()) == Some(user)
    }

    fn is_in(&self, user: usize, group: &str) -> bool {
        self.members[user].contains(&group)
    }

    /// Whether the user sees the contract, by the table of spec/30 section 2.3.
    fn sees_contract(&self, user: usize, contract: &str) -> bool {
        match contract {
            "a-token" => ["a/admins", "a/staff", "a/own"]
                .iter()
                .any(|group| self.is_in(user, group)),
            "a-plain" => ["a/admins", "a/staff"].iter().any(|group| self.is_in(user, group)),
            "b-token" | "b-multi" => self.is_in(user, "b/staff"),
            _ => false,
        }
    }

    /// Whether the user may see anything of the transaction: as a party, a recipient, an administrator of its receiver,
    /// or a viewer of one of its emitters.
    fn concerns(&self, user: usize, tx: &Tx) -> bool {
        let administered = |to: &str| to.starts_with("a-") && self.is_in(user, "a/admins");
        self.owns(user, tx.from)
            || tx.to.is_some_and(|to| self.owns(user, to) || administered(to))
            || tx.shared_with.contains(&user)
            || tx.logs.iter().any(|(emitter, _)| self.sees_contract(user, emitter))
    }
}

fn shares(world: World, sender: &str, transactions: &[Tx]) -> World {
    transactions
        .iter()
        .filter(|tx| !tx.shared_with.is_empty())
        .fold(world.user(sender), |world, tx| {
            let recipients: Vec<&str> = tx.shared_with.iter().map(|user| USERS[*user]).collect();
            world.user(sender).share(&tx.name, &recipients)
        })
}

pub(super) fn word(name: &str) -> B256 {
    address_of(name).into_word()
}
