//! The upstream key of each call (spec/20 G1), and the pause of a key after HTTP 429 (J8).

use crate::world::{World, account, group_keys, scripted, signed};
use gw_store::record::{AccessInput, ApiKey, NewGroup, NewMembership};
use gw_testkit::{FakeNode, TestUser};
use gw_types::testing::FixedEntropy;
use gw_types::{Address, Bytes, Clock as _, GroupId, OrgId, Seconds, Secret};
use serde_json::{Value, json};

/// Gives a group a key, as an administrator would.
async fn set_key(world: &World, group: GroupId, methods: &[&str], key: &str) {
    let stored = group_keys().seal(group, key, &FixedEntropy(7)).unwrap();
    store(world, group, methods, stored).await;
}

async fn store(world: &World, group: GroupId, methods: &[&str], stored: Secret) {
    let access = AccessInput {
        allowed_methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        rpc_api_key: ApiKey::Set(stored),
        ..AccessInput::default()
    };
    world
        .fixture
        .change(async |tx| tx.set_access(group, access).await.unwrap())
        .await;
}

const METHODS: [&str; 5] = [
    "eth_syncing",
    "eth_call",
    "eth_getBlockByNumber",
    "eth_sendRawTransaction",
    "eth_getCode",
];
const CONTRACT: Address = Address::repeat_byte(0xc0);

async fn bank(world: &World) -> (OrgId, TestUser, TestUser) {
    let bank = world.fixture.create_org("bank").await;
    let with_key = world.person("keyed", bank, &METHODS, &[]).await;
    let plain = world.person("plain", bank, &METHODS, &[]).await;
    set_key(world, with_key.group, &METHODS, "Bearer group-key").await;
    world
        .contract(bank, CONTRACT, None, &[with_key.group, plain.group])
        .await;
    (bank, with_key, plain)
}

fn keys(fake: &FakeNode) -> Vec<Option<String>> {
    fake.take();
    fake.take_keys()
}

/// Makes one call for each kind of plan: a read, a trace, a block, code.
async fn every_kind(world: &World, person: &TestUser) {
    let call = json!([{"to": CONTRACT, "data": "0x01"}, "latest"]);
    let calls: [(&str, Value); 4] = [
        ("eth_syncing", json!([])),
        ("eth_call", call),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getCode", json!([CONTRACT, "latest"])),
    ];
    for (method, params) in calls {
        world.result(person, method, params).await;
    }
}

#[tokio::test]
async fn g1_a_groups_key_is_used_for_its_members_calls_only() {
    let (world, fake) = scripted().await;
    let (_, with_key, plain) = bank(&world).await;
    keys(&fake);
    every_kind(&world, &with_key).await;
    let sent = keys(&fake);
    assert!(
        sent.len() >= 4 && sent.iter().all(|key| key.as_deref() == Some("Bearer group-key")),
        "{sent:?}"
    );
    every_kind(&world, &plain).await;
    let sent = keys(&fake);
    assert!(sent.len() >= 4 && sent.iter().all(Option::is_none), "{sent:?}");
    // The gateway's own queries use no group's key.
    world.node.refresh_head().await.unwrap();
    assert_eq!(keys(&fake), [None]);
}

