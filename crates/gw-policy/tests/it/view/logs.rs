//! Which logs a viewer gets (spec/30 section 6.1), and what a query may find (HD1).

use super::support::{
    filter, get_logs, log, node_logs, number, one, rows, sealed, sealed_text, transaction, transfer, transfer_log,
    viewer, word,
};
use alloy_primitives::{Address, B256, keccak256};
use gw_evm::{TopicFilter, abi::builtin};
use gw_policy::{
    Knobs, Snapshot,
    knobs::TransactionLogs,
    snapshot::{EventRule, MustBe, ParamRule},
    testing::{World, address_of, hash_of, world},
    view::{self, LogsAnswer, TxParties},
};
use gw_types::Claim;
use serde_json::{Value, json};

const SPEC: &Knobs = &Knobs::SPEC;

fn erc20() -> String {
    serde_json::to_string(builtin("ERC20").unwrap().json()).unwrap()
}

fn token() -> World {
    world()
        .org("a")
        .group("staff")
        .group("rest")
        .contract("token")
        .abi(&erc20())
        .grant("staff")
}

fn rule(params: impl IntoIterator<Item = (usize, MustBe)>) -> EventRule {
    let params = params
        .into_iter()
        .map(|(index, must_be)| ParamRule { index, must_be })
        .collect();
    EventRule {
        topic0: transfer(),
        params,
    }
}

/// How many of `logs` the user gets.
fn count(snapshot: &Snapshot, knobs: &Knobs, user: &str, emitters: &[&str], logs: &[Value], txs: &[Value]) -> usize {
    match get_logs(&viewer(snapshot, user, knobs), &filter(emitters, vec![]), logs, txs) {
        LogsAnswer::Rows(rows, count) => {
            assert_eq!(
                serde_json::from_str::<Vec<Value>>(rows.as_str()).unwrap().len(),
                count,
                "J9: the view counts"
            );
            count
        }
        LogsAnswer::NotPermitted => 0,
    }
}

/// HD1, I10: the attack works when the caller's topics go to the node and masking comes after; here the two queries
/// are one and the same, upstream and in the answer.
#[test]
fn hd1_a_query_cannot_name_a_hidden_wallet() {
    let snapshot = token().user("spy").member("staff").snapshot();
    let spy = viewer(&snapshot, "spy", SPEC);
    let logs = [transfer_log("token", "t", "payer", "victim")];
    let query = |name| filter(&["token"], vec![TopicFilter::Any, TopicFilter::Any, one(word(name))]);

    let attack = |name| node_logs(&logs, &query(name)).as_array().unwrap().len();
    assert_ne!(
        attack("victim"),
        attack("random"),
        "without the rule the answer names the victim"
    );

    assert_eq!(
        view::upstream_filter(&spy, &query("victim")),
        view::upstream_filter(&spy, &query("random"))
    );
    let [victim, random] = ["victim", "random"].map(|name| get_logs(&spy, &query(name), &logs, &[]));
    assert_eq!(victim, random);
    assert_eq!(rows(&victim).len(), 0);
}

/// HD1: what goes upstream. Words that are Full or no address are said; a list with one that may not be said is not.
#[test]
fn hd1_upstream_criteria() {
    let snapshot = token().user("reader").member("staff").link("own").snapshot();
    let reader = viewer(&snapshot, "reader", SPEC);
    let said = |position: TopicFilter| {
        let asked = filter(&["token"], vec![position]);
        view::upstream_filter(&reader, &asked).topics == asked.topics
    };
    assert!(said(one(transfer())) && said(TopicFilter::Any));
    assert!(said(one(word("own"))) && said(one(word("token"))) && said(one(B256::ZERO)));
    assert!(said(TopicFilter::OneOf(vec![word("own"), transfer()])));
    assert!(!said(one(word("hidden"))) && !said(one(number(100))));
    assert!(!said(TopicFilter::OneOf(vec![word("own"), word("hidden")])));
    let asked = filter(&["token"], vec![one(word("hidden")), one(word("own"))]);
    let upstream = view::upstream_filter(&reader, &asked);
    assert_eq!(
        upstream.topics,
        [TopicFilter::Any, one(word("own"))],
        "positions keep their places"
    );
    assert_eq!((upstream.addresses, upstream.range), (asked.addresses, asked.range));
}

