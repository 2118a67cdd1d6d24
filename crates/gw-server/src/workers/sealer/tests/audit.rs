//! An attacker who can write only to the audit database is reported, and does not stop the sealing of genuine records.

use super::{TAMPERED, World, sign};
use crate::{
    system::SystemEntropy,
    trust::AuditTrust,
    workers::sealer::{ADMIN_CHAIN, health::StallReason},
};
use gw_audit::{
    Chain, ChainId, Content, EncodedRecord, Head, Header, OrgHead, OutboxFault, Record, SecurityEvent, SecurityKind,
    StoredEntry, Stream,
};
use std::sync::Arc;

on_both_engines! {
    rl2_an_entry_that_no_mutation_wrote_is_reported_and_never_signed,
    rl2_an_entry_rewritten_before_it_was_signed_is_reported_and_sealed_again,
    rl3_rows_below_a_forged_maximum_are_sealed_and_listed,
    rl4_a_chain_out_of_step_does_not_stop_the_others,
    rl4_a_rehashed_suffix_of_equal_size_is_reported,
    rl4_a_rehashed_admin_chain_raises_the_alarm,
    rl4_a_rehashed_security_chain_raises_the_alarm,
    rl4_a_forged_lease_does_not_stop_sealing,
}

/// A forged entry with correct hashes and the next outbox id.
async fn rl2_an_entry_that_no_mutation_wrote_is_reported_and_never_signed(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let rows = world.rows(Stream::Admin).await;
    let last = rows.last().unwrap();
    let header = Header::read(&last.bytes).unwrap().0;
    let mut record = match StoredEntry::new(last.bytes.clone(), last.openings.clone())
        .unwrap()
        .content()
        .unwrap()
    {
        Content::Record(Record::Admin(entry)) => entry,
        other => panic!("{other:?}"),
    };
    (record.org_id, record.outbox_id) = (None, Some(2));
    let head = Head {
        size: header.seq + 1,
        hash: last.hash,
        time: header.time,
    };
    let mut chain = Chain::resume(header.chain, head, []);
    let forged = chain
        .entry(EncodedRecord::new(&Record::Admin(record), &SystemEntropy), header.time)
        .unwrap();
    let (bytes, openings, hash) = (
        world.blob(&forged.bytes),
        world.blob(&forged.openings),
        world.blob(forged.hash.as_slice()),
    );
    let insert = format!(
        "INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at, outbox_id, store_id) \
         SELECT chain_id, seq + 1, {hash}, {bytes}, {openings}, kind, created_at, 2, store_id FROM entries WHERE id = \
         {}",
        last.id
    );
    let end = format!("UPDATE chains SET size = size + 1, head_hash = {hash} WHERE stream = 'admin'");
    world.in_audit(&[&insert, &end]).await;
    world.mutate("two").await;
    world.seal(&mut sealer).await;
    world.seal(&mut sealer).await;
    assert!(
        world.store.outbox(0, 10).await.unwrap().is_empty(),
        "genuine rows are still sealed"
    );
    let admin = ChainId {
        stream: Stream::Admin,
        shard: header.chain.shard,
    };
    sign(&mut sealer).await;
    let signed = world.audit.last_checkpoint(admin).await.unwrap();
    let size = signed
        .as_deref()
        .and_then(|note| note.lines().nth(1))
        .map_or(0, |size| size.parse().unwrap());
    assert!(
        size <= header.seq + 1,
        "no signature covers the forged entry: {signed:?}"
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&"foreign_entry:2".to_owned()), "{findings:?}");
}

/// No signed root covers the entries after the last signature. The kept rows of the policy store show their content.
async fn rl2_an_entry_rewritten_before_it_was_signed_is_reported_and_sealed_again(world: World) {
    for slug in ["one", "two"] {
        world.mutate(slug).await;
    }
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    // Replace the last entry by a forged one with a correct hash.
    let rows = world.rows(Stream::Admin).await;
    let [.., before, last] = rows.as_slice() else {
        panic!("two entries and a genesis")
    };
    let mut record = match StoredEntry::new(last.bytes.clone(), last.openings.clone())
        .unwrap()
        .content()
        .unwrap()
    {
        Content::Record(Record::Admin(entry)) => entry,
        other => panic!("{other:?}"),
    };
    record.resource_name = Some("evil".to_owned());
    let header = Header::read(&last.bytes).unwrap().0;
    let head = Head {
        size: header.seq,
        hash: before.hash,
        time: header.time,
    };
    let org = header.org.map(|org| {
        (
            org.id,
            OrgHead {
                size: org.seq,
                hash: org.prev,
            },
        )
    });
    let mut chain = Chain::resume(header.chain, head, org);
    let forged = chain
        .entry(EncodedRecord::new(&Record::Admin(record), &SystemEntropy), header.time)
        .unwrap();
    let (bytes, openings, hash) = (
        world.blob(&forged.bytes),
        world.blob(&forged.openings),
        world.blob(forged.hash.as_slice()),
    );
    let entry = format!(
        "UPDATE entries SET bytes = {bytes}, openings = {openings}, hash = {hash} WHERE id = {}",
        last.id
    );
    let end = format!("UPDATE chains SET head_hash = {hash} WHERE stream = 'admin'");
    world.in_audit(&[&entry, &end]).await;

    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, None), (2, Some(OutboxFault::IdReused))]
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    let expected = ["entry_rewritten:2".to_owned(), "outbox_fault:id_reused:2".to_owned()];
    assert!(findings.starts_with(&expected), "{findings:?}");
}

