//! Webhooks through the real binary: the receiver is the library of the Standard Webhooks specification.

use crate::{
    harness::{Engine, on_both_engines},
    world::World,
};
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

on_both_engines! {
    a_standard_receiver_verifies_the_events_of_a_disclosure,
}

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/webhook_receiver.py");
/// Longer than any delivery takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Receiver {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    port: String,
}

impl Receiver {
    async fn start() -> Self {
        let mut process = Command::new(PYTHON)
            .arg(RECEIVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{PYTHON}: {error}; run scripts/setup.sh"));
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut output = BufReader::new(output).lines();
        let port = output.next_line().await.unwrap().expect("run scripts/setup.sh");
        Self {
            _process: process,
            input,
            output,
            port,
        }
    }

    async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.expect("a delivery").unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

async fn a_standard_receiver_verifies_the_events_of_a_disclosure(engine: Engine) {
    let w = World::start(engine).await;
    let mut receiver = Receiver::start().await;
    let webhook = format!("/orgs/{}/webhook", w.meridian);
    let url = format!("http://127.0.0.1:{}/hook", receiver.port);
    let created = w.as_admin("PUT", &webhook, Some(json!({"url": url}))).await.expect(200);
    let secret = created["secret"].as_str().unwrap();
    receiver
        .input
        .write_all(format!("{secret}\n").as_bytes())
        .await
        .unwrap();

    let tested = w.as_admin("POST", &format!("{webhook}/test"), None).await.expect(202);
    let delivered = receiver.next().await;
    assert_eq!(delivered["verified"]["type"], "webhook.test", "{delivered}");
    assert_eq!(delivered["verified"]["id"], tested["id"]);

    let body = json!({"org_id": w.meridian, "target_user_id": w.ops.user_id, "requester_did": "did:test:auditor",
        "reason": "yearly audit"});
    let request = w.as_admin("POST", "/disclosure/requests", Some(body)).await.expect(201);
    let delivered = receiver.next().await;
    assert_eq!(delivered["verified"]["type"], "disclosure.requested", "{delivered}");
    let data = json!({"org_id": w.meridian, "request_id": request["id"], "grant_id": null, "status": "pending"});
    assert_eq!(delivered["verified"]["data"], data);

    let rotate = json!({"url": url, "rotate_secret": true});
    w.as_admin("PUT", &webhook, Some(rotate)).await.expect(200);
    w.as_admin("POST", &format!("{webhook}/test"), None).await.expect(202);
    let refused = receiver.next().await;
    assert!(refused["refused"].is_string(), "it has the former secret: {refused}");
}
