//! RL13: pruning by age and by number, holds, and what verification finds afterwards.

use super::*;
use crate::verification::{ChainReport, Known, Pass, verify_all};
use gw_audit::{
    AccessRecord, Action, Anchor, Chain, Checkpoint, EncodedRecord, Genesis, ShardId, StoredEntry, tree::Frontier,
};
use gw_store::{
    DirectoryLock, Location,
    audit::ToSeal,
    record::{HoldScope, LegalHold},
};
use gw_types::testing::ManualClock;
use sea_orm::{ConnectionTrait as _, Database};
use std::collections::BTreeMap;
use uuid::Uuid;

/// In seconds.
const DAY: i64 = 86_400;

struct World {
    retention: Retention,
    clock: Arc<ManualClock>,
    audit: AuditStore,
    dir: tempfile::TempDir,
}

fn journal(dir: std::path::PathBuf) -> Arc<Journal> {
    let options = gw_journal::JournalConfig {
        dir,
        holder: "the test".to_owned(),
        cluster: CLUSTER.to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 64 << 20,
        segment_bytes: 1 << 20,
        retain_bytes: 64 << 20,
        retain_for: Seconds(3600),
    };
    let clock: Arc<dyn Clock> = Arc::new(crate::system::SystemClock);
    Arc::new(
        Journal::open(options, clock, Arc::new(crate::system::SystemEntropy))
            .unwrap()
            .0,
    )
}

/// An empty store whose entries are kept forever.
async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let directory = Arc::new(DirectoryLock::acquire(dir.path()).unwrap());
    let clock = Arc::new(ManualClock::default());
    let config = |file: &str| StoreConfig {
        location: Location::Sqlite {
            directory: Arc::clone(&directory),
            file: file.to_owned(),
        },
        connections: 2,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        entropy: Arc::new(crate::system::SystemEntropy),
        outbox: gw_store::OutboxGuard::default(),
    };
    let store = Store::open(config("gateway.db")).await.unwrap();
    store.migrate().await.unwrap();
    let audit = AuditStore::open(config("audit.db")).await.unwrap();
    audit.migrate().await.unwrap();
    let key = CheckpointKey::from_seed(&[9; 32]);
    let retention = Retention {
        store,
        admin: Admin::Open(audit.clone()),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        config: config::Retention {
            admin_url: None,
            access: None,
            compliance: None,
            admin: None,
            disclosure: None,
            security: None,
            travel_records: None,
            interval: Duration::from_secs(3600),
            max_access_rows: 0,
        },
        cluster: CLUSTER,
        keys: vec![key.public()],
        key,
        holder: "here".to_owned(),
        journal: journal(dir.path().join("journal")),
        reported_holds: HashSet::new(),
    };
    World {
        retention,
        clock,
        audit,
        dir,
    }
}

impl World {
    /// Adds a chain of `calls` entries, one per second, signed at its end.
    async fn chain(&self, shard: u128, calls: usize) -> ChainId {
        let id = ChainId {
            stream: Stream::Access,
            shard: ShardId(Uuid::from_u128(shard)),
        };
        let mut bytes = Vec::new();
        let genesis = Genesis::new(id.shard, CLUSTER, self.retention.keys[0].to_bytes());
        let (mut chain, _) = Chain::begin(id, &genesis, self.clock.now(), &mut bytes);
        let entry = StoredEntry::new(bytes, Vec::new()).unwrap();
        let mut batch = vec![ToSeal { entry }];
        for _ in 1..calls {
            self.clock.pass(1);
            let draft = EncodedRecord::new(
                &AccessRecord::new("eth_call", 200).into(),
                &crate::system::SystemEntropy,
            );
            let entry = chain.entry(draft, self.clock.now()).unwrap();
            batch.push(ToSeal { entry });
        }
        let claim = self.audit.claim(id, "writer", Seconds(15)).await.unwrap();
        self.audit.insert_sealed(&claim, &batch).await.unwrap();
        let frontier: Frontier = batch.iter().map(|sealed| sealed.entry.hash).collect();
        let checkpoint = Checkpoint::new(id.origin(CLUSTER), frontier.size(), frontier.root());
        let note = checkpoint.sign(&self.retention.key);
        self.audit.insert_checkpoint(id, frontier.size(), &note).await.unwrap();
        id
    }

    async fn sweep(&mut self) -> bool {
        self.retention.sweep(&CancellationToken::new()).await.unwrap()
    }

    /// The codes of the findings of a verification.
    async fn findings(&self) -> Vec<&'static str> {
        let known = Known {
            keys: self.retention.keys.clone(),
            ..Known::default()
        };
        let pass = Pass {
            cluster: CLUSTER,
            interval: Duration::from_secs(60),
            now: self.clock.now(),
            since: 0,
            rest: 0,
            report_index_faults: &|_| {},
        };
        let mut codes = Vec::new();
        let collect =
            |report: ChainReport| codes.extend(report.report.findings.iter().map(|finding| finding.kind.as_str()));
        verify_all(&self.audit, &known, &pass, &BTreeMap::new(), |_| true, collect)
            .await
            .unwrap();
        codes
    }

    /// The remaining entries of each access chain.
    async fn remaining(&self) -> Vec<u64> {
        self.audit
            .remaining(Stream::Access)
            .await
            .unwrap()
            .iter()
            .map(rows)
            .collect()
    }

    /// The new values of the audit entries about prunes.
    async fn recorded_prunes(&self) -> Vec<String> {
        let waiting = self.retention.store.outbox(0, 100).await.unwrap();
        let prunes = waiting
            .into_iter()
            .filter(|row| row.entry.action == Action::PruneAccess);
        prunes.map(|row| row.entry.new_value.unwrap()).collect()
    }
}

