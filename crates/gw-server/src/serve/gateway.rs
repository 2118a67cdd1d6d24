//! Connects to the node, and serves the features from then on (spec/85 section 3, steps 6 and later).

use super::{
    administration::AdminThread,
    api_document,
    audit_log::AuditLog,
    directory,
    explorer::ExplorerApi,
    fault::ServeError,
    features::{AppDeps, Features, features},
    humanity,
    listeners::SwappableRouters,
    node,
    ready::ReadyState,
    routes::listener_routers,
    setup::Setup,
    storage::Storage,
    trust,
};
use crate::{config::Config, telemetry::Metrics, workers};
use gw_cache::Cache;
use gw_crypto::KeyCipher;
use gw_http::HttpContext;
use gw_identity::Resolvers;
use gw_journal::Recovery;
use gw_node::Node;
use gw_store::Feed;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::{interval, sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Pause between two attempts to reach a node that is down at start.
const NODE_RETRY: Duration = Duration::from_secs(2);
/// How often pending samples are merged into their histograms.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// The parts of the gateway that are open before its node is reached.
pub(super) struct Gateway<'a> {
    pub(super) setup: &'a Setup,
    pub(super) storage: &'a Storage,
    pub(super) audit_log: &'a AuditLog,
    pub(super) feed: Feed,
    pub(super) cache: Cache,
    /// Encrypts the upstream keys of groups.
    pub(super) group_keys: Arc<KeyCipher>,
    pub(super) http_context: Arc<HttpContext>,
    /// Set once the first node is reached.
    pub(super) node: &'a OnceLock<Arc<Node>>,
    /// The data API of the explorer.
    pub(super) explorer: ExplorerApi,
    /// The thread of the admin API.
    pub(super) administration: &'a AdminThread,
    /// Tasks that the shutdown waits for.
    pub(super) tasks: &'a TaskTracker,
    /// Cancelled at the begin of the shutdown.
    pub(super) shutdown: &'a CancellationToken,
}

impl Gateway<'_> {
    /// Starts the features and their workers, lets the listeners serve them, and marks the instance as serving. Then
    /// maintains the metrics until it is dropped. `recovery` is what a crash left open in the journal.
    ///
    /// # Errors
    /// If the node is on another chain, a setting is not valid, or a part of the features cannot be created.
    pub(super) async fn serve(
        self,
        recovery: Recovery,
        ready: ReadyState,
        routers: &SwappableRouters,
        metrics: &Metrics,
    ) -> Result<(), ServeError> {
        let readiness = Arc::clone(&ready.readiness);
        let has_internal = self.setup.config.edge.internal.is_some();
        let explorer = self.explorer.clone();
        let mut changes = explorer.changes();
        let features = self.start(recovery).await?;
        let api: Arc<str> = api_document()?.into();
        let routers_now = || {
            let features = features.with_explorer(explorer.public_routes());
            let (ready, metrics, api) = (ready.clone(), metrics.clone(), Arc::clone(&api));
            listener_routers(features, ready, metrics, api, has_internal)
        };
        changes.mark_unchanged();
        routers.replace(routers_now());
        readiness.serve();
        tracing::info!("serving");
        // Samples pile up until /metrics is read or this upkeep runs, and /metrics may never be read.
        let mut upkeep = interval(METRICS_UPKEEP);
        loop {
            tokio::select! {
                _ = upkeep.tick() => metrics.run_upkeep(),
                // `explorer` holds a sender, so the channel is never closed.
                _ = changes.changed() => routers.replace(routers_now()),
            }
        }
    }

    /// Waits for the node, builds the routers of the features, and starts the workers and the verifier.
    async fn start(self, recovery: Recovery) -> Result<Features, ServeError> {
        let (setup, shutdown) = (self.setup, self.shutdown);
        let (tasks, storage, audit_log) = (self.tasks, self.storage, self.audit_log);
        let deps = self.connect().await?;
        let features = features(&deps)?;
        // Transactions sent before the last shutdown are validated before any request is served. If this fails, it is
        // retried later.
        if let Err(error) = deps.node.refresh_head().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the newest block cannot be read yet; it is retried"
            );
        }
        deps.start_workers(recovery, shutdown)?;
        let verification = trust::verification(
            &setup.config,
            &setup.secrets,
            &setup.platform,
            storage.audit.clone(),
            storage.store.clone(),
            Arc::clone(&audit_log.trust),
            audit_log.journal.shard(),
        )?;
        tasks.spawn(workers::verify(verification, shutdown.clone()));
        Ok(features)
    }
}

impl<'a> Gateway<'a> {
    /// Connects to the node, and to the issuers and the directory of the configuration.
    async fn connect(self) -> Result<AppDeps<'a>, ServeError> {
        let config = &self.setup.config;
        let node = {
            let connected = reach_node(config, &self.group_keys).await?;
            Arc::clone(self.node.get_or_init(|| connected))
        };
        let humanity = humanity::humanity(config).await?;
        let directory = directory::directory(config, self.cache.clone(), &self.http_context)?;
        let resolvers = Resolvers::new(
            config.identity.resolvers.clone(),
            Arc::clone(&self.setup.platform.clock),
        );
        Ok(AppDeps {
            directory,
            config,
            humanity,
            secrets: &self.setup.secrets,
            group_keys: self.group_keys,
            http_context: self.http_context,
            store: self.storage.store.clone(),
            cache: self.cache,
            feed: self.feed,
            audit: self.storage.audit.clone(),
            journal: Arc::clone(&self.audit_log.journal),
            node,
            resolvers: Arc::new(resolvers),
            tasks: self.tasks.clone(),
            end: self.shutdown.clone(),
            explorer: self.explorer,
            entropy: Arc::clone(&self.setup.platform.entropy),
            administration: self.administration,
        })
    }
}

/// Connects to the node, and retries while it is down. A node on another chain is an error (spec/85 section 3, step 6).
async fn reach_node(config: &Config, group_keys: &Arc<KeyCipher>) -> Result<Arc<Node>, ServeError> {
    loop {
        match node::connect(config, Some(Arc::clone(group_keys))).await {
            Ok(node) => return Ok(node),
            Err(error) if node::is_down(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the node cannot be reached and is retried; until then only /health and /ready are served"
                );
                sleep(NODE_RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
