//! Builds the routers of all features from their shared dependencies, and starts the workers.

use super::{
    administration::AdminThread,
    disclosure::{self, ExplorerGrants},
    explorer::{Explorer, ExplorerApi},
    sessions::Sessions,
    stores::Secrets,
};
use crate::{
    config::{
        Config,
        registry::{Durability, FullPolicy},
    },
    web,
    webhook::DeliveryClient,
    workers,
};
use anyhow::Context as _;
use axum::Router;
use futures_util::future::BoxFuture;
use gw_admin::{AdminSettings, AdminState, InstanceFacts};
use gw_cache::Cache;
use gw_crypto::KeyCipher;
use gw_evm::wire::TraceScope;
use gw_http::{DeliveryNetworks, HttpContext, admin::guard};
use gw_identity::{
    Chain, ChainUnavailable, Directory, Ens, Humanity, IdentityConfig, IdentityParts, IdentityState, ProofVerifier,
    Resolvers, ZkVerifier, oauth::OauthConfig,
};
use gw_journal::{Journal, Recovery};
use gw_node::{NoTrace, Node, NodeError, TraceResult};
use gw_policy::{
    access::{TraceFacts, WalletQuestion, WalletTrace},
    settings::MinedTrace,
};
use gw_rpc::{
    BlockValidator, RpcSettings, RpcState, Upstream,
    send::{NoComplianceRules, SendContext},
};
use gw_store::{Feed, Store, audit::AuditStore};
use gw_types::{Entropy, Seconds, Timestamp};
use http::StatusCode;
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The dependencies that the features share.
pub(super) struct AppDeps<'a> {
    pub(super) config: &'a Config,
    pub(super) secrets: &'a Secrets,
    /// Encrypts the upstream keys of groups.
    pub(super) group_keys: Arc<KeyCipher>,
    /// The credential that every login must prove; `None` without REQUIRE_PROOF_OF_HUMANITY.
    pub(super) humanity: Option<Arc<Humanity>>,
    pub(super) http_context: Arc<HttpContext>,
    pub(super) store: Store,
    pub(super) cache: Cache,
    pub(super) feed: Feed,
    pub(super) audit: AuditStore,
    pub(super) journal: Arc<Journal>,
    pub(super) node: Arc<Node>,
    /// The enterprise directory, if one is configured.
    pub(super) directory: Option<Arc<Directory>>,
    /// The state contracts of the identity networks.
    pub(super) resolvers: Arc<Resolvers>,
    /// Tasks that outlive their request. The shutdown waits for them.
    pub(super) tasks: TaskTracker,
    /// Cancelled at the begin of the shutdown.
    pub(super) end: CancellationToken,
    /// The data API of the explorer.
    pub(super) explorer: ExplorerApi,
    pub(super) entropy: Arc<dyn Entropy>,
    /// The thread of the admin API.
    pub(super) administration: &'a AdminThread,
}

/// The routers of all features, with their state.
pub(super) struct Features {
    /// The routes for all clients.
    pub(super) public: Router,
    /// The admin API, with its own access check.
    pub(super) admin: Router,
}

impl Features {
    /// With the routes of the explorer for all clients, as they are now.
    pub(super) fn with_explorer(&self, explorer: Router) -> Self {
        Self {
            public: self.public.clone().merge(explorer),
            admin: self.admin.clone(),
        }
    }
}

/// Builds the routers of all features.
///
/// # Errors
/// If a setting is not valid.
pub(super) fn features(deps: &AppDeps<'_>) -> anyhow::Result<Features> {
    install_block_gate(deps);
    let rpc = rpc(deps)?;
    let disclosure = disclosure::state(deps)?;
    let public = Router::from(gw_identity::router(identity(deps)?)).merge(gw_rpc::router(rpc.clone()));
    let public = public.merge(gw_disclosure::router(disclosure.clone()));
    // The built-in sign-in page is served only if FRONTEND_URL names no other front end.
    let (login_page, is_own_page) = web::login_page(&deps.config.edge);
    let public = public.merge(web::home(&login_page));
    let public = if is_own_page {
        public.merge(web::router())
    } else {
        public
    };
    let admin = gw_admin::router(admin(deps, rpc)?).merge(gw_disclosure::admin_router(disclosure));
    let admin = deps.administration.offload(admin);
    Ok(Features {
        public,
        admin: guard(admin, Arc::clone(&deps.http_context)),
    })
}

