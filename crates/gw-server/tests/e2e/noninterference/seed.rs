//! Creates one of the two worlds: its own gateway in front of its own node, with the same data as the other world
//! except for the planted data.

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

/// The planted data: the difference between the two worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// All private data and transactions of a bank and its members, and the base fee, which is hidden.
    Bank,
    /// The wallet that a member of the bank has linked and sends with.
    Wallet,
}

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: &'static str,
    /// The header that authenticates the caller. `None`: anonymous, or authenticated by the path.
    pub(super) header: Option<(&'static str, String)>,
    /// The path for its JSON-RPC calls.
    pub(super) rpc: String,
    /// The key of its wallet, for sends.
    pub(super) key: Option<PrivateKeySigner>,
    /// Whether the caller may see the ids of the bank, as a member or because [`Planted::Wallet`] hides no ids.
    pub(super) insider: bool,
}

/// One world, after seeding.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) gw: Gateway,
    /// The values of `<name>` in requests.
    pub(super) names: BTreeMap<&'static str, String>,
    pub(super) roles: Vec<Role>,
    /// Ids of the bank that no caller outside of it may see.
    pub(super) hidden: BTreeSet<String>,
    /// Hash and `mixHash` of each block, by number.
    pub(super) blocks: Vec<[String; 2]>,
}

/// An id that no object has.
pub(super) const UNKNOWN: &str = "99999999-9999-4999-8999-999999999999";
pub(super) const OWNER: &str = "did:test:owner";
pub(super) const MARKED: &str = "did:test:marked";
pub(super) const BOTH: &str = "did:test:both";
pub(super) const PAWN: &str = "did:test:pawn";
pub(super) const NOBODY: &str = "did:test:nobody-elsewhere";
/// A member of the other bank.
pub(super) const TRADER: &str = "did:test:trader";

/// The vault's storage slot with a planted value.
pub(super) const SLOT: u64 = 0x77;
/// Planted notes and names: one for each world.
pub(super) const WORDS: [&str; 2] = ["planted-note-left", "planted-note-right"];
/// Planted amounts: one for each world.
pub(super) const SUMS: [u64; 2] = [0x51_0001, 0x52_0002];
/// Two base fees, in wei, that give the same responses with HIDE_BASE_FEE.
const BASE_FEES: [u64; 2] = [600_000_000, 900_000_000];

/// A first-party application, so that the OAuth routes exist. The hash is bcrypt of `s3cret +%/=&:é`.
const CLIENT: &str = "explorer:$2b$10$abcdefghijklmnopqrstuug489rLSurbAawHyNzIxITQr/mPmTwT6";

/// The ABI with which the bank first registers its contract.
const BALANCE_OF: &str = r#"{"type":"function","name":"balanceOf","stateMutability":"view",
    "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]}"#;

pub(super) fn key_of(n: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_slice(&[n; 32]).unwrap()
}

/// The planted wallets of the owner: that of the left world and that of the right world.
pub(super) fn wallets() -> [Address; 2] {
    [key_of(0x71).address(), key_of(0x72).address()]
}

/// The wallet of a user who exists in the left world only.
pub(super) fn third_wallet() -> Address {
    key_of(0x73).address()
}

/// The storage slot of an owner's balance in the token contract.
pub(super) fn balance_slot(owner: Address) -> B256 {
    let words = [owner.into_word(), B256::with_last_byte(3)].map(|word| word.0).concat();
    alloy_primitives::keccak256(words)
}

/// The recipient of payments. No user has linked it.
pub(super) fn recipient() -> Address {
    key_of(0x5c).address()
}

/// A world while it is being created.
struct Seed {
    gw: Gateway,
    names: BTreeMap<&'static str, String>,
    planted: Planted,
    /// Whether this is the left world.
    left: bool,
}

impl Seed {
    /// Whether this world has the data that [`Planted::Bank`] plants in the left world only.
    fn has_planted(&self) -> bool {
        self.left || self.planted == Planted::Wallet
    }

    fn pick<T: Copy>(&self, values: [T; 2]) -> T {
        values[usize::from(!self.has_planted())]
    }

    fn wallet(&self) -> PrivateKeySigner {
        key_of(if self.left { 0x71 } else { 0x72 })
    }

    fn id(&self, name: &str) -> &str {
        &self.names[name]
    }

