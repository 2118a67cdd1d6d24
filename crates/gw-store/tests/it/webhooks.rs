//! Webhooks: events in the transactions of their transitions, and their delivery by several workers.

use crate::{
    disclosure::{approve, cipher, people},
    world::{World, on_both_engines},
};
use gw_policy::disclosure::GrantLimits;
use gw_store::{
    Store, StoreError,
    record::{
        DeliveryFailure, DeliveryResult, DisclosureApproval, MAX_WAITING_EVENTS, NewOrganization, WebhookClaim,
        WebhookEventType,
    },
};
use gw_types::{Clock, OrgId, SealedWebhookSecret, Seconds};

on_both_engines! {
    an_event_is_written_with_its_transition,
    every_transition_has_its_event,
    an_event_is_claimed_by_one_worker,
    a_failed_attempt_is_repeated_and_a_delivered_event_is_gone,
    the_oldest_of_too_many_events_is_dropped,
    a_deleted_webhook_leaves_no_events,
    the_changes_of_a_webhook_are_audited,
}

const SECRET: SealedWebhookSecret = SealedWebhookSecret([7; 60]);
const LEASE: Seconds = Seconds(60);

async fn add_webhook(world: &World, org: OrgId) {
    let mut tx = world.begin().await;
    tx.set_webhook(org, "https://bank.example/hook", Some(SECRET))
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// The types of the waiting events, the oldest first.
async fn waiting(world: &World) -> Vec<String> {
    world
        .texts(
            "SELECT event_type FROM webhook_events ORDER BY created_at, event_type",
            "event_type",
        )
        .await
}

async fn add_test(world: &World, org: OrgId) {
    let mut tx = world.begin().await;
    tx.add_webhook_test(org).await.unwrap();
    tx.commit().await.unwrap();
}

async fn claim(store: &Store) -> Option<WebhookClaim> {
    store.claim_webhook_events(&[], 10, 5, LEASE).await.unwrap()
}

/// Without a webhook there is no event; a rollback leaves none; with the commit it is there.
async fn an_event_is_written_with_its_transition(world: &World) {
    let people = people(world).await;
    let request = async |commits: bool| {
        let mut tx = world.begin().await;
        tx.create_disclosure_request(people.request()).await.unwrap();
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
    };
    request(true).await;
    assert!(waiting(world).await.is_empty(), "the organization has no webhook");
    add_webhook(world, people.org).await;
    request(false).await;
    assert!(waiting(world).await.is_empty(), "the transition was rolled back");
    request(true).await;
    assert_eq!(waiting(world).await, ["disclosure.requested"]);
    // Another organization's webhook is not told.
    let mut tx = world.begin().await;
    let other = NewOrganization {
        slug: "rival".into(),
        ..NewOrganization::default()
    };
    let other = tx.create_organization(other).await.unwrap().id;
    tx.commit().await.unwrap();
    add_webhook(world, other).await;
    request(true).await;
    let status = world.store.read().find_webhook(other).await.unwrap().unwrap();
    assert_eq!(status.waiting, 0);
}

async fn every_transition_has_its_event(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    let limits = GrantLimits::default();
    let approval = DisclosureApproval::default();
    let create = async |expires_in_hours| {
        let mut new = people.request();
        new.expires_in_hours = expires_in_hours;
        let mut tx = world.begin().await;
        let request = tx.create_disclosure_request(new).await.unwrap();
        tx.commit().await.unwrap();
        world.clock.pass(1);
        request.id
    };
    let approved = create(None).await;
    let granted = approve(world, approved, people.owner, &approval).await.unwrap();
    world.clock.pass(1);
    let rejected = create(None).await;
    let mut tx = world.begin().await;
    tx.reject_disclosure(rejected, people.owner, None).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(1);
    let withdrawn = create(None).await;
    let mut tx = world.begin().await;
    tx.delete_disclosure_request(withdrawn).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(1);
    let mut tx = world.begin().await;
    tx.grant_disclosure(people.request(), &approval, limits, &cipher())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(1);
    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(granted.grant.id, None).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(1);
    // A second revocation changes nothing.
    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(granted.grant.id, None).await.unwrap();
    tx.commit().await.unwrap();
    create(Some(1)).await;
    world.clock.pass(2 * 86_400);
    let mut tx = world.begin().await;
    tx.sweep_disclosures(Seconds(30 * 86_400), 10).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        waiting(world).await,
        [
            "disclosure.requested",
            "disclosure.approved",
            "disclosure.requested",
            "disclosure.rejected",
            "disclosure.requested",
            "disclosure.withdrawn",
            "disclosure.granted",
            "disclosure.revoked",
            "disclosure.requested",
            "disclosure.grant_expired",
            "disclosure.request_expired",
        ]
    );
    let claimed = world
        .store
        .claim_webhook_events(&[], 10, 100, LEASE)
        .await
        .unwrap()
        .unwrap();
    let mut statuses = Vec::new();
    for id in &claimed.events[0].1 {
        let delivery = world
            .store
            .find_claimed_webhook_event(claimed.id, *id)
            .await
            .unwrap()
            .unwrap();
        let event = delivery.event;
        if event.kind == WebhookEventType::Revoked {
            assert_eq!((event.request, event.grant), (Some(approved), Some(granted.grant.id)));
        }
        statuses.push((event.kind, event.status.unwrap()));
    }
    statuses.sort_by_key(|(kind, _)| WebhookEventType::ALL.iter().position(|one| one == kind));
    statuses.dedup();
    let statuses: Vec<_> = statuses.iter().map(|(_, status)| status.as_str()).collect();
    let expected = [
        "pending", "approved", "rejected", "deleted", "expired", "approved", "revoked", "expired",
    ];
    assert_eq!(statuses, expected);
}

