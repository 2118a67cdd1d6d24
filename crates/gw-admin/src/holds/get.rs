use crate::{AdminState, error::AdminError, scope::Admin, wire::LegalHold};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_types::LegalHoldId;

/// Returns a legal hold; super only.
#[utoipa::path(get, path = "/api/v1/admin/legal-holds/{id}", tag = "logs",
    params(("id" = String, Path, format = Uuid)),
    responses((status = 200, body = LegalHold), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_legal_hold(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<LegalHold>, AdminError> {
    const UNKNOWN: &str = "legal hold not found";
    admin.require_super()?;
    let id: LegalHoldId = id.parse().map_err(|_| AdminError::not_found(UNKNOWN))?;
    let hold = state.store.read().find_hold(id).await?;
    Ok(Json(hold.ok_or_else(|| AdminError::not_found(UNKNOWN))?.into()))
}
