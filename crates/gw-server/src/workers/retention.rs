//! Prunes the audit log: entries older than their retention, and calls beyond MAX_ACCESS_LOG_ROWS (spec/70 rules 23 to
//! 25).
//!
//! One instance prunes at a time, in batches. This worker chooses the chain; [`AuditStore::prune`] decides which of its
//! entries a batch may remove. Each prune is recorded by an audit entry, which goes through the outbox like every
//! mutation. A crash between the prune and its entry leaves an anchor without an entry, and the next sweep writes the
//! entry. So each prune is recorded at least once.

use super::sealer::{Alarm, raise_alarm};
use crate::{
    config::{self, Config, kind::signing_key},
    serve::{
        CLUSTER,
        stores::{AuditAdmin, Platform},
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

/// Most entries per transaction.
const BATCH: u64 = 1000;
/// Most transactions per sweep, so that others can use the audit store in between.
const BATCHES: u32 = 50;
/// Wait after a sweep that left entries to prune, so that pruning keeps up with 50,000 entries a second.
const BACKLOG_INTERVAL: Duration = Duration::from_secs(1);
/// Lifetime of the lease for pruning, unless it is renewed.
const LEASE: Seconds = Seconds(120);
/// Name of the lease.
const LEASE_NAME: &str = "retention";

/// The retention worker and its dependencies.
#[derive(Debug)]
pub(crate) struct Retention {
    store: Store,
    admin: Admin,
    clock: Arc<dyn Clock>,
    config: config::Retention,
    cluster: &'static str,
    key: CheckpointKey,
    keys: Vec<CheckpointPublicKey>,
    /// Identifies this instance as the holder of the lease.
    holder: String,
    /// Receives the findings about changed legal holds.
    journal: Arc<Journal>,
    /// Changed legal holds that were reported.
    reported_holds: HashSet<LegalHoldId>,
}

/// The audit store with the role that may delete.
#[derive(Debug)]
enum Admin {
    Open(AuditStore),
    /// Opened at the first sweep, so that the start of the service does not wait for it.
    Closed(Box<StoreConfig>),
}

impl Retention {
    /// Makes the worker; `admin` must not be [`AuditAdmin::Missing`].
    ///
    /// # Errors
    ///
    /// If the checkpoint key cannot be parsed.
    pub(crate) fn new(
        config: &Config,
        admin: AuditAdmin,
        audit: &AuditStore,
        store: &Store,
        platform: &Platform,
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
            clock: Arc::clone(&platform.clock),
            config: config.audit.retention.clone(),
            cluster: CLUSTER,
            keys,
            key,
            holder: platform.entropy.uuid().to_string(),
            journal: Arc::clone(journal),
            reported_holds: HashSet::new(),
        })
    }

    /// Sweeps until `end` is cancelled. The next sweep retries a failed one.
    pub(crate) async fn prune(mut self, end: CancellationToken) {
        loop {
            let rest = match self.sweep(&end).await {
                Ok(true) => BACKLOG_INTERVAL,
                Ok(false) => self.config.interval,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the audit log was not pruned; the next sweep retries"
                    );
                    self.config.interval
                }
            };
            if end.run_until_cancelled(sleep(rest)).await.is_none() {
                return;
            }
        }
    }

    /// Runs one sweep. Returns whether more entries can be pruned at once.
    async fn sweep(&mut self, end: &CancellationToken) -> anyhow::Result<bool> {
        let audit = self.open().await?;
        if !audit.take_turn(LEASE_NAME, &self.holder, LEASE).await? {
            return Ok(false);
        }
        // Record the prunes that a crash left without an entry.
        self.record_prunes(&audit).await?;
        let known = audit
            .known_holds(&self.store)
            .await
            .context("the legal holds cannot be read")?;
        self.report_changed_holds(&known);
        let mut batches_left = BATCHES;
        let result = self.remove(&audit, &known.holds, &mut batches_left, end).await;
        // Record the prunes also if the sweep failed.
        self.record_prunes(&audit).await?;
        result?;
        if batches_left < BATCHES {
            audit.give_back_space().await?;
        }
        Ok(batches_left == 0 && !end.is_cancelled())
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

    /// Reports holds that were placed and not lifted, and whose row in the policy database is missing or changed.
    fn report_changed_holds(&mut self, known: &KnownHolds) {
        for hold in &known.changed {
            if self.reported_holds.insert(*hold) {
                tracing::error!(
                    hold = %hold,
                    "the row of an active legal hold in `legal_holds` of the policy database is missing or changed: \
                     the table was changed outside the gateway or restored from an older copy; the held entries are \
                     kept; restore the row from the audit entry of its placement, and lift the hold by the API if it \
                     is over"
                );
                raise_alarm(&self.journal, Alarm::of_admin(format!("legal_hold_changed:{hold}")));
            }
        }
    }

    async fn remove(
        &self,
        audit: &AuditStore,
        held: &Holds,
        batches_left: &mut u32,
        end: &CancellationToken,
    ) -> anyhow::Result<()> {
        let now = self.clock.now();
        for stream in Stream::ALL {
            let Some(retention) = self.config.of(*stream) else {
                continue;
            };
            let seconds = u32::try_from(retention.as_secs()).map_or(Seconds(u32::MAX), Seconds);
            let bound = format!("{}h", retention.as_secs() / 3600);
            for chain in audit.remaining(*stream).await? {
                let run = PruneRun {
                    reason: PruneReason::Ttl,
                    bound: &bound,
                    before: now.minus(seconds),
                    held,
                };
                let mut stopped = None;
                while stopped.is_none() && *batches_left > 0 && !end.is_cancelled() {
                    *batches_left -= 1;
                    stopped = self.batch(audit, chain.chain, &run, BATCH).await?.stopped;
                }
            }
        }
        if self.config.max_access_rows > 0 {
            self.remove_excess(audit, held, self.config.max_access_rows, batches_left, end)
                .await?;
        }
        for stream in Stream::ALL {
            for chain in audit.remaining(*stream).await? {
                audit.thin_checkpoints(chain.chain).await?;
            }
        }
        Ok(())
    }

    /// Removes the oldest calls of all instances until at most `max_rows` are left.
    async fn remove_excess(
        &self,
        audit: &AuditStore,
        held: &Holds,
        max_rows: u64,
        batches_left: &mut u32,
        end: &CancellationToken,
    ) -> anyhow::Result<()> {
        let bound = max_rows.to_string();
        let run = PruneRun {
            reason: PruneReason::Fifo,
            bound: &bound,
            before: self.clock.now(),
            held,
        };
        let mut stuck: Vec<ChainId> = Vec::new();
        while *batches_left > 0 && !end.is_cancelled() {
            let chains = audit.remaining(Stream::Access).await?;
            let count: u64 = chains.iter().map(rows).sum();
            let oldest = chains
                .iter()
                .filter(|chain| rows(chain) > 0 && !stuck.contains(&chain.chain));
            let Some(oldest) = oldest.min_by_key(|chain| chain.since) else {
                return Ok(());
            };
            let excess = count.saturating_sub(max_rows);
            if excess == 0 {
                return Ok(());
            }
            *batches_left -= 1;
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

    async fn batch(
        &self,
        audit: &AuditStore,
        chain: ChainId,
        run: &PruneRun<'_>,
        limit: u64,
    ) -> anyhow::Result<Pruned> {
        audit.take_turn(LEASE_NAME, &self.holder, LEASE).await?;
        // Read the holds before each batch, because a hold applies from its commit on.
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
                "a send has no outcome yet, so it and all later entries are not pruned; the next start resolves it"
            ),
            Some(StopReason::Unsigned) => tracing::warn!(
                chain.stream = %chain.stream, chain.shard = %chain.shard,
                "old entries are not covered by a checkpoint and are not pruned; check that an instance seals the chain"
            ),
            Some(StopReason::Tampered { seq }) => tracing::error!(
                chain.stream = %chain.stream, chain.shard = %chain.shard, seq,
                "entries differ from what was signed: they and all later entries are not pruned; run `ledger-gateway \
                 audit verify`"
            ),
        }
        Ok(pruned)
    }

    /// Writes the missing audit entries about prunes.
    async fn record_prunes(&self, audit: &AuditStore) -> anyhow::Result<()> {
        for prune in audit.unlogged_prunes().await? {
            let mut tx = self.store.begin(&Actor::named(SYSTEM_RETENTION)).await?;
            tx.note_prune(&prune);
            tx.commit()
                .await
                .context("the audit entry about a prune was not written; the next sweep writes it")?;
            audit.mark_prune_logged(&prune).await?;
            tracing::info!(
                chain.stream = %prune.chain.stream, chain.shard = %prune.chain.shard,
                from = prune.first_seq, to = prune.size, reason = prune.reason.as_str(), "the audit log was pruned"
            );
        }
        Ok(())
    }
}

