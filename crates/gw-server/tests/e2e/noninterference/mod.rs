//! Noninterference over the whole HTTP surface (spec/30 I5 and I10, HD30, HD40): two worlds differ in one bank's private
//! matters, everybody else asks every route and every method about exactly those, and every answer is the same bytes.
//!
//! `/rpc` over random worlds is tested in `gw-rpc/tests/it/hidden`; here are the real binary, a real node, and the whole
//! surface. What is compared, and what is not, stands in [`compare`].

mod calls;
mod compare;
mod routes;
mod seed;

use crate::harness::{self, Answer};
use alloy_primitives::B256;
use bytes::Bytes;
use compare::Pairs;
use http_body_util::Full;
use routes::RequestTemplate;
use seed::{Planted, Role, Side, recipient, seed, wallets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Two worlds, and what was found about them so far.
struct Worlds {
    left: Side,
    right: Side,
    pairs: Pairs,
    /// Numbers the questions: their correlation ids are the same in both worlds.
    asked: usize,
    different: Vec<String>,
    /// One of the gateways was not ready for a moment.
    late: bool,
    /// Controls that found nothing.
    unseen: Vec<String>,
}

/// The text with the names replaced by what they stand for in this world.
fn rendered(text: &str, names: &BTreeMap<&'static str, String>) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    names.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("<{name}>"), value)
    })
}

