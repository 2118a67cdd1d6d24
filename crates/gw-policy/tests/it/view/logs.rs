//! The logs that a viewer gets (spec/30 section 6.1), and the values that a query may match (HD1).

use super::support::{
    filter, get_logs, log, node_logs, number, rows, sealed, sealed_text, topic_is, transaction, transfer, transfer_log,
    viewer, word,
};
use alloy_primitives::{Address, B256, keccak256};
use gw_evm::{TopicFilter, abi::builtin};
use gw_policy::{
    PolicySettings, Snapshot,
    settings::TransactionLogs,
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{World, address_of, hash_of, world},
    view::{self, LogsAnswer, TransactionParties, TxParties},
};
use gw_types::Claim;
use serde_json::{Value, json};

const SPEC: &PolicySettings = &PolicySettings::SPEC;

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

fn rule(params: impl IntoIterator<Item = (usize, Constraint)>) -> EventRule {
    let params = params
        .into_iter()
        .map(|(index, must_be)| ParamRule { index, must_be })
        .collect();
    EventRule {
        topic0: transfer(),
        params,
    }
}

/// The number of `logs` that the user gets.
fn count(
    snapshot: &Snapshot,
    settings: &PolicySettings,
    user: &str,
    emitters: &[&str],
    logs: &[Value],
    txs: &[Value],
) -> usize {
    match get_logs(&viewer(snapshot, user, settings), &filter(emitters, vec![]), logs, txs) {
        LogsAnswer::Rows(rows, count) => {
            assert_eq!(
                serde_json::from_str::<Vec<Value>>(rows.as_str()).unwrap().len(),
                count,
                "J9: the view returns the number of rows"
            );
            count
        }
        LogsAnswer::NotPermitted => 0,
    }
}

/// HD1, I10: the attack would work if the caller's topics went to the node and masking followed. Here both queries
/// are the same, upstream and in the answer.
#[test]
fn hd1_a_query_cannot_name_a_hidden_wallet() {
    let snapshot = token().user("spy").member("staff").snapshot();
    let spy = viewer(&snapshot, "spy", SPEC);
    let logs = [transfer_log("token", "t", "payer", "victim")];
    let query = |name| {
        filter(
            &["token"],
            vec![TopicFilter::Any, TopicFilter::Any, topic_is(word(name))],
        )
    };

    let attack = |name| node_logs(&logs, &query(name)).as_array().unwrap().len();
    assert_ne!(
        attack("victim"),
        attack("random"),
        "without the rule, the answer reveals the victim"
    );

    assert_eq!(
        view::upstream_filter(&spy, &query("victim")),
        view::upstream_filter(&spy, &query("random"))
    );
    let [victim, random] = ["victim", "random"].map(|name| get_logs(&spy, &query(name), &logs, &[]));
    assert_eq!(victim, random);
    assert_eq!(rows(&victim).len(), 0);
}

/// HD1: the upstream filter contains words that are addresses with level Full or not addresses. A list with a hidden
/// word is left out completely.
#[test]
fn hd1_upstream_criteria() {
    let snapshot = token().user("reader").member("staff").link("own").snapshot();
    let reader = viewer(&snapshot, "reader", SPEC);
    let is_forwarded = |position: TopicFilter| {
        let requested = filter(&["token"], vec![position]);
        view::upstream_filter(&reader, &requested).topics == requested.topics
    };
    assert!(is_forwarded(topic_is(transfer())) && is_forwarded(TopicFilter::Any));
    assert!(
        is_forwarded(topic_is(word("own")))
            && is_forwarded(topic_is(word("token")))
            && is_forwarded(topic_is(B256::ZERO))
    );
    assert!(is_forwarded(TopicFilter::OneOf(vec![word("own"), transfer()])));
    assert!(!is_forwarded(topic_is(word("hidden"))) && !is_forwarded(topic_is(number(100))));
    assert!(!is_forwarded(TopicFilter::OneOf(vec![word("own"), word("hidden")])));
    let requested = filter(&["token"], vec![topic_is(word("hidden")), topic_is(word("own"))]);
    let upstream = view::upstream_filter(&reader, &requested);
    assert_eq!(
        upstream.topics,
        [TopicFilter::Any, topic_is(word("own"))],
        "the other positions do not move"
    );
    assert_eq!(
        (upstream.addresses, upstream.range),
        (requested.addresses, requested.range)
    );
}

