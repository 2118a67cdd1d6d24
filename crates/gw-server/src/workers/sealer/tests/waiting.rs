//! Records that no instance seals: they wait, and the wait is reported.

use super::{World, clock};
use crate::workers::sealer::health::StallReason;
use gw_audit::Stream;
use gw_types::Seconds;

on_both_engines! {
    rl1_records_stay_in_the_backlog_until_the_store_has_them,
    rl4_a_holder_that_does_not_seal_is_reported,
}

async fn rl1_records_stay_in_the_backlog_until_the_store_has_them(world: World) {
    let mut sealer = world.sealer();
    world.call();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    // A store that accepts entries but does not change the chain's size.
    let sqlite = world.audit_url.starts_with("sqlite");
    let lie: &[&str] = if sqlite {
        &[
            "CREATE TRIGGER lie AFTER UPDATE OF size ON chains WHEN NEW.size > OLD.size \
           BEGIN UPDATE chains SET size = OLD.size WHERE id = NEW.id; END",
        ]
    } else {
        &[
            "CREATE FUNCTION lie() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN NEW.size = OLD.size; RETURN NEW; END \
             $$",
            "CREATE TRIGGER lie BEFORE UPDATE OF size ON chains FOR EACH ROW EXECUTE FUNCTION lie()",
        ]
    };
    world.in_audit(lie).await;
    world.call();
    world.mutate("two").await;
    world.seal(&mut sealer).await;
    assert!(world.health.stall(Stream::Access).is_some() && world.health.stall(Stream::Admin).is_some());
    assert_eq!(world.store.outbox(0, 10).await.unwrap().len(), 1, "the row waits");
    assert!(world.journal.backlog().records > 0, "the record waits");
}

async fn rl4_a_holder_that_does_not_seal_is_reported(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let soon = clock().now().plus(Seconds(20)).micros();
    world
        .in_audit(&[&format!(
            "UPDATE chains SET holder = 'other', leased_until = {soon} WHERE stream = 'admin'"
        )])
        .await;
    world.mutate("two").await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(
        world.health.stall(Stream::Admin),
        None,
        "another instance may be about to seal the row"
    );
    world
        .in_policy(&["UPDATE audit_outbox SET created_at = created_at - 60000000"])
        .await;
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(Stream::Admin), Some(StallReason::HeldElsewhere));
}
