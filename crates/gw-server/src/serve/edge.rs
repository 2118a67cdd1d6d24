//! The state all HTTP surfaces share, made from the configuration.

use super::{
    features::seconds,
    stores::{Ground, Secrets},
};
use crate::config::{Config, Environment};
use anyhow::Context as _;
use gw_http::{AdminGate, Edge, PolicySource, PrivateNetwork, TokenCodec, TokenLives, TrustedProxies};
use gw_policy::access::admin::Qualifies;
use gw_store::Feed;
use std::sync::Arc;

/// Makes it. The feed gives the snapshot, and the time by which decisions are made (HD23 E-5).
pub(crate) fn edge(config: &Config, secrets: &Secrets, ground: &Ground, feed: &Feed) -> anyhow::Result<Arc<Edge>> {
    let production = config.environment == Environment::Production;
    let tokens = TokenCodec::new(&config.edge.base_url, &secrets.access, &secrets.refresh)
        .context("the token secrets cannot be used")?
        .with_lives(TokenLives {
            access: seconds(config.identity.access_ttl)?,
            refresh: seconds(config.identity.refresh_ttl)?,
        });
    let policy = {
        let feed = feed.clone();
        PolicySource::new(move || {
            let pinned = feed.pin();
            pinned.fresh.then_some(pinned.snapshot)
        })
    };
    Ok(Arc::new(Edge {
        tokens,
        policy,
        clock: Arc::new(feed.clock()),
        entropy: Arc::clone(&ground.entropy),
        origins: Arc::new(config.edge.origins.clone()),
        proxies: TrustedProxies::new(config.edge.trusted_proxies.clone()),
        network: PrivateNetwork::new(config.edge.internal_networks.clone()),
        admin: AdminGate::new(
            secrets.admin.clone(),
            config.admin.token_previous.clone(),
            config.admin.operator_token.clone(),
            production,
        )
        .with(if config.admin.require_org_admin_group {
            Qualifies::Group
        } else {
            Qualifies::GroupOrClaim
        }),
        production,
    }))
}