#[tokio::test]
async fn rl13_entries_older_than_their_retention_are_pruned_and_recorded() {
    let mut world = world().await;
    let old = world.chain(1, 2500).await;
    world.clock.pass(10 * DAY);
    world.chain(2, 10).await;
    assert!(!world.sweep().await);
    assert_eq!(
        world.remaining().await,
        [2500, 10],
        "without a retention everything is kept"
    );
    world.retention.config.access = Some(Duration::from_secs(9 * 86_400));
    assert!(!world.sweep().await);
    assert_eq!(world.remaining().await, [0, 10]);
    let prunes = world.recorded_prunes().await;
    assert_eq!(prunes.len(), 1, "{prunes:?}");
    assert!(
        prunes[0].contains("\"deleted_count\":2500") && prunes[0].contains("\"retention\":\"216h\""),
        "{prunes:?}"
    );
    let anchor = world.audit.anchor(old).await.unwrap().unwrap();
    Anchor::open(&anchor.bytes, &anchor.note, old, CLUSTER, &world.retention.keys).unwrap();
    assert!(!world.sweep().await);
    assert_eq!(world.recorded_prunes().await.len(), 1, "recorded once");
}

#[tokio::test]
async fn rl13_max_access_log_rows_keeps_the_newest_of_all_instances() {
    let mut world = world().await;
    world.chain(1, 300).await;
    world.chain(2, 300).await;
    world.retention.config.max_access_rows = 250;
    assert!(!world.sweep().await);
    assert_eq!(
        world.remaining().await,
        [300, 300],
        "entries younger than a day are kept"
    );
    world.clock.pass(2 * DAY);
    world.chain(3, 100).await;
    assert!(!world.sweep().await);
    assert_eq!(world.remaining().await, [0, 150, 100]);
    let prunes = world.recorded_prunes().await;
    assert_eq!(prunes.len(), 2);
    assert!(
        prunes
            .iter()
            .all(|prune| prune.contains("fifo") && prune.contains("\"max_rows\":\"250\"")),
        "{prunes:?}"
    );
}

/// AU-24: the remaining entries verify from the anchor, also against the notes from before the prune. A change of
/// the anchor or of the hashes of the pruned entries is detected.
#[tokio::test]
async fn rl13_a_pruned_chain_is_verified_from_its_anchor() {
    let mut world = world().await;
    let id = world.chain(1, 600).await;
    world.clock.pass(2 * DAY);
    world.retention.config.max_access_rows = 250;
    assert!(!world.sweep().await);
    assert_eq!(world.remaining().await, [250]);
    assert_eq!(world.findings().await, [] as [&str; 0]);
    for (seq, exists) in [(0, true), (349, true), (350, true), (599, true), (600, false)] {
        assert_eq!(
            world.audit.computed_hash(id, seq).await.unwrap().is_some(),
            exists,
            "entry {seq}"
        );
    }
    for (change, undo, expected) in [
        (
            "anchors SET reason = 'x'",
            "anchors SET reason = 'fifo'",
            "column_mismatch",
        ),
        (
            "anchors SET lowest_id = 2",
            "anchors SET lowest_id = 1",
            "column_mismatch",
        ),
        (
            "anchors SET highest_id = 9000",
            "anchors SET highest_id = 350",
            "column_mismatch",
        ),
        (
            "anchors SET created_at = created_at - 900000000000",
            "anchors SET created_at = created_at + 900000000000",
            "column_mismatch",
        ),
        (
            "hash_tiles SET tile = 7 WHERE tile = 0",
            "hash_tiles SET tile = 0 WHERE tile = 7",
            "anchor_mismatch",
        ),
    ] {
        for (sql, expected) in [(change, Some(expected)), (undo, None)] {
            let url = format!("sqlite://{}", world.dir.path().join("audit.db").display());
            Database::connect(url)
                .await
                .unwrap()
                .execute_unprepared(&format!("UPDATE {sql}"))
                .await
                .unwrap();
            let codes = world.findings().await;
            assert!(
                codes
                    .iter()
                    .copied()
                    .eq(codes.iter().copied().filter(|code| Some(*code) == expected)),
                "{sql}: {codes:?}"
            );
            assert_eq!(codes.is_empty(), expected.is_none(), "{sql}: {codes:?}");
        }
    }
    // These changes accumulate. Without its anchor, the remaining chain has no verified beginning.
    for (change, expected) in [
        (
            "UPDATE hash_tiles SET hashes = zeroblob(length(hashes)) WHERE tile = 0",
            "anchor_mismatch",
        ),
        ("UPDATE anchors SET bytes = zeroblob(length(bytes))", "anchor_mismatch"),
        ("DELETE FROM anchors", "seq_gap"),
        // An unreadable row of `chains` does not hide another chain.
        (
            "INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
             VALUES ('access', randomblob(16), 0, 'x', 0, 0, 0, x'00', 0)",
            "row_read_failed",
        ),
    ] {
        let url = format!("sqlite://{}", world.dir.path().join("audit.db").display());
        Database::connect(url)
            .await
            .unwrap()
            .execute_unprepared(change)
            .await
            .unwrap();
        let codes = world.findings().await;
        assert!(codes.contains(&expected), "{change}: {codes:?}");
        assert!(expected != "row_read_failed" || codes.contains(&"seq_gap"), "{codes:?}");
    }
}

