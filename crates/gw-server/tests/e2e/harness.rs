//! One running gateway per test: the real binary, a real anvil, and SQLite or a private PostgreSQL. Tests call the
//! gateway over HTTP, as a client does.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use gw_testkit::port;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The most polls, about 100 ms apart, of a condition that must become true. Only a failing test makes them all.
pub(crate) const MAX_POLLS: usize = 1_200;

pub(crate) const ADMIN_TOKEN: &str = "e2e-admin-token-0123456789abcdef0123456789";

/// anvil's well-known development keys, in order.
pub(crate) const KEYS: [&str; 7] = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// Runs each named scenario as one test on SQLite and one test on PostgreSQL.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::harness::Engine::Sqlite).await })* }
        mod postgres { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::harness::Engine::Postgres).await })* }
    };
}
pub(crate) use on_both_engines;

/// A child process. It is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends SIGTERM and waits for the exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let _ = Command::new("kill").arg("-TERM").arg(self.0.id().to_string()).status();
        self.0.wait().ok().and_then(|status| status.code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) type Http = Client<hyper_util::client::legacy::connect::HttpConnector, Full<bytes::Bytes>>;

pub(crate) fn client() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

/// An HTTP response: status, headers and the unparsed body.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Response {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {} {:?}", self.status, self.body))
    }

    /// Returns the JSON body. Panics unless the response has this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        // RFC 9110 section 15.3.2: a 201 names the new object in `Location`. A legal hold has no route of its own.
        let location = self.headers.get("location").and_then(|value| value.to_str().ok());
        let is_located =
            location.is_some_and(|path| path.starts_with("/api/v1/")) || self.body.contains("\"placed_by\"");
        assert!(status != 201 || is_located, "{location:?} {}", self.body);
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

pub(crate) async fn send(http: &Http, request: http::Request<Full<bytes::Bytes>>) -> Response {
    let uri = request.uri().clone();
    let answer = tokio::time::timeout(Duration::from_secs(60), http.request(request))
        .await
        .unwrap_or_else(|_| panic!("{uri} did not respond within a minute"))
        .unwrap_or_else(|e| panic!("{uri}: {e:?}"));
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let headers = parts.headers;
    Response {
        status: parts.status.as_u16(),
        headers,
        body: String::from_utf8(body.to_vec()).expect("the response body is UTF-8"),
    }
}

/// A gateway under test with its node.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) url: String,
    pub(crate) node_url: String,
    pub(crate) http: Http,
    pub(crate) process: Process,
    settings: Vec<(String, String)>,
    data: tempfile::TempDir,
    _node: Option<Box<dyn core::fmt::Debug + Send + Sync>>,
}

impl Gateway {
    pub(crate) async fn start_with(engine: Engine, extra: &[(&str, &str)]) -> Self {
        let node = gw_testkit::anvil::anvil();
        let url = node.url().to_owned();
        Self::start_with_node(engine, extra, node, &url, &url).await
    }

    /// Starts a gateway in front of `node` and waits until it is ready. The node stops with the gateway. The test calls
    /// the node at `node_url`; `urls` is the gateway's NODE_URL setting.
    pub(crate) async fn start_with_node(
        engine: Engine,
        extra: &[(&str, &str)],
        node: impl core::fmt::Debug + Send + Sync + 'static,
        node_url: &str,
        urls: &str,
    ) -> Self {
        let gateway = Self::launch_with_node(engine, extra, node, node_url, urls);
        gateway.wait_ready().await;
        gateway
    }

