//! The sealer is dropped at each of its await points, as if the process were killed there.

use super::World;
use crate::workers::sealer::worker::ChainWorker;
use futures_util::future::join_all;
use gw_audit::{Content, Record, SecurityEvent, SecurityKind, StoredEntry, Stream};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

on_both_engines! {
    rl4_a_sealer_killed_at_any_await_loses_and_repeats_nothing,
    rl3_mutations_during_restarts_of_the_sealer_raise_no_alarm,
    rl2_entries_that_an_earlier_process_left_unsigned_are_signed_at_once,
}

/// Polls a future at most `polls` times, then drops it. Returns whether it completed.
async fn killed_after(polls: usize, work: impl Future) -> bool {
    let (mut work, mut polls_left) = (pin!(work), polls);
    poll_fn(|context| {
        if polls_left == 0 {
            return Poll::Ready(false);
        }
        polls_left -= 1;
        work.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// The events of the security stream except the logins of the test.
async fn events_but_logins(world: &World) -> Vec<String> {
    let events = world.rows(Stream::Security).await.into_iter().filter_map(|row| {
        let entry = StoredEntry::new(row.bytes, row.openings).unwrap();
        match entry.content().unwrap() {
            Content::Record(Record::Security(event)) => Some(event),
            _ => None,
        }
    });
    let events = events.filter(|event| event.kind != SecurityKind::Login);
    events
        .map(|event| format!("{} {}", event.kind, event.reason.unwrap_or_default()))
        .collect()
}

/// RL4, rule 13: a crash at any point neither loses nor repeats an entry.
async fn rl4_a_sealer_killed_at_any_await_loses_and_repeats_nothing(world: World) {
    let mut polls = 0;
    loop {
        polls += 1;
        world.call();
        world.journal.append(SecurityEvent::new(SecurityKind::Login)).unwrap();
        world.mutate(&format!("org-{polls}")).await;
        world.journal.sync().unwrap();
        let mut sealer = world.sealer();
        let work = sealer.chains.iter_mut().map(async |chain| {
            chain.step().await;
            chain.sign().await.unwrap();
        });
        let completed = killed_after(polls, join_all(work)).await;
        drop(sealer);

        let mut next = world.sealer();
        world.seal(&mut next).await;
        assert_eq!(events_but_logins(&world).await, [""; 0], "killed after {polls} polls");
        for stream in [Stream::Access, Stream::Security] {
            let seqs: Vec<_> = world.rows(stream).await.iter().map(|row| row.seq).collect();
            let expected: Vec<_> = (0..=u64::try_from(polls).unwrap()).collect();
            assert_eq!(seqs, expected, "{stream}, killed after {polls} polls");
        }
        let expected: Vec<_> = (1..=i64::try_from(polls).unwrap()).map(|id| (id, None)).collect();
        assert_eq!(world.listed().await, expected, "killed after {polls} polls");
        assert!(
            world.store.outbox(0, 10).await.unwrap().is_empty(),
            "killed after {polls} polls"
        );
        if completed {
            break;
        }
    }
    assert!(polls > 10, "the sealer has more than ten await points");
}

/// RL3: a new sealer compares the policy store with its sealed entries correctly while mutations continue.
async fn rl3_mutations_during_restarts_of_the_sealer_raise_no_alarm(world: World) {
    let finished = AtomicBool::new(false);
    let mutations = async {
        for round in 0..60 {
            world.mutate(&format!("org-{round}")).await;
        }
        finished.store(true, Ordering::Relaxed);
    };
    let sealers = async {
        while !finished.load(Ordering::Relaxed) {
            let mut sealer = world.sealer();
            join_all(sealer.chains.iter_mut().map(ChainWorker::step)).await;
        }
    };
    tokio::join!(mutations, sealers);
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(events_but_logins(&world).await, [""; 0]);
    assert_eq!(world.listed().await, (1..=60).map(|id| (id, None)).collect::<Vec<_>>());
}

/// RL2: verification would report entries that a killed process sealed but did not sign, if the next sealer waited for
/// a new call and another interval before it signed them.
async fn rl2_entries_that_an_earlier_process_left_unsigned_are_signed_at_once(world: World) {
    let mut killed = world.sealer();
    world.call();
    world.mutate("one").await;
    world.seal(&mut killed).await;
    drop(killed);
    let chains = world.audit.chains().await.unwrap();
    assert_eq!(chains.len(), 2);
    // The interval is an hour, so the access chain is not signed. The administrative chain is, because its genesis has
    // time zero.
    let (access, _) = chains.iter().find(|(chain, _)| chain.stream == Stream::Access).unwrap();
    assert_eq!(world.audit.last_checkpoint(*access).await.unwrap(), None);
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    for (chain, _) in chains {
        assert!(world.audit.last_checkpoint(chain).await.unwrap().is_some(), "{chain}");
    }
}
