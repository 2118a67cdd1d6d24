//! Shared infrastructure and system toggles: rows, audit entries and snapshot.

use crate::world::{World, did, on_both_engines};
use gw_audit::{Action, ResourceType};
use gw_evm::Method;
use gw_policy::snapshot::Organization;
use gw_policy::snapshot::SystemToggle;
use gw_store::{
    Conflict, Missing, StoreError,
    record::{AccessInput, LinkProof, NewGroup, NewUser, SharedInfraInput},
};
use gw_types::{Address, B256, Seconds};

on_both_engines! {
    x6_an_address_is_shared_once,
    d3_a_broken_tag_counts_again_with_a_new_pin,
    hd2_creation_code_is_approved_once_and_withdrawn,
    hd10_a_shared_address_is_nobodys_wallet,
    x9_a_toggle_is_overridden_for_a_while,
    g1_denied_methods_are_taken_out_of_the_group_alone,
}

const PLACE: Address = Address::repeat_byte(7);

fn input(codehash: Option<B256>) -> SharedInfraInput {
    SharedInfraInput {
        name: "router".into(),
        description: String::new(),
        codehash,
        implementation_codehash: None,
    }
}

async fn tagged(world: &World, codehash: Option<B256>) {
    let mut tx = world.begin().await;
    tx.create_shared_infra(PLACE, input(codehash)).await.unwrap();
    tx.commit().await.unwrap();
}

async fn x6_an_address_is_shared_once(world: &World) {
    tagged(world, None).await;
    let mut tx = world.begin().await;
    let twice = tx.create_shared_infra(PLACE, input(None)).await;
    assert!(
        matches!(twice, Err(StoreError::Conflict(Conflict::SharedInfra))),
        "{twice:?}"
    );
    tx.rollback().await.unwrap();
    let mut tx = world.begin().await;
    tx.delete_shared_infra(PLACE).await.unwrap();
    let missing = tx.delete_shared_infra(PLACE).await;
    assert!(
        matches!(missing, Err(StoreError::NotFound(Missing::SharedInfra))),
        "{missing:?}"
    );
    tx.commit().await.unwrap();
    let changes: Vec<_> = world
        .store
        .outbox(0, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.entry.action, row.entry.resource_type))
        .collect();
    let resource = ResourceType::SharedInfrastructure;
    assert_eq!(changes, [(Action::Create, resource), (Action::Delete, resource)]);
    assert!(world.store.load().await.unwrap().shared(PLACE).is_none());
}

async fn hd2_creation_code_is_approved_once_and_withdrawn(world: &World) {
    // keccak256 of 0x6080.
    let hash: B256 = "0x1a578b7a4b0b5755db6d121b4118d4bc68fe170dca840c59bc922f14175a76b0"
        .parse()
        .unwrap();
    let mut tx = world.begin().await;
    let approved = tx.approve_code(hash, 2, "token 1.0".into()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.store.read().list_approved_code().await.unwrap(), [approved]);
    assert!(world.store.load().await.unwrap().approves_creation(&[0x60, 0x80, 0xff]));
    let mut tx = world.begin().await;
    let twice = tx.approve_code(hash, 2, "again".into()).await;
    assert!(
        matches!(twice, Err(StoreError::Conflict(Conflict::ApprovedCode))),
        "{twice:?}"
    );
    tx.rollback().await.unwrap();
    let mut tx = world.begin().await;
    tx.withdraw_approval(hash).await.unwrap();
    let missing = tx.withdraw_approval(hash).await;
    assert!(
        matches!(missing, Err(StoreError::NotFound(Missing::ApprovedCode))),
        "{missing:?}"
    );
    tx.commit().await.unwrap();
    assert!(!world.store.load().await.unwrap().approves_creation(&[0x60, 0x80, 0xff]));
    let rows = world.store.outbox(0, 10).await.unwrap();
    let changes: Vec<_> = rows
        .into_iter()
        .map(|row| (row.entry.action, row.entry.resource_type))
        .collect();
    let resource = ResourceType::ApprovedCode;
    assert_eq!(changes, [(Action::Create, resource), (Action::Delete, resource)]);
}

