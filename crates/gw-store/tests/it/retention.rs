//! RL13, spec/70 rules 23 and 24: which entries are pruned, which stay, and what remains for verification.

use crate::{
    audit::{HERE, LIFE, SALTS, Writer, call, writer},
    world::{World, did, on_both_engines},
};
use gw_audit::{
    AccessRecord, Action, Anchor, Chain, Checkpoint, CheckpointKey, EncodedRecord, Hash, Outcome, Record, ResourceType,
    SYSTEM_RETENTION, SecurityEvent, SecurityKind, SendIntent, SendOutcome, Stream, tree,
    verify::{ChainVerifier, Report, Row, TrustedKeys},
};
use gw_store::{
    Actor, Missing, StoreError,
    audit::{PruneBatch, Pruned, StopReason},
    record::{HoldScope, Holds, PruneReason},
};
use gw_types::{B256, Claims, Clock, OrgId, Seconds, Timestamp};

on_both_engines! {
    rl13_a_pruned_chain_verifies_and_proves_as_before,
    rl13_what_is_young_held_open_or_unsigned_stays,
    rl13_what_was_tampered_with_is_evidence_and_stays,
    rl13_a_chain_goes_on_behind_an_organization_that_was_pruned,
    rl13_a_prune_is_told_of_once_by_the_normal_path,
    rl13_one_instance_has_the_turn,
    rl13_legal_holds_are_audited,
    rl13_a_hidden_hold_stops_every_removal,
    rl13_checkpoints_that_anchors_stand_on_stay,
    rl13_a_turn_that_nobody_could_have_taken_is_taken_over,
    rl13_a_genesis_without_a_time_is_as_old_as_the_entry_behind_it,
    rl9_a_changed_column_beside_an_anchor_is_seen,
    rl9_a_malformed_anchor_stops_neither_sealing_nor_pages_nor_other_prunes,
}

const CLUSTER: &str = "cluster";
const DAY: i64 = 86_400;

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[9; 32])
}

/// Signs a checkpoint of the sealed chain.
async fn sign(writer: &Writer) {
    let chain = writer.claim.chain;
    let size = writer.chain.head().size;
    let leaves = writer.audit.leaves(chain, 0, 1 << 20).await.unwrap();
    let leaves = match leaves.len() as u64 == size {
        true => leaves,
        false => {
            let behind = writer.audit.leaves(chain, leaves.len() as u64, 1 << 20).await.unwrap();
            [leaves, behind].concat()
        }
    };
    assert_eq!(leaves.len() as u64, size);
    let checkpoint = Checkpoint::new(chain.origin(CLUSTER), size, tree::root(&leaves));
    writer
        .audit
        .insert_checkpoint(chain, size, &checkpoint.sign(&key()))
        .await
        .unwrap();
}

async fn prune(writer: &Writer, before: Timestamp, limit: u64, holds: &Holds) -> Pruned {
    let keys = [key().public()];
    let batch = PruneBatch {
        reason: PruneReason::Ttl,
        bound: "24h",
        before,
        limit,
        holds,
        cluster: CLUSTER,
        key: &key(),
        keys: &keys,
    };
    writer.audit.prune(writer.claim.chain, &batch).await.unwrap()
}

async fn verify(writer: &Writer) -> (Anchor, Report) {
    let chain = writer.claim.chain;
    let keys = [key().public()];
    let stored = writer.audit.anchor(chain).await.unwrap().unwrap();
    let anchor = Anchor::open(&stored.bytes, &stored.note, chain, CLUSTER, &keys).unwrap();
    assert_eq!(anchor.head.size, stored.size);
    let notes = writer.audit.checkpoints(chain).await.unwrap();
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let frontier = anchor.frontier().unwrap();
    let mut verifier = ChainVerifier::resume(&anchor.chain(), frontier, trust, notes.iter().map(String::as_str));
    for row in writer.audit.rows(chain, anchor.head.size, 10_000).await.unwrap() {
        assert!(row.columns_agree);
        let (hash, bytes, openings) = (Some(row.hash), &*row.bytes, &*row.openings);
        verifier.row(&Row::new(row.seq, hash, bytes, openings));
    }
    let head = writer.audit.head(chain).await.unwrap();
    (anchor, verifier.finish(head))
}