async fn rl3_rows_below_a_forged_maximum_are_sealed_and_listed(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world
        .in_audit(&["UPDATE entries SET outbox_id = 1000000 WHERE outbox_id = 1"])
        .await;
    for restart in [false, true] {
        if restart {
            sealer = world.sealer();
        }
        world.mutate(if restart { "three" } else { "two" }).await;
        world.seal(&mut sealer).await;
        assert!(world.store.outbox(0, 10).await.unwrap().is_empty(), "nothing waits");
    }
    let ids: Vec<i64> = world.listed().await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [TAMPERED, 2, 3]);
}

async fn rl4_a_chain_out_of_step_does_not_stop_the_others(world: World) {
    let mut sealer = world.sealer();
    world.call();
    world.journal.append(SecurityEvent::new(SecurityKind::Login)).unwrap();
    world.seal(&mut sealer).await;
    let sealed = world.rows(Stream::Access).await.len();
    // Somebody adds an entry that this journal never wrote.
    world
        .in_audit(&["UPDATE chains SET size = size + 1 WHERE stream = 'access'"])
        .await;
    world.call();
    world.journal.append(SecurityEvent::new(SecurityKind::Login)).unwrap();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(Stream::Access), Some(StallReason::Foreign));
    assert_eq!(world.rows(Stream::Access).await.len(), sealed);
    // The alarm about the access chain stands beside them, if its seal was slow enough.
    assert_eq!(world.sealed_reasons(SecurityKind::Login).await.len(), 2, "both logins");
    assert_eq!(world.listed().await, [(1, None)]);
    // After the repair, sealing continues without a restart.
    world
        .in_audit(&["UPDATE chains SET size = size - 1 WHERE stream = 'access'"])
        .await;
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(Stream::Access), None);
    assert_eq!(world.rows(Stream::Access).await.len(), sealed + 1);
}

async fn rl4_a_rehashed_suffix_of_equal_size_is_reported(world: World) {
    let mut sealer = world.sealer();
    world.call();
    world.seal(&mut sealer).await;
    let other_hash =
        "UPDATE chains SET head_hash = (SELECT head_hash FROM chains WHERE stream = 'admin') WHERE stream = 'access'";
    world.in_audit(&[other_hash]).await;
    world.call();
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(Stream::Access), Some(StallReason::Foreign));
    // The alarm is raised once, while the service runs.
    world.seal(&mut sealer).await;
    let chain = ChainId {
        stream: Stream::Access,
        shard: world.journal.shard(),
    };
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&format!("fork {chain}")), "{findings:?}");
}

async fn rl4_a_rehashed_admin_chain_raises_the_alarm(world: World) {
    let trust = rehash(&world, ADMIN_CHAIN).await;
    assert!(trust.alarm.is_raised());
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&format!("fork {ADMIN_CHAIN}")), "{findings:?}");
}

/// The alarm cannot be sealed in the chain that it is about. It waits in the journal, and `/ready` shows it.
async fn rl4_a_rehashed_security_chain_raises_the_alarm(world: World) {
    let chain = ChainId {
        stream: Stream::Security,
        shard: world.journal.shard(),
    };
    let trust = rehash(&world, chain).await;
    assert!(trust.alarm.is_raised());
    world.journal.sync().unwrap();
    let waiting = world.journal.unsealed(Stream::Security, 100).unwrap();
    let reasons: Vec<_> = waiting
        .into_iter()
        .filter_map(|record| {
            let entry = StoredEntry::new(record.bytes, record.openings).unwrap();
            match entry.content().unwrap() {
                Content::Record(Record::Security(event)) => event.reason,
                _ => None,
            }
        })
        .collect();
    assert!(
        reasons.iter().any(|reason| *reason == format!("fork {chain}")),
        "{reasons:?}"
    );
}

/// Seals entries of all streams, changes the stored head of a chain, and seals again: the chain stalls, the others go
/// on. Returns the trust of that sealer.
async fn rehash(world: &World, chain: ChainId) -> Arc<AuditTrust> {
    let trust = world.trust();
    let mut sealer = world.sealer_with(Arc::clone(&trust));
    let record = async || {
        world.call();
        world.journal.append(SecurityEvent::new(SecurityKind::Login)).unwrap();
    };
    record().await;
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let other_hash = format!(
        "UPDATE chains SET head_hash = (SELECT head_hash FROM chains WHERE stream = 'access') WHERE stream = '{}'",
        chain.stream
    );
    world.in_audit(&[&other_hash]).await;
    let sealed = world.rows(Stream::Access).await.len();
    record().await;
    world.mutate("two").await;
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(chain.stream), Some(StallReason::Foreign));
    assert_eq!(
        world.rows(Stream::Access).await.len(),
        sealed + 1,
        "the other chains go on"
    );
    trust
}

async fn rl4_a_forged_lease_does_not_stop_sealing(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world
        .in_audit(&["UPDATE chains SET holder = 'nobody', leased_until = 9000000000000000000, fence = fence + 1"])
        .await;
    world.mutate("two").await;
    world.call();
    world.seal(&mut sealer).await;
    world.seal(&mut sealer).await;
    assert_eq!(world.listed().await, [(1, None), (2, None)]);
    assert!(world.rows(Stream::Access).await.len() > 1);
}