fn identity(deps: &AppDeps<'_>) -> anyhow::Result<IdentityState> {
    let identity = &deps.config.identity;
    let config = IdentityConfig {
        base_url: deps.config.edge.base_url.clone(),
        verifier_id: identity.verifier.clone(),
        auto_kyc: identity.auto_kyc,
        access_ttl: seconds(identity.access_ttl)?,
        refresh_ttl: seconds(identity.refresh_ttl)?,
        auth_per_minute: deps.config.limits.auth.per_minute().unwrap_or(NonZeroU32::MAX),
        networks: deps.resolvers.names(),
        humanity: deps.humanity.clone(),
        auth_circuits: identity.auth_circuits.clone(),
        introspect_require_client: identity.introspect_require_client,
        humanity_verify_url: identity.humanity_verify_url.as_ref().map(ToString::to_string),
        vault_secret: deps.secrets.refresh.current.clone(),
        personal_urls: identity.personal_urls,
        oauth: OauthConfig {
            clients: identity.oauth_clients.clone(),
            require_pkce: identity.oauth_require_pkce,
            login_page: web::login_page(&deps.config.edge).0,
            allow_mock: identity.mock_login,
        },
    };
    let ens = match &identity.ens_node {
        Some(url) => {
            let node = url
                .as_str()
                .parse()
                .context("ENS_RESOLVER_URL is not a valid address")?;
            Some(Ens::new(node).context("the trusted root certificates cannot be read")?)
        }
        None => None,
    };
    let parts = IdentityParts {
        http_context: Arc::clone(&deps.http_context),
        store: deps.store.clone(),
        cache: deps.cache.clone(),
        journal: Arc::clone(&deps.journal),
        chain: Arc::new(OwnChain {
            node: Arc::clone(&deps.node),
            feed: deps.feed.clone(),
        }),
        policy_settings: Arc::new(deps.config.policy_settings.clone()),
        ens,
        verifier: verifier(deps)?,
        tasks: deps.tasks.clone(),
    };
    Ok(IdentityState::new(config, parts).with_directory(deps.directory.clone()))
}

/// The chain of the upstream node, as `gw-identity` needs it.
#[derive(Debug)]
struct OwnChain {
    node: Arc<Node>,
    feed: Feed,
}

impl Chain for OwnChain {
    fn id(&self) -> Option<u64> {
        Some(self.node.chain_id())
    }

