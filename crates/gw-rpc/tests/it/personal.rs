//! Personal RPC URLs: how far they reach, when they end, what is kept of them (HD17, decision 51).

use crate::{
    live::erc20,
    world::{Answer, DENIED, Person, World, account, artifact, real, scripted_with, signed},
};
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use gw_audit::AuthMethod;
use gw_policy::{Knobs, snapshot::UrlReach};
use gw_rpc::RpcSettings;
use gw_store::record::{AccessInput, NewMembership, NewPersonalUrl, PersonalUrl, UserPatch};
use gw_testkit::{FakeNode, fake_node::Reply};
use gw_types::{Address, B256, Bytes, Claim, OrgId, Seconds, U256};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

sol! {
    function forward(address target, bytes data) external payable returns (bytes);
    function delegate(address target, bytes data) external payable returns (bytes);
    function totalSupply() external view returns (uint256);
}

const SECRET: &str = "a-secret-that-must-stand-nowhere-but-in-the-path";
const TOKEN: Address = Address::repeat_byte(0x11);
const OTHER: Address = Address::repeat_byte(0x22);
/// What a path that is not there answers.
const NOTHING: &str = r#"{"code":"not_found","error":"not found"}"#;

impl World {
    async fn set_claims(&self, person: &Person, claims: &[Claim]) {
        let access = AccessInput {
            allowed_methods: vec!["*".to_owned()],
            claims: claims.iter().copied().collect(),
            ..AccessInput::default()
        };
        self.change(async |tx| {
            tx.set_access(person.group, access).await.unwrap();
        })
        .await;
    }

    /// Somebody with every right on two contracts, and a personal URL.
    async fn owner(&self, reach: UrlReach) -> (Person, OrgId, PersonalUrl) {
        let bank = self.org("bank").await;
        let owner = self.person("owner", bank, &["*"], &[]).await;
        for contract in [TOKEN, OTHER] {
            self.contract(bank, contract, Some(&erc20()), &[owner.group]).await;
        }
        self.set_claims(&owner, &[Claim::Deploy]).await;
        let url = self.personal_url(&owner, bank, reach, SECRET).await;
        (owner, bank, url)
    }

    pub(crate) async fn personal_url(&self, owner: &Person, org: OrgId, reach: UrlReach, secret: &str) -> PersonalUrl {
        let new = NewPersonalUrl {
            secret: B256::from_slice(&Sha256::digest(secret.as_bytes())),
            user: owner.id,
            org,
            name: String::new(),
            reach,
            expires_at: self.clock.now_plus(Seconds(8 * 3600)),
            login: None,
        };
        self.change(async |tx| tx.create_personal_url(new).await.unwrap()).await
    }

    async fn by_url(&self, secret: &str, body: impl ToString) -> Answer {
        self.raw(body.to_string())
            .path(&format!("/rpc/u/{secret}"))
            .send()
            .await
    }