/// HD1: a masked slot matches only the wildcard, not the zero word it shows; a real zero does.
#[test]
fn hd1_a_masked_slot_is_not_the_zero_address() {
    let snapshot = token().user("reader").member("staff").link("own").snapshot();
    let reader = viewer(&snapshot, "reader", SPEC);
    let mint = log(
        address_of("token"),
        "mint",
        &[transfer(), B256::ZERO, word("own")],
        number(1).as_slice(),
    );
    let logs = [transfer_log("token", "t", "hidden", "own"), mint.clone()];
    let found = |topics| rows(&get_logs(&reader, &filter(&["token"], topics), &logs, &[]));
    assert_eq!(found(vec![TopicFilter::Any, one(B256::ZERO)]), [mint]);
    assert_eq!(
        found(vec![TopicFilter::Any, TopicFilter::Any, one(word("own"))]).len(),
        2
    );
    assert_eq!(found(vec![TopicFilter::Any; 3]).len(), 2);
    assert_eq!(
        found(vec![TopicFilter::Any; 4]).len(),
        0,
        "criteria longer than the topics match nothing"
    );
    assert_eq!(found(vec![TopicFilter::OneOf(vec![])]).len(), 0);
}

/// HD1: numbers an ABI declares as numbers can still be asked for, though they look like addresses upstream.
#[test]
fn hd1_small_numbers_are_found_by_their_value() {
    let abi = json!([{ "type": "event", "name": "Minted", "anonymous": false, "inputs": [
        { "name": "id", "type": "uint256", "indexed": true }] }]);
    let snapshot = world()
        .org("a")
        .group("g")
        .contract("nft")
        .abi(&abi.to_string())
        .grant("g")
        .user("u")
        .member("g")
        .snapshot();
    let logs = [100, 101].map(|id| log(address_of("nft"), "t", &[keccak256("Minted(uint256)"), number(id)], &[]));
    let asked = filter(&["nft"], vec![TopicFilter::Any, one(number(100))]);
    assert_eq!(
        rows(&get_logs(&viewer(&snapshot, "u", SPEC), &asked, &logs, &[])),
        [logs[0].clone()]
    );
}

/// [S] rule 4, K2: a participant sees everything of the transaction, and can ask for a counterparty in it.
#[test]
fn k2_participants_see_whole_transactions() {
    let snapshot = token().user("payer").member("rest").link("payer").snapshot();
    let logs = [
        transfer_log("token", "own", "pool", "someone"),
        log(address_of("unregistered"), "own", &[word("pool")], &[1]),
        transfer_log("token", "other", "pool", "payer"),
    ];
    let txs = [
        transaction("own", address_of("payer"), Some(address_of("router"))),
        transaction("other", address_of("x"), Some(address_of("y"))),
    ];
    let payer = viewer(&snapshot, "payer", SPEC);
    let all = get_logs(&payer, &filter(&["token", "unregistered"], vec![]), &logs, &txs);
    assert_eq!(rows(&all), logs[..2]);
    let counterparty = filter(&["token"], vec![TopicFilter::Any, one(word("pool"))]);
    assert_eq!(rows(&get_logs(&payer, &counterparty, &logs, &txs)), logs[..1]);

    let strict = Knobs {
        participant_logs: TransactionLogs::Granted,
        ..Knobs::SPEC
    };
    assert_eq!(count(&snapshot, &strict, "payer", &["token"], &logs, &txs), 0);
    let granted = token().user("payer").member("staff").link("payer").snapshot();
    let strict_rows = get_logs(
        &viewer(&granted, "payer", &strict),
        &filter(&["token"], vec![]),
        &logs[..1],
        &txs,
    );
    assert_eq!(
        rows(&strict_rows)[0]["topics"],
        json!([transfer(), B256::ZERO, B256::ZERO]),
        "third parties are zeroed"
    );
}

