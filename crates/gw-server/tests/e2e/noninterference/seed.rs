//! One of the two worlds: a gateway of its own in front of a node of its own, seeded as its twin is, but for what is planted.

use crate::{
    harness::{ADMIN_TOKEN, Engine, Gateway, artifact, init_code, sign_tx, sign_with_nonce},
    world::{grant, group, org, transfer},
};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::SolValue;
use gw_testkit::anvil::{Anvil, AnvilOptions};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// In what two worlds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// Everything that a bank and its members have, do, and call each other; and the base fee, which is hidden.
    Bank,
    /// Which wallet a member of the bank has linked, and acts with.
    Wallet,
}

/// Somebody who asks.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: &'static str,
    /// The header that says who asks, unless the path does.
    pub(super) header: Option<(&'static str, String)>,
    /// Where its JSON-RPC goes.
    pub(super) rpc: String,
    /// Its wallet, to send with.
    pub(super) key: Option<PrivateKeySigner>,
    /// Belongs to the bank: may see its ids.
    pub(super) insider: bool,
}

#[derive(Debug)]
pub(super) struct Side {
    pub(super) gw: Gateway,
    /// What stands for `<name>` in a question.
    pub(super) names: BTreeMap<&'static str, String>,
    pub(super) roles: Vec<Role>,
    /// Ids of the bank that nobody outside may meet.
    pub(super) hidden: BTreeSet<String>,
    /// Hashes of the blocks and what the node drew for them, by number.
    pub(super) blocks: Vec<[String; 2]>,
}

/// What names nothing.
pub(super) const UNKNOWN: &str = "99999999-9999-4999-8999-999999999999";
pub(super) const OWNER: &str = "did:test:owner";
pub(super) const MARKED: &str = "did:test:marked";
pub(super) const BOTH: &str = "did:test:both";
pub(super) const PAWN: &str = "did:test:pawn";
pub(super) const NOBODY: &str = "did:test:nobody-elsewhere";
/// Whose bank is the other one.
pub(super) const TRADER: &str = "did:test:trader";

/// The slot of the vault that is planted.
pub(super) const SLOT: u64 = 0x77;
/// Notes on the owner, and other words that one world has and the other has not.
pub(super) const WORDS: [&str; 2] = ["planted-note-left", "planted-note-right"];
pub(super) const SUMS: [u64; 2] = [0x51_0001, 0x52_0002];
/// Two base fees that HIDE_BASE_FEE shows alike.
const BASE_FEES: [u64; 2] = [600_000_000, 900_000_000];

/// bcrypt of `s3cret +%/=&:é`: a first-party application, so that its routes are there.
const CLIENT: &str = "explorer:$2b$10$abcdefghijklmnopqrstuug489rLSurbAawHyNzIxITQr/mPmTwT6";

/// What the bank says of its contract at first.
const BALANCE_OF: &str = r#"{"type":"function","name":"balanceOf","stateMutability":"view",
    "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]}"#;

pub(super) fn key_of(n: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_slice(&[n; 32]).unwrap()
}

/// The wallets that may be the owner's: the left world's, the right world's.
pub(super) fn wallets() -> [Address; 2] {
    [key_of(0x71).address(), key_of(0x72).address()]
}

/// A wallet of somebody who is only in the left world.
pub(super) fn third_wallet() -> Address {
    key_of(0x73).address()
}

/// Where a token keeps somebody's balance.
pub(super) fn balance_slot(owner: Address) -> B256 {
    let words = [owner.into_word(), B256::with_last_byte(3)].map(|word| word.0).concat();
    alloy_primitives::keccak256(words)
}

/// Who is paid; nobody's.
pub(super) fn recipient() -> Address {
    key_of(0x5c).address()
}

/// Makes a world, statement by statement.
struct Seed {
    gw: Gateway,
    names: BTreeMap<&'static str, String>,
    planted: Planted,
    left: bool,
}

impl Seed {
    /// Whether what only the left world has is here.
    fn has_planted(&self) -> bool {
        self.left || self.planted == Planted::Wallet
    }

    fn pick<T: Copy>(&self, of: [T; 2]) -> T {
        of[usize::from(!self.has_planted())]
    }

    fn wallet(&self) -> PrivateKeySigner {
        key_of(if self.left { 0x71 } else { 0x72 })
    }

    fn id(&self, name: &str) -> &str {
        &self.names[name]
    }

