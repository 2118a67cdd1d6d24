//! Sets the scene over the public interfaces, step by step as people would.
//!
//! Every step looks first whether it was done already, so that setting up twice changes nothing.

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
/// Whole tokens minted at deployment, and paid to the analyst.
pub(super) const MINTED: u64 = 1_000_000;
pub(super) const PAID: u64 = 1000;
/// Selector of `balanceOf(address)`: what the analyst may ask, of the own address only.
const BALANCE_OF: &str = "70a08231";
/// How long a transaction may take to be mined.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was set up.
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
        let found = self.bearers.iter().find(|(of, _)| *of == persona);
        found
            .map(|(_, token)| token.as_str())
            .with_context(|| format!("{} has no token", persona.word()))
    }
}

/// Sets everything up.
pub(super) async fn seed(running: &Running) -> anyhow::Result<Scene> {
    let set = Stage {
        client: Client::new(&running.gateway),
        admin: As::Super(&running.admin),
        names: &running.names,
    };
    let mut meridian = String::new();
    for bank in Bank::ALL {
        let org = set.organization(bank).await?;
        for persona in Persona::ALL {
            if let Some(role) = persona.role().filter(|role| role.bank == bank) {
                let group = set.group(&org, role).await?;
                set.member(&org, &group, persona).await?;
            }
        }
        if bank == Bank::Volta {
            set.outsider(&org, Persona::Regulator).await?;
        } else {
            meridian = org;
        }
    }
    let mut bearers = Vec::new();
    for persona in Persona::ALL {
        let token = set
            .client
            .log_in(set.names.did(persona))
            .await
            .with_context(|| format!("{} cannot log in", persona.word()))?;
        set.link(persona, &token)
            .await
            .with_context(|| format!("the account of {} is not linked", persona.word()))?;
        bearers.push((persona, token));
    }
    let mut scene = Scene {
        token: Address::ZERO,
        meridian,
        bearers,
    };
    scene.token = set.token(&scene).await?;
    Ok(scene)
}

struct Stage<'a> {
    client: Client,
    admin: As<'a>,
    names: &'a Names,
}

