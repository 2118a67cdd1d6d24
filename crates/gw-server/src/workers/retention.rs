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
    Actor, Store, StoreConfig, StoreError,
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
            .known_holds(&self.store, self.cluster, &self.keys)
            .await
            .inspect_err(|error| self.report_changed_schema(error))
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

    /// Reports that nothing is pruned because the schema can hide rows.
    fn report_changed_schema(&self, error: &StoreError) {
        if let StoreError::SchemaChanged(objects) = error {
            tracing::error!(
                objects,
                "the schema of a database is not as the migrations made it, so it can hide legal holds and entries: \
                 nothing is pruned; find out who changed it, and restore or remove these objects"
            );
            raise_alarm(&self.journal, Alarm::of_admin("schema_changed".to_owned()));
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
            let Some(retention) = self.config.for_stream(*stream) else {
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
mod tests;