/// The parameters that the batches of one prune share.
struct PruneRun<'a> {
    reason: PruneReason,
    bound: &'a str,
    before: Timestamp,
    /// The legal holds at the start of the sweep.
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
        AccessRecord, Action, Anchor, Chain, Checkpoint, EncodedRecord, Genesis, ShardId, StoredEntry, tree::Frontier,
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
        let clock = Arc::new(ManualClock(AtomicI64::new(1_700_000_000_000_000)));
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
                self.clock.0.fetch_add(1_000_000, Ordering::SeqCst);
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
                erased: &|_, _| false,
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
        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
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
        world.clock.0.fetch_add(2 * DAY, Ordering::SeqCst);
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
        world.clock.0.fetch_add(2 * DAY, Ordering::SeqCst);
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
        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
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
        world.clock.0.fetch_add(DAY, Ordering::SeqCst);
        // Another instance takes the expired lease.
        assert!(world.audit.take_turn(LEASE_NAME, "there", LEASE).await.unwrap());
        world.sweep().await;
        assert_eq!(world.remaining().await, [60]);
        world.clock.0.fetch_add(DAY, Ordering::SeqCst);
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

        world.clock.0.fetch_add(10 * DAY, Ordering::SeqCst);
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
        let known = world.audit.known_holds(&world.retention.store).await.unwrap();
        assert!(known.holds.keep(Stream::Access, None) && known.changed == [id]);
        // After the row is restored, the hold can be lifted like any other, and its entries are pruned.
        let restore = format!(
            "INSERT INTO legal_holds (id, stream, reason, placed_by, created_at) VALUES (x'{}', 'access', 'case', 'x', \
             1)",
            id.0.simple()
        );
        policy.execute_unprepared(&restore).await.unwrap();
        let mut tx = world.retention.store.begin(&Actor::system()).await.unwrap();
        tx.clear_legal_hold(id, "closed").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            world.audit.known_holds(&world.retention.store).await.unwrap().changed,
            []
        );
        world.sweep().await;
        assert_eq!(world.remaining().await, [0]);
    }
}
