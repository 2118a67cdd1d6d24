use crate::{
    DisclosureState, admin::readable_request, caller::Admin, error::AdminError, wire::DisclosureStatusResponse,
};
use axum::{
    Json,
    extract::{Path, State},
};

/// Withdraws a pending request. A request that its owner decided, or that has ended, stays.
#[utoipa::path(delete, path = "/api/v1/admin/disclosure/requests/{request_id}", tag = "disclosure",
    params(("request_id" = String, Path, format = Uuid, description = "The request")),
    responses((status = 200, body = DisclosureStatusResponse), AdminError))]
pub(crate) async fn delete_disclosure_request(
    admin: Admin,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
) -> Result<Json<DisclosureStatusResponse>, AdminError> {
    let request = readable_request(&state, &admin, &id).await?.request;
    admin.require_writer(request.org)?;
    let mut tx = admin.begin::<AdminError>(&state).await?;
    tx.delete_disclosure_request(request.id).await?;
    tx.commit().await?;
    Ok(Json(DisclosureStatusResponse { status: "deleted" }))
}
