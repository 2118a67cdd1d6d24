//! Properties of the verdicts on rows, in random worlds (spec/30 section 10).

use super::{
    model::Knowledge,
    scenario::{
        CONTRACTS, Case, STRANGERS, Scenario, TRANSFER, Tx, USERS, address, all_names, case, scenario, settings, viewer,
    },
};
use alloy_primitives::keccak256;
use gw_evm::{BlockId, Call, CallRequest, Method, MethodLookup, Simulation, SimulationKind, VisibleTo};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    access::{AccessRequest, Caller, Decision, HeadFacts, NamedOrg, decide},
    settings::HiddenTransferMode,
    snapshot::Moment,
    testing::{NOW, user_id},
    visibility::{
        ExecutionRow, FrameRow, FrameViewer, LogData, LogRow, LogViewer, LogVisibility, TargetCode, TransactionAccess,
        TransactionRoles,
        explorer::{
            AddressReason, AddressText, AddressVisibility, FrameEntryVisibility, TransactionEntryVisibility,
            TransferEntryVisibility,
        },
    },
};
use gw_types::Level;
use proptest::prelude::*;

/// All verdicts of a viewer on the rows of a transaction.
#[derive(Clone, Debug, PartialEq)]
struct Verdicts {
    transaction: Option<TransactionEntryVisibility>,
    transfers: Vec<Option<TransferEntryVisibility>>,
    frames: Vec<Option<FrameEntryVisibility>>,
    logs: Vec<LogVisibility>,
}

fn verdicts(viewer: &Viewer<'_>, tx: &Tx) -> Verdicts {
    let (transfers, frames) = (tx.transfer_entries(), tx.frame_entries());
    let entry = tx.entry(&transfers);
    Verdicts {
        transaction: viewer.transaction_entry(&entry),
        transfers: transfers
            .iter()
            .map(|transfer| viewer.transfer_entry(&entry, transfer))
            .collect(),
        frames: frames.iter().map(|frame| viewer.frame_entry(&entry, frame)).collect(),
        logs: tx.logs.iter().map(|log| log.visibility(viewer, tx)).collect(),
    }
}

