//! `serve`: from a configuration to a gateway, and back to nothing without losing a record.
//!
//! [`run`] reads like spec/85 section 3, the order of starting, and section 6.1, the order of ending.

mod administration;
mod body;
mod body_budget;
mod directory;
mod edge;
mod fault;
mod features;
mod files;
pub(crate) mod humanity;
pub(crate) mod journal;
mod lease;
mod listen;
pub(crate) mod node;
pub(crate) mod outbox_mark;
mod patience;
mod quota;
mod ready;
mod sessions;
pub(crate) mod stores;
mod surface;
mod tester;
mod trust;

pub(crate) use fault::{Fault, causes};
pub(crate) use features::api_document;
pub(crate) use journal::CLUSTER;

use crate::{
    cli::complain,
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
use features::Foundation;
use gw_audit::verify::{Finding, FindingKind};
use gw_http::TrustedProxies;
use gw_identity::Resolvers;
use gw_node::{KeyCipher, Node};
use gw_store::{BootClock, Feed, FeedTiming};
use lease::Lease;
use listen::{Connections, Served};
use outbox_mark::OutboxMarkFile;
use quota::Quota;
use ready::{Readiness, ReadyDetail, ReadyState};
use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};
use stores::{Ground, Secrets};
use surface::{Surface, not_yet, surface};
use tokio::{
    net::TcpListener,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Rest between two tries to reach a node that is down at start.
const NODE_RETRY: Duration = Duration::from_secs(2);
/// How often measurements are folded into their histograms.
const TIDY: Duration = Duration::from_secs(5);

/// Serves until told to end.
pub(crate) async fn run(config: Config) -> Result<(), Fault> {
    let mut interrupt = Interrupt::listen().context("signals cannot be heard")?;
    let _log = telemetry::start_log(&config.operation).context("the log cannot be started")?;
    let metrics = Metrics::start().context("metrics cannot be started")?;

    let ground = Ground::hold(&config)?;
    let secrets = Secrets::complete(&config, &*ground.entropy)?;
    if secrets.admin_is_fresh {
        // Once, and not through the log: logs are kept and shipped (spec/80 rule 1.1).
        complain(format_args!(
            "ADMIN_API_TOKEN is not set; for this run it is {}",
            secrets.admin.expose()
        ));
    }
    stores::make_private(&config.audit.journal_dir)?;
    let outbox_mark = Arc::new(
        OutboxMarkFile::open(&config.audit.journal_dir).context("the mark of the audit outbox cannot be opened")?,
    );
    let store = stores::open_policy(&ground, &config, secrets.outbox_guard(&outbox_mark)?).await?;
    let lease = match config.store.url {
        Some(_) => Some(Lease::take(&store, config.store.cache_url.is_some()).await?),
        None => None,
    };
    let audit = stores::open_audit(&ground, &config).await?;
    let rewound = workers::raise_outbox_ids(&store, &audit, &outbox_mark).await?;
    if lease.as_ref().is_none_or(Lease::began_alone) {
        stores::restore_toggles(&store).await?;
    }
    let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock))
        .await
        .context("policy cannot be loaded")?;
    let cache = stores::open_cache(&ground, &config).await?;
    let group_keys = Arc::new(node::group_keys(&config, &secrets.key_encryption)?);
    for group in node::unreadable_keys(&group_keys, &feed.pin().snapshot) {
        tracing::error!(group.id = %group, "the upstream key of a group cannot be decrypted: its members are refused");
    }
    let (journal, recovery) = journal::open(&config, &secrets, &ground)?;
    let heads = HeadsFile::open(&config.audit.journal_dir)?;
    let (journal, recovery, foreign) =
        journal::in_step(journal, recovery, &audit, &store, &heads, &config.audit.journal_dir).await?;
    let shard = journal.shard();
    if let Some(alarm) = rewound {
        workers::raise_alarm(&journal, alarm);
    }
    let trust = trust::open(&config, &secrets, &ground, heads, &journal, &audit, &store).await?;
    foreign
        .into_iter()
        .for_each(|chain| trust.alarm.raise(chain, &Finding::of(FindingKind::Fork, None), 0, 0));
    let edge = edge::edge(&config, &secrets, &ground, &feed)?;
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
            // Says why `db` is down: no look at the database helps, only setting the clock that is wrong.
            .with("clock", {
                let feed = feed.clone();
                move || feed.clocks_agree()
            })
            // Reads go on; another instance is refused by the same database.
            .showing("writes", {
                let store = store.clone();
                move || store.takes_writes()
            })
            .with("audit", {
                let journal = Arc::clone(&journal);
                move || journal.can_admit()
            })
            .with("sealing", {
                let health = Arc::clone(&health);
                move || health.is_in_step()
            })
            // The journal keeps records while it is away (spec/70 rule 14).
            .showing("audit_store", {
                let health = Arc::clone(&health);
                move || health.is_store_reachable()
            })
            // Without it nobody logs in, but everything else goes on: an outage must not take the instance away.
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
            // A finding takes no instance away: the others would find the same.
            .showing("audit_chain", {
                let trust = Arc::clone(&trust);
                move || !trust.alarm.is_raised()
            })
            .showing_nodes({
                let node = Arc::clone(&node);
                move || node.get().map(|node| node.statuses()).unwrap_or_default()
            }),
    );
    let ready = ReadyState {
        readiness: Arc::clone(&readiness),
        edge: Arc::clone(&edge),
        detail: ReadyDetail::PrivateNetwork,
    };

    let end = CancellationToken::new();
    let connections = Connections::new(end.clone());
    let listeners = Listeners::bind(&config).await?;
    let internal = config.edge.internal.is_some();
    let served = listeners.serve(
        &config,
        &connections,
        &not_yet(&ready.clone().for_public(internal)),
        &not_yet(&ready),
    );
    tracing::info!(address = %config.edge.listen, "listening");

    // Sealing begins with the journal and ends after everything that writes to it.
    let sealing = Sealing {
        journal: Arc::clone(&journal),
        audit: audit.clone(),
        store: store.clone(),
        clock: Arc::clone(&ground.clock),
        outbox_mark,
        health,
        cluster: CLUSTER,
        key: secrets.checkpoint.clone(),
        interval: config.audit.checkpoint_interval,
        trust: Arc::clone(&trust),
    };
    let retention = match stores::audit_admin(&ground, &config, &audit).await? {
        stores::AuditAdmin::Missing => {
            tracing::warn!("{}", stores::NOTHING_IS_PRUNED);
            None
        }
        admin => Some(Retention::new(
            &config,
            admin,
            &audit,
            &store,
            &ground,
            &secrets.checkpoint,
            &journal,
        )?),
    };
    let end_sealing = CancellationToken::new();
    // On a thread of its own: it hashes and builds statements by the thousand, and no request may wait behind that.
    let ended = end_sealing.clone();
    let sealer = spawn_blocking(move || workers::seal(&sealing, &ended));
    let heads = workers::watch_journal_heads(
        Arc::clone(&journal),
        store.clone(),
        audit.clone(),
        Arc::clone(&trust),
        end_sealing.clone(),
    );
    let heads = tokio::spawn(heads);

    let tasks = TaskTracker::new();
    if let Some(retention) = retention {
        tasks.spawn(retention.prune(end.clone()));
    }
    tasks.spawn({
        let (store, end) = (store.clone(), end.clone());
        async move { end.run_until_cancelled(stores::watch_room(store)).await }
    });
    let administration = AdminThread::start()?;
    let gateway = async {
        let node = {
            let connected = reach_node(&config, &group_keys).await?;
            Arc::clone(node.get_or_init(|| connected))
        };
        let humanity = humanity::humanity(&config).await?;
        let foundation = Foundation {
            directory: directory::directory(&config, cache.clone(), &edge)?,
            config: &config,
            humanity,
            secrets: &secrets,
            group_keys,
            edge,
            store: store.clone(),
            cache,
            feed,
            audit: audit.clone(),
            journal,
            node,
            resolvers: Arc::new(Resolvers::new(
                config.identity.resolvers.clone(),
                Arc::clone(&ground.clock),
            )),
            tasks: tasks.clone(),
            end: end.clone(),
            administration: &administration,
        };
        let features = features::features(&foundation)?;
        // Sends of before the last end are looked at before anybody is served; what fails is tried again.
        if let Err(error) = foundation.node.refresh_head().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "there is no head yet");
        }
        foundation.start_workers(recovery, &end);
        let verification = trust::verification(&config, &secrets, &ground, audit, store.clone(), trust, shard)?;
        tasks.spawn(workers::verify(verification, end.clone()));
        let api: Arc<str> = api_document()?.into();
        served.replace(surface(features, ready, metrics.clone(), api, internal));
        readiness.serve();
        tracing::info!("serving");
        // The histograms grow until they are read; nobody may.
        loop {
            sleep(TIDY).await;
            metrics.tidy();
        }
    };
    let fenced = async {
        match &lease {
            Some(lease) => lease.keep().await,
            None => std::future::pending().await,
        }
    };
    let said = tokio::select! {
        said = gateway => said,
        lost = fenced => Err(lost),
        () = interrupt.heard() => Ok(()),
    };
    readiness.drain();
    if said.is_ok() {
        finish(&config.operation, &end, &connections, &tasks).await;
    }
    end_sealing.cancel();
    match sealer.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = format!("{error:#}"), "not every record is sealed"),
        Err(_) => tracing::error!("the sealer panicked; the journal keeps what it did not seal"),
    }
    if heads.await.is_err() {
        tracing::error!("the watcher of the journals panicked");
    }
    if let Some(lease) = lease {
        lease.release().await;
    }
    // Work handed to the store may still be at it: what began is finished (HD21).
    store.drain().await;
    said
}

