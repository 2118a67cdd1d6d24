use crate::{DisclosureState, caller::Admin, counters::count, error::AdminError, wire::DisclosureCounters};
use axum::{Json, extract::State};
use gw_http::QueryParams;
use gw_store::read::{DisclosureFilter, Scope};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct OrgQuery {
    /// The organization; an administrator of exactly one may leave it out.
    #[param(required = false)]
    org_id: Option<String>,
}

/// Counts the pending requests of an organization, its grants in force, and those that end within 7 days.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/counters", tag = "disclosure", params(OrgQuery),
    responses((status = 200, body = DisclosureCounters), AdminError))]
pub(crate) async fn count_disclosures(
    admin: Admin,
    State(state): State<DisclosureState>,
    QueryParams(query): QueryParams<OrgQuery>,
) -> Result<Json<DisclosureCounters>, AdminError> {
    let org = admin.org(query.org_id.as_deref(), "org_id query parameter is required")?;
    let counters = count(&state.store.read(), DisclosureFilter::all(Scope::Orgs(vec![org]))).await?;
    admin.origin.set_org(org);
    Ok(Json(counters))
}
