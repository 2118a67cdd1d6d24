//! `/me/sessions`: lists and ends the caller's logins (spec/10 §10, HD35).

use crate::{
    error::{spawn_tracked, storage},
    request_info::RequestInfo,
    routes::{cookies, tokens::logout::end_login},
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
    response::IntoResponse,
};
use gw_http::{ApiError, AuthenticatedUser, ErrorBody, Message, Page, PageQuery, Paged};
use gw_store::record::LoginUrls;
use gw_types::SessionId;
use http::HeaderMap;
use serde::Serialize;

/// One of the caller's logins.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MySessionResponse {
    #[schema(value_type = String, format = Uuid)]
    id: SessionId,
    /// How the login was proved: `zk`, `directory`, `sp` or `mock`.
    provider: String,
    created_at: String,
    /// When the newest of its refresh tokens expires.
    expires_at: String,
    /// Whether the caller's token belongs to this login.
    current: bool,
}

/// List my logins
///
/// Logins that can still refresh, the newest first: one row each, however many token families it has.
#[utoipa::path(
    get,
    path = "/me/sessions",
    operation_id = "mySessions",
    tag = "me",
    security(("bearer" = [])),
    params(PageQuery),
    responses(
        (status = 200, body = Paged<MySessionResponse>),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn list(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    page: Page,
) -> Result<Json<Paged<MySessionResponse>>, ApiError> {
    let reads = state.store.read();
    let logins = reads
        .list_logins(caller.user.id, state.http_context.now())
        .await
        .map_err(|error| storage(&error))?;
    let current = current(&state, &caller).await?;
    let total = u64::try_from(logins.len()).unwrap_or(u64::MAX);
    let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let take = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let rows = logins.into_iter().skip(skip).take(take).map(|login| MySessionResponse {
        id: login.id,
        provider: login.amr,
        created_at: login.started.to_rfc3339(),
        expires_at: login.expires_at.to_rfc3339(),
        current: current == Some(login.id),
    });
    Ok(Json(page.answer(rows.collect(), total)))
}

/// End one of my logins
///
/// Also ends everything that the login made: its tokens, those of applications that signed in by it, and its personal
/// URLs.
#[utoipa::path(
    delete,
    path = "/me/sessions/{id}",
    operation_id = "endMySession",
    tag = "me",
    security(("bearer" = [])),
    params(("id" = String, Path, format = Uuid)),
    responses(
        (status = 200, body = Message),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn end(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let unknown = || ApiError::not_found("session not found");
    let id: SessionId = id.parse().map_err(|_| unknown())?;
    let reads = state.store.read();
    let logins = reads
        .list_logins(caller.user.id, state.http_context.now())
        .await
        .map_err(|error| storage(&error))?;
    if !logins.iter().any(|login| login.id == id) {
        return Err(unknown());
    }
    let is_current = current(&state, &caller).await? == Some(id);
    let (worker, subject) = (state.clone(), caller.claims.subject);
    let work = async move { end_login(&worker, &subject, id, LoginUrls::End, &request_info).await };
    spawn_tracked(&state.tasks, work).await?;
    let answer = if is_current {
        cookies::clear_access(&state.http_context)
    } else {
        HeaderMap::new()
    };
    Ok((answer, Message::new("session ended")))
}

/// The login behind the caller's token.
async fn current(state: &IdentityState, caller: &AuthenticatedUser) -> Result<Option<SessionId>, ApiError> {
    let family = state
        .store
        .read()
        .find_family(caller.claims.session)
        .await
        .map_err(|error| storage(&error))?;
    Ok(family.map(|family| family.login))
}