/// K4: shared logs are admitted masked, whoever emits them; strictly, only on a grant that lists the event.
#[test]
fn k4_shared_logs_by_knob() {
    let never = rule([(2, MustBe::Word(number(99)))]);
    let listing = token().contract("token").grant("rest").events([never]);
    let snapshot = listing
        .user("sender")
        .user("friend")
        .user("colleague")
        .member("rest")
        .user("sender")
        .share("t", &["friend", "colleague"])
        .snapshot();
    let logs = [
        transfer_log("token", "t", "x", "y"),
        log(address_of("nobody's"), "t", &[word("x")], &[]),
    ];
    let emitters = ["token", "nobody's"];
    let strict = Knobs {
        shared_logs: TransactionLogs::Granted,
        ..Knobs::SPEC
    };
    let by = |knobs, user| count(&snapshot, knobs, user, &emitters, &logs, &[]);
    assert_eq!(by(SPEC, "friend"), 2);
    assert_eq!(by(&strict, "friend"), 0);
    assert_eq!(
        count(&snapshot, &strict, "colleague", &["token"], &logs, &[]),
        1,
        "rescued from the parameter rule"
    );
    assert_eq!(
        count(&snapshot, SPEC, "sender", &["token"], &logs, &[]),
        0,
        "sharing is for others"
    );
    let shown = rows(&get_logs(
        &viewer(&snapshot, "friend", SPEC),
        &filter(&emitters, vec![]),
        &logs,
        &[],
    ));
    assert_eq!(shown[0]["topics"], json!([transfer(), B256::ZERO, B256::ZERO]));
    assert_eq!(shown[1]["topics"], json!([B256::ZERO]));
}

/// R29: an unlocked contract shows shared events whole to insiders on the list: a grant through a group of the owning
/// organization that is no system group, today.
#[test]
fn r29_unlock_is_for_insiders_on_the_list() {
    let base = |unlock: bool| {
        let token = token().contract("token");
        let token = if unlock { token.visibleto_unlock() } else { token };
        token
            .user("sender")
            .share("t", &["insider", "outsider", "former"])
            .user("insider")
            .member("staff")
            .user("unlisted")
            .member("staff")
            .user("outsider")
            .member("rest")
            .user("former")
            .member_until("staff", gw_policy::testing::PAST)
            .snapshot()
    };
    let logs = [transfer_log("token", "t", "x", "y")];
    let whole = |snapshot: &Snapshot, user| match get_logs(
        &viewer(snapshot, user, SPEC),
        &filter(&["token"], vec![]),
        &logs,
        &[],
    ) {
        LogsAnswer::Rows(shown, count) => rows(&LogsAnswer::Rows(shown, count)) == logs,
        LogsAnswer::NotPermitted => false,
    };
    let unlocked = base(true);
    assert!(whole(&unlocked, "insider"));
    for user in ["unlisted", "outsider", "former", "nobody"] {
        assert!(!whole(&unlocked, user), "{user}");
    }
    assert!(!whole(&base(false), "insider"));
}

/// F4, decision 19: what a grant's event rules admit. Parameter rules are alternatives.
#[test]
fn f4_event_rules() {
    let log_own = transfer_log("token", "t", "own", "hidden");
    let admitted = |rules: Vec<EventRule>, log: &Value| {
        let world = world()
            .org("a")
            .group("g")
            .contract("token")
            .abi(&erc20())
            .grant("g")
            .events(rules);
        let snapshot = world.user("u").member("g").link("own").snapshot();
        count(&snapshot, SPEC, "u", &["token"], std::slice::from_ref(log), &[]) == 1
    };
    let own = |index| rule([(index, MustBe::Own)]);
    let is = |index, word| rule([(index, MustBe::Word(word))]);
    assert!(!admitted(vec![], &log_own), "an empty list is none");
    assert!(admitted(vec![rule([])], &log_own), "no parameter rule is no condition");
    assert!(!admitted(
        vec![EventRule {
            topic0: keccak256("Other()"),
            params: vec![]
        }],
        &log_own
    ));
    assert!(admitted(vec![own(0)], &log_own) && !admitted(vec![own(1)], &log_own));
    assert!(
        admitted(vec![rule([(1, MustBe::Own), (0, MustBe::Own)])], &log_own),
        "alternatives"
    );
    assert!(admitted(vec![own(1), own(0)], &log_own), "rules are alternatives too");
    assert!(!admitted(vec![own(2)], &log_own), "`self` is about addresses");
    assert!(!admitted(vec![own(7)], &log_own), "no such parameter");
    assert!(admitted(vec![is(2, number(7))], &log_own) && !admitted(vec![is(2, number(8))], &log_own));
    assert!(admitted(vec![is(0, word("own"))], &log_own));
    // HD1: a constant the viewer may not see is matched by nothing, or the rule would say that it is there.
    assert!(!admitted(vec![is(1, word("hidden"))], &log_own));
    let short = log(
        address_of("token"),
        "t",
        &[transfer(), word("own"), word("hidden")],
        &[1, 2],
    );
    assert!(!admitted(vec![is(2, number(7))], &short), "undecodable is no match");
    let fewer = log(address_of("token"), "t", &[transfer(), word("own")], &[]);
    assert!(!admitted(vec![own(0)], &fewer), "not the event of the ABI");
}

