use crate::{DisclosureState, admin::readable_request, caller::Admin, error::AdminError, wire::RequestWithDetails};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns a request of an organization.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/requests/{request_id}", tag = "disclosure",
    params(("request_id" = String, Path, format = Uuid, description = "The request")),
    responses((status = 200, body = RequestWithDetails), AdminError))]
pub(crate) async fn get_disclosure_request(
    admin: Admin,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
) -> Result<Json<RequestWithDetails>, AdminError> {
    Ok(Json(readable_request(&state, &admin, &id).await?.into()))
}
