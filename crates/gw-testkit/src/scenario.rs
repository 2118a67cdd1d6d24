//! Random scenarios for noninterference (spec/30 section 10): memberships, owners of wallets and one block of
//! transactions, and what others may add to them without any effect on a viewer.
//!
//! Two organizations `a` and `b` have contracts; a scenario says who is in which of their groups. Users, wallets and
//! contracts are named, as in [`gw_policy::testing`]. The scenario itself says, by the table of spec/30 section 2.3,
//! what concerns a user: an independent statement of what the policy core decides.

use alloy_primitives::{B256, keccak256};
use gw_policy::{
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{FUTURE, World, address_of, world},
};
use gw_types::Claim;
use proptest::{prelude::*, sample::select};
use std::{collections::BTreeSet, ops::Range};

/// The users.
pub const USERS: [&str; 5] = ["u0", "u1", "u2", "u3", "u4"];
/// The wallets. The first five may have owners from the start; those of `s0` and `s1` come later.
pub const WALLETS: [&str; 7] = ["w0", "w1", "w2", "w3", "w4", "s0", "s1"];
/// The contracts. All of them have code from the start; `c-token` is registered later, `nobody's` never.
pub const CONTRACTS: [&str; 6] = ["a-token", "a-plain", "b-token", "b-multi", "nobody's", "c-token"];

const GROUPS: [&str; 5] = ["a/admins", "a/staff", "a/own", "b/staff", "b/rest"];
const WALLETS_WITH_OWNERS: usize = 5;

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

const MULTI: &str = r#"[{"type":"event","name":"Paid","anonymous":false,"inputs":[
    {"name":"who","type":"address","indexed":true},{"name":"pair","type":"address[2]","indexed":false}]}]"#;

/// The random part of a world.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The groups of each user.
    pub members: Vec<Vec<&'static str>>,
    /// The owner of each wallet, as an index of [`USERS`].
    pub owners: Vec<Option<usize>>,
    /// The transactions of the block.
    pub transactions: Vec<ScenarioTx>,
}

/// A transaction of the block.
#[derive(Clone, Debug)]
pub struct ScenarioTx {
    /// Its name, from which its hash is derived.
    pub name: String,
    /// The wallet of the sender.
    pub from: &'static str,
    /// A wallet or contract; `None` for a creation.
    pub to: Option<&'static str>,
    /// A wallet in its input and access list.
    pub mentions: &'static str,
    /// The users whom the sender shows it, as indexes of [`USERS`].
    pub shared_with: Vec<usize>,
    /// The emitter of each log, and the wallets in it.
    pub logs: Vec<(&'static str, [&'static str; 3])>,
}

/// Transactions to add, each with an index in the block.
pub type Additions = Vec<(ScenarioTx, prop::sample::Index)>;

/// A scenario after others have acted.
#[derive(Clone, Debug)]
pub struct Grown {
    /// The scenario with the added transactions.
    pub scenario: Scenario,
    /// The world of the new scenario.
    pub world: World,
    /// The added transactions. None of them concerns the viewer.
    pub hidden: Vec<ScenarioTx>,
}

/// Scenarios with this many transactions.
pub fn scenario(transactions: Range<usize>) -> impl Strategy<Value = Scenario> {
    (
        prop::collection::vec(prop::collection::vec(select(GROUPS.to_vec()), 0..3), USERS.len()),
        prop::collection::vec(prop::option::weighted(0.8, 0..USERS.len()), WALLETS_WITH_OWNERS),
        prop::collection::vec(transaction(), transactions),
    )
        .prop_map(|(members, owners, transactions)| Scenario {
            members,
            owners,
            transactions: with_names("t", transactions),
        })
}

/// Additions of this many transactions.
pub fn additions(transactions: Range<usize>) -> impl Strategy<Value = Additions> {
    prop::collection::vec((transaction(), any::<prop::sample::Index>()), transactions)
}

/// The word of an address.
pub fn word(name: &str) -> B256 {
    address_of(name).into_word()
}

/// The topic of `Transfer(address,address,uint256)`.
pub fn transfer() -> B256 {
    keccak256("Transfer(address,address,uint256)")
}

