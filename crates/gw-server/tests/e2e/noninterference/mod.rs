//! Noninterference over the whole HTTP surface (spec/30 I5 and I10, HD30, HD40). Two worlds differ in the private data
//! of one bank. Every other caller sends requests about this data to every route and method of both worlds, and each
//! pair of responses must have the same bytes.
//!
//! `gw-rpc/tests/it/noninterference` tests `/rpc` over random worlds. This test uses the real binary, a real node and
//! all routes. [`compare`] lists what is compared and what is not.

mod calls;
mod compare;
mod routes;
mod seed;

use crate::harness::{self, Response};
use alloy_primitives::B256;
use bytes::Bytes;
use compare::Pairs;
use http_body_util::Full;
use routes::RequestTemplate;
use seed::{Planted, Role, Side, recipient, seed, wallets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Two worlds, and the differences found so far.
struct Worlds {
    left: Side,
    right: Side,
    pairs: Pairs,
    /// The number of requests so far. It is part of their correlation ids, which are the same in both worlds.
    request_count: usize,
    /// Descriptions of the requests whose responses differ.
    different: Vec<String>,
    /// Whether one of the gateways was unavailable (503) for a moment.
    had_unavailable: bool,
    /// Whether the records of all requests so far are in the store.
    is_settled: bool,
    /// Controls whose responses do not differ.
    failed_controls: Vec<String>,
}

/// Replaces each `<name>` by its value in this world.
fn render(text: &str, names: &BTreeMap<&'static str, String>) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    names.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("<{name}>"), value)
    })
}

async fn send(side: &Side, role: &Role, question: &RequestTemplate, id: &str) -> Response {
    let path = render(&question.path, &side.names);
    let mut headers = vec![("x-correlation-id", id)];
    if let Some((name, value)) = &role.header {
        headers.push((name, value));
    }
    let body = question.body.as_ref().map(|body| match body {
        Value::String(text) => text.clone(),
        body => render(&body.to_string(), &side.names),
    });
    let mut request = http::Request::builder()
        .method(question.method.as_str())
        .uri(format!("{}{path}", side.gw.url));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if body.is_some() {
        let kind = if question.form {
            "application/x-www-form-urlencoded"
        } else {
            "application/json"
        };
        request = request.header("content-type", kind);
    }
    let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).unwrap();
    harness::send(&side.gw.http, request).await
}

/// Replaces `value` by `<name>`. A short quantity is replaced only if no hex digit follows, because a block's number
/// may be a prefix of its hash.
fn replace_whole(text: &str, value: &str, name: &str) -> String {
    let is_quantity = value.starts_with("0x") && value.len() < 20;
    let mut parts = text.split(value);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if is_quantity && part.starts_with(|next: char| next.is_ascii_hexdigit()) {
            replaced.extend([value, part]);
        } else {
            replaced.extend(["<", name, ">", part]);
        }
    }
    replaced
}

