//! `serve`: starts the gateway from a configuration, and shuts it down without losing a record.
//!
//! [`run`] follows the start order of spec/85 section 3 and the shutdown order of section 6.1. Each part is in a module
//! of its own, whose function returns what it built.

mod administration;
mod api_document;
mod api_examples;
mod audit_log;
mod conditions;
mod directory;
mod disclosure;
pub(crate) mod explorer;
mod fault;
mod features;
mod files;
mod gateway;
mod http_context;
pub(crate) mod humanity;
pub(crate) mod journal;
mod lease;
mod listeners;
pub(crate) mod node;
pub(crate) mod outbox_mark;
mod ready;
mod routes;
mod sealer;
mod sessions;
mod setup;
mod storage;
pub(crate) mod stores;
mod trust;

pub(crate) use api_document::api_document;
pub(crate) use fault::{ServeError, causes};
pub(crate) use journal::CLUSTER;

use crate::{
    config::{Config, EdgeConfig, Operation},
    listener::Connections,
    signal::Interrupt,
    telemetry::{self, Metrics},
    workers::{self, Retention},
};
use administration::AdminThread;
use anyhow::Context as _;
use audit_log::AuditLog;
use conditions::Conditions;
use explorer::{ExplorerApi, Unavailable};
use gateway::Gateway;
use gw_crypto::KeyCipher;
use gw_http::{HttpContext, InternalHosts};
use gw_store::{BootClock, Feed, FeedTiming};
use listeners::Listeners;
use ready::{ReadyDetail, ReadyState};
use sealer::Sealer;
use setup::Setup;
use std::sync::Arc;
use storage::Storage;
use tokio::time::{sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Runs the service until SIGTERM or SIGINT, or until it must end.
///
/// # Errors
/// If the service cannot start, or loses its lease.
pub(crate) async fn run(config: Config) -> Result<(), ServeError> {
    let directories = [config.data_dir.clone(), config.audit.journal_dir.clone()];
    serve(config)
        .await
        .map_err(|error| error.with_full_disks(directories.iter().map(|directory| &**directory)))
}

async fn serve(config: Config) -> Result<(), ServeError> {
    let mut interrupt = Interrupt::listen().context("the handlers of SIGTERM and SIGINT cannot be installed")?;
    let _log = telemetry::start_log(&config.operation).context("the log cannot be started")?;
    let metrics = Metrics::start().context("the metrics recorder cannot be started")?;

    let setup = Setup::complete(config)?;
    let (storage, outbox_alarm) = Storage::open(&setup).await?;
    let feed = Feed::start(&storage.store, FeedTiming::default(), Arc::new(BootClock))
        .await
        .context("the policy snapshot cannot be loaded from the policy store")?;
    let cache = stores::open_cache(&setup.platform, &setup.config).await?;
    let group_keys = group_keys(&setup, &feed)?;
    let (audit_log, recovery) = AuditLog::open(&setup, &storage, outbox_alarm).await?;
    let http_context = http_context::http_context(&setup.config, &setup.secrets, &setup.platform, &feed)?;
    audit_log.record_clock_jumps(&feed);
    audit_log.record_audited_rows(&setup.config)?;

    let tasks = TaskTracker::new();
    let explorer = explorer_api(&setup.config, &http_context, &audit_log, &tasks);
    let node = Arc::default();
    let conditions = Conditions {
        storage: &storage,
        feed: &feed,
        cache: &cache,
        audit_log: &audit_log,
        node: &node,
        explorer: &explorer,
    };
    let readiness = Arc::new(conditions.readiness());
    let ready = ReadyState {
        readiness: Arc::clone(&readiness),
        http_context: Arc::clone(&http_context),
        hosts: Arc::new(internal_hosts(&setup.config.edge)),
        detail: ReadyDetail::PrivateNetwork,
    };

    let shutdown = CancellationToken::new();
    let connections = Connections::new(shutdown.clone());
    let listeners = Listeners::bind(&setup.config).await?;
    let routers = listeners.serve(&setup.config, &connections, &ready);
    storage.end_patience();

    let retention = sealer::retention(&setup, &storage, &audit_log).await?;
    let sealer = Sealer::start(&setup, &storage, &audit_log);
    start_store_workers(retention, &storage, &audit_log, &tasks, &shutdown);
    let administration = AdminThread::start()?;
    let gateway = Gateway {
        setup: &setup,
        storage: &storage,
        audit_log: &audit_log,
        feed,
        cache,
        group_keys,
        http_context,
        node: &node,
        explorer,
        administration: &administration,
        tasks: &tasks,
        shutdown: &shutdown,
    };
    let result = tokio::select! {
        result = gateway.serve(recovery, ready, &routers, &metrics) => result,
        lease_error = storage.lease_lost() => Err(lease_error),
        () = interrupt.heard() => Ok(()),
    };
    readiness.drain();
    if result.is_ok() {
        shut_down(&setup.config.operation, &shutdown, &connections, &tasks).await;
    }
    // Sealing ends after every task that writes to the journal.
    sealer.end().await;
    storage.close().await;
    result
}

/// The hosts under which internal routes answer. If they are on the public listener, its public name is one.
fn internal_hosts(edge: &EdgeConfig) -> InternalHosts {
    let public = edge.internal.is_none().then(|| edge.origins.base.name().to_owned());
    let names = edge.internal_hosts.iter().cloned().chain(public);
    let listener = edge.internal.unwrap_or(edge.listen);
    InternalHosts::new(listener.ip(), names).with_pages(Arc::new(edge.origins.clone()))
}

/// The data API of the explorer, which has no index yet.
fn explorer_api(
    config: &Config,
    http_context: &Arc<HttpContext>,
    audit_log: &AuditLog,
    tasks: &TaskTracker,
) -> ExplorerApi {
    let reason = match config.explorer.database {
        Some(_) => Unavailable::Opening,
        None => Unavailable::NotConfigured,
    };
    ExplorerApi::new(
        reason,
        config.explorer.backend_key.clone(),
        Arc::clone(http_context),
        Arc::clone(&audit_log.journal),
        tasks.clone(),
    )
}

/// The cipher of the groups' upstream keys. Logs an error for each group whose key it cannot decrypt.
fn group_keys(setup: &Setup, feed: &Feed) -> anyhow::Result<Arc<KeyCipher>> {
    let group_keys = node::group_keys(&setup.config, &setup.secrets.key_encryption)?;
    for group in node::unreadable_keys(&group_keys, &feed.pin().snapshot) {
        tracing::error!(
            group.id = %group,
            "the upstream key of a group cannot be decrypted, and requests of its members are refused: check \
             RPC_API_KEY_ENCRYPTION_KEY, or set the key of the group again"
        );
    }
    Ok(Arc::new(group_keys))
}

/// Starts the workers of the stores, which need no node: the retention of the audit log, and the watches of a full disk
/// and of the privileges.
fn start_store_workers(
    retention: Option<Retention>,
    storage: &Storage,
    audit_log: &AuditLog,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) {
    let store = &storage.store;
    tasks.spawn(workers::watch_privileges(
        store.clone(),
        storage.audit.clone(),
        Arc::clone(&audit_log.journal),
        shutdown.clone(),
    ));
    if let Some(retention) = retention {
        tasks.spawn(retention.prune(shutdown.clone()));
    }
    tasks.spawn({
        let (store, shutdown) = (store.clone(), shutdown.clone());
        async move { shutdown.run_until_cancelled(stores::watch_free_space(store)).await }
    });
}

/// Graceful shutdown (spec/85 section 6.1): waits for open requests, accepts no new ones, and records the outcome of
/// everything that was begun (HD21).
async fn shut_down(
    operation: &Operation,
    shutdown: &CancellationToken,
    connections: &Connections,
    tasks: &TaskTracker,
) {
    tracing::info!("shutdown requested: not ready from now on");
    sleep(operation.shutdown_delay).await;
    shutdown.cancel();
    tasks.close();
    let drained = async {
        connections.closed().await;
        // Sends may outlive their connection, until their outcome is recorded.
        tasks.wait().await;
    };
    if timeout(operation.shutdown_timeout, drained).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            tasks = tasks.len(),
            "shutdown timeout: connections or tasks were still open and are aborted"
        );
    }
    tracing::info!("shutdown complete");
}
