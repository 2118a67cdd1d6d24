use crate::{
    AdminState,
    error::AdminError,
    scope::{Admin, paging},
    wire::{GroupAccess, GroupWithAccess},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Page, PageQuery, Paged, QueryParams};
use serde::Deserialize;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// A part of name or slug.
    #[serde(default)]
    #[param(required = false)]
    search: Option<String>,
}

/// Lists the groups of an organization with their access, by name.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/groups", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), Filter, PageQuery),
    responses((status = 200, body = Paged<GroupWithAccess>), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_groups(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    QueryParams(filter): QueryParams<Filter>,
    page: Page,
) -> Result<Json<Paged<GroupWithAccess>>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let groups = state
        .store
        .read()
        .list_groups(org.id, filter.search.as_deref(), paging(page))
        .await?;
    let rows = groups.rows.into_iter().map(|row| GroupWithAccess {
        group: row.group.into(),
        access: GroupAccess::new(row.access, None),
    });
    Ok(Json(page.answer(rows.collect(), groups.total)))
}
