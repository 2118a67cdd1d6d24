//! Random worlds with a chain of rows, and the viewers of it.

use alloy_primitives::keccak256;
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    settings::{DynamicFields, HiddenTransferMode, MissingAbiMode, PartialRowMode, TransactionLogs},
    snapshot::{Constraint, DisclosureScope, EventRule, Moment, ParamRule},
    testing::{FUTURE, NOW, World, address_of, hash_of, org_id, user_id, world},
    visibility::{
        LogData, LogRow, LogViewer, LogVisibility, TransactionRoles, TransactionRow,
        explorer::{FrameEntry, TransactionEntry, TransferEntry},
    },
};
use gw_types::{Address, B256, Level, Timestamp};
use proptest::{prelude::*, sample::select};

pub(super) const USERS: [&str; 5] = ["u0", "u1", "u2", "u3", "u4"];
/// Wallets that may be linked to users.
pub(super) const WALLETS: [&str; 5] = ["w0", "w1", "w2", "w3", "w4"];
/// Wallets that are nobody's.
pub(super) const STRANGERS: [&str; 2] = ["s0", "s1"];
pub(super) const GROUPS: [&str; 7] = ["a/admins", "a/staff", "a/own", "a/none", "b/staff", "b/claim", "b/none"];
/// `moved` belongs to `a` until [`LAST_OF_A`] and to `b` from [`FIRST_OF_B`] on; `ended` belonged to `a` until then;
/// `gone` was registered by `a`, and its registration was deleted; `wild` is unregistered code.
pub(super) const CONTRACTS: [&str; 8] = [
    "a-token", "a-plain", "b-token", "moved", "ended", "gone", "wild", "infra",
];
pub(super) const LAST_OF_A: u64 = 4;
pub(super) const FIRST_OF_B: u64 = 7;
/// The contract that a user may have reserved.
pub(super) const RESERVED: &str = "next";
const BLOCKS: u64 = 10;

pub(super) const TRANSFER: &str = "Transfer(address,address,uint256)";
const OTHER: &str = "Other(address)";
const ANONYMOUS: &str = "Anonymous";

const ABI: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]},
    {"type":"event","name":"Memo","anonymous":false,"inputs":[{"name":"text","type":"string","indexed":false}]},
    {"type":"event","name":"Raw","anonymous":true,"inputs":[
    {"name":"one","type":"address","indexed":true},{"name":"two","type":"address","indexed":true},
    {"name":"three","type":"address","indexed":true}]}]"#;

/// The address of this name; `zero` and `precompile` are the public ones.
pub(super) fn address(name: &str) -> Address {
    match name {
        "zero" => Address::ZERO,
        "precompile" => Address::with_last_byte(1),
        name => address_of(name),
    }
}

pub(super) fn all_names() -> Vec<&'static str> {
    [&WALLETS[..], &STRANGERS, &CONTRACTS, &[RESERVED, "zero", "precompile"]].concat()
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        2 => select(WALLETS.to_vec()),
        1 => select(CONTRACTS.to_vec()),
        1 => select(all_names()),
    ]
}

#[derive(Clone, Debug)]
pub(super) struct Tx {
    pub(super) name: String,
    pub(super) block: u64,
    pub(super) from: &'static str,
    pub(super) to: Option<&'static str>,
    pub(super) shared_with: Vec<usize>,
    pub(super) convicted: bool,
    pub(super) transfers: Vec<[&'static str; 3]>,
    pub(super) frames: Vec<(&'static str, Option<&'static str>)>,
    pub(super) logs: Vec<Log>,
}

#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) emitter: &'static str,
    pub(super) topics: Vec<B256>,
    pub(super) data: Vec<u8>,
}

fn log() -> impl Strategy<Value = Log> {
    let topic0 = select(vec![TRANSFER, OTHER, "Memo(string)", ANONYMOUS]);
    (
        select(CONTRACTS.to_vec()),
        topic0,
        [name(), name(), name()],
        0..=4_usize,
    )
        .prop_map(|(emitter, signature, names, topics)| {
            let [first, second, third] = names.map(|name| address(name).into_word());
            let all = [keccak256(signature), first, second, third];
            Log {
                emitter,
                topics: all.into_iter().take(topics).collect(),
                data: vec![0; 32],
            }
        })
}

