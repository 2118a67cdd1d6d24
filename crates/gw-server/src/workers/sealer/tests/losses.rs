//! An older copy of a database, or a lost journal directory, is reported, and nothing that another place still has is
//! lost.

use super::{World, journal};
use crate::workers::journal_heads;
use gw_audit::{AccessRecord, ChainId, SecurityKind, Stream};
use std::{collections::HashMap, time::Duration};

on_both_engines! {
    rl3_a_restored_policy_store_is_reported_and_its_new_entries_are_sealed,
    rl6_an_older_audit_store_gets_every_entry_again,
    rl5_a_lost_journal_is_reported_once_with_its_numbers,
}

async fn rl3_a_restored_policy_store_is_reported_and_its_new_entries_are_sealed(world: World) {
    let mut sealer = world.sealer();
    for slug in ["one", "two", "three"] {
        world.mutate(slug).await;
    }
    world.seal(&mut sealer).await;
    // A backup from before "two" was sealed: the row of "two" still waits, and "three" does not exist.
    let restored = [
        "DELETE FROM organizations WHERE slug IN ('two', 'three')",
        "DELETE FROM audit_outbox WHERE id = 3",
        "UPDATE audit_outbox SET sealed_at = NULL WHERE id = 2",
        "UPDATE policy_store SET last_outbox_id = 2",
    ];
    world.in_policy(&restored).await;
    // With the running sealer: new ids follow the highest id that this instance knows.
    world.mutate("other").await;
    world.seal(&mut sealer).await;
    assert!(world.store.outbox(0, 10).await.unwrap().is_empty());
    assert_eq!(
        world.listed().await,
        [(1, None), (2, None), (3, None), (4, None)],
        "no id is issued twice"
    );
    // At the next start, new ids follow the highest sealed id.
    world.in_policy(&["UPDATE policy_store SET last_outbox_id = 1"]).await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    world.mutate("last").await;
    world.seal(&mut sealer).await;
    assert_eq!(world.listed().await.last(), Some(&(5, None)));
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, ["outbox_ids:lowered:2:3", "policy_store_rewound:2..5"]);
}

async fn rl6_an_older_audit_store_gets_every_entry_again(world: World) {
    let mut sealer = world.sealer();
    for slug in ["one", "two", "three", "four"] {
        world.mutate(slug).await;
        world.call();
        world.seal(&mut sealer).await;
    }
    let before = [world.hashes(Stream::Admin).await, world.hashes(Stream::Access).await];
    let listed = world.listed().await;
    for restart in [false, true] {
        // A backup from before the last two entries of each chain.
        let mut restored = Vec::new();
        for stream in ["admin", "access"] {
            let chain = format!("(SELECT id FROM chains WHERE stream = '{stream}')");
            restored.push(format!("DELETE FROM entries WHERE chain_id = {chain} AND seq >= 3"));
            restored.push(format!(
                "UPDATE chains SET size = 3, \
                 head_hash = (SELECT hash FROM entries WHERE chain_id = {chain} AND seq = 2), \
                 head_time = (SELECT created_at FROM entries WHERE chain_id = {chain} AND seq = 2) \
                 WHERE stream = '{stream}'"
            ));
        }
        world
            .in_audit(&restored.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
        if restart {
            sealer = world.sealer();
        } else {
            // A new record makes the running sealer notice that the store was restored.
            world.mutate("five").await;
            world.call();
        }
        world.seal(&mut sealer).await;
        world.seal(&mut sealer).await;
        let after = [world.hashes(Stream::Admin).await, world.hashes(Stream::Access).await];
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(
                before[..],
                after[..before.len()],
                "identical entries, restart: {restart}"
            );
        }
        let relisted = world.listed().await;
        assert_eq!((relisted.len(), &relisted[..4]), (5, &listed[..]));
    }
}

async fn rl5_a_lost_journal_is_reported_once_with_its_numbers(world: World) {
    let mut sealer = world.sealer();
    world.call();
    world.seal(&mut sealer).await;
    // Another writer numbered twelve records, none of which were sealed before its directory was lost.
    let lost_journal = journal(world.dir.path().join("gone"));
    let mut chain = None;
    for _ in 0..11 {
        let record = lost_journal.append(AccessRecord::new("eth_call", 200)).unwrap();
        chain = Some(ChainId {
            stream: record.stream,
            shard: lost_journal.shard(),
        });
    }
    let chain = chain.unwrap();
    world.store.note_journal_head(chain, 12).await.unwrap();
    let mut seen = HashMap::new();
    let mut trust = world.trust();
    for check in 0..4 {
        if check == 1 {
            // A new record of the numbers delays the report.
            tokio::time::sleep(Duration::from_millis(2)).await;
            world.store.note_journal_head(chain, 12).await.unwrap();
        }
        assert!(!trust.alarm.is_raised());
        journal_heads::report_lost_journals(&world.journal, &world.store, &world.audit, &trust, &mut seen)
            .await
            .unwrap();
        if trust.alarm.is_raised() {
            // The second check after the last record of the numbers.
            assert!(check >= 2);
            trust = world.trust();
        }
        let reported = world
            .store
            .journal_heads()
            .await
            .unwrap()
            .iter()
            .any(|head| head.reported_at.is_some());
        assert_eq!(reported, check >= 2, "check {check}");
    }
    // The event is recorded once, but every instance raises its alarm, also one that checks later.
    let later_trust = world.trust();
    journal_heads::report_lost_journals(&world.journal, &world.store, &world.audit, &later_trust, &mut seen)
        .await
        .unwrap();
    assert!(later_trust.alarm.is_raised());
    let findings = world.findings(SecurityKind::JournalLost).await;
    assert_eq!(findings, [format!("access/{}:0..12", lost_journal.shard())]);
}
