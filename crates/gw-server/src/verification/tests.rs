//! Verification of an audit store on both engines: its fixture, and passes that continue. The tamper table is in
//! [`table`].

mod blinded;
mod findings;
mod oversized;
mod table;
mod workers;

use super::{Known, Pass, verify_all};
use crate::{
    serve::{CLUSTER, journal::nothing_is_missing},
    system::SystemEntropy,
    trust::{AuditTrust, HeadsFile, TamperAlarm},
    workers::Verification,
};
use gw_audit::{
    AccessRecord, Action, AdminEntry, Chain, ChainEdge, ChainId, Checkpoint, CheckpointKey, Content, EncodedRecord,
    Entry, Genesis, Record, ResourceType, SecurityKind, ShardId, StoredEntry, Stream, TrustedHead, TrustedHeads, tree,
    verify::FindingKind as F,
};
use gw_journal::{Journal, JournalConfig};
use gw_store::{
    DirectoryLock, Location, OutboxGuard, StoreConfig,
    audit::{AuditStore, ToSeal},
};
use gw_testkit::postgres;
use gw_types::{B256, ExternalId, OrgId, Seconds, Secret, Timestamp, testing::ManualClock};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use uuid::Uuid;

const ROWS: usize = 30;
const SIGNED: [usize; 3] = [8, 16, ROWS];
const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;

/// An hour after the last record.
const LATE: Timestamp = Timestamp::from_micros(START + 3600 * SECOND);

/// A pass over all entries, long after the records.
fn pass() -> Pass<'static> {
    Pass {
        cluster: CLUSTER,
        interval: Duration::from_secs(60),
        now: LATE,
        since: 0,
        rest: 0,
        report_index_faults: &|_| {},
    }
}

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[3; 32])
}

fn access() -> ChainId {
    ChainId {
        stream: Stream::Access,
        shard: ShardId(Uuid::from_u128(1)),
    }
}

fn admin() -> ChainId {
    ChainId {
        stream: Stream::Admin,
        shard: ShardId(Uuid::nil()),
    }
}

/// A manipulation of the database.
#[derive(Clone, Copy, Debug)]
enum Tamper {
    /// Runs these statements.
    Sql(&'static [&'static str]),
    /// Rewrites the access chain from row `from` on, keeps its first `notes` notes, and signs the new end with the key
    /// of `seed`, if any.
    Rewrite {
        from: usize,
        notes: usize,
        seed: Option<u8>,
    },
    /// Erases the personal values of row 5 in the way of a genuine erasure.
    Erase,
}

const ENTRY: &str = "chain_id, hash, bytes, openings, kind, created_at, org_id, external_id, correlation_id, method, \
                     status_code, denial_reason, action, actor_id, resource_type, resource_id, tx_hash, outbox_id";

struct World {
    audit: AuditStore,
    raw: DatabaseConnection,
    dir: tempfile::TempDir,
    /// The trusted heads of the instance.
    heads: TrustedHeads,
    /// Notes that were kept on another machine.
    notes: Vec<Checkpoint>,
    entries: Vec<StoredEntry>,
}

fn record(n: usize) -> Record {
    AccessRecord {
        external_id: Some(ExternalId::new("did:test:a").expect("a DID")),
        org_id: Some(OrgId::fixed(5)),
        duration_us: u64::try_from(n).expect("small"),
        ..AccessRecord::new("eth_call", 403)
    }
    .into()
}

fn mutation(n: usize) -> Record {
    AdminEntry {
        action: Action::Create,
        actor_id: None,
        actor_external_id: Some("did:test:a".into()),
        ip_address: None,
        correlation_id: None,
        org_id: None,
        resource_type: ResourceType::User,
        resource_id: Some(n.to_string()),
        resource_name: None,
        old_value: None,
        new_value: None,
        store_id: Some(Uuid::from_u128(9).into()),
        outbox_id: u64::try_from(n).ok(),
        outbox_fault: None,
    }
    .into()
}

