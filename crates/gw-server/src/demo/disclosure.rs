//! Disclosure in the demo: the regulator sees transactions of ops as long as a grant lasts.

use super::{
    cast::Persona,
    client::{As, Client},
    explorer,
    parts::Running,
    seed::Scene,
    tour,
};
use anyhow::Context as _;
use serde_json::{Value, json};

const REQUESTS: &str = "/api/v1/me/disclosure/requests";

/// Two grants of disclosure by ops to the regulator.
struct Grants<'a> {
    client: Client,
    scene: &'a Scene,
    /// The DIDs of ops and of the regulator.
    owner: String,
    grantee: String,
}

/// The administrator of the bank requests the transactions of ops for the regulator, ops looks at the preview and
/// approves: the regulator sees exactly the previewed transactions. After the revocation the regulator sees nothing.
pub(super) async fn lasts_until_it_is_revoked(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let grants = Grants::new(running, scene).await?;
    let request = grants.request("full").await?;
    let preview = grants.preview(&request).await?;
    let previewed = preview.pointer("/addresses/0/transactions").cloned();
    let grant = grants.approve(&request).await?;
    let page = grants.page(&grant).await?;
    let shown = page.get("transactions").cloned();
    let count = shown.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
    grants.revoke(&request).await?;
    anyhow::ensure!(count > 0, "the regulator sees no transaction: {page}");
    anyhow::ensure!(previewed == shown, "the preview is {preview}, the grant shows {page}");
    let after = grants.page(&grant).await;
    anyhow::ensure!(
        after.is_err(),
        "the regulator still sees transactions after the revocation"
    );
    Ok(())
}

/// Prints the newest transaction of ops as ops, a colleague, and the regulator under a pseudonymous grant see it, and
/// what the regulator sees after the revocation.
pub(super) async fn print_transaction(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let grants = Grants::new(running, scene).await?;
    let request = grants.request("pseudonymous").await?;
    let grant = grants.approve(&request).await?;
    let page = grants.page(&grant).await?;
    let regulators = page.pointer("/transactions/0").cloned().unwrap_or_default();
    grants.revoke(&request).await?;
    let own = newest(&grants.client, scene, Persona::Ops).await?;
    let hash = own
        .get("hash")
        .and_then(Value::as_str)
        .context("ops has no transaction")?;
    let colleagues = grants.transaction(Persona::Analyst, hash).await?;
    let after = match grants.page(&grant).await {
        Ok(page) => page.to_string(),
        Err(error) => error.to_string(),
    };
    tour::say("\nThe newest transaction of ops, as … sees it:\n");
    for (viewer, shown) in [
        ("ops", line(&own, "hash")),
        ("the analyst", colleagues),
        ("the regulator, granted", line(&regulators, "tx_hash")),
        ("… after revocation", after),
    ] {
        tour::say(format_args!("  {viewer:24}{shown}\n"));
    }
    Ok(())
}

/// A transaction on one line. `hash` is the name of the member with its hash.
fn line(transaction: &Value, hash: &str) -> String {
    let member = |name: &str| {
        transaction
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    format!(
        "{} → {}, value {}, {}",
        member("from").unwrap_or("hidden"),
        member("to").unwrap_or("a new contract"),
        member("value").unwrap_or("hidden"),
        member(hash).unwrap_or("no hash"),
    )
}

async fn newest(client: &Client, scene: &Scene, viewer: Persona) -> anyhow::Result<Value> {
    let bearer = As::Bearer(scene.bearer(viewer)?);
    let rows = explorer::rows(client, bearer, "/transactions?limit=100").await?;
    let own = format!("{:#x}", viewer.address()?);
    let is_own = |row: &Value| row.to_string().to_lowercase().contains(&own);
    rows.into_iter().find(is_own).context("there is no transaction")
}

impl<'a> Grants<'a> {
    async fn new(running: &Running, scene: &'a Scene) -> anyhow::Result<Self> {
        let client = Client::new(&running.gateway);
        explorer::await_index(running, &client).await?;
        Ok(Self {
            client,
            scene,
            owner: running.names.did(Persona::Ops).to_owned(),
            grantee: running.names.did(Persona::Regulator).to_owned(),
        })
    }

    /// Requests the transactions of ops for the regulator, and returns the id of the request.
    async fn request(&self, level: &str) -> anyhow::Result<String> {
        let admin = As::Bearer(self.scene.bearer(Persona::Admin)?);
        let path = format!("/api/v1/admin/users?search={}", self.owner);
        let users = self.client.get(admin, &path).await?.expect_success("the user")?;
        let body = json!({
            "org_id": self.scene.meridian,
            "target_user_id": users.pointer("/data/0/id"),
            "requester_did": self.grantee,
            "reason": "yearly audit",
            "legal_basis": "Art. 6 (1) c GDPR",
            "scope": {"methods": ["transaction_history"], "disclosure_level": level},
        });
        let request = self
            .client
            .post(admin, "/api/v1/admin/disclosure/requests", body)
            .await?;
        text(&request.expect_success("the request")?, "/id")
    }

    async fn preview(&self, request: &str) -> anyhow::Result<Value> {
        let path = format!("/api/v1/explorer/request/{request}/preview");
        let preview = self.client.post(self.as_owner()?, &path, json!({})).await?;
        preview.expect_success("the preview")
    }

    /// Approves as ops, and returns the id of the grant.
    async fn approve(&self, request: &str) -> anyhow::Result<String> {
        let path = format!("{REQUESTS}/{request}/approve");
        let approved = self.client.post(self.as_owner()?, &path, json!({})).await?;
        text(&approved.expect_success("the approval")?, "/grant/id")
    }

    async fn revoke(&self, request: &str) -> anyhow::Result<()> {
        let path = format!("{REQUESTS}/{request}/revoke");
        let revoked = self.client.post(self.as_owner()?, &path, json!({})).await?;
        revoked.expect_success("the revocation").map(drop)
    }

    /// The transactions of the owner's first address, as the regulator sees them.
    async fn page(&self, grant: &str) -> anyhow::Result<Value> {
        let regulator = As::Bearer(self.scene.bearer(Persona::Regulator)?);
        let path = "/api/v1/explorer/viewable-addresses";
        let addresses = self.client.get(regulator, path).await?.expect_success("addresses")?;
        let disclosed = addresses.get("disclosed_addresses").and_then(Value::as_array);
        let mut of_grant = disclosed.into_iter().flatten();
        let address = of_grant.find(|address| address.get("grant_id") == Some(&json!(grant)));
        let address = address.context("nothing is disclosed")?;
        let path = format!(
            "/api/v1/explorer/grant/{grant}/{}/transactions?limit=10",
            text(address, "/address_id")?
        );
        self.client.get(regulator, &path).await?.expect_success("the grant")
    }

    /// The transaction in the explorer, or the error that answers for it.
    async fn transaction(&self, viewer: Persona, hash: &str) -> anyhow::Result<String> {
        let bearer = As::Bearer(self.scene.bearer(viewer)?);
        let path = format!("/api/v1/explorer/transactions/{hash}");
        let response = self.client.get(bearer, &path).await?;
        Ok(if response.status.is_success() {
            line(&response.json(), "hash")
        } else {
            text(&response.json(), "/error")?
        })
    }

    fn as_owner(&self) -> anyhow::Result<As<'_>> {
        Ok(As::Bearer(self.scene.bearer(Persona::Ops)?))
    }
}

fn text(value: &Value, pointer: &str) -> anyhow::Result<String> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.map(str::to_owned)
        .with_context(|| format!("no {pointer} in {value}"))
}
