//! Tests of the sealer on real stores: waiting records are sealed, even after changes to either database.

use super::{ADMIN_CHAIN, Sealer, Sealing, SealingHealth, health::StallReason, worker::ChainWorker};
use crate::{
    serve::outbox_mark::OutboxMarkFile,
    system::{SystemClock, SystemEntropy},
    trust::{AuditTrust, HeadsFile, TamperAlarm},
    workers::journal_heads,
};
use futures_util::future::join_all;
use gw_audit::{
    AccessRecord, Chain, ChainId, Content, EncodedRecord, Head, OrgHead, OutboxFault, Record, SecurityEvent,
    SecurityKind, StoredEntry, Stream,
};
use gw_journal::{Journal, JournalConfig};
use gw_store::{
    Actor, DirectoryLock, Location, OutboxGuard, OutboxWitness, Store, StoreConfig,
    audit::{AuditFilter, AuditStore, LogRow, OutboxKey, SealedRow},
    read::{Paging, Scope},
    record::NewOrganization,
};
use gw_types::{Clock, Entropy, Seconds, Secret};
use sea_orm::{ConnectionTrait as _, Database};
use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

/// Id that represents a row listed as tampered.
const TAMPERED: i64 = -1;
const SEED: [u8; 32] = [9; 32];

/// Runs each test on both engines.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::World::sqlite().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(world) = super::World::postgres().await {
                    super::$name(world).await;
                }
            })*
        }
    };
}

on_both_engines! {
    rl3_rows_below_a_forged_maximum_are_sealed_and_listed,
    rl3_a_restored_policy_store_is_reported_and_its_new_entries_are_sealed,
    rl4_a_chain_out_of_step_does_not_stop_the_others,
    rl4_a_rehashed_suffix_of_equal_size_is_reported,
    rl6_an_older_audit_store_gets_every_entry_again,
    rl4_a_forged_lease_does_not_stop_sealing,
    rl4_a_holder_that_does_not_seal_is_reported,
    rl2_an_entry_that_no_mutation_wrote_is_reported_and_never_signed,
    rl2_an_entry_rewritten_before_it_was_signed_is_reported_and_sealed_again,
    rl9_rows_changed_while_no_sealer_ran_are_sealed_with_a_fault,
    rl9_rows_deleted_while_no_sealer_ran_are_reported,
    rl9_a_gap_stays_in_the_chain_and_is_reported_once,
    rl9_a_row_exchanged_after_its_commit_is_sealed_with_a_fault,
    rl9_an_id_that_was_never_issued_makes_no_gap,
    rl5_a_lost_journal_is_reported_once_with_its_numbers,
    rl1_records_stay_in_the_backlog_until_the_store_has_them,
    rl4_a_rehashed_admin_chain_raises_the_alarm,
    rl4_a_rehashed_security_chain_raises_the_alarm,
}

mod kills;
mod notes;
mod policy;

/// Both databases, the journal and its directory.
struct World {
    dir: tempfile::TempDir,
    store: Store,
    audit: AuditStore,
    journal: Arc<Journal>,
    mark: Arc<OutboxMarkFile>,
    policy: Location,
    audit_location: Location,
    /// URLs for direct access to the databases.
    policy_url: String,
    audit_url: String,
    health: Arc<SealingHealth>,
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn journal(dir: PathBuf) -> Arc<Journal> {
    let options = JournalConfig {
        dir,
        holder: "the test".to_owned(),
        cluster: "test".to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 64 << 20,
        segment_bytes: 1 << 20,
        retain_bytes: 64 << 20,
        retain_for: Seconds(3600),
    };
    Arc::new(Journal::open(options, clock(), Arc::new(SystemEntropy)).unwrap().0)
}

impl World {
    async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let directory = Arc::new(DirectoryLock::acquire(dir.path()).unwrap());
        let file = |name: &str| Location::Sqlite {
            directory: Arc::clone(&directory),
            file: name.to_owned(),
        };
        let url = |name: &str| format!("sqlite://{}", dir.path().join(name).display());
        let (policy_url, audit_url) = (url("gateway.db"), url("audit.db"));
        Self::at(dir, [file("gateway.db"), file("audit.db")], [policy_url, audit_url]).await
    }