    /// Like [`Self::start_with_node`], without waiting until the gateway is ready.
    pub(crate) fn launch_with_node(
        engine: Engine,
        extra: &[(&str, &str)],
        node: impl core::fmt::Debug + Send + Sync + 'static,
        node_url: &str,
        urls: &str,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let port = port::reserve();
        let url = format!("http://127.0.0.1:{port}");
        let mut settings: Vec<(String, String)> = [
            ("ENVIRONMENT", "development"),
            ("ADMIN_API_TOKEN", ADMIN_TOKEN),
            ("ALLOW_MOCK_LOGIN", "true"),
            ("LOG_LEVEL", "warn"),
            ("SHUTDOWN_DELAY", "0s"),
            ("PERSONAL_RPC_URLS", "true"),
        ]
        .into_iter()
        .chain(extra.iter().copied())
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
        settings.push(("PORT".into(), port.to_string()));
        settings.push(("BASE_URL".into(), url.clone()));
        settings.push(("NODE_URL".into(), urls.to_owned()));
        // A test may set its own data directory or databases in `extra`.
        let is_overridden = |name| extra.iter().any(|(extra_name, _)| *extra_name == name);
        if !is_overridden("DATA_DIR") {
            settings.push(("DATA_DIR".into(), data.path().display().to_string()));
        }
        if engine == Engine::Postgres {
            for name in ["DATABASE_URL", "AUDIT_DATABASE_URL"]
                .into_iter()
                .filter(|name| !is_overridden(name))
            {
                settings.push((name.into(), database_url()));
            }
        }
        let process = spawn(&settings);
        let http = client();
        let (node_url, node) = (node_url.to_owned(), Some(Box::new(node) as Box<_>));
        Self {
            url,
            node_url,
            http,
            process,
            settings,
            data,
            _node: node,
        }
    }

    /// Starts a second instance with the same settings, its own port and its own data directory.
    pub(crate) async fn start_second_instance(&self) -> Self {
        let data = tempfile::tempdir().unwrap();
        let port = port::reserve();
        let mut settings = self.settings.clone();
        settings.push(("PORT".into(), port.to_string()));
        settings.push(("DATA_DIR".into(), data.path().display().to_string()));
        let process = spawn(&settings);
        let url = format!("http://127.0.0.1:{port}");
        let (node_url, http) = (self.node_url.clone(), self.http.clone());
        let gateway = Self {
            url,
            node_url,
            http,
            process,
            settings,
            data,
            _node: None,
        };
        gateway.wait_ready().await;
        gateway
    }

    /// A gateway that already runs as part of `process`.
    pub(crate) fn from_process(url: String, node_url: String, process: Process) -> Self {
        let (settings, data) = (Vec::new(), tempfile::tempdir().unwrap());
        Self {
            url,
            node_url,
            http: client(),
            process,
            settings,
            data,
            _node: None,
        }
    }

    pub(crate) fn data_dir(&self) -> &std::path::Path {
        self.data.path()
    }