    async fn call_by_url(&self, method: &str, params: Value) -> Answer {
        self.by_url(
            SECRET,
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
        .await
    }
}

async fn serving() -> (World, FakeNode) {
    scripted_with(
        RpcSettings {
            personal_urls: true,
            ..RpcSettings::default()
        },
        Knobs::default(),
        64 << 20,
    )
    .await
}

/// What a group's `*` gives, and what of it each scope leaves (PU-1).
#[tokio::test]
async fn pu1_a_scope_gives_what_it_names_and_no_more() {
    let call = |to: Address| json!([{"to": to, "input": "0x70a08231"}, "latest"]);
    let logs = |addresses: Value| json!([{"address": addresses}]);
    let estimate = |to: Value, input: &str| json!([{"to": to, "input": input}]);
    let rows: [(&str, Value, [bool; 3]); 28] = [
        ("eth_chainId", json!([]), [true, true, true]),
        ("eth_maxPriorityFeePerGas", json!([]), [true, true, true]),
        ("eth_feeHistory", json!(["0x1", "latest", []]), [true, true, true]),
        ("eth_accounts", json!([]), [false, false, true]),
        ("eth_coinbase", json!([]), [false, false, true]),
        ("eth_getBalance", json!([TOKEN, "latest"]), [true, true, true]),
        ("eth_getTransactionCount", json!([TOKEN, "latest"]), [true, true, true]),
        // RTO11: wallets ask it of every receiver; there is no code here.
        ("eth_getCode", json!([TOKEN, "latest"]), [true, true, true]),
        (
            "eth_getCode",
            json!([Address::repeat_byte(0x33), "latest"]),
            [true, true, true],
        ),
        // RT6a: payments and picked contracts; no creation.
        (
            "eth_estimateGas",
            estimate(json!(TOKEN), "0x70a08231"),
            [false, true, true],
        ),
        (
            "eth_estimateGas",
            estimate(json!(OTHER), "0x70a08231"),
            [false, false, true],
        ),
        ("eth_estimateGas", estimate(json!(OTHER), "0x"), [false, false, true]),
        (
            "eth_estimateGas",
            estimate(json!(Address::repeat_byte(0x33)), "0x"),
            [true, true, true],
        ),
        ("eth_estimateGas", estimate(Value::Null, "0x6001"), [false, false, true]),
        (
            "eth_createAccessList",
            estimate(Value::Null, "0x6001"),
            [false, false, true],
        ),
        (
            "eth_createAccessList",
            estimate(json!(TOKEN), "0x70a08231"),
            [false, false, true],
        ),
        ("eth_getTransactionReceipt", json!([B256::ZERO]), [true, true, true]),
        ("eth_getBlockByNumber", json!(["latest", false]), [true, true, true]),
        ("eth_getBlockReceipts", json!(["latest"]), [false, false, true]),
        ("eth_call", call(TOKEN), [false, true, true]),
        ("eth_call", call(OTHER), [false, false, true]),
        ("eth_call", json!([{"input": "0x6001"}, "latest"]), [false, false, true]),
        ("eth_getLogs", logs(json!(TOKEN)), [false, true, true]),
        ("eth_getLogs", logs(json!([TOKEN, OTHER])), [false, false, true]),
        ("eth_newFilter", logs(json!(TOKEN)), [false, false, true]),
        ("eth_newBlockFilter", json!([]), [false, false, true]),
        (
            "debug_traceCall",
            json!([{"to": TOKEN}, "latest", {"tracer": "callTracer"}]),
            [false, false, false],
        ),
        (
            "debug_traceTransaction",
            json!([B256::ZERO, {"tracer": "callTracer"}]),
            [false, false, false],
        ),
    ];
    for (place, reach) in [UrlReach::Wallet, UrlReach::Contracts([TOKEN].into()), UrlReach::All]
        .into_iter()
        .enumerate()
    {
        let (world, fake) = serving().await;
        fake.on("eth_maxPriorityFeePerGas", json!("0x1"));
        fake.on(
            "eth_feeHistory",
            json!({"oldestBlock": "0x64", "gasUsedRatio": [0.5], "baseFeePerGas": ["0x1", "0x1"]}),
        );
        world.owner(reach).await;
        for (method, params, allowed) in &rows {
            let answer = world.call_by_url(method, params.clone()).await;
            assert_eq!(
                answer.text != DENIED,
                allowed[place],
                "{method} {params} in scope {place}: {}",
                answer.text
            );
        }
    }
}

/// PU-1: balances and nonces are the owner's own, and so are transactions, whatever else the owner may see with a token.
#[tokio::test]
async fn pu1_a_wallets_url_shows_own_things_only() {
    let (world, fake) = serving().await;
    let (owner, ..) = world.owner(UrlReach::Wallet).await;
    let own = Address::repeat_byte(0xaa);
    world.link(&owner, own).await;
    fake.on("eth_getBalance", json!("0x7"));
    // The token shows a granted contract's balance; the URL does not.
    assert_eq!(
        world.result(&owner, "eth_getBalance", json!([TOKEN, "latest"])).await,
        "0x7"
    );
    assert_eq!(
        world.call_by_url("eth_getBalance", json!([TOKEN, "latest"])).await.body["result"],
        "0x0"
    );
    assert_eq!(
        world.call_by_url("eth_getBalance", json!([own, "latest"])).await.body["result"],
        "0x7"
    );
    // A stranger's transaction, of which the owner sees a log.
    let stranger = Address::repeat_byte(0xbb);
    let receipt = |from: Address| {
        json!({"blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "contractAddress": null,
            "cumulativeGasUsed": "0x1", "effectiveGasPrice": "0x1", "from": from, "gasUsed": "0x1", "logs": [
                {"address": TOKEN, "topics": [B256::repeat_byte(1)], "data": "0x", "blockHash": FakeNode::HEAD_HASH,
                 "blockNumber": "0x64", "transactionHash": B256::repeat_byte(9), "transactionIndex": "0x0",
                 "logIndex": "0x0", "removed": false}],
            "logsBloom": format!("0x{}", "0".repeat(512)), "status": "0x1", "to": TOKEN,
            "transactionHash": B256::repeat_byte(9), "transactionIndex": "0x0", "type": "0x2"})
    };
    let asked = json!([B256::repeat_byte(9)]);
    fake.on("eth_getTransactionReceipt", receipt(stranger));
    assert!(
        world
            .result(&owner, "eth_getTransactionReceipt", asked.clone())
            .await
            .is_object(),
        "by its log"
    );
    assert_eq!(
        world.call_by_url("eth_getTransactionReceipt", asked.clone()).await.body["result"],
        Value::Null
    );
    fake.on("eth_getTransactionReceipt", receipt(own));
    assert!(world.call_by_url("eth_getTransactionReceipt", asked).await.body["result"].is_object());
}

/// HD17: what a run reverts with is an answer of the code that ran; the page behind a wallet gets none.
#[tokio::test]
async fn rt6a_a_wallets_url_is_told_no_revert_data() {
    let canary = "0xc0ffee00";
    for (reach, to, told) in [
        (UrlReach::Wallet, Address::repeat_byte(0x33), false),
        (UrlReach::Contracts([TOKEN].into()), Address::repeat_byte(0x33), false),
        (UrlReach::Contracts([TOKEN].into()), TOKEN, true),
        (UrlReach::All, TOKEN, true),
    ] {
        let (world, fake) = serving().await;
        world.owner(reach).await;
        fake.script("debug_traceCall", move |params| {
            match gw_testkit::fake_node::trace(params) {
                Reply::Result(mut tree) if tree.get("type").is_some() => {
                    tree["error"] = json!("execution reverted");
                    tree["output"] = json!(canary);
                    Reply::Result(tree)
                }
                other => other,
            }
        });
        let answer = world.call_by_url("eth_estimateGas", json!([{"to": to}])).await;
        assert_eq!(answer.body["error"]["message"], "execution reverted", "{}", answer.text);
        assert_eq!(answer.text.contains(canary), told, "{}", answer.text);
    }
}

/// RTO11, decision 37: no code is `0x`, whoever owns the address; any code is refused but that of picked contracts.
#[tokio::test]
async fn rto11_a_wallets_url_says_where_no_code_is() {
    for (reach, told) in [
        (UrlReach::Wallet, false),
        (UrlReach::Contracts([TOKEN].into()), true),
        (UrlReach::All, true),
    ] {
        let (world, fake) = serving().await;
        world.owner(reach).await;
        let code = |of: Address| world.call_by_url("eth_getCode", json!([of, "latest"]));
        assert_eq!(code(Address::repeat_byte(0x33)).await.body["result"], "0x");
        fake.on("eth_getCode", json!("0x6001"));
        code(Address::repeat_byte(0x33)).await.assert_denied();
        let picked = code(TOKEN).await;
        assert_eq!(picked.text != DENIED, told, "{}", picked.text);
    }
}

/// HD17: whoever is connected to the wallet can sign with a key of their own; by the URL only its owner's proved addresses
/// send, and none becomes the owner's.
#[tokio::test]
async fn rt6b_by_url_only_proved_addresses_send() {
    for reach in [UrlReach::Wallet, UrlReach::Contracts([TOKEN].into()), UrlReach::All] {
        let (world, fake) = serving().await;
        let (owner, ..) = world.owner(reach).await;
        let key = account(1);
        let (raw, hash) = signed(&key, 0, None, 0, Bytes::from_static(&[0x5f, 0x5f, 0xf3]));
        fake.on("eth_sendRawTransaction", json!(hash));
        fake.take();
        assert_eq!(
            world.call_by_url("eth_sendRawTransaction", json!([raw])).await.error(),
            (400, -32602)
        );
        assert!(fake.take().iter().all(|call| call.method != "eth_sendRawTransaction"));
        assert!(world.feed.pin().snapshot.links_of(owner.id).is_empty());
        // Inferred is not proved.
        let (raw, hash) = signed(&key, 0, Some(Address::repeat_byte(0x33)), 1, Bytes::new());
        fake.on("eth_sendRawTransaction", json!(hash));
        assert_eq!(
            world.result(&owner, "eth_sendRawTransaction", json!([raw])).await,
            json!(hash),
            "with the token"
        );
        assert_eq!(
            world.feed.pin().snapshot.links_of(owner.id).len(),
            1,
            "a link of the system's"
        );
        assert_eq!(
            world.call_by_url("eth_sendRawTransaction", json!([raw])).await.error(),
            (400, -32602)
        );
        world.link(&owner, key.address()).await;
        let sent = world.call_by_url("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(sent.body["result"], json!(hash), "{}", sent.text);
    }
}

/// PU-2: unknown, expired, revoked and switched off are one answer; with a token beside it none of them matters.
#[tokio::test]
async fn pu2_what_is_no_url_is_nothing_at_all() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    let (off, _fake) = scripted_with(RpcSettings::default(), Knobs::default(), 64 << 20).await;
    off.owner(UrlReach::All).await;
    let nothing = off.by_url(SECRET, &call).await;
    assert_eq!((nothing.status, nothing.text.as_str()), (404, NOTHING));

    let (world, _fake) = serving().await;
    let (owner, bank, url) = world.owner(UrlReach::All).await;
    assert_eq!(world.by_url(SECRET, &call).await.body["result"], "0x7a69");
    let same = |answer: Answer| assert_eq!((answer.status, answer.text.as_str()), (404, nothing.text.as_str()));
    same(world.by_url("another", &call).await);
    same(world.by_url(&url.secret.to_string(), &call).await);
    world.personal_url(&owner, bank, UrlReach::Wallet, "short").await;
    world
        .change(async |tx| tx.revoke_personal_url(owner.id, url.id).await.unwrap())
        .await;
    same(world.by_url(SECRET, &call).await);
    assert_eq!(world.by_url("short", &call).await.status, 200);
    let bearer = format!("Bearer {}", owner.token);
    for secret in ["short", "another"] {
        let path = format!("/rpc/u/{secret}");
        let both = world
            .raw(call.to_string())
            .header("authorization", &bearer)
            .path(&path)
            .send()
            .await;
        assert_eq!(both.error(), (400, -32600));
    }
    // All tokens of the user end, and the URL with them.
    world.clock.pass(10);
    world.feed.catch_up_to(world.feed.epoch()).await;
    world
        .change(async |tx| tx.revoke_user_tokens(owner.id).await.unwrap())
        .await;
    same(world.by_url("short", &call).await);
    let later = world.personal_url(&owner, bank, UrlReach::Wallet, "later").await;
    assert_eq!(world.by_url("later", &call).await.status, 200);
    world.clock.set(later.expires_at);
    world.feed.catch_up_to(world.feed.epoch()).await;
    same(world.by_url("later", &call).await);
}

/// PU-4: ban, KYC and membership count as with a token; the organization is the URL's.
#[tokio::test]
async fn pu4_the_rules_of_its_owner_apply() {
    let (world, _fake) = serving().await;
    let (owner, _, _) = world.owner(UrlReach::Wallet).await;
    let estimate = || world.call_by_url("eth_estimateGas", json!([{"to": Address::repeat_byte(0x33)}]));
    assert_eq!(estimate().await.status, 200);
    // Told of its parameters: it may send.
    let send = || world.call_by_url("eth_sendRawTransaction", json!(["0x00"]));
    assert_eq!(send().await.error(), (400, -32602));
    world
        .update(
            &owner,
            UserPatch {
                kyc: Some(false),
                ..UserPatch::default()
            },
        )
        .await;
    send().await.assert_denied();
    world
        .update(
            &owner,
            UserPatch {
                kyc: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    let elsewhere = world.raw(r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#);
    let elsewhere = elsewhere
        .header("x-org-id", &OrgId::fixed(77).to_string())
        .path(&format!("/rpc/u/{SECRET}"));
    assert_eq!(elsewhere.send().await.status, 400, "one organization");
    world
        .update(
            &owner,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    world.call_by_url("eth_chainId", json!([])).await.assert_denied();
}

/// HD35: a URL ends with its owner's place in its organization, for metadata too, and does not come back with it.
#[tokio::test]
async fn hd35_a_url_ends_with_the_membership_for_good() {
    for way in ["ban", "removal", "time"] {
        let (world, _fake) = serving().await;
        let (owner, bank, _) = world.owner(UrlReach::Wallet).await;
        let ended = async |when: &str| {
            for (method, params) in [
                ("eth_chainId", json!([])),
                ("eth_estimateGas", json!([{"to": Address::repeat_byte(0x33)}])),
            ] {
                let answer = world.call_by_url(method, params).await;
                assert_eq!(
                    (answer.status, answer.text.as_str()),
                    (404, NOTHING),
                    "{way}, {when}: {method}"
                );
            }
        };
        let membership = world.feed.pin().snapshot.memberships(owner.id)[0];
        let user = world.store.read().find_user(owner.id).await.unwrap().unwrap();
        let ban = |banned| UserPatch {
            banned: Some(banned),
            ..UserPatch::default()
        };
        let again = NewMembership {
            user: owner.id,
            group: membership.group,
            expires_at: None,
        };
        match way {
            "ban" => {
                world
                    .change(async |tx| drop(tx.update_org_user(bank, &user, ban(true)).await.unwrap()))
                    .await;
                ended("banned").await;
                world
                    .change(async |tx| drop(tx.update_org_user(bank, &user, ban(false)).await.unwrap()))
                    .await;
            }
            "removal" => {
                world
                    .change(async |tx| drop(tx.remove_membership(membership.id).await.unwrap()))
                    .await;
                ended("removed").await;
                world
                    .change(async |tx| drop(tx.offer_membership(again).await.unwrap()))
                    .await;
                ended("invited").await;
                world
                    .change(async |tx| tx.accept_memberships(owner.id, bank).await.unwrap())
                    .await;
            }
            _ => {
                let until = NewMembership {
                    expires_at: Some(world.clock.now_plus(Seconds(60))),
                    ..again
                };
                let made = world
                    .change(async |tx| {
                        tx.remove_membership(membership.id).await.unwrap();
                        tx.add_membership(until).await.unwrap()
                    })
                    .await;
                world.personal_url(&owner, bank, UrlReach::Wallet, "for-a-time").await;
                let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
                assert_eq!(world.by_url("for-a-time", &call).await.status, 200);
                world.clock.pass(61);
                world.feed.catch_up_to(world.feed.epoch()).await;
                assert_eq!(world.by_url("for-a-time", &call).await.status, 404);
                assert!(made.has_ended(gw_types::Clock::now(&*world.clock)));
                world
                    .change(async |tx| drop(tx.add_membership(again).await.unwrap()))
                    .await;
                assert_eq!(world.by_url("for-a-time", &call).await.status, 404, "taken in again");
            }
        }
        ended("back again").await;
    }
}

/// PU-3, PU-4: records carry the URL's id, and the secret stands in none of them.
#[tokio::test]
async fn pu3_a_record_names_the_url_and_not_its_secret() {
    let settings = RpcSettings {
        personal_urls: true,
        log_params: true,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, Knobs::default(), 64 << 20).await;
    let (owner, bank, url) = world.owner(UrlReach::Wallet).await;
    world.records().await;
    fake.script("eth_getBalance", |_| Reply::Result(json!("0x7")));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_feeHistory", "params": ["0x1", "latest"]});
    world.by_url(SECRET, &call).await;
    let record = world.record().await;
    assert_eq!(
        (record.auth_method, record.rpc_url_id),
        (AuthMethod::PersonalUrl, Some(url.id))
    );
    assert_eq!(
        (record.external_id.as_ref(), record.org_id),
        (Some(&owner.name), Some(bank))
    );
    for (secret, body) in [(SECRET, "{nonsense"), (SECRET, "[]"), ("canary-of-nobody", "{}")] {
        world.by_url(secret, body).await;
        let told = format!("{:?}", world.records().await);
        assert!(!told.contains(SECRET) && !told.contains("canary-of-nobody"), "{told}");
        assert!(!told.contains(&url.secret.to_string()), "nor its hash");
    }
    for call in fake.take() {
        assert!(!format!("{call:?}").contains(SECRET));
    }
}

/// What a browser wallet asks, against a real node: chain, head, gas, a send, its receipt, and all of it in a batch.
#[tokio::test]
async fn hd17_a_wallet_lives_on_its_scope() {
    let (world, _anvil) = real().await;
    let world = world.with(RpcSettings {
        personal_urls: true,
        ..RpcSettings::default()
    });
    let bank = world.org("bank").await;
    let owner = world.person("owner", bank, &["*"], &[]).await;
    let (key, to) = (account(0), account(1).address());
    world.link(&owner, key.address()).await;
    world.personal_url(&owner, bank, UrlReach::Wallet, SECRET).await;
    let result = async |method: &str, params: Value| {
        let answer = world.call_by_url(method, params).await;
        assert!(answer.body.get("result").is_some(), "{method}: {}", answer.text);
        answer.body["result"].clone()
    };
    assert_eq!(result("eth_chainId", json!([])).await, "0x7a69");
    assert_ne!(result("eth_getBalance", json!([key.address(), "latest"])).await, "0x0");
    assert_eq!(
        result("eth_getBalance", json!([to, "latest"])).await,
        "0x0",
        "not the owner's"
    );
    let payment = json!([{"from": key.address(), "to": to, "value": "0x1"}]);
    assert!(result("eth_estimateGas", payment).await.is_string());
    let (raw, hash) = signed(&key, 0, Some(to), 1, Bytes::new());
    assert_eq!(result("eth_sendRawTransaction", json!([raw])).await, json!(hash));
    let receipt = loop {
        let receipt = result("eth_getTransactionReceipt", json!([hash])).await;
        if receipt.is_object() {
            break receipt;
        }
    };
    let block = result("eth_getBlockByHash", json!([receipt["blockHash"], false])).await;
    assert_eq!(block["transactions"], json!([hash]));
    let call =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let batch = json!([
        call(1, "eth_blockNumber", json!([])),
        call(2, "eth_getTransactionCount", json!([key.address(), "pending"])),
        call(3, "eth_accounts", json!([])),
    ]);
    let answers = world.by_url(SECRET, batch).await.body;
    assert_eq!(answers[0]["result"], receipt["blockNumber"]);
    assert_eq!(answers[1]["result"], "0x1");
    assert_eq!(answers[2]["error"]["code"], -32601);
}

/// HD17 PU-1: a page that holds the URL calls the picked contracts, not what they can reach.
#[tokio::test]
async fn hd17_a_picked_forwarder_reads_no_other_contract() {
    let (world, _anvil) = real().await;
    let world = world.with(RpcSettings {
        personal_urls: true,
        ..RpcSettings::default()
    });
    let bank = world.org("bank").await;
    let owner = world.person("owner", bank, &["*"], &[]).await;
    world.link(&owner, account(0).address()).await;
    let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(99)).abi_encode_params();
    let token = world
        .deploy(&[artifact("DemoERC20").0.to_vec(), arguments].concat())
        .await;
    let forwarder = world.deploy(&artifact("Forwarder").0).await;
    for contract in [token, forwarder] {
        world.contract(bank, contract, None, &[owner.group]).await;
    }
    let ways = async |secret: &str| {
        let inner = totalSupplyCall {}.abi_encode();
        let forwarded = Bytes::from(
            forwardCall {
                target: token,
                data: inner.clone().into(),
            }
            .abi_encode(),
        );
        let delegated = Bytes::from(
            delegateCall {
                target: token,
                data: inner.into(),
            }
            .abi_encode(),
        );
        let of = |method: &str, data: &Bytes| {
            let call = json!([{"from": account(0).address(), "to": forwarder, "data": data}, "latest"]);
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": call});
            world.by_url(secret, body)
        };
        let calls = [
            of("eth_call", &forwarded),
            of("eth_estimateGas", &forwarded),
            of("eth_call", &delegated),
        ];
        futures_util::future::join_all(calls).await
    };
    world
        .personal_url(&owner, bank, UrlReach::Contracts([forwarder].into()), SECRET)
        .await;
    let [call, estimate, delegated] = <[Answer; 3]>::try_from(ways(SECRET).await).unwrap();
    call.assert_denied();
    estimate.assert_denied();
    // Borrowed code runs on the forwarder's own state.
    assert!(delegated.text.contains("result"), "{}", delegated.text);
    let both = "another-secret-that-names-both-of-the-contracts";
    world
        .personal_url(&owner, bank, UrlReach::Contracts([forwarder, token].into()), both)
        .await;
    for answer in ways(both).await {
        assert!(answer.text.contains("result"), "{}", answer.text);
    }
}