    async fn postgres() -> Option<Self> {
        let policy = gw_testkit::postgres::database().unwrap()?.url;
        let audit = gw_testkit::postgres::database().unwrap()?.url;
        let locations = [&policy, &audit].map(|url| Location::postgres(Secret::new(url.clone())));
        Some(Self::at(tempfile::tempdir().unwrap(), locations, [policy, audit]).await)
    }

    async fn at(dir: tempfile::TempDir, [policy, audit]: [Location; 2], [policy_url, audit_url]: [String; 2]) -> Self {
        let config = |location| StoreConfig {
            location,
            connections: 3,
            clock: clock(),
            entropy: Arc::new(SystemEntropy) as Arc<dyn Entropy>,
            outbox: OutboxGuard::default(),
        };
        let mark = Arc::new(OutboxMarkFile::open(dir.path()).unwrap());
        let outbox = OutboxGuard {
            key: Some(OutboxKey::derive(&SEED)),
            witness: Some(Arc::clone(&mark) as Arc<dyn OutboxWitness>),
        };
        let store = Store::open(StoreConfig {
            outbox,
            ..config(policy.clone())
        })
        .await
        .unwrap();
        store.migrate().await.unwrap();
        let audit_location = audit.clone();
        let audit = AuditStore::open(config(audit)).await.unwrap();
        audit.migrate().await.unwrap();
        let journal = journal(dir.path().join("journal"));
        Self {
            dir,
            store,
            audit,
            journal,
            mark,
            policy,
            policy_url,
            audit_url,
            health: Arc::default(),
            audit_location,
        }
    }

    /// A sealer after a new start.
    fn sealer(&self) -> Sealer {
        self.sealer_with(self.trust())
    }

    /// A sealer with the given trusted heads.
    fn sealer_with(&self, trust: Arc<AuditTrust>) -> Sealer {
        Sealer::new(Sealing {
            journal: Arc::clone(&self.journal),
            audit: self.audit.clone(),
            store: self.store.clone(),
            clock: clock(),
            outbox_mark: Arc::clone(&self.mark),
            health: Arc::clone(&self.health),
            cluster: "test",
            key: Secret::new("09".repeat(32)),
            interval: Duration::from_secs(3600),
            trust,
        })
        .unwrap()
    }

    fn trust(&self) -> Arc<AuditTrust> {
        let file = HeadsFile::open(self.dir.path()).unwrap();
        let alarm = TamperAlarm::new(Arc::clone(&self.journal), clock(), None);
        Arc::new(AuditTrust::new(
            file,
            alarm,
            "test",
            clock(),
            None,
            Duration::from_secs(3600),
        ))
    }

    /// Seals all waiting records, as far as possible.
    async fn seal(&self, sealer: &mut Sealer) {
        self.journal.sync().unwrap();
        for _ in 0..4 {
            // Without the wait between two steps.
            sealer.chains.iter_mut().for_each(ChainWorker::wake);
            join_all(sealer.chains.iter_mut().map(ChainWorker::step)).await;
        }
    }

    async fn mutate(&self, slug: &str) {
        mutate(&self.store, slug).await;
    }

    /// The policy store as opened by another instance, without a witness.
    async fn another_store(&self) -> Store {
        let outbox = OutboxGuard {
            key: Some(OutboxKey::derive(&SEED)),
            witness: None,
        };
        let config = StoreConfig {
            location: self.policy.clone(),
            connections: 2,
            clock: clock(),
            entropy: Arc::new(SystemEntropy) as Arc<dyn Entropy>,
            outbox,
        };
        Store::open(config).await.unwrap()
    }

    fn call(&self) {
        self.journal.append(AccessRecord::new("eth_call", 200)).unwrap();
    }

    async fn in_policy(&self, statements: &[&str]) {
        run(&self.policy_url, statements).await;
    }

    async fn in_audit(&self, statements: &[&str]) {
        run(&self.audit_url, statements).await;
    }

    /// A SQL literal of bytes for the audit database.
    fn blob(&self, bytes: &[u8]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if self.audit_url.starts_with("sqlite") {
            format!("x'{hex}'")
        } else {
            format!("'\\x{hex}'::bytea")
        }
    }