/// The entries of a chain of `rows` entries that starts with `before`.
fn chain(
    id: ChainId,
    before: &[StoredEntry],
    rows: usize,
    key: &CheckpointKey,
    record: impl Fn(usize) -> Record,
) -> Vec<StoredEntry> {
    let time = |n: usize| Timestamp::from_micros(START + i64::try_from(n).expect("small") * SECOND);
    let mut entries = before.to_vec();
    let mut chain = if let [first, rest @ ..] = before {
        let (mut chain, ..) = Chain::replay(id, &first.bytes).expect("a chain");
        rest.iter()
            .for_each(|entry| assert!(chain.accept(&entry.bytes).is_ok()));
        chain
    } else {
        let genesis = Genesis::new(id.shard, CLUSTER, key.public().to_bytes());
        let genesis_time = if id == admin() {
            Timestamp::from_micros(0)
        } else {
            time(0)
        };
        let mut bytes = Vec::new();
        let (chain, _) = Chain::begin(id, &genesis, genesis_time, &mut bytes);
        entries.push(StoredEntry::new(bytes, Vec::new()).expect("an entry"));
        chain
    };
    for n in entries.len()..rows {
        entries.push(
            chain
                .entry(EncodedRecord::new(&record(n), &SystemEntropy), time(n))
                .expect("an entry"),
        );
    }
    entries
}

fn checkpoint(id: ChainId, entries: &[StoredEntry]) -> Checkpoint {
    let leaves: Vec<_> = entries.iter().map(|entry| entry.hash).collect();
    Checkpoint::new(
        id.origin(CLUSTER),
        u64::try_from(leaves.len()).expect("small"),
        tree::root(&leaves),
    )
}

fn edge(entries: &[StoredEntry]) -> ChainEdge {
    let mut edge = ChainEdge::default();
    entries.iter().for_each(|entry| {
        edge.push(entry.header.seq, entry.hash, &entry.bytes)
            .expect("it continues")
    });
    edge
}

impl World {
    async fn new(engine: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let (location, url) = if engine == "postgres" {
            let database = postgres::database().expect("a server")?;
            (
                Location::postgres(Secret::new(database.url.clone())).patient(),
                database.url,
            )
        } else {
            let lock = Arc::new(DirectoryLock::acquire(dir.path()).expect("held"));
            let url = format!("sqlite://{}", dir.path().join("audit.db").display());
            (
                Location::Sqlite {
                    directory: lock,
                    file: "audit.db".to_owned(),
                },
                url,
            )
        };
        let (clock, entropy) = (Arc::new(ManualClock::at(LATE)), Arc::new(SystemEntropy));
        let config = StoreConfig {
            location,
            connections: 2,
            clock,
            entropy,
            outbox: OutboxGuard::default(),
        };
        let audit = AuditStore::open(config).await.expect("opened");
        audit.migrate().await.expect("migrated");
        let raw = Database::connect(url).await.expect("connected");
        let mut world = Self {
            audit,
            raw,
            dir,
            heads: TrustedHeads::default(),
            notes: Vec::new(),
            entries: Vec::new(),
        };
        let entries = chain(access(), &[], ROWS, &key(), record);
        world.seal(access(), &entries).await;
        world.sign(access(), &entries, &SIGNED, &key()).await;
        let admin_entries = chain(admin(), &[], 12, &key(), mutation);
        world.seal(admin(), &admin_entries).await;
        world.sign(admin(), &admin_entries, &[12], &key()).await;
        for (id, entries) in [(access(), &entries), (admin(), &admin_entries)] {
            let checkpoint = checkpoint(id, entries);
            let note = checkpoint.sign(&key());
            world.heads.advance(id, TrustedHead::new(Some(note), &edge(entries), 0));
            world.notes.push(checkpoint);
        }
        let list = world.heads.sign_list(CLUSTER, 1, &key());
        world
            .notes
            .push(Checkpoint::open(&list, &[key().public()]).expect("signed"));
        world.entries = entries;
        Some(world)
    }

    async fn seal(&self, id: ChainId, entries: &[StoredEntry]) {
        let claim = self.audit.claim(id, "writer", Seconds(1)).await.expect("claimed");
        let batch: Vec<_> = entries.iter().map(|entry| ToSeal { entry: entry.clone() }).collect();
        self.audit.insert_sealed(&claim, &batch).await.expect("sealed");
    }

    async fn sign(&self, id: ChainId, entries: &[StoredEntry], sizes: &[usize], key: &CheckpointKey) {
        for size in sizes {
            let checkpoint = checkpoint(id, entries.get(..*size).expect("so many"));
            self.audit
                .insert_checkpoint(id, checkpoint.size, &checkpoint.sign(key))
                .await
                .expect("kept");
        }
    }

    async fn sql(&self, sql: &str) {
        if let Err(error) = self.raw.execute_unprepared(sql).await {
            panic!("{sql}: {error}");
        }
    }

