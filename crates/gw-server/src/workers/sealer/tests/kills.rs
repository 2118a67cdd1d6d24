//! The sealer ends at each of its awaits, as when the process is killed there.

use super::*;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

on_both_engines! {
    rl4_a_sealer_killed_at_any_await_loses_and_repeats_nothing,
    rl3_mutations_beside_a_sealer_that_begins_anew_raise_no_alarm,
    rl2_what_an_earlier_process_left_unsigned_is_signed_at_once,
}

/// Polls a future so many times, and drops it where it stands then; whether it came to its end.
async fn killed_after(polls: usize, work: impl Future) -> bool {
    let (mut work, mut left) = (pin!(work), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        work.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// What the security stream tells apart from the logins of the test.
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
        let ended = killed_after(polls, join_all(work)).await;
        drop(sealer);

        let mut next = world.sealer();
        world.seal(&mut next).await;
        assert_eq!(events_but_logins(&world).await, [""; 0], "killed after {polls} polls");
        for stream in [Stream::Access, Stream::Security] {
            let seqs: Vec<_> = world.rows(stream).await.iter().map(|row| row.seq).collect();
            let due: Vec<_> = (0..=u64::try_from(polls).unwrap()).collect();
            assert_eq!(seqs, due, "{stream}, killed after {polls} polls");
        }
        let due: Vec<_> = (1..=i64::try_from(polls).unwrap()).map(|id| (id, None)).collect();
        assert_eq!(world.listed().await, due, "killed after {polls} polls");
        assert!(
            world.store.outbox(0, 10).await.unwrap().is_empty(),
            "killed after {polls} polls"
        );
        if ended {
            break;
        }
    }
    assert!(polls > 10, "it waits more often than that");
}

/// RL3: where the policy store stands is compared with what was sealed of it while mutations go on.
async fn rl3_mutations_beside_a_sealer_that_begins_anew_raise_no_alarm(world: World) {
    let done = AtomicBool::new(false);
    let mutations = async {
        for round in 0..60 {
            world.mutate(&format!("org-{round}")).await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let sealers = async {
        while !done.load(Ordering::Relaxed) {
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

/// RL2: an end that was sealed and not signed when the process was killed would count as never signed, were it left until the
/// next call and another interval.
async fn rl2_what_an_earlier_process_left_unsigned_is_signed_at_once(world: World) {
    let mut killed = world.sealer();
    world.call();
    world.mutate("one").await;
    world.seal(&mut killed).await;
    drop(killed);
    let chains = world.audit.chains().await.unwrap();
    assert_eq!(chains.len(), 2);
    // The interval is an hour; the administrative chain is signed with its genesis, which has no time.
    let (access, _) = chains.iter().find(|(chain, _)| chain.stream == Stream::Access).unwrap();
    assert_eq!(world.audit.last_checkpoint(*access).await.unwrap(), None);
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    for (chain, _) in chains {
        assert!(world.audit.last_checkpoint(chain).await.unwrap().is_some(), "{chain}");
    }
}