/// The traces of a send, and the send itself, use the group's key.
#[tokio::test]
async fn g1_a_send_is_traced_and_forwarded_by_the_groups_key() {
    let (world, fake) = scripted().await;
    let (_, with_key, _) = bank(&world).await;
    world.link(&with_key, account(0).address()).await;
    let (raw, hash) = signed(&account(0), 0, Some(Address::repeat_byte(9)), 0, Bytes::new());
    fake.set_result("eth_sendRawTransaction", json!(hash));
    fake.take();
    fake.take_keys();
    let answer = world
        .ask(Some(&with_key), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await;
    assert_eq!(
        (answer.status, answer.body["result"].clone()),
        (200, json!(hash)),
        "{}",
        answer.text
    );
    let bodies = fake.take_bodies();
    for (body, key) in bodies.iter().zip(fake.take_keys()) {
        let text = String::from_utf8_lossy(body);
        // The query for the new head afterwards uses no group's key.
        let expected = (!text.contains("eth_gasPrice")).then(|| "Bearer group-key".to_owned());
        assert_eq!(key, expected, "{text}");
    }
}

#[tokio::test]
async fn g1_of_several_groups_the_lowest_id_decides_and_of_the_callers_organization_only() {
    let (world, fake) = scripted().await;
    let (bank, caller, _) = bank(&world).await;
    let other = world.fixture.create_org("other").await;
    let join = async |org: OrgId, slug: &str, key: &str| {
        let new = NewGroup::plain(org, slug.to_owned(), slug.to_owned());
        let group = world
            .fixture
            .change(async |tx| tx.create_group(new).await.unwrap().id)
            .await;
        set_key(&world, group, &METHODS, key).await;
        let ends = world.fixture.clock.now().plus(Seconds(3600));
        let membership = NewMembership {
            user: caller.id,
            group,
            expires_at: Some(ends),
        };
        let membership_row = world
            .fixture
            .change(async |tx| tx.add_membership(membership).await.unwrap())
            .await;
        (group, membership_row)
    };
    let (second, _) = join(bank, "second", "Bearer second").await;
    join(other, "elsewhere", "Bearer elsewhere").await;
    keys(&fake);
    let used_key = async || {
        let call = json!([{"to": CONTRACT, "data": "0x01"}, "latest"]);
        world.result(&caller, "eth_call", call).await;
        keys(&fake).pop().flatten()
    };
    let mut by_id = [(caller.group, "Bearer group-key"), (second, "Bearer second")];
    by_id.sort();
    assert_eq!(used_key().await.as_deref(), Some(by_id[0].1));
    // Without the first group's key, the second group's key is used.
    let access = AccessInput {
        allowed_methods: METHODS.map(str::to_owned).to_vec(),
        rpc_api_key: ApiKey::Clear,
        ..AccessInput::default()
    };
    world
        .fixture
        .change(async |tx| tx.set_access(by_id[0].0, access).await.unwrap())
        .await;
    assert_eq!(used_key().await.as_deref(), Some(by_id[1].1));
    // An ended membership gives no key.
    world.fixture.clock.pass(7200);
    let (token, token_id) = world.fixture.issue_token(&caller.name);
    let caller = TestUser {
        token,
        token_id,
        ..caller
    };
    let expected = (by_id[1].0 == caller.group).then_some("Bearer group-key");
    world.result(&caller, "eth_syncing", json!([])).await;
    assert_eq!(keys(&fake).pop().flatten().as_deref(), expected);
}

/// G1: the stored key of one group is useless for another group to which it is copied in the database.
#[tokio::test]
async fn g1_a_key_copied_from_another_group_fails_its_members_calls() {
    let (world, fake) = scripted().await;
    let (_, with_key, plain) = bank(&world).await;
    let copied = group_keys()
        .seal(with_key.group, "Bearer group-key", &FixedEntropy(7))
        .unwrap();
    store(&world, plain.group, &METHODS, copied).await;
    fake.take();
    let answer = world.ask(Some(&plain), "eth_syncing", json!([])).send().await;
    assert_eq!(answer.error(), (502, -32603), "{}", answer.text);
    fake.assert_silent();
    world.result(&with_key, "eth_syncing", json!([])).await;
}

/// A key that cannot be decrypted is not replaced by another key.
#[tokio::test]
async fn g1_an_unreadable_key_fails_its_members_calls_only() {
    let (world, fake) = scripted().await;
    let (_, with_key, plain) = bank(&world).await;
    store(&world, with_key.group, &METHODS, Secret::new("encv1:00")).await;
    fake.take();
    let answer = world.ask(Some(&with_key), "eth_syncing", json!([])).send().await;
    assert_eq!(answer.error(), (502, -32603), "{}", answer.text);
    fake.assert_silent();
    // Calls that need no node are answered.
    world.result(&with_key, "eth_chainId", json!([])).await;
    world.result(&plain, "eth_syncing", json!([])).await;
}

/// J8: the node counts calls by key, so only that key pauses.
#[tokio::test]
async fn j8_too_many_by_one_key_pauses_that_key_only() {
    let (world, fake) = scripted().await;
    let (bank, with_key, plain) = bank(&world).await;
    let colleague = world.person("colleague", bank, &METHODS, &[]).await;
    set_key(&world, colleague.group, &METHODS, "Bearer group-key").await;
    fake.take();
    fake.limit(Some("Bearer group-key"));
    let syncing = async |person: &TestUser| world.ask(Some(person), "eth_syncing", json!([])).send().await;
    assert_eq!(syncing(&with_key).await.error(), (429, -32005));
    assert_eq!(fake.take().len(), 1);
    // A trace, and a member of another group with the same key, wait as well; nothing more is forwarded.
    let call = json!([{"to": CONTRACT, "data": "0x01"}, "latest"]);
    assert_eq!(
        world.ask(Some(&with_key), "eth_call", call).send().await.error(),
        (429, -32005)
    );
    assert_eq!(syncing(&colleague).await.error(), (429, -32005));
    fake.assert_silent();
    // Callers with other keys continue.
    assert_eq!(syncing(&plain).await.status, 200);
    world.fixture.clock.pass(1);
    fake.limit(None);
    assert_eq!(syncing(&with_key).await.status, 200);
}
