use crate::{AdminState, error::AdminError, scope::Admin, wire::ApprovedCode};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists approved creation code by name; super only.
#[utoipa::path(get, path = "/api/v1/admin/approved-code", tag = "approved code", params(PageQuery),
    responses((status = 200, body = Paged<ApprovedCode>), (status = 401), (status = 403)))]
pub(crate) async fn list_approved_code(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<ApprovedCode>>, AdminError> {
    admin.require_super()?;
    let data = state.store.read().list_approved_code().await?;
    Ok(Json(page.of_all(data.into_iter().map(ApprovedCode::from).collect())))
}
