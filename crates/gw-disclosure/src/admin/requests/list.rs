use crate::{
    DisclosureState,
    caller::Admin,
    error::AdminError,
    input::{FilterQuery, paging},
    wire::DisclosureListResult,
};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, QueryParams};
use gw_store::read::Scope;

/// Lists the requests of an organization, the newest first.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/requests", tag = "disclosure", params(FilterQuery, PageQuery),
    responses((status = 200, body = DisclosureListResult), AdminError))]
pub(crate) async fn list_disclosure_requests(
    admin: Admin,
    State(state): State<DisclosureState>,
    QueryParams(query): QueryParams<FilterQuery>,
    page: Page<100>,
) -> Result<Json<DisclosureListResult>, AdminError> {
    let org = admin.org(query.org_id.as_deref(), "org_id query parameter is required")?;
    let filter = query.of_requests(Scope::Orgs(vec![org]))?;
    let found = state
        .store
        .read()
        .list_disclosure_requests(&filter, paging(page))
        .await?;
    admin.origin.set_org(org);
    let page = page.answer(found.rows.into_iter().map(Into::into).collect(), found.total);
    Ok(Json(DisclosureListResult {
        requests: page.data,
        total: page.total,
        limit: page.limit,
        offset: page.offset,
    }))
}
