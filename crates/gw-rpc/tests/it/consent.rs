//! A call accepts an invitation only if it names the organization (HD32, decision 62).

use crate::{
    live::{Chain, TOKEN, holder},
    world::{World, account, scripted, signed},
};
use gw_store::record::{AccessInput, NewGroup, NewMembership, NewUser};
use gw_testkit::{FakeNode, TestUser};
use gw_types::{Address, Bytes, Claim, ExternalId, GroupId, OrgId};
use serde_json::json;

const CONTRACT: Address = Address::repeat_byte(0x11);

/// An organization, and a group of it with every method.
async fn bank(world: &World, slug: &str) -> (OrgId, GroupId) {
    let org = world.fixture.create_org(slug).await;
    let access = AccessInput {
        allowed_methods: vec!["*".to_owned()],
        claims: [Claim::Deploy].into_iter().collect(),
        ..AccessInput::default()
    };
    let group = world
        .fixture
        .change(async |tx| {
            let group = tx
                .create_group(NewGroup::plain(org, "clients", "Clients"))
                .await
                .unwrap()
                .id;
            tx.set_access(group, access).await.unwrap();
            group
        })
        .await;
    (org, group)
}

/// A new user with pending memberships in these groups, one after the other.
async fn invited(world: &World, groups: &[GroupId]) -> TestUser {
    let name = ExternalId::new("did:test:carol").unwrap();
    let new = NewUser {
        external_id: name.clone(),
        kyc: true,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let id = world
        .fixture
        .change(async |tx| tx.create_user(new).await.unwrap().id)
        .await;
    for group in groups {
        world.fixture.clock.pass(1);
        let new = NewMembership {
            user: id,
            group: *group,
            expires_at: None,
        };
        drop(
            world
                .fixture
                .change(async |tx| tx.offer_membership(new).await.unwrap())
                .await,
        );
    }
    let (token, token_id) = world.fixture.issue_token(&name);
    TestUser {
        id,
        name,
        group: groups[0],
        token,
        token_id,
    }
}

fn has_accepted(world: &World, person: &TestUser, org: OrgId) -> bool {
    world
        .fixture
        .feed
        .pin()
        .snapshot
        .has_accepted(person.id, org, gw_types::Clock::now(&world.fixture.clock))
}

async fn with_contract(slug: &str, world: &World, fake: &FakeNode, at: Address) -> (OrgId, GroupId) {
    let (org, group) = bank(world, slug).await;
    world.contract(org, at, None, &[group]).await;
    fake.set_result("eth_getBalance", json!("0x7"));
    (org, group)
}

/// HD32: a call that names no organization accepts no membership, whichever membership permits it.
#[tokio::test]
async fn hd32_an_unnamed_call_accepts_nothing() {
    let (world, fake) = scripted().await;
    let (first, firsts) = with_contract("first", &world, &fake, Address::repeat_byte(0x22)).await;
    let (second, seconds) = with_contract("second", &world, &fake, CONTRACT).await;
    let carol = invited(&world, &[firsts, seconds]).await;
    let call = json!([{"to": CONTRACT, "input": "0x01020304"}, "latest"]);
    // Only the second organization permits the call.
    world
        .ask(Some(&carol), "eth_call", call.clone())
        .send()
        .await
        .assert_denied();
    assert_eq!(
        world
            .ask(Some(&carol), "eth_getBalance", json!([TOKEN, "latest"]))
            .send()
            .await
            .status,
        200
    );
    let (raw, hash) = signed(&account(0), 0, Some(Address::repeat_byte(5)), 1, Bytes::new());
    fake.set_result("eth_sendRawTransaction", json!(hash));
    assert_eq!(
        world
            .ask(Some(&carol), "eth_sendRawTransaction", json!([raw]))
            .send()
            .await
            .status,
        200
    );
    // Nor does a deployment, although her group of deployers is pending as well.
    let (raw, hash) = signed(&account(0), 1, None, 0, Bytes::from_static(&[0x60]));
    fake.set_result("eth_sendRawTransaction", json!(hash));
    world
        .ask(Some(&carol), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await;
    world.settle().await;
    for org in [first, second] {
        assert!(!has_accepted(&world, &carol, org));
    }
    // A call that names the second organization accepts that membership, and no longer counts on the first.
    let named = world
        .ask(Some(&carol), "eth_call", call)
        .header("x-org-id", &second.to_string());
    assert_eq!(named.send().await.status, 200);
    assert!(has_accepted(&world, &carol, second) && !has_accepted(&world, &carol, first));
}

/// HD35: a filter ends with the membership under which it was created, and the next membership does not revive it.
#[tokio::test]
async fn hd35_a_filter_does_not_come_back_with_a_new_membership() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    let poll = || world.ask(Some(&holder), "eth_getFilterChanges", json!([filter])).send();
    assert_eq!(poll().await.status, 200);
    let membership = world.fixture.feed.pin().snapshot.memberships(holder.id)[0];
    world
        .fixture
        .change(async |tx| {
            tx.remove_membership(membership.id).await.unwrap();
            let new = NewMembership {
                user: holder.id,
                group: membership.group,
                expires_at: None,
            };
            tx.add_membership(new).await.unwrap();
        })
        .await;
    let again = poll().await;
    assert_eq!(again.body["error"]["message"], "filter not found", "{}", again.text);
    // A new filter works.
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    assert_eq!(
        world.result(&holder, "eth_getFilterChanges", json!([filter])).await,
        json!([])
    );
}
