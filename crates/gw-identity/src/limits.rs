//! How often whom (spec/10 §9, decision 54): counted for all instances together, here alone while the cache is away.

use crate::{login::LoginId, state::IdentityConfig};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gw_cache::{Cache, Rate};
use gw_http::{AddressKey, ApiError, ClientAddress, Edge, OwnOrigins};
use gw_types::{ExternalId, Seconds, SessionId};
use http::header;
use sha2::{Digest as _, Sha256};
use std::{num::NonZeroU32, sync::Arc};

const POLLS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const POLLS_PER_SESSION: NonZeroU32 = NonZeroU32::new(60).unwrap();
const REFRESHES_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
/// Ending a login must be possible while somebody at the same address tries to log in all the time.
const REVOCATIONS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(60).unwrap();
const LINKS_PER_SUBJECT: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The rates, and where they are counted.
#[derive(Debug)]
pub(crate) struct Limits {
    cache: Cache,
    /// What opens logins, and introspection: per address, RATE_LIMIT_AUTH.
    pub(crate) auth: Rate,
    /// Proofs of wallets: the same, counted apart.
    pub(crate) proofs: Rate,
    /// Revocations and logouts: per address.
    pub(crate) revocations: Rate,
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
            proofs: Rate::per_minute("proofs", config.auth_per_minute),
            revocations: Rate::per_minute("revocations", REVOCATIONS_PER_ADDRESS),
            polls: Rate::per_minute("polls", POLLS_PER_ADDRESS),
            refreshes: Rate::per_minute("refreshes", REFRESHES_PER_ADDRESS),
            refreshes_of_family: Rate::per_minute("family", config.auth_per_minute),
        }
    }

    /// One poll of a login session. Those of its opener are counted by themselves, so that nobody else's use them up;
    /// others by address, and by session and address (HD34).
    pub(crate) async fn poll_of(
        &self,
        session: LoginId,
        by_opener: bool,
        client: ClientAddress,
    ) -> Result<(), ApiError> {
        let (own, others) = const {
            (
                Rate::per_minute("session", POLLS_PER_SESSION),
                Rate::per_minute("foreign_polls", POLLS_PER_SESSION),
            )
        };
        let (session, address) = (session.0.to_string(), AddressKey::from(client).to_string());
        if by_opener {
            return self.cache.pace(own, &session).await.map_err(ApiError::rate_limited);
        }
        self.poll_from(client).await?;
        self.cache
            .pace(others, &format!("{session} {address}"))
            .await
            .map_err(ApiError::rate_limited)
    }

    /// One poll of nothing that is there, or of nobody's.
    pub(crate) async fn poll_from(&self, client: ClientAddress) -> Result<(), ApiError> {
        let address = AddressKey::from(client).to_string();
        self.cache
            .pace(self.polls, &address)
            .await
            .map_err(ApiError::rate_limited)
    }

    /// One refresh in a token family.
    pub(crate) async fn refresh_of(&self, family: SessionId) -> Result<(), Seconds> {
        self.cache.pace(self.refreshes_of_family, &family.0.to_string()).await
    }

    /// One request about links.
    pub(crate) async fn link_of(&self, subject: &ExternalId) -> Result<(), ApiError> {
        let rate = const { Rate::per_minute("links", LINKS_PER_SUBJECT) };
        self.cache
            .pace(rate, subject.as_str())
            .await
            .map_err(ApiError::rate_limited)
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
        Self {
            edge: Arc::clone(edge),
            cache: limits.cache.clone(),
            rate,
        }
    }
}

/// Middleware: counts requests per client address. Those that a page of somebody else sent are counted by that page: it
/// must not use up what its visitor may do (HD34).
pub(crate) async fn per_address(
    State(by): State<PerAddress>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let client = AddressKey::from(by.edge.client(request.extensions(), request.headers()));
    let key = if by.edge.origins.sent_by_foreign_page(request.headers()) {
        let origin = request
            .headers()
            .get(header::ORIGIN)
            .map_or(&b"none"[..], http::HeaderValue::as_bytes);
        format!("{client} {}", hex::encode(Sha256::digest(origin)))
    } else {
        client.to_string()
    };
    by.cache.pace(by.rate, &key).await.map_err(ApiError::rate_limited)?;
    Ok(next.run(request).await)
}

/// Middleware: refuses what a page of somebody else sends (HD34). It comes before any count.
pub(crate) async fn own_pages_only(
    State(edge): State<Arc<Edge>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if edge.origins.sent_by_foreign_page(request.headers()) {
        return Err(ApiError::forbidden("origin not allowed"));
    }
    Ok(next.run(request).await)
}

/// The same where browsers are sent to: a link of somebody else may lead here, nothing else of theirs.
pub(crate) async fn own_pages_and_links_only(
    State(edge): State<Arc<Edge>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    if edge.origins.sent_by_foreign_page(headers) && !OwnOrigins::is_navigation(headers) {
        return Err(ApiError::forbidden("origin not allowed"));
    }
    Ok(next.run(request).await)
}