    /// Adds a DID to a group as the platform administrator and confirms the membership. Stores the user's id as `name`
    /// and returns the id of the membership.
    async fn enrol(&mut self, name: Option<&'static str>, org: &str, group: &str, did: &str) -> String {
        let path = format!("/orgs/{}/memberships/by-did", self.id(org));
        let body = json!({"did": did, "group_id": self.id(group)});
        let created = self.gw.admin("POST", &path, Some(body)).await.expect(201);
        let user = created["user_id"].as_str().unwrap().to_owned();
        let membership = created["membership"]["id"].as_str().unwrap().to_owned();
        if created["membership"]["status"] == "pending" {
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

    /// Logs a user in, completes their KYC and links the key. Returns the access token.
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

    /// Sends a transaction directly to the node and waits until it is mined. Returns its hash.
    async fn send_to_node(&self, key: &PrivateKeySigner, to: Option<Address>, input: Bytes) -> String {
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

    /// Sends a transaction through the gateway and waits until it is mined. The wait polls as an anonymous caller,
    /// because the number of polls differs and would be in the banks' access logs.
    async fn send(&self, token: &str, key: &PrivateKeySigner, to: Option<Address>, value: u64, input: Bytes) -> String {
        let (hash, raw) = self.gw.sign(key, to, U256::from(value), input).await;
        assert_eq!(
            self.gw.result(token, "eth_sendRawTransaction", json!([raw])).await,
            json!(hash)
        );
        self.gw.wait_until_mined("", hash).await;
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

    /// Calls an admin route with a user's token. The call must succeed.
    async fn as_admin(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Value {
        let response = self
            .gw
            .as_user(token, method, &format!("/api/v1/admin{path}"), body)
            .await;
        assert!(response.status < 300, "{path}: {}", response.body);
        if response.body.is_empty() {
            Value::Null
        } else {
            response.json()
        }
    }

    /// Creates the organizations and their groups.
    async fn groups(&mut self) {
        for (org_name, slug) in [("meridian", "meridian"), ("volta", "volta")] {
            let created = org(&self.gw, slug, slug).await;
            self.names.insert(org_name, created);
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
            let created = if slug == "overseers" {
                let body = json!({"name": slug, "slug": slug, "is_org_readonly_admin": true});
                let created = self
                    .gw
                    .admin("POST", &format!("/orgs/{}/groups", self.id(org)), Some(body))
                    .await
                    .expect(201);
                let id = created["id"].as_str().unwrap().to_owned();
                let access = format!("/orgs/{}/groups/{id}/access", self.id(org));
                self.gw
                    .admin("PUT", &access, Some(json!({"allowed_methods": ["*"]})))
                    .await
                    .expect(200);
                id
            } else {
                group(&self.gw, self.id(org), slug, is_admin, all.clone(), claims.clone()).await
            };
            self.names.insert(name, created);
        }
    }

    /// Creates the users of both worlds. Returns their tokens and keys.
    async fn people(&mut self) -> BTreeMap<&'static str, (String, PrivateKeySigner)> {
        let mut tokens = BTreeMap::new();
        for (n, (name, did, memberships)) in (0x11..).zip([
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
            for (org, group) in memberships {
                self.enrol(Some(name), org, group, did).await;
            }
            let token = self.person(did, Some(&key)).await;
            tokens.insert(name, (token, key));
        }
        // A login makes the outsider a member of the default organization. The memberships of outsider and leaver are
        // removed.
        let key = key_of(0x21);
        self.fund(key.address()).await;
        let token = self.person("did:test:outsider", Some(&key)).await;
        let user = crate::world::user_id(&self.gw, "did:test:outsider").await;
        for user_id in [user, self.id("leaver").to_owned()] {
            let memberships = self
                .gw
                .admin("GET", &format!("/users/{user_id}/memberships"), None)
                .await
                .expect(200);
            for row in memberships.as_array().unwrap() {
                let membership = format!(
                    "/users/{user_id}/memberships/{}",
                    row["membership"]["id"].as_str().unwrap()
                );
                self.gw.admin("DELETE", &membership, None).await.expect(200);
            }
        }
        tokens.insert("outsider", (token, key));
        // The other bank's administrator invites the owner, who does not respond.
        let join = format!("/orgs/{}/memberships/by-did", self.id("volta"));
        let body = json!({"did": OWNER, "group_id": self.id("v_spare")});
        self.as_admin(&tokens["chief"].0, "POST", &join, Some(body)).await;
        tokens
    }

    /// Creates the bank's contracts and transactions. Each statement creates the same number of blocks in both worlds.
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
        // The same code at the same address: registered for the bank in one world, unregistered in the other.
        let maybe = if self.has_planted() {
            self.deploy(token, key, init_code("Child", &[])).await
        } else {
            let hash = self.send_to_node(key, None, init_code("Child", &[])).await;
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
        // This world's wallet sends a transfer of zero, which changes no token balance.
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
            // Writing zero to a slot, too, changes the node's storage root. Therefore both slots are written in both
            // worlds.
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

    /// Creates the bank's data that one world only has, and the notes and names that differ.
    async fn bank(&mut self, boss: &str, owner: &str) {
        let words = self.pick(WORDS);
        let owner_page = format!("/users/{}", self.id("owner"));
        self.as_admin(
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
        // A session belongs to the user, not to the bank: both worlds have it.
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
        let created = group(
            &self.gw,
            self.id("meridian"),
            "planted-group",
            false,
            json!(["eth_call"]),
            json!([]),
        )
        .await;
        let access = format!("/orgs/{}/groups/{created}/access", self.id("meridian"));
        let key = json!({"allowed_methods": ["*"], "rpc_api_key": "planted-key-0123456789abcdef"});
        self.gw.admin("PUT", &access, Some(key)).await.expect(200);
        self.names.insert("m_secret", created);
        // A user whom no other bank knows; users of the other bank who are also members, invited, or marked.
        self.enrol(Some("nobody"), "meridian", "m_ops", NOBODY).await;
        self.person(NOBODY, Some(&key_of(0x73))).await;
        self.enrol(None, "meridian", "m_analysts", BOTH).await;
        let join = format!("/orgs/{}/memberships/by-did", self.id("meridian"));
        let body = json!({"did": PAWN, "group_id": self.id("m_analysts")});
        self.as_admin(boss, "POST", &join, Some(body)).await;
        let marked = format!("/users/{}", self.id("marked"));
        let mint = json!({"scope": "all", "org_id": self.id("meridian"), "name": words});
        let url = self
            .gw
            .as_user(&marked_token, "POST", "/api/v1/me/rpc-urls", Some(mint.clone()))
            .await
            .expect(201);
        self.names.insert("marked_url", url["id"].as_str().unwrap().into());
        let marks = json!({"kyc": false, "banned": true, "note": words});
        self.as_admin(boss, "PUT", &marked, Some(marks)).await;
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

    /// Creates the contracts of the other bank, which inspect, call or pay a given address.
    async fn rival(&mut self, token: &str, key: &PrivateKeySigner) {
        for (name, contract) in [("probe", "Probe"), ("forwarder", "Forwarder"), ("payer", "Payer")] {
            let created = self.deploy(token, key, init_code(contract, &[])).await;
            self.names.insert(name, created.to_string());
            grant(&self.gw, self.id("volta"), created, self.id("v_ops"), Value::Null).await;
        }
    }

    /// The id of a registered contract, or [`UNKNOWN`].
    async fn contract_id(&self, name: &str) -> String {
        let lookup = self
            .gw
            .admin("GET", &format!("/contracts/by-address/{}", self.id(name)), None)
            .await;
        if lookup.status != 200 {
            return UNKNOWN.to_owned();
        }
        let id = lookup.json()["contract"]["id"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("{}", lookup.body))
    }

    /// Creates a personal URL for the other bank and returns its path.
    async fn url(&self, token: &str, scope: &str) -> String {
        let mut body = json!({"scope": scope, "org_id": self.id("volta")});
        if scope == "contracts" {
            body["contracts"] = json!([self.id("probe"), self.id("forwarder")]);
        }
        let created = self
            .gw
            .as_user(token, "POST", "/api/v1/me/rpc-urls", Some(body))
            .await
            .expect(201);
        format!(
            "/rpc/u/{}",
            created["url"].as_str().unwrap().rsplit_once('/').unwrap().1
        )
    }

    /// All ids in the responses about an organization that the platform administrator sees.
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

/// Creates a world. `start` is the time of its first block in seconds since the epoch; it is the same for both worlds.
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
    let gw = Gateway::start_with_node(Engine::Sqlite, &extra, node, &url, &url).await;
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
    // All users get the same balance, because what they have paid depends on the base fee.
    for (_, key) in people.values() {
        seed.fund(key.address()).await;
    }
    if planted == Planted::Bank {
        seed.set_base_fee().await;
    }

    let mut hidden: BTreeSet<String> = seed.ids_of("meridian").await;
    let known = seed.ids_of("volta").await;
    // An administrator who invites a DID gets the user's id: it is not hidden.
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
        blocks.push(block_digests(&seed.gw, &format!("0x{number:x}")).await);
    }
    let mined = seed.gw.node("eth_getTransactionReceipt", json!([seed.id("tx")])).await;
    seed.names
        .insert("block", mined["blockNumber"].as_str().unwrap().into());
    seed.names
        .insert("block_hash", mined["blockHash"].as_str().unwrap().into());
    // Wait until the gateway has followed the node to its head.
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
    panic!("the gateway did not follow the node to block {head} within ten seconds");
}

/// `hash` and `mixHash` of a block. The node generates `mixHash` at random.
pub(super) async fn block_digests(gw: &Gateway, number: &str) -> [String; 2] {
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

/// A signed payment with fixed fees, so that it costs the same in both worlds.
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
