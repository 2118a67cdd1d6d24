//! Builds the HTTP context that all routers share from the configuration.

use super::{
    features::seconds,
    stores::{Platform, Secrets},
};
use crate::config::{Config, Environment, registry::TokenAlgorithm};
use anyhow::Context as _;
use gw_http::{
    AccessAlgorithm, AdminGate, HttpContext, PolicySource, PrivateNetwork, TokenCodec, TokenLives, TrustedProxies,
};
use gw_policy::access::admin::AdminCriteria;
use gw_store::Feed;
use std::sync::Arc;

/// Builds the context. The feed provides the policy snapshot and the clock of decisions (HD23 E-5).
///
/// # Errors
/// If the token secrets or the token lifetimes are not valid.
pub(crate) fn http_context(
    config: &Config,
    secrets: &Secrets,
    platform: &Platform,
    feed: &Feed,
) -> anyhow::Result<Arc<HttpContext>> {
    let production = config.environment == Environment::Production;
    let tokens = TokenCodec::new(&config.edge.base_url, &secrets.access, &secrets.refresh)
        .context("the token secrets are not valid")?
        .with_lives(TokenLives {
            access: seconds(config.identity.access_ttl)?,
            refresh: seconds(config.identity.refresh_ttl)?,
        })
        .with_access_algorithm(match config.identity.access_algorithm {
            TokenAlgorithm::Hs256 => AccessAlgorithm::Hs256,
            TokenAlgorithm::EdDsa => AccessAlgorithm::EdDsa,
        });
    let policy = {
        let feed = feed.clone();
        PolicySource::new(move || {
            let pinned = feed.pin();
            pinned.fresh.then_some(pinned.snapshot)
        })
    };
    Ok(Arc::new(HttpContext {
        tokens,
        policy,
        clock: Arc::new(feed.clock()),
        entropy: Arc::clone(&platform.entropy),
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
            AdminCriteria::Group
        } else {
            AdminCriteria::GroupOrClaim
        }),
        production,
    }))
}
