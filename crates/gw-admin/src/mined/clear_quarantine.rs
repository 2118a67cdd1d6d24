use super::{reason, require_clearance};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::Message;
use gw_types::{QuarantineId, WithheldId};

/// Shows a contract's changes by a withheld transaction again, or reopens a closed address; super, or administrators of
/// every affected organization. The reason is kept in the audit log.
#[utoipa::path(post, path = "/api/v1/admin/mined/quarantines/{id}/clear", tag = "mined",
    params(("id" = String, Path, format = Uuid)), request_body = ClearMinedRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn clear_quarantine(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<ClearMinedRequest>, gw_http::ApiError>,
) -> Result<Message, AdminError> {
    const UNKNOWN: &str = "quarantine not found";
    admin.require_writer()?;
    let JsonBody(body) = body?;
    let id: QuarantineId = id.parse().map_err(|_| admin.unknown_target(UNKNOWN))?;
    // HD38: administrators of the affected organizations clear the changes to their own contracts.
    if let Some(withheld) = state.store.read().find_withheld(WithheldId(id.0)).await? {
        require_clearance(&admin, &state, Some(withheld.conviction), UNKNOWN).await?;
        if !admin.is_super() && withheld.org.is_none_or(|org| admin.require_writer_of(org).is_err()) {
            return Err(admin.unknown_target(UNKNOWN));
        }
        let reason = reason(&body)?;
        let mut tx = admin.begin(&state).await?;
        tx.release_change(withheld.id, reason).await?;
        tx.commit().await?;
        return Ok(Message::new("quarantine cleared"));
    }
    let quarantine = state
        .store
        .read()
        .find_quarantine(id)
        .await?
        .ok_or_else(|| admin.unknown_target(UNKNOWN))?;
    require_clearance(&admin, &state, quarantine.conviction, UNKNOWN).await?;
    let reason = reason(&body)?;
    let mut tx = admin.begin(&state).await?;
    tx.clear_quarantine(id, reason).await?;
    tx.commit().await?;
    Ok(Message::new("quarantine cleared"))
}
