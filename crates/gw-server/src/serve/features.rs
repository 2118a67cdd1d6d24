//! The features' routers on what they share, and the document that describes them.

use super::{administration::AdminThread, sessions::Sessions, stores::Secrets, surface, tester::Tester};
use crate::{
    config::{
        Config,
        registry::{Durability, FullPolicy},
    },
    web, workers,
};
use anyhow::Context as _;
use axum::Router;
use futures_util::future::BoxFuture;
use gw_admin::{AdminSettings, AdminState, InstanceFacts};
use gw_cache::Cache;
use gw_evm::wire::TraceScope;
use gw_http::{Edge, admin::guard};
use gw_identity::{
    Chain, ChainAway, Directory, Ens, Humanity, IdentityConfig, IdentityParts, IdentityState, NotRecorded,
    ProofVerifier, Resolvers, Room, SecuritySink, ZkVerifier, oauth::OauthConfig,
};
use gw_journal::{Journal, Recovery};
use gw_node::{KeyCipher, NoTrace, Node, NodeError, Traced};
use gw_policy::{
    access::{TraceFacts, WalletQuestion, WalletTrace},
    knobs::MinedTrace,
};
use gw_rpc::{MinedGate, RpcSettings, RpcState, send::SendContext};
use gw_store::{Feed, Store, audit::AuditStore};
use gw_types::{Seconds, Timestamp};
use http::StatusCode;
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use utoipa::openapi::{Info, OpenApiBuilder};

/// What all features stand on.
pub(super) struct Foundation<'a> {
    pub(super) config: &'a Config,
    pub(super) secrets: &'a Secrets,
    /// What the groups' node keys are encrypted with.
    pub(super) group_keys: Arc<KeyCipher>,
    /// The credential every login must show.
    pub(super) humanity: Option<Arc<Humanity>>,
    pub(super) edge: Arc<Edge>,
    pub(super) store: Store,
    pub(super) cache: Cache,
    pub(super) feed: Feed,
    pub(super) audit: AuditStore,
    pub(super) journal: Arc<Journal>,
    pub(super) node: Arc<Node>,
    /// Where one is configured.
    pub(super) directory: Option<Arc<Directory>>,
    /// Where the state of identities is read.
    pub(super) resolvers: Arc<Resolvers>,
    /// Work that outlives its request; the end of the process waits for it.
    pub(super) tasks: TaskTracker,
    /// Told first at shutdown.
    pub(super) end: CancellationToken,
    /// Carries out administration.
    pub(super) administration: &'a AdminThread,
}

/// Routers with their state.
pub(super) struct Features {
    /// For everybody.
    pub(super) public: Router,
    /// The admin API, gated by itself.
    pub(super) admin: Router,
}

/// Makes every feature.
pub(super) fn features(on: &Foundation<'_>) -> anyhow::Result<Features> {
    guard_head(on);
    let rpc = rpc(on)?;
    let public = Router::from(gw_identity::router(identity(on)?)).merge(gw_rpc::router(rpc.clone()));
    // Where another front end is, its page is the one.
    let (login_page, is_ours) = web::login_page(&on.config.edge);
    let public = public.merge(web::home(&login_page));
    let public = if is_ours { public.merge(web::router()) } else { public };
    let admin = on.administration.carry_out(gw_admin::router(admin(on, rpc)?));
    Ok(Features {
        public,
        admin: guard(admin, Arc::clone(&on.edge)),
    })
}

/// The description of everything that is served, as it stands at `/openapi.json`.
pub(crate) fn api_document() -> anyhow::Result<String> {
    let mut api = OpenApiBuilder::new().info(info()).build();
    for part in [surface::api(), gw_identity::api(), gw_rpc::api(), gw_admin::api()] {
        api.merge(part);
    }
    let mut text = api.to_pretty_json().context("the API document cannot be written")?;
    text.push('\n');
    Ok(text)
}

fn info() -> Info {
    Info::builder()
        .title("ledger-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Privacy-governed gateway in front of an EVM node."))
        .build()
}

