//! `POST /logout`: ends the caller's login with all it made (HD35).

use super::revoke::RevokeError;
use crate::{
    error::detached,
    routes::{Provenance, cookies},
    security,
    state::IdentityState,
    tokens::revoked_until,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthError, Authenticated, ErrorBody, JsonBody, Message};
use gw_store::{Actor, record::LoginUrls};
use gw_types::{ExternalId, SessionId};
use http::HeaderMap;
use serde::Deserialize;

/// What ends, if not what the caller's token says.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogoutRequest {
    /// A refresh token of the login, for callers whose access token is over.
    refresh_token: Option<String>,
    /// Whether the personal URLs that the login made stay. Without it they end, too.
    keep_rpc_urls: Option<bool>,
}

/// Log out
///
/// Ends the login behind the caller's token, or behind a refresh token in the body: the browser's tokens and the wallet's,
/// those of applications that signed in by it, the cookies, and the personal URLs it made, unless `keep_rpc_urls` is true.
#[utoipa::path(
    post,
    path = "/logout",
    operation_id = "logout",
    tag = "tokens",
    security(("bearer" = [])),
    request_body = Option<LogoutRequest>,
    responses(
        (status = 200, body = Message),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn logout(
    State(state): State<IdentityState>,
    provenance: Provenance,
    headers: HeaderMap,
    body: Option<JsonBody<LogoutRequest>>,
) -> Result<Response, ApiError> {
    let JsonBody(body) = body.unwrap_or(JsonBody(LogoutRequest::default()));
    // Whatever else is wrong: a browser that asked to be logged out keeps no cookie.
    let clear = cookies::clear_access(&state.edge);
    let (subject, family) = match who(&state, &headers, body.refresh_token.as_deref()) {
        Ok(who) => who,
        Err(error) => return Ok((clear, ApiError::from(error)).into_response()),
    };
    let urls = if body.keep_rpc_urls == Some(true) { LoginUrls::Keep } else { LoginUrls::End };
    let worker = state.clone();
    detached(&state.tasks, async move { end_login(&worker, &subject, family, urls, &provenance).await }).await?;
    Ok((clear, Message::new("logged out")).into_response())
}

fn who(
    state: &IdentityState,
    headers: &HeaderMap,
    refresh_token: Option<&str>,
) -> Result<(ExternalId, SessionId), AuthError> {
    if let Some(token) = refresh_token {
        let claims = state.edge.tokens.refresh(token, state.edge.now())?;
        return Ok((claims.subject, claims.session));
    }
    let caller = Authenticated::of(&state.edge, headers)?;
    Ok((caller.claims.subject, caller.claims.session))
}

/// Ends a login by any of its families, on record.
pub(in crate::routes) async fn end_login(
    state: &IdentityState,
    subject: &ExternalId,
    family: SessionId,
    urls: LoginUrls,
    provenance: &Provenance,
) -> Result<(), RevokeError> {
    let mut room = state.security.reserve(1)?;
    let mut tx = state.store.begin(&provenance.act(Actor::named(subject.as_str()))).await?;
    let ended = tx.revoke_login(family, revoked_until(tx.now()), urls).await?;
    tx.commit().await?;
    if !ended.is_empty() {
        let mut event = security::event(SecurityKind::SessionRevoked, provenance);
        event.external_id = Some(subject.clone());
        event.session_id = Some(family);
        room.record(event)?;
    }
    Ok(())
}
