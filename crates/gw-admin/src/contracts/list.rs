use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::{Admin, paging},
    wire::Contract,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Page, PageQuery, Paged, QueryParams};
use gw_store::read::ContractFilter;
use serde::Deserialize;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// A part of the name, or a whole address.
    #[serde(default)]
    #[param(required = false)]
    search: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    #[param(required = false)]
    created_after: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    #[param(required = false)]
    created_before: Option<String>,
}

/// Lists the contracts of an organization by name.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/contracts", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), Filter, PageQuery),
    responses((status = 200, body = Paged<Contract>), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_contracts(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    QueryParams(filter): QueryParams<Filter>,
    page: Page,
) -> Result<Json<Paged<Contract>>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let filter = ContractFilter {
        created_after: input::time(filter.created_after.as_deref(), "created_after")?,
        created_before: input::time(filter.created_before.as_deref(), "created_before")?,
        search: filter.search,
    };
    let contracts = state.store.read().list_contracts(org.id, &filter, paging(page)).await?;
    Ok(Json(page.answer(
        contracts.rows.into_iter().map(Contract::from).collect(),
        contracts.total,
    )))
}
