//! Personal RPC URLs: their scope, their lifetime and their records (HD17, decision 51).

use crate::{
    live::erc20,
    world::{Answer, DENIED, World, account, artifact, real, scripted_with, signed},
};
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use gw_audit::AuthMethod;
use gw_policy::{PolicySettings, snapshot::UrlReach};
use gw_rpc::RpcSettings;
use gw_store::record::{AccessInput, NewMembership, NewPersonalUrl, PersonalUrl, UserPatch};
use gw_testkit::{FakeNode, TestUser, fake_node::NodeReply};
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
/// The answer of a path that does not exist.
const NOTHING: &str = r#"{"code":"not_found","error":"not found"}"#;

impl World {
    async fn set_claims(&self, person: &TestUser, claims: &[Claim]) {
        let access = AccessInput {
            allowed_methods: vec!["*".to_owned()],
            claims: claims.iter().copied().collect(),
            ..AccessInput::default()
        };
        self.fixture
            .change(async |tx| {
                tx.set_access(person.group, access).await.unwrap();
            })
            .await;
    }

    /// A user with every right on two contracts, and a personal URL.
    async fn owner(&self, reach: UrlReach) -> (TestUser, OrgId, PersonalUrl) {
        let bank = self.fixture.create_org("bank").await;
        let owner = self.person("owner", bank, &["*"], &[]).await;
        for contract in [TOKEN, OTHER] {
            self.contract(bank, contract, Some(&erc20()), &[owner.group]).await;
        }
        self.set_claims(&owner, &[Claim::Deploy]).await;
        let url = self.personal_url(&owner, bank, reach, SECRET).await;
        (owner, bank, url)
    }

    pub(crate) async fn personal_url(
        &self,
        owner: &TestUser,
        org: OrgId,
        reach: UrlReach,
        secret: &str,
    ) -> PersonalUrl {
        let new = NewPersonalUrl {
            secret: B256::from_slice(&Sha256::digest(secret.as_bytes())),
            user: owner.id,
            org,
            name: String::new(),
            reach,
            expires_at: self.fixture.clock.now_plus(Seconds(8 * 3600)),
            login: None,
        };
        self.fixture
            .change(async |tx| tx.create_personal_url(new).await.unwrap())
            .await
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
        PolicySettings::default(),
    )
    .await
}

/// The methods of a group with `*`, and which of them each scope leaves (PU-1).
#[tokio::test]
async fn pu1_a_scope_permits_its_methods_and_no_more() {
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
        // RTO11: wallets query it for every receiver; these addresses have no code.
        ("eth_getCode", json!([TOKEN, "latest"]), [true, true, true]),
        (
            "eth_getCode",
            json!([Address::repeat_byte(0x33), "latest"]),
            [true, true, true],
        ),
        // RT6a: payments and calls of picked contracts, no creations.
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
    for (scope, reach) in [UrlReach::Wallet, UrlReach::Contracts([TOKEN].into()), UrlReach::All]
        .into_iter()
        .enumerate()
    {
        let (world, fake) = serving().await;
        fake.set_result("eth_maxPriorityFeePerGas", json!("0x1"));
        fake.set_result(
            "eth_feeHistory",
            json!({"oldestBlock": "0x64", "gasUsedRatio": [0.5], "baseFeePerGas": ["0x1", "0x1"]}),
        );
        world.owner(reach).await;
        for (method, params, allowed) in &rows {
            let answer = world.call_by_url(method, params.clone()).await;
            assert_eq!(
                answer.text != DENIED,
                allowed[scope],
                "{method} {params} in scope {scope}: {}",
                answer.text
            );
        }
    }
}

/// PU-1: a wallet URL shows balances, nonces and transactions of the owner's addresses only, even if the owner's token
/// shows more.
#[tokio::test]
async fn pu1_a_wallet_url_shows_only_the_owners_accounts_and_transactions() {
    let (world, fake) = serving().await;
    let (owner, ..) = world.owner(UrlReach::Wallet).await;
    let own = Address::repeat_byte(0xaa);
    world.link(&owner, own).await;
    fake.set_result("eth_getBalance", json!("0x7"));
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
    let params = json!([B256::repeat_byte(9)]);
    fake.set_result("eth_getTransactionReceipt", receipt(stranger));
    assert!(
        world
            .result(&owner, "eth_getTransactionReceipt", params.clone())
            .await
            .is_object(),
        "by its log"
    );
    assert_eq!(
        world
            .call_by_url("eth_getTransactionReceipt", params.clone())
            .await
            .body["result"],
        Value::Null
    );
    fake.set_result("eth_getTransactionReceipt", receipt(own));
    assert!(world.call_by_url("eth_getTransactionReceipt", params).await.body["result"].is_object());
}