/// Section 6.1: without an ABI parameters are read from the topics, by position.
#[test]
fn event_rules_without_an_abi() {
    let admitted = |must_be, index| {
        let rules = [rule([(index, must_be)])];
        let world = world().org("a").group("g").contract("token").grant("g").events(rules);
        let snapshot = world.user("u").member("g").link("own").snapshot();
        count(
            &snapshot,
            SPEC,
            "u",
            &["token"],
            &[transfer_log("token", "t", "own", "hidden")],
            &[],
        ) == 1
    };
    assert!(admitted(MustBe::Own, 0) && !admitted(MustBe::Own, 1) && !admitted(MustBe::Own, 2));
    assert!(admitted(MustBe::Word(word("own")), 0));
    assert!(!admitted(MustBe::Word(word("hidden")), 1), "HD1");
    assert!(!admitted(MustBe::Own, usize::MAX));
}

/// Section 6.1: an anonymous event meets no list of rules, though a grant on all events shows it.
#[test]
fn anonymous_events_meet_no_rule() {
    let abi = json!([{ "type": "event", "name": "Quiet", "anonymous": true, "inputs": [
        { "name": "who", "type": "bytes32", "indexed": true }] }])
    .to_string();
    let world = |rules: Option<Vec<EventRule>>| {
        let world = world().org("a").group("g").contract("token").abi(&abi).grant("g");
        let world = if let Some(rules) = rules {
            world.events(rules)
        } else {
            world
        };
        world.user("u").member("g").snapshot()
    };
    let logs = [log(address_of("token"), "t", &[transfer()], &[])];
    let listed = world(Some(vec![rule([])]));
    assert_eq!(count(&listed, SPEC, "u", &["token"], &logs, &[]), 0);
    assert_eq!(count(&world(None), SPEC, "u", &["token"], &logs, &[]), 1);
}

/// G6, C2, C3, K7: several grants are united; administrators of either kind and the deployer see all events, masked.
#[test]
fn rights_to_events_are_united() {
    let base = world()
        .org("a")
        .group("narrow")
        .group("wide")
        .group("claimed")
        .group("rest")
        .group("admins")
        .org_admin()
        .contract("token")
        .abi(&erc20())
        .deployed_by("deployer")
        .grant("narrow")
        .events([rule([(0, MustBe::Own)])])
        .grant("wide")
        .grant("claimed")
        .events([])
        .grant_claim(Claim::Admin)
        .user("one")
        .member("narrow")
        .user("both")
        .member("narrow")
        .member("wide")
        .user("claimant")
        .member("claimed")
        .user("deployer")
        .member("rest")
        .user("admin")
        .member("admins")
        .user("rest")
        .member("rest");
    let snapshot = base.snapshot();
    let logs = [transfer_log("token", "t", "x", "y")];
    let by = |user| count(&snapshot, SPEC, user, &["token"], &logs, &[]);
    assert_eq!(
        [
            by("one"),
            by("both"),
            by("claimant"),
            by("deployer"),
            by("admin"),
            by("rest")
        ],
        [0, 1, 1, 1, 1, 0]
    );
    for user in ["both", "claimant", "deployer", "admin"] {
        let shown = rows(&get_logs(
            &viewer(&snapshot, user, SPEC),
            &filter(&["token"], vec![]),
            &logs,
            &[],
        ));
        assert_eq!(
            shown[0]["topics"],
            json!([transfer(), B256::ZERO, B256::ZERO]),
            "{user}: wallets stay hidden"
        );
    }
}

