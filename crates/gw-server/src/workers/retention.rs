//! Prunes the audit log: what is older than its retention, and calls beyond MAX_ACCESS_LOG_ROWS (spec/70 rules 23 to 25).
//!
//! One instance at a time, in batches. What a batch may remove is decided by [`AuditStore::prune`]; here is decided of which
//! chain. Each prune is told of by an audit entry on the path that all mutations take. A crash between the two leaves an
//! anchor without entry, and the next sweep writes it: told of at least once, never not at all.

use super::sealer::{Alarm, raise_alarm};
use crate::{
    config::{self, Config, kind::signing_key},
    serve::{
        CLUSTER,
        stores::{AuditAdmin, Ground},
    },
};
use anyhow::Context as _;
use gw_audit::{ChainId, CheckpointKey, CheckpointPublicKey, SYSTEM_RETENTION, Stream};
use gw_journal::Journal;
use gw_store::{
    Actor, Store, StoreConfig,
    audit::{AuditStore, KnownHolds, PruneBatch, Pruned, Remaining, StopReason},
    record::{Holds, PruneReason},
};
use gw_types::{Clock, LegalHoldId, Seconds, Secret, Timestamp};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Entries of one transaction.
const BATCH: u64 = 1000;
/// Transactions of one sweep: others have the audit store in between.
const BATCHES: u32 = 50;
/// Rest after a sweep that left something to prune, so that pruning keeps up with 50,000 entries a second.
const MORE: Duration = Duration::from_secs(1);
/// How long the turn is kept without being renewed.
const TURN: Seconds = Seconds(120);
const WORK: &str = "retention";

/// What pruning takes.
#[derive(Debug)]
pub(crate) struct Retention {
    store: Store,
    admin: Admin,
    clock: Arc<dyn Clock>,
    config: config::Retention,
    cluster: &'static str,
    key: CheckpointKey,
    keys: Vec<CheckpointPublicKey>,
    /// Names this instance among those that could have the turn.
    holder: String,
    /// Told of holds that somebody took out of the policy database.
    journal: Arc<Journal>,
    told: HashSet<LegalHoldId>,
}

/// The audit store under the role that may delete.
#[derive(Debug)]
enum Admin {
    Open(AuditStore),
    /// Opened when it is needed: the service does not wait for it.
    Closed(Box<StoreConfig>),
}

