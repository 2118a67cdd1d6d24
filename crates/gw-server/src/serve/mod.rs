//! `serve`: starts the gateway from a configuration, and shuts it down without losing a record.
//!
//! [`run`] follows the start order of spec/85 section 3 and the shutdown order of section 6.1.

mod administration;
mod api_document;
mod api_examples;
mod body;
mod body_budget;
mod directory;
mod fault;
mod features;
mod files;
mod http_context;
pub(crate) mod humanity;
pub(crate) mod journal;
mod lease;
mod listen;
pub(crate) mod node;
pub(crate) mod outbox_mark;
mod quota;
mod ready;
mod routes;
mod sessions;
pub(crate) mod stores;
mod timeout_io;
mod trust;

pub(crate) use api_document::api_document;
pub(crate) use fault::{ServeError, causes};
pub(crate) use journal::CLUSTER;

use crate::{
    cli::eprint_line,
    config::{Config, Operation},
    signal::Interrupt,
    telemetry::{self, Metrics},
    trust::HeadsFile,
    workers::{self, Retention, Sealing, SealingHealth},
};
use administration::AdminThread;
use anyhow::Context as _;
use arc_swap::ArcSwap;
use axum::Router;
use body_budget::{BodyBudget, BodyLimits};
use features::AppDeps;
use gw_audit::verify::{Finding, FindingKind};
use gw_crypto::KeyCipher;
use gw_http::TrustedProxies;
use gw_identity::Resolvers;
use gw_node::Node;
use gw_store::{BootClock, Feed, FeedTiming};
use lease::Lease;
use listen::{Connections, SwappableRouter};
use outbox_mark::OutboxMarkFile;
use quota::Quota;
use ready::{Level, Readiness, ReadyDetail, ReadyState};
use routes::{ListenerRouters, listener_routers, starting_router};
use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};
use stores::{Platform, Secrets};
use tokio::{
    net::TcpListener,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Pause between two attempts to reach a node that is down at start.
const NODE_RETRY: Duration = Duration::from_secs(2);
/// How often pending samples are merged into their histograms.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Runs the service until SIGTERM or SIGINT, or until it must end.
///
/// # Errors
/// If the service cannot start, or loses its lease.
pub(crate) async fn run(config: Config) -> Result<(), ServeError> {
    let mut interrupt = Interrupt::listen().context("the handlers of SIGTERM and SIGINT cannot be installed")?;
    let _log = telemetry::start_log(&config.operation).context("the log cannot be started")?;
    let metrics = Metrics::start().context("the metrics recorder cannot be started")?;

    let platform = Platform::hold(&config)?;
    let secrets = Secrets::complete(&config, &*platform.entropy)?;
    if secrets.admin_is_fresh {
        // Printed once, and not logged: logs are stored and shipped (spec/80 rule 1.1).
        eprint_line(format_args!(
            "ADMIN_API_TOKEN is not set; for this run it is {}",
            secrets.admin.expose()
        ));
    }
    stores::make_private(&config.audit.journal_dir)?;
    let outbox_mark = Arc::new(
        OutboxMarkFile::open(&config.audit.journal_dir).context("the audit outbox mark file cannot be opened")?,
    );
    let store = stores::open_policy(&platform, &config, secrets.outbox_guard(&outbox_mark)?).await?;
    let lease = match config.store.url {
        Some(_) => Some(Lease::take(&store, config.store.cache_url.is_some()).await?),
        None => None,
    };
    let audit = stores::open_audit(&platform, &config).await?;
    let rewound = workers::raise_outbox_ids(&store, &audit, &outbox_mark).await?;
    if lease.as_ref().is_none_or(Lease::began_alone) {
        stores::restore_toggles(&store).await?;
    }
    let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock))
        .await
        .context("the policy snapshot cannot be loaded from the policy store")?;
    let cache = stores::open_cache(&platform, &config).await?;
    let group_keys = Arc::new(node::group_keys(&config, &secrets.key_encryption)?);
    for group in node::unreadable_keys(&group_keys, &feed.pin().snapshot) {
        tracing::error!(
            group.id = %group,
            "the upstream key of a group cannot be decrypted, and requests of its members are refused: check \
             RPC_API_KEY_ENCRYPTION_KEY, or set the key of the group again"
        );
    }
    let (journal, recovery) = journal::open(&config, &secrets, &platform)?;
    let heads = HeadsFile::open(&config.audit.journal_dir)?;
    let (journal, recovery, foreign_chains) =
        journal::reconcile(journal, recovery, &audit, &store, &heads, &config.audit.journal_dir).await?;
    let shard = journal.shard();
    let trust = trust::open(&config, &secrets, &platform, heads, &journal, &audit, &store).await?;
    if let Some(alarm) = rewound {
        trust.alarm.raise_outbox(alarm.reason, alarm.count);
    }
    foreign_chains
        .into_iter()
        .for_each(|chain| trust.alarm.raise(chain, &Finding::new(FindingKind::Fork, None), 0, 0));
    let http_context = http_context::http_context(&config, &secrets, &platform, &feed)?;
    feed.on_clock_jump({
        let journal = Arc::clone(&journal);
        move |jump| journal::note_clock_jump(&journal, jump)
    });

    let node: Arc<OnceLock<Arc<Node>>> = Arc::default();
    let health = Arc::new(SealingHealth::default());
    let readiness = Arc::new(
        Readiness::new()
            .with("db", {
                let feed = feed.clone();
                move || feed.pin().fresh
            })
            // Shows why `db` is down: not the database is at fault, but the clock of one of the two machines.
            .with("clock", {
                let feed = feed.clone();
                move || feed.clocks_agree()
            })
            // Not required: reads still work, and another instance could not write to this database either.
            .showing("writes", {
                let store = store.clone();
                move || store.takes_writes()
            })
            .with("audit", {
                let journal = Arc::clone(&journal);
                move || journal.can_admit()
            })
            // Not required after somebody rewrote a chain of the journal: the journal buffers its records, and other
            // instances may be attacked in the same way.
            .with_if(
                "sealing",
                {
                    let health = Arc::clone(&health);
                    move || health.is_in_step()
                },
                {
                    let health = Arc::clone(&health);
                    move || health.must_stop()
                },
            )
            // Not required: the journal buffers records while the audit store is down (spec/70 rule 14).
            .showing("audit_store", {
                let health = Arc::clone(&health);
                move || health.is_store_reachable()
            })
            // Not required: without the cache nobody can log in, but everything else works.
            .showing("cache", {
                let cache = cache.clone();
                move || cache.is_up()
            })
            .with("node", {
                let node = Arc::clone(&node);
                move || node.get().is_some_and(|node| node.head().is_some())
            })
            .with("tracing", {
                let node = Arc::clone(&node);
                move || node.get().is_some_and(|node| node.trace_form().is_some())
            })
            // Not required: the other instances would have the same finding.
            .showing_level("audit_chain", {
                let (trust, health) = (Arc::clone(&trust), Arc::clone(&health));
                move || match () {
                    () if trust.alarm.is_raised() => Level::Down,
                    () if trust.alarm.is_verified() && health.is_store_reachable() => Level::Ok,
                    () => Level::Unknown,
                }
            })
            .showing_nodes({
                let node = Arc::clone(&node);
                move || node.get().map(|node| node.statuses()).unwrap_or_default()
            }),
    );
    let ready = ReadyState {
        readiness: Arc::clone(&readiness),
        http_context: Arc::clone(&http_context),
        detail: ReadyDetail::PrivateNetwork,
    };

    let shutdown = CancellationToken::new();
    let connections = Connections::new(shutdown.clone());
    let listeners = Listeners::bind(&config).await?;
    let has_internal = config.edge.internal.is_some();
    let served = listeners.serve(
        &config,
        &connections,
        &starting_router(&ready.clone().for_public(has_internal)),
        &starting_router(&ready),
    );
    tracing::info!(address = %config.edge.listen, "listening");

    // Sealing ends after every task that writes to the journal.
    let sealing = Sealing {
        journal: Arc::clone(&journal),
        audit: audit.clone(),
        store: store.clone(),
        clock: Arc::clone(&platform.clock),
        outbox_mark,
        health,
        cluster: CLUSTER,
        key: secrets.checkpoint.clone(),
        interval: config.audit.checkpoint_interval,
        trust: Arc::clone(&trust),
    };
    let retention = match stores::audit_admin(&platform, &config, &audit).await? {
        stores::AuditAdmin::Missing => {
            tracing::warn!("{}", stores::NOTHING_IS_PRUNED);
            None
        }
        admin => Some(Retention::new(
            &config,
            admin,
            &audit,
            &store,
            &platform,
            &secrets.checkpoint,
            &journal,
        )?),
    };
    let end_sealing = CancellationToken::new();
    // On its own thread: it hashes entries and builds statements by the thousand, and must not delay requests.
    let sealing_ended = end_sealing.clone();
    let sealer = spawn_blocking(move || workers::seal(&sealing, &sealing_ended));
    let head_watcher = workers::watch_journal_heads(
        Arc::clone(&journal),
        store.clone(),
        audit.clone(),
        Arc::clone(&trust),
        end_sealing.clone(),
    );
    let head_watcher = tokio::spawn(head_watcher);

    let tasks = TaskTracker::new();
    if let Some(retention) = retention {
        tasks.spawn(retention.prune(shutdown.clone()));
    }
    tasks.spawn({
        let (store, shutdown) = (store.clone(), shutdown.clone());
        async move { shutdown.run_until_cancelled(stores::watch_free_space(store)).await }
    });
    let administration = AdminThread::start()?;
    let gateway = async {
        let node = {
            let connected = reach_node(&config, &group_keys).await?;
            Arc::clone(node.get_or_init(|| connected))
        };
        let humanity = humanity::humanity(&config).await?;
        let deps = AppDeps {
            directory: directory::directory(&config, cache.clone(), &http_context)?,
            config: &config,
            humanity,
            secrets: &secrets,
            group_keys,
            http_context,
            store: store.clone(),
            cache,
            feed,
            audit: audit.clone(),
            journal,
            node,
            resolvers: Arc::new(Resolvers::new(
                config.identity.resolvers.clone(),
                Arc::clone(&platform.clock),
            )),
            tasks: tasks.clone(),
            end: shutdown.clone(),
            administration: &administration,
        };
        let features = features::features(&deps)?;
        // Transactions sent before the last shutdown are validated before any request is served. If this fails, it is
        // retried later.
        if let Err(error) = deps.node.refresh_head().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the newest block cannot be read yet; it is retried"
            );
        }
        deps.start_workers(recovery, &shutdown);
        let verification = trust::verification(&config, &secrets, &platform, audit, store.clone(), trust, shard)?;
        tasks.spawn(workers::verify(verification, shutdown.clone()));
        let api: Arc<str> = api_document()?.into();
        served.replace(listener_routers(features, ready, metrics.clone(), api, has_internal));
        readiness.serve();
        tracing::info!("serving");
        // Samples pile up until /metrics is read or this upkeep runs, and /metrics may never be read.
        loop {
            sleep(METRICS_UPKEEP).await;
            metrics.run_upkeep();
        }
    };
    let lease_lost = async {
        match &lease {
            Some(lease) => lease.keep().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        result = gateway => result,
        lease_error = lease_lost => Err(lease_error),
        () = interrupt.heard() => Ok(()),
    };
    readiness.drain();
    if result.is_ok() {
        shut_down(&config.operation, &shutdown, &connections, &tasks).await;
    }
    end_sealing.cancel();
    match sealer.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(
            error = format!("{error:#}"),
            "not all records are sealed; the next start seals the rest from the journal"
        ),
        Err(_) => tracing::error!("the sealer panicked; the next start seals the rest from the journal"),
    }
    if head_watcher.await.is_err() {
        tracing::error!("the task that watches the journal heads panicked");
    }
    if let Some(lease) = lease {
        lease.release().await;
    }
    // The store may still execute queued work; a write that has begun is finished (HD21).
    store.drain().await;
    result
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

