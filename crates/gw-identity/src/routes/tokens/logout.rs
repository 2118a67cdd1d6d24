//! `POST /logout`: ends the caller's login and everything it made (HD35).

use super::revoke::RevokeError;
use crate::{
    error::spawn_tracked, request_info::RequestInfo, routes::cookies, security, state::IdentityState,
    tokens::revoked_until,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthError, AuthenticatedUser, Credentials, ErrorBody, JsonBody, Message};
use gw_store::{Actor, record::LoginUrls};
use gw_types::{ExternalId, SessionId};
use http::HeaderMap;
use serde::Deserialize;

/// Which logins end besides the caller's own, and which URLs stay.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogoutRequest {
    /// A refresh token of the login, for callers whose access token has expired. The caller's own login ends as well.
    refresh_token: Option<String>,
    /// Whether the personal URLs that the login made stay. By default they end, too.
    keep_rpc_urls: Option<bool>,
}

/// Log out
///
/// Ends the login of the caller's token, and the login of a refresh token in the body: the browser's and the wallet's
/// tokens, the tokens of applications that signed in by it, the cookies, and the personal URLs that it made unless
/// `keep_rpc_urls` is true.
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
    request_info: RequestInfo,
    headers: HeaderMap,
    body: Option<JsonBody<LogoutRequest>>,
) -> Result<Response, ApiError> {
    let JsonBody(body) = body.unwrap_or(JsonBody(LogoutRequest::default()));
    // Also in errors: a browser that asked to be logged out keeps no cookie.
    let clear = cookies::clear_access(&state.http_context);
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
    spawn_tracked(&state.tasks, async move {
        for (subject, family) in logins {
            end_login(&worker, &subject, family, urls, &request_info).await?;
        }
        Ok::<_, RevokeError>(())
    })
    .await?;
    Ok((clear, Message::new("logged out")).into_response())
}

/// The logins that end: the one named by a refresh token, and the caller's own. If a refresh token is given, the
/// caller's token only has to be signed and unexpired.
fn logins(
    state: &IdentityState,
    headers: &HeaderMap,
    refresh_token: Option<&str>,
) -> Result<Vec<(ExternalId, SessionId)>, AuthError> {
    let Some(named) = refresh_token else {
        let caller = AuthenticatedUser::authenticate(&state.http_context, headers)?;
        return Ok(vec![(caller.claims.subject, caller.claims.session)]);
    };
    let (http_context, now) = (&*state.http_context, state.http_context.now());
    let named = http_context
        .tokens
        .refresh(named, now)
        .map(|claims| (claims.subject, claims.session));
    let own = match Credentials::from_headers(headers, &http_context.origins) {
        Ok(Credentials::Bearer(token) | Credentials::Cookie(token)) => http_context.tokens.access(token, now).ok(),
        Ok(Credentials::Nothing) | Err(_) => None,
    };
    let own = own.map(|claims| (claims.subject, claims.session));
    match (named, own) {
        (Ok(named), Some(own)) if named.1 != own.1 => Ok(vec![named, own]),
        (Ok(named), _) => Ok(vec![named]),
        // An invalid token names no login that could continue.
        (Err(_), Some(own)) => Ok(vec![own]),
        (Err(error), None) => Err(error.into()),
    }
}

/// Ends the login that a token family belongs to, and records it.
pub(in crate::routes) async fn end_login(
    state: &IdentityState,
    subject: &ExternalId,
    family: SessionId,
    urls: LoginUrls,
    request_info: &RequestInfo,
) -> Result<(), RevokeError> {
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state
        .store
        .begin(&request_info.actor(Actor::named(subject.as_str())))
        .await?;
    let ended = tx.revoke_login(family, revoked_until(tx.now()), urls).await?;
    tx.commit().await?;
    if !ended.is_empty() {
        let mut event = security::event(SecurityKind::SessionRevoked, request_info);
        event.external_id = Some(subject.clone());
        event.session_id = Some(family);
        reservation.append(event)?;
    }
    Ok(())
}
