//! "Adding what a viewer may not see changes no byte of any answer" (spec/30 I5): checked through `/rpc`, over random
//! worlds and every read method.

mod node;
mod questions;

use crate::{
    store_fixture::Settled,
    world::{World, scripted_with},
};
use gw_evm::{Class, Method};
use gw_policy::{
    PolicySettings,
    settings::HiddenBalanceMode,
    testing::{NOW, World as PolicyWorld, function},
};
use gw_rpc::RpcSettings;
use gw_testkit::scenario::{Additions, Scenario, USERS, additions, scenario};
use gw_types::Claim;
use node::Chain;
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestError, TestRunner},
};
use questions::{ASK, Question};

/// Decision 34: these fields of own rows and of the head's header may depend on what others do. The list also has
/// `eth_blockNumber` and a block's number; here the chain has one block.
const EXCEPTIONS: [&str; 4] = ["transactionIndex", "logIndex", "timestamp", "baseFeePerGas"];

/// The answer without the fields that are exceptions.
fn compared(answer: &str) -> String {
    EXCEPTIONS.iter().fold(answer.to_owned(), |text, name| {
        let member = format!("\"{name}\":\"");
        let mut parts = text.split(&member);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| match part.split_once('"') {
            Some((_, after)) => before + &member + "\"" + after,
            None => before + &member,
        })
    })
}

/// Status and body of every answer.
async fn answers(world: &World, token: Option<&str>, questions: &[Question]) -> Vec<String> {
    let mut answers = Vec::with_capacity(questions.len());
    for (method, params) in questions {
        if method.starts_with("debug_") {
            // J8: one trace per second.
            world.fixture.clock.pass(1);
        }
        let ask = world.raw(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ));
        let ask = match token {
            Some(token) => ask.bearer(token),
            None => ask,
        };
        let answer = ask.send().await;
        assert!(answer.status < 500, "{method}{params}: {}", answer.text);
        answers.push(format!("{} {}", answer.status, answer.text));
    }
    answers
}

/// Compares every answer before and after the world grows.
async fn unchanged(case: Case) -> Result<(), TestCaseError> {
    let Case {
        scenario,
        viewer,
        additions,
        policy_settings,
        party_cache_bytes,
    } = case;
    let settings = RpcSettings {
        party_cache_bytes,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, policy_settings).await;
    world.fixture.clock.set(NOW);
    let chain = Chain::default();
    chain.serve(&fake);
    let mut settled = Settled::default();
    settled.write(&world, &policy_world(scenario.world())).await;
    chain.set(&scenario.transactions);
    let token = viewer.map(|viewer| settled.token(&world, USERS[viewer]));

    let grown = scenario.grown(viewer, additions);
    let questions_before = questions::all(&scenario, &scenario.transactions, &grown.hidden);
    let before = answers(&world, token.as_deref(), &questions_before).await;
    repeated(&world, token.as_deref(), &questions_before, &before).await?;

    settled.write(&world, &policy_world(grown.world)).await;
    chain.set(&grown.scenario.transactions);
    let questions_after = questions::all(&grown.scenario, &scenario.transactions, &grown.hidden);
    // Others read the logs first, which fills the cache of parties.
    let logs: Vec<_> = questions_after
        .iter()
        .filter(|(method, _)| *method == LOGS)
        .cloned()
        .collect();
    for user in USERS {
        answers(&world, Some(&settled.token(&world, user)), &logs).await;
    }
    let after = answers(&world, token.as_deref(), &questions_after).await;
    repeated(&world, token.as_deref(), &questions_after, &after).await?;

    for (((method, params), before), after) in questions_after.iter().zip(&before).zip(&after) {
        let (before, after) = (compared(before), compared(after));
        prop_assert_eq!(
            &before,
            &after,
            "{} {}\nwas {}\nis  {}",
            method,
            questions::name_addresses(&params.to_string()),
            questions::name_addresses(&before),
            questions::name_addresses(&after)
        );
    }
    Ok(())
}

const LOGS: &str = "eth_getLogs";

/// Asks for logs again, now that the parties of their transactions were read: no byte changes.
async fn repeated(
    world: &World,
    token: Option<&str>,
    questions: &[Question],
    first: &[String],
) -> Result<(), TestCaseError> {
    for (question, first) in questions.iter().zip(first).filter(|((method, _), _)| *method == LOGS) {
        let again = answers(world, token, std::slice::from_ref(question)).await;
        prop_assert_eq!(&again[0], first, "{}", question.1);
    }
    Ok(())
}

/// A scenario, what others add to it, and for whom nothing may change.
#[derive(Clone, Debug)]
struct Case {
    scenario: Scenario,
    /// `None` for an anonymous viewer.
    viewer: Option<usize>,
    additions: Additions,
    policy_settings: PolicySettings,
    /// Zero for no cache of parties.
    party_cache_bytes: usize,
}

/// The world of a scenario, in which anonymous callers may use every method without a target, and callers with
/// restricted grants may call one function.
fn policy_world(world: PolicyWorld) -> PolicyWorld {
    let open = |method: &&Method| matches!(method.class(), Class::Meta | Class::Chain | Class::Tx | Class::Block);
    world
        .org("anonymous")
        .group("anonymous")
        .methods(Method::ALL.iter().filter(open).copied())
        .org("a")
        .group("staff")
        .claim(Claim::Deploy)
        .contract("a-token")
        .grant("own")
        .functions([function(ASK, [])])
}

/// Runs the property over `cases` worlds, the same ones each time.
fn property(cases: u32, policy_settings: impl Strategy<Value = PolicySettings>) -> Result<(), Box<TestError<Case>>> {
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(34),
        failure_persistence: None,
        // No shrinking: a smaller world costs as much as a new case, so a failing case is shown as it is.
        max_shrink_iters: 0,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let viewer = prop::option::weighted(0.9, 0..USERS.len());
    let cache = prop_oneof![Just(0), Just(RpcSettings::default().party_cache_bytes)];
    let parts = (scenario(2..6), viewer, additions(4..10), policy_settings, cache);
    let case = parts.prop_map(
        |(scenario, viewer, additions, policy_settings, party_cache_bytes)| Case {
            scenario,
            viewer,
            additions,
            policy_settings,
            party_cache_bytes,
        },
    );
    TestRunner::new(config)
        .run(&case, |case| runtime.block_on(unchanged(case)))
        .map_err(Box::new)
}

/// I5, decision 34, K8, K9, HD1, HD6: other organizations' contracts, links, users, grants, reservations and shares,
/// and transactions and logs that concern others, change no byte of any answer but for the listed exceptions.
#[test]
fn i5_what_a_viewer_may_not_see_changes_no_byte() {
    let policy_settings = prop_oneof![Just(PolicySettings::SPEC), Just(PolicySettings::STRICT)];
    if let Err(error) = property(12, policy_settings) {
        panic!("{error}");
    }
}

/// The property depends on the filters: with an optional filter switched off, it does not hold.
#[test]
fn i5_fails_with_a_filter_off() {
    for (filter, policy_settings) in [
        (
            "K8 off",
            PolicySettings {
                address_query: HiddenBalanceMode::Off,
                ..PolicySettings::SPEC
            },
        ),
        (
            "K9 off",
            PolicySettings {
                hide_block_roots: false,
                ..PolicySettings::SPEC
            },
        ),
    ] {
        let outcome = property(3, Just(policy_settings));
        let failed = outcome.is_err_and(|error| matches!(*error, TestError::Fail(..)));
        assert!(failed, "{filter}: nothing changed");
    }
}
