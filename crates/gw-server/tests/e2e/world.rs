//! Two banks, their members and a user of neither bank on one chain. The fixture is created over the admin API, as an
//! operator would do it.

use crate::harness::{Engine, Gateway, artifact, init_code, key};
use alloy_primitives::{Address, Bytes, U256};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, SolValue, sol};
use serde_json::{Value, json};

sol! {
    function transfer(address to, uint256 value) external returns (bool);
    function approve(address spender, uint256 value) external returns (bool);
    function balanceOf(address owner) external view returns (uint256);
    function symbol() external view returns (string);
    function forward(address target, bytes calldata data) external payable returns (bytes memory);
    function create() external returns (address child);
    function codeHashOf(address account) external view returns (bytes32);
    function pay(address to, uint256 value) external;
    event Transfer(address indexed from, address indexed to, uint256 value);
}

pub(crate) fn transfer(to: Address, value: u64) -> Bytes {
    transferCall {
        to,
        value: U256::from(value),
    }
    .abi_encode()
    .into()
}

pub(crate) fn balance_of(owner: Address) -> Bytes {
    balanceOfCall { owner }.abi_encode().into()
}

/// A user with an access token and a key. The address of the key is linked to the user.
#[derive(Clone, Debug)]
pub(crate) struct Persona {
    pub(crate) did: &'static str,
    pub(crate) user_id: String,
    pub(crate) token: String,
    pub(crate) key: PrivateKeySigner,
}

impl Persona {
    pub(crate) fn address(&self) -> Address {
        self.key.address()
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) gw: Gateway,
    pub(crate) meridian: String,
    pub(crate) volta: String,
    pub(crate) analysts: String,
    /// Member of Meridian's group with `allowed_methods` `*` and the `deploy` claim.
    pub(crate) ops: Persona,
    /// Member of Meridian's analysts: read methods; on the token contract only `balanceOf` of their own address.
    pub(crate) analyst: Persona,
    /// Administrator of Meridian.
    pub(crate) admin: Persona,
    /// Member of Volta: read and send methods, no grant on any contract.
    pub(crate) trader: Persona,
    /// A user with a token, a linked key and only the default membership.
    pub(crate) outsider: Persona,
    /// Member of Meridian's ops group whose KYC is not completed.
    pub(crate) unverified: Persona,
    /// The token contract, deployed by ops through the gateway.
    pub(crate) erc20: Address,
}

impl World {
    pub(crate) async fn start(engine: Engine) -> Self {
        Self::start_with(engine, &[]).await
    }

    pub(crate) async fn start_with(engine: Engine, extra: &[(&str, &str)]) -> Self {
        Self::seed(Gateway::start_with(engine, extra).await).await
    }