fn identity(on: &Foundation<'_>) -> anyhow::Result<IdentityState> {
    let identity = &on.config.identity;
    let config = IdentityConfig {
        base_url: on.config.edge.base_url.clone(),
        verifier_id: identity.verifier.clone(),
        auto_kyc: identity.auto_kyc,
        access_ttl: seconds(identity.access_ttl)?,
        refresh_ttl: seconds(identity.refresh_ttl)?,
        auth_per_minute: on.config.limits.auth.per_minute().unwrap_or(NonZeroU32::MAX),
        networks: on.resolvers.names(),
        humanity: on.humanity.clone(),
        auth_circuits: identity.auth_circuits.clone(),
        introspect_require_client: identity.introspect_require_client,
        humanity_verify_url: identity.humanity_verify_url.as_ref().map(ToString::to_string),
        vault_secret: on.secrets.refresh.current.clone(),
        personal_urls: identity.personal_urls,
        oauth: OauthConfig {
            clients: identity.oauth_clients.clone(),
            require_pkce: identity.oauth_require_pkce,
            login_page: web::login_page(&on.config.edge).0,
            allow_mock: identity.mock_login,
        },
    };
    let journal = Arc::clone(&on.journal);
    let security = SecuritySink::new(move |events| {
        let journal = Arc::clone(&journal);
        let mut room = journal.reserve(events).map_err(|_| NotRecorded)?;
        Ok(Room::new(move |event| {
            journal
                .append_reserved(&mut room, event)
                .map(drop)
                .map_err(|_| NotRecorded)
        }))
    });
    let ens = match &identity.ens_node {
        Some(url) => {
            let node = url.as_str().parse().context("ENS_RESOLVER_URL is no address")?;
            Some(Ens::new(node).context("trusted certificates cannot be read")?)
        }
        None => None,
    };
    let parts = IdentityParts {
        edge: Arc::clone(&on.edge),
        store: on.store.clone(),
        cache: on.cache.clone(),
        security,
        chain: Arc::new(OwnChain {
            node: Arc::clone(&on.node),
            feed: on.feed.clone(),
        }),
        knobs: Arc::new(on.config.knobs.clone()),
        ens,
        verifier: verifier(on)?,
        tasks: on.tasks.clone(),
    };
    Ok(IdentityState::new(config, parts).with_directory(on.directory.clone()))
}

/// The chain behind the node.
#[derive(Debug)]
struct OwnChain {
    node: Arc<Node>,
    feed: Feed,
}

impl Chain for OwnChain {
    fn id(&self) -> Option<u64> {
        Some(self.node.chain_id())
    }

    fn trace_wallet<'a>(&'a self, question: &'a WalletQuestion) -> BoxFuture<'a, Result<WalletTrace, ChainAway>> {
        Box::pin(async move {
            // The wallet may have been made in a block that nobody looked at yet.
            self.node.refresh_head().await.map_err(|_| ChainAway)?;
            let head = self.node.head().ok_or(ChainAway)?;
            let time = Timestamp::from_secs(i64::try_from(head.timestamp).map_err(|_| ChainAway)?);
            // HD28: a wallet that a withheld transaction made, or gave its word, says nothing.
            let shown = self.feed.pin().snapshot.visible_state(head.number);
            let trace = match self
                .node
                .trace(&question.request(), head.pin(), TraceScope::Read, &shown)
                .await
            {
                Ok(Traced::Trace(trace)) => Some(trace),
                // What the execution itself brings about says no.
                Ok(Traced::Refused(_)) | Err(NoTrace::Unusable(_) | NoTrace::Node(NodeError::TooLarge)) => None,
                Err(error @ (NoTrace::Unsupported | NoTrace::Node(_))) => {
                    tracing::warn!(
                        error = &error as &dyn core::error::Error,
                        "a contract wallet could not be asked"
                    );
                    return Err(ChainAway);
                }
            };
            Ok(WalletTrace {
                trace,
                facts: TraceFacts {
                    coinbase: head.coinbase,
                    number: head.number,
                    time,
                },
            })
        })
    }
}

/// HD2: from here on a block is read only after what was sent into it has been looked at.
fn guard_head(on: &Foundation<'_>) {
    if on.config.knobs.mined_trace != MinedTrace::Off {
        on.node.guard(Arc::new(MinedGate::new(&sends(on))));
    }
}

/// What sends draw on; reads need it too.
fn sends(on: &Foundation<'_>) -> SendContext {
    SendContext {
        node: Arc::clone(&on.node),
        store: on.store.clone(),
        feed: on.feed.clone(),
        journal: Arc::clone(&on.journal),
        clock: Arc::clone(&on.edge.clock),
        knobs: Arc::new(on.config.knobs.clone()),
        tasks: on.tasks.clone(),
    }
}

fn rpc(on: &Foundation<'_>) -> anyhow::Result<RpcState> {
    let limits = &on.config.limits;
    let settings = RpcSettings {
        batch_max: usize::from(limits.batch),
        denial_status: StatusCode::from_u16(on.config.deny_status).context("the denial status is none")?,
        max_concurrent: usize::try_from(limits.concurrent)?,
        max_concurrent_anonymous: usize::try_from(limits.concurrent_anonymous)?,
        per_minute: limits.rpc.per_minute(),
        anonymous_per_minute: limits.anonymous.per_minute(),
        wait_for_fsync: on.config.audit.durability == Durability::Power,
        open_reads: on.config.audit.full_policy == FullPolicy::OpenReads,
        personal_urls: on.config.identity.personal_urls,
        log_params: on.config.audit.log_params,
        extras: Arc::clone(&on.config.extras),
    };
    Ok(RpcState::new(Arc::clone(&on.edge), sends(on), settings, on.end.clone()))
}

