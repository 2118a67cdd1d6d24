use crate::{AdminState, error::AdminError, scope::Admin, wire::AllowedDirectoryTenant};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists the directory tenants whose users may log in, ordered by label; super only.
#[utoipa::path(get, path = "/api/v1/admin/directory-tenants", tag = "directory", params(PageQuery),
    responses((status = 200, body = Paged<AllowedDirectoryTenant>), (status = 401), (status = 403)))]
pub(crate) async fn list_tenants(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<AllowedDirectoryTenant>>, AdminError> {
    admin.require_super()?;
    let data = state.store.read().list_tenants().await?;
    Ok(Json(
        page.of_all(data.into_iter().map(AllowedDirectoryTenant::from).collect()),
    ))
}