/// The sides of a frame. Proxies and routers make frames between contracts.
fn frame() -> impl Strategy<Value = (&'static str, Option<&'static str>)> {
    prop_oneof![
        1 => (name(), prop::option::weighted(0.9, name())),
        1 => (select(CONTRACTS.to_vec()), select(CONTRACTS.to_vec()).prop_map(Some)),
    ]
}

fn tx() -> impl Strategy<Value = Tx> {
    (
        (name(), prop::option::weighted(0.85, name())),
        1..=BLOCKS,
        prop::collection::vec(0..USERS.len(), 0..2),
        prop::bool::weighted(0.1),
        prop::collection::vec((select(CONTRACTS.to_vec()), name(), name()), 0..3),
        prop::collection::vec(frame(), 0..3),
        prop::collection::vec(log(), 0..3),
    )
        .prop_map(
            |((from, to), block, shared_with, convicted, transfers, frames, logs)| Tx {
                name: String::new(),
                block,
                from,
                to,
                shared_with,
                convicted,
                transfers: transfers
                    .into_iter()
                    .map(|(token, from, to)| [token, from, to])
                    .collect(),
                frames,
                logs,
            },
        )
}

/// How a user is linked to a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Proved,
    Inferred,
    ByCode,
}

/// A grant of disclosure.
#[derive(Clone, Debug)]
pub(super) struct Disclosure {
    pub(super) owner: usize,
    pub(super) grantee: usize,
    pub(super) org: &'static str,
    pub(super) level: Level,
    pub(super) limits: Limits,
}

/// What limits a grant to some rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Limits {
    /// The first and the last block.
    pub(super) blocks: Option<(u64, u64)>,
    pub(super) addresses: Option<Vec<&'static str>>,
    pub(super) methods: Option<Vec<&'static str>>,
}

fn limits() -> impl Strategy<Value = Limits> {
    let blocks = (0..=BLOCKS, 0..=BLOCKS).prop_map(|(one, other)| (one.min(other), one.max(other)));
    let methods = select(vec![
        vec!["transaction_history"],
        vec!["activity_logs"],
        vec!["activity_logs", "full_disclosure"],
        vec!["eth_call"],
        vec![],
    ]);
    let some = (
        prop::option::of(blocks),
        prop::option::weighted(0.4, prop::collection::vec(name(), 0..3)),
        prop::option::weighted(0.3, methods),
    )
        .prop_map(|(blocks, addresses, methods)| Limits {
            blocks,
            addresses,
            methods,
        });
    prop_oneof![1 => Just(Limits::default()), 2 => some]
}

/// The random part of a world.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) members: Vec<Vec<&'static str>>,
    pub(super) links: Vec<(usize, &'static str, Link)>,
    pub(super) disclosures: Vec<Disclosure>,
    pub(super) deployer: Option<usize>,
    pub(super) reserved_by: Option<usize>,
    pub(super) closed: Vec<&'static str>,
    pub(super) transactions: Vec<Tx>,
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    let link = (
        0..USERS.len(),
        select([&WALLETS[..], &["a-plain", "wild"]].concat()),
        prop_oneof![
            4 => Just(Link::Proved),
            1 => Just(Link::Inferred),
            1 => Just(Link::ByCode)
        ],
    );
    let level = select(vec![Level::Hidden, Level::Redacted, Level::Pseudonymous, Level::Full]);
    let disclosure = (
        any::<prop::sample::Index>(),
        0..USERS.len(),
        select(vec!["a", "b"]),
        (level, limits()),
        prop::bool::weighted(0.8),
    );
    (
        prop::collection::vec(prop::collection::vec(select(GROUPS.to_vec()), 0..3), USERS.len()),
        prop::collection::vec(link, 0..7),
        prop::collection::vec(disclosure, 0..4),
        prop::option::of(0..USERS.len()),
        prop::option::of(0..USERS.len()),
        prop::collection::vec(select(vec!["a-token", "b-token", "w0", "infra"]), 0..2),
        prop::collection::vec(tx(), 0..8),
    )
        .prop_map(
            |(mut members, mut links, disclosures, deployer, reserved_by, closed, mut transactions)| {
                // The world builder knows one link of a user to an address, and one grant of a level to a person.
                links.sort_by_key(|(user, wallet, _)| (*user, *wallet));
                links.dedup_by_key(|(user, wallet, _)| (*user, *wallet));
                let mut disclosures: Vec<_> = disclosures
                    .into_iter()
                    .filter(|_| !links.is_empty())
                    .map(|(link, grantee, org, (level, limits), joins)| {
                        // A grant counts for members of its organization only (R7).
                        if joins {
                            members[grantee].push(if org == "a" { "a/none" } else { "b/none" });
                        }
                        let (owner, ..) = links[link.index(links.len())];
                        Disclosure {
                            owner,
                            grantee,
                            org,
                            level,
                            limits,
                        }
                    })
                    .collect();
                let key = |grant: &Disclosure| (grant.owner, grant.grantee, grant.level, grant.limits.clone());
                disclosures.sort_by_key(key);
                disclosures.dedup_by_key(|grant| key(grant));
                transactions.sort_by_key(|tx| tx.block);
                for (index, tx) in transactions.iter_mut().enumerate() {
                    tx.name = format!("t{index}");
                }
                Scenario {
                    members,
                    links,
                    disclosures,
                    deployer,
                    reserved_by,
                    closed,
                    transactions,
                }
            },
        )
}