impl Verdicts {
    /// Every address that a row prints, with its name and the other side's.
    fn addresses(&self, tx: &Tx) -> Vec<Printed> {
        let mut printed = Vec::new();
        if let Some(shown) = &self.transaction {
            printed.push(Printed::new(shown.from, tx.from, tx.to, Row::Transaction));
            if let (Some(to), Some(shown)) = (tx.to, shown.to) {
                printed.push(Printed::new(shown, to, Some(tx.from), Row::Transaction));
            }
            if let Some(created) = shown.created {
                printed.push(Printed::new(created, "wild", None, Row::Transaction));
            }
        }
        for (shown, [token, from, to]) in self.transfers.iter().zip(&tx.transfers) {
            if let Some(shown) = shown {
                printed.push(Printed::new(shown.token, token, None, Row::Token));
                printed.push(Printed::new(shown.from, from, Some(to), Row::Sender(token)));
                printed.push(Printed::new(shown.to, to, Some(from), Row::Recipient(token)));
            }
        }
        for (shown, (from, to)) in self.frames.iter().zip(&tx.frames) {
            if let Some(shown) = shown {
                printed.push(Printed::new(shown.from, from, *to, Row::Frame));
                if let (Some(to), Some(shown)) = (to, shown.to) {
                    printed.push(Printed::new(shown, to, Some(from), Row::Frame));
                }
            }
        }
        printed
    }
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Transaction,
    /// The previous owner in a transfer of this token.
    Sender(&'static str),
    /// The new owner in a transfer of this token.
    Recipient(&'static str),
    Token,
    Frame,
}

#[derive(Clone, Copy, Debug)]
struct Printed {
    shown: AddressVisibility,
    name: &'static str,
    other: Option<&'static str>,
    row: Row,
}

impl Printed {
    fn new(shown: AddressVisibility, name: &'static str, other: Option<&'static str>, row: Row) -> Self {
        Self {
            shown,
            name,
            other,
            row,
        }
    }
}

/// Whether the rules let this user see the address in clear.
fn may_be_clear(knows: Knowledge<'_>, tx: &Tx, printed: Printed) -> bool {
    let is_party = printed.name == tx.from || Some(printed.name) == tx.to;
    let takes_part = knows.is_participant(tx) || knows.is_shared(tx);
    let sides: Vec<&str> = std::iter::once(printed.name).chain(printed.other).collect();
    let is_disclosed = |name: &str| knows.disclosed_in(name, tx.block, &sides) == Some(Level::Full);
    // HD10: a grant shows the other side as far as the owner of the disclosed side sees it.
    let is_of_party = |name: &str| name == tx.from || Some(name) == tx.to;
    let by_lens = printed.other.is_some_and(|owner| {
        is_disclosed(owner)
            && match printed.row {
                Row::Transaction | Row::Token => true,
                Row::Frame => is_of_party(owner) && is_party,
                Row::Sender(token) | Row::Recipient(token) => {
                    is_of_party(owner) || Knowledge::is_registered(token, tx.block)
                }
            }
    });
    let is_created = printed.other.is_none() && tx.to.is_none();
    let by_side = |token, owns_other: bool| {
        knows.is_participant(tx)
            || (knows.is_shared(tx) && is_party)
            || (Knowledge::is_registered(token, tx.block) && owns_other)
    };
    let by_part = match printed.row {
        Row::Transaction => takes_part && (is_party || is_created),
        Row::Token => false,
        Row::Frame => takes_part && is_party,
        // A participant sees the whole transaction (K2), the owner of a side the other side (HD10).
        Row::Sender(token) => by_side(token, printed.other.is_some_and(|other| knows.receives(other))),
        Row::Recipient(token) => by_side(token, printed.other.is_some_and(|other| knows.owns(other))),
    };
    // A token and a created contract are no side of a row, so only unrestricted grants count for them.
    let is_side = !matches!(printed.row, Row::Token) && (!is_created || printed.name == tx.from);
    let by_grant = by_lens || is_disclosed(printed.name);
    knows.reads(printed.name, tx.block) || by_part || (is_side && by_grant)
}

fn rank(shown: AddressVisibility) -> u8 {
    match shown.text {
        AddressText::Private => 0,
        AddressText::Alias(_) => 1,
        AddressText::Clear => 2,
    }
}

fn is_at_most(shown: AddressVisibility, limit: AddressVisibility) -> bool {
    match (shown.text, limit.text) {
        (AddressText::Alias(one), AddressText::Alias(other)) => one == other,
        _ => rank(shown) <= rank(limit),
    }
}

fn is_contained(shown: &Verdicts, seen: &Verdicts) -> bool {
    let option = |shown: Option<AddressVisibility>, seen: Option<AddressVisibility>| {
        shown.is_none_or(|shown| seen.is_some_and(|seen| is_at_most(shown, seen)))
    };
    let transaction = shown.transaction.is_none_or(|shown| {
        seen.transaction.is_some_and(|seen| {
            is_at_most(shown.from, seen.from)
                && option(shown.to, seen.to)
                && option(shown.created, seen.created)
                && shown.value <= seen.value
                && shown.payload <= seen.payload
                && shown.nonce <= seen.nonce
                && shown.survival.shows_hash() <= seen.survival.shows_hash()
        })
    });
    let transfers = shown.transfers.iter().zip(&seen.transfers).all(|(shown, seen)| {
        shown.is_none_or(|shown| {
            seen.is_some_and(|seen| {
                is_at_most(shown.token, seen.token)
                    && is_at_most(shown.from, seen.from)
                    && is_at_most(shown.to, seen.to)
                    && shown.amounts <= seen.amounts
                    && shown.tx_hash <= seen.tx_hash
            })
        })
    });
    let frames = shown.frames.iter().zip(&seen.frames).all(|(shown, seen)| {
        shown.is_none_or(|shown| {
            seen.is_some_and(|seen| {
                is_at_most(shown.from, seen.from)
                    && option(shown.to, seen.to)
                    && shown.content.value <= seen.content.value
                    && shown.content.payload <= seen.content.payload
                    && shown.tx_hash <= seen.tx_hash
            })
        })
    });
    transaction && transfers && frames
}

fn decide_call(snapshot: &Snapshot, user: &str, to: &str) -> Decision {
    let request = CallRequest {
        to: Some(address(to)),
        ..CallRequest::default()
    };
    let call = Call::Simulate(Box::new(Simulation {
        kind: SimulationKind::Call,
        request,
        block: BlockId::LATEST,
    }));
    let access_request = AccessRequest {
        caller: &Caller::User(snapshot.user(user_id(user)).unwrap().clone()),
        lookup: MethodLookup::Registered(Method::Call),
        call: Ok(&call),
        visible_to: &VisibleTo::default(),
        named_org: NamedOrg::Unnamed,
        now: NOW,
        head: HeadFacts { number: 100 },
        policy_settings: &PolicySettings::SPEC,
    };
    decide(snapshot, &access_request)
}

/// The scenario in a world in which others know more: new users with links, contracts, shares and grants of their own.
fn with_secrets_of_others(scenario: &Scenario) -> Snapshot {
    let mut built = scenario.world();
    built = built
        .org("c")
        .group("c")
        .group("admins")
        .org_admin()
        .contract("s0")
        .grant("c")
        .user("newcomer")
        .member("c/c")
        .link("s1")
        .user("neighbour")
        .member("c/admins")
        .link("neighbour's")
        .user("newcomer")
        .disclosed_to("neighbour", Level::Full);
    for tx in scenario.transactions.iter().filter(|tx| tx.shared_with.is_empty()) {
        built = built.user("newcomer").share(&tx.name, &["neighbour"]);
    }
    built.snapshot()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// I2, R10: a row prints an address in clear only if its level is Full or an override of section 2.4 reveals it.
    #[test]
    fn i2_r11_a_row_prints_no_hidden_address(scenario in scenario(), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        for anchor in [HiddenTransferMode::None, HiddenTransferMode::Keep] {
            let settings = PolicySettings { anchor, org_admin_view_user_txs: true, ..PolicySettings::SPEC };
            let (own, nobody) = (viewer(&snapshot, USERS[user], &settings), viewer(&snapshot, "nobody", &settings));
            let knows = Knowledge { scenario: &scenario, user };
            for tx in &scenario.transactions {
                for printed in verdicts(&own, tx).addresses(tx) {
                    prop_assert!(
                        !printed.shown.is_clear() || may_be_clear(knows, tx, printed),
                        "{printed:?} in {tx:?}"
                    );
                    // R11
                    prop_assert_eq!(printed.shown.metadata().is_some(), printed.shown.is_clear());
                }
                for printed in verdicts(&nobody, tx).addresses(tx) {
                    let is_public = ["zero", "precompile", "infra"].contains(&printed.name);
                    prop_assert!(rank(printed.shown) == 0 || is_public, "{printed:?} in {tx:?}");
                }
            }
        }
    }

    /// [S] rule 2, R12, R13, R15, HD9, HD10, HD28, HD41: the list of transactions has exactly the rows that the tables
    /// of spec/30 name.
    #[test]
    fn r12_the_list_of_transactions_follows_the_tables(scenario in scenario(), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let own = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        let knows = Knowledge { scenario: &scenario, user };
        for tx in &scenario.transactions {
            let shown = own.transaction_entry(&tx.entry(&tx.transfer_entries()));
            prop_assert_eq!(shown.is_some(), knows.lists(tx), "{:?}", tx);
            let shown_in_clear = shown.is_some_and(|shown| shown.from.is_clear());
            prop_assert!(shown_in_clear || !knows.owns(tx.from) || tx.convicted);
        }
    }

    /// Decision 18, [S] rule 9, R14, HD9: by default strangers see exactly the rows with the zero address. Under K1
    /// `drop` they see none, and nobody sees a transfer by the zero address alone unless the token is Full.
    #[test]
    fn d18_r14_rows_with_the_zero_address(scenario in scenario(), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let (spec, strict) = (PolicySettings::SPEC, PolicySettings::STRICT);
        let nobody = Viewer::new(&snapshot, None, NOW, &spec);
        let strict_nobody = Viewer::new(&snapshot, None, NOW, &strict);
        let strict_user = viewer(&snapshot, USERS[user], &strict);
        let knows = Knowledge { scenario: &scenario, user };
        for tx in &scenario.transactions {
            let seen = verdicts(&nobody, tx);
            let has_zero = tx.from == "zero" || tx.to == Some("zero");
            prop_assert_eq!(seen.transaction.is_some(), has_zero && !tx.convicted, "{:?}", tx);
            let strict_seen = verdicts(&strict_nobody, tx).transfers;
            let by_user = verdicts(&strict_user, tx).transfers;
            for (position, [token, from, to]) in tx.transfers.iter().enumerate() {
                let is_listed = [*from, *to].contains(&"zero") && !tx.convicted && !scenario.closed.contains(token);
                prop_assert_eq!(seen.transfers[position].is_some(), is_listed, "{} in {:?}", token, tx);
                prop_assert_eq!(strict_seen[position], None, "{} in {:?}", token, tx);
                let counts = |name: &str| {
                    knows.is_full(name, tx.block) || knows.disclosed_in(name, tx.block, &[from, to]).is_some()
                };
                let by_zero_alone = !counts(from) && !counts(to) && !knows.is_shared(tx);
                if by_zero_alone && by_user[position].is_some() {
                    prop_assert!(knows.is_full(token, tx.block), "{token} in {tx:?}");
                }
            }
        }
    }

    /// I2: contracts pass on what they were called with, so no frame shows more than its transaction: not its payload
    /// unless that of the transaction is shown, in the list of frames and in the call tree. A frame that shows its
    /// payload shows both sides.
    #[test]
    fn i2_no_frame_shows_more_than_its_transaction(scenario in scenario(), case in case(), settings in settings()) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        for tx in &scenario.transactions {
            let shown = verdicts(&viewer, tx);
            let shows_payload = shown.transaction.is_some_and(|shown| shown.payload);
            let is_shown = |shown: AddressVisibility| rank(shown) > u8::from(settings.alias_strip);
            for frame in shown.frames.iter().flatten() {
                let names_sides = is_shown(frame.from) && frame.to.is_none_or(is_shown);
                prop_assert!(shows_payload || !frame.content.payload, "{frame:?} in {tx:?}");
                prop_assert_eq!(names_sides, frame.content.value);
                prop_assert_eq!(names_sides && shows_payload, frame.content.payload);
            }
            if viewer.may_trace(&tx.row()) {
                let sides = Some((address(tx.from), tx.to.map(address)));
                let execution = ExecutionRow { sides, ..ExecutionRow::default() };
                let tree = FrameViewer::for_transaction(&viewer, &execution, &tx.row());
                let details = viewer.transaction(&tx.row()).details;
                for frame in tx.frame_entries() {
                    let row = FrameRow { from: frame.from, to: frame.to, code: TargetCode::Contract };
                    let content = tree.content(&row);
                    prop_assert!(details || !(content.value || content.payload), "{frame:?} in {tx:?}");
                    let names_sides = tree.names(frame.from) && frame.to.is_none_or(|to| tree.names(to));
                    prop_assert!(names_sides || !(content.value || content.payload), "{frame:?} in {tx:?}");
                }
            }
        }
    }

    /// I1: a contract may be called by RPC exactly if it is Full in the explorer.
    #[test]
    fn i1_a_contract_is_open_exactly_if_rpc_gives_access(scenario in scenario(), user in 0..USERS.len()) {
        // Only groups with methods may call.
        let mut built = scenario.world();
        for path in super::scenario::GROUPS {
            let (org, group) = path.split_once('/').unwrap();
            built = built.org(org).group(group).every_method();
        }
        let snapshot = built.snapshot();
        let own = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        for contract in ["a-token", "a-plain", "b-token", "moved"] {
            let is_allowed = matches!(decide_call(&snapshot, USERS[user], contract), Decision::Allow(_));
            // A contract that is somebody's wallet is also shown to its owner, and to whom the owner disclosed it.
            let knows = Knowledge { scenario: &scenario, user };
            let is_wallet = knows.owns(contract) || knows.disclosed(contract, 100) == Some(Level::Full);
            prop_assert!(is_wallet || is_allowed == own.opens_address(address(contract)), "{contract}");
            prop_assert_eq!(is_wallet || own.reaches(address(contract)), own.opens_address(address(contract)));
        }
    }

    /// R18: what RPC shows by hash is in the list, surviving frames and hashes belong to surviving transactions, and
    /// with K12 `keep` every surviving transfer keeps its transaction.
    #[test]
    fn r18_rows_and_their_transactions_agree(scenario in scenario(), case in case(), settings in settings()) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        for tx in &scenario.transactions {
            let shown = verdicts(&viewer, tx);
            let shows_hash = shown.transaction.is_some_and(|shown| shown.survival.shows_hash());
            prop_assert!(shown.frames.iter().flatten().all(|frame| frame.tx_hash == shows_hash));
            prop_assert!(shown.transfers.iter().flatten().all(|transfer| transfer.tx_hash == shows_hash));
            prop_assert!(shown.transaction.is_some() || shown.frames.iter().flatten().next().is_none());
            let keeps = settings.anchor == HiddenTransferMode::Keep && case.impersonator.is_none();
            if keeps && shown.transfers.iter().flatten().next().is_some() {
                prop_assert!(shown.transaction.is_some());
            }
            let is_closed = tx.to.is_some_and(|to| scenario.closed.contains(&to));
            if case.impersonator.is_none() && viewer.transaction_access(&tx.row()) != TransactionAccess::None {
                prop_assert!(shows_hash || is_closed, "{tx:?}");
            }
        }
    }