/// HD17: revert data is an answer of the executed code; a page with a wallet URL gets none.
#[tokio::test]
async fn rt6a_a_wallet_url_gets_no_revert_data() {
    let canary = "0xc0ffee00";
    for (reach, to, shows_data) in [
        (UrlReach::Wallet, Address::repeat_byte(0x33), false),
        (UrlReach::Contracts([TOKEN].into()), Address::repeat_byte(0x33), false),
        (UrlReach::Contracts([TOKEN].into()), TOKEN, true),
        (UrlReach::All, TOKEN, true),
    ] {
        let (world, fake) = serving().await;
        world.owner(reach).await;
        fake.script("debug_traceCall", move |params| {
            match gw_testkit::fake_node::trace(params) {
                NodeReply::Result(mut tree) if tree.get("type").is_some() => {
                    tree["error"] = json!("execution reverted");
                    tree["output"] = json!(canary);
                    NodeReply::Result(tree)
                }
                reply => reply,
            }
        });
        let answer = world.call_by_url("eth_estimateGas", json!([{"to": to}])).await;
        assert_eq!(answer.body["error"]["message"], "execution reverted", "{}", answer.text);
        assert_eq!(answer.text.contains(canary), shows_data, "{}", answer.text);
    }
}

/// RTO11, decision 37: an address without code gets `0x`, whoever owns it; code is denied, except for picked contracts.
#[tokio::test]
async fn rto11_a_wallet_url_shows_where_no_code_is() {
    for (reach, shows_code) in [
        (UrlReach::Wallet, false),
        (UrlReach::Contracts([TOKEN].into()), true),
        (UrlReach::All, true),
    ] {
        let (world, fake) = serving().await;
        world.owner(reach).await;
        let code = |address: Address| world.call_by_url("eth_getCode", json!([address, "latest"]));
        assert_eq!(code(Address::repeat_byte(0x33)).await.body["result"], "0x");
        fake.set_result("eth_getCode", json!("0x6001"));
        code(Address::repeat_byte(0x33)).await.assert_denied();
        let picked = code(TOKEN).await;
        assert_eq!(picked.text != DENIED, shows_code, "{}", picked.text);
    }
}

