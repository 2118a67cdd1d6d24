use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{LegalHold, LegalHoldListResponse},
};
use axum::{Json, extract::State};

/// All legal holds, the oldest first; super only.
#[utoipa::path(get, path = "/api/v1/admin/legal-holds", tag = "logs",
    responses((status = 200, body = LegalHoldListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_legal_holds(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<LegalHoldListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_holds().await?;
    Ok(Json(LegalHoldListResponse {
        data: data.into_iter().map(LegalHold::from).collect(),
    }))
}