    /// HD40, I5: what others may know changes no verdict and no scope.
    #[test]
    fn hd40_what_others_know_changes_no_verdict(scenario in scenario(), case in case(), settings in settings()) {
        let (before, after) = (scenario.world().snapshot(), with_secrets_of_others(&scenario));
        let (before, after) = (case.viewer(&before, &settings), case.viewer(&after, &settings));
        for tx in &scenario.transactions {
            prop_assert_eq!(verdicts(&before, tx), verdicts(&after, tx), "{:?}", tx);
        }
        prop_assert_eq!(before.row_scope(), after.row_scope());
        prop_assert_eq!(before.row_scope().fingerprint(), after.row_scope().fingerprint());
        for name in all_names() {
            let address = address(name);
            prop_assert_eq!(before.opens_address(address), after.opens_address(address));
            prop_assert_eq!(before.address_list_blocks(address), after.address_list_blocks(address));
            for token in CONTRACTS.iter().chain(&STRANGERS) {
                let token = super::scenario::address(token);
                prop_assert_eq!(before.holder_entry(token, address), after.holder_entry(token, address));
                prop_assert_eq!(before.balance_entry(address, token), after.balance_entry(address, token));
            }
        }
    }

    /// I9, HD7: under impersonation every row is contained in the view of the user and in that of the administrator.
    #[test]
    fn i9_impersonated_rows_are_contained_in_both_views(
        scenario in scenario(),
        user in 0..USERS.len(),
        impersonator in 0..USERS.len(),
        settings in settings(),
    ) {
        let snapshot = scenario.world().snapshot();
        let (user, impersonator) = (USERS[user], USERS[impersonator]);
        let impersonated = Case { user, impersonator: Some(impersonator), org: None };
        let impersonated = impersonated.viewer(&snapshot, &settings);
        let (own, admin) = (viewer(&snapshot, user, &settings), viewer(&snapshot, impersonator, &settings));
        for tx in &scenario.transactions {
            let shown = verdicts(&impersonated, tx);
            prop_assert!(is_contained(&shown, &verdicts(&own, tx)), "{shown:?}");
            prop_assert!(is_contained(&shown, &verdicts(&admin, tx)), "{shown:?}");
        }
        // The impersonation of oneself shows the own view, but for rows with two hidden sides (K10, K12).
        let anchor = HiddenTransferMode::None;
        let settings = PolicySettings { org_admin_view_user_txs: false, anchor, ..settings };
        let own = viewer(&snapshot, user, &settings);
        let oneself = Case { user, impersonator: Some(user), org: None };
        let oneself = oneself.viewer(&snapshot, &settings);
        for tx in &scenario.transactions {
            prop_assert_eq!(verdicts(&oneself, tx), verdicts(&own, tx));
        }
        let (oneself, own) = (oneself.row_scope(), own.row_scope());
        prop_assert_eq!((&oneself.visible, &oneself.disclosed), (&own.visible, &own.disclosed));
    }