/// Two workers at once deliver an event once. A worker that dies leaves its events to the other after the lease.
async fn an_event_is_claimed_by_one_worker(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    for _ in 0..3 {
        add_test(world, people.org).await;
    }
    let other = world.another_store(2).await;
    let (one, two) = tokio::join!(claim(&world.store), claim(&other));
    let events = |claim: &Option<WebhookClaim>| -> Vec<_> {
        let events = claim.iter().flat_map(|claim| &claim.events);
        events.flat_map(|(_, ids)| ids.clone()).collect()
    };
    let mut all = [events(&one), events(&two)].concat();
    all.sort();
    let claimed = all.len();
    all.dedup();
    assert_eq!((claimed, all.len()), (3, 3), "each is claimed once");
    assert_eq!((claim(&world.store).await, claim(&other).await), (None, None));

    let dead = one.or(two).unwrap();
    let id = dead.events[0].1[0];
    let stale = world
        .store
        .find_claimed_webhook_event(dead.id, id)
        .await
        .unwrap()
        .unwrap();
    world.clock.pass(61);
    assert!(
        world
            .store
            .find_claimed_webhook_event(dead.id, id)
            .await
            .unwrap()
            .is_none()
    );
    let taken_over = claim(&other).await.unwrap();
    assert_eq!(taken_over.events[0].1.len(), 3);
    // What the first worker says afterwards counts no more.
    let record = world
        .store
        .record_webhook_delivery(dead.id, &stale.event, DeliveryResult::Delivered);
    record.await.unwrap();
    assert_eq!(waiting(world).await.len(), 3);
    // An organization that is being delivered to is left out.
    world.clock.pass(61);
    let busy = other.claim_webhook_events(&[people.org], 10, 5, LEASE).await.unwrap();
    assert_eq!(busy, None);
}

async fn a_failed_attempt_is_repeated_and_a_delivered_event_is_gone(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    add_test(world, people.org).await;
    let attempt = async |result: DeliveryResult| {
        let claimed = claim(&world.store).await.unwrap();
        let id = claimed.events[0].1[0];
        let delivery = world
            .store
            .find_claimed_webhook_event(claimed.id, id)
            .await
            .unwrap()
            .unwrap();
        let recorded = world.store.record_webhook_delivery(claimed.id, &delivery.event, result);
        recorded.await.unwrap();
        delivery
    };
    let retry_at = world.clock.now().plus(Seconds(5));
    let first = attempt(DeliveryResult::Retry(Some(DeliveryFailure::Status(500)), retry_at)).await;
    assert_eq!((first.event.attempts, &*first.url), (0, "https://bank.example/hook"));
    assert_eq!(claim(&world.store).await, None, "the pause is not over");
    let status = async || world.store.read().find_webhook(people.org).await.unwrap().unwrap();
    let failed = status().await;
    assert_eq!(failed.waiting, 1);
    assert_eq!(failed.webhook.last_failure.unwrap().1, DeliveryFailure::Status(500));
    world.clock.pass(5);
    let second = attempt(DeliveryResult::Delivered).await;
    assert_eq!((second.event.id, second.event.attempts), (first.event.id, 1));
    let delivered = status().await;
    assert_eq!(delivered.waiting, 0);
    assert_eq!(delivered.webhook.last_success_at, Some(world.clock.now()));
    add_test(world, people.org).await;
    attempt(DeliveryResult::Dropped(Some(DeliveryFailure::Timeout))).await;
    let dropped = status().await;
    assert_eq!(dropped.waiting, 0);
    assert_eq!(dropped.webhook.last_failure.unwrap().1, DeliveryFailure::Timeout);
}

