//! Starts and ends the tasks that write to the audit store.

use super::{audit_log::AuditLog, journal::CLUSTER, setup::Setup, storage::Storage, stores};
use crate::workers::{self, Retention, Sealing};
use std::sync::Arc;
use tokio::{
    spawn,
    task::{JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

/// The running sealer, and the task that watches the journal heads.
#[derive(Debug)]
pub(super) struct Sealer {
    end: CancellationToken,
    sealing: JoinHandle<anyhow::Result<()>>,
    head_watcher: JoinHandle<()>,
}

impl Sealer {
    /// Starts the sealer and the watcher.
    pub(super) fn start(setup: &Setup, storage: &Storage, audit_log: &AuditLog) -> Self {
        let sealing = Sealing {
            journal: Arc::clone(&audit_log.journal),
            audit: storage.audit.clone(),
            store: storage.store.clone(),
            clock: Arc::clone(&setup.platform.clock),
            outbox_mark: Arc::clone(&storage.outbox_mark),
            health: Arc::clone(&audit_log.health),
            cluster: CLUSTER,
            key: setup.secrets.checkpoint.clone(),
            interval: setup.config.audit.checkpoint_interval,
            trust: Arc::clone(&audit_log.trust),
        };
        let end = CancellationToken::new();
        // On its own thread: it hashes entries and builds statements by the thousand, and must not delay requests.
        let sealing_ended = end.clone();
        let sealing = spawn_blocking(move || workers::seal(&sealing, &sealing_ended));
        let head_watcher = spawn(workers::watch_journal_heads(
            Arc::clone(&audit_log.journal),
            storage.store.clone(),
            storage.audit.clone(),
            Arc::clone(&audit_log.trust),
            end.clone(),
        ));
        Self {
            end,
            sealing,
            head_watcher,
        }
    }

    /// Seals the remaining records, and ends both tasks. Call it after the end of every task that writes to the
    /// journal.
    pub(super) async fn end(self) {
        self.end.cancel();
        match self.sealing.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                error = format!("{error:#}"),
                "not all records are sealed; the next start seals the rest from the journal"
            ),
            Err(_) => tracing::error!("the sealer panicked; the next start seals the rest from the journal"),
        }
        if self.head_watcher.await.is_err() {
            tracing::error!("the task that watches the journal heads panicked");
        }
    }
}

/// The worker that prunes the audit log; `None` if no credential may delete from it.
///
/// # Errors
/// If the privileges of the audit store cannot be read, or the checkpoint key cannot be used.
pub(super) async fn retention(
    setup: &Setup,
    storage: &Storage,
    audit_log: &AuditLog,
) -> anyhow::Result<Option<Retention>> {
    let Setup {
        config,
        platform,
        secrets,
    } = setup;
    let Storage { store, audit, .. } = storage;
    match stores::audit_admin(platform, config, audit).await? {
        stores::AuditAdmin::Missing => {
            tracing::warn!("{}", stores::NOTHING_IS_PRUNED);
            Ok(None)
        }
        admin => Ok(Some(Retention::new(
            config,
            admin,
            audit,
            store,
            platform,
            &secrets.checkpoint,
            &audit_log.journal,
        )?)),
    }
}
