//! Attacks on the audit database other than changed entries: forged claims of dead writers, entries that the gateway
//! rejected, objects that no migration created, and unreadable rows.

use super::{
    CLUSTER, F, LATE, ROWS, World, access, admin, chain, checkpoint, key, mutation, record, recorded_findings,
};
use crate::{
    cli::audit::re_anchor::{ReAnchor, confirm, prepare},
    trust::HeadsFile,
    verification::{ChainReport, Known, Pass, verify_all},
};
use gw_audit::{ChainId, Record, SecurityEvent, SecurityKind, ShardId, StoredEntry, Stream};
use gw_types::Seconds;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// RL2: a forged claim does not make a dead writer look alive, no matter how far ahead it is or how often it is
/// renewed. Only a signature does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_forged_claim_does_not_hide_an_unsigned_tail() {
    for engine in ["sqlite", "postgres"] {
        let Some(world) = World::new(engine).await else {
            continue;
        };
        let longer = chain(access(), &world.entries, 40, &key(), record);
        world.seal(access(), longer.get(ROWS..).expect("more")).await;
        let now = LATE.plus(Seconds(2 * 3600));
        let verify = async |shard: Option<ShardId>| {
            let known = Known {
                keys: vec![key().public()],
                shard,
                ..Known::default()
            };
            let interval = Duration::from_secs(60);
            let pass = Pass {
                cluster: CLUSTER,
                interval,
                now,
                since: 0,
                rest: 0,
                report_index_faults: &|_| {},
            };
            let mut kinds = BTreeSet::new();
            let collect = |report: ChainReport| {
                kinds.extend(report.report.findings.iter().map(|finding| (finding.kind, finding.seq)));
            };
            verify_all(
                &world.audit,
                &known,
                &pass,
                &BTreeMap::new(),
                |id| id == access(),
                collect,
            )
            .await
            .expect("readable");
            kinds
        };
        let missing = BTreeSet::from([(F::CheckpointMissing, Some(u64::try_from(ROWS).expect("few")))]);
        for until in [i64::MAX, now.plus(Seconds(10)).micros()] {
            world.sql(&format!("UPDATE chains SET leased_until = {until}")).await;
            assert_eq!(verify(None).await, missing, "{engine}: claimed until {until}");
            assert_eq!(
                verify(Some(access().shard)).await,
                BTreeSet::new(),
                "{engine}: its journal is on this machine"
            );
        }
        let (findings, ()) = tokio::join!(verify(None), async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let last = checkpoint(access(), &longer);
            world
                .audit
                .insert_checkpoint(access(), last.size, &last.sign(&key()))
                .await
                .expect("kept");
        });
        assert_eq!(findings, BTreeSet::new(), "{engine}: a living writer signs what is due");
    }
}

/// RL2, RL9: an entry that the gateway rejected is a finding of every verification until the chain is re-anchored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl9_an_entry_that_the_gateway_rejected_stays_a_finding_until_the_chain_is_re_anchored() {
    for engine in ["sqlite", "postgres"] {
        let Some(world) = World::new(engine).await else {
            continue;
        };
        let file = HeadsFile::open(world.dir.path()).expect("opened");
        file.update(|heads| {
            *heads = world.heads.clone();
            true
        })
        .expect("written");
        let options = ReAnchor {
            chain: admin(),
            actor: "jane".to_owned(),
            reason: "an entry that no mutation wrote".to_owned(),
            dry_run: false,
            confirm: true,
        };
        let prepared = async || prepare(&world.audit, &file, vec![key().public()], &options, LATE).await;
        let rows = world.audit.rows(admin(), 0, 100).await.expect("readable");
        let rows = rows
            .into_iter()
            .map(|row| StoredEntry::new(row.bytes, row.openings).expect("an entry"));
        let rows: Vec<_> = rows.collect();
        let forged = chain(admin(), &rows, rows.len() + 1, &key(), mutation);
        world.seal(admin(), forged.get(rows.len()..).expect("one more")).await;
        assert_eq!(
            world.verify(&world.heads, &[]).await,
            BTreeSet::new(),
            "the forged entry is well formed"
        );
        assert!(
            prepared().await.is_err(),
            "without a finding there is nothing to re-anchor"
        );

        let security = ChainId {
            stream: Stream::Security,
            shard: access().shard,
        };
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        event.reason = Some(format!("foreign_entry:{}", rows.len()).into());
        let events = chain(security, &[], 2, &key(), |_| Record::Security(event.clone()));
        world.seal(security, &events).await;
        world.sign(security, &events, &[2], &key()).await;
        for _ in 0..2 {
            assert_eq!(
                world.verify(&world.heads, &[]).await,
                BTreeSet::from([F::OutboxFault]),
                "{engine}"
            );
        }
        let (journal, worker) = world.worker();
        worker.pass(&mut BTreeMap::new()).await.expect("readable");
        assert_eq!(
            recorded_findings(&journal),
            [format!("outbox_fault {} Some({})", admin(), rows.len())],
            "{engine}"
        );

        world.sql("UPDATE chains SET leased_until = 0").await;
        let plan = prepared().await.expect("the chain can be re-anchored");
        confirm(&world.audit, &file, &key(), &plan).await.expect("signed");
        assert_eq!(
            world.verify(&file.heads(), &[]).await,
            BTreeSet::new(),
            "{engine}: the finding is listed as authorized"
        );
        assert!(prepared().await.is_err(), "{engine}: a finding is accepted once");
    }
}