impl Scenario {
    pub(super) fn world(&self) -> World {
        let rule = |signature: &str, params: Vec<ParamRule>| EventRule {
            topic0: keccak256(signature),
            params,
        };
        let own = |index| ParamRule {
            index,
            must_be: Constraint::Own,
        };
        let mut built = world()
            .org("a")
            .group("admins")
            .org_admin()
            .group("staff")
            .group("own")
            .group("none")
            .org("b")
            .group("staff")
            .claim(gw_types::Claim::Deploy)
            .group("claim")
            .claim(gw_types::Claim::Admin)
            .group("none");
        for (index, user) in USERS.iter().enumerate() {
            built = built.user(user);
            built = self.members[index]
                .iter()
                .fold(built, |built, group| built.member(group));
        }
        built = built
            .org("a")
            .contract("a-token")
            .abi(ABI)
            .grant("staff")
            .grant("own")
            .events([rule(TRANSFER, vec![own(0)]), rule(OTHER, vec![])])
            .grant("none")
            .events([]);
        if let Some(deployer) = self.deployer {
            built = built.deployed_by(USERS[deployer]);
        }
        built = built
            .contract("a-plain")
            .visibleto_unlock()
            .grant("staff")
            .events([rule(OTHER, vec![])])
            .grant("own")
            .events([rule(TRANSFER, vec![own(1)]), rule("Memo(string)", vec![own(0), own(2)])])
            .contract("moved")
            .grant("staff")
            .owned_until(LAST_OF_A)
            .contract("ended")
            .grant("own")
            .owned_until(LAST_OF_A)
            .contract("gone")
            .grant("staff")
            .retired()
            .org("b")
            .contract("b-token")
            .abi(ABI)
            .dynamic_payload()
            .grant("staff")
            .owned_from("moved", FIRST_OF_B)
            .grant("staff")
            .shared("infra");
        for (user, wallet, kind) in &self.links {
            built = built.user(USERS[*user]);
            built = match kind {
                Link::Proved => built.link(wallet),
                Link::Inferred => built.system_link(wallet),
                Link::ByCode => built.contract_link(wallet),
            };
        }
        for grant in &self.disclosures {
            built = built
                .org(grant.org)
                .user(USERS[grant.owner])
                .disclosed_within(USERS[grant.grantee], grant.scope());
        }
        if let Some(user) = self.reserved_by {
            built = built.org("b").user(USERS[user]).reservation(RESERVED, FUTURE);
        }
        for name in &self.closed {
            built = built.quarantined(name);
        }
        for tx in &self.transactions {
            if !tx.shared_with.is_empty() {
                let recipients: Vec<&str> = tx.shared_with.iter().map(|user| USERS[*user]).collect();
                built = built.user("u0").share(&tx.name, &recipients);
            }
            if tx.convicted {
                built = built.convicted(hash_of(&tx.name), "u0");
            }
        }
        built
    }
}

impl Disclosure {
    fn scope(&self) -> DisclosureScope {
        let Limits {
            blocks,
            addresses,
            methods,
        } = &self.limits;
        DisclosureScope {
            level: self.level,
            dates: blocks.map(|(first, last)| (block_time(first), block_time(last))),
            addresses: addresses
                .as_ref()
                .map(|names| names.iter().map(|name| address(name)).collect()),
            methods: methods
                .as_ref()
                .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }
}

impl Tx {
    pub(super) fn row(&self) -> TransactionRow {
        TransactionRow {
            hash: hash_of(&self.name),
            from: address(self.from),
            to: self.to.map(address),
            moment: Moment::Block(self.block),
            time: Some(block_time(self.block)),
        }
    }

