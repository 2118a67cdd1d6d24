//! RL2 from outside: attacks by somebody with the audit database's credentials, and the reaction of the binary.

use crate::deployment::{Deployment, Store, call, on_both_engines, output_of};
use gw_testkit::anvil::anvil;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::{Arc, Mutex},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";
const JSON: (&str, &str) = ("LOG_FORMAT", "json");

on_both_engines! {
    rl2_au22_a_truncated_chain_is_refused_found_and_re_anchored,
    rl2_au19_the_running_service_finds_a_truncated_chain_by_itself,
    rl2_au18_an_unsigned_entry_rewritten_after_a_kill_is_found,
    rl2_au22_a_rewritten_signed_entry_refuses_the_start_of_a_new_shard_too,
    rl2_an_unsigned_entry_rewritten_while_the_service_runs_raises_the_alarm,
    rl2_hd24_an_appended_entry_fences_the_shard_whose_own_entries_are_signed,
    rl9_a_row_copied_to_an_invalid_id_is_a_finding_until_re_anchored,
    rl3_a_deleted_policy_store_row_is_named_and_is_a_finding,
    rl9_a_lost_outbox_row_is_reported_until_it_is_accepted,
}

/// RL2, AU-20, AU-22: the tail of a chain is removed together with its notes. The start is refused, and `audit verify`
/// finds the truncation here and on another machine with notes from the log. A re-anchoring accepts the shorter chain
/// and stays listed.
fn rl2_au22_a_truncated_chain_is_refused_found_and_re_anchored(deployment: &Deployment) {
    let node = anvil();
    let gateway = deployment.start(node.url(), &[JSON]);
    call(&gateway, 6);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    assert!(output_of(&deployment.run(&["audit", "verify"])).contains("OK access/"));
    // The signed notes in the log, kept on another machine.
    let notes = deployment.path("notes.jsonl");
    fs::write(&notes, &log).expect("written");
    assert!(log.contains("the list of chains was signed"), "{log}");

    deployment.sql(
        Store::Audit,
        "DELETE FROM entries WHERE kind = 'access' AND seq > 2; \
         DELETE FROM checkpoints WHERE chain_id = (SELECT id FROM chains WHERE stream = 'access'); \
         UPDATE chains SET issued = -1, size = 3, head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq \
         = 2) WHERE stream = 'access'",
    );
    let verification = deployment.run(&["audit", "verify", "--format", "json", "--chain", "access"]);
    assert_eq!(verification.status.code(), Some(1), "{}", output_of(&verification));
    assert!(
        output_of(&verification).contains("chain_truncated"),
        "{}",
        output_of(&verification)
    );

    // Without the journal, the entries cannot be sealed again.
    let heads = Path::new(&deployment.path("journal")).join("trusted-heads");
    let kept = fs::read(&heads).expect("there");
    fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let elsewhere = deployment.run(&["audit", "verify", "--checkpoint", &notes]);
    assert_eq!(elsewhere.status.code(), Some(1), "{}", output_of(&elsewhere));
    assert!(
        output_of(&elsewhere).contains("chain_truncated"),
        "{}",
        output_of(&elsewhere)
    );
    fs::create_dir(deployment.path("journal")).expect("made");
    fs::write(&heads, &kept).expect("put back");
    let output = deployment.failed_start(node.url(), &[]);
    assert!(
        output.contains("entries are missing") && output.contains("audit re-anchor"),
        "{output}"
    );

    let text = String::from_utf8_lossy(&verification.stdout).into_owned();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("json");
    let chain = line
        .get("chain")
        .and_then(serde_json::Value::as_str)
        .expect("a name")
        .to_owned();
    assert_eq!(
        deployment.run(&["audit", "re-anchor", "--chain", &chain]).status.code(),
        Some(2),
        "actor and reason are required"
    );
    let decide = ["audit", "re-anchor", "--chain", &chain, "--actor", "jane", "--reason"];
    let unnamed = deployment.run(&[&decide[..], &[" "]].concat());
    assert_eq!(unnamed.status.code(), Some(2), "{}", output_of(&unnamed));
    let shown = deployment.run(&[&decide[..], &["restored"]].concat());
    assert!(
        output_of(&shown).contains("nothing was changed"),
        "{}",
        output_of(&shown)
    );
    assert!(
        deployment.failed_start(node.url(), &[]).contains("entries are missing"),
        "a dry run changes nothing"
    );
    let result = deployment.run(&[&decide[..], &["restored", "--confirm"]].concat());
    assert!(result.status.success(), "{}", output_of(&result));

    let gateway = deployment.start(node.url(), &[JSON]);
    call(&gateway, 2);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
    assert!(
        output_of(&verified).contains("authorized: re-anchored") && output_of(&verified).contains("by jane"),
        "{}",
        output_of(&verified)
    );
}