fn admin(on: &Foundation<'_>, rpc: RpcState) -> anyhow::Result<AdminState> {
    Ok(AdminState {
        edge: Arc::clone(&on.edge),
        store: on.store.clone(),
        feed: on.feed.clone(),
        audit: on.audit.clone(),
        journal: Arc::clone(&on.journal),
        node: Arc::clone(&on.node),
        key_cipher: Some(Arc::clone(&on.group_keys)),
        tester: Arc::new(Tester(rpc)),
        sessions: Arc::new(Sessions(gw_identity::LoginSessions::new(
            on.cache.clone(),
            &on.secrets.refresh.current,
        ))),
        extras: Arc::clone(&on.config.extras),
        knobs: Arc::new(on.config.knobs.clone()),
        facts: InstanceFacts {
            port: on.config.edge.listen.port(),
            node_origins: on
                .config
                .node
                .urls
                .iter()
                .map(|url| url.origin().ascii_serialization())
                .collect(),
        },
        settings: AdminSettings {
            claim_delegation: on.config.admin.claim_delegation,
            confirm_deletes: on.config.admin.confirm_deletes,
            personal_urls: on.config.identity.personal_urls,
        },
        clock: Arc::clone(&on.edge.clock),
        entropy: Arc::clone(&on.edge.entropy),
        tasks: on.tasks.clone(),
    })
}

/// Who is believed at login: wallets whose proof holds.
#[cfg(not(feature = "mock-login"))]
fn verifier(on: &Foundation<'_>) -> anyhow::Result<Arc<dyn ProofVerifier>> {
    let verifier = ZkVerifier::new(Arc::clone(&on.resolvers), on.cache.clone());
    Ok(Arc::new(verifier.with_humanity(on.humanity.clone())))
}

/// Who is believed at login: wallets whose proof holds, be it under a key of the developer's own, and mock tokens where
/// they are switched on.
#[cfg(feature = "mock-login")]
fn verifier(on: &Foundation<'_>) -> anyhow::Result<Arc<dyn ProofVerifier>> {
    let identity = &on.config.identity;
    let mut real = ZkVerifier::new(Arc::clone(&on.resolvers), on.cache.clone()).with_humanity(on.humanity.clone());
    if let Some(directory) = &identity.own_key_dir {
        let file = directory.join("authV2.json");
        let key = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let key = gw_zk::groth16::Key::from_json(&key).with_context(|| format!("{} is no key", file.display()))?;
        real = real.with_own_key(key);
    }
    let real = Arc::new(real);
    Ok(if identity.mock_login {
        Arc::new(gw_identity::MockVerifier::before(real))
    } else {
        real
    })
}

pub(super) fn seconds(span: Duration) -> anyhow::Result<Seconds> {
    u32::try_from(span.as_secs()).map(Seconds).context("a span is too long")
}

impl Foundation<'_> {
    /// Starts what runs beside the requests.
    pub(super) fn start_workers(&self, recovery: Recovery, end: &CancellationToken) {
        let context = sends(self);
        // What a crash left open is settled beside the requests: nobody waits for it.
        tokio::spawn(async move { gw_rpc::send::resolve_intents(&context, recovery.open_intents).await });
        let (store, node, clock) = (self.store.clone(), Arc::clone(&self.node), Arc::clone(&self.edge.clock));
        let gated = self.config.knobs.mined_trace != MinedTrace::Off;
        self.tasks
            .spawn(workers::watch_reservations(store, node, clock, gated, end.clone()));
        let (resolvers, until) = (Arc::clone(&self.resolvers), end.clone());
        self.tasks.spawn(async move { resolvers.keep_checking(&until).await });
        if let (Some(humanity), until) = (self.humanity.clone(), end.clone()) {
            self.tasks.spawn(async move { humanity.keep_loading(&until).await });
        }
        self.tasks.spawn(workers::tidy(self.store.clone(), end.clone()));
        let asking = workers::ContractWallets {
            store: self.store.clone(),
            chain: Arc::new(OwnChain {
                node: Arc::clone(&self.node),
                feed: self.feed.clone(),
            }),
            edge: Arc::clone(&self.edge),
            knobs: Arc::new(self.config.knobs.clone()),
            journal: Arc::clone(&self.journal),
        };
        self.tasks.spawn(asking.ask_daily(end.clone()));
        if let Some(directory) = self.directory.clone() {
            let end = end.clone();
            self.tasks.spawn(async move { directory.watch(end).await });
        }
        self.tasks.spawn(workers::watch_cache(self.cache.clone(), end.clone()));
    }
}
