use super::{ClearRequest, Consequence};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
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
    body: Result<JsonBody<ClearMinedRequest>, ApiError>,
) -> Result<Message, AdminError> {
    let request = ClearRequest::<QuarantineId>::new(&admin, &state, &id, body, "quarantine not found")?;
    let reads = state.store.read();
    let (conviction, consequence) = match reads.find_withheld(WithheldId(request.id.0)).await? {
        // HD38: administrators of the affected organizations clear the changes to their own contracts.
        Some(withheld) => {
            if !admin.is_super() && withheld.org.is_none_or(|org| admin.require_writer_of(org).is_err()) {
                return Err(request.unknown());
            }
            (Some(withheld.conviction), Consequence::Withheld(withheld.id))
        }
        None => {
            let quarantine = reads.find_quarantine(request.id).await?;
            let quarantine = quarantine.ok_or_else(|| request.unknown())?;
            (quarantine.conviction, Consequence::Quarantine(request.id))
        }
    };
    request.clear(conviction, consequence).await?;
    Ok(Message::new("quarantine cleared"))
}