impl Retention {
    /// Pruning by the role that may; `admin` must not be [`AuditAdmin::Missing`].
    pub(crate) fn new(
        config: &Config,
        admin: AuditAdmin,
        audit: &AuditStore,
        store: &Store,
        ground: &Ground,
        key: &Secret,
        journal: &Arc<Journal>,
    ) -> anyhow::Result<Self> {
        let key = signing_key(key.expose()).context("the checkpoint key cannot be read")?;
        let key = CheckpointKey::from_seed(&key.to_bytes());
        let mut keys = vec![key.public()];
        keys.extend(
            config
                .audit
                .previous_keys
                .iter()
                .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()),
        );
        Ok(Self {
            store: store.clone(),
            admin: match admin {
                AuditAdmin::Other(admin) => Admin::Closed(admin),
                AuditAdmin::Own | AuditAdmin::Missing => Admin::Open(audit.clone()),
            },
            clock: Arc::clone(&ground.clock),
            config: config.audit.retention.clone(),
            cluster: CLUSTER,
            keys,
            key,
            holder: ground.entropy.uuid().to_string(),
            journal: Arc::clone(journal),
            told: HashSet::new(),
        })
    }

    /// Sweeps until told to end. A sweep that fails is tried again at the next one.
    pub(crate) async fn prune(mut self, end: CancellationToken) {
        loop {
            let rest = match self.sweep(&end).await {
                Ok(true) => MORE,
                Ok(false) => self.config.interval,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the audit log was not pruned; tried again at the next sweep"
                    );
                    self.config.interval
                }
            };
            if end.run_until_cancelled(sleep(rest)).await.is_none() {
                return;
            }
        }
    }

    /// One sweep; whether there is more to prune at once.
    async fn sweep(&mut self, end: &CancellationToken) -> anyhow::Result<bool> {
        let audit = self.open().await?;
        if !audit.take_turn(WORK, &self.holder, TURN).await? {
            return Ok(false);
        }
        // What a crash left untold.
        self.tell(&audit).await?;
        let known = audit
            .known_holds(&self.store)
            .await
            .context("the legal holds cannot be read")?;
        self.tell_of_holds(&known);
        let mut left = BATCHES;
        let swept = self.remove(&audit, &known.holds, &mut left, end).await;
        // What went is told of, whatever stopped the sweep.
        self.tell(&audit).await?;
        swept?;
        if left < BATCHES {
            audit.give_back_space().await?;
        }
        Ok(left == 0 && !end.is_cancelled())
    }

    async fn open(&mut self) -> anyhow::Result<AuditStore> {
        if let Admin::Closed(config) = &self.admin {
            let opened = AuditStore::open((**config).clone()).await;
            self.admin = Admin::Open(opened.context("AUDIT_ADMIN_DATABASE_URL: the audit store cannot be opened")?);
        }
        match &self.admin {
            Admin::Open(audit) => Ok(audit.clone()),
            Admin::Closed(_) => anyhow::bail!("the audit store is not open"),
        }
    }

    /// Tells of holds that were placed, never lifted, and are not in the policy database as they were placed.
    fn tell_of_holds(&mut self, known: &KnownHolds) {
        for hold in &known.changed {
            if self.told.insert(*hold) {
                tracing::error!(
                    hold = %hold,
                    "a legal hold was placed and not lifted, and `legal_holds` of the policy database does not have it so: somebody \
                     changed the table or put an older one in its place; what the hold names is kept; put the row back as the \
                     audit entry of its placement says, and lift it by the API if it is over"
                );
                raise_alarm(&self.journal, Alarm::of_admin(format!("legal_hold_changed:{hold}")));
            }
        }
    }

    async fn remove(
        &self,
        audit: &AuditStore,
        held: &Holds,
        left: &mut u32,
        end: &CancellationToken,
    ) -> anyhow::Result<()> {
        let now = self.clock.now();
        for stream in Stream::ALL {
            let Some(kept) = self.config.of(*stream) else { continue };
            let seconds = u32::try_from(kept.as_secs()).map_or(Seconds(u32::MAX), Seconds);
            let bound = format!("{}h", kept.as_secs() / 3600);
            for chain in audit.remaining(*stream).await? {
                let run = Run {
                    reason: PruneReason::Ttl,
                    bound: &bound,
                    before: now.minus(seconds),
                    held,
                };
                let mut stopped = None;
                while stopped.is_none() && *left > 0 && !end.is_cancelled() {
                    *left -= 1;
                    stopped = self.batch(audit, chain.chain, &run, BATCH).await?.stopped;
                }
            }
        }
        if self.config.max_access_rows > 0 {
            self.remove_beyond(audit, held, self.config.max_access_rows, left, end)
                .await?;
        }
        for stream in Stream::ALL {
            for chain in audit.remaining(*stream).await? {
                audit.thin_checkpoints(chain.chain).await?;
            }
        }
        Ok(())
    }

    /// Removes the oldest calls, of whatever instance, until no more than `most` are left.
    async fn remove_beyond(
        &self,
        audit: &AuditStore,
        held: &Holds,
        most: u64,
        left: &mut u32,
        end: &CancellationToken,
    ) -> anyhow::Result<()> {
        let bound = most.to_string();
        let run = Run {
            reason: PruneReason::Fifo,
            bound: &bound,
            before: self.clock.now(),
            held,
        };
        let mut stuck: Vec<ChainId> = Vec::new();
        while *left > 0 && !end.is_cancelled() {
            let chains = audit.remaining(Stream::Access).await?;
            let count: u64 = chains.iter().map(rows).sum();
            let oldest = chains
                .iter()
                .filter(|chain| rows(chain) > 0 && !stuck.contains(&chain.chain));
            let Some(oldest) = oldest.min_by_key(|chain| chain.since) else {
                return Ok(());
            };
            let excess = count.saturating_sub(most);
            if excess == 0 {
                return Ok(());
            }
            *left -= 1;
            if self
                .batch(audit, oldest.chain, &run, BATCH.min(excess))
                .await?
                .stopped
                .is_some()
            {
                stuck.push(oldest.chain);
            }
        }
        Ok(())
    }

    async fn batch(&self, audit: &AuditStore, chain: ChainId, run: &Run<'_>, limit: u64) -> anyhow::Result<Pruned> {
        audit.take_turn(WORK, &self.holder, TURN).await?;
        // Asked before each batch: a hold counts from its commit on.
        let holds = self
            .store
            .read()
            .holds()
            .await
            .context("the legal holds cannot be read")?
            .and(run.held);
        let batch = PruneBatch {
            reason: run.reason,
            bound: run.bound,
            before: run.before,
            limit,
            holds: &holds,
            cluster: self.cluster,
            key: &self.key,
            keys: &self.keys,
        };
        let pruned = audit
            .prune(chain, &batch)
            .await
            .with_context(|| format!("chain {}/{}", chain.stream, chain.shard))?;
        if pruned.count > 0 {
            metrics::counter!("ledger_gateway_audit_pruned_total", "stream" => chain.stream.as_str())
                .increment(pruned.count);
        }
        match pruned.stopped {
            None | Some(StopReason::Young | StopReason::Held) => {}
            Some(StopReason::OpenSend { seq }) => tracing::warn!(
                chain.stream = %chain.stream, chain.shard = %chain.shard, seq,
                "a send has no outcome, so neither it nor anything behind it is pruned; it is resolved at the next start"
            ),
            Some(StopReason::Unsigned) => tracing::warn!(
                chain.stream = %chain.stream, chain.shard = %chain.shard,
                "old entries are below no checkpoint and are not pruned; is the chain sealed by an instance?"
            ),
            Some(StopReason::Tampered { seq }) => tracing::error!(
                chain.stream = %chain.stream, chain.shard = %chain.shard, seq,
                "entries are not what was signed: neither they nor anything behind them is pruned; run `audit verify`"
            ),
        }
        Ok(pruned)
    }

    /// Writes the audit entries about prunes that have none yet.
    async fn tell(&self, audit: &AuditStore) -> anyhow::Result<()> {
        for prune in audit.unlogged_prunes().await? {
            let mut tx = self.store.begin(&Actor::named(SYSTEM_RETENTION)).await?;
            tx.note_prune(&prune);
            tx.commit()
                .await
                .context("the audit entry about a prune was not written; it follows at the next sweep")?;
            audit.mark_prune_logged(&prune).await?;
            tracing::info!(
                chain.stream = %prune.chain.stream, chain.shard = %prune.chain.shard,
                from = prune.first_seq, to = prune.size, reason = prune.reason.as_str(), "the audit log was pruned"
            );
        }
        Ok(())
    }
}

