use crate::{AdminState, error::AdminError, scope::Admin, wire::SharedInfrastructure};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists shared contracts by name; super only.
#[utoipa::path(get, path = "/api/v1/admin/shared-infrastructure", tag = "shared infrastructure", params(PageQuery),
    responses((status = 200, body = Paged<SharedInfrastructure>), (status = 401), (status = 403)))]
pub(crate) async fn list_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<SharedInfrastructure>>, AdminError> {
    admin.require_super()?;
    let data = state.store.read().list_shared_infra().await?;
    Ok(Json(
        page.of_all(data.into_iter().map(SharedInfrastructure::from).collect()),
    ))
}
