//! The listeners of the configuration, and the routers that they serve.

use super::{
    files,
    ready::ReadyState,
    routes::{ListenerRouters, starting_router},
};
use crate::{
    config::Config,
    listener::{BodyBudget, BodyLimits, Connections, Quota, SwappableRouter},
};
use anyhow::Context as _;
use arc_swap::ArcSwap;
use axum::Router;
use gw_http::TrustedProxies;
use std::{net::SocketAddr, sync::Arc};
use tokio::net::TcpListener;

/// The bound listener sockets.
#[derive(Debug)]
pub(super) struct Listeners {
    public: TcpListener,
    internal: Option<TcpListener>,
}

/// The routers that the listeners serve now; they are replaced once the start is complete.
#[derive(Debug)]
pub(super) struct SwappableRouters {
    public: SwappableRouter,
    internal: SwappableRouter,
}

impl Listeners {
    /// Binds the sockets of PORT and INTERNAL_BIND_ADDR.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub(super) async fn bind(config: &Config) -> anyhow::Result<Self> {
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

    /// Starts to accept connections. Until the routers are replaced, only `/health` and `/ready` are served.
    pub(super) fn serve(self, config: &Config, connections: &Connections, ready: &ReadyState) -> SwappableRouters {
        let proxies = || TrustedProxies::new(config.edge.trusted_proxies.clone());
        let has_internal = self.internal.is_some();
        let limits = files::connection_limits(&config.limits, has_internal);
        let swappable = |router: Router| Arc::new(ArcSwap::from_pointee(router));
        let routers = SwappableRouters {
            public: swappable(starting_router(&ready.clone().for_public(has_internal))),
            internal: swappable(starting_router(ready)),
        };
        let quota = Quota::new("public", limits.public, proxies());
        let bodies = BodyBudget::new("public", BodyLimits::PUBLIC, proxies());
        connections.serve(self.public, Arc::clone(&routers.public), quota, bodies);
        if let Some(listener) = self.internal {
            let quota = Quota::new("internal", limits.internal, proxies());
            let bodies = BodyBudget::new("internal", BodyLimits::INTERNAL, proxies());
            connections.serve(listener, Arc::clone(&routers.internal), quota, bodies);
        }
        tracing::info!(address = %config.edge.listen, "listening");
        routers
    }
}

impl SwappableRouters {
    /// From now on, the listeners serve these routers.
    pub(super) fn replace(&self, routers: ListenerRouters) {
        self.public.store(Arc::new(routers.public));
        self.internal.store(Arc::new(routers.internal));
    }
}