#[tokio::test]
async fn rl13_a_hold_and_the_lease_of_another_instance_stop_pruning() {
    let mut world = world().await;
    world.chain(1, 60).await;
    world.clock.pass(10 * DAY);
    world.retention.config.access = Some(Duration::from_secs(86_400));
    let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
    let LegalHold { id, .. } = tx.place_hold(HoldScope::Stream(Stream::Access), "case").await.unwrap();
    tx.commit().await.unwrap();
    world.sweep().await;
    assert_eq!(world.remaining().await, [60]);
    let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
    tx.clear_legal_hold(id, "closed").await.unwrap();
    tx.commit().await.unwrap();
    assert!(
        !world.audit.take_turn(LEASE_NAME, "there", LEASE).await.unwrap(),
        "this instance still has the lease"
    );
    world.clock.pass(DAY);
    // Another instance takes the expired lease.
    assert!(world.audit.take_turn(LEASE_NAME, "there", LEASE).await.unwrap());
    world.sweep().await;
    assert_eq!(world.remaining().await, [60]);
    world.clock.pass(DAY);
    world.sweep().await;
    assert_eq!(world.remaining().await, [0]);
}

/// Rule 24: an attacker who can write only to the policy database cannot lift or change a hold.
#[tokio::test]
async fn rl13_a_hold_in_the_audit_log_applies_without_its_row() {
    let mut world = world().await;
    world.chain(1, 60).await;
    let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
    let LegalHold { id, .. } = tx.place_hold(HoldScope::Stream(Stream::Access), "case").await.unwrap();
    tx.commit().await.unwrap();
    // Seal the outbox in the way of the sealer.
    let admin = ChainId {
        stream: Stream::Admin,
        shard: ShardId(Uuid::nil()),
    };
    let mut bytes = Vec::new();
    let genesis = Genesis::new(admin.shard, CLUSTER, world.retention.keys[0].to_bytes());
    let (mut chain, _) = Chain::begin(admin, &genesis, Timestamp::from_micros(0), &mut bytes);
    let mut batch = vec![ToSeal {
        entry: StoredEntry::new(bytes, Vec::new()).unwrap(),
    }];
    for row in world.retention.store.outbox(0, 10).await.unwrap() {
        let draft = EncodedRecord::new(&gw_audit::Record::Admin(row.entry), &row.salts);
        batch.push(ToSeal {
            entry: chain.entry(draft, row.created_at).unwrap(),
        });
    }
    let claim = world.audit.claim(admin, "writer", Seconds(15)).await.unwrap();
    world.audit.insert_sealed(&claim, &batch).await.unwrap();

    world.clock.pass(10 * DAY);
    world.retention.config.access = Some(Duration::from_secs(86_400));
    let policy = format!("sqlite://{}", world.dir.path().join("gateway.db").display());
    let policy = Database::connect(policy).await.unwrap();
    for sql in [
        "UPDATE legal_holds SET stream = 'security'",
        "DELETE FROM legal_holds",
        // Sealed rows do not stay in the outbox.
        "DELETE FROM audit_outbox",
    ] {
        policy.execute_unprepared(sql).await.unwrap();
        world.sweep().await;
        assert_eq!(world.remaining().await, [60], "{sql}");
        assert!(world.retention.reported_holds.contains(&id), "{sql}");
    }
    let known = world
        .audit
        .known_holds(&world.retention.store, CLUSTER, &world.retention.keys)
        .await
        .unwrap();
    assert!(known.holds.keep(Stream::Access, None) && known.changed == [id]);
    // After the row is restored, the hold can be lifted like any other, and its entries are pruned.
    let restore = format!(
        "INSERT INTO legal_holds (id, stream, reason, placed_by, created_at) VALUES (x'{}', 'access', 'case', 'x', 1)",
        id.0.simple()
    );
    policy.execute_unprepared(&restore).await.unwrap();
    let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
    tx.clear_legal_hold(id, "closed").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        world
            .audit
            .known_holds(&world.retention.store, CLUSTER, &world.retention.keys)
            .await
            .unwrap()
            .changed,
        []
    );
    world.sweep().await;
    assert_eq!(world.remaining().await, [0]);
}