/// HD17: a page that is connected to the wallet can sign with a key of its own. A URL therefore accepts sends only from
/// proved addresses of its owner, and links no address to the owner.
#[tokio::test]
async fn rt6b_by_url_only_proved_addresses_send() {
    for reach in [UrlReach::Wallet, UrlReach::Contracts([TOKEN].into()), UrlReach::All] {
        let (world, fake) = serving().await;
        let (owner, ..) = world.owner(reach).await;
        let key = account(1);
        let (raw, hash) = signed(&key, 0, None, 0, Bytes::from_static(&[0x5f, 0x5f, 0xf3]));
        fake.set_result("eth_sendRawTransaction", json!(hash));
        fake.take();
        assert_eq!(
            world.call_by_url("eth_sendRawTransaction", json!([raw])).await.error(),
            (400, -32602)
        );
        assert!(fake.take().iter().all(|call| call.method != "eth_sendRawTransaction"));
        assert!(world.fixture.feed.pin().snapshot.links_of(owner.id).is_empty());
        // An inferred link is not a proof.
        let (raw, hash) = signed(&key, 0, Some(Address::repeat_byte(0x33)), 1, Bytes::new());
        fake.set_result("eth_sendRawTransaction", json!(hash));
        assert_eq!(
            world.result(&owner, "eth_sendRawTransaction", json!([raw])).await,
            json!(hash),
            "with the token"
        );
        assert_eq!(
            world.fixture.feed.pin().snapshot.links_of(owner.id).len(),
            1,
            "an inferred link"
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

/// PU-2: unknown, expired, revoked and disabled URLs get the same answer; with a token in the header, every URL gets
/// the same error.
#[tokio::test]
async fn pu2_an_invalid_url_gets_the_generic_404() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    let (off, _fake) = scripted_with(RpcSettings::default(), PolicySettings::default()).await;
    off.owner(UrlReach::All).await;
    let nothing = off.by_url(SECRET, &call).await;
    assert_eq!((nothing.status, nothing.text.as_str()), (404, NOTHING));

    let (world, _fake) = serving().await;
    let (owner, bank, url) = world.owner(UrlReach::All).await;
    assert_eq!(world.by_url(SECRET, &call).await.body["result"], "0x7a69");
    let assert_nothing =
        |answer: Answer| assert_eq!((answer.status, answer.text.as_str()), (404, nothing.text.as_str()));
    assert_nothing(world.by_url("another", &call).await);
    assert_nothing(world.by_url(&url.secret.to_string(), &call).await);
    world.personal_url(&owner, bank, UrlReach::Wallet, "short").await;
    world
        .fixture
        .change(async |tx| tx.revoke_personal_url(owner.id, url.id).await.unwrap())
        .await;
    assert_nothing(world.by_url(SECRET, &call).await);
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
    // When all tokens of the user are revoked, the URL ends with them.
    world.fixture.clock.pass(10);
    world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
    world
        .fixture
        .change(async |tx| tx.revoke_user_tokens(owner.id).await.unwrap())
        .await;
    assert_nothing(world.by_url("short", &call).await);
    let later = world.personal_url(&owner, bank, UrlReach::Wallet, "later").await;
    assert_eq!(world.by_url("later", &call).await.status, 200);
    world.fixture.clock.set(later.expires_at);
    world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
    assert_nothing(world.by_url("later", &call).await);
}

/// PU-4: ban, KYC and membership count as with a token; the organization is that of the URL.
#[tokio::test]
async fn pu4_the_rules_of_its_owner_apply() {
    let (world, _fake) = serving().await;
    let (owner, _, _) = world.owner(UrlReach::Wallet).await;
    let estimate = || world.call_by_url("eth_estimateGas", json!([{"to": Address::repeat_byte(0x33)}]));
    assert_eq!(estimate().await.status, 200);
    // The parameter error shows that the send is permitted.
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

/// HD35: a URL ends with its owner's membership in its organization, for metadata too, and a new membership does not
/// revive it.
#[tokio::test]
async fn hd35_a_url_ends_with_the_membership_for_good() {
    for cause in ["ban", "removal", "time"] {
        let (world, _fake) = serving().await;
        let (owner, bank, _) = world.owner(UrlReach::Wallet).await;
        let assert_ended = async |when: &str| {
            for (method, params) in [
                ("eth_chainId", json!([])),
                ("eth_estimateGas", json!([{"to": Address::repeat_byte(0x33)}])),
            ] {
                let answer = world.call_by_url(method, params).await;
                assert_eq!(
                    (answer.status, answer.text.as_str()),
                    (404, NOTHING),
                    "{cause}, {when}: {method}"
                );
            }
        };
        let membership = world.fixture.feed.pin().snapshot.memberships(owner.id)[0];
        let user = world.fixture.store.read().find_user(owner.id).await.unwrap().unwrap();
        let ban = |banned| UserPatch {
            banned: Some(banned),
            ..UserPatch::default()
        };
        let new_membership = NewMembership {
            user: owner.id,
            group: membership.group,
            expires_at: None,
        };
        match cause {
            "ban" => {
                world
                    .fixture
                    .change(async |tx| drop(tx.update_org_user(bank, &user, ban(true)).await.unwrap()))
                    .await;
                assert_ended("banned").await;
                world
                    .fixture
                    .change(async |tx| drop(tx.update_org_user(bank, &user, ban(false)).await.unwrap()))
                    .await;
            }
            "removal" => {
                world
                    .fixture
                    .change(async |tx| drop(tx.remove_membership(membership.id).await.unwrap()))
                    .await;
                assert_ended("removed").await;
                world
                    .fixture
                    .change(async |tx| drop(tx.offer_membership(new_membership).await.unwrap()))
                    .await;
                assert_ended("invited").await;
                world
                    .fixture
                    .change(async |tx| tx.accept_memberships(owner.id, bank).await.unwrap())
                    .await;
            }
            _ => {
                let until = NewMembership {
                    expires_at: Some(world.fixture.clock.now_plus(Seconds(60))),
                    ..new_membership
                };
                let membership_row = world
                    .fixture
                    .change(async |tx| {
                        tx.remove_membership(membership.id).await.unwrap();
                        tx.add_membership(until).await.unwrap()
                    })
                    .await;
                world.personal_url(&owner, bank, UrlReach::Wallet, "for-a-time").await;
                let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
                assert_eq!(world.by_url("for-a-time", &call).await.status, 200);
                world.fixture.clock.pass(61);
                world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
                assert_eq!(world.by_url("for-a-time", &call).await.status, 404);
                assert!(membership_row.has_ended(gw_types::Clock::now(&world.fixture.clock)));
                world
                    .fixture
                    .change(async |tx| drop(tx.add_membership(new_membership).await.unwrap()))
                    .await;
                assert_eq!(world.by_url("for-a-time", &call).await.status, 404, "member again");
            }
        }
        assert_ended("back again").await;
    }
}

/// PU-3, PU-4: records contain the id of the URL, and never its secret.
#[tokio::test]
async fn pu3_a_record_names_the_url_and_not_its_secret() {
    let settings = RpcSettings {
        personal_urls: true,
        log_params: true,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
    let (owner, bank, url) = world.owner(UrlReach::Wallet).await;
    world.fixture.records();
    fake.script("eth_getBalance", |_| NodeReply::Result(json!("0x7")));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_feeHistory", "params": ["0x1", "latest"]});
    world.by_url(SECRET, &call).await;
    let record = world.record();
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
        let records = format!("{:?}", world.fixture.records());
        assert!(
            !records.contains(SECRET) && !records.contains("canary-of-nobody"),
            "{records}"
        );
        assert!(!records.contains(&url.secret.to_string()), "nor its hash");
    }
    for call in fake.take() {
        assert!(!format!("{call:?}").contains(SECRET));
    }
}

/// The calls of a browser wallet against a real node: chain, head, gas, a send, its receipt, and all of it in a batch.
#[tokio::test]
async fn hd17_the_wallet_scope_suffices_for_a_browser_wallet() {
    let (world, _anvil) = real().await;
    let world = world.with(RpcSettings {
        personal_urls: true,
        ..RpcSettings::default()
    });
    let bank = world.fixture.create_org("bank").await;
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

/// HD17 PU-1: a page with the URL may call the picked contracts, not the contracts that they can reach.
#[tokio::test]
async fn hd17_a_picked_forwarder_reads_no_other_contract() {
    let (world, _anvil) = real().await;
    let world = world.with(RpcSettings {
        personal_urls: true,
        ..RpcSettings::default()
    });
    let bank = world.fixture.create_org("bank").await;
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
    let calls_by = async |secret: &str| {
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
        let call_forwarder = |method: &str, data: &Bytes| {
            let call = json!([{"from": account(0).address(), "to": forwarder, "data": data}, "latest"]);
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": call});
            world.by_url(secret, body)
        };
        let calls = [
            call_forwarder("eth_call", &forwarded),
            call_forwarder("eth_estimateGas", &forwarded),
            call_forwarder("eth_call", &delegated),
        ];
        futures_util::future::join_all(calls).await
    };
    world
        .personal_url(&owner, bank, UrlReach::Contracts([forwarder].into()), SECRET)
        .await;
    let [call, estimate, delegated] = <[Answer; 3]>::try_from(calls_by(SECRET).await).unwrap();
    call.assert_denied();
    estimate.assert_denied();
    // Delegated code runs on the forwarder's own state.
    assert!(delegated.text.contains("result"), "{}", delegated.text);
    let both = "another-secret-that-names-both-of-the-contracts";
    world
        .personal_url(&owner, bank, UrlReach::Contracts([forwarder, token].into()), both)
        .await;
    for answer in calls_by(both).await {
        assert!(answer.text.contains("result"), "{}", answer.text);
    }
}
