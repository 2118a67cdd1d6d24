//! Sets up the demo's organizations, users and token over the public interfaces, in the steps that people would take.
//!
//! Every step checks first whether it is already done, so a second run changes nothing.

use super::{
    account::Call,
    cast::{Bank, Names, Persona, Role},
    client::{As, Client},
    parts::Running,
};
use alloy_primitives::{Address, Bytes, U256, hex::FromHex as _, keccak256};
use anyhow::{Context as _, bail};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The token contract as compiled from `contracts/src/DemoERC20.sol`.
const ARTIFACT: &str = include_str!("../../../../contracts/artifacts/DemoERC20.json");
/// Name and symbol of the token.
const TOKEN: (&str, &str) = ("Meridian Dollar", "MUSD");
/// Whole tokens that the deployment mints.
pub(super) const MINTED: u64 = 1_000_000;
/// Whole tokens that are paid to the analyst.
pub(super) const PAID: u64 = 1000;
/// Selector of `balanceOf(address)`, which the analyst may call for its own address only.
const BALANCE_OF: &str = "70a08231";
/// How long the gateway may take to show a mined transaction or contract.
const MINING_TIMEOUT: Duration = Duration::from_secs(30);

/// The objects that the setup created.
#[derive(Debug)]
pub(super) struct Scene {
    /// The token contract.
    pub(super) token: Address,
    /// Meridian's id.
    pub(super) meridian: String,
    bearers: Vec<(Persona, String)>,
}

impl Scene {
    /// A persona's access token.
    pub(super) fn bearer(&self, persona: Persona) -> anyhow::Result<&str> {
        self.bearers
            .iter()
            .find(|(owner, _)| *owner == persona)
            .map(|(_, token)| token.as_str())
            .with_context(|| format!("{} has no token", persona.word()))
    }
}

/// Sets up the organizations, users and token, and logs every persona in.
pub(super) async fn seed(running: &Running) -> anyhow::Result<Scene> {
    let seeder = Seeder {
        client: Client::new(&running.gateway),
        admin: As::Super(&running.admin),
        names: &running.names,
    };
    let mut meridian = String::new();
    for bank in Bank::ALL {
        let org = seeder.organization(bank).await?;
        for persona in Persona::ALL {
            if let Some(role) = persona.role().filter(|role| role.bank == bank) {
                let group = seeder.group(&org, role).await?;
                seeder.member(&org, &group, persona).await?;
            }
        }
        if bank == Bank::Volta {
            seeder.outsider(&org, Persona::Regulator).await?;
        } else {
            meridian = org;
        }
    }
    let mut bearers = Vec::new();
    for persona in Persona::ALL {
        let token = seeder
            .client
            .log_in(seeder.names.did(persona))
            .await
            .with_context(|| format!("{} cannot log in", persona.word()))?;
        seeder
            .link(persona, &token)
            .await
            .with_context(|| format!("the account of {} is not linked", persona.word()))?;
        bearers.push((persona, token));
    }
    let mut scene = Scene {
        token: Address::ZERO,
        meridian,
        bearers,
    };
    scene.token = seeder.token(&scene).await?;
    Ok(scene)
}

struct Seeder<'a> {
    client: Client,
    admin: As<'a>,
    names: &'a Names,
}