    async fn tamper(&self, tamper: Tamper) {
        match tamper {
            Tamper::Sql(["INSERT"]) => {
                let sql = format!(
                    "INSERT INTO entries (seq, {ENTRY}) SELECT {ROWS}, {ENTRY} FROM entries WHERE kind = 'access' AND \
                     seq = 7"
                );
                self.sql(&sql).await;
            }
            Tamper::Sql(statements) => {
                for sql in statements {
                    self.sql(sql).await;
                }
            }
            Tamper::Rewrite { from, notes, seed } => {
                let kept = *SIGNED.get(notes.wrapping_sub(1)).unwrap_or(&0);
                for sql in [
                    &format!(
                        "DELETE FROM checkpoints WHERE size > {kept} AND chain_id = (SELECT id FROM chains WHERE \
                         stream = 'access')"
                    ),
                    "DELETE FROM entries WHERE chain_id = (SELECT id FROM chains WHERE stream = 'access')",
                    "UPDATE chains SET size = 0, leased_until = 0 WHERE stream = 'access'",
                ] {
                    self.sql(sql).await;
                }
                let zero = Statement::from_sql_and_values(
                    self.raw.get_database_backend(),
                    "UPDATE chains SET head_hash = $1 WHERE stream = 'access'",
                    [Value::from(B256::ZERO.to_vec())],
                );
                self.raw.execute_raw(zero).await.expect("written");
                let key = seed.map_or_else(key, |seed| CheckpointKey::from_seed(&[seed; 32]));
                let before = self.entries.get(..from).expect("so many");
                let forged = chain(access(), before, ROWS, &key, |n| record(n + 1000));
                self.seal(access(), &forged).await;
                if seed.is_some() {
                    self.sign(access(), &forged, &[ROWS], &key).await;
                }
            }
            Tamper::Erase => {
                let entry = self.entries.get(5).expect("it is there");
                let erase = Statement::from_sql_and_values(
                    self.raw.get_database_backend(),
                    "UPDATE entries SET openings = $1, external_id = NULL WHERE kind = 'access' AND seq = 5",
                    [Value::from(gw_audit::erased(&entry.openings).expect("openings"))],
                );
                self.raw.execute_raw(erase).await.expect("written");
            }
        }
    }

    /// The findings of `audit verify`.
    async fn verify(&self, heads: &TrustedHeads, notes: &[Checkpoint]) -> BTreeSet<F> {
        self.verify_known(Known {
            keys: vec![key().public()],
            heads: heads.clone(),
            notes: notes.to_vec(),
            ..Known::default()
        })
        .await
    }

    async fn verify_known(&self, known: Known) -> BTreeSet<F> {
        let pass = Pass {
            cluster: CLUSTER,
            interval: Duration::from_secs(1),
            now: LATE,
            since: 0,
            rest: 0,
            report_index_faults: &|_| {},
        };
        let mut kinds = BTreeSet::new();
        let collect =
            |report: super::ChainReport| kinds.extend(report.report.findings.iter().map(|finding| finding.kind));
        verify_all(&self.audit, &known, &pass, &BTreeMap::new(), |_| true, collect)
            .await
            .expect("readable");
        kinds
    }

    /// The worker of an instance with the trusted heads, and its journal.
    fn worker(&self) -> (Arc<Journal>, Verification) {
        let directory = self.dir.path().join("journal");
        let options = JournalConfig {
            dir: directory.clone(),
            holder: "test".to_owned(),
            cluster: CLUSTER.to_owned(),
            checkpoint_key: key().public().to_bytes(),
            max_bytes: 1 << 24,
            segment_bytes: 1 << 20,
            retain_bytes: 0,
            retain_for: Seconds(0),
        };
        let (journal, _) =
            Journal::open(options, Arc::new(ManualClock::at(LATE)), Arc::new(SystemEntropy)).expect("opened");
        let journal = Arc::new(journal);
        let file = HeadsFile::open(&directory).expect("opened");
        file.update(|heads| {
            *heads = self.heads.clone();
            true
        })
        .expect("written");
        let alarm = TamperAlarm::new(Arc::clone(&journal), Arc::new(ManualClock::at(LATE)), None);
        let interval = Duration::from_secs(1);
        let trust = Arc::new(AuditTrust::new(
            file,
            alarm,
            CLUSTER,
            Arc::new(ManualClock::at(LATE)),
            None,
            interval,
        ));
        let worker = Verification {
            audit: self.audit.clone(),
            store: None,
            trust: Arc::clone(&trust),
            clock: Arc::new(ManualClock::at(LATE)),
            key: key().public(),
            shard: journal.shard(),
            every: interval,
            checkpoints: interval,
        };
        (journal, worker)
    }