/// Spec/85 section 6.1: no request is lost, none is accepted after the drain, what was begun is recorded (HD21).
async fn finish(operation: &Operation, end: &CancellationToken, connections: &Connections, tasks: &TaskTracker) {
    tracing::info!("told to end: not ready from now on");
    sleep(operation.shutdown_delay).await;
    end.cancel();
    tasks.close();
    let drained = async {
        connections.ended().await;
        // Sends that outlive their connection, to their outcome and its record.
        tasks.wait().await;
    };
    if timeout(operation.shutdown_timeout, drained).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            tasks = tasks.len(),
            "not everything ended in time"
        );
    }
    tracing::info!("ended");
}

/// A node that is down is waited for; one on another chain is none (spec/85 section 3, step 6).
async fn reach_node(config: &Config, group_keys: &Arc<KeyCipher>) -> Result<Arc<Node>, Fault> {
    loop {
        match node::connect(config, Some(Arc::clone(group_keys))).await {
            Ok(node) => return Ok(node),
            Err(error) if node::is_down(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the node cannot be reached; nothing but /health is served"
                );
                sleep(NODE_RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The sockets, held before anything is served on them.
struct Listeners {
    public: TcpListener,
    internal: Option<TcpListener>,
}

/// What the listeners serve at the moment.
struct Switch {
    public: Served,
    internal: Served,
}

impl Listeners {
    async fn bind(config: &Config) -> anyhow::Result<Self> {
        let bind = async |address: SocketAddr| {
            TcpListener::bind(address)
                .await
                .with_context(|| format!("{address} cannot be listened on"))
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

    fn serve(self, config: &Config, connections: &Connections, public: &Router, internal: &Router) -> Switch {
        let proxies = || TrustedProxies::new(config.edge.trusted_proxies.clone());
        let limits = files::connection_limits(&config.limits, self.internal.is_some());
        let served = |router: &Router| Arc::new(ArcSwap::from_pointee(router.clone()));
        let switch = Switch {
            public: served(public),
            internal: served(internal),
        };
        let quota = Quota::new("public", limits.public, proxies());
        let bodies = BodyBudget::new("public", BodyLimits::PUBLIC, proxies());
        connections.serve(self.public, Arc::clone(&switch.public), quota, bodies);
        if let Some(listener) = self.internal {
            let quota = Quota::new("internal", limits.internal, proxies());
            let bodies = BodyBudget::new("internal", BodyLimits::INTERNAL, proxies());
            connections.serve(listener, Arc::clone(&switch.internal), quota, bodies);
        }
        switch
    }
}

impl Switch {
    fn replace(&self, surface: Surface) {
        self.public.store(Arc::new(surface.public));
        self.internal.store(Arc::new(surface.internal));
    }
}