    /// Puts a DID into a group, as super, for good.
    async fn enrol(&mut self, name: Option<&'static str>, org: &str, group: &str, did: &str) -> String {
        let joins = format!("/orgs/{}/memberships/by-did", self.id(org));
        let body = json!({"did": did, "group_id": self.id(group)});
        let made = self.gw.admin("POST", &joins, Some(body)).await.expect(201);
        let user = made["user_id"].as_str().unwrap().to_owned();
        let membership = made["membership"]["id"].as_str().unwrap().to_owned();
        if made["membership"]["status"] == "pending" {
            self.gw
                .admin("POST", &format!("/users/{user}/memberships/{membership}/confirm"), None)
                .await
                .expect(200);
        }
        if let Some(name) = name {
            self.names.insert(name, user.clone());
        }
        membership
    }

    /// A user with a token, verified for all, with a wallet and ether.
    async fn person(&self, did: &str, key: Option<&PrivateKeySigner>) -> String {
        let token = self.gw.login(did).await;
        let user = crate::world::user_id(&self.gw, did).await;
        self.gw
            .admin("PUT", &format!("/users/{user}"), Some(json!({"kyc": true})))
            .await
            .expect(200);
        if let Some(key) = key {
            self.gw.link(&token, key).await;
        }
        token
    }

    async fn fund(&self, address: Address) {
        self.gw
            .node("anvil_setBalance", json!([address, "0xde0b6b3a7640000"]))
            .await;
    }

