//! Tests of the sealer on real stores: waiting records are sealed, even after changes to either database. This module
//! holds what all of them use: the two databases and the journal.

use super::{Sealer, Sealing, SealingHealth, worker::ChainWorker};
use crate::{
    serve::outbox_mark::OutboxMarkFile,
    system::{SystemClock, SystemEntropy},
    trust::{AuditTrust, HeadsFile, TamperAlarm},
};
use futures_util::future::join_all;
use gw_audit::{AccessRecord, Content, OutboxFault, Record, SecurityKind, StoredEntry, Stream};
use gw_journal::{Journal, JournalConfig};
use gw_store::{
    Actor, DirectoryLock, Location, OutboxGuard, OutboxWitness, Store, StoreConfig,
    audit::{AuditFilter, AuditStore, LogRow, OutboxKey, SealedRow},
    read::{Paging, Scope},
    record::NewOrganization,
};
use gw_types::{Clock, Entropy, Seconds, Secret};
use sea_orm::{ConnectionTrait as _, Database};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Stands for the id of a row that is listed as tampered.
const TAMPERED: i64 = -1;
/// The seed of the outbox key.
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

mod audit;
mod kills;
mod losses;
mod notes;
mod policy;
mod waiting;

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
        let locations = [&policy, &audit].map(|url| Location::postgres(Secret::new(url.clone())).patient());
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

    /// The sealer of a newly started process.
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
            let entry = StoredEntry::new(row.bytes, row.openings).unwrap();
            if let Content::Record(Record::Security(event)) = entry.content().unwrap()
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
