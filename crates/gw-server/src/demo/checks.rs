//! Checks each promise of the demo live (spec/85 section 10.3).

use super::{
    cast::{Names, Persona},
    client::{As, Client, Response},
    disclosure, explorer,
    parts::Running,
    seed::{MINTED, PAID, Scene, balance_of, whole},
    tour,
};
use alloy_primitives::U256;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a record may take to appear in the list.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs and prints every check. Returns the number of failed checks.
pub(super) async fn run(running: &Running, scene: &Scene) -> anyhow::Result<usize> {
    let checker = Checker {
        client: Client::new(&running.gateway),
        names: &running.names,
        scene,
    };
    tour::say("\nChecks\n");
    let checks = [
        (
            "ops, who deployed the token, reads its own balance",
            checker.reads(Persona::Ops, Persona::Ops, MINTED - PAID).await,
        ),
        (
            "the analyst reads its own balance",
            checker.reads(Persona::Analyst, Persona::Analyst, PAID).await,
        ),
        (
            "the analyst asking for another balance is denied",
            checker.is_denied(Persona::Analyst).await,
        ),
        (
            "the other bank's trader is denied",
            checker.is_denied(Persona::Trader).await,
        ),
        (
            "the regulator, member of nothing, is denied",
            checker.is_denied(Persona::Regulator).await,
        ),
        (
            "nobody without a token learns more",
            checker.is_denied_anonymously().await,
        ),
        (
            "denials of different reasons are the same bytes",
            checker.denials_are_equal().await,
        ),
        (
            "the admin administers Meridian and nothing else",
            checker.administers_one().await,
        ),
        (
            "each bank's records hold its own calls only",
            checker.records_are_separate().await,
        ),
        (
            "the explorer shows each viewer its own transactions",
            explorer::serves_each_viewer(running, scene).await,
        ),
        (
            "the regulator sees what ops disclosed, until ops revokes it",
            disclosure::lasts_until_it_is_revoked(running, scene).await,
        ),
    ];
    let mut failed = 0;
    for (promise, outcome) in checks {
        match outcome {
            Ok(()) => tour::say(format_args!("  ✓ {promise}\n")),
            Err(error) => {
                failed += 1;
                tour::say(format_args!("  ✗ {promise}: {error:#}\n"));
            }
        }
    }
    Ok(failed)
}

struct Checker<'a> {
    client: Client,
    names: &'a Names,
    scene: &'a Scene,
}

impl Checker<'_> {
    /// Requests `owner`'s token balance as a caller.
    async fn query_balance(&self, caller: As<'_>, owner: Persona) -> anyhow::Result<Response> {
        let call = json!([{"to": self.scene.token, "data": balance_of(owner.address()?)}, "latest"]);
        self.client.call(caller, "/rpc", "eth_call", call).await
    }

    async fn reads(&self, viewer: Persona, owner: Persona, tokens: u64) -> anyhow::Result<()> {
        let response = self
            .query_balance(As::Bearer(self.scene.bearer(viewer)?), owner)
            .await?;
        let body = response.json();
        let balance = body
            .get("result")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<U256>().ok());
        anyhow::ensure!(
            balance == Some(whole(tokens)),
            "HTTP {}: {}",
            response.status.as_u16(),
            response.text
        );
        Ok(())
    }

    async fn is_denied(&self, viewer: Persona) -> anyhow::Result<()> {
        ensure_denied(
            &self
                .query_balance(As::Bearer(self.scene.bearer(viewer)?), Persona::Ops)
                .await?,
        )
    }

    async fn is_denied_anonymously(&self) -> anyhow::Result<()> {
        ensure_denied(&self.query_balance(As::Nobody, Persona::Ops).await?)
    }

    async fn denials_are_equal(&self) -> anyhow::Result<()> {
        let by_rule = self
            .query_balance(As::Bearer(self.scene.bearer(Persona::Analyst)?), Persona::Ops)
            .await?;
        let by_organization = self
            .query_balance(As::Bearer(self.scene.bearer(Persona::Trader)?), Persona::Ops)
            .await?;
        let trader = As::Bearer(self.scene.bearer(Persona::Trader)?);
        let by_method = self.client.call(trader, "/rpc", "eth_noSuchMethod", json!([])).await?;
        let texts = [&by_rule.text, &by_organization.text, &by_method.text];
        anyhow::ensure!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        Ok(())
    }

    async fn administers_one(&self) -> anyhow::Result<()> {
        let admin = As::Bearer(self.scene.bearer(Persona::Admin)?);
        let status = self
            .client
            .get(admin, "/api/v1/me/admin-status")
            .await?
            .expect_success("admin status")?;
        anyhow::ensure!(
            status.get("admin_org_ids") == Some(&json!([self.scene.meridian])),
            "{status}"
        );
        let trader = As::Bearer(self.scene.bearer(Persona::Trader)?);
        let status = self
            .client
            .get(trader, "/api/v1/me/admin-status")
            .await?
            .expect_success("admin status")?;
        anyhow::ensure!(
            status.get("is_admin") == Some(&json!(false)),
            "the trader is an administrator: {status}"
        );
        let orgs = self
            .client
            .get(admin, "/api/v1/admin/orgs")
            .await?
            .expect_success("organizations")?;
        let ids: Vec<&Value> = orgs
            .get("data")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|org| org.get("id"))
            .collect();
        anyhow::ensure!(ids == [&json!(self.scene.meridian)], "{orgs}");
        Ok(())
    }

    /// Meridian's administrator sees Meridian's calls, including the analyst's denial with its reason, and none of the
    /// other bank's calls. Waits, because records are sealed shortly after the response.
    async fn records_are_separate(&self) -> anyhow::Result<()> {
        let admin = As::Bearer(self.scene.bearer(Persona::Admin)?);
        let start = Instant::now();
        loop {
            let logs = self
                .client
                .get(admin, "/api/v1/admin/logs?limit=1000")
                .await?
                .expect_success("records")?;
            let rows = logs
                .get("data")
                .and_then(Value::as_array)
                .context("the records are not a list")?;
            let calls_by = |persona: Persona| {
                rows.iter()
                    .filter(move |row| row.get("external_id") == Some(&json!(self.names.did(persona))))
            };
            anyhow::ensure!(
                calls_by(Persona::Trader).next().is_none(),
                "the other bank's calls are shown"
            );
            if calls_by(Persona::Analyst).any(|row| row.get("denial_reason") == Some(&json!("param_rule"))) {
                return Ok(());
            }
            anyhow::ensure!(
                start.elapsed() < RECORD_TIMEOUT,
                "the analyst's denial is not recorded with its reason: {logs}"
            );
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Fails unless the response is the opaque denial.
fn ensure_denied(response: &Response) -> anyhow::Result<()> {
    let body = response.json();
    let code = body.pointer("/error/code").and_then(Value::as_i64);
    anyhow::ensure!(
        response.status == 404 && code == Some(-32601),
        "HTTP {}: {}",
        response.status.as_u16(),
        response.text
    );
    Ok(())
}
