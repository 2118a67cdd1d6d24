//! Each promise of the demo, checked live (spec/85 section 10.3).

use super::{
    cast::{Names, Persona},
    client::{Answer, As, Client},
    parts::Running,
    seed::{MINTED, PAID, Scene, balance_of, whole},
    tour,
};
use alloy_primitives::U256;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a record may take to be listed.
const PATIENCE: Duration = Duration::from_secs(10);

/// What later parts of the gateway bring.
const COMING: &[&str] = &[
    "the regulator's disclosure grant on ops is active",
    "the explorer serves blocks to each viewer",
];

/// Runs every check and prints it; the number of those that failed.
pub(super) async fn run(running: &Running, scene: &Scene) -> anyhow::Result<usize> {
    let look = Look {
        client: Client::new(&running.gateway),
        names: &running.names,
        scene,
    };
    tour::say("\nChecks\n");
    let checks = [
        (
            "ops, who deployed the token, reads its own balance",
            look.reads(Persona::Ops, Persona::Ops, MINTED - PAID).await,
        ),
        (
            "the analyst reads its own balance",
            look.reads(Persona::Analyst, Persona::Analyst, PAID).await,
        ),
        (
            "the analyst asking for another balance is denied",
            look.is_denied(Persona::Analyst).await,
        ),
        (
            "the other bank's trader is denied",
            look.is_denied(Persona::Trader).await,
        ),
        (
            "the regulator, member of nothing, is denied",
            look.is_denied(Persona::Regulator).await,
        ),
        ("nobody without a token learns more", look.is_denied_anonymously().await),
        (
            "denials of different reasons are the same bytes",
            look.denials_are_equal().await,
        ),
        (
            "the admin administers Meridian and nothing else",
            look.administers_one().await,
        ),
        (
            "each bank's records hold its own calls only",
            look.records_are_separate().await,
        ),
    ];
    let mut failed = 0;
    for (promise, said) in checks {
        match said {
            Ok(()) => tour::say(format_args!("  ✓ {promise}\n")),
            Err(error) => {
                failed += 1;
                tour::say(format_args!("  ✗ {promise}: {error:#}\n"));
            }
        }
    }
    for promise in COMING {
        tour::say(format_args!("  · {promise} (coming)\n"));
    }
    Ok(failed)
}

struct Look<'a> {
    client: Client,
    names: &'a Names,
    scene: &'a Scene,
}

impl Look<'_> {
    async fn ask(&self, who: As<'_>, owner: Persona) -> anyhow::Result<Answer> {
        let call = json!([{"to": self.scene.token, "data": balance_of(owner.address()?)}, "latest"]);
        self.client.call(who, "/rpc", "eth_call", call).await
    }

    async fn reads(&self, viewer: Persona, owner: Persona, tokens: u64) -> anyhow::Result<()> {
        let answer = self.ask(As::Bearer(self.scene.bearer(viewer)?), owner).await?;
        let body = answer.json();
        let read = body
            .get("result")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<U256>().ok());
        anyhow::ensure!(
            read == Some(whole(tokens)),
            "HTTP {}: {}",
            answer.status.as_u16(),
            answer.text
        );
        Ok(())
    }

    async fn is_denied(&self, viewer: Persona) -> anyhow::Result<()> {
        denied(&self.ask(As::Bearer(self.scene.bearer(viewer)?), Persona::Ops).await?)
    }

    async fn is_denied_anonymously(&self) -> anyhow::Result<()> {
        denied(&self.ask(As::Nobody, Persona::Ops).await?)
    }

    async fn denials_are_equal(&self) -> anyhow::Result<()> {
        let by_rule = self
            .ask(As::Bearer(self.scene.bearer(Persona::Analyst)?), Persona::Ops)
            .await?;
        let by_organization = self
            .ask(As::Bearer(self.scene.bearer(Persona::Trader)?), Persona::Ops)
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

    /// Meridian's administrator sees Meridian's calls, the analyst's denial with its reason among them, and nothing of
    /// the other bank's. Records are sealed a moment after the answer.
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
                .context("the records are no list")?;
            let of = |persona: Persona| {
                rows.iter()
                    .filter(move |row| row.get("external_id") == Some(&json!(self.names.did(persona))))
            };
            anyhow::ensure!(of(Persona::Trader).next().is_none(), "the other bank's calls are shown");
            if of(Persona::Analyst).any(|row| row.get("denial_reason") == Some(&json!("param_rule"))) {
                return Ok(());
            }
            anyhow::ensure!(
                start.elapsed() < PATIENCE,
                "the analyst's denial is not recorded with its reason: {logs}"
            );
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The one opaque denial.
fn denied(answer: &Answer) -> anyhow::Result<()> {
    let body = answer.json();
    let code = body.pointer("/error/code").and_then(Value::as_i64);
    anyhow::ensure!(
        answer.status == 404 && code == Some(-32601),
        "HTTP {}: {}",
        answer.status.as_u16(),
        answer.text
    );
    Ok(())
}