/// Decision 20: an address without a grant answers with own and shared rows, or the whole call is the denial.
#[test]
fn decision_20_addresses_without_a_grant() {
    let snapshot = token()
        .org("b")
        .group("b")
        .contract("foreign")
        .contract("silent")
        .user("sender")
        .user("payer")
        .member("a/staff")
        .link("payer")
        .user("sender")
        .share("shared", &["payer"])
        .snapshot();
    let logs = [
        transfer_log("foreign", "own", "x", "y"),
        transfer_log("foreign", "other", "x", "y"),
        transfer_log("unregistered", "shared", "x", "y"),
    ];
    let txs = [
        transaction("own", address_of("payer"), Some(address_of("foreign"))),
        transaction("other", address_of("x"), Some(address_of("foreign"))),
    ];
    let ask = |emitters: &[&str], topics| {
        get_logs(
            &viewer(&snapshot, "payer", SPEC),
            &filter(emitters, topics),
            &logs,
            &txs,
        )
    };
    assert_eq!(rows(&ask(&["foreign"], vec![])), logs[..1]);
    assert_eq!(rows(&ask(&["unregistered"], vec![])).len(), 1);
    assert_eq!(rows(&ask(&["foreign", "unregistered", "token"], vec![])).len(), 2);
    assert_eq!(ask(&["silent"], vec![]), LogsAnswer::NotPermitted);
    assert_eq!(ask(&["random"], vec![]), LogsAnswer::NotPermitted);
    assert_eq!(
        ask(&["foreign", "silent"], vec![]),
        LogsAnswer::NotPermitted,
        "one forbidden address denies the call"
    );
    assert_eq!(
        ask(&["foreign"], vec![one(keccak256("Other()"))]),
        LogsAnswer::NotPermitted
    );
    assert_eq!(rows(&ask(&["token"], vec![])).len(), 0, "granted: an empty list");
    assert_eq!(ask(&[], vec![]), LogsAnswer::NotPermitted, "no address");
    let stranger = viewer(&snapshot, "nobody", SPEC);
    assert_eq!(
        get_logs(&stranger, &filter(&["foreign"], vec![]), &logs, &txs),
        LogsAnswer::NotPermitted
    );
}

/// Decision 40: where the owner's groups do not list the method, a grant opens no logs; own and shared transactions show
/// as they do without a grant.
#[test]
fn d40_a_grant_without_the_method_shows_own_and_shared_rows_only() {
    let snapshot = token()
        .user("reader")
        .member("staff")
        .link("own")
        .user("colleague")
        .share("shared", &["reader"])
        .snapshot();
    let logs = json!([
        transfer_log("token", "foreign", "x", "y"),
        transfer_log("token", "own", "own", "y"),
        transfer_log("token", "shared", "x", "y"),
    ]);
    let mut parties = TxParties::default();
    parties.learn(&sealed(&transaction(
        "own",
        address_of("own"),
        Some(address_of("token")),
    )));
    let ask = |shared_only: &[Address], logs: &Value| {
        let reader = viewer(&snapshot, "reader", SPEC);
        view::logs(
            &reader,
            &filter(&["token"], vec![]),
            shared_only,
            &parties,
            sealed(logs),
        )
    };
    assert!(matches!(ask(&[], &logs), LogsAnswer::Rows(_, 3)));
    let token = address_of("token");
    let hashes: Vec<Value> = rows(&ask(&[token], &logs))
        .iter()
        .map(|row| row["transactionHash"].clone())
        .collect();
    assert_eq!(hashes, [json!(hash_of("own")), json!(hash_of("shared"))]);
    assert_eq!(ask(&[token], &json!([logs[0]])), LogsAnswer::NotPermitted);
}