impl Scenario {
    /// The world of the scenario.
    pub fn world(&self) -> World {
        let own = |index| EventRule {
            topic0: transfer(),
            params: vec![ParamRule {
                index,
                must_be: Constraint::Own,
            }],
        };
        let mut world = world()
            .org("a")
            .group("admins")
            .every_method()
            .org_admin()
            .group("staff")
            .every_method()
            .group("own")
            .every_method()
            .contract("a-token")
            .abi(TRANSFER)
            .grant("staff")
            .grant("own")
            .events([own(0), own(1)])
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
            world = world.user(user);
            world = groups.iter().fold(world, |world, group| world.member(group));
        }
        for (wallet, owner) in WALLETS.iter().zip(&self.owners) {
            let owner = owner.iter().filter_map(|owner| USERS.get(*owner));
            world = owner.fold(world, |world, owner| world.user(owner).link(wallet));
        }
        shares(world, "u0", &self.transactions)
    }

    /// The scenario after others have acted: transactions that do not concern `viewer`, at any index of the block; a
    /// new organization with users, links, a contract and a reservation; new colleagues with links, groups and grants
    /// in the old organizations; transactions shared with others. `viewer` is an index of [`USERS`], `None` for an
    /// anonymous caller.
    #[must_use]
    pub fn grown(&self, viewer: Option<usize>, additions: Additions) -> Grown {
        let (added, indexes): (Vec<_>, Vec<_>) = additions.into_iter().unzip();
        let (mut scenario, mut hidden) = (self.clone(), Vec::new());
        for (tx, index) in with_names("hidden", added).into_iter().zip(indexes) {
            if viewer.is_none_or(|viewer| !self.concerns(viewer, &tx)) {
                let index = index.index(scenario.transactions.len() + 1);
                scenario.transactions.insert(index, tx.clone());
                hidden.push(tx);
            }
        }
        let world = self
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
            .every_method()
            .user("newcomer")
            .member("c/all")
            .member("b/fresh")
            .link("s0")
            .user("colleague")
            .member("a/fresh")
            .member("a/staff")
            .link("s1")
            .system_link("random")
            .org("c")
            .contract("c-token")
            .abi(TRANSFER)
            .deployed_by("newcomer")
            .grant("all")
            .user("newcomer")
            .reservation("c-soon", FUTURE)
            // New grants on old contracts, for newcomers only.
            .org("b")
            .contract("b-token")
            .grant("fresh")
            .grant_claim(Claim::Upgrade)
            .org("a")
            .contract("a-plain")
            .grant("fresh");
        let world = shares(world, "newcomer", &hidden);
        // Old transactions are shared with more users.
        let unshared = self.transactions.iter().filter(|tx| tx.shared_with.is_empty());
        let world = unshared.fold(world.user("newcomer"), |world, tx| {
            world.share(&tx.name, &["colleague"])
        });
        Grown {
            scenario,
            world,
            hidden,
        }
    }

    /// Whether the user owns the wallet.
    pub fn owns(&self, user: usize, wallet: &str) -> bool {
        let index = WALLETS.iter().position(|name| *name == wallet);
        index.and_then(|index| self.owners.get(index).copied().flatten()) == Some(user)
    }

    fn is_in(&self, user: usize, group: &str) -> bool {
        self.members.get(user).is_some_and(|groups| groups.contains(&group))
    }

    /// Whether the user sees the contract, by the table of spec/30 section 2.3.
    pub fn sees_contract(&self, user: usize, contract: &str) -> bool {
        match contract {
            "a-token" => ["a/admins", "a/staff", "a/own"]
                .iter()
                .any(|group| self.is_in(user, group)),
            "a-plain" => ["a/admins", "a/staff"].iter().any(|group| self.is_in(user, group)),
            "b-token" | "b-multi" => self.is_in(user, "b/staff"),
            _ => false,
        }
    }

    fn is_party(&self, user: usize, tx: &ScenarioTx) -> bool {
        self.owns(user, tx.from) || tx.to.is_some_and(|to| self.owns(user, to))
    }

    /// Whether the user may see anything of the transaction: as a party, a recipient, an administrator of its receiver,
    /// or a viewer of one of its emitters.
    pub fn concerns(&self, user: usize, tx: &ScenarioTx) -> bool {
        let is_administered = |to: &str| to.starts_with("a-") && self.is_in(user, "a/admins");
        self.is_party(user, tx)
            || tx.shared_with.contains(&user)
            || tx.to.is_some_and(is_administered)
            || tx.logs.iter().any(|(emitter, _)| self.sees_contract(user, emitter))
    }

    /// The names of all addresses that may appear in answers to the user.
    pub fn readable(&self, user: usize) -> BTreeSet<&'static str> {
        let mut names: BTreeSet<&str> = WALLETS.into_iter().filter(|wallet| self.owns(user, wallet)).collect();
        names.extend(
            CONTRACTS
                .into_iter()
                .filter(|contract| self.sees_contract(user, contract)),
        );
        for tx in &self.transactions {
            let is_party = self.is_party(user, tx);
            if is_party || tx.shared_with.contains(&user) {
                names.extend([tx.from, tx.mentions].into_iter().chain(tx.to));
                names.extend(tx.logs.iter().map(|(emitter, _)| *emitter));
            }
            if is_party {
                names.extend(tx.logs.iter().flat_map(|(_, parties)| *parties));
            }
        }
        names
    }
}

fn transaction() -> impl Strategy<Value = ScenarioTx> {
    let wallet = || select(WALLETS.to_vec());
    let to = prop_oneof![
        wallet().prop_map(Some),
        select(CONTRACTS.to_vec()).prop_map(Some),
        Just(None)
    ];
    let log = (select(CONTRACTS.to_vec()), [wallet(), wallet(), wallet()]);
    (
        wallet(),
        to,
        wallet(),
        prop::collection::vec(0..USERS.len(), 0..2),
        prop::collection::vec(log, 0..4),
    )
        .prop_map(|(from, to, mentions, shared_with, logs)| ScenarioTx {
            name: String::new(),
            from,
            to,
            mentions,
            shared_with,
            logs,
        })
}

fn with_names(prefix: &str, mut transactions: Vec<ScenarioTx>) -> Vec<ScenarioTx> {
    for (index, tx) in transactions.iter_mut().enumerate() {
        tx.name = format!("{prefix}{index}");
    }
    transactions
}

fn shares(world: World, sender: &str, transactions: &[ScenarioTx]) -> World {
    transactions
        .iter()
        .filter(|tx| !tx.shared_with.is_empty())
        .fold(world.user(sender), |world, tx| {
            let recipients = tx.shared_with.iter().filter_map(|user| USERS.get(*user).copied());
            world.share(&tx.name, &recipients.collect::<Vec<_>>())
        })
}
