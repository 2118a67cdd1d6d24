//! RL12: privileges that an administrator takes away while the gateway runs, on PostgreSQL.

use crate::{
    deployment::{Deployment, Store},
    process::{Response, Serving},
};
use gw_testkit::anvil::anvil;

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

fn create_org(gateway: &Serving, slug: &str) -> Response {
    let body = format!(r#"{{"slug":"{slug}","name":"{slug}"}}"#);
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    gateway.request("POST", "/api/v1/admin/orgs", &headers, &body)
}

/// Revoked privileges stop every write: it is answered 503, `/ready`, a metric and a security event tell, and nothing
/// has to be restarted when they are back.
#[test]
fn rl12_revoked_privileges_are_shown_and_writes_are_refused_until_they_are_back() {
    let Some(deployment) = Deployment::postgres() else {
        return;
    };
    let node = anvil();
    deployment.start(node.url(), &[]).end();
    let (role, role_settings) = deployment.writing_role();
    let mut settings: Vec<_> = role_settings.iter().map(|(name, value)| (*name, &**value)).collect();
    settings.push(("ADMIN_API_TOKEN", TOKEN));
    let mut gateway = deployment.start(node.url(), &settings);
    assert_eq!(create_org(&gateway, "before").status, 201);
    let metric = |gateway: &Serving, database: &str| {
        let name = format!("ledger_gateway_missing_database_privileges{{database=\"{database}\"}} ");
        let metrics = gateway.get("/metrics").body;
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(&*name).map(str::to_owned))
    };
    for (revoked, dependency, store, database) in [
        ("UPDATE ON organizations", "writes", Store::Policy, "policy"),
        ("INSERT ON audit_outbox", "writes", Store::Policy, "policy"),
        ("INSERT ON entries", "audit_store", Store::Audit, "audit"),
    ] {
        deployment.sql(store, &format!("REVOKE {revoked} FROM {role}"));
        gateway.wait("shows that it lacks a privilege", |gateway| {
            gateway
                .get("/ready")
                .body
                .contains(&format!(r#""{dependency}":"down""#))
        });
        assert_eq!(
            gateway.get("/ready").status,
            200,
            "reads go on, and another instance lacks it, too"
        );
        assert_eq!(metric(&gateway, database).as_deref(), Some("1"), "{revoked}");
        if revoked == "INSERT ON audit_outbox" {
            let response = create_org(&gateway, "refused");
            assert_eq!(response.status, 503, "{response:?}\n{}", gateway.output());
        }
        deployment.sql(store, &format!("GRANT {revoked} TO {role}"));
        gateway.wait("shows that it has the privilege again", |gateway| {
            gateway.get("/ready").body.contains(&format!(r#""{dependency}":"ok""#))
                && metric(gateway, database).as_deref() == Some("0")
        });
    }
    assert_eq!(
        create_org(&gateway, "refused").status,
        201,
        "it was not created, and is now"
    );
    let (_, output) = gateway.end();
    assert!(
        output.contains("lacks privileges") && output.contains("INSERT on audit_outbox"),
        "{output}"
    );
    let events = "SELECT count(*) FROM entries WHERE kind = 'security' AND \
         position('database_privileges'::bytea IN bytes) > 0";
    assert_eq!(deployment.count(Store::Audit, events), 6);
}