    pub(super) fn transfer_entries(&self) -> Vec<TransferEntry> {
        let entry = |[token, from, to]: &[&str; 3]| TransferEntry {
            token: address(token),
            from: address(from),
            to: address(to),
        };
        self.transfers.iter().map(entry).collect()
    }

    pub(super) fn frame_entries(&self) -> Vec<FrameEntry> {
        let entry = |(from, to): &(&str, Option<&str>)| FrameEntry {
            from: address(from),
            to: to.map(address),
        };
        self.frames.iter().map(entry).collect()
    }

    pub(super) fn entry<'a>(&self, transfers: &'a [TransferEntry]) -> TransactionEntry<'a> {
        TransactionEntry {
            row: self.row(),
            created: self.to.is_none().then(|| address("wild")),
            transfers,
        }
    }
}

impl Log {
    pub(super) fn visibility(&self, viewer: &Viewer<'_>, tx: &Tx) -> LogVisibility {
        let (row, transaction) = (self.row(tx), tx.row());
        let roles = TransactionRoles::new(viewer, row.tx_hash, Some((transaction.from, transaction.to)));
        LogViewer::new(viewer).log(&row, roles).unwrap()
    }

    fn row(&self, tx: &Tx) -> LogRow<'_> {
        LogRow {
            emitter: address(self.emitter),
            tx_hash: hash_of(&tx.name),
            topics: &self.topics,
            data: LogData::Bytes(&self.data),
            moment: Moment::Block(tx.block),
        }
    }
}

/// Settings with every combination of the knobs that matter for rows.
pub(super) fn settings() -> impl Strategy<Value = PolicySettings> {
    (
        any::<[bool; 8]>(),
        select(vec![DynamicFields::Pass, DynamicFields::Zero, DynamicFields::Drop]),
    )
        .prop_map(
            |([one_sided, own_logs, shared_logs, abi, alias, members, anchor, claim], dynamic_fields)| {
                let logs = |all| {
                    if all {
                        TransactionLogs::All
                    } else {
                        TransactionLogs::Granted
                    }
                };
                PolicySettings {
                    one_sided: if one_sided {
                        PartialRowMode::Drop
                    } else {
                        PartialRowMode::Mask
                    },
                    participant_logs: logs(own_logs),
                    shared_logs: logs(shared_logs),
                    no_abi: if abi {
                        MissingAbiMode::Drop
                    } else {
                        MissingAbiMode::Pass
                    },
                    dynamic_fields,
                    alias_strip: alias,
                    org_admin_view_user_txs: members,
                    anchor: if anchor {
                        HiddenTransferMode::Keep
                    } else {
                        HiddenTransferMode::None
                    },
                    admin_claim_sees_all: claim,
                    ..PolicySettings::SPEC
                }
            },
        )
}

/// A viewer of a case: a user or nobody, maybe impersonated, maybe with the rights in one organization only (HD39).
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) user: &'static str,
    pub(super) impersonator: Option<&'static str>,
    pub(super) org: Option<&'static str>,
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let user = select([&USERS[..], &["nobody"]].concat());
    let impersonator = prop::option::weighted(0.4, select(USERS.to_vec()));
    let org = prop::option::weighted(0.2, select(vec!["a", "b"]));
    (user, impersonator, org).prop_map(|(user, impersonator, org)| Case {
        user,
        impersonator,
        org,
    })
}

impl Case {
    pub(super) fn viewer<'s>(self, snapshot: &'s Snapshot, settings: &'s PolicySettings) -> Viewer<'s> {
        let viewer = viewer(snapshot, self.user, settings).scoped_to_org(self.org.map(org_id));
        match self.impersonator {
            None => viewer,
            Some(impersonator) => viewer.restricted_to(user_id(impersonator)),
        }
    }
}

pub(super) fn viewer<'s>(snapshot: &'s Snapshot, name: &str, settings: &'s PolicySettings) -> Viewer<'s> {
    Viewer::new(snapshot, (name != "nobody").then(|| user_id(name)), NOW, settings)
}

/// The time of a block of the chain. Those of the first two are missing.
pub(super) fn block_time(number: u64) -> Timestamp {
    match number {
        0 | 1 => Timestamp::from_secs(0),
        number => Timestamp::from_secs(1_000 + 10 * i64::try_from(number).unwrap()),
    }
}