    /// HD7: the rows of an impersonation do not depend on wallets of the user that the administrator does not know.
    #[test]
    fn hd7_impersonated_rows_tell_nothing_about_the_users_wallets(
        scenario in scenario(),
        user in 0..USERS.len(),
        impersonator in 0..USERS.len(),
        settings in settings(),
    ) {
        prop_assume!(user != impersonator);
        let impersonated = Case { user: USERS[user], impersonator: Some(USERS[impersonator]), org: None };
        let knows = Knowledge { scenario: &scenario, user: impersonator };
        // The same world, but the wallets that the administrator does not know are nobody's.
        let mut without = scenario.clone();
        without.links.retain(|(owner, wallet, _)| {
            let is_shared = scenario.links.iter().any(|(other, linked, _)| other != owner && linked == wallet);
            // The administrator sees this contract by other rights, so that it is Full for both (HD7).
            let is_contract = *wallet == "a-plain";
            *owner != user || is_shared || is_contract || knows.has_grant(wallet)
        });
        let (before, after) = (scenario.world().snapshot(), without.world().snapshot());
        let (before, after) = (
            impersonated.viewer(&before, &settings),
            impersonated.viewer(&after, &settings),
        );
        for tx in &scenario.transactions {
            let (with, without) = (verdicts(&before, tx), verdicts(&after, tx));
            prop_assert_eq!(with.transaction, without.transaction, "{:?}", tx);
            prop_assert_eq!(with.transfers, without.transfers, "{:?}", tx);
            prop_assert_eq!(with.frames, without.frames, "{:?}", tx);
        }
    }

