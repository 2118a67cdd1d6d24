//! Bytes of answers are charged to their caller until they are sent (RL8). The tests observe the budget itself, never
//! the clock.

use crate::world::{Answer, World, holding};
use axum::body::Body;
use gw_evm::CustomMethods;
use gw_node::{AnswerLimits, Payer};
use gw_rpc::RpcSettings;
use gw_testkit::{FakeNode, TestUser};
use gw_types::{Address, DenyReason, OrgId};
use serde_json::{Value, json};
use std::{pin::Pin, sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BOND: Address = Address::repeat_byte(0x11);
const MIB: usize = 1 << 20;
/// An answer of about a mebibyte.
const LARGE: usize = MIB - 1024;
/// Longer than any test takes: a call with this patience waits until bytes are released.
const LONG: Duration = Duration::from_secs(3600);

fn settings() -> RpcSettings {
    let file = json!({"version": 2, "namespaces": {"linea": {"wildcard": {"prefix": "linea_", "deny": []}}}});
    RpcSettings {
        custom_methods: Arc::new(CustomMethods::parse(&file.to_string(), true).unwrap()),
        ..RpcSettings::default()
    }
}

/// A node that answers `eth_getCode` and a custom method with this many bytes.
async fn node(bytes: usize) -> FakeNode {
    let fake = FakeNode::start().await;
    fake.set_result("eth_getCode", json!(format!("0x{}", "00".repeat(bytes / 2))));
    fake.set_result("linea_blob", json!("x".repeat(bytes)));
    fake
}

async fn world(fake: &FakeNode, per_caller: usize, patience: Duration) -> (World, OrgId) {
    let world = holding(
        fake.url(),
        settings(),
        AnswerLimits {
            max: 4 * per_caller,
            per_caller,
            patience,
        },
    )
    .await;
    let bank = world.fixture.create_org("bank").await;
    (world, bank)
}

async fn caller(world: &World, bank: OrgId, name: &str) -> TestUser {
    let caller = world.person(name, bank, &["*", "linea_*"], &[]).await;
    if name == "caller" {
        world.contract(bank, BOND, None, &[caller.group]).await;
    }
    caller
}

const CODE: (&str, &str) = (
    "eth_getCode",
    r#"["0x1111111111111111111111111111111111111111","latest"]"#,
);
const BLOB: (&str, &str) = ("linea_blob", "[]");

type Opening = Pin<Box<dyn Future<Output = http::Response<Body>> + Send>>;

fn ask(world: &World, person: &TestUser, (method, params): (&str, &str)) -> Opening {
    Box::pin(
        world
            .ask(Some(person), method, serde_json::from_str(params).unwrap())
            .opening(),
    )
}

async fn waiting(world: &World, count: usize) {
    while world.node.answers().waiting() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn rl8_an_answer_is_charged_until_its_last_byte_is_sent() {
    let fake = node(LARGE).await;
    for call in [CODE, BLOB] {
        let (world, bank) = world(&fake, 2 * MIB, Duration::ZERO).await;
        let (person, bystander) = (
            caller(&world, bank, "caller").await,
            caller(&world, bank, "other").await,
        );
        let answers = Arc::clone(world.node.answers());
        let opened = ask(&world, &person, call).await;
        assert_eq!(opened.status(), 200);
        let held = answers.held_by(Payer::User(person.id));
        assert!(
            (LARGE..LARGE + 1024).contains(&held),
            "{call:?}: once, not twice: {held}"
        );
        let text = Answer::read(opened).await.text;
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":""#) && text.ends_with(r#""}"#));
        assert_eq!(answers.held(), 0);
        // A caller who does not read their answers blocks their own further answers, and nobody else's.
        let (first, second) = (ask(&world, &person, call).await, ask(&world, &person, call).await);
        assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
        world.fixture.access_records();
        let rejected = Answer::read(ask(&world, &person, CODE).await).await;
        assert_eq!(rejected.error(), (429, -32005));
        assert_eq!(rejected.headers["retry-after"], "1");
        assert!(rejected.text.contains("too many requests"));
        let record = world.fixture.access_records().pop().unwrap();
        assert_eq!(
            (record.status_code, record.denial_reason),
            (429, Some(DenyReason::ConcurrencyLimited))
        );
        assert_eq!(Answer::read(ask(&world, &bystander, BLOB).await).await.status, 200);
        // A client that disconnects releases the bytes, too.
        drop(first);
        assert_eq!(Answer::read(ask(&world, &person, CODE).await).await.status, 200);
        drop(second);
        assert_eq!(answers.held(), 0);
    }
}

#[tokio::test]
async fn rl8_twenty_large_answers_of_one_caller_take_turns() {
    let fake = node(LARGE).await;
    let (world, bank) = world(&fake, 3 * MIB, LONG).await;
    let person = caller(&world, bank, "caller").await;
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let opening = ask(&world, &person, if number % 2 == 0 { CODE } else { BLOB });
            tokio::spawn(async move { Answer::read(opening.await).await.status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    let answers = world.node.answers();
    assert!(answers.peak() <= 3 * MIB, "{}", answers.peak());
    assert_eq!((answers.held(), answers.waiting()), (0, 0));
}

#[tokio::test]
async fn rl8_a_waiting_call_is_answered_when_an_earlier_answer_is_released() {
    let fake = node(LARGE).await;
    let (world, bank) = world(&fake, MIB, LONG).await;
    let person = caller(&world, bank, "caller").await;
    let slow = ask(&world, &person, CODE).await;
    let next = tokio::spawn(ask(&world, &person, BLOB));
    waiting(&world, 1).await;
    drop(slow);
    assert_eq!(Answer::read(next.await.unwrap()).await.status, 200);
    assert_eq!(world.node.answers().held(), 0);
}

/// The limits of spec/85 section 5 still hold: a single answer may be larger than the caller's share.
#[tokio::test]
async fn rl8_a_single_answer_may_exceed_the_share() {
    let fake = node(3 * MIB).await;
    let (world, bank) = world(&fake, MIB, Duration::ZERO).await;
    let person = caller(&world, bank, "caller").await;
    let opened = ask(&world, &person, CODE).await;
    assert_eq!(opened.status(), 200);
    assert_eq!(ask(&world, &person, CODE).await.status(), 429);
    assert_eq!(
        Answer::read(opened).await.text.len(),
        r#"{"jsonrpc":"2.0","id":1,"result":"0x"}"#.len() + 3 * MIB
    );
    assert_eq!(world.node.answers().held(), 0);
}

#[tokio::test]
async fn rl8_the_elements_of_a_batch_count_together() {
    let fake = node(LARGE).await;
    let (world, bank) = world(&fake, 3 * MIB, Duration::ZERO).await;
    let person = caller(&world, bank, "caller").await;
    let element = |(method, params): (&str, &str), id: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let batch: Vec<_> = (0..5)
        .map(|id| element(if id % 2 == 0 { CODE } else { BLOB }, id))
        .collect();
    let opened = world.raw(format!("[{}]", batch.join(","))).by(&person).opening().await;
    let held = world.node.answers().held();
    assert!((3 * LARGE..=3 * MIB).contains(&held), "{held}");
    let answer = Answer::read(opened).await;
    let codes: Vec<_> = answer
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["error"]["code"].clone())
        .collect();
    assert_eq!(
        codes,
        [Value::Null, Value::Null, Value::Null, json!(-32005), json!(-32005)]
    );
    assert_eq!(world.node.answers().held(), 0);
    let statuses: Vec<_> = world
        .fixture
        .access_records()
        .iter()
        .map(|record| record.status_code)
        .collect();
    assert_eq!(statuses[statuses.len() - 5..], [200, 200, 200, 429, 429]);
}

/// Small answers are not counted one by one, but together they are.
#[tokio::test]
async fn rl8_many_small_elements_of_a_batch_count() {
    let fake = node(60_000).await;
    let (world, bank) = world(&fake, MIB, Duration::ZERO).await;
    let person = caller(&world, bank, "caller").await;
    let slow = world.ask(Some(&person), BLOB.0, json!([])).opening().await;
    assert_eq!(world.node.answers().held(), 0, "a small answer is not counted");
    let batch = vec![r#"{"jsonrpc":"2.0","id":1,"method":"linea_blob","params":[]}"#; 100].join(",");
    // Another answer of the caller is still unread, so the batch does not have the whole share.
    fake.set_result("linea_blob", json!("x".repeat(MIB / 2)));
    let unread = ask(&world, &person, BLOB).await;
    fake.set_result("linea_blob", json!("x".repeat(60_000)));
    let opened = world.raw(format!("[{batch}]")).by(&person).opening().await;
    let held = world.node.answers().held();
    assert!(held <= MIB, "{held}");
    drop((slow, unread));
    let answer = Answer::read(opened).await;
    let answered = answer
        .body
        .as_array()
        .unwrap()
        .iter()
        .filter(|element| element.get("result").is_some())
        .count();
    assert!((2..20).contains(&answered), "{answered}");
    assert_eq!(world.node.answers().held(), 0);
}

/// A chunked answer declares no length: its bytes are charged as they arrive.
#[tokio::test]
async fn rl8_an_answer_of_unknown_length_is_charged_as_it_arrives() {
    let fake = node(LARGE).await;
    let chunked = chunked(&fake).await;
    let limits = |per_caller| AnswerLimits {
        max: 4 * per_caller,
        per_caller,
        patience: Duration::ZERO,
    };
    let world = holding(&chunked, settings(), limits(2 * MIB)).await;
    let bank = world.fixture.create_org("bank").await;
    let person = caller(&world, bank, "caller").await;
    let first = ask(&world, &person, BLOB).await;
    let held = world.node.answers().held_by(Payer::User(person.id));
    assert!((LARGE..LARGE * 2).contains(&held), "{held}");
    assert_eq!(ask(&world, &person, CODE).await.status(), 429);
    assert_eq!(Answer::read(first).await.status, 200);
    assert_eq!(Answer::read(ask(&world, &person, CODE).await).await.status, 200);
    assert_eq!(world.node.answers().held(), 0);
}

/// A proxy to the node that forwards answers in chunks.
async fn chunked(fake: &FakeNode) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let upstream = fake.url().trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut node = tokio::net::TcpStream::connect(&upstream).await.unwrap();
            tokio::spawn(async move {
                let request = message(&mut client).await?;
                node.write_all(&request).await.ok()?;
                let answer = message(&mut node).await?;
                let body = answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                client.write_all(head.as_bytes()).await.ok()?;
                for chunk in answer[body..].chunks(50_000) {
                    client
                        .write_all(format!("{:x}\r\n", chunk.len()).as_bytes())
                        .await
                        .ok()?;
                    client.write_all(chunk).await.ok()?;
                    client.write_all(b"\r\n").await.ok()?;
                }
                client.write_all(b"0\r\n\r\n").await.ok()
            });
        }
    });
    url
}

/// Reads a whole message that has a content length.
async fn message(stream: &mut tokio::net::TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 65_536];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))?
            .parse::<usize>()
            .ok()?;
        if bytes.len() >= end + 4 + length {
            return Some(bytes);
        }
    }
}