async fn filled(world: &World, count: usize) -> Writer {
    let mut writer = writer(world, Stream::Access).await;
    for n in 0..count {
        let org_id = (n % 3 != 0).then(|| OrgId::fixed(n as u128 % 3));
        writer.append(
            world,
            AccessRecord {
                org_id,
                ..call("eth_call", 200)
            },
        );
        world.clock.pass(1);
    }
    writer.seal().await;
    writer
}

async fn rl13_a_pruned_chain_verifies_and_proves_as_before(world: &World) {
    let begin = world.clock.now();
    let mut writer = filled(world, 700).await;
    sign(&writer).await;
    let all_leaves: Vec<Hash> = writer.audit.leaves(writer.claim.chain, 0, 1000).await.unwrap();
    let mut orgs = writer.audit.org_heads(writer.claim.chain).await.unwrap();
    orgs.sort_by_key(|(id, _)| *id);
    world.clock.pass(2 * DAY);
    writer.append(world, call("eth_getLogs", 200));
    writer.seal().await;
    sign(&writer).await;

    let no_holds = Holds::default();
    let mut pruned_count = 0;
    // Batches that end within a tile of hashes, at its end, and beyond it.
    for (limit, count) in [(100, 100), (156, 156), (1000, 145)] {
        let pruned = prune(
            &writer,
            Timestamp::from_micros(begin.micros() + 400_000_000),
            limit,
            &no_holds,
        )
        .await;
        assert_eq!(pruned.count, count, "limit {limit}");
        assert_eq!(pruned.stopped.is_some(), limit == 1000);
        pruned_count += count;
        let (anchor, report) = verify(&writer).await;
        assert_eq!((anchor.head.size, report.findings), (pruned_count, Vec::new()));
        assert_eq!(report.scanned, 702 - pruned_count);
        for from in [0, 1, 255, 256, 300, 400] {
            let leaves = writer.audit.leaves(writer.claim.chain, from, 50).await.unwrap();
            let from = usize::try_from(from).unwrap();
            assert!(
                !leaves.is_empty() && leaves == all_leaves[from..from + leaves.len()],
                "hashes stay, from {from}"
            );
        }
    }
    let mut still = writer.audit.org_heads(writer.claim.chain).await.unwrap();
    still.sort_by_key(|(id, _)| *id);
    still.retain(|(id, _)| *id != HERE);
    assert_eq!(still, orgs, "enough to continue the chain");
    assert_eq!(
        prune(&writer, begin, 1000, &no_holds).await,
        Pruned {
            count: 0,
            stopped: Some(StopReason::Young)
        }
    );
}

async fn rl13_what_is_young_held_open_or_unsigned_stays(world: &World) {
    let begin = world.clock.now();
    let mut writer = writer(world, Stream::Access).await;
    let (intent, outcome) = send(1);
    let (open, _) = send(2);
    let other = AccessRecord {
        org_id: Some(OrgId::fixed(5)),
        ..call("eth_call", 200)
    };
    let records: [Record; 6] = [
        intent.into(),
        call("a", 200).into(),
        outcome.into(),
        other.into(),
        open.into(),
        call("b", 200).into(),
    ];
    for record in records {
        world.clock.pass(1);
        writer.append(world, record);
    }
    writer.seal().await;
    let no_holds = Holds::default();
    let late = begin.plus(Seconds(10 * 86_400));
    world.clock.pass(DAY - 60);
    let young = Pruned {
        count: 0,
        stopped: Some(StopReason::Young),
    };
    assert_eq!(
        prune(&writer, late, 100, &no_holds).await,
        young,
        "what a journal may have to seal again"
    );
    world.clock.pass(2 * DAY);
    let unsigned = Pruned {
        count: 0,
        stopped: Some(StopReason::Unsigned),
    };
    assert_eq!(prune(&writer, late, 100, &no_holds).await, unsigned);
    sign(&writer).await;

    let stream: Holds = [HoldScope::Stream(Stream::Access)].into_iter().collect();
    let held = |count| Pruned {
        count,
        stopped: Some(StopReason::Held),
    };
    assert_eq!(prune(&writer, late, 100, &stream).await, held(0));
    let org: Holds = [HoldScope::Organization(OrgId::fixed(5))].into_iter().collect();
    assert_eq!(
        prune(&writer, late, 100, &org).await,
        held(4),
        "up to the organization's first entry"
    );
    let open = |count| Pruned {
        count,
        stopped: Some(StopReason::OpenSend { seq: 5 }),
    };
    assert_eq!(
        prune(&writer, late, 100, &no_holds).await,
        open(1),
        "a send without outcome"
    );
    assert_eq!(prune(&writer, late, 100, &no_holds).await, open(0));
    writer.append(world, send(2).1);
    writer.seal().await;
    let pruned = prune(&writer, late, 100, &no_holds).await;
    assert_eq!(
        pruned,
        Pruned {
            count: 2,
            stopped: Some(StopReason::Young)
        },
        "its outcome is known, and young"
    );
    assert_eq!(verify(&writer).await.1.findings, []);
}

