//! Rate limits (spec/10 §9, decision 54): counted for all instances together, or per instance while the cache is
//! unavailable.

use crate::login::LoginId;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gw_cache::{Cache, Rate};
use gw_http::{AddressKey, AllowedOrigins, ApiError, ClientAddress, HttpContext};
use gw_types::{ExternalId, Seconds, SessionId};
use http::header;
use sha2::{Digest as _, Sha256};
use std::{num::NonZeroU32, sync::Arc};

const POLLS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const POLLS_PER_SESSION: NonZeroU32 = NonZeroU32::new(60).unwrap();
const REFRESHES_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
/// A separate limit, so that logging out works while another client at the same address keeps trying to log in.
const REVOCATIONS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(60).unwrap();
const LINKS_PER_SUBJECT: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The rates, and the cache that counts them.
#[derive(Debug)]
pub(crate) struct Limits {
    cache: Cache,
    /// Opening of logins, and introspection: per address, RATE_LIMIT_AUTH.
    pub(crate) auth: Rate,
    /// Proofs of wallets: per address, RATE_LIMIT_AUTH, counted separately from `auth`.
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
    /// Creates the limits; `auth_per_minute` is RATE_LIMIT_AUTH.
    pub(crate) fn new(auth_per_minute: NonZeroU32, cache: Cache) -> Self {
        Self {
            cache,
            auth: Rate::per_minute("auth", auth_per_minute),
            proofs: Rate::per_minute("proofs", auth_per_minute),
            revocations: Rate::per_minute("revocations", REVOCATIONS_PER_ADDRESS),
            polls: Rate::per_minute("polls", POLLS_PER_ADDRESS),
            refreshes: Rate::per_minute("refreshes", REFRESHES_PER_ADDRESS),
            refreshes_of_family: Rate::per_minute("family", auth_per_minute),
        }
    }

    /// Counts one poll of a login session. The opener's polls have a count of their own, so that other clients cannot
    /// use it up. Other polls count per address, and per session and address (HD34).
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
            return self
                .cache
                .check_rate(own, &session)
                .await
                .map_err(ApiError::rate_limited);
        }
        self.poll_from(client).await?;
        self.cache
            .check_rate(others, &format!("{session} {address}"))
            .await
            .map_err(ApiError::rate_limited)
    }

    /// Counts one poll by its address alone, as for a session that does not exist.
    pub(crate) async fn poll_from(&self, client: ClientAddress) -> Result<(), ApiError> {
        let address = AddressKey::from(client).to_string();
        self.cache
            .check_rate(self.polls, &address)
            .await
            .map_err(ApiError::rate_limited)
    }

    /// Counts one refresh in a token family.
    pub(crate) async fn refresh_of(&self, family: SessionId) -> Result<(), Seconds> {
        self.cache
            .check_rate(self.refreshes_of_family, &family.0.to_string())
            .await
    }

    /// Counts one request about links.
    pub(crate) async fn link_of(&self, subject: &ExternalId) -> Result<(), ApiError> {
        let rate = const { Rate::per_minute("links", LINKS_PER_SUBJECT) };
        self.cache
            .check_rate(rate, subject.as_str())
            .await
            .map_err(ApiError::rate_limited)
    }
}

/// The state of the middleware [`per_address`].
#[derive(Clone, Debug)]
pub(crate) struct PerAddress {
    pub(crate) http_context: Arc<HttpContext>,
    pub(crate) cache: Cache,
    pub(crate) rate: Rate,
}

impl PerAddress {
    pub(crate) fn new(http_context: &Arc<HttpContext>, limits: &Limits, rate: Rate) -> Self {
        Self {
            http_context: Arc::clone(http_context),
            cache: limits.cache.clone(),
            rate,
        }
    }
}

/// Middleware: counts requests per client address. Requests sent by a foreign page are counted per address and origin,
/// so that the page cannot use up its visitor's own limit (HD34).
pub(crate) async fn per_address(
    State(by): State<PerAddress>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let client = AddressKey::from(by.http_context.client(request.extensions(), request.headers()));
    let key = if by.http_context.origins.sent_by_foreign_page(request.headers()) {
        let origin = request
            .headers()
            .get(header::ORIGIN)
            .map_or(&b"none"[..], http::HeaderValue::as_bytes);
        format!("{client} {}", hex::encode(Sha256::digest(origin)))
    } else {
        client.to_string()
    };
    by.cache
        .check_rate(by.rate, &key)
        .await
        .map_err(ApiError::rate_limited)?;
    Ok(next.run(request).await)
}

/// Middleware: rejects requests sent by a foreign page (HD34). It runs before any count.
pub(crate) async fn own_pages_only(
    State(http_context): State<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if http_context.origins.sent_by_foreign_page(request.headers()) {
        return Err(ApiError::forbidden("origin not allowed"));
    }
    Ok(next.run(request).await)
}

/// Variant of [`own_pages_only`] for routes that browsers navigate to: links from foreign pages are accepted, too.
pub(crate) async fn own_pages_and_links_only(
    State(http_context): State<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    if http_context.origins.sent_by_foreign_page(headers) && !AllowedOrigins::is_navigation(headers) {
        return Err(ApiError::forbidden("origin not allowed"));
    }
    Ok(next.run(request).await)
}