/// Parties are asked for only where they could change something, and each transaction once.
#[test]
fn parties_are_needed_only_where_they_matter() {
    let snapshot = token()
        .user("wallet-less")
        .member("staff")
        .user("owner")
        .member("staff")
        .link("own")
        .user("sender")
        .share("shared", &["wallet-less"])
        .snapshot();
    let logs = json!([
        transfer_log("token", "masked", "x", "y"),
        transfer_log("token", "masked", "x", "z"),
        transfer_log("token", "visible", "own", "own"),
        transfer_log("token", "shared", "x", "y"),
        transfer_log("other", "elsewhere", "x", "y"),
    ]);
    let needed = |user, topics| {
        let needed = view::parties_needed(
            &viewer(&snapshot, user, SPEC),
            &filter(&["token"], topics),
            &sealed(&logs),
        );
        needed.into_iter().map(|needed| needed.tx_hash).collect::<Vec<_>>()
    };
    assert!(
        needed("wallet-less", vec![]).is_empty(),
        "no wallet, no participation: the node is not asked again"
    );
    assert!(needed("nobody", vec![]).is_empty());
    assert_eq!(needed("owner", vec![]), [hash_of("masked"), hash_of("shared")]);
    let naming = |name| vec![TopicFilter::Any, TopicFilter::Any, one(word(name))];
    assert_eq!(
        needed("owner", naming("z")),
        needed("owner", naming("random")),
        "HD1: no trace of the hidden address"
    );
    assert!(
        needed("owner", naming("own")).is_empty(),
        "what cannot match is not asked about"
    );
    let owner = viewer(&snapshot, "owner", SPEC);
    let block = view::parties_needed(&owner, &filter(&["token"], vec![]), &sealed(&logs))[0].block_hash;
    assert_eq!(block, hash_of("block"));
    assert_eq!(
        view::parties_needed(&owner, &filter(&["token"], vec![]), &sealed_text("[{]")),
        []
    );
}

/// Parties come from a transaction or a block; what is missing or malformed counts as somebody else's.
#[test]
fn parties_are_learned_from_transactions_and_blocks() {
    let snapshot = token().user("owner").member("staff").link("own").snapshot();
    let owner = viewer(&snapshot, "owner", SPEC);
    let logs = [transfer_log("token", "t", "x", "y")];
    let own = transaction("t", address_of("x"), Some(address_of("own")));
    let other = transaction("u", address_of("x"), None);
    let whole = |learned: &str| {
        let mut parties = TxParties::default();
        parties.learn(&sealed_text(learned));
        let shown = view::logs(&owner, &filter(&["token"], vec![]), &[], &parties, sealed(&json!(logs)));
        shown == get_logs(&owner, &filter(&["token"], vec![]), &logs, std::slice::from_ref(&own))
    };
    assert!(whole(&own.to_string()));
    assert!(whole(
        &json!({ "number": "0x1", "transactions": [other, own] }).to_string()
    ));
    assert!(!whole(&other.to_string()) && !whole("null") && !whole("[]") && !whole("{"));
    assert!(
        !whole(&json!({ "transactions": [hash_of("t")] }).to_string()),
        "hashes say nothing"
    );
    assert!(
        !whole(&json!({ "transactions": [own, 1] }).to_string()),
        "a malformed block says nothing"
    );
}

/// Section 6.1: emitters nobody registered are for participants and those the transaction was shared with.
#[test]
fn unregistered_emitters_are_nobodys() {
    let snapshot = world()
        .org("a")
        .group("admins")
        .org_admin()
        .user("admin")
        .member("admins")
        .snapshot();
    let logs = [log(address_of("unregistered"), "t", &[transfer()], &[])];
    assert_eq!(count(&snapshot, SPEC, "admin", &["unregistered"], &logs, &[]), 0);
    assert_eq!(
        count(&snapshot, &Knobs::STRICT, "admin", &["unregistered"], &logs, &[]),
        0
    );
    let precompile = Address::with_last_byte(4);
    let answer = view::logs(
        &viewer(&snapshot, "admin", SPEC),
        &gw_evm::LogFilter {
            addresses: vec![precompile],
            ..filter(&[], vec![])
        },
        &[],
        &TxParties::default(),
        sealed(&json!([])),
    );
    assert_eq!(
        rows(&answer).len(),
        0,
        "a precompile is within everybody's reach and has no logs"
    );
}