/// What the batches of one prune have in common.
struct Run<'a> {
    reason: PruneReason,
    bound: &'a str,
    before: Timestamp,
    /// What was held when the sweep began.
    held: &'a Holds,
}

const fn rows(chain: &Remaining) -> u64 {
    chain.size.saturating_sub(chain.first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verification::{ChainReport, Known, Pass, verify_all};
    use gw_audit::{
        AccessRecord, Action, Anchor, Chain, Checkpoint, Draft, Genesis, ShardId, StoredEntry, tree::Frontier,
    };
    use gw_store::{
        DirectoryLock, Location,
        audit::ToSeal,
        record::{HoldScope, LegalHold},
    };
    use sea_orm::{ConnectionTrait as _, Database};
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicI64, Ordering},
    };
    use uuid::Uuid;

    #[derive(Debug)]
    struct ManualClock(AtomicI64);

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::SeqCst))
        }
    }

    const DAY: i64 = 86_400_000_000;

    struct World {
        retention: Retention,
        clock: Arc<ManualClock>,
        audit: AuditStore,
        place: tempfile::TempDir,
    }

    fn journal(dir: std::path::PathBuf) -> Arc<Journal> {
        let options = gw_journal::Options {
            dir,
            holder: "the test".to_owned(),
            cluster: CLUSTER.to_owned(),
            checkpoint_key: [7; 32],
            max_bytes: 64 << 20,
            segment_bytes: 1 << 20,
            retain_bytes: 64 << 20,
            retain_for: Seconds(3600),
        };
        let clock: Arc<dyn Clock> = Arc::new(crate::ambient::SystemClock);
        Arc::new(
            Journal::open(options, clock, Arc::new(crate::ambient::SystemEntropy))
                .unwrap()
                .0,
        )
    }

    /// A store with nothing in it, all of which is kept for ever.
    async fn world() -> World {
        let place = tempfile::tempdir().unwrap();
        let directory = Arc::new(DirectoryLock::acquire(place.path()).unwrap());
        let clock = Arc::new(ManualClock(AtomicI64::new(1_700_000_000_000_000)));
        let config = |file: &str| StoreConfig {
            location: Location::Sqlite {
                directory: Arc::clone(&directory),
                file: file.to_owned(),
            },
            connections: 2,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::new(crate::ambient::SystemEntropy),
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
            journal: journal(place.path().join("journal")),
            told: HashSet::new(),
        };
        World {
            retention,
            clock,
            audit,
            place,
        }
    }

    impl World {
        /// A chain of calls, one a second, signed at its end.
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
                self.clock.0.fetch_add(1_000_000, Ordering::SeqCst);
                let draft = Draft::new(
                    &AccessRecord::new("eth_call", 200).into(),
                    &crate::ambient::SystemEntropy,
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

        /// What a verification finds, by its codes.
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
                erased: &|_, _| false,
            };
            let mut codes = Vec::new();
            let found = |report: ChainReport| codes.extend(report.report.findings.iter().map(|one| one.kind.as_str()));
            verify_all(&self.audit, &known, &pass, &BTreeMap::new(), |_| true, found)
                .await
                .unwrap();
            codes
        }

        async fn left(&self) -> Vec<u64> {
            self.audit
                .remaining(Stream::Access)
                .await
                .unwrap()
                .iter()
                .map(rows)
                .collect()
        }

        async fn told(&self) -> Vec<String> {
            let waiting = self.retention.store.outbox(0, 100).await.unwrap();
            let prunes = waiting
                .into_iter()
                .filter(|row| row.entry.action == Action::PruneAccess);
            prunes.map(|row| row.entry.new_value.unwrap()).collect()
        }
    }

    #[tokio::test]
    async fn rl13_what_is_older_than_its_retention_goes_and_is_told_of() {
        let mut world = world().await;
        let old = world.chain(1, 2500).await;
        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
        world.chain(2, 10).await;
        assert!(!world.sweep().await);
        assert_eq!(world.left().await, [2500, 10], "0 is for ever");
        world.retention.config.access = Some(Duration::from_secs(9 * 86_400));
        assert!(!world.sweep().await);
        assert_eq!(world.left().await, [0, 10]);
        let told = world.told().await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("\"deleted_count\":2500") && told[0].contains("\"retention\":\"216h\""),
            "{told:?}"
        );
        let anchor = world.audit.anchor(old).await.unwrap().unwrap();
        Anchor::open(&anchor.bytes, &anchor.note, old, CLUSTER, &world.retention.keys).unwrap();
        assert!(!world.sweep().await);
        assert_eq!(world.told().await.len(), 1, "once");
    }

    #[tokio::test]
    async fn rl13_max_access_log_rows_keeps_the_newest_of_all_instances() {
        let mut world = world().await;
        world.chain(1, 300).await;
        world.chain(2, 300).await;
        world.retention.config.max_access_rows = 250;
        assert!(!world.sweep().await);
        assert_eq!(world.left().await, [300, 300], "what is younger than a day stays");
        world.clock.0.fetch_add(2 * DAY, Ordering::SeqCst);
        world.chain(3, 100).await;
        assert!(!world.sweep().await);
        assert_eq!(world.left().await, [0, 150, 100]);
        let told = world.told().await;
        assert_eq!(told.len(), 2);
        assert!(
            told.iter()
                .all(|said| said.contains("fifo") && said.contains("\"max_rows\":\"250\"")),
            "{told:?}"
        );
    }

    /// AU-24: what is left after a prune verifies from its anchor, against all that was signed before, too; and neither the
    /// anchor nor the hashes of what went can be changed unseen.
    #[tokio::test]
    async fn rl13_a_pruned_chain_is_verified_from_its_anchor() {
        let mut world = world().await;
        let id = world.chain(1, 600).await;
        world.clock.0.fetch_add(2 * DAY, Ordering::SeqCst);
        world.retention.config.max_access_rows = 250;
        assert!(!world.sweep().await);
        assert_eq!(world.left().await, [250]);
        assert_eq!(world.findings().await, [] as [&str; 0]);
        for (seq, there) in [(0, true), (349, true), (350, true), (599, true), (600, false)] {
            assert_eq!(
                world.audit.computed_hash(id, seq).await.unwrap().is_some(),
                there,
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
                let url = format!("sqlite://{}", world.place.path().join("audit.db").display());
                Database::connect(url)
                    .await
                    .unwrap()
                    .execute_unprepared(&format!("UPDATE {sql}"))
                    .await
                    .unwrap();
                let found = world.findings().await;
                assert!(
                    found
                        .iter()
                        .copied()
                        .eq(found.iter().copied().filter(|code| Some(*code) == expected)),
                    "{sql}: {found:?}"
                );
                assert_eq!(found.is_empty(), expected.is_none(), "{sql}: {found:?}");
            }
        }
        // One after the other: without its anchor the rest of a chain begins nowhere.
        for (change, expected) in [
            (
                "UPDATE hash_tiles SET hashes = zeroblob(length(hashes)) WHERE tile = 0",
                "anchor_mismatch",
            ),
            ("UPDATE anchors SET bytes = zeroblob(length(bytes))", "anchor_mismatch"),
            ("DELETE FROM anchors", "seq_gap"),
            // A row of `chains` that cannot be read hides no other chain.
            (
                "INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
                 VALUES ('access', randomblob(16), 0, 'x', 0, 0, 0, x'00', 0)",
                "row_read_failed",
            ),
        ] {
            let url = format!("sqlite://{}", world.place.path().join("audit.db").display());
            Database::connect(url)
                .await
                .unwrap()
                .execute_unprepared(change)
                .await
                .unwrap();
            let found = world.findings().await;
            assert!(found.contains(&expected), "{change}: {found:?}");
            assert!(expected != "row_read_failed" || found.contains(&"seq_gap"), "{found:?}");
        }
    }

    #[tokio::test]
    async fn rl13_a_hold_stops_pruning_and_a_long_backlog_goes_on_at_once() {
        let mut world = world().await;
        world.chain(1, 60).await;
        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
        world.retention.config.access = Some(Duration::from_secs(86_400));
        let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
        let LegalHold { id, .. } = tx.place_hold(HoldScope::Stream(Stream::Access), "case").await.unwrap();
        tx.commit().await.unwrap();
        world.sweep().await;
        assert_eq!(world.left().await, [60]);
        let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
        tx.lift_hold(id, "closed").await.unwrap();
        tx.commit().await.unwrap();
        // Another instance has the turn.
        assert!(
            !world.audit.take_turn(WORK, "there", TURN).await.unwrap(),
            "this one has it"
        );
        world.clock.0.fetch_add(DAY, Ordering::SeqCst);
        assert!(world.audit.take_turn(WORK, "there", TURN).await.unwrap());
        world.sweep().await;
        assert_eq!(world.left().await, [60]);
        world.clock.0.fetch_add(DAY, Ordering::SeqCst);
        world.sweep().await;
        assert_eq!(world.left().await, [0]);
    }

    /// Rule 24: whoever writes to the policy database alone neither lifts a hold nor changes what it names.
    #[tokio::test]
    async fn rl13_a_hold_that_the_log_knows_holds_without_its_row() {
        let mut world = world().await;
        world.chain(1, 60).await;
        let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
        let LegalHold { id, .. } = tx.place_hold(HoldScope::Stream(Stream::Access), "case").await.unwrap();
        tx.commit().await.unwrap();
        // As the sealer seals it.
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
            let draft = Draft::new(&gw_audit::Record::Admin(row.entry), &row.salts);
            batch.push(ToSeal {
                entry: chain.entry(draft, row.created_at).unwrap(),
            });
        }
        let claim = world.audit.claim(admin, "writer", Seconds(15)).await.unwrap();
        world.audit.insert_sealed(&claim, &batch).await.unwrap();

        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
        world.retention.config.access = Some(Duration::from_secs(86_400));
        let policy = format!("sqlite://{}", world.place.path().join("gateway.db").display());
        let policy = Database::connect(policy).await.unwrap();
        for sql in [
            "UPDATE legal_holds SET stream = 'security'",
            "DELETE FROM legal_holds",
            // What was sealed is not kept for ever in the outbox.
            "DELETE FROM audit_outbox",
        ] {
            policy.execute_unprepared(sql).await.unwrap();
            world.sweep().await;
            assert_eq!(world.left().await, [60], "{sql}");
            assert!(world.retention.told.contains(&id), "{sql}");
        }
        let known = world.audit.known_holds(&world.retention.store).await.unwrap();
        assert!(known.holds.keep(Stream::Access, None) && known.changed == [id]);
        // Put back, it is lifted like any other, and what it held goes.
        let back = format!(
            "INSERT INTO legal_holds (id, stream, reason, placed_by, created_at) VALUES (x'{}', 'access', 'case', 'x', 1)",
            id.0.simple()
        );
        policy.execute_unprepared(&back).await.unwrap();
        let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
        tx.lift_hold(id, "closed").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            world.audit.known_holds(&world.retention.store).await.unwrap().changed,
            []
        );
        world.sweep().await;
        assert_eq!(world.left().await, [0]);
    }
}