/// Sends the request until the response is not 503. Under load the gateway may fail to confirm its policy in time and
/// refuses every caller. Also returns whether there was a 503.
async fn send_when_available(side: &Side, role: &Role, question: &RequestTemplate, id: &str) -> (Response, bool) {
    for n in 0..50 {
        let answer = send(side, role, question, id).await;
        if answer.status != 503 {
            return (answer, n > 0);
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    panic!("the gateway responds with 503 to {question:?} for ten seconds");
}

impl Worlds {
    #[expect(
        clippy::disallowed_methods,
        reason = "both chains start at the same time, near the time of the gateways"
    )]
    async fn start(planted: Planted) -> Self {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let (mut left, mut right) = tokio::join!(seed(planted, true, now), seed(planted, false, now));
        let mut pairs = Pairs::default();
        assert_eq!(left.blocks.len(), right.blocks.len(), "both worlds have as many blocks");
        for (left, right) in left.blocks.iter().zip(&right.blocks) {
            for (left, right) in left.iter().zip(right) {
                pairs.pair(left, right);
            }
        }
        for (name, other_name) in [("tx", "other_tx"), ("acted", "other_acted")] {
            left.names.insert(other_name, right.names[name].clone());
            right.names.insert(other_name, left.names[name].clone());
        }
        if planted == Planted::Wallet {
            // The bank sees the transaction that its member sent, but not its sender address.
            pairs.pair(&left.names["acted"], &right.names["acted"]);
        }
        for name in ["vault", "maybe", "probe", "forwarder", "payer", "block"] {
            assert_eq!(left.names[name], right.names[name], "{name} is the same in both worlds");
        }
        Self {
            left,
            right,
            pairs,
            request_count: 0,
            different: Vec::new(),
            failed_controls: Vec::new(),
            had_unavailable: false,
            is_settled: false,
        }
    }

    fn role(&self, name: &str) -> (Role, Role) {
        let find = |side: &Side| side.roles.iter().find(|role| role.name == name).unwrap().clone();
        (find(&self.left), find(&self.right))
    }

    /// Sends one request in both worlds. Returns the responses if they are the same.
    async fn compare(&mut self, roles: &(Role, Role), question: &RequestTemplate) -> Option<(Response, Response)> {
        let id = format!("noninterference-{}", self.request_count);
        self.request_count += 1;
        let records = question.path.starts_with("/api/v1/admin/logs");
        if records && !self.is_settled {
            self.settle().await;
        }
        self.is_settled = records;
        let ((left, left_late), (right, right_late)) = tokio::join!(
            send_when_available(&self.left, &roles.0, question, &id),
            send_when_available(&self.right, &roles.1, question, &id)
        );
        let text_of = |answer: &Response, side: &Side| {
            let text = compare::comparable_text(answer, &question.path, &side.gw.url);
            question
                .used_names(&side.names)
                .fold(text, |text, (name, value)| replace_whole(&text, value, name))
        };
        let (left_text, right_text) = (text_of(&left, &self.left), text_of(&right, &self.right));
        let hidden = if roles.0.insider {
            BTreeSet::new()
        } else {
            self.left.hidden.union(&self.right.hidden).cloned().collect()
        };
        for answer in [&left, &right] {
            assert!(answer.status < 500, "{question:?}: {}", answer.body);
        }
        self.had_unavailable |= left_late || right_late;
        if records && self.had_unavailable {
            // The access log has records of the refused requests in one world only.
            return None;
        }
        let same_unordered = compare::is_unordered(&question.path)
            && compare::is_same_unordered(&left_text, &right_text, &self.pairs, &hidden);
        if same_unordered || compare::is_same(&left_text, &right_text, &mut self.pairs, &hidden) {
            return Some((left, right));
        }
        let body = question.body.as_ref().map(Value::to_string).unwrap_or_default();
        let question = format!("{} {} {body}", question.method, question.path);
        self.different.push(format!(
            "{} sends {question}\nleft:  {left_text}\nright: {right_text}\n",
            roles.0.name
        ));
        None
    }

    async fn call(&mut self, roles: &(Role, Role), method: &str, params: &Value) -> Option<(Response, Response)> {
        if roles.0.rpc == roles.1.rpc {
            return self
                .compare(roles, &RequestTemplate::rpc(&roles.0.rpc, method, params))
                .await;
        }
        // A personal URL has a secret of its own in each world.
        self.left.names.insert("rpc", roles.0.rpc.clone());
        self.right.names.insert("rpc", roles.1.rpc.clone());
        let question = RequestTemplate::rpc("<rpc>", method, params);
        self.compare(roles, &question).await
    }

    /// Sends every read, and then reads the filters that these calls created.
    async fn reads(&mut self, roles: &(Role, Role)) {
        let mut filters = Vec::new();
        for (method, params) in calls::reads(&self.left) {
            let response = self.call(roles, method, &params).await;
            if let (true, Some((left, right))) = (method.starts_with("eth_new"), response)
                && left.status == 200
            {
                filters.push((left.json()["result"].clone(), right.json()["result"].clone()));
            }
        }
        for (left, right) in filters {
            let text = |id: &Value| id.as_str().unwrap_or_default().to_owned();
            self.left.names.insert("filter", text(&left));
            self.right.names.insert("filter", text(&right));
            for method in ["eth_getFilterLogs", "eth_getFilterChanges", "eth_uninstallFilter"] {
                self.call(roles, method, &json!(["<filter>"])).await;
            }
        }
        // Every method, with an organization in the path.
        if roles.0.rpc == "/rpc" {
            let calls = calls::each_once(&self.left);
            for org in ["/rpc/<meridian>", "/rpc/<volta>"] {
                let mut org_roles = roles.clone();
                for role in [&mut org_roles.0, &mut org_roles.1] {
                    org.clone_into(&mut role.rpc);
                }
                for (method, params) in &calls {
                    self.call(&org_roles, method, params).await;
                }
            }
        }
    }

    /// Sends the calls that a caller may make once a second only.
    async fn slow(&mut self, names: &[&str]) {
        for (method, params) in calls::slow(&self.left) {
            tokio::time::sleep(std::time::Duration::from_millis(1050)).await;
            for name in names {
                let roles = self.role(name);
                self.call(&roles, method, &params).await;
            }
        }
    }

    async fn routes(&mut self, roles: &(Role, Role), questions: &[RequestTemplate]) {
        for question in questions {
            self.compare(roles, question).await;
        }
    }

    /// Waits until the records of the calls so far are in the store.
    async fn settle(&mut self) {
        let marker = format!("marker-{}", self.request_count);
        for side in [&self.left, &self.right] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
            side.gw
                .request("POST", "/rpc", &[("x-correlation-id", &marker)], Some(body))
                .await
                .expect(200);
            let mut is_stored = false;
            for _ in 0..harness::MAX_POLLS {
                let logs = side
                    .gw
                    .admin("GET", &format!("/logs?correlation_id={marker}"), None)
                    .await
                    .expect(200);
                is_stored = logs.to_string().contains(&marker);
                if is_stored {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert!(is_stored, "the record of {marker} is not stored");
        }
    }

    async fn described(&self) -> Value {
        self.left
            .gw
            .request("GET", "/openapi.json", &[], None)
            .await
            .expect(200)
    }

    /// Sends transactions as the role, if it has a key, and reads the mined ones.
    async fn sends(&mut self, roles: &(Role, Role)) {
        let Some(key) = roles.0.key.clone() else { return };
        for (to, value, input) in calls::sends(&self.left) {
            let nonce = self
                .left
                .gw
                .node("eth_getTransactionCount", json!([key.address(), "latest"]))
                .await;
            let nonce = u64::from_str_radix(nonce.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let raw = seed::payment(&key, nonce, to, value, input);
            let hash = alloy_primitives::keccak256(&raw);
            let Some((left, _)) = self.call(roles, "eth_sendRawTransaction", &json!([raw])).await else {
                continue;
            };
            if left.status == 200 && left.json()["result"] == json!(hash) {
                self.pair_mined_block(hash).await;
                for (method, params) in calls::about_sent(&hash.to_string()) {
                    self.call(roles, method, &params).await;
                }
            }
        }
    }

    /// Waits until both worlds mined the transaction, and pairs the hashes of its blocks.
    async fn pair_mined_block(&mut self, hash: B256) {
        let mut hashes = Vec::new();
        for side in [&self.left, &self.right] {
            side.gw.wait_until_mined("", hash).await;
            let receipt = side.gw.node("eth_getTransactionReceipt", json!([hash])).await;
            hashes.push(seed::block_digests(&side.gw, receipt["blockNumber"].as_str().unwrap()).await);
        }
        for (left, right) in hashes[0].iter().zip(&hashes[1]) {
            self.pairs.pair(left, right);
        }
    }

    /// Sends a request whose responses must differ: it shows that the planted data exists and that the comparison finds
    /// it.
    async fn control(&mut self, name: &str, question: RequestTemplate) {
        let roles = self.role(name);
        let before = self.different.len();
        let responses = self.compare(&roles, &question).await;
        self.different.truncate(before);
        if let Some((answer, _)) = responses {
            self.failed_controls.push(format!(
                "{name} gets the same response to {question:?} in both worlds: {} {}",
                answer.status, answer.body
            ));
        }
    }

    /// Asserts that all controls found a difference and no other request did.
    fn finish(self) {
        assert!(
            self.failed_controls.is_empty(),
            "controls did not find the planted data: {:#?}",
            self.failed_controls
        );
        let (count, request_count) = (self.different.len(), self.request_count);
        let shown: String = self
            .different
            .iter()
            .take(20)
            .map(|text| text.chars().take(200_000).collect::<String>())
            .collect();
        assert_eq!(
            count, 0,
            "{count} of {request_count} responses differ between the worlds:\n{shown}"
        );
    }
}

/// Whether the role administers an organization, so that admin routes do not refuse every request.
fn administers(name: &str) -> bool {
    matches!(name, "chief" | "reader" | "boss" | "overseer")
}

fn get(path: &str) -> RequestTemplate {
    RequestTemplate::get(&format!("/api/v1{path}"))
}

fn rpc(method: &str, params: Value) -> RequestTemplate {
    RequestTemplate::rpc("/rpc", method, &params)
}

/// I5, I10, HD5, HD30, HD40: a bank's wallets, balances, contracts, slots, notes, members, marks, groups, links, URLs,
/// sessions and base fee change no byte of any other caller's responses, on any route or method.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_hd5_hd40_another_bank_changes_no_byte_of_any_answer() {
    let mut worlds = Worlds::start(Planted::Bank).await;
    // Controls: the members of the bank find the planted data.
    let vault = worlds.left.names["vault"].clone();
    let slot = format!("0x{:064x}", seed::SLOT);
    let balance = json!([{"to": vault, "data": crate::world::balance_of(recipient())}, "latest"]);
    for (roles, question) in [
        ("owner", rpc("eth_call", balance)),
        ("boss", rpc("eth_getStorageAt", json!([vault, slot, "latest"]))),
        ("owner", rpc("eth_getBalance", json!([wallets()[0], "latest"]))),
        ("owner", rpc("eth_getTransactionByHash", json!(["<tx>"]))),
        ("owner", get("/eth/addresses")),
        ("owner", get("/me/rpc-urls")),
        ("owner", get("/me/sessions")),
        ("boss", get("/admin/users/<owner>")),
        ("boss", get("/admin/users/<marked>")),
        ("boss", get("/admin/users?org_id=<meridian>")),
        ("boss", get("/admin/orgs/<meridian>/groups")),
        ("boss", get("/admin/orgs/<meridian>/contracts")),
        ("boss", get(&format!("/admin/users?search={}", seed::NOBODY))),
        ("boss", get("/admin/orgs/<meridian>/contracts?search=planted-note-left")),
        ("super", get("/admin/users/<both>/memberships")),
        ("super", get("/admin/users/<pawn>/memberships")),
        ("both", get("/me/orgs")),
        ("pawn", get("/me/invitations")),
    ] {
        worlds.control(roles, question).await;
    }
    let fee = async |side: &Side| {
        side.gw.node("eth_getBlockByNumber", json!(["latest", false])).await["baseFeePerGas"].clone()
    };
    assert_ne!(fee(&worlds.left).await, fee(&worlds.right).await);

    let description = worlds.described().await;
    let (gets, changes) = (
        routes::requests(&description, true),
        routes::requests(&description, false),
    );
    let (few_gets, few_changes) = (routes::thinned(&gets), routes::thinned(&changes));
    // The guest comes after the administrators: the reason of a guest's denial is in the access log of the bank under
    // which the call is recorded. It distinguishes a contract of the guest's other bank from an unregistered one (see
    // "What is left" in `docs/threat-model.md`).
    let names = [
        "anonymous",
        "outsider",
        "leaver",
        "colleague",
        "trader",
        "reader",
        "chief",
        "guest",
    ];
    let urls = ["url of scope wallet", "url of scope contracts", "url of scope all"];
    for name in names.into_iter().chain(urls) {
        let roles = worlds.role(name);
        worlds.reads(&roles).await;
        if !urls.contains(&name) {
            worlds.settle().await;
            worlds
                .routes(&roles, if administers(name) { &gets } else { &few_gets })
                .await;
        }
    }
    worlds.slow(&names).await;
    for name in ["guest", "trader", "chief"] {
        let roles = worlds.role(name);
        worlds.sends(&roles).await;
    }
    // Requests that change something. Callers with the right to do so come last; then a reader compares the result.
    for name in [
        "anonymous",
        "outsider",
        "leaver",
        "colleague",
        "guest",
        "trader",
        "reader",
        "chief",
    ] {
        let roles = worlds.role(name);
        worlds
            .routes(&roles, if administers(name) { &changes } else { &few_changes })
            .await;
    }
    worlds.settle().await;
    let roles = worlds.role("reader");
    let gets_without_logs: Vec<RequestTemplate> = few_gets
        .into_iter()
        .filter(|question| !question.path.contains("/admin/logs"))
        .collect();
    worlds.routes(&roles, &gets_without_logs).await;
    worlds.finish();
}

/// HD12, HD30: a member's wallet is hidden from every other caller, also from the administrators of their own bank.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd12_hd30_a_members_wallet_changes_no_byte_of_any_answer() {
    let mut worlds = Worlds::start(Planted::Wallet).await;
    worlds.control("owner", get("/eth/addresses")).await;
    worlds
        .control("owner", rpc("eth_getTransactionByHash", json!(["<acted>"])))
        .await;
    worlds
        .control("super", get("/admin/users/<owner>/linked-addresses"))
        .await;

    let description = worlds.described().await;
    let (gets, changes) = (
        routes::requests(&description, true),
        routes::requests(&description, false),
    );
    let (few_gets, few_changes) = (routes::thinned(&gets), routes::thinned(&changes));
    let names = ["trader", "colleague", "overseer", "boss"];
    for name in names {
        let roles = worlds.role(name);
        worlds.reads(&roles).await;
        worlds.settle().await;
        worlds
            .routes(&roles, if administers(name) { &gets } else { &few_gets })
            .await;
    }
    worlds.slow(&names).await;
    for name in names {
        let roles = worlds.role(name);
        worlds
            .routes(&roles, if administers(name) { &changes } else { &few_changes })
            .await;
    }
    worlds.settle().await;
    let roles = worlds.role("overseer");
    worlds.routes(&roles, &few_gets).await;
    worlds.finish();
}
