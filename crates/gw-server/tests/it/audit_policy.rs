//! What the policy database shows about the audit log, and what is compared of its own file.

use crate::deployment::{Deployment, Store, call, on_both_engines, output_of};
use gw_testkit::anvil::anvil;
use std::{fs, path::Path};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

on_both_engines! {
    rl6_a_removed_administrative_chain_is_missed_through_the_policy_database,
}

/// Starts the gateway, makes an organization and stops it.
fn make_organization(deployment: &Deployment) {
    let node = anvil();
    let mut gateway = deployment.start(node.url(), &[("ADMIN_API_TOKEN", TOKEN)]);
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    let body = r#"{"name":"one","slug":"one"}"#;
    assert_eq!(
        gateway.request("POST", "/api/v1/admin/orgs", &headers, body).status,
        201
    );
    call(&gateway, 2);
    gateway.wait("seals the entry", |_| {
        deployment.count(
            Store::Policy,
            "SELECT count(*) FROM audit_outbox WHERE sealed_at IS NOT NULL",
        ) > 0
    });
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
}

/// RL6: the chain is removed with its notes, the sealed outbox rows are gone, and so are the trusted heads.
fn rl6_a_removed_administrative_chain_is_missed_through_the_policy_database(deployment: &Deployment) {
    make_organization(deployment);
    // The head that the end of the first run signed is kept in the policy database by the next one.
    let node = anvil();
    let mut gateway = deployment.start(node.url(), &[]);
    gateway.wait("keeps the signed head", |_| {
        deployment.count(Store::Policy, "SELECT count(*) FROM signed_heads") > 0
    });
    drop(gateway.end());
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
    fs::remove_file(Path::new(&deployment.path("journal")).join("trusted-heads")).expect("removed");
    deployment.sql(Store::Policy, "DELETE FROM audit_outbox WHERE sealed_at IS NOT NULL");
    let of_chain = "chain_id = (SELECT id FROM chains WHERE stream = 'admin')";
    for sql in [
        format!("DELETE FROM checkpoints WHERE {of_chain}"),
        format!("DELETE FROM entries WHERE {of_chain}"),
        "DELETE FROM chains WHERE stream = 'admin'".to_owned(),
    ] {
        deployment.sql(Store::Audit, &sql);
    }
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("shard_missing"), "{output}");
    let doctor = deployment.run(&["doctor"]);
    assert!(
        !doctor.status.success() && output_of(&doctor).contains("entries are missing"),
        "{}",
        output_of(&doctor)
    );
    // The same with an audit database in which nothing is left.
    for table in ["checkpoints", "entries", "chains"] {
        deployment.sql(Store::Audit, &format!("DELETE FROM {table}"));
    }
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("shard_missing"), "{output}");
}

/// RL2: an index of the policy file that lacks rows is a finding, and is named.
#[test]
fn rl2_a_lying_index_of_the_policy_file_is_named() {
    let deployment = Deployment::sqlite();
    make_organization(&deployment);
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
    let index = "audit_outbox_sealed_at_idx";
    let create = format!("CREATE INDEX {index} ON audit_outbox (sealed_at) WHERE sealed_at IS NOT NULL");
    for sql in [
        format!("DROP INDEX {index}; {create} AND id < 0"),
        format!("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '{create}' WHERE name = '{index}'"),
    ] {
        deployment.sql(Store::Policy, &sql);
    }
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("schema_changed") && output.contains(index), "{output}");
    let doctor = deployment.run(&["doctor"]);
    assert!(output_of(&doctor).contains(index), "{}", output_of(&doctor));
    let node = anvil();
    let mut gateway = deployment.start(node.url(), &[]);
    gateway.wait("raises the alarm", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    let (_, log) = gateway.end();
    assert!(log.contains(index), "{log}");
}
