//! How often whom (spec/10 §9, decision 54): counted for all instances together, here alone while the cache is away.

use crate::{login::LoginId, state::IdentityConfig};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gw_cache::{Cache, Rate};
use gw_http::{AddressKey, ApiError, Edge};
use gw_types::{ExternalId, Seconds, SessionId};
use std::{num::NonZeroU32, sync::Arc};

const POLLS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const POLLS_PER_SESSION: NonZeroU32 = NonZeroU32::new(60).unwrap();
const REFRESHES_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const LINKS_PER_SUBJECT: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The rates, and where they are counted.
#[derive(Debug)]
pub(crate) struct Limits {
    cache: Cache,
    /// Logins, revoke, introspect: per address, RATE_LIMIT_AUTH.
    pub(crate) auth: Rate,
    /// Polls and providers: per address.
    pub(crate) polls: Rate,
    /// Refreshes: per address.
    pub(crate) refreshes: Rate,
    refreshes_of_family: Rate,
}

impl Limits {
    pub(crate) fn new(config: &IdentityConfig, cache: Cache) -> Self {
        Self {
            cache,
            auth: Rate::per_minute("auth", config.auth_per_minute),
            polls: Rate::per_minute("polls", POLLS_PER_ADDRESS),
            refreshes: Rate::per_minute("refreshes", REFRESHES_PER_ADDRESS),
            refreshes_of_family: Rate::per_minute("family", config.auth_per_minute),
        }
    }

    /// One poll of a login session.
    pub(crate) async fn poll_of(&self, session: LoginId) -> Result<(), ApiError> {
        let rate = const { Rate::per_minute("session", POLLS_PER_SESSION) };
        self.cache.pace(rate, &session.0.to_string()).await.map_err(ApiError::rate_limited)
    }

    /// One refresh in a token family.
    pub(crate) async fn refresh_of(&self, family: SessionId) -> Result<(), Seconds> {
        self.cache.pace(self.refreshes_of_family, &family.0.to_string()).await
    }

    /// One request about links.
    pub(crate) async fn link_of(&self, subject: &ExternalId) -> Result<(), ApiError> {
        let rate = const { Rate::per_minute("links", LINKS_PER_SUBJECT) };
        self.cache.pace(rate, subject.as_str()).await.map_err(ApiError::rate_limited)
    }
}

/// What [`per_address`] counts by.
#[derive(Clone, Debug)]
pub(crate) struct PerAddress {
    pub(crate) edge: Arc<Edge>,
    pub(crate) cache: Cache,
    pub(crate) rate: Rate,
}

impl PerAddress {
    pub(crate) fn new(edge: &Arc<Edge>, limits: &Limits, rate: Rate) -> Self {
        Self { edge: Arc::clone(edge), cache: limits.cache.clone(), rate }
    }
}

/// Middleware: counts requests per client address.
pub(crate) async fn per_address(
    State(by): State<PerAddress>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let client = AddressKey::from(by.edge.client(request.extensions(), request.headers()));
    by.cache.pace(by.rate, &client.to_string()).await.map_err(ApiError::rate_limited)?;
    Ok(next.run(request).await)
}