async fn d3_a_broken_tag_counts_again_with_a_new_pin(world: &World) {
    let (pin, other) = (B256::repeat_byte(1), B256::repeat_byte(2));
    tagged(world, Some(pin)).await;
    let counts = async || world.store.load().await.unwrap().shared(PLACE).is_some();
    let broken = async |codehash| {
        let mut tx = world.begin().await;
        tx.void_shared_infra_pin(PLACE, codehash).await.unwrap();
        tx.commit().await.unwrap();
    };
    broken(pin).await;
    assert!(counts().await, "that is the pinned code");
    broken(other).await;
    assert!(!counts().await);
    broken(other).await;
    let mut tx = world.begin().await;
    tx.update_shared_infra(
        PLACE,
        SharedInfraInput {
            name: "renamed".into(),
            ..input(Some(pin))
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert!(!counts().await, "a new name is no new pin");
    let mut tx = world.begin().await;
    let after = tx.pin_shared_infra(PLACE, other, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((after.codehash, after.broken_codehash), (Some(other), None));
    assert!(counts().await);
    let entries = world.store.outbox(0, 10).await.unwrap();
    let changed: Vec<bool> = entries
        .iter()
        .filter(|row| row.entry.action == Action::Update)
        .map(|row| {
            row.entry
                .new_value
                .as_deref()
                .unwrap()
                .contains(r#""codehash_changed":true"#)
        })
        .collect();
    assert_eq!(changed, [false, false, true], "found broken once, renamed, pinned anew");
}

async fn hd10_a_shared_address_is_nobodys_wallet(world: &World) {
    tagged(world, None).await;
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("a"),
        kyc: true,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let user = tx.create_user(new).await.unwrap().id;
    let linked = tx.link_address(user, PLACE, LinkProof::Challenge).await;
    assert!(linked.is_err(), "{linked:?}");
}

async fn x9_a_toggle_is_overridden_for_a_while(world: &World) {
    let toggle = SystemToggle::IntraOrgGrantTracing;
    let mut tx = world.begin().await;
    let until = tx.now().plus(Seconds(60));
    tx.set_toggle(toggle, true, "an audit".into(), until).await.unwrap();
    tx.set_toggle(toggle, true, "a longer audit".into(), until)
        .await
        .unwrap();
    let now = tx.now();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(snapshot.toggle(toggle, now), Some(true));
    assert_eq!(snapshot.toggle(toggle, until), None);
    assert_eq!(snapshot.toggle(SystemToggle::EthCallTracing, now), None);
    assert_eq!(
        world.store.read().find_toggle(toggle).await.unwrap().unwrap().reason,
        "a longer audit"
    );
    let mut tx = world.begin().await;
    assert_eq!(tx.clear_toggles("restart").await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(world.store.load().await.unwrap().toggle(toggle, now), None);
    let entries = world.store.outbox(0, 10).await.unwrap();
    let changes: Vec<_> = entries
        .iter()
        .map(|row| (row.entry.action, row.entry.resource_type))
        .collect();
    let resource = ResourceType::Setting;
    assert_eq!(
        changes,
        [
            (Action::Update, resource),
            (Action::Update, resource),
            (Action::Delete, resource)
        ]
    );
}

async fn g1_denied_methods_are_taken_out_of_the_group_alone(world: &World) {
    let mut tx = world.begin().await;
    let group = tx
        .create_group(NewGroup::plain(Organization::DEFAULT, "g", "g"))
        .await
        .unwrap()
        .id;
    let all = AccessInput {
        allowed_methods: vec!["*".into()],
        denied_methods: vec!["ETH_getLogs".into()],
        ..Default::default()
    };
    let stored = tx.set_access(group, all).await.unwrap();
    assert_eq!(stored.denied_methods, ["eth_getLogs"], "canonical");
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let methods = snapshot.access(group).unwrap().methods;
    assert!(methods.has(Method::Call) && !methods.has(Method::GetLogs));
}
