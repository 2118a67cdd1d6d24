use crate::{AdminState, error::AdminError, input, scope::Admin, wire::UserSession};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Message, Page, PageQuery, Paged};
use gw_types::SessionId;

/// Lists a user's logins that can still refresh their tokens, the newest first, without their tokens.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/sessions", tag = "sessions",
    params(("user_id" = String, Path, format = Uuid), PageQuery),
    responses((status = 200, body = Paged<UserSession>), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_user_sessions(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    page: Page<1000>,
) -> Result<Json<Paged<UserSession>>, AdminError> {
    let reads = state.store.read();
    let user = admin.readable_user(&reads, &user).await?;
    let logins = reads.list_logins(user.id, state.clock.now()).await?;
    Ok(Json(page.of_all(logins.into_iter().map(UserSession::from).collect())))
}

/// Ends one login of a user. Its refresh and access tokens are revoked at once, and its personal URLs end (HD35).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/sessions/{session_id}", tag = "sessions",
    params(("user_id" = String, Path, format = Uuid), ("session_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn end_user_session(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, session)): Path<(String, String)>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.require_platform_wide()?;
    let session: SessionId = input::id(&session, "session_id")?;
    tx.end_session(user.id, session).await?;
    tx.commit().await?;
    Ok(Message::new("session ended"))
}

/// Ends all logins of a user on all devices. The user may log in again.
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/sessions", tag = "sessions",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn end_user_sessions(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.require_platform_wide()?;
    let ended = tx.end_sessions(user.id).await?;
    tx.commit().await?;
    Ok(Message::new(format!("sessions ended: {ended}")))
}