    fn trace_wallet<'a>(
        &'a self,
        question: &'a WalletQuestion,
    ) -> BoxFuture<'a, Result<WalletTrace, ChainUnavailable>> {
        Box::pin(async move {
            // The wallet may have been deployed in a block that is newer than the known head.
            self.node.refresh_head().await.map_err(|_| ChainUnavailable)?;
            let head = self.node.head().ok_or(ChainUnavailable)?;
            let time = Timestamp::from_secs(i64::try_from(head.timestamp).map_err(|_| ChainUnavailable)?);
            // HD28: state that comes from a withheld transaction does not count, such as a wallet that it deployed or
            // an approval that it stored.
            let visible_state = self.feed.pin().snapshot.visible_state(head.number);
            let trace = match self
                .node
                .trace(&question.request(), head.pin(), TraceScope::Read, &visible_state)
                .await
            {
                Ok(TraceResult::Trace(trace)) => Some(trace),
                // Proves nothing about the wallet: the node did not run the call, or its trace cannot be read.
                Ok(TraceResult::Refused(_)) | Err(NoTrace::Unusable(_) | NoTrace::Node(NodeError::TooLarge)) => None,
                Err(error @ (NoTrace::Unsupported | NoTrace::Node(_))) => {
                    tracing::warn!(
                        error = &error as &dyn core::error::Error,
                        "a contract wallet could not be queried: the node failed or does not support tracing"
                    );
                    return Err(ChainUnavailable);
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

/// Sets the block gate: a block is read only after the sends in it were validated (HD2).
fn install_block_gate(deps: &AppDeps<'_>) {
    if deps.config.policy_settings.mined_trace != MinedTrace::Off {
        deps.node
            .set_block_gate(Arc::new(BlockValidator::new(&send_context(deps))));
    }
}

/// The context for sending transactions; reads need it, too.
fn send_context(deps: &AppDeps<'_>) -> SendContext {
    SendContext {
        node: Upstream::new(Arc::clone(&deps.node)),
        store: deps.store.clone(),
        feed: deps.feed.clone(),
        journal: Arc::clone(&deps.journal),
        clock: Arc::clone(&deps.http_context.clock),
        policy_settings: Arc::new(deps.config.policy_settings.clone()),
        compliance: Arc::new(NoComplianceRules),
        tasks: deps.tasks.clone(),
    }
}

fn rpc(deps: &AppDeps<'_>) -> anyhow::Result<RpcState> {
    let limits = &deps.config.limits;
    let settings = RpcSettings {
        batch_max: usize::from(limits.batch),
        denial_status: StatusCode::from_u16(deps.config.deny_status)
            .context("the configured denial status is not an HTTP status")?,
        max_concurrent: usize::try_from(limits.concurrent)?,
        max_concurrent_anonymous: usize::try_from(limits.concurrent_anonymous)?,
        per_minute: limits.rpc.per_minute(),
        anonymous_per_minute: limits.anonymous.per_minute(),
        wait_for_fsync: deps.config.audit.durability == Durability::Power,
        open_reads: deps.config.audit.full_policy == FullPolicy::OpenReads,
        personal_urls: deps.config.identity.personal_urls,
        log_params: deps.config.audit.log_params,
        custom_methods: Arc::clone(&deps.config.custom_methods),
        ..RpcSettings::default()
    };
    Ok(RpcState::new(
        Arc::clone(&deps.http_context),
        send_context(deps),
        settings,
        deps.end.clone(),
    ))
}

fn admin(deps: &AppDeps<'_>, rpc: RpcState) -> anyhow::Result<AdminState> {
    Ok(AdminState {
        http_context: Arc::clone(&deps.http_context),
        store: deps.store.clone(),
        feed: deps.feed.clone(),
        audit: deps.audit.clone(),
        journal: Arc::clone(&deps.journal),
        node: Arc::clone(&deps.node),
        key_cipher: Some(Arc::clone(&deps.group_keys)),
        calls: Arc::new(rpc),
        sessions: Arc::new(Sessions(gw_identity::LoginSessions::new(
            deps.cache.clone(),
            &deps.secrets.refresh.current,
        ))),
        explorer: Arc::new(deps.explorer.clone()),
        delivery_networks: delivery_networks(deps),
        custom_methods: Arc::clone(&deps.config.custom_methods),
        policy_settings: Arc::new(deps.config.policy_settings.clone()),
        facts: InstanceFacts {
            port: deps.config.edge.listen.port(),
            node_origins: deps
                .config
                .node
                .urls
                .iter()
                .map(|url| url.origin().ascii_serialization())
                .collect(),
        },
        settings: AdminSettings {
            claim_delegation: deps.config.admin.claim_delegation,
            confirm_deletes: deps.config.admin.confirm_deletes,
            personal_urls: deps.config.identity.personal_urls,
        },
        clock: Arc::clone(&deps.http_context.clock),
        entropy: Arc::clone(&deps.http_context.entropy),
        tasks: deps.tasks.clone(),
    })
}

/// Where the webhooks of organizations may deliver to.
fn delivery_networks(deps: &AppDeps<'_>) -> Arc<DeliveryNetworks> {
    let listed = deps.config.disclosure.webhook_networks.clone();
    Arc::new(DeliveryNetworks::new(listed, deps.http_context.production))
}

/// The verifier of logins: accepts wallets with a valid proof.
#[cfg(not(feature = "mock-login"))]
fn verifier(deps: &AppDeps<'_>) -> anyhow::Result<Arc<dyn ProofVerifier>> {
    let verifier = ZkVerifier::new(Arc::clone(&deps.resolvers), deps.cache.clone());
    Ok(Arc::new(verifier.with_humanity(deps.humanity.clone())))
}

/// The verifier of logins: accepts wallets with a valid proof, also under the developer's own verification key, and
/// mock tokens if mock login is on.
#[cfg(feature = "mock-login")]
fn verifier(deps: &AppDeps<'_>) -> anyhow::Result<Arc<dyn ProofVerifier>> {
    let identity = &deps.config.identity;
    let mut zk_verifier =
        ZkVerifier::new(Arc::clone(&deps.resolvers), deps.cache.clone()).with_humanity(deps.humanity.clone());
    if let Some(directory) = &identity.own_key_dir {
        let file = directory.join("authV2.json");
        let key = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let key = gw_zk::groth16::Key::from_json(&key)
            .with_context(|| format!("{} is not a valid verification key", file.display()))?;
        zk_verifier = zk_verifier.with_own_key(key);
    }
    let zk_verifier = Arc::new(zk_verifier);
    Ok(if identity.mock_login {
        Arc::new(gw_identity::MockVerifier::before(zk_verifier))
    } else {
        zk_verifier
    })
}

/// Converts a configured duration to whole seconds.
///
/// # Errors
/// If the seconds do not fit into 32 bits.
pub(super) fn seconds(duration: Duration) -> anyhow::Result<Seconds> {
    u32::try_from(duration.as_secs())
        .map(Seconds)
        .context("a duration is longer than 2^32 - 1 seconds")
}

impl AppDeps<'_> {
    /// Starts the background tasks. They end when `shutdown` is cancelled.
    ///
    /// # Errors
    /// If the checkpoint key cannot be read.
    pub(super) fn start_workers(&self, recovery: Recovery, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let context = send_context(self);
        // Sends that a crash left without an outcome are resolved in the background; no request waits for them.
        tokio::spawn(async move { gw_rpc::send::resolve_intents(&context, recovery.open_intents).await });
        let (store, node, clock) = (
            self.store.clone(),
            Arc::clone(&self.node),
            Arc::clone(&self.http_context.clock),
        );
        let gated = self.config.policy_settings.mined_trace != MinedTrace::Off;
        self.tasks
            .spawn(workers::watch_reservations(store, node, clock, gated, shutdown.clone()));
        let (resolvers, end) = (Arc::clone(&self.resolvers), shutdown.clone());
        self.tasks.spawn(async move { resolvers.keep_checking(&end).await });
        if let (Some(humanity), end) = (self.humanity.clone(), shutdown.clone()) {
            self.tasks.spawn(async move { humanity.keep_loading(&end).await });
        }
        self.tasks
            .spawn(workers::purge_expired(self.store.clone(), shutdown.clone()));
        let disclosures = workers::DisclosureSweeper {
            store: self.store.clone(),
            feed: self.feed.clone(),
            cipher: Arc::clone(&self.group_keys),
            secret_retention: self.config.disclosure.secret_retention(),
        };
        self.tasks.spawn(disclosures.run(shutdown.clone()));
        let webhooks = workers::WebhookDeliverer {
            store: self.store.clone(),
            cipher: Arc::clone(&self.group_keys),
            clock: Arc::clone(&self.http_context.clock),
            client: DeliveryClient::new(&delivery_networks(self))?,
        };
        self.tasks.spawn(webhooks.run(shutdown.clone()));
        let contract_wallets = workers::ContractWallets {
            store: self.store.clone(),
            chain: Arc::new(OwnChain {
                node: Arc::clone(&self.node),
                feed: self.feed.clone(),
            }),
            http_context: Arc::clone(&self.http_context),
            policy_settings: Arc::new(self.config.policy_settings.clone()),
            journal: Arc::clone(&self.journal),
        };
        self.tasks.spawn(contract_wallets.reconfirm_daily(shutdown.clone()));
        if let Some(directory) = self.directory.clone() {
            let end = shutdown.clone();
            self.tasks.spawn(async move { directory.watch(end).await });
        }
        self.start_explorer(shutdown)?;
        self.tasks
            .spawn(workers::watch_cache(self.cache.clone(), shutdown.clone()));
        Ok(())
    }

    /// Starts the explorer, if it has a database.
    ///
    /// # Errors
    /// If the checkpoint key cannot be read.
    fn start_explorer(&self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let config = &self.config.explorer;
        let Some(location) = config.database.clone() else {
            return Ok(());
        };
        let explorer = Explorer {
            config: config.clone(),
            location,
            connections: self.config.store.max_connections,
            api: self.explorer.clone(),
            node: Arc::clone(&self.node),
            policy_store: self.store.clone(),
            feed: self.feed.clone(),
            http_context: Arc::clone(&self.http_context),
            journal: Arc::clone(&self.journal),
            policy_settings: Arc::new(self.config.policy_settings.clone()),
            grants: ExplorerGrants {
                disclosure: disclosure::state(self)?,
                feed: self.feed.clone(),
            },
            grant_time_bucket: Seconds(self.config.disclosure.time_bucket),
            clock: Arc::clone(&self.http_context.clock),
            entropy: Arc::clone(&self.entropy),
            tasks: self.tasks.clone(),
        };
        self.tasks.spawn(explorer.run(shutdown.clone()));
        Ok(())
    }
}
