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
use gw_http::{ApiError, AuthError, Authenticated, ErrorBody, JsonBody, Message, Presented};
use gw_store::{Actor, record::LoginUrls};
use gw_types::{ExternalId, SessionId};
use http::HeaderMap;
use serde::Deserialize;

/// What ends besides the login of the caller's token.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogoutRequest {
    /// A refresh token of the login, for callers whose access token is over. The caller's own login ends as well.
    refresh_token: Option<String>,
    /// Whether the personal URLs that the login made stay. Without it they end, too.
    keep_rpc_urls: Option<bool>,
}

/// Log out
///
/// Ends the login behind the caller's token, and the one behind a refresh token in the body: the browser's tokens and the
/// wallet's, those of applications that signed in by it, the cookies, and the personal URLs it made, unless `keep_rpc_urls`
/// is true.
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
    let logins = match logins(&state, &headers, body.refresh_token.as_deref()) {
        Ok(logins) => logins,
        Err(error) => return Ok((clear, ApiError::from(error)).into_response()),
    };
    let urls = if body.keep_rpc_urls == Some(true) {
        LoginUrls::Keep
    } else {
        LoginUrls::End
    };
    let worker = state.clone();
    detached(&state.tasks, async move {
        for (subject, family) in logins {
            end_login(&worker, &subject, family, urls, &provenance).await?;
        }
        Ok::<_, RevokeError>(())
    })
    .await?;
    Ok((clear, Message::new("logged out")).into_response())
}

/// The logins that end: the one named by its refresh token, and the caller's own. Beside a named one the caller's token
/// need not serve for anything else than to say which login is theirs.
fn logins(
    state: &IdentityState,
    headers: &HeaderMap,
    refresh_token: Option<&str>,
) -> Result<Vec<(ExternalId, SessionId)>, AuthError> {
    let Some(named) = refresh_token else {
        let caller = Authenticated::of(&state.edge, headers)?;
        return Ok(vec![(caller.claims.subject, caller.claims.session)]);
    };
    let (edge, now) = (&*state.edge, state.edge.now());
    let named = edge
        .tokens
        .refresh(named, now)
        .map(|claims| (claims.subject, claims.session));
    let own = match Presented::of(headers, &edge.origins) {
        Ok(Presented::Bearer(token) | Presented::Cookie(token)) => edge.tokens.access(token, now).ok(),
        Ok(Presented::Nothing) | Err(_) => None,
    };
    let own = own.map(|claims| (claims.subject, claims.session));
    match (named, own) {
        (Ok(named), Some(own)) if named.1 != own.1 => Ok(vec![named, own]),
        (Ok(named), _) => Ok(vec![named]),
        // A token that is none of ours names no login that could go on.
        (Err(_), Some(own)) => Ok(vec![own]),
        (Err(error), None) => Err(error.into()),
    }
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
    let mut tx = state
        .store
        .begin(&provenance.act(Actor::named(subject.as_str())))
        .await?;
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