    /// I8: a transfer prints no side that the log of the same event masks, unless an override of section 2.4 reveals
    /// it, or the side is a contract whose registration moved (HD41).
    #[test]
    fn i8_a_transfer_prints_no_side_that_its_log_masks(scenario in scenario(), case in case(), settings in settings()) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        for tx in &scenario.transactions {
            let (transfers, row) = (tx.transfer_entries(), tx.row());
            let entry = tx.entry(&transfers);
            for (transfer, [_, from, to]) in transfers.iter().zip(&tx.transfers) {
                let topics = [keccak256(TRANSFER), transfer.from.into_word(), transfer.to.into_word()];
                let log = LogRow {
                    emitter: transfer.token,
                    tx_hash: row.hash,
                    topics: &topics,
                    data: LogData::Bytes(&[0; 32]),
                    moment: Moment::Block(tx.block),
                };
                let roles = TransactionRoles::new(&viewer, row.hash, Some((row.from, row.to)));
                let log = LogViewer::new(&viewer).log(&log, roles).unwrap();
                let (Some(shown), LogVisibility::Masked { topics, .. }) = (viewer.transfer_entry(&entry, transfer), log)
                else {
                    continue;
                };
                for (position, name, shown) in [(1, from, shown.from), (2, to, shown.to)] {
                    let is_masked = topics >> position & 1 == 1;
                    let by_level = matches!(shown.reason, AddressReason::Level(_)) && shown.is_clear();
                    prop_assert!(!is_masked || !by_level || ["moved", "ended"].contains(name), "{name} in {tx:?}");
                }
            }
        }
    }
}