impl Stage<'_> {
    /// The id of an organization, made if it is not there.
    async fn organization(&self, bank: Bank) -> anyhow::Result<String> {
        let (name, slug) = bank.names();
        let made = self
            .client
            .post(self.admin, "/api/v1/admin/orgs", json!({"name": name, "slug": slug}))
            .await?;
        if made.status != StatusCode::CONFLICT {
            return id(&made.expect_success("creating an organization")?);
        }
        let all = self
            .client
            .get(self.admin, "/api/v1/admin/orgs?limit=1000")
            .await?
            .expect_success("listing organizations")?;
        id(with_slug(&all, slug)?)
    }

    /// The id of a group with its methods and claims, made if it is not there.
    async fn group(&self, org: &str, role: Role) -> anyhow::Result<String> {
        let path = format!("/api/v1/admin/orgs/{org}/groups");
        let body = json!({"name": role.name, "slug": role.slug, "is_org_admin": role.is_org_admin});
        let made = self.client.post(self.admin, &path, body).await?;
        let group = if made.status == StatusCode::CONFLICT {
            let all = self
                .client
                .get(self.admin, &format!("{path}?limit=1000"))
                .await?
                .expect_success("listing groups")?;
            id(with_slug(&all, role.slug)?)?
        } else {
            id(&made.expect_success("creating a group")?)?
        };
        let access = json!({"allowed_methods": role.methods, "claims": role.claims});
        self.client
            .put(self.admin, &format!("{path}/{group}/access"), access)
            .await?
            .expect_success("setting a group's access")?;
        Ok(group)
    }

    /// A verified (KYC) member of a group.
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

    /// A verified user without any membership: created as a member and taken out again, before the first login.
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
        let left = self
            .client
            .send(self.admin, http::Method::DELETE, &path, Some(body))
            .await?;
        left.expect_success("removing a member").map(drop)
    }

    /// The id of a user that exists.
    async fn user(&self, persona: Persona) -> anyhow::Result<String> {
        let path = format!("/api/v1/admin/users?search={}", self.names.did(persona));
        let found = self
            .client
            .get(self.admin, &path)
            .await?
            .expect_success("looking for a user")?;
        let rows = rows(&found);
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

    /// Proves a persona's account by a signature.
    async fn link(&self, persona: Persona, bearer: &str) -> anyhow::Result<()> {
        let (who, address) = (As::Bearer(bearer), persona.address()?);
        let linked = self
            .client
            .get(who, "/api/v1/eth/addresses")
            .await?
            .expect_success("listing linked addresses")?;
        let mut addresses = linked.get("addresses").and_then(Value::as_array).into_iter().flatten();
        if addresses.any(|row| text(row, "address").is_ok_and(|linked| linked.parse() == Ok(address))) {
            return Ok(());
        }
        let challenge = self
            .client
            .post(who, "/api/v1/eth/link/challenge", json!({}))
            .await?
            .expect_success("the challenge")?;
        let signature = persona.account()?.sign_text(text(&challenge, "message")?)?;
        let proof = json!({"address": address, "nonce": text(&challenge, "nonce")?, "signature": signature});
        self.client
            .post(who, "/api/v1/eth/link/verify", proof)
            .await?
            .expect_success("the signature")
            .map(drop)
    }

    /// The token: deployed by ops through the gateway, its ABI registered, a balance of the own granted to analysts,
    /// some of it paid to the analyst.
    async fn token(&self, scene: &Scene) -> anyhow::Result<Address> {
        let artifact: Value = serde_json::from_str(ARTIFACT).context("the contract's artefact is malformed")?;
        let org = &scene.meridian;
        let contracts = format!("/api/v1/admin/orgs/{org}/contracts");
        let all = self
            .client
            .get(self.admin, &format!("{contracts}?limit=1000"))
            .await?
            .expect_success("listing contracts")?;
        if let Some(row) = rows(&all)
            .iter()
            .find(|row| row.get("name").and_then(Value::as_str) == Some(TOKEN.0))
        {
            return text(row, "address")?.parse().context("an address is malformed");
        }
        let bearer = scene.bearer(Persona::Ops)?;
        let receipt = self
            .transact(bearer, None, creation(&artifact)?)
            .await
            .context("deploying the token")?;
        let token: Address = text(&receipt, "contractAddress")?
            .parse()
            .context("the receipt's address is malformed")?;
        self.await_registration(&contracts, token).await?;
        let contract = format!("{contracts}/{token:#x}");
        let abi = artifact.get("abi").context("the artefact has no ABI")?.to_string();
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

    /// Sends a transaction of ops through the gateway and waits for its receipt there.
    async fn transact(&self, bearer: &str, to: Option<Address>, input: Bytes) -> anyhow::Result<Value> {
        let account = Persona::Ops.account()?;
        let who = As::Bearer(bearer);
        let ask = async |method: &str, params: Value| self.client.result(who, "/rpc", method, params).await;
        let quantity = async |method: &str, params: Value| number(&ask(method, params).await?);
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
        let hash = ask("eth_sendRawTransaction", json!([raw])).await?;
        let start = Instant::now();
        loop {
            let receipt = ask("eth_getTransactionReceipt", json!([hash])).await?;
            if receipt.get("status").and_then(Value::as_str) == Some("0x1") {
                return Ok(receipt);
            }
            if !receipt.is_null() || start.elapsed() > PATIENCE {
                bail!("the transaction {hash} failed: {receipt}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the gateway has seen the contract mined and filed it under its organization (20 R3).
    async fn await_registration(&self, contracts: &str, token: Address) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let found = self.client.get(self.admin, &format!("{contracts}/{token:#x}")).await?;
            if found.status.is_success() {
                return Ok(());
            }
            if found.status != StatusCode::NOT_FOUND || start.elapsed() > PATIENCE {
                bail!(
                    "the contract was not registered: HTTP {}: {}",
                    found.status.as_u16(),
                    found.text
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// `balanceOf(owner)`.
pub(super) fn balance_of(owner: Address) -> Bytes {
    call_data("balanceOf(address)", &[owner.into_word().into()])
}

fn transfer(to: Address, amount: U256) -> Bytes {
    call_data("transfer(address,uint256)", &[to.into_word().into(), amount])
}

/// The selector of a signature and its (static) arguments.
fn call_data(signature: &str, arguments: &[U256]) -> Bytes {
    let mut data: Vec<u8> = keccak256(signature).iter().take(4).copied().collect();
    for argument in arguments {
        data.extend_from_slice(&argument.to_be_bytes::<32>());
    }
    data.into()
}

/// The contract's code with its constructor's arguments.
fn creation(artifact: &Value) -> anyhow::Result<Bytes> {
    use alloy_dyn_abi::DynSolValue;
    let mut code = Bytes::from_hex(text(artifact, "bytecode")?)
        .context("the artefact's code is malformed")?
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

/// Whole tokens in their smallest unit.
pub(super) fn whole(tokens: u64) -> U256 {
    U256::from(tokens) * U256::from(10).pow(U256::from(18))
}

/// The rows of a list answer.
fn rows(list: &Value) -> Vec<Value> {
    list.get("data").unwrap_or(list).as_array().cloned().unwrap_or_default()
}

fn with_slug<'a>(list: &'a Value, slug: &str) -> anyhow::Result<&'a Value> {
    // A group comes with its access beside it.
    let all = list.get("data").unwrap_or(list).as_array().into_iter().flatten();
    let mut records = all.map(|row| row.get("group").unwrap_or(row));
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
    number.with_context(|| format!("{value} is no quantity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_encoded_as_the_abi_says() {
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
    fn the_artefact_is_deployable() {
        let artifact: Value = serde_json::from_str(ARTIFACT).expect("json");
        let code = creation(&artifact).expect("encoded");
        assert!(code.ends_with(b"MUSD\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert!(artifact.get("abi").is_some_and(Value::is_array));
    }
}
