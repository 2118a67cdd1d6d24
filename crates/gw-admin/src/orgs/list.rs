use crate::{AdminState, error::AdminError, scope::Admin, wire::Organization};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged, QueryParams};
use gw_store::read::OrganizationFilter;
use serde::Deserialize;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Whether the seeded organizations are listed; super only.
    #[serde(default)]
    #[param(required = false)]
    include_system: bool,
}

/// Lists the organizations in the caller's scope by name.
#[utoipa::path(get, path = "/api/v1/admin/orgs", tag = "organizations", params(Filter, PageQuery),
    responses((status = 200, body = Paged<Organization>), (status = 401), (status = 403)))]
pub(crate) async fn list_orgs(
    admin: Admin,
    State(state): State<AdminState>,
    QueryParams(filter): QueryParams<Filter>,
    page: Page,
) -> Result<Json<Paged<Organization>>, AdminError> {
    let filter = OrganizationFilter {
        scope: admin.scope_or_operator(),
        include_system: filter.include_system && admin.is_super(),
    };
    let organizations = state
        .store
        .read()
        .list_organizations(&filter, crate::scope::paging(page))
        .await?;
    Ok(Json(page.answer(
        organizations.rows.into_iter().map(Organization::from).collect(),
        organizations.total,
    )))
}