/// The bound listener sockets.
struct Listeners {
    public: TcpListener,
    internal: Option<TcpListener>,
}

/// The routers that the listeners serve now; they are replaced once the start is complete.
struct SwappableRouters {
    public: SwappableRouter,
    internal: SwappableRouter,
}

impl Listeners {
    async fn bind(config: &Config) -> anyhow::Result<Self> {
        let bind = async |address: SocketAddr| {
            TcpListener::bind(address)
                .await
                .with_context(|| format!("cannot listen on {address}"))
        };
        let internal = match config.edge.internal {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        Ok(Self {
            public: bind(config.edge.listen).await?,
            internal,
        })
    }

    fn serve(self, config: &Config, connections: &Connections, public: &Router, internal: &Router) -> SwappableRouters {
        let proxies = || TrustedProxies::new(config.edge.trusted_proxies.clone());
        let limits = files::connection_limits(&config.limits, self.internal.is_some());
        let swappable = |router: &Router| Arc::new(ArcSwap::from_pointee(router.clone()));
        let routers = SwappableRouters {
            public: swappable(public),
            internal: swappable(internal),
        };
        let quota = Quota::new("public", limits.public, proxies());
        let bodies = BodyBudget::new("public", BodyLimits::PUBLIC, proxies());
        connections.serve(self.public, Arc::clone(&routers.public), quota, bodies);
        if let Some(listener) = self.internal {
            let quota = Quota::new("internal", limits.internal, proxies());
            let bodies = BodyBudget::new("internal", BodyLimits::INTERNAL, proxies());
            connections.serve(listener, Arc::clone(&routers.internal), quota, bodies);
        }
        routers
    }
}

impl SwappableRouters {
    fn replace(&self, routers: ListenerRouters) {
        self.public.store(Arc::new(routers.public));
        self.internal.store(Arc::new(routers.internal));
    }
}