    async fn rows(&self, stream: Stream) -> Vec<SealedRow> {
        let chains = self.audit.chains().await.unwrap();
        match chains.into_iter().find(|(chain, _)| chain.stream == stream) {
            Some((chain, _)) => self.audit.rows(chain, 0, 1000).await.unwrap(),
            None => Vec::new(),
        }
    }

    async fn hashes(&self, stream: Stream) -> Vec<String> {
        self.rows(stream).await.iter().map(|row| row.hash.to_string()).collect()
    }

    /// Ids and faults of the listed entries, oldest first; all of them are sealed.
    async fn listed(&self) -> Vec<(i64, Option<OutboxFault>)> {
        let paging = Paging { limit: 1000, offset: 0 };
        let page = self
            .audit
            .list_audit_logs(&self.store, &AuditFilter::all(Scope::All), paging)
            .await
            .unwrap();
        assert_eq!(page.total, u64::try_from(page.rows.len()).unwrap());
        let listed = page.rows.into_iter().rev().map(|row| match row {
            LogRow::Entry(row) => {
                assert!(row.hash.is_some(), "sealed");
                (row.id, row.entry.outbox_fault)
            }
            LogRow::Tampered(_) => (TAMPERED, None),
        });
        listed.collect()
    }

    /// The reasons of findings in the journal's security stream.
    async fn findings(&self, kind: SecurityKind) -> Vec<String> {
        self.journal.sync().unwrap();
        let mut sealer = self.sealer();
        self.seal(&mut sealer).await;
        self.sealed_reasons(kind).await
    }

    /// The reasons of sealed events of this kind, in order.
    async fn sealed_reasons(&self, kind: SecurityKind) -> Vec<String> {
        let mut reasons = Vec::new();
        for row in self.rows(Stream::Security).await {
            let entry = gw_audit::StoredEntry::new(row.bytes, row.openings).unwrap();
            if let gw_audit::Content::Record(gw_audit::Record::Security(event)) = entry.content().unwrap()
                && event.kind == kind
            {
                reasons.push(event.reason.unwrap_or_default().into_owned());
            }
        }
        reasons
    }
}

