//! HD2: sends watched until their block is checked, suspensions, and quarantines.

use crate::world::{World, did, on_both_engines};
use gw_audit::{Action, ResourceType};
use gw_policy::{Snapshot, access::AuthorizedRuns, snapshot::AccountChange};
use gw_store::{
    Missing, StoreError,
    record::{NewContract, NewOrganization, NewUser, NewWatch, SendAccepted, SendRows, SendStart, Violation},
};
use gw_types::{Address, B256, Bytes, OrgId, Timestamp, U256, UserId};

on_both_engines! {
    hd2_a_send_is_watched_from_before_it_is_forwarded,
    hd28_a_finding_convicts_suspends_and_closes_once_and_is_cleared_with_a_reason,
    hd28_withheld_changes_are_released_dropped_and_counted_once,
    rt20_a_guard_outlives_its_subject,
}

const TX: B256 = B256::repeat_byte(0xaa);
const BLOCK: B256 = B256::repeat_byte(0xbb);
const WALLET: Address = Address::repeat_byte(0x11);
const LATCH: Address = Address::repeat_byte(0x22);
const CHILD: Address = Address::repeat_byte(0x33);

fn slot_change(before: u8, after: u8) -> AccountChange {
    let [before, after] = [before, after].map(B256::with_last_byte);
    AccountChange {
        slots: [(B256::ZERO, (before, after))].into(),
        ..AccountChange::default()
    }
}

fn paid(before: u64, after: u64) -> AccountChange {
    AccountChange {
        balance: Some((U256::from(before), U256::from(after))),
        ..AccountChange::default()
    }
}

fn created() -> AccountChange {
    AccountChange {
        created: true,
        code: Some(Bytes::new()),
        nonce: Some((0, 1)),
        ..AccountChange::default()
    }
}

async fn cast(world: &World) -> (OrgId, UserId) {
    let mut tx = world.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..Default::default()
        })
        .await
        .unwrap()
        .id;
    let new = NewUser {
        external_id: did("a"),
        kyc: true,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let user = tx.create_user(new).await.unwrap().id;
    tx.commit().await.unwrap();
    (org, user)
}

async fn start(world: &World, (org, user): (OrgId, UserId), tx_hash: Option<B256>, nonce: u64) -> SendRows {
    let mut tx = world.begin().await;
    let watch = Some(NewWatch {
        sender: WALLET,
        nonce,
        external_id: did("a"),
        orgs: vec![org],
        is_named: false,
        authorized_runs: Some(judged_runs()),
    });
    let (visible_to, reservations) = (Vec::new(), Vec::new());
    let rows = tx
        .start_send(SendStart {
            user,
            org,
            tx_hash,
            visible_to,
            reservations,
            watch,
        })
        .await
        .unwrap();
    tx.commit().await.unwrap();
    rows
}

fn judged_runs() -> AuthorizedRuns {
    AuthorizedRuns {
        block: BLOCK,
        number: 7,
        digests: vec![TX, BLOCK],
        may_vary: false,
        changes: Some([(LATCH, slot_change(0, 1))].into()),
    }
}

async fn watched(world: &World, above: u64) -> Vec<(Option<B256>, u64)> {
    let rows = world.store.read().watched_sends(above).await.unwrap();
    rows.into_iter().map(|row| (row.tx_hash, row.nonce)).collect()
}