fn send(n: u8) -> (SendIntent, SendOutcome) {
    let hash = B256::repeat_byte(n);
    let intent = SendIntent {
        hash,
        subject: Some(did("a")),
        org_id: HERE,
        sender: None,
        nonce: 1,
        visible_to: Vec::new(),
        claims: Claims::default(),
        creates: Vec::new(),
    };
    (
        intent,
        SendOutcome {
            hash,
            org_id: HERE,
            outcome: Outcome::Accepted,
            node_code: None,
        },
    )
}

async fn rl13_what_was_tampered_with_is_evidence_and_stays(world: &World) {
    let writer = filled(world, 20).await;
    sign(&writer).await;
    world.clock.pass(2 * DAY);
    let late = world.clock.now();
    let no_holds = Holds::default();
    for (change, back) in [
        ("status_code = 500", "status_code = 200"),
        ("created_at = created_at - 1", "created_at = created_at + 1"),
        ("method = 'eth_send'", "method = 'eth_call'"),
    ] {
        world
            .tamper_audit(&format!("UPDATE entries SET {change} WHERE seq = 7"))
            .await;
        let stays = Pruned {
            count: 0,
            stopped: Some(StopReason::Tampered { seq: 7 }),
        };
        assert_eq!(prune(&writer, late, 100, &no_holds).await, stays, "{change}");
        world
            .tamper_audit(&format!("UPDATE entries SET {back} WHERE seq = 7"))
            .await;
    }
    // A completely rehashed history does not produce the signed root.
    world
        .tamper_audit("UPDATE checkpoints SET note = replace(note, 'access', 'acces5')")
        .await;
    let stays = Pruned {
        count: 0,
        stopped: Some(StopReason::Tampered { seq: 0 }),
    };
    assert_eq!(prune(&writer, late, 100, &no_holds).await, stays, "no signature");
    world
        .tamper_audit("UPDATE checkpoints SET note = replace(note, 'acces5', 'access')")
        .await;
    world.tamper_audit("DELETE FROM entries WHERE seq = 3").await;
    assert!(matches!(
        prune(&writer, late, 2, &no_holds).await,
        Pruned {
            count: 0,
            stopped: Some(StopReason::Tampered { .. })
        }
    ));
    assert_eq!(
        writer.audit.anchor(writer.claim.chain).await.unwrap(),
        None,
        "nothing was removed"
    );
}

async fn rl13_a_chain_goes_on_behind_an_organization_that_was_pruned(world: &World) {
    let mut writer = filled(world, 6).await;
    sign(&writer).await;
    world.clock.pass(2 * DAY);
    assert_eq!(
        prune(&writer, world.clock.now(), 100, &Holds::default()).await.count,
        7,
        "all of it"
    );
    let chain = writer.claim.chain;
    let head = writer.audit.head(chain).await.unwrap().unwrap();
    let orgs = writer.audit.org_heads(chain).await.unwrap();
    let mut resumed = Chain::resume(chain, head, orgs);
    let record = AccessRecord {
        org_id: Some(OrgId::fixed(1)),
        ..call("eth_call", 200)
    };
    let entry = resumed
        .entry(EncodedRecord::new(&record.into(), &SALTS), world.clock.now())
        .unwrap();
    assert_eq!(entry.header.org.unwrap().seq, 2, "the organization's numbers go on");
    writer.chain = resumed;
    writer.tail.push(gw_store::audit::ToSeal { entry });
    writer.seal().await;
    sign(&writer).await;
    let (_, report) = verify(&writer).await;
    assert_eq!((report.findings, report.scanned), (Vec::new(), 1));
}