async fn ask(side: &Side, role: &Role, question: &RequestTemplate, id: &str) -> Answer {
    let path = rendered(&question.path, &side.names);
    let mut headers = vec![("x-correlation-id", id)];
    if let Some((name, value)) = &role.header {
        headers.push((name, value));
    }
    let body = question.body.as_ref().map(|body| match body {
        Value::String(text) => text.clone(),
        body => rendered(&body.to_string(), &side.names),
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

/// `<name>` in place of a value. A quantity is replaced as a whole only: a block's number may begin its hash.
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

/// Asks until the gateway knows its policy: under load it may miss the moment to confirm it, and says so to everybody.
async fn ask_when_ready(side: &Side, role: &Role, question: &RequestTemplate, id: &str) -> (Answer, bool) {
    for n in 0..50 {
        let answer = ask(side, role, question, id).await;
        if answer.status != 503 {
            return (answer, n > 0);
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    panic!("the gateway does not get ready for {question:?}");
}

impl Worlds {
    #[expect(
        clippy::disallowed_methods,
        reason = "both chains begin at one moment, near the gateways' own clock"
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
        for (name, other) in [("tx", "other_tx"), ("acted", "other_acted")] {
            left.names.insert(other, right.names[name].clone());
            right.names.insert(other, left.names[name].clone());
        }
        if planted == Planted::Wallet {
            // The bank sees what its member sent, only not from where.
            pairs.pair(&left.names["acted"], &right.names["acted"]);
        }
        for name in ["vault", "maybe", "probe", "forwarder", "payer", "block"] {
            assert_eq!(left.names[name], right.names[name], "{name} is the same in both worlds");
        }
        Self {
            left,
            right,
            pairs,
            asked: 0,
            different: Vec::new(),
            unseen: Vec::new(),
            late: false,
        }
    }

    fn role(&self, name: &str) -> (Role, Role) {
        let find = |side: &Side| side.roles.iter().find(|role| role.name == name).unwrap().clone();
        (find(&self.left), find(&self.right))
    }

    /// Asks one question in both worlds; whether the answers are the same.
    async fn ask(&mut self, who: &(Role, Role), question: &RequestTemplate) -> Option<(Answer, Answer)> {
        let id = format!("noninterference-{}", self.asked);
        self.asked += 1;
        let records = question.path.starts_with("/api/v1/admin/logs");
        let ((left, left_late), (right, right_late)) = tokio::join!(
            ask_when_ready(&self.left, &who.0, question, &id),
            ask_when_ready(&self.right, &who.1, question, &id)
        );
        let text_of = |answer: &Answer, side: &Side| {
            let text = compare::comparable_text(answer, &question.path, &side.gw.url);
            question
                .named(&side.names)
                .fold(text, |text, (name, value)| replace_whole(&text, value, name))
        };
        let (one, other) = (text_of(&left, &self.left), text_of(&right, &self.right));
        let hidden = if who.0.insider {
            BTreeSet::new()
        } else {
            self.left.hidden.union(&self.right.hidden).cloned().collect()
        };
        for answer in [&left, &right] {
            assert!(answer.status < 500, "{question:?}: {}", answer.body);
        }
        self.late |= left_late || right_late;
        if records && self.late {
            // What was refused stands in the records, of one world only.
            return None;
        }
        let as_sets = compare::is_unordered(&question.path) && compare::same_sets(&one, &other, &self.pairs, &hidden);
        if as_sets || compare::same(&one, &other, &mut self.pairs, &hidden) {
            return Some((left, right));
        }
        let body = question.body.as_ref().map(Value::to_string).unwrap_or_default();
        let question = format!("{} {} {body}", question.method, question.path);
        self.different.push(format!(
            "{} asks {question}\nleft:  {one}\nright: {other}\n",
            who.0.name
        ));
        None
    }

    async fn call(&mut self, who: &(Role, Role), method: &str, params: &Value) -> Option<(Answer, Answer)> {
        if who.0.rpc == who.1.rpc {
            return self.ask(who, &RequestTemplate::rpc(&who.0.rpc, method, params)).await;
        }
        // A personal URL has a secret of its own in each world.
        self.left.names.insert("rpc", who.0.rpc.clone());
        self.right.names.insert("rpc", who.1.rpc.clone());
        let question = RequestTemplate::rpc("<rpc>", method, params);
        self.ask(who, &question).await
    }

    /// Every read, and the filters that were made on the way.
    async fn reads(&mut self, who: &(Role, Role)) {
        let mut filters = Vec::new();
        for (method, params) in calls::reads(&self.left) {
            let said = self.call(who, method, &params).await;
            if let (true, Some((left, right))) = (method.starts_with("eth_new"), said)
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
                self.call(who, method, &json!(["<filter>"])).await;
            }
        }
        // By the name of an organization.
        if who.0.rpc == "/rpc" {
            let calls = calls::each_once(&self.left);
            for org in ["/rpc/<meridian>", "/rpc/<volta>"] {
                let mut named = who.clone();
                for role in [&mut named.0, &mut named.1] {
                    org.clone_into(&mut role.rpc);
                }
                for (method, params) in &calls {
                    self.call(&named, method, params).await;
                }
            }
        }
    }

    /// What one caller may ask once a second only.
    async fn slow(&mut self, names: &[&str]) {
        for (method, params) in calls::slow(&self.left) {
            tokio::time::sleep(std::time::Duration::from_millis(1050)).await;
            for name in names {
                let who = self.role(name);
                self.call(&who, method, &params).await;
            }
        }
    }

    async fn routes(&mut self, who: &(Role, Role), questions: &[RequestTemplate]) {
        for question in questions {
            self.ask(who, question).await;
        }
    }

    /// The calls so far are in the store.
    async fn settle(&mut self) {
        let marker = format!("marker-{}", self.asked);
        for side in [&self.left, &self.right] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
            side.gw
                .request("POST", "/rpc", &[("x-correlation-id", &marker)], Some(body))
                .await
                .expect(200);
            for _ in 0..200 {
                let found = side
                    .gw
                    .admin("GET", &format!("/logs?correlation_id={marker}"), None)
                    .await
                    .expect(200);
                if found.to_string().contains(&marker) {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }

    async fn described(&self) -> Value {
        self.left
            .gw
            .request("GET", "/openapi.json", &[], None)
            .await
            .expect(200)
    }

    /// Sends what the role can send, and looks at what became of it.
    async fn sends(&mut self, who: &(Role, Role)) {
        let Some(key) = who.0.key.clone() else { return };
        for (to, value, input) in calls::sends(&self.left) {
            let nonce = self
                .left
                .gw
                .node("eth_getTransactionCount", json!([key.address(), "latest"]))
                .await;
            let nonce = u64::from_str_radix(nonce.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let raw = seed::payment(&key, nonce, to, value, input);
            let hash = alloy_primitives::keccak256(&raw);
            let Some((left, _)) = self.call(who, "eth_sendRawTransaction", &json!([raw])).await else {
                continue;
            };
            if left.status == 200 && left.json()["result"] == json!(hash) {
                self.mined(hash).await;
                for (method, params) in calls::of_sent(&hash.to_string()) {
                    self.call(who, method, &params).await;
                }
            }
        }
    }

    async fn mined(&mut self, hash: B256) {
        let mut hashes = Vec::new();
        for side in [&self.left, &self.right] {
            side.gw.mined("", hash).await;
            let receipt = side.gw.node("eth_getTransactionReceipt", json!([hash])).await;
            hashes.push(seed::drawn(&side.gw, receipt["blockNumber"].as_str().unwrap()).await);
        }
        for (left, right) in hashes[0].iter().zip(&hashes[1]) {
            self.pairs.pair(left, right);
        }
    }

    /// A question whose answers must differ: what is planted is there, and this finds it.
    async fn control(&mut self, name: &str, question: RequestTemplate) {
        let who = self.role(name);
        let before = self.different.len();
        let same = self.ask(&who, &question).await;
        self.different.truncate(before);
        if let Some((answer, _)) = same {
            self.unseen.push(format!(
                "{name} sees no difference by {question:?}: {} {}",
                answer.status, answer.body
            ));
        }
    }

    fn done(self) {
        assert!(self.unseen.is_empty(), "what is planted is not met: {:#?}", self.unseen);
        let (count, asked) = (self.different.len(), self.asked);
        let shown: String = self
            .different
            .iter()
            .take(20)
            .map(|text| text.chars().take(3000).collect::<String>())
            .collect();
        assert_eq!(count, 0, "{count} of {asked} answers tell the worlds apart:\n{shown}");
    }
}

/// Whom the routes of administration answer with more than a refusal.
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
/// sessions and base fee change no byte of anybody else's answer, by any route or method.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_hd5_hd40_another_bank_changes_no_byte_of_any_answer() {
    let mut worlds = Worlds::start(Planted::Bank).await;
    // What is planted is there to be found.
    let vault = worlds.left.names["vault"].clone();
    let slot = format!("0x{:064x}", seed::SLOT);
    let balance = json!([{"to": vault, "data": crate::world::balance_of(recipient())}, "latest"]);
    for (who, question) in [
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
        worlds.control(who, question).await;
    }
    let fee = async |side: &Side| {
        side.gw.node("eth_getBlockByNumber", json!(["latest", false])).await["baseFeePerGas"].clone()
    };
    assert_ne!(fee(&worlds.left).await, fee(&worlds.right).await);

    let described = worlds.described().await;
    let (gets, changes) = (routes::all(&described, true), routes::all(&described, false));
    let (few_gets, few_changes) = (routes::thinned(&gets), routes::thinned(&changes));
    // The guest asks after the administrators: the reason of a guest's denial, which stands in the records of the bank the
    // call is filed under, tells a contract of the guest's other bank from nobody's (see "What is left" in
    // `docs/threat-model.md`).
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
        let who = worlds.role(name);
        worlds.reads(&who).await;
        if !urls.contains(&name) {
            worlds.settle().await;
            worlds
                .routes(&who, if administers(name) { &gets } else { &few_gets })
                .await;
        }
    }
    worlds.slow(&names).await;
    for name in ["guest", "trader", "chief"] {
        let who = worlds.role(name);
        worlds.sends(&who).await;
    }
    // What changes something; last whoever may, and what they see of it.
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
        let who = worlds.role(name);
        worlds
            .routes(&who, if administers(name) { &changes } else { &few_changes })
            .await;
    }
    worlds.settle().await;
    let who = worlds.role("reader");
    let seen: Vec<RequestTemplate> = few_gets
        .into_iter()
        .filter(|question| !question.path.contains("/admin/logs"))
        .collect();
    worlds.routes(&who, &seen).await;
    worlds.done();
}

/// HD12, HD30: which wallet a member has is nobody's but theirs, not their own bank's administrators' either.
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

    let described = worlds.described().await;
    let (gets, changes) = (routes::all(&described, true), routes::all(&described, false));
    let (few_gets, few_changes) = (routes::thinned(&gets), routes::thinned(&changes));
    let names = ["trader", "colleague", "overseer", "boss"];
    for name in names {
        let who = worlds.role(name);
        worlds.reads(&who).await;
        worlds.settle().await;
        worlds
            .routes(&who, if administers(name) { &gets } else { &few_gets })
            .await;
    }
    worlds.slow(&names).await;
    for name in names {
        let who = worlds.role(name);
        worlds
            .routes(&who, if administers(name) { &changes } else { &few_changes })
            .await;
    }
    worlds.settle().await;
    let who = worlds.role("overseer");
    worlds.routes(&who, &few_gets).await;
    worlds.done();
}