async fn hd2_a_send_is_watched_from_before_it_is_forwarded(world: &World) {
    let cast = cast(world).await;
    let epoch = world.store.load().await.unwrap().epoch();
    let refused = start(world, cast, Some(TX), 1).await;
    assert_eq!(watched(world, u64::MAX).await, [(Some(TX), 1)]);
    let mut tx = world.begin().await;
    tx.refuse_send(refused).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(watched(world, 0).await, []);
    // Signed by the node: the hash arrives with its response.
    let rows = start(world, cast, None, u64::MAX).await;
    assert_eq!(watched(world, u64::MAX).await, [(None, u64::MAX)]);
    let mut tx = world.begin().await;
    tx.accept_send(SendAccepted {
        rows,
        tx_hash: TX,
        link: None,
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(watched(world, u64::MAX).await, [(Some(TX), u64::MAX)]);
    let sends = world.store.read().watched_sends(u64::MAX).await.unwrap();
    let mut tx = world.begin().await;
    tx.settle_watched(&[sends[0].id], None, 7).await.unwrap();
    tx.commit().await.unwrap();
    // Another instance may not have checked block 7 yet.
    assert_eq!((watched(world, 7).await.len(), watched(world, 6).await.len()), (0, 1));
    assert_eq!(world.store.load().await.unwrap().epoch(), epoch, "a watch is no policy");
    world.clock.pass(2 * 86_400);
    world.store.purge_expired().await.unwrap();
    assert_eq!(watched(world, 0).await, []);
}

fn finding(org: OrgId, tx_hash: B256) -> Violation {
    Violation {
        external_id: did("a"),
        org,
        sender: WALLET,
        tx_hash,
        block_hash: BLOCK,
        reason: "cross_org",
        block: 7,
        block_time: Timestamp::from_secs(1000),
        place: 2,
        logs: 3,
        changes: vec![(LATCH, slot_change(1, 2)), (WALLET, paid(10, 15)), (CHILD, created())],
        closed_to_side: vec![Address::ZERO],
        side: vec![OrgId::fixed(8)],
        wronged: vec![OrgId::fixed(9)],
        suspends: true,
    }
}

async fn record(world: &World, finding: &Violation) {
    let mut tx = world.begin().await;
    tx.record_finding(finding).await.unwrap();
    tx.commit().await.unwrap();
}

async fn hd28_a_finding_convicts_suspends_and_closes_once_and_is_cleared_with_a_reason(world: &World) {
    let (org, user) = cast(world).await;
    let mut tx = world.begin().await;
    tx.create_contract(NewContract::plain(org, LATCH, "latch".to_owned()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let before = world.store.outbox(0, 1000).await.unwrap().len();
    let finding = finding(org, TX);
    record(world, &finding).await;
    record(world, &finding).await;
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.is_suspended(user) && !snapshot.is_quarantined(LATCH) && !snapshot.is_quarantined(WALLET));
    assert!(
        !snapshot.is_quarantined(Address::ZERO),
        "it is closed to the sender's side only"
    );
    assert!(snapshot.is_closed_to(Address::ZERO, None, |member| member == OrgId::fixed(8)));
    assert_eq!(visible_values(&snapshot), (1, 10, true));
    assert_eq!(
        snapshot.shown_balance(WALLET, 6, U256::from(15)),
        U256::from(15),
        "before it"
    );
    let reads = world.store.read();
    let (suspended, closed) = (
        reads.list_suspensions().await.unwrap(),
        reads.list_quarantines().await.unwrap(),
    );
    let convicted = reads.list_convictions().await.unwrap();
    assert_eq!((convicted.len(), suspended.len(), closed.len()), (1, 1, 1));
    let withheld = reads.list_withheld().await.unwrap();
    let change_at = |address| withheld.iter().find(|row| row.address == address).unwrap();
    assert_eq!(
        (withheld.len(), change_at(LATCH).org, change_at(WALLET).org),
        (3, Some(org), None)
    );
    assert_eq!(change_at(LATCH).change, slot_change(1, 2));
    assert_eq!(
        (&suspended[0].external_id, suspended[0].conviction),
        (&did("a"), Some(convicted[0].id))
    );
    assert_eq!(closed[0].side, Some((did("a"), vec![OrgId::fixed(8)])));
    let mut tx = world.begin().await;
    tx.clear_conviction(convicted[0].id, None, "looked at").await.unwrap();
    tx.clear_suspension(suspended[0].id, "looked at").await.unwrap();
    tx.clear_quarantine(closed[0].id, "looked at").await.unwrap();
    let again = tx.clear_quarantine(closed[0].id, "looked at").await;
    assert!(
        matches!(again, Err(StoreError::NotFound(Missing::Quarantine))),
        "{again:?}"
    );
    let again = tx.clear_conviction(convicted[0].id, None, "looked at").await;
    assert!(
        matches!(again, Err(StoreError::NotFound(Missing::Conviction))),
        "{again:?}"
    );
    tx.commit().await.unwrap();
    // Another instance that checks the same block later does not repeat the consequences.
    record(world, &finding).await;
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.convictions(TX).is_empty() && !snapshot.is_suspended(user));
    assert_eq!(visible_values(&snapshot), (2, 15, false));
    assert_eq!(snapshot.contract(CHILD).map(|contract| contract.org), Some(org), "HD27");
    let reads = world.store.read();
    assert_eq!(
        (
            reads.list_suspensions().await.unwrap().len(),
            reads.list_quarantines().await.unwrap().len()
        ),
        (0, 0)
    );
    let entries = world.store.outbox(0, 1000).await.unwrap().split_off(before);
    let changes: Vec<_> = entries
        .iter()
        .map(|row| (row.entry.action, row.entry.resource_type))
        .collect();
    let (suspension, quarantine) = (ResourceType::Suspension, ResourceType::Quarantine);
    assert_eq!(
        changes,
        [
            (Action::Create, ResourceType::Conviction),
            (Action::Create, suspension),
            (Action::Create, quarantine),
            (Action::Create, ResourceType::Contract),
            (Action::Update, ResourceType::Conviction),
            (Action::Delete, suspension),
            (Action::Delete, quarantine),
        ]
    );
    let old = entries.last().and_then(|row| row.entry.old_value.clone()).unwrap();
    assert!(old.contains("looked at") && old.contains("cross_org"), "{old}");
    // In another block it is a new violation.
    record(
        world,
        &Violation {
            block_hash: B256::repeat_byte(0xcc),
            ..finding
        },
    )
    .await;
    assert_eq!(world.store.load().await.unwrap().convictions(TX).len(), 1);
}

/// Returns the visible values of a slot, a balance and code, where the chain has what the transaction left there.
fn visible_values(snapshot: &Snapshot) -> (u8, u64, bool) {
    let slot = snapshot.shown_slot(LATCH, B256::ZERO, 7, B256::with_last_byte(2));
    let balance = snapshot.shown_balance(WALLET, 7, U256::from(15));
    (slot[31], balance.to::<u64>(), snapshot.shown_code(CHILD, 7).is_some())
}

/// HD28, HD38: the owner of a contract releases the changes in it; a transaction that left the chain has no changes;
/// several senders of the same transaction do not count its changes twice.
async fn hd28_withheld_changes_are_released_dropped_and_counted_once(world: &World) {
    let (org, _) = cast(world).await;
    let mut tx = world.begin().await;
    tx.create_contract(NewContract::plain(org, LATCH, "latch".to_owned()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    record(world, &finding(org, TX)).await;
    record(
        world,
        &Violation {
            external_id: did("b"),
            ..finding(org, TX)
        },
    )
    .await;
    assert_eq!(
        visible_values(&world.store.load().await.unwrap()),
        (1, 10, true),
        "once"
    );
    let reads = world.store.read();
    let convicted = reads.list_convictions().await.unwrap();
    let first = convicted.iter().find(|row| row.external_id == did("a")).unwrap();
    let mut tx = world.begin().await;
    tx.clear_conviction(first.id, None, "looked at").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        visible_values(&world.store.load().await.unwrap()),
        (1, 10, true),
        "the other one withholds it"
    );
    let latch = reads
        .list_withheld()
        .await
        .unwrap()
        .into_iter()
        .find(|row| row.org == Some(org))
        .unwrap();
    let mut tx = world.begin().await;
    tx.release_change(latch.id, "ours").await.unwrap();
    let again = tx.release_change(latch.id, "ours").await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
    tx.commit().await.unwrap();
    assert_eq!(visible_values(&world.store.load().await.unwrap()), (2, 10, true));
    let mut tx = world.begin().await;
    tx.forget_changes(TX, Some(BLOCK)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        visible_values(&world.store.load().await.unwrap()),
        (2, 10, true),
        "it is still there"
    );
    let mut tx = world.begin().await;
    tx.forget_changes(TX, None).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(visible_values(&snapshot), (2, 15, false));
    assert!(!snapshot.withholds_state(u64::MAX));
}

/// RT20, HD37: suspensions and quarantines outlive the user and the organization they concern, and apply to the same
/// name again.
async fn rt20_a_guard_outlives_its_subject(world: &World) {
    let (org, user) = cast(world).await;
    let _rows = start(world, (org, user), Some(B256::repeat_byte(0xdd)), 5).await;
    record(world, &finding(org, TX)).await;
    // Clearing one leaves the other in force.
    record(world, &finding(org, B256::repeat_byte(0xab))).await;
    let mut tx = world.begin().await;
    tx.delete_user(user).await.unwrap();
    tx.delete_organization(org).await.unwrap();
    tx.commit().await.unwrap();
    let watched = world.store.read().watched_sends(u64::MAX).await.unwrap();
    assert_eq!(watched.len(), 1, "the send is still looked at");
    assert_eq!(
        (&watched[0].external_id, watched[0].org, &watched[0].orgs),
        (&did("a"), org, &vec![org])
    );
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("a"),
        kyc: true,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let again = tx.create_user(new).await.unwrap().id;
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let closed = |snapshot: &Snapshot| snapshot.is_closed_to(Address::ZERO, Some(again), |_| false);
    assert!(snapshot.is_suspended(again) && closed(&snapshot) && snapshot.withholds_state(7));
    assert_eq!(snapshot.convictions(TX).len(), 1);
    let reads = world.store.read();
    let first = reads
        .list_suspensions()
        .await
        .unwrap()
        .into_iter()
        .find(|row| row.tx_hash == TX)
        .unwrap();
    let rows = reads.list_quarantines().await.unwrap();
    let wallet = rows.into_iter().find(|row| row.tx_hash == TX).unwrap();
    let mut tx = world.begin().await;
    tx.clear_suspension(first.id, "looked at").await.unwrap();
    tx.clear_quarantine(wallet.id, "looked at").await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert!(
        snapshot.is_suspended(again) && closed(&snapshot),
        "the second finding holds"
    );
}