    /// Sends without the gateway.
    async fn send_past(&self, key: &PrivateKeySigner, to: Option<Address>, input: Bytes) -> String {
        let nonce = self
            .gw
            .node("eth_getTransactionCount", json!([key.address(), "pending"]))
            .await;
        let nonce = u64::from_str_radix(nonce.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let (hash, raw) = sign_with_nonce(key, nonce, to, U256::ZERO, input);
        self.gw.node("eth_sendRawTransaction", json!([raw])).await;
        for _ in 0..500 {
            if !self.gw.node("eth_getTransactionReceipt", json!([hash])).await.is_null() {
                return hash.to_string();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{hash} was not mined");
    }

    /// Sends through the gateway. Nobody of the banks polls for the block: how often would stand in their records.
    async fn send(&self, token: &str, key: &PrivateKeySigner, to: Option<Address>, value: u64, input: Bytes) -> String {
        let (hash, raw) = self.gw.sign(key, to, U256::from(value), input).await;
        assert_eq!(
            self.gw.result(token, "eth_sendRawTransaction", json!([raw])).await,
            json!(hash)
        );
        self.gw.mined("", hash).await;
        hash.to_string()
    }

    async fn deploy(&self, token: &str, key: &PrivateKeySigner, init: Bytes) -> Address {
        let hash = self.send(token, key, None, 0, init).await;
        let receipt = self.gw.node("eth_getTransactionReceipt", json!([hash])).await;
        let address = receipt["contractAddress"].as_str().unwrap();
        for _ in 0..100 {
            if self
                .gw
                .admin("GET", &format!("/contracts/by-address/{address}"), None)
                .await
                .status
                == 200
            {
                return address.parse().unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{address} was not registered within five seconds");
    }

    async fn boss(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Value {
        let said = self
            .gw
            .as_user(token, method, &format!("/api/v1/admin{path}"), body)
            .await;
        assert!(said.status < 300, "{path}: {}", said.body);
        if said.body.is_empty() { Value::Null } else { said.json() }
    }

    async fn groups(&mut self) {
        for (org_name, slug) in [("meridian", "meridian"), ("volta", "volta")] {
            let made = org(&self.gw, slug, slug).await;
            self.names.insert(org_name, made);
        }
        let (all, none, deploy) = (json!(["*"]), json!([]), json!(["deploy"]));
        for (name, org, slug, is_admin, claims) in [
            ("m_ops", "meridian", "ops", false, &deploy),
            ("m_analysts", "meridian", "analysts", false, &none),
            ("m_admins", "meridian", "admins", true, &none),
            ("m_overseers", "meridian", "overseers", false, &none),
            ("v_ops", "volta", "ops", false, &deploy),
            ("v_spare", "volta", "spare", false, &none),
            ("v_admins", "volta", "admins", true, &none),
            ("v_overseers", "volta", "overseers", false, &none),
        ] {
            let made = if slug == "overseers" {
                let body = json!({"name": slug, "slug": slug, "is_org_readonly_admin": true});
                let made = self
                    .gw
                    .admin("POST", &format!("/orgs/{}/groups", self.id(org)), Some(body))
                    .await
                    .expect(201);
                let id = made["id"].as_str().unwrap().to_owned();
                let access = format!("/orgs/{}/groups/{id}/access", self.id(org));
                self.gw
                    .admin("PUT", &access, Some(json!({"allowed_methods": ["*"]})))
                    .await
                    .expect(200);
                id
            } else {
                group(&self.gw, self.id(org), slug, is_admin, all.clone(), claims.clone()).await
            };
            self.names.insert(name, made);
        }
    }

    /// Who is there in both worlds, with their tokens.
    async fn people(&mut self) -> BTreeMap<&'static str, (String, PrivateKeySigner)> {
        let mut tokens = BTreeMap::new();
        for (n, (name, did, places)) in (0x11..).zip([
            ("owner", OWNER, &[("meridian", "m_ops")][..]),
            ("boss", "did:test:boss", &[("meridian", "m_admins")]),
            ("overseer", "did:test:overseer", &[("meridian", "m_overseers")]),
            ("colleague", "did:test:colleague", &[("meridian", "m_analysts")]),
            (
                "guest",
                "did:test:guest",
                &[("meridian", "m_analysts"), ("volta", "v_ops")],
            ),
            ("leaver", "did:test:leaver", &[("meridian", "m_ops")]),
            ("marked", MARKED, &[("meridian", "m_analysts"), ("volta", "v_ops")]),
            ("trader", TRADER, &[("volta", "v_ops")]),
            ("chief", "did:test:chief", &[("volta", "v_admins")]),
            ("reader", "did:test:reader", &[("volta", "v_overseers")]),
            ("both", BOTH, &[("volta", "v_ops")]),
            ("pawn", PAWN, &[("volta", "v_ops")]),
        ]) {
            let key = key_of(n);
            self.fund(key.address()).await;
            for (org, group) in places {
                self.enrol(Some(name), org, group, did).await;
            }
            let token = self.person(did, Some(&key)).await;
            tokens.insert(name, (token, key));
        }
        // A login makes the stranger a member of the default organization, which is undone: they belong nowhere.
        let key = key_of(0x21);
        self.fund(key.address()).await;
        let token = self.person("did:test:outsider", Some(&key)).await;
        let user = crate::world::user_id(&self.gw, "did:test:outsider").await;
        for who in [user, self.id("leaver").to_owned()] {
            let held = self
                .gw
                .admin("GET", &format!("/users/{who}/memberships"), None)
                .await
                .expect(200);
            for row in held.as_array().unwrap() {
                let membership = format!("/users/{who}/memberships/{}", row["membership"]["id"].as_str().unwrap());
                self.gw.admin("DELETE", &membership, None).await.expect(200);
            }
        }
        tokens.insert("outsider", (token, key));
        // The other bank's administrator has asked the owner to join, who has not answered.
        let join = format!("/orgs/{}/memberships/by-did", self.id("volta"));
        let body = json!({"did": OWNER, "group_id": self.id("v_spare")});
        self.boss(&tokens["chief"].0, "POST", &join, Some(body)).await;
        tokens
    }

    /// What the bank has on the chain. Each statement makes as many blocks in both worlds.
    async fn chain(&mut self, token: &str, key: &PrivateKeySigner) {
        let constructor = ("Vault".to_owned(), "VLT".to_owned(), U256::MAX).abi_encode_params();
        let vault = self.deploy(token, key, init_code("DemoERC20", &constructor)).await;
        self.names.insert("vault", vault.to_string());
        let abi = format!("[{BALANCE_OF}]");
        let path = format!("/orgs/{}/contracts/{vault}/abi", self.id("meridian"));
        self.gw.admin("PUT", &path, Some(json!({"abi": abi}))).await.expect(200);
        let analysts = self.id("m_analysts").to_owned();
        let rule = match self.planted {
            Planted::Bank => json!([{"selector": "0x70a08231", "param_rules": [{"index": 0, "must_be": "self"}]}]),
            Planted::Wallet => Value::Null,
        };
        let rights = json!({"group_id": analysts, "functions": rule,
            "event_rules": if self.planted == Planted::Bank { json!([]) } else { Value::Null }});
        let grants = format!("/orgs/{}/contracts/{vault}/grants", self.id("meridian"));
        self.gw.admin("POST", &grants, Some(rights)).await.expect(201);
        // The same code at the same address: the bank's in one world, nobody's in the other.
        let maybe = if self.has_planted() {
            self.deploy(token, key, init_code("Child", &[])).await
        } else {
            let hash = self.send_past(key, None, init_code("Child", &[])).await;
            let receipt = self.gw.node("eth_getTransactionReceipt", json!([hash])).await;
            receipt["contractAddress"].as_str().unwrap().parse().unwrap()
        };
        self.names.insert("maybe", maybe.to_string());
        let sum = self.pick(SUMS);
        let tx = self.send(token, key, Some(vault), 0, transfer(recipient(), sum)).await;
        self.names.insert("tx", tx);
        let payment = self.send(token, key, Some(recipient()), sum, Bytes::new()).await;
        self.names.insert("payment", payment);
        self.gw
            .node(
                "anvil_setStorageAt",
                json!([vault, format!("0x{SLOT:064x}"), format!("0x{sum:064x}")]),
            )
            .await;
        // The wallet of this world acts: a transfer of nothing, which changes no state.
        let wallet = self.wallet();
        for address in wallets() {
            self.fund(address).await;
        }
        self.gw.link(token, &wallet).await;
        let acted = self
            .send(token, &wallet, Some(vault), 0, transfer(recipient(), 0))
            .await;
        self.names.insert("acted", acted);
        for (n, address) in wallets().into_iter().enumerate() {
            // The node's storage root remembers that a slot was written, with zero too: in both worlds both were.
            self.gw
                .node("anvil_setStorageAt", json!([vault, balance_slot(address), B256::ZERO]))
                .await;
            let funds = if self.planted == Planted::Bank && self.left == (n == 0) {
                "0x1234567"
            } else {
                "0x7654321"
            };
            self.gw.node("anvil_setBalance", json!([address, funds])).await;
        }
    }

    /// What only one world's bank has, and what they call differently.
    async fn bank(&mut self, boss: &str, owner: &str) {
        let words = self.pick(WORDS);
        let owner_page = format!("/users/{}", self.id("owner"));
        self.boss(
            boss,
            "PUT",
            &owner_page,
            Some(json!({"note": words, "metadata": {"file": words}})),
        )
        .await;
        let vault = format!("/orgs/{}/contracts/{}", self.id("meridian"), self.id("vault"));
        self.gw
            .admin("PUT", &vault, Some(json!({"name": words})))
            .await
            .expect(200);
        // A login is the person's, not a bank's: both worlds have it.
        let marked_token = self.gw.login(MARKED).await;
        for name in ["m_secret", "nobody", "owner_url", "owner_url_secret", "marked_url"] {
            self.names.insert(name, UNKNOWN.into());
        }
        if !self.has_planted() {
            return;
        }
        let abi = json!({"abi": artifact("DemoERC20")["abi"].to_string()});
        self.gw
            .admin("PUT", &format!("{vault}/abi"), Some(abi))
            .await
            .expect(200);
        self.gw
            .admin(
                "PUT",
                &format!("{vault}/trusted-router"),
                Some(json!({"trusted_router": true})),
            )
            .await
            .expect(200);
        let unlock = json!({"allow_visibleto_unlock": true});
        self.gw
            .admin("PUT", &format!("{vault}/visibleto-unlock"), Some(unlock))
            .await
            .expect(200);
        let made = group(
            &self.gw,
            self.id("meridian"),
            "planted-group",
            false,
            json!(["eth_call"]),
            json!([]),
        )
        .await;
        let access = format!("/orgs/{}/groups/{made}/access", self.id("meridian"));
        let key = json!({"allowed_methods": ["*"], "rpc_api_key": "planted-key-0123456789abcdef"});
        self.gw.admin("PUT", &access, Some(key)).await.expect(200);
        self.names.insert("m_secret", made);
        // A person nobody else knows; persons who are also members, are asked, are marked.
        self.enrol(Some("nobody"), "meridian", "m_ops", NOBODY).await;
        self.person(NOBODY, Some(&key_of(0x73))).await;
        self.enrol(None, "meridian", "m_analysts", BOTH).await;
        let join = format!("/orgs/{}/memberships/by-did", self.id("meridian"));
        let body = json!({"did": PAWN, "group_id": self.id("m_analysts")});
        self.boss(boss, "POST", &join, Some(body)).await;
        let marked = format!("/users/{}", self.id("marked"));
        let mint = json!({"scope": "all", "org_id": self.id("meridian"), "name": words});
        let url = self
            .gw
            .as_user(&marked_token, "POST", "/api/v1/me/rpc-urls", Some(mint.clone()))
            .await
            .expect(201);
        self.names.insert("marked_url", url["id"].as_str().unwrap().into());
        let marks = json!({"kyc": false, "banned": true, "note": words});
        self.boss(boss, "PUT", &marked, Some(marks)).await;
        let url = self
            .gw
            .as_user(owner, "POST", "/api/v1/me/rpc-urls", Some(mint))
            .await
            .expect(201);
        self.names.insert("owner_url", url["id"].as_str().unwrap().into());
        let secret = url["url"].as_str().unwrap().rsplit_once('/').unwrap().1;
        self.names.insert("owner_url_secret", secret.into());
        self.gw.login(OWNER).await;
    }

    /// What the other bank has: contracts that look at whatever they are told to.
    async fn rival(&mut self, token: &str, key: &PrivateKeySigner) {
        for (name, contract) in [("probe", "Probe"), ("forwarder", "Forwarder"), ("payer", "Payer")] {
            let made = self.deploy(token, key, init_code(contract, &[])).await;
            self.names.insert(name, made.to_string());
            grant(&self.gw, self.id("volta"), made, self.id("v_ops"), Value::Null).await;
        }
    }

    /// The id of a contract, or of nothing.
    async fn contract_id(&self, name: &str) -> String {
        let found = self
            .gw
            .admin("GET", &format!("/contracts/by-address/{}", self.id(name)), None)
            .await;
        if found.status != 200 {
            return UNKNOWN.to_owned();
        }
        let id = found.json()["contract"]["id"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("{}", found.body))
    }

    async fn url(&self, token: &str, scope: &str) -> String {
        let mut body = json!({"scope": scope, "org_id": self.id("volta")});
        if scope == "contracts" {
            body["contracts"] = json!([self.id("probe"), self.id("forwarder")]);
        }
        let made = self
            .gw
            .as_user(token, "POST", "/api/v1/me/rpc-urls", Some(body))
            .await
            .expect(201);
        format!("/rpc/u/{}", made["url"].as_str().unwrap().rsplit_once('/').unwrap().1)
    }

    /// The ids on everything that super is shown of an organization.
    async fn ids_of(&self, org: &str) -> BTreeSet<String> {
        let org = self.id(org);
        let mut text = String::new();
        for page in ["groups?limit=200", "contracts?limit=200", "contracts/grant-summary"] {
            text += &self.gw.admin("GET", &format!("/orgs/{org}/{page}"), None).await.body;
        }
        let users = self
            .gw
            .admin("GET", &format!("/users?org_id={org}&limit=200"), None)
            .await
            .expect(200);
        text += &users.to_string();
        for user in users["data"].as_array().unwrap() {
            for page in ["memberships", "rpc-urls", "sessions"] {
                let path = format!("/users/{}/{page}", user["id"].as_str().unwrap());
                text += &self.gw.admin("GET", &path, None).await.body;
            }
        }
        text += &self
            .gw
            .admin("GET", &format!("/audit-logs?org_id={org}&limit=500"), None)
            .await
            .body;
        super::compare::ids(&text)
    }
}

/// A world. `start` is the time of its first block, the same for both of a pair.
pub(super) async fn seed(planted: Planted, left: bool, start: u64) -> Side {
    let arguments = ["--timestamp".to_owned(), start.to_string()];
    let node = Anvil::start(&AnvilOptions {
        extra: arguments.into(),
        ..AnvilOptions::default()
    });
    let sealing = "11".repeat(32);
    let extra = [
        ("HIDE_BASE_FEE", if planted == Planted::Bank { "true" } else { "false" }),
        ("RATE_LIMIT_AUTH", "off"),
        ("RATE_LIMIT_ANON", "off"),
        ("ACCESS_TOKEN_TTL", "1h"),
        ("AUDIT_LOG_PARAMS", "true"),
        ("RPC_API_KEY_ENCRYPTION_KEY", &sealing),
        ("OAUTH_FIRST_PARTY_CLIENTS", CLIENT),
        ("OAUTH_REDIRECT_URIS", "explorer=https://explorer.example/callback"),
    ];
    let url = node.url().to_owned();
    let gw = Gateway::start_on(Engine::Sqlite, &extra, node, &url, &url).await;
    gw.node("anvil_setBlockTimestampInterval", json!([1])).await;
    let mut seed = Seed {
        gw,
        names: BTreeMap::new(),
        planted,
        left,
    };
    seed.groups().await;
    let people = seed.people().await;
    let (owner, boss, trader) = (&people["owner"], &people["boss"], &people["trader"]);
    seed.rival(&trader.0, &trader.1).await;
    seed.chain(&owner.0, &owner.1).await;
    seed.bank(&boss.0, &owner.0).await;
    for (name, contract) in [("maybe_contract", "maybe"), ("probe_contract", "probe")] {
        let id = seed.contract_id(contract).await;
        seed.names.insert(name, id);
    }
    // Everybody begins with the same purse: what they paid before tells the fees.
    for (_, key) in people.values() {
        seed.fund(key.address()).await;
    }
    if planted == Planted::Bank {
        seed.set_base_fee().await;
    }

    let mut hidden: BTreeSet<String> = seed.ids_of("meridian").await;
    let known = seed.ids_of("volta").await;
    // Whoever knows a DID is told the user's id when they ask that person to join.
    let named = seed.names["nobody"].clone();
    hidden.retain(|id| !known.contains(id) && *id != named && id != seed.id("meridian") && id != UNKNOWN);

    let role = |name: &'static str, header, rpc: String| Role {
        name,
        header,
        rpc,
        key: people.get(name).map(|(_, key)| key.clone()),
        insider: planted == Planted::Wallet || matches!(name, "colleague" | "guest"),
    };
    let mut roles = vec![role("anonymous", None, "/rpc".into())];
    for (name, (token, _)) in &people {
        roles.push(role(
            name,
            Some(("authorization", format!("Bearer {token}"))),
            "/rpc".into(),
        ));
    }
    for (name, scope) in [
        ("url of scope wallet", "wallet"),
        ("url of scope contracts", "contracts"),
        ("url of scope all", "all"),
    ] {
        roles.push(role(name, None, seed.url(&trader.0, scope).await));
    }
    roles.push(role(
        "super",
        Some(("x-admin-token", ADMIN_TOKEN.into())),
        "/rpc".into(),
    ));

    let head = seed.gw.node("eth_blockNumber", json!([])).await;
    let head = u64::from_str_radix(head.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let mut blocks = Vec::new();
    for number in 0..=head {
        blocks.push(drawn(&seed.gw, &format!("0x{number:x}")).await);
    }
    let mined = seed.gw.node("eth_getTransactionReceipt", json!([seed.id("tx")])).await;
    seed.names
        .insert("block", mined["blockNumber"].as_str().unwrap().into());
    seed.names
        .insert("block_hash", mined["blockHash"].as_str().unwrap().into());
    // The gateway has followed the node to its head.
    for _ in 0..500 {
        if seed.gw.result("", "eth_blockNumber", json!([])).await == format!("0x{head:x}") {
            return Side {
                gw: seed.gw,
                names: seed.names,
                roles,
                hidden,
                blocks,
            };
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the gateway does not follow to block {head}");
}

/// Hash and randomness of a block.
pub(super) async fn drawn(gw: &Gateway, number: &str) -> [String; 2] {
    let block = gw.node("eth_getBlockByNumber", json!([number, false])).await;
    ["hash", "mixHash"].map(|member| block[member].as_str().unwrap().to_owned())
}

impl Seed {
    async fn set_base_fee(&self) {
        let fee = self.pick(BASE_FEES);
        self.gw
            .node("anvil_setNextBlockBaseFeePerGas", json!([format!("0x{fee:x}")]))
            .await;
        self.gw.node("anvil_mine", json!(["0x1"])).await;
    }
}

/// A payment that names its fees, so that it costs the same wherever it is signed.
pub(super) fn payment(key: &PrivateKeySigner, nonce: u64, to: Option<Address>, value: u64, input: Bytes) -> Bytes {
    let tx = TxEip1559 {
        chain_id: 31337,
        nonce,
        gas_limit: 500_000,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: to.map_or(TxKind::Create, TxKind::Call),
        value: U256::from(value),
        access_list: Default::default(),
        input,
    };
    sign_tx(key, tx).1
}