    /// Runs two passes of the worker and returns the findings that it wrote to the journal.
    async fn work(&self) -> Vec<String> {
        let (journal, worker) = self.worker();
        let mut verified = BTreeMap::new();
        worker.pass(&mut verified).await.expect("readable");
        // The second pass finds the same, and must not write it again.
        worker.pass(&mut verified).await.expect("readable");
        assert_eq!(
            verified.len() == 2,
            !worker.trust.alarm.is_raised(),
            "a pass continues only a clean chain"
        );
        recorded_findings(&journal)
    }

    /// The error of start-up; empty if there is none.
    async fn start(&self) -> String {
        match nothing_is_missing(&self.audit, &self.heads, &[], &[key().public()], |_| 0).await {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }
}

/// The tamper findings that were recorded in a journal.
fn recorded_findings(journal: &Journal) -> Vec<String> {
    journal.sync().expect("on disk");
    let mut reasons = Vec::new();
    for record in journal.unsealed(Stream::Security, 1000).expect("readable") {
        if let Ok(Entry {
            content: Content::Record(Record::Security(event)),
            ..
        }) = Entry::decode(&record.bytes, &record.openings)
        {
            assert_eq!(event.kind, SecurityKind::TamperDetected);
            reasons.push(format!("{} {:?}", event.reason.expect("a reason"), event.count));
        }
    }
    reasons
}

/// RL2, rule 19: a pass continues where the last one ended, and trusts the signatures of other instances from there on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_au19_a_pass_continues_where_the_last_one_ended() {
    let world = World::new("sqlite").await.expect("a world");
    let known = Known {
        keys: vec![key().public()],
        ..Known::default()
    };
    let pass = pass();
    let mut verified = BTreeMap::new();
    let run = async |verified: &mut BTreeMap<ChainId, super::Verified>| {
        let mut reports = Vec::new();
        verify_all(
            &world.audit,
            &known,
            &pass,
            verified,
            |id| id == access(),
            |report| reports.push(report),
        )
        .await
        .expect("readable");
        let report = reports.remove(0);
        let summary = (
            report.report.scanned,
            report.report.findings.clone(),
            report.newest_note.is_some(),
        );
        verified.extend(report.verified.map(|progress| (report.chain, progress)));
        summary
    };
    assert_eq!(run(&mut verified).await, (30, Vec::new(), true));
    assert_eq!(run(&mut verified).await, (0, Vec::new(), false));
    let longer = chain(access(), &world.entries, 40, &key(), record);
    world.seal(access(), longer.get(ROWS..).expect("more")).await;
    world.sign(access(), &longer, &[38], &key()).await;
    assert_eq!(run(&mut verified).await, (10, Vec::new(), true));
    world
        .sql("DELETE FROM entries WHERE kind = 'access' AND seq = 39")
        .await;
    let (_, findings, _) = run(&mut verified).await;
    assert_eq!(findings.first().map(|finding| finding.kind), Some(F::ChainTruncated));
}

/// RL2, HD25: an unsigned tail is reported once its writer has been silent for long, but not for the shard whose
/// journal is on this machine: its instance compares and signs the tail when it starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_an_unsigned_tail_of_a_silent_writer_is_reported() {
    let world = World::new("sqlite").await.expect("a world");
    let longer = chain(access(), &world.entries, 40, &key(), record);
    world.seal(access(), longer.get(ROWS..).expect("more")).await;
    let verify = async |shard: Option<ShardId>| {
        let known = Known {
            keys: vec![key().public()],
            shard,
            ..Known::default()
        };
        let pass = pass();
        let mut kinds = BTreeSet::new();
        let collect = |report: super::ChainReport| {
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
    let lease = async |until: i64| world.sql(&format!("UPDATE chains SET leased_until = {until}")).await;
    lease(LATE.minus(Seconds(10)).micros()).await;
    assert_eq!(verify(None).await, BTreeSet::new(), "its writer may be alive");
    lease(LATE.minus(Seconds(1000)).micros()).await;
    assert_eq!(
        verify(Some(access().shard)).await,
        BTreeSet::new(),
        "its journal is on this machine"
    );
    let missing = (F::CheckpointMissing, Some(u64::try_from(ROWS).expect("few")));
    assert_eq!(verify(None).await, BTreeSet::from([missing]));
}