/// RL2, RL10: the service and `audit verify` report objects that are attached to the tables or that replace them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_view_that_replaces_a_table_is_a_finding() {
    for engine in ["sqlite", "postgres"] {
        let Some(world) = World::new(engine).await else {
            continue;
        };
        world.sql("ALTER TABLE leases RENAME TO kept").await;
        world.sql("CREATE VIEW leases AS SELECT * FROM kept").await;
        assert_eq!(
            world.verify(&world.heads, &[]).await,
            BTreeSet::from([F::SchemaChanged]),
            "{engine}"
        );
        let known = Known {
            keys: vec![key().public()],
            is_policy_changed: true,
            ..Known::default()
        };
        let now = LATE;
        let interval = Duration::from_secs(1);
        let pass = Pass {
            cluster: CLUSTER,
            interval,
            now,
            since: 0,
            rest: 0,
            report_index_faults: &|_| {},
        };
        world.sql("DROP VIEW leases").await;
        world.sql("ALTER TABLE kept RENAME TO leases").await;
        assert_eq!(world.verify(&world.heads, &[]).await, BTreeSet::new(), "{engine}");
        let mut kinds = Vec::new();
        let collect = |report: ChainReport| kinds.extend(report.report.findings.iter().map(|finding| finding.kind));
        verify_all(&world.audit, &known, &pass, &BTreeMap::new(), |_| true, collect)
            .await
            .expect("readable");
        assert_eq!(
            kinds,
            [F::SchemaChanged],
            "{engine}: the change of the policy store, reported once"
        );
    }
}

/// RL9: a column with a value of the wrong type is a finding that names the row; start, worker and re-anchoring still
/// work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl9_an_unreadable_row_is_named_and_blocks_nothing() {
    let world = World::new("sqlite").await.expect("a world");
    let change = "UPDATE entries SET created_at = 'abc' WHERE seq = 5 AND kind = 'admin'";
    world.sql(change).await;
    assert_eq!(world.start().await, "");
    assert_eq!(world.verify(&world.heads, &[]).await, BTreeSet::from([F::HashMismatch]));
    assert_eq!(world.work().await, [format!("hash_mismatch {} Some(5)", admin())]);
    let rows = world.audit.rows(admin(), 0, 100).await.expect("readable");
    assert_eq!(
        rows.iter()
            .filter(|row| !row.columns_agree)
            .map(|row| row.seq)
            .collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(rows.len(), 12);
    let store = uuid::Uuid::from_u128(9).into();
    assert_eq!(
        world.audit.newest_outbox_id(admin(), store).await.expect("readable"),
        Some(11)
    );
    assert_eq!(
        world
            .audit
            .sealed_under(store, &[4, 5, 6], 12)
            .await
            .expect("readable")
            .len(),
        2
    );
    world
        .sql("UPDATE entries SET created_at = 'abc' WHERE seq = 29 AND kind = 'access'")
        .await;
    assert_eq!(world.audit.org_heads(access()).await.expect("readable").len(), 1);
    world
        .sql("UPDATE entries SET seq = 'abc' WHERE seq = 7 AND kind = 'access'")
        .await;
    assert!(world.verify(&world.heads, &[]).await.contains(&F::SeqGap));
}