async fn rl13_a_prune_is_told_of_once_by_the_normal_path(world: &World) {
    let writer = filled(world, 30).await;
    sign(&writer).await;
    world.clock.pass(2 * DAY);
    let no_holds = Holds::default();
    for _ in 0..3 {
        prune(&writer, world.clock.now(), 10, &no_holds).await;
    }
    let prunes = writer.audit.unlogged_prunes().await.unwrap();
    assert_eq!(prunes.len(), 1, "batches that follow each other are one prune");
    assert_eq!((prunes[0].first_seq, prunes[0].size), (0, 30));
    let mut tx = world.store.begin(&Actor::named(SYSTEM_RETENTION)).await.unwrap();
    tx.note_prune(&prunes[0]);
    tx.commit().await.unwrap();
    writer.audit.mark_prune_logged(&prunes[0]).await.unwrap();
    assert_eq!(writer.audit.unlogged_prunes().await.unwrap(), []);
    let waiting = world.store.outbox(0, 10).await.unwrap();
    let entry = &waiting.last().unwrap().entry;
    assert_eq!(
        (entry.action, entry.resource_type),
        (Action::PruneAccess, ResourceType::Audit)
    );
    assert_eq!(entry.actor_external_id.as_deref(), Some(SYSTEM_RETENTION));
    let new_value = entry.new_value.as_deref().unwrap();
    for member in [
        "\"reason\":\"ttl\"",
        "\"deleted_count\":30",
        "\"retention\":\"24h\"",
        "lowest_id",
        "highest_id",
    ] {
        assert!(new_value.contains(member), "{member} in {new_value}");
    }
    for member in ["new_anchor_hash", "cutoff"] {
        assert!(new_value.contains(member), "{member} in {new_value}");
    }
    // Later removals are a separate prune.
    prune(&writer, world.clock.now(), 10, &no_holds).await;
    assert_eq!(writer.audit.unlogged_prunes().await.unwrap()[0].first_seq, 30);
}

async fn rl13_one_instance_has_the_turn(world: &World) {
    let audit = world.audit().await;
    assert!(audit.take_turn("retention", "one", LIFE).await.unwrap());
    assert!(!audit.take_turn("retention", "two", LIFE).await.unwrap());
    assert!(audit.take_turn("retention", "one", LIFE).await.unwrap(), "kept");
    assert!(audit.take_turn("other", "two", LIFE).await.unwrap());
    world.pass_for_leases(31).await;
    assert!(audit.take_turn("retention", "two", LIFE).await.unwrap());
    assert!(!audit.take_turn("retention", "one", LIFE).await.unwrap());
}

async fn rl13_legal_holds_are_audited(world: &World) {
    let mut tx = world.begin().await;
    let hold = tx.place_hold(HoldScope::Organization(HERE), "case 7").await.unwrap();
    tx.place_hold(HoldScope::Stream(Stream::Security), "case 8")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let holds = world.store.read().holds().await.unwrap();
    assert!(holds.keep(Stream::Access, Some(HERE)) && holds.keep(Stream::Security, None));
    assert!(!holds.keep(Stream::Access, None) && !holds.keep(Stream::Admin, Some(OrgId::fixed(1))));
    let mut tx = world.begin().await;
    assert_eq!(tx.clear_legal_hold(hold.id, "closed").await.unwrap(), hold);
    let again = tx.clear_legal_hold(hold.id, "closed").await;
    assert!(matches!(again, Err(StoreError::NotFound(Missing::LegalHold))));
    tx.commit().await.unwrap();
    assert_eq!(world.store.read().list_holds().await.unwrap().len(), 1);
    let entries = world.store.outbox(0, 10).await.unwrap();
    let changes: Vec<_> = entries
        .iter()
        .map(|row| (row.entry.action, row.entry.resource_type))
        .collect();
    let audit = |action| (action, ResourceType::Audit);
    assert_eq!(
        changes,
        [audit(Action::Create), audit(Action::Create), audit(Action::Revoke)]
    );
    assert!(
        entries[2].entry.old_value.as_deref().unwrap().contains("closed"),
        "why it was lifted"
    );
}