    /// Runs an SQL statement in the gateway's SQLite database directly. Returns the number of changed rows.
    pub(crate) fn execute_sql(&self, statement: &str) -> i64 {
        let script = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); \
                      print(db.execute(sys.argv[2]).rowcount); db.commit()";
        let mut command = Command::new("python3");
        command
            .args(["-c", script])
            .arg(self.data_dir().join("gateway.db"))
            .arg(statement);
        let output = command.output().unwrap();
        let response = String::from_utf8_lossy(&output.stdout);
        response
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Runs another command of the binary with the same settings. Returns its exit code and output.
    pub(crate) fn run_command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.run_command_with(&[], arguments)
    }

    /// Like [`Self::run_command`], with additional settings that override the existing ones.
    pub(crate) fn run_command_with(&self, settings: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
        let overrides = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings: Vec<_> = self.settings.iter().cloned().chain(overrides).collect();
        let output = binary(&settings).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Kills the process and starts the binary again on the same data.
    pub(crate) async fn restart(&mut self) {
        self.process.kill();
        self.process = spawn(&self.settings);
        self.wait_ready().await;
    }

    /// Like [`Self::restart`], with settings that stay in force for later restarts.
    pub(crate) async fn restart_with(&mut self, settings: &[(&str, &str)]) {
        self.settings.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        self.restart().await;
    }

    async fn wait_ready(&self) {
        for _ in 0..MAX_POLLS {
            let request = http::Request::get(format!("{}/ready", self.url))
                .body(Full::default())
                .unwrap();
            if let Ok(answer) = self.http.request(request).await
                && answer.status() == 200
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the gateway never was ready");
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Response {
        let body = body.map(|b| b.to_string());
        self.raw(method, path, headers, body.as_deref()).await
    }

    pub(crate) async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Response {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = Full::new(bytes::Bytes::from(body.unwrap_or_default().to_owned()));
        send(&self.http, request.body(body).unwrap()).await
    }

    /// Calls an admin route with the platform admin token.
    #[track_caller]
    pub(crate) fn admin(&self, method: &str, path: &str, body: Option<Value>) -> impl Future<Output = Response> {
        let path = format!("/api/v1/admin{path}");
        let method = method.to_owned();
        async move {
            self.request(&method, &path, &[("x-admin-token", ADMIN_TOKEN)], body)
                .await
        }
    }

    pub(crate) async fn as_user(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Response {
        self.request(method, path, &[("authorization", &format!("Bearer {token}"))], body)
            .await
    }

    /// Sends one JSON-RPC call. An empty `token` means anonymous.
    pub(crate) async fn rpc(&self, token: &str, method: &str, params: Value) -> Response {
        self.rpc_body(
            token,
            &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
        .await
    }

    pub(crate) async fn rpc_body(&self, token: &str, body: &Value) -> Response {
        self.rpc_text(token, &body.to_string()).await
    }

    pub(crate) async fn rpc_text(&self, token: &str, body: &str) -> Response {
        let bearer = format!("Bearer {token}");
        let headers: &[(&str, &str)] = if token.is_empty() {
            &[]
        } else {
            &[("authorization", &bearer)]
        };
        self.raw("POST", "/rpc", headers, Some(body)).await
    }

    /// Sends one JSON-RPC call that must succeed and returns its `result`.
    pub(crate) async fn result(&self, token: &str, method: &str, params: Value) -> Value {
        let answer = self.rpc(token, method, params.clone()).await;
        assert_eq!(answer.status, 200, "{method} {params}: {}", answer.body);
        let body = answer.json();
        assert!(body.get("error").is_none(), "{method} {params}: {body}");
        body["result"].clone()
    }

    /// Calls the node directly, without the gateway.
    pub(crate) async fn node(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = http::Request::post(&self.node_url)
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        let answer = send(&self.http, request).await.json();
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a transaction from one of the node's own accounts directly to the node and waits until it is mined.
    /// Returns its hash and the address of the contract it created.
    pub(crate) async fn send_to_node(
        &self,
        key: &PrivateKeySigner,
        to: Option<Address>,
        input: &[u8],
    ) -> (String, Option<Address>) {
        let mut call = json!({"from": key.address(), "gas": "0x200000", "data": hex::encode_prefixed(input)});
        if let Some(to) = to {
            call["to"] = json!(to);
        }
        let hash = self.node("eth_sendTransaction", json!([call])).await;
        loop {
            let receipt = self.node("eth_getTransactionReceipt", json!([hash])).await;
            if !receipt.is_null() {
                assert_eq!(receipt["status"], "0x1");
                let created = receipt["contractAddress"].as_str().map(|text| text.parse().unwrap());
                return (hash.as_str().unwrap().to_owned(), created);
            }
        }
    }

    /// Logs in with a mock proof and returns the access token.
    pub(crate) async fn login(&self, did: &str) -> String {
        self.login_pair(did).await["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn login_pair(&self, did: &str) -> Value {
        let opened = self
            .request("POST", "/auth/request", &[], Some(json!({})))
            .await
            .expect(200);
        let proof = json!({"jwz_token": format!("mock.{did}"), "session_id": opened["session_id"]});
        self.request("POST", "/auth/verify", &[], Some(proof)).await.expect(200)
    }

    /// Links the key's address to the token's user with a signed challenge.
    pub(crate) async fn link(&self, token: &str, key: &PrivateKeySigner) {
        let challenge = self
            .as_user(token, "POST", "/eth/link/challenge", None)
            .await
            .expect(200);
        let signature = key
            .sign_message_sync(challenge["message"].as_str().unwrap().as_bytes())
            .unwrap();
        let proof = json!({
            "address": key.address(),
            "nonce": challenge["nonce"],
            "signature": hex::encode_prefixed(signature.as_bytes()),
        });
        self.as_user(token, "POST", "/eth/link/verify", Some(proof))
            .await
            .expect(200);
    }

    /// Signs a transaction with the key's next nonce. Fees and gas limit are fixed.
    pub(crate) async fn sign(
        &self,
        key: &PrivateKeySigner,
        to: Option<Address>,
        value: U256,
        input: Bytes,
    ) -> (B256, Bytes) {
        let nonce = self
            .node("eth_getTransactionCount", json!([key.address(), "pending"]))
            .await;
        let nonce = u64::from_str_radix(nonce.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        sign_with_nonce(key, nonce, to, value, input)
    }

    /// Signs a transaction, sends it through the gateway and waits until it is mined. The gateway must accept it.
    pub(crate) async fn send(
        &self,
        token: &str,
        key: &PrivateKeySigner,
        to: Option<Address>,
        value: U256,
        input: Bytes,
    ) -> B256 {
        let (hash, raw) = self.sign(key, to, value, input).await;
        let response = self.result(token, "eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(response, json!(hash));
        self.wait_until_mined(token, hash).await;
        hash
    }

    /// Waits until the transaction is mined and the gateway's `latest` block contains it. The node accepts a
    /// transaction before it mines it, and the gateway follows the node's head with a further delay.
    pub(crate) async fn wait_until_mined(&self, token: &str, hash: B256) {
        let number = |block: &Value| {
            block
                .as_str()
                .and_then(|hex| u64::from_str_radix(hex.get(2..)?, 16).ok())
        };
        for _ in 0..5 * MAX_POLLS {
            let receipt = self.node("eth_getTransactionReceipt", json!([hash])).await;
            if let Some(mined) = number(&receipt["blockNumber"])
                && number(&self.result(token, "eth_blockNumber", json!([])).await) >= Some(mined)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{hash} was not mined, or the gateway did not follow to its block");
    }

    /// Deploys init code through the gateway, waits until the contract is registered and returns its address.
    pub(crate) async fn deploy(&self, token: &str, key: &PrivateKeySigner, init: Bytes) -> Address {
        let hash = self.send(token, key, None, U256::ZERO, init).await;
        let receipt = self.node("eth_getTransactionReceipt", json!([hash])).await;
        let address: Address = receipt["contractAddress"].as_str().unwrap().parse().unwrap();
        for _ in 0..2 * MAX_POLLS {
            let lookup = self
                .admin("GET", &format!("/contracts/by-address/{address}"), None)
                .await;
            if lookup.status == 200 {
                return address;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{address} never was registered");
    }
}

/// The URL of a new, empty database of the private PostgreSQL.
pub(crate) fn database_url() -> String {
    gw_testkit::postgres::database()
        .expect("PostgreSQL")
        .expect("the end-to-end tests need PostgreSQL")
        .url
}

fn binary(settings: &[(String, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ledger-gateway-dev"));
    command.env_clear().envs(settings.iter().map(|(k, v)| (k, v)));
    command
}

/// A pseudo setting, which is not passed to the process: the file that receives its standard output and error.
pub(crate) const PROCESS_OUTPUT: &str = "process output file";

fn spawn(settings: &[(String, String)]) -> Process {
    let (output_file, settings): (Vec<_>, Vec<_>) =
        settings.iter().cloned().partition(|(name, _)| name == PROCESS_OUTPUT);
    let mut command = binary(&settings);
    if let Some((_, path)) = output_file.first() {
        let output = std::fs::File::create(path).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
    }
    Process(
        command
            .arg("serve")
            .stdin(Stdio::null())
            .spawn()
            .expect("the gateway starts"),
    )
}

pub(crate) fn key(n: usize) -> PrivateKeySigner {
    KEYS[n].parse().unwrap()
}

pub(crate) fn sign_with_nonce(
    key: &PrivateKeySigner,
    nonce: u64,
    to: Option<Address>,
    value: U256,
    input: Bytes,
) -> (B256, Bytes) {
    sign_tx(
        key,
        TxEip1559 {
            chain_id: 31337,
            nonce,
            gas_limit: 3_000_000,
            max_fee_per_gas: 20_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to: to.map_or(TxKind::Create, TxKind::Call),
            value,
            access_list: Default::default(),
            input,
        },
    )
}

pub(crate) fn sign_tx(key: &PrivateKeySigner, tx: TxEip1559) -> (B256, Bytes) {
    let signature = key.sign_hash_sync(&tx.signature_hash()).unwrap();
    let envelope = TxEnvelope::Eip1559(tx.into_signed(signature));
    let mut raw = Vec::new();
    alloy_eips::eip2718::Encodable2718::encode_2718(&envelope, &mut raw);
    (alloy_primitives::keccak256(&raw), raw.into())
}

/// A compiled contract of `contracts/artifacts/`.
pub(crate) fn artifact(name: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/artifacts/");
    serde_json::from_str(&std::fs::read_to_string(format!("{path}{name}.json")).unwrap()).unwrap()
}

pub(crate) fn init_code(name: &str, arguments: &[u8]) -> Bytes {
    let artifact = artifact(name);
    let mut code = hex::decode(artifact["bytecode"].as_str().unwrap()).unwrap();
    code.extend_from_slice(arguments);
    code.into()
}