/// Starts an HTTP server that accepts every request. Returns its address and the text of the received requests.
fn receiver() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/here", listener.local_addr().expect("bound"));
    let received = Arc::new(Mutex::new(String::new()));
    let server_copy = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), received) = (stream, Arc::clone(&server_copy)) else {
                return;
            };
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let text = String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned();
                    let has_head_end = text.contains("\r\n\r\n");
                    received.lock().expect("held").push_str(&text);
                    // Head and body may arrive in one read or in two; a response before the body does no harm here.
                    if has_head_end
                        && stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                            .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    (url, received)
}

/// RL2, AU-19: the running service finds a truncated chain by itself, reports it to the webhook, and stays ready.
fn rl2_au19_the_running_service_finds_a_truncated_chain_by_itself(deployment: &Deployment) {
    let node = anvil();
    let ((witness, notes), (webhook, findings)) = (receiver(), receiver());
    let settings = [
        JSON,
        ("AUDIT_CHECKPOINT_INTERVAL", "1s"),
        ("AUDIT_INTEGRITY_VERIFY_INTERVAL", "1s"),
        ("AUDIT_WITNESS_URL", &witness),
        ("AUDIT_TAMPER_WEBHOOK_URL", &webhook),
    ];
    let mut gateway = deployment.start(node.url(), &settings);
    call(&gateway, 4);
    let has = |received: &Arc<Mutex<String>>, text: &str| received.lock().expect("held").contains(text);
    gateway.wait("signed the calls", |_| {
        // A call that is sealed after the removal would have the removed entries sealed again.
        let is_complete = deployment.sizes() == (5, 5);
        is_complete && has(&notes, "ledger-gateway/access/") && has(&notes, "ledger-gateway/chains")
    });
    // The trusted heads have the signature before the witness gets it, and the removed tail includes signed entries.
    assert!(!has(&findings, "tamper_detected"), "an unchanged log has no finding");
    deployment.sql(
        Store::Audit,
        "DELETE FROM entries WHERE kind = 'access' AND seq > 0; DELETE FROM checkpoints; \
         UPDATE chains SET size = 1, head_hash = (SELECT hash FROM entries e WHERE e.chain_id = chains.id AND e.seq = \
         0) WHERE stream = 'access'",
    );
    gateway.wait("found the truncation", |_| has(&findings, "chain_truncated"));
    for member in [
        "type",
        "chain",
        "reason",
        "row_id",
        "row_time",
        "stored_hash",
        "expected_hash",
        "scanned_rows",
        "null_hash_rows",
        "detected_at",
    ] {
        assert!(has(&findings, &format!("\"{member}\"")), "{member}");
    }
    assert!(has(&findings, "audit.chain.tamper_detected"));
    let ready = gateway.get("/ready");
    assert_eq!(ready.status, 200, "{}", ready.body);
    assert!(ready.body.contains(r#""audit_chain":"down""#), "{}", ready.body);
    let metrics = gateway.get("/metrics").body;
    assert!(
        metrics.contains("ledger_gateway_audit_chain_integrity_violations_total{"),
        "{metrics}"
    );
    let log = gateway.output();
    assert!(log.contains("the audit log was tampered with"), "{log}");
}

/// Runs a gateway, sends calls, and kills the process before the calls are signed.
fn kill_with_unsigned_calls(deployment: &Deployment, node: &str) {
    let mut gateway = deployment.start(node, &[JSON, ("AUDIT_CHECKPOINT_INTERVAL", "1h")]);
    call(&gateway, 4);
    // The genesis and four calls.
    gateway.wait("sealed the calls", |_| deployment.sizes() == (5, 0));
    drop(gateway);
}

/// RL2, RL10, AU-18: an attacker rewrites an entry that was sealed but not signed when the process was killed. The
/// journal still has the original: the service starts and records go on in a new shard, the change stays a finding
/// until the chain is re-anchored, and the rewritten entry is never signed.
fn rl2_au18_an_unsigned_entry_rewritten_after_a_kill_is_found(deployment: &Deployment) {
    let node = anvil();
    kill_with_unsigned_calls(deployment, node.url());
    deployment.rewrite_entry(None);
    for is_restart in [false, true] {
        let gateway = deployment.start(node.url(), &[JSON]);
        call(&gateway, 1);
        let ready = gateway.get("/ready").body;
        assert!(ready.contains(r#""audit_chain":"down""#), "{is_restart}: {ready}");
        let (status, log) = gateway.end();
        assert!(status.success(), "{log}");
        assert_eq!(
            log.contains("records go on in a new shard"),
            !is_restart,
            "{is_restart}: {log}"
        );
        assert_eq!(deployment.sizes(), (5, 0), "nothing forged is signed");
        let verification = deployment.run(&["audit", "verify"]);
        assert_eq!(verification.status.code(), Some(1), "{}", output_of(&verification));
        assert!(
            output_of(&verification).contains("anchor_mismatch"),
            "{}",
            output_of(&verification)
        );
    }
    deployment.re_anchor_first_failed("access", "changed by an intruder");
    let gateway = deployment.start(node.url(), &[JSON]);
    call(&gateway, 1);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(
        verified.status.success() && output_of(&verified).contains("by jane"),
        "{}",
        output_of(&verified)
    );
}

/// RL2, AU-22: an entry that was signed is rewritten together with an unsigned one. The start is refused, also after
/// the journal gave up the shard because of the unsigned entry.
fn rl2_au22_a_rewritten_signed_entry_refuses_the_start_of_a_new_shard_too(deployment: &Deployment) {
    let node = anvil();
    let gateway = deployment.start(node.url(), &[JSON]);
    call(&gateway, 2);
    // The end signs the genesis and two calls.
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let mut gateway = deployment.start(node.url(), &[JSON, ("AUDIT_CHECKPOINT_INTERVAL", "1h")]);
    call(&gateway, 2);
    gateway.wait("sealed the calls", |_| deployment.sizes() == (5, 3));
    drop(gateway);
    deployment.rewrite_entry(None);
    let gateway = deployment.start(node.url(), &[JSON]);
    drop(gateway.end());
    assert_eq!(deployment.sizes(), (5, 3), "nothing forged is signed");
    deployment.rewrite_entry(Some(3));
    let output = deployment.failed_start(node.url(), &[]);
    assert!(
        output.contains("is not as it was signed at 3 entries") && output.contains("audit re-anchor"),
        "{output}"
    );
}

/// RL2, HD24: entries that were not signed yet are rewritten while the service runs. The alarm is raised at once, the
/// service goes on, and the next start continues in a new shard.
fn rl2_an_unsigned_entry_rewritten_while_the_service_runs_raises_the_alarm(deployment: &Deployment) {
    let node = anvil();
    let settings = [JSON, ("AUDIT_CHECKPOINT_INTERVAL", "1h")];
    let mut gateway = deployment.start(node.url(), &settings);
    call(&gateway, 4);
    gateway.wait("sealed the calls", |_| deployment.sizes() == (5, 0));
    deployment.rewrite_entry(None);
    call(&gateway, 1);
    gateway.wait("raised the alarm", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    gateway.wait("shows that the chain is not sealed", |gateway| {
        gateway.get("/ready").body.contains(r#""sealing":"down""#)
    });
    assert_eq!(gateway.get("/ready").status, 200, "the journal keeps the records");
    let verification = deployment.run(&["audit", "verify"]);
    assert_eq!(verification.status.code(), Some(1), "{}", output_of(&verification));
    drop(gateway.end());
    let gateway = deployment.start(node.url(), &[JSON]);
    assert!(gateway.output().contains("records go on in a new shard"));
    drop(gateway.end());
    assert_eq!(deployment.sizes(), (5, 0), "nothing forged is signed");
}

/// RL2, HD24: after an entry was appended by an attacker, the gateway continues in a new shard. The genuine entries are
/// signed, the appended one is not.
fn rl2_hd24_an_appended_entry_fences_the_shard_whose_own_entries_are_signed(deployment: &Deployment) {
    let node = anvil();
    kill_with_unsigned_calls(deployment, node.url());
    deployment.append_entry();
    let gateway = deployment.start(node.url(), &[JSON]);
    assert_eq!(deployment.sizes(), (6, 5));
    let log = gateway.output();
    assert!(log.contains("records go on in a new shard"), "{log}");
    assert!(gateway.get("/ready").body.contains(r#""audit_chain":"down""#), "{log}");
    // Forge a second administrative chain, which must not exist, and an access chain with times ahead. Neither needs a
    // key.
    deployment.invent_chain("admin");
    deployment.invent_chain("access");
    let verification = deployment.run(&["audit", "verify", "--format", "json"]);
    assert_eq!(verification.status.code(), Some(1), "{}", output_of(&verification));
    let text = output_of(&verification);
    let has = |chain: &str, kind: &str| text.lines().any(|line| line.contains(chain) && line.contains(kind));
    assert!(
        has("admin/11111111", "\"fork\"") && has("access/11111111", "\"checkpoint_missing\""),
        "{text}"
    );
    drop(gateway);
}

/// RL3, RL9: a genuine outbox row that is copied to a number that is no valid id is a finding until the chain is
/// re-anchored, and its entry is intact.
fn rl9_a_row_copied_to_an_invalid_id_is_a_finding_until_re_anchored(deployment: &Deployment) {
    let node = anvil();
    let gateway = deployment.start(node.url(), &[JSON, ("ADMIN_API_TOKEN", TOKEN)]);
    gateway.admin(
        TOKEN,
        "POST",
        "/orgs",
        &serde_json::json!({"name": "one", "slug": "one"}),
    );
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let columns = "action, actor_id, actor_external_id, created_at, ip_address, org_id, resource_id, resource_name, \
                   resource_type, old_value, new_value, correlation_id, salt_seed, mac";
    let copy = |id| {
        format!(
            "INSERT INTO audit_outbox (id, {columns}) SELECT {id}, {columns} FROM audit_outbox WHERE id > 0 LIMIT 1;"
        )
    };
    deployment.sql(Store::Policy, &copy(0));
    deployment.sql(Store::Policy, &copy(-5));
    let mut gateway = deployment.start(node.url(), &[JSON]);
    gateway.wait("reported the rows", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let verification = deployment.run(&["audit", "verify", "--format", "json"]);
    let text = output_of(&verification);
    assert_eq!(verification.status.code(), Some(1), "{text}");
    assert!(
        text.contains("outbox_fault") && !text.contains("hash_mismatch"),
        "{text}"
    );
    deployment.re_anchor_first_failed("admin", "looked into");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL3: without the row of `policy_store`, changes are refused as unavailable, readiness and doctor show it, and it
/// is a finding after the row was put back.
fn rl3_a_deleted_policy_store_row_is_named_and_is_a_finding(deployment: &Deployment) {
    let node = anvil();
    let mut gateway = deployment.start(node.url(), &[JSON, ("ADMIN_API_TOKEN", TOKEN)]);
    deployment.sql(Store::Policy, "CREATE TABLE kept AS SELECT * FROM policy_store");
    deployment.sql(Store::Policy, "DELETE FROM policy_store");
    gateway.wait("shows that changes are refused", |gateway| {
        gateway.get("/ready").body.contains(r#""writes":"down""#)
    });
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    let body = r#"{"name":"one","slug":"one"}"#;
    assert_eq!(
        gateway.request("POST", "/api/v1/admin/orgs", &headers, body).status,
        503
    );
    gateway.wait("raises the alarm", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    drop(gateway.end());
    for output in [
        deployment.failed_start(node.url(), &[]),
        output_of(&deployment.run(&["doctor"])),
    ] {
        assert!(
            output.contains("the row of table `policy_store` is missing"),
            "{output}"
        );
    }
    deployment.sql(Store::Policy, "INSERT INTO policy_store SELECT * FROM kept");
    deployment.sql(Store::Policy, "DROP TABLE kept");
    let gateway = deployment.start(node.url(), &[JSON]);
    drop(gateway.end());
    let verification = deployment.run(&["audit", "verify"]);
    assert_eq!(verification.status.code(), Some(1), "{}", output_of(&verification));
    deployment.re_anchor_first_failed("security", "looked into");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL9: a lost outbox row is reported, also after a restart, until it is accepted, although the chain itself is
/// unchanged.
fn rl9_a_lost_outbox_row_is_reported_until_it_is_accepted(deployment: &Deployment) {
    let node = anvil();
    let gateway = deployment.start(node.url(), &[JSON]);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    assert!(
        deployment.run(&["audit", "verify"]).status.success(),
        "an unchanged log has no finding"
    );

    // The state after an attacker deletes the last row before it is sealed.
    deployment.sql(
        Store::Policy,
        "UPDATE policy_store SET last_outbox_id = last_outbox_id + 1",
    );
    let mut gateway = deployment.start(node.url(), &[JSON]);
    gateway.wait("reported the lost row", |gateway| {
        gateway.output().contains("audit outbox rows were deleted")
    });
    let (_, log) = gateway.end();
    deployment.sql(Store::Policy, "UPDATE policy_store SET last_outbox_id = 0");
    let mut gateway = deployment.start(node.url(), &[JSON, ("ADMIN_API_TOKEN", TOKEN)]);
    let listed = gateway
        .admin(TOKEN, "GET", "/audit-logs", &serde_json::Value::Null)
        .to_string();
    assert!(
        listed.contains(r#""outbox_fault":"missing""#) && listed.contains(r#""tampered":true"#),
        "{listed}"
    );
    gateway.wait("shows the finding at /ready", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    drop(gateway.end());
    let verification = deployment.run(&["audit", "verify"]);
    assert_eq!(
        verification.status.code(),
        Some(1),
        "{} {log}",
        output_of(&verification)
    );
    assert!(
        output_of(&verification).contains("outbox_gap"),
        "{}",
        output_of(&verification)
    );

    let chain = "admin/00000000-0000-0000-0000-000000000000";
    let decide = [
        "audit",
        "re-anchor",
        "--chain",
        chain,
        "--actor",
        "jane",
        "--reason",
        "looked into",
        "--confirm",
    ];
    let result = deployment.run(&decide);
    assert!(result.status.success(), "{}", output_of(&result));
    // The counter that was set back while the service was stopped.
    deployment.re_anchor_first_failed("security", "looked into, too");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
    assert!(
        output_of(&verified).contains("by jane because: looked into; 1 findings in it"),
        "{}",
        output_of(&verified)
    );
    let second = deployment.run(&decide);
    assert!(
        !second.status.success() && output_of(&second).contains("nothing to re-anchor"),
        "{}",
        output_of(&second)
    );
}