/// Rule 24: what hides the entry that placed a hold also stops pruning and erasure.
async fn rl13_a_hidden_hold_stops_every_removal(world: &World) {
    let mut tx = world.begin().await;
    let hold = tx
        .place_hold(HoldScope::Stream(Stream::Access), "case 7")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut admin = writer(world, Stream::Admin).await;
    crate::audit::seal_outbox(world, &mut admin, 100).await;
    world
        .tamper(&["DELETE FROM legal_holds", "DELETE FROM audit_outbox"])
        .await;
    let keys = [key().public()];
    let known = async || admin.audit.known_holds(&world.store, CLUSTER, &keys).await;
    assert_eq!(known().await.unwrap().changed, [hold.id]);
    world
        .tamper_audit("UPDATE entries SET resource_type = 'user' WHERE resource_type = 'audit'")
        .await;
    let holds = known().await.unwrap();
    assert!(
        holds.changed == [hold.id] && holds.holds.keep(Stream::Access, None),
        "the hashed bytes count, not the columns"
    );
    world
        .tamper(&["CREATE INDEX lie ON legal_holds (placed_by) WHERE placed_by <> ''"])
        .await;
    assert!(
        matches!(known().await, Err(StoreError::SchemaChanged(names)) if names.contains("index lie on legal_holds"))
    );
    world.tamper(&["DROP INDEX lie"]).await;
    world
        .tamper_audit("CREATE INDEX lie ON entries (kind) WHERE seq <> 1")
        .await;
    assert!(matches!(known().await, Err(StoreError::SchemaChanged(names)) if names.contains("index lie on entries")));
    world.tamper_audit("DROP INDEX lie").await;
    known().await.unwrap();
    world.tamper_audit("DELETE FROM entries WHERE seq = 1").await;
    assert!(matches!(known().await, Err(StoreError::Row { table: "entries", .. })));
}

async fn rl13_checkpoints_that_anchors_stand_on_stay(world: &World) {
    let mut writer = writer(world, Stream::Security).await;
    for _ in 0..5 {
        for _ in 0..10 {
            writer.append(world, SecurityEvent::new(SecurityKind::Login));
        }
        writer.seal().await;
        sign(&writer).await;
    }
    world.clock.pass(2 * DAY);
    prune(&writer, world.clock.now(), 15, &Holds::default()).await;
    let first = writer.audit.unlogged_prunes().await.unwrap().remove(0);
    writer.audit.mark_prune_logged(&first).await.unwrap();
    prune(&writer, world.clock.now(), 20, &Holds::default()).await;
    // The checkpoints at 11 and 31 are pruned and no anchor refers to them; the two anchors refer to 21 and 41.
    assert_eq!(writer.audit.thin_checkpoints(writer.claim.chain).await.unwrap(), 2);
    assert_eq!(writer.audit.checkpoints(writer.claim.chain).await.unwrap().len(), 3);
    assert_eq!(verify(&writer).await.1.findings, []);
    writer.audit.give_back_space().await.unwrap();
}

/// RL13: no lease lasts until the end of time.
async fn rl13_a_turn_that_nobody_could_have_taken_is_taken_over(world: &World) {
    let audit = world.audit().await;
    assert!(audit.take_turn("retention", "one", LIFE).await.unwrap());
    assert!(!audit.take_turn("retention", "two", LIFE).await.unwrap());
    world
        .tamper_audit("UPDATE leases SET holder = 'evil', leased_until = 9223372036854775807")
        .await;
    assert!(
        audit.take_turn("retention", "two", LIFE).await.unwrap(),
        "no instance takes a turn for so long"
    );
    assert!(!audit.take_turn("retention", "one", LIFE).await.unwrap());
}

/// Spec/70 rule 6: the genesis names cluster, format and key; this also holds for chains started with time zero.
async fn rl13_a_genesis_without_a_time_is_as_old_as_the_entry_behind_it(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    let id = writer.claim.chain;
    let genesis = gw_audit::Genesis::new(id.shard, "cluster", [3; 32]);
    let mut bytes = Vec::new();
    let (chain, _) = Chain::begin(id, &genesis, Timestamp::from_micros(0), &mut bytes);
    let entry = gw_audit::StoredEntry::new(bytes, Vec::new()).unwrap();
    (writer.chain, writer.tail) = (chain, vec![gw_store::audit::ToSeal { entry }]);
    writer.seal().await;
    sign(&writer).await;
    let no_holds = Holds::default();
    let pruned = prune(&writer, world.clock.now(), 100, &no_holds).await;
    assert_eq!(
        (pruned.count, pruned.stopped),
        (0, Some(StopReason::Young)),
        "a genesis alone"
    );
    world.clock.pass(DAY);
    writer.append(world, call("eth_call", 200));
    writer.seal().await;
    sign(&writer).await;
    let pruned = prune(&writer, world.clock.now(), 100, &no_holds).await;
    assert_eq!(
        (pruned.count, pruned.stopped),
        (0, Some(StopReason::Young)),
        "younger entries stand behind it"
    );
    world.clock.pass(2 * DAY);
    assert_eq!(prune(&writer, world.clock.now(), 100, &no_holds).await.count, 2);
}