async fn the_oldest_of_too_many_events_is_dropped(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    let mut tx = world.begin().await;
    let first = tx.add_webhook_test(people.org).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(1);
    let mut tx = world.begin().await;
    for _ in 1..MAX_WAITING_EVENTS {
        tx.add_webhook_test(people.org).await.unwrap();
    }
    tx.commit().await.unwrap();
    let count = async |id: &str| {
        let sql = format!("SELECT count(*) AS n FROM webhook_events WHERE CAST(created_at AS text) = '{id}'");
        world.rows(&sql, "n").await[0]
    };
    let oldest = world.rows("SELECT min(created_at) AS t FROM webhook_events", "t").await[0];
    assert_eq!(count(&oldest.to_string()).await, 1);
    assert_eq!(waiting(world).await.len(), 1000);
    add_test(world, people.org).await;
    assert_eq!(waiting(world).await.len(), 1000, "not 1001");
    assert_eq!(count(&oldest.to_string()).await, 0, "the oldest is gone: {first}");
}

async fn a_deleted_webhook_leaves_no_events(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    add_test(world, people.org).await;
    let claimed = claim(&world.store).await.unwrap();
    let mut tx = world.begin().await;
    tx.delete_webhook(people.org).await.unwrap();
    tx.commit().await.unwrap();
    assert!(waiting(world).await.is_empty());
    let id = claimed.events[0].1[0];
    let delivery = world.store.find_claimed_webhook_event(claimed.id, id).await.unwrap();
    assert!(delivery.is_none(), "a claimed event is not delivered either");
    let mut tx = world.begin().await;
    let missing = tx.delete_webhook(people.org).await;
    assert!(matches!(missing, Err(StoreError::NotFound(_))));
    let missing = tx.add_webhook_test(people.org).await;
    assert!(matches!(missing, Err(StoreError::NotFound(_))));
    let missing = tx.set_webhook(people.org, "https://bank.example", None).await;
    assert!(
        matches!(missing, Err(StoreError::NotFound(_))),
        "nothing to create it with"
    );
    tx.rollback().await.unwrap();
    // With its organization, too.
    add_webhook(world, people.org).await;
    add_test(world, people.org).await;
    let mut tx = world.begin().await;
    tx.create_disclosure_request(people.request()).await.unwrap();
    tx.delete_organization(people.org).await.unwrap();
    tx.commit().await.unwrap();
    assert!(waiting(world).await.is_empty());
    assert!(world.store.read().find_webhook(people.org).await.unwrap().is_none());
}

/// The entries show the address and that the secret changed, never the secret.
async fn the_changes_of_a_webhook_are_audited(world: &World) {
    let people = people(world).await;
    add_webhook(world, people.org).await;
    let mut tx = world.begin().await;
    tx.set_webhook(people.org, "https://bank.example/new", None)
        .await
        .unwrap();
    tx.set_webhook(
        people.org,
        "https://bank.example/new",
        Some(SealedWebhookSecret([8; 60])),
    )
    .await
    .unwrap();
    tx.add_webhook_test(people.org).await.unwrap();
    tx.delete_webhook(people.org).await.unwrap();
    tx.commit().await.unwrap();
    let entries = "FROM audit_outbox WHERE resource_type = 'webhook' ORDER BY id";
    let actions = world.texts(&format!("SELECT action {entries}"), "action").await;
    assert_eq!(actions, ["create", "update", "update", "create", "delete"]);
    let images = world
        .texts(&format!("SELECT coalesce(new_value, '-') AS image {entries}"), "image")
        .await;
    assert_eq!(images[1], r#"{"secret":{"set":true},"url":"https://bank.example/new"}"#);
    assert!(
        images[2].contains(r#""secret":{"changed":true,"set":true}"#),
        "{}",
        images[2]
    );
    assert!(images[3].contains("test_event_id"), "{}", images[3]);
}