    /// Creates the organizations, groups, users and the token contract.
    pub(crate) async fn seed(gw: Gateway) -> Self {
        let meridian = org(&gw, "Meridian Bank", "meridian").await;
        let volta = org(&gw, "Volta Bank", "volta").await;
        let reads = json!([
            "eth_call",
            "eth_getBalance",
            "eth_getTransactionCount",
            "eth_getTransactionReceipt",
            "eth_getLogs",
            "eth_getCode",
            "eth_getBlockByNumber",
            "eth_getTransactionByHash",
            "eth_getStorageAt",
            "eth_getBlockReceipts",
            "eth_getBlockTransactionCountByNumber",
            "eth_feeHistory"
        ]);
        let mut writes = reads.as_array().unwrap().clone();
        writes.extend(["eth_sendRawTransaction", "eth_estimateGas", "eth_maxPriorityFeePerGas"].map(Value::from));
        let ops_group = group(&gw, &meridian, "ops", false, json!(["*"]), json!(["deploy"])).await;
        let analysts = group(&gw, &meridian, "analysts", false, reads.clone(), json!([])).await;
        let admins = group(&gw, &meridian, "admins", true, reads.clone(), json!([])).await;
        let traders = group(&gw, &volta, "traders", false, json!(writes), json!([])).await;

        let ops = member(&gw, &meridian, &ops_group, "did:test:ops", 0, true).await;
        let analyst = member(&gw, &meridian, &analysts, "did:test:analyst", 1, true).await;
        let admin = member(&gw, &meridian, &admins, "did:test:admin", 2, true).await;
        let trader = member(&gw, &volta, &traders, "did:test:trader", 3, true).await;
        let unverified = member(&gw, &meridian, &ops_group, "did:test:unverified", 4, false).await;
        let outsider = {
            let token = gw.login("did:test:outsider").await;
            let key = key(5);
            gw.link(&token, &key).await;
            Persona {
                did: "did:test:outsider",
                user_id: user_id(&gw, "did:test:outsider").await,
                token,
                key,
            }
        };

        let supply = U256::from(1_000_000u64);
        let constructor = ("Demo Dollar".to_owned(), "DUSD".to_owned(), supply).abi_encode_params();
        let erc20 = gw
            .deploy(&ops.token, &ops.key, init_code("DemoERC20", &constructor))
            .await;
        let abi = artifact("DemoERC20")["abi"].to_string();
        gw.admin(
            "PUT",
            &format!("/orgs/{meridian}/contracts/{erc20}/abi"),
            Some(json!({"abi": abi})),
        )
        .await
        .expect(200);
        let rule = json!([{"selector": "0x70a08231", "param_rules": [{"index": 0, "must_be": "self"}]}]);
        grant(&gw, &meridian, erc20, &analysts, rule).await;
        gw.send(
            &ops.token,
            &ops.key,
            Some(erc20),
            U256::ZERO,
            transfer(analyst.address(), 1000),
        )
        .await;
        Self {
            gw,
            meridian,
            volta,
            analysts,
            ops,
            analyst,
            admin,
            trader,
            outsider,
            unverified,
            erc20,
        }
    }

    /// Calls an admin route as Meridian's administrator.
    pub(crate) async fn as_admin(&self, method: &str, path: &str, body: Option<Value>) -> crate::harness::Response {
        self.gw
            .as_user(&self.admin.token, method, &format!("/api/v1/admin{path}"), body)
            .await
    }

    /// `eth_call` of the token contract by `caller`.
    pub(crate) async fn call(&self, caller: &Persona, input: Bytes) -> crate::harness::Response {
        let call = json!([{"from": caller.address(), "to": self.erc20, "data": input}, "latest"]);
        self.gw.rpc(&caller.token, "eth_call", call).await
    }
}

pub(crate) async fn org(gw: &Gateway, name: &str, slug: &str) -> String {
    let created = gw
        .admin("POST", "/orgs", Some(json!({"name": name, "slug": slug})))
        .await
        .expect(201);
    created["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn group(gw: &Gateway, org: &str, slug: &str, admin: bool, methods: Value, claims: Value) -> String {
    let body = json!({"name": slug, "slug": slug, "is_org_admin": admin});
    let created = gw
        .admin("POST", &format!("/orgs/{org}/groups"), Some(body))
        .await
        .expect(201);
    let id = created["id"].as_str().unwrap().to_owned();
    let access = json!({"allowed_methods": methods, "claims": claims});
    gw.admin("PUT", &format!("/orgs/{org}/groups/{id}/access"), Some(access))
        .await
        .expect(200);
    id
}

pub(crate) async fn member(gw: &Gateway, org: &str, group: &str, did: &'static str, n: usize, kyc: bool) -> Persona {
    let body = json!({"did": did, "group_id": group});
    let created = gw
        .admin("POST", &format!("/orgs/{org}/memberships/by-did"), Some(body))
        .await
        .expect(201);
    let user_id = created["user_id"].as_str().unwrap().to_owned();
    if kyc {
        gw.admin("PUT", &format!("/users/{user_id}"), Some(json!({"kyc": true})))
            .await
            .expect(200);
    }
    let token = gw.login(did).await;
    let key = key(n);
    gw.link(&token, &key).await;
    Persona {
        did,
        user_id,
        token,
        key,
    }
}

pub(crate) async fn user_id(gw: &Gateway, did: &str) -> String {
    let users = gw.admin("GET", &format!("/users?search={did}"), None).await.expect(200);
    users["data"][0]["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn grant(gw: &Gateway, org: &str, contract: Address, group: &str, functions: Value) {
    let body = json!({"group_id": group, "functions": functions});
    gw.admin("POST", &format!("/orgs/{org}/contracts/{contract}/grants"), Some(body))
        .await
        .expect(201);
}