impl Seeder<'_> {
    /// The id of an organization, created if it does not exist.
    async fn organization(&self, bank: Bank) -> anyhow::Result<String> {
        let (name, slug) = bank.names();
        let created = self
            .client
            .post(self.admin, "/api/v1/admin/orgs", json!({"name": name, "slug": slug}))
            .await?;
        if created.status != StatusCode::CONFLICT {
            return id(&created.expect_success("creating an organization")?);
        }
        let orgs = self
            .client
            .get(self.admin, "/api/v1/admin/orgs?limit=1000")
            .await?
            .expect_success("listing organizations")?;
        id(find_by_slug(&orgs, slug)?)
    }

    /// The id of a group, created if it does not exist. Sets its methods and claims.
    async fn group(&self, org: &str, role: Role) -> anyhow::Result<String> {
        let path = format!("/api/v1/admin/orgs/{org}/groups");
        let body = json!({"name": role.name, "slug": role.slug, "is_org_admin": role.is_org_admin});
        let created = self.client.post(self.admin, &path, body).await?;
        let group = if created.status == StatusCode::CONFLICT {
            let groups = self
                .client
                .get(self.admin, &format!("{path}?limit=1000"))
                .await?
                .expect_success("listing groups")?;
            id(find_by_slug(&groups, role.slug)?)?
        } else {
            id(&created.expect_success("creating a group")?)?
        };
        let access = json!({"allowed_methods": role.methods, "claims": role.claims});
        self.client
            .put(self.admin, &format!("{path}/{group}/access"), access)
            .await?
            .expect_success("setting a group's access")?;
        Ok(group)
    }

    /// Adds a persona to a group and verifies it (KYC).
    async fn member(&self, org: &str, group: &str, persona: Persona) -> anyhow::Result<()> {
        let path = format!("/api/v1/admin/orgs/{org}/memberships/by-did");
        let body = json!({"did": self.names.did(persona), "group_id": group});
        let joined = self.client.post(self.admin, &path, body).await?;
        let user = if joined.status == StatusCode::CONFLICT {
            self.user(persona).await?
        } else {
            let joined = joined.expect_success("adding a member")?;
            text(&joined, "user_id")?.to_owned()
        };
        self.verify(&user).await
    }

    /// Creates a verified user without any membership: adds it to a group and removes it again, before its first login.
    async fn outsider(&self, org: &str, persona: Persona) -> anyhow::Result<()> {
        if let Ok(user) = self.user(persona).await {
            return self.verify(&user).await;
        }
        let group = self
            .group(org, Persona::Trader.role().context("the trader has a role")?)
            .await?;
        self.member(org, &group, persona).await?;
        let path = format!("/api/v1/admin/orgs/{org}/memberships/by-did");
        let body = json!({"did": self.names.did(persona), "group_id": group});
        let removed = self
            .client
            .send(self.admin, http::Method::DELETE, &path, Some(body))
            .await?;
        removed.expect_success("removing a member").map(drop)
    }

    /// The id of an existing user.
    async fn user(&self, persona: Persona) -> anyhow::Result<String> {
        let path = format!("/api/v1/admin/users?search={}", self.names.did(persona));
        let users = self
            .client
            .get(self.admin, &path)
            .await?
            .expect_success("looking for a user")?;
        let rows = rows(&users);
        let row = rows
            .iter()
            .find(|row| row.get("external_id").and_then(Value::as_str) == Some(self.names.did(persona)));
        id(row.with_context(|| format!("there is no user {}", self.names.did(persona)))?)
    }

    async fn verify(&self, user: &str) -> anyhow::Result<()> {
        let path = format!("/api/v1/admin/users/{user}");
        self.client
            .put(self.admin, &path, json!({"kyc": true}))
            .await?
            .expect_success("verifying a user")
            .map(drop)
    }

    /// Links a persona's account by a signature, unless it is already linked.
    async fn link(&self, persona: Persona, bearer: &str) -> anyhow::Result<()> {
        let (caller, address) = (As::Bearer(bearer), persona.address()?);
        let linked = self
            .client
            .get(caller, "/api/v1/eth/addresses")
            .await?
            .expect_success("listing linked addresses")?;
        let mut addresses = linked.get("addresses").and_then(Value::as_array).into_iter().flatten();
        if addresses.any(|row| text(row, "address").is_ok_and(|linked| linked.parse() == Ok(address))) {
            return Ok(());
        }
        let challenge = self
            .client
            .post(caller, "/api/v1/eth/link/challenge", json!({}))
            .await?
            .expect_success("the challenge")?;
        let signature = persona.account()?.sign_text(text(&challenge, "message")?)?;
        let proof = json!({"address": address, "nonce": text(&challenge, "nonce")?, "signature": signature});
        self.client
            .post(caller, "/api/v1/eth/link/verify", proof)
            .await?
            .expect_success("the signature")
            .map(drop)
    }

    /// The address of the token. If it is not deployed, ops deploys it through the gateway, registers its ABI, grants
    /// analysts the reading of their own balance and pays the analyst.
    async fn token(&self, scene: &Scene) -> anyhow::Result<Address> {
        let artifact: Value = serde_json::from_str(ARTIFACT).context("the contract's artifact is malformed")?;
        let org = &scene.meridian;
        let contracts = format!("/api/v1/admin/orgs/{org}/contracts");
        let listed = self
            .client
            .get(self.admin, &format!("{contracts}?limit=1000"))
            .await?
            .expect_success("listing contracts")?;
        if let Some(row) = rows(&listed)
            .iter()
            .find(|row| row.get("name").and_then(Value::as_str) == Some(TOKEN.0))
        {
            return text(row, "address")?.parse().context("an address is malformed");
        }
        let bearer = scene.bearer(Persona::Ops)?;
        let receipt = self
            .transact(bearer, None, creation_code(&artifact)?)
            .await
            .context("deploying the token")?;
        let token: Address = text(&receipt, "contractAddress")?
            .parse()
            .context("the receipt's address is malformed")?;
        self.await_registration(&contracts, token).await?;
        let contract = format!("{contracts}/{token:#x}");
        let abi = artifact.get("abi").context("the artifact has no ABI")?.to_string();
        self.client
            .put(self.admin, &contract, json!({"name": TOKEN.0}))
            .await?
            .expect_success("naming the contract")?;
        self.client
            .put(self.admin, &format!("{contract}/abi"), json!({"abi": abi}))
            .await?
            .expect_success("setting the ABI")?;

        let analysts = self
            .group(org, Persona::Analyst.role().context("the analyst has a role")?)
            .await?;
        let rule = json!({"selector": BALANCE_OF, "param_rules": [{"index": 0, "must_be": "self"}]});
        let grant = json!({"group_id": analysts, "functions": [rule]});
        self.client
            .post(self.admin, &format!("{contract}/grants"), grant)
            .await?
            .expect_success("granting the analysts")?;

        let payment = transfer(Persona::Analyst.address()?, whole(PAID));
        self.transact(bearer, Some(token), payment)
            .await
            .context("paying the analyst")?;
        Ok(token)
    }

    /// Sends a transaction of ops through the gateway and waits until the gateway returns its receipt.
    async fn transact(&self, bearer: &str, to: Option<Address>, input: Bytes) -> anyhow::Result<Value> {
        let account = Persona::Ops.account()?;
        let caller = As::Bearer(bearer);
        let rpc = async |method: &str, params: Value| self.client.result(caller, "/rpc", method, params).await;
        let quantity = async |method: &str, params: Value| number(&rpc(method, params).await?);
        let mut call = json!({"from": account.address(), "data": input});
        if let (Some(to), Some(call)) = (to, call.as_object_mut()) {
            call.insert("to".to_owned(), json!(to));
        }
        let raw = account.sign(Call {
            chain: quantity("eth_chainId", json!([])).await?,
            nonce: quantity("eth_getTransactionCount", json!([account.address(), "pending"])).await?,
            gas: quantity("eth_estimateGas", json!([call])).await?,
            max_fee: u128::from(quantity("eth_gasPrice", json!([])).await?) * 2,
            to,
            input,
        })?;
        let hash = rpc("eth_sendRawTransaction", json!([raw])).await?;
        let start = Instant::now();
        loop {
            let receipt = rpc("eth_getTransactionReceipt", json!([hash])).await?;
            if receipt.get("status").and_then(Value::as_str) == Some("0x1") {
                return Ok(receipt);
            }
            if !receipt.is_null() || start.elapsed() > MINING_TIMEOUT {
                bail!("the transaction {hash} failed: {receipt}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the gateway has registered the mined contract with its organization (20 R3).
    async fn await_registration(&self, contracts: &str, token: Address) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let response = self.client.get(self.admin, &format!("{contracts}/{token:#x}")).await?;
            if response.status.is_success() {
                return Ok(());
            }
            if response.status != StatusCode::NOT_FOUND || start.elapsed() > MINING_TIMEOUT {
                bail!(
                    "the contract was not registered: HTTP {}: {}",
                    response.status.as_u16(),
                    response.text
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Call data of `balanceOf(owner)`.
pub(super) fn balance_of(owner: Address) -> Bytes {
    call_data("balanceOf(address)", &[owner.into_word().into()])
}

fn transfer(to: Address, amount: U256) -> Bytes {
    call_data("transfer(address,uint256)", &[to.into_word().into(), amount])
}

/// Call data: the selector of a signature and its (static) arguments.
fn call_data(signature: &str, arguments: &[U256]) -> Bytes {
    let mut data: Vec<u8> = keccak256(signature).iter().take(4).copied().collect();
    for argument in arguments {
        data.extend_from_slice(&argument.to_be_bytes::<32>());
    }
    data.into()
}

/// The contract's creation code with the constructor's arguments.
fn creation_code(artifact: &Value) -> anyhow::Result<Bytes> {
    use alloy_dyn_abi::DynSolValue;
    let mut code = Bytes::from_hex(text(artifact, "bytecode")?)
        .context("the artifact's code is malformed")?
        .to_vec();
    let (name, symbol) = TOKEN;
    let arguments = DynSolValue::Tuple(vec![
        DynSolValue::String(name.to_owned()),
        DynSolValue::String(symbol.to_owned()),
        DynSolValue::Uint(whole(MINTED), 256),
    ]);
    code.extend(arguments.abi_encode_params());
    Ok(code.into())
}

/// The amount of whole tokens in their smallest unit (18 decimals).
pub(super) fn whole(tokens: u64) -> U256 {
    U256::from(tokens) * U256::from(10).pow(U256::from(18))
}

/// The rows of a list response.
fn rows(list: &Value) -> Vec<Value> {
    list.get("data").unwrap_or(list).as_array().cloned().unwrap_or_default()
}

fn find_by_slug<'a>(list: &'a Value, slug: &str) -> anyhow::Result<&'a Value> {
    // A row of the group list has the group in `group`, next to its access.
    let rows = list.get("data").unwrap_or(list).as_array().into_iter().flatten();
    let mut records = rows.map(|row| row.get("group").unwrap_or(row));
    records
        .find(|row| row.get("slug").and_then(Value::as_str) == Some(slug))
        .with_context(|| format!("`{slug}` is not listed"))
}

fn id(record: &Value) -> anyhow::Result<String> {
    text(record, "id").map(str::to_owned)
}

fn text<'a>(record: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    record
        .get(name)
        .and_then(Value::as_str)
        .with_context(|| format!("`{name}` is missing in {record}"))
}

/// A JSON-RPC quantity.
pub(super) fn number(value: &Value) -> anyhow::Result<u64> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.with_context(|| format!("{value} is not a quantity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_encoded_by_the_abi() {
        let data = balance_of(Address::repeat_byte(0x11));
        assert_eq!(
            hex::encode(&data),
            format!("{BALANCE_OF}{}{}", "00".repeat(12), "11".repeat(20))
        );
        assert_eq!(
            hex::encode(transfer(Address::ZERO, U256::from(5))),
            format!("a9059cbb{}{:064x}", "00".repeat(32), 5)
        );
    }

    #[test]
    fn the_artifact_is_deployable() {
        let artifact: Value = serde_json::from_str(ARTIFACT).expect("json");
        let code = creation_code(&artifact).expect("encoded");
        assert!(code.ends_with(b"MUSD\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert!(artifact.get("abi").is_some_and(Value::is_array));
    }
}
