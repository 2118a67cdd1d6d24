use crate::{AdminState, error::AdminError, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;
use gw_store::record::PendingLogin;
use uuid::Uuid;

const UNKNOWN: &str = "session not found or expired";

/// Ends a login session. No proof completes it any more, and tokens that its page has not fetched yet are dropped.
/// Tokens already fetched remain valid; they end with the user's token families.
#[utoipa::path(delete, path = "/api/v1/admin/sessions/{session_id}", tag = "sessions",
    params(("session_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404), (status = 503)))]
pub(crate) async fn delete_session(
    admin: Admin,
    State(state): State<AdminState>,
    Path(session): Path<String>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let Ok(id) = Uuid::parse_str(&session) else {
        return Err(admin.unknown_target(UNKNOWN));
    };
    let Some(session) = state.sessions.find(id).await? else {
        return Err(admin.unknown_target(UNKNOWN));
    };
    let mut tx = admin.begin(&state).await?;
    if !admin.is_super() {
        let user = match &session.subject {
            Some(subject) => tx.read().find_user_by_external_id(subject).await?,
            None => None,
        };
        let Some(user) = user else {
            return Err(admin.unknown_target(UNKNOWN));
        };
        admin.writable_user(&tx.read(), &user.id.to_string()).await?;
        admin.require_platform_wide()?;
    }
    tx.note_login_ended(&PendingLogin {
        id,
        opened_at: session.opened_at,
        completed: session.completed_at.is_some(),
    });
    // The audit entry is written first: a session must not end unrecorded. If the session expires in the meantime, the
    // entry is kept.
    tx.commit().await?;
    state.sessions.end(id).await?;
    Ok(Message::new("session ended"))
}