async fn mutate(store: &Store, slug: &str) {
    let mut tx = store.begin(&Actor::named(Actor::SUPER_ADMIN)).await.unwrap();
    tx.create_organization(NewOrganization {
        slug: slug.into(),
        ..Default::default()
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn sign(sealer: &mut Sealer) {
    for signed in join_all(sealer.chains.iter_mut().map(ChainWorker::sign)).await {
        signed.unwrap();
    }
}

async fn run(url: &str, statements: &[&str]) {
    let db = Database::connect(url).await.unwrap();
    for sql in statements {
        db.execute_unprepared(sql).await.unwrap();
    }
    db.close().await.unwrap();
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
            let entry = gw_audit::StoredEntry::new(record.bytes, record.openings).unwrap();
            match entry.content().unwrap() {
                gw_audit::Content::Record(gw_audit::Record::Security(event)) => event.reason,
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

/// A forged entry with correct hashes and the next outbox id.
async fn rl2_an_entry_that_no_mutation_wrote_is_reported_and_never_signed(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let rows = world.rows(Stream::Admin).await;
    let last = rows.last().unwrap();
    let header = gw_audit::Header::read(&last.bytes).unwrap().0;
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
    let admin = gw_audit::ChainId {
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
    let header = gw_audit::Header::read(&last.bytes).unwrap().0;
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

async fn rl9_rows_changed_while_no_sealer_ran_are_sealed_with_a_fault(world: World) {
    world.mutate("one").await;
    world.mutate("two").await;
    world
        .in_policy(&[
            "UPDATE audit_outbox SET actor_external_id = 'did:test:somebody else' WHERE id = 1",
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
             VALUES (3, 'delete', 'did:test:nobody', 1, 'user')",
            "UPDATE policy_store SET last_outbox_id = 3",
        ])
        .await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let bad = Some(OutboxFault::Unauthenticated);
    assert_eq!(world.listed().await, [(1, bad), (2, None), (3, bad)]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(
        findings,
        ["outbox_fault:unauthenticated:1", "outbox_fault:unauthenticated:3"]
    );
}

async fn rl9_rows_deleted_while_no_sealer_ran_are_reported(world: World) {
    for slug in ["one", "two", "three", "four"] {
        world.mutate(slug).await;
    }
    // The attacker deletes the last row and lowers the database's mark, but cannot change the mark in the journal's
    // directory.
    world
        .in_policy(&[
            "DELETE FROM audit_outbox WHERE id IN (2, 4)",
            "UPDATE policy_store SET last_outbox_id = 3",
        ])
        .await;
    let trust = world.trust();
    let mut sealer = world.sealer_with(Arc::clone(&trust));
    assert!(!trust.alarm.is_raised());
    world.seal(&mut sealer).await;
    assert!(trust.alarm.is_raised(), "readiness shows it at once");
    let missing = Some(OutboxFault::Missing);
    assert_eq!(
        world.listed().await,
        [(1, None), (2, missing), (3, None), (4, missing)],
        "the chain records the gaps"
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&"outbox_gap:2..3".to_owned()), "{findings:?}");
    assert!(findings.contains(&"outbox_gap:4..5".to_owned()), "{findings:?}");
}

/// Verification reports the entry of a gap as a finding (`gw_audit::verify`), so the gap is reported after a restart
/// too.
async fn rl9_a_gap_stays_in_the_chain_and_is_reported_once(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world.mutate("hidden").await;
    world
        .in_policy(&[
            "DELETE FROM audit_outbox WHERE id = 2",
            "UPDATE policy_store SET last_outbox_id = 1",
        ])
        .await;
    world.seal(&mut sealer).await;
    let missing = Some(OutboxFault::Missing);
    assert_eq!(world.listed().await, [(1, None), (2, missing)]);
    let mut sealer = world.sealer();
    world.mutate("next").await;
    world.seal(&mut sealer).await;
    sign(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, missing), (3, None)],
        "no id is issued twice"
    );
    let admin = super::ADMIN_CHAIN;
    let signed = world.audit.last_checkpoint(admin).await.unwrap().expect("signed");
    assert_eq!(signed.lines().nth(1), Some("4"), "the gap does not prevent signing");
    let findings = world.findings(SecurityKind::TamperDetected).await;
    let gaps: Vec<_> = findings
        .iter()
        .filter(|reason| reason.starts_with("outbox_gap"))
        .collect();
    assert_eq!(gaps, ["outbox_gap:2..3"], "{findings:?}");
}

/// The attacker replaces a row by a genuine row of a rolled-back mutation with the same id, whose authentication code
/// is valid.
async fn rl9_a_row_exchanged_after_its_commit_is_sealed_with_a_fault(world: World) {
    mutate(&world.another_store().await, "rolled-back").await;
    world
        .in_policy(&[
            "CREATE TABLE captured AS SELECT * FROM audit_outbox",
            "DELETE FROM audit_outbox",
            "DELETE FROM organizations WHERE slug = 'rolled-back'",
            "UPDATE policy_store SET last_outbox_id = 0",
        ])
        .await;
    world.mutate("hidden").await;
    world
        .in_policy(&[
            "DELETE FROM audit_outbox",
            "INSERT INTO audit_outbox SELECT * FROM captured",
        ])
        .await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(world.listed().await, [(1, Some(OutboxFault::Replaced))]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, ["outbox_row:lost:1", "outbox_fault:replaced:1"]);
}

async fn rl9_an_id_that_was_never_issued_makes_no_gap(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    let forged = "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
                  VALUES (9223372036854775807, 'delete', 'did:test:nobody', 1, 'user')";
    world.in_policy(&[forged]).await;
    world.seal(&mut sealer).await;
    // Neither the running sealer nor the next one uses it as the highest id.
    for slug in ["two", "three"] {
        world.mutate(slug).await;
        sealer = world.sealer();
        world.seal(&mut sealer).await;
    }
    let bad = Some(OutboxFault::Unauthenticated);
    assert_eq!(world.listed().await, [(1, None), (i64::MAX, bad), (2, None), (3, None)]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, [format!("outbox_fault:unauthenticated:{}", i64::MAX)]);
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