/// A chain that was pruned up to its middle.
async fn pruned(world: &World) -> Writer {
    let mut writer = filled(world, 300).await;
    sign(&writer).await;
    world.clock.pass(2 * DAY);
    writer.append(world, call("eth_getLogs", 200));
    writer.seal().await;
    sign(&writer).await;
    assert_eq!(
        prune(
            &writer,
            world.clock.now().minus(Seconds(86_400)),
            1000,
            &Holds::default()
        )
        .await
        .count,
        301
    );
    writer
}

async fn rl9_a_changed_column_beside_an_anchor_is_seen(world: &World) {
    let mut writer = pruned(world).await;
    let chain = writer.claim.chain;
    let seen = async || {
        let rows = writer.audit.anchor_rows(chain).await.unwrap();
        let columns = rows
            .iter()
            .all(|row| row.columns_agree && row.entry_agrees != Some(false));
        columns && writer.audit.keeps_hashes_of(chain, 301).await.unwrap()
    };
    assert!(seen().await, "as it was pruned");
    for (change, undo) in [
        ("anchors SET reason = 'x'", "anchors SET reason = 'ttl'"),
        ("anchors SET bound = ''", "anchors SET bound = '24h'"),
        ("anchors SET first_seq = 1", "anchors SET first_seq = 0"),
        ("anchors SET lowest_id = highest_id", "anchors SET lowest_id = 1"),
        (
            "anchors SET highest_id = highest_id + 1",
            "anchors SET highest_id = highest_id - 1",
        ),
        ("anchors SET checkpoint_size = 7", "anchors SET checkpoint_size = 301"),
        (
            "hash_tiles SET tile = 7 WHERE tile = 1",
            "hash_tiles SET tile = 1 WHERE tile = 7",
        ),
    ] {
        world.tamper_audit(&format!("UPDATE {change}")).await;
        assert!(!seen().await, "{change}");
        world.tamper_audit(&format!("UPDATE {undo}")).await;
        assert!(seen().await, "{undo}");
    }
    // The columns must agree with the sealed entry.
    let prunes = writer.audit.unlogged_prunes().await.unwrap();
    let mut tx = world.store.begin(&Actor::named(SYSTEM_RETENTION)).await.unwrap();
    tx.note_prune(&prunes[0]);
    tx.commit().await.unwrap();
    let mut admin = crate::audit::writer(world, Stream::Admin).await;
    crate::audit::seal_outbox(world, &mut admin, 100).await;
    let entries = async || writer.audit.anchor_rows(chain).await.unwrap()[0].entry_agrees;
    assert_eq!(entries().await, Some(true));
    world.tamper_audit("UPDATE anchors SET bound = '25h'").await;
    assert_eq!(entries().await, Some(false));
    world.tamper_audit("UPDATE anchors SET bound = '24h'").await;
    let short = if world.engine == "sqlite" {
        "x'00'"
    } else {
        "'\\x00'::bytea"
    };
    world
        .tamper_audit(&format!("UPDATE hash_tiles SET hashes = {short} WHERE tile = 1"))
        .await;
    assert!(!seen().await, "a hash cut off");
    writer.append(world, call("eth_call", 200));
}

async fn rl9_a_malformed_anchor_stops_neither_sealing_nor_pages_nor_other_prunes(world: &World) {
    let writer = pruned(world).await;
    let chain = writer.claim.chain;
    let short = if world.engine == "sqlite" {
        "x'a1'"
    } else {
        "'\\xa1'::bytea"
    };
    world.tamper_audit(&format!("UPDATE anchors SET bytes = {short}")).await;
    let heads = writer.audit.org_heads(chain).await.unwrap();
    assert_eq!(heads.len(), 1, "the chain goes on by what is left: {heads:?}");
    assert_eq!(
        writer.audit.unlogged_prunes().await.unwrap(),
        [],
        "it keeps no other prune from being told of"
    );
    let mut tx = world.begin().await;
    let new = gw_store::record::NewOrganization {
        slug: "o".to_owned(),
        ..Default::default()
    };
    tx.create_organization(new).await.unwrap();
    tx.commit().await.unwrap();
    world.tamper_audit("UPDATE chains SET stream = 'admin'").await;
    let all = gw_store::audit::AuditFilter::all(gw_store::read::Scope::All);
    let page = writer
        .audit
        .list_audit_logs(&world.store, &all, crate::audit::ALL)
        .await
        .unwrap();
    assert!(page.total >= 1, "the page is shown");
}