/// HD1: a masked topic matches only the wildcard, not the zero word that it shows. A real zero word matches.
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
    let matching = |topics| rows(&get_logs(&reader, &filter(&["token"], topics), &logs, &[]));
    assert_eq!(matching(vec![TopicFilter::Any, topic_is(B256::ZERO)]), [mint]);
    assert_eq!(
        matching(vec![TopicFilter::Any, TopicFilter::Any, topic_is(word("own"))]).len(),
        2
    );
    assert_eq!(matching(vec![TopicFilter::Any; 3]).len(), 2);
    assert_eq!(
        matching(vec![TopicFilter::Any; 4]).len(),
        0,
        "more criteria than topics match nothing"
    );
    assert_eq!(matching(vec![TopicFilter::OneOf(vec![])]).len(), 0);
}

/// HD1: small numbers can be queried, although the upstream filter leaves them out as possible addresses.
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
    let by_id = filter(&["nft"], vec![TopicFilter::Any, topic_is(number(100))]);
    assert_eq!(
        rows(&get_logs(&viewer(&snapshot, "u", SPEC), &by_id, &logs, &[])),
        [logs[0].clone()]
    );
}

/// [S] rule 4, K2: a participant sees the whole transaction, and may query for its counterparties.
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
    let own_logs = get_logs(&payer, &filter(&["token", "unregistered"], vec![]), &logs, &txs);
    assert_eq!(rows(&own_logs), logs[..2]);
    let counterparty = filter(&["token"], vec![TopicFilter::Any, topic_is(word("pool"))]);
    assert_eq!(rows(&get_logs(&payer, &counterparty, &logs, &txs)), logs[..1]);

    let strict = PolicySettings {
        participant_logs: TransactionLogs::Granted,
        ..PolicySettings::SPEC
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

/// K4: shared logs are shown masked, regardless of the emitter. With the strict setting, this requires a grant that
/// lists the event.
#[test]
fn k4_shared_logs_by_setting() {
    let unmatched_rule = rule([(2, Constraint::Word(number(99)))]);
    let listing = token().contract("token").grant("rest").events([unmatched_rule]);
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
    let strict = PolicySettings {
        shared_logs: TransactionLogs::Granted,
        ..PolicySettings::SPEC
    };
    let count_with = |settings, user| count(&snapshot, settings, user, &emitters, &logs, &[]);
    assert_eq!(count_with(SPEC, "friend"), 2);
    assert_eq!(count_with(&strict, "friend"), 0);
    assert_eq!(
        count(&snapshot, &strict, "colleague", &["token"], &logs, &[]),
        1,
        "shown although the parameter rule does not match"
    );
    assert_eq!(
        count(&snapshot, SPEC, "sender", &["token"], &logs, &[]),
        0,
        "a share does not apply to the sender"
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

/// R29: an unlocked contract shows shared events unmasked to recipients who are insiders: they have a grant through a
/// current membership in a group of the owning organization that is not a system group.
#[test]
fn r29_unlock_applies_to_recipients_who_are_insiders() {
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
    let is_unmasked = |snapshot: &Snapshot, user| match get_logs(
        &viewer(snapshot, user, SPEC),
        &filter(&["token"], vec![]),
        &logs,
        &[],
    ) {
        LogsAnswer::Rows(shown, count) => rows(&LogsAnswer::Rows(shown, count)) == logs,
        LogsAnswer::NotPermitted => false,
    };
    let unlocked = base(true);
    assert!(is_unmasked(&unlocked, "insider"));
    for user in ["unlisted", "outsider", "former", "nobody"] {
        assert!(!is_unmasked(&unlocked, user), "{user}");
    }
    assert!(!is_unmasked(&base(false), "insider"));
}

/// F4, decision 19: the logs that the event rules of a grant allow. Parameter rules are alternatives.
#[test]
fn f4_event_rules() {
    let log_own = transfer_log("token", "t", "own", "hidden");
    let is_shown = |rules: Vec<EventRule>, log: &Value| {
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
    let own = |index| rule([(index, Constraint::Own)]);
    let equals = |index, word| rule([(index, Constraint::Word(word))]);
    assert!(!is_shown(vec![], &log_own), "an empty list allows nothing");
    assert!(
        is_shown(vec![rule([])], &log_own),
        "a rule without parameters always matches"
    );
    assert!(!is_shown(
        vec![EventRule {
            topic0: keccak256("Other()"),
            params: vec![]
        }],
        &log_own
    ));
    assert!(is_shown(vec![own(0)], &log_own) && !is_shown(vec![own(1)], &log_own));
    assert!(
        is_shown(vec![rule([(1, Constraint::Own), (0, Constraint::Own)])], &log_own),
        "alternatives"
    );
    assert!(is_shown(vec![own(1), own(0)], &log_own), "rules are alternatives too");
    assert!(!is_shown(vec![own(2)], &log_own), "`self` matches addresses only");
    assert!(!is_shown(vec![own(7)], &log_own), "no such parameter");
    assert!(is_shown(vec![equals(2, number(7))], &log_own) && !is_shown(vec![equals(2, number(8))], &log_own));
    assert!(is_shown(vec![equals(0, word("own"))], &log_own));
    // HD1: a constant that the viewer may not see never matches, because a match would reveal it.
    assert!(!is_shown(vec![equals(1, word("hidden"))], &log_own));
    let short = log(
        address_of("token"),
        "t",
        &[transfer(), word("own"), word("hidden")],
        &[1, 2],
    );
    assert!(
        !is_shown(vec![equals(2, number(7))], &short),
        "data that cannot be decoded does not match"
    );
    let fewer = log(address_of("token"), "t", &[transfer(), word("own")], &[]);
    assert!(!is_shown(vec![own(0)], &fewer), "not the event of the ABI");
}

/// Section 6.1: without an ABI, parameters are read from the topics by position.
#[test]
fn event_rules_without_an_abi() {
    let is_shown = |must_be, index| {
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
    assert!(is_shown(Constraint::Own, 0) && !is_shown(Constraint::Own, 1) && !is_shown(Constraint::Own, 2));
    assert!(is_shown(Constraint::Word(word("own")), 0));
    assert!(!is_shown(Constraint::Word(word("hidden")), 1), "HD1");
    assert!(!is_shown(Constraint::Own, usize::MAX));
}

/// Section 6.1: an anonymous event matches no rule, but a grant on all events shows it.
#[test]
fn anonymous_events_match_no_rule() {
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

/// G6, C2, C3, K7: the rights of several grants are united. Both kinds of administrators and the deployer see all
/// events, masked.
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
        .events([rule([(0, Constraint::Own)])])
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
    let count_for = |user| count(&snapshot, SPEC, user, &["token"], &logs, &[]);
    assert_eq!(
        [
            count_for("one"),
            count_for("both"),
            count_for("claimant"),
            count_for("deployer"),
            count_for("admin"),
            count_for("rest")
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

/// Decision 20: for an address without grant, the answer contains own and shared logs. If there are none, the whole
/// call is denied.
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
    let query = |emitters: &[&str], topics| {
        get_logs(
            &viewer(&snapshot, "payer", SPEC),
            &filter(emitters, topics),
            &logs,
            &txs,
        )
    };
    assert_eq!(rows(&query(&["foreign"], vec![])), logs[..1]);
    assert_eq!(rows(&query(&["unregistered"], vec![])).len(), 1);
    assert_eq!(rows(&query(&["foreign", "unregistered", "token"], vec![])).len(), 2);
    assert_eq!(query(&["silent"], vec![]), LogsAnswer::NotPermitted);
    assert_eq!(query(&["random"], vec![]), LogsAnswer::NotPermitted);
    assert_eq!(
        query(&["foreign", "silent"], vec![]),
        LogsAnswer::NotPermitted,
        "one address without visible logs denies the call"
    );
    assert_eq!(
        query(&["foreign"], vec![topic_is(keccak256("Other()"))]),
        LogsAnswer::NotPermitted
    );
    assert_eq!(
        rows(&query(&["token"], vec![])).len(),
        0,
        "with a grant, the answer is an empty list"
    );
    assert_eq!(query(&[], vec![]), LogsAnswer::NotPermitted, "no address");
    let stranger = viewer(&snapshot, "nobody", SPEC);
    assert_eq!(
        get_logs(&stranger, &filter(&["foreign"], vec![]), &logs, &txs),
        LogsAnswer::NotPermitted
    );
}

/// Decision 40: if the groups of the owner do not list the method, a grant gives no access to logs. Logs of own and
/// shared transactions are shown as without a grant.
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
    let own = TransactionParties::new(address_of("own"), Some(address_of("token")));
    parties.extend([(hash_of("own"), own)]);
    let query = |shared_only: &[Address], logs: &Value| {
        let reader = viewer(&snapshot, "reader", SPEC);
        view::logs(
            &reader,
            &filter(&["token"], vec![]),
            shared_only,
            &parties,
            sealed(logs),
        )
    };
    assert!(matches!(query(&[], &logs), LogsAnswer::Rows(_, 3)));
    let token = address_of("token");
    let hashes: Vec<Value> = rows(&query(&[token], &logs))
        .iter()
        .map(|row| row["transactionHash"].clone())
        .collect();
    assert_eq!(hashes, [json!(hash_of("own")), json!(hash_of("shared"))]);
    assert_eq!(query(&[token], &json!([logs[0]])), LogsAnswer::NotPermitted);
}

/// Parties are requested only where they may change the answer, and once for each transaction.
#[test]
fn parties_are_needed_only_where_they_change_the_answer() {
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
        "a viewer without wallet cannot be a party"
    );
    assert!(needed("nobody", vec![]).is_empty());
    assert_eq!(needed("owner", vec![]), [hash_of("masked"), hash_of("shared")]);
    let by_receiver = |name| vec![TopicFilter::Any, TopicFilter::Any, topic_is(word(name))];
    assert_eq!(
        needed("owner", by_receiver("z")),
        needed("owner", by_receiver("random")),
        "HD1: the hidden address has no effect"
    );
    assert!(
        needed("owner", by_receiver("own")).is_empty(),
        "logs that cannot match need no parties"
    );
    let owner = viewer(&snapshot, "owner", SPEC);
    let block = view::parties_needed(&owner, &filter(&["token"], vec![]), &sealed(&logs))[0].block_hash;
    assert_eq!(block, hash_of("block"));
    assert_eq!(
        view::parties_needed(&owner, &filter(&["token"], vec![]), &sealed_text("[{]")),
        []
    );
}

/// Parties are read from a transaction or a block. A missing or malformed transaction counts as foreign, and so does
/// every transaction of an answer about another transaction or block than the one that was asked for.
#[test]
fn parties_are_read_from_transactions_and_blocks() {
    let snapshot = token().user("owner").member("staff").link("own").snapshot();
    let owner = viewer(&snapshot, "owner", SPEC);
    let logs = [transfer_log("token", "t", "x", "y")];
    let own = transaction("t", address_of("x"), Some(address_of("own")));
    let other = transaction("u", address_of("x"), None);
    let is_unmasked_with = |known: Vec<(B256, TransactionParties)>| {
        let mut parties = TxParties::default();
        parties.extend(known);
        let shown = view::logs(&owner, &filter(&["token"], vec![]), &[], &parties, sealed(&json!(logs)));
        shown == get_logs(&owner, &filter(&["token"], vec![]), &logs, std::slice::from_ref(&own))
    };
    let hash = hash_of("t");
    let by_transaction = |source: &str| {
        let read = view::transaction_parties(hash, &sealed_text(source));
        is_unmasked_with(read.map(|parties| (hash, parties)).into_iter().collect())
    };
    assert!(by_transaction(&own.to_string()));
    for source in [other.to_string().as_str(), "null", "[]", "{", "{}"] {
        assert!(!by_transaction(source), "{source}");
    }

    let by_block = |source: Value| is_unmasked_with(view::block_parties(hash_of("block"), &sealed(&source)));
    let block = |transactions: Value| json!({"number": "0x1", "hash": hash_of("block"), "transactions": transactions});
    assert!(by_block(block(json!([other, own]))));
    assert!(!by_block(block(json!([other]))), "the transaction was left out");
    assert!(!by_block(block(json!([hash]))), "hashes contain no parties");
    assert!(!by_block(block(json!([own, 1]))), "a malformed block is ignored");
    assert!(!by_block(json!(null)));
    let mut another = block(json!([own]));
    another["hash"] = json!(hash_of("another block"));
    assert!(!by_block(another), "another block than the one asked for");
    let mut strayed = own.clone();
    strayed["blockHash"] = json!(hash_of("another block"));
    assert!(!by_block(block(json!([strayed]))), "a transaction of another block");
}

/// Section 6.1: logs of unregistered emitters are only for participants and recipients of a share.
#[test]
fn logs_of_unregistered_emitters_are_hidden() {
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
        count(
            &snapshot,
            &PolicySettings::STRICT,
            "admin",
            &["unregistered"],
            &logs,
            &[]
        ),
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
        "everybody may access a precompile, which has no logs"
    );
}
