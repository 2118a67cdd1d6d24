use crate::{DisclosureState, caller::Admin, error::AdminError, input, wire::DisclosureCheckAccessResponse};
use axum::{Json, extract::State};
use gw_http::{ApiError, QueryParams};
use gw_policy::disclosure::GrantStatus;
use gw_store::read::{DisclosureFilter, Paging, RequesterFilter};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct CheckAccessQuery {
    /// The DID of the grantee.
    #[param(required = true)]
    requester_did: Option<String>,
    /// The DID of the owner.
    #[param(required = true)]
    target_user_did: Option<String>,
}

/// Whether a grant of one of the administrator's organizations is in force for this grantee and this owner. Of several
/// grants, the newest one is returned. Grants of other organizations do not exist here.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/check-access", tag = "disclosure", params(CheckAccessQuery),
    responses((status = 200, body = DisclosureCheckAccessResponse), AdminError))]
pub(crate) async fn check_disclosure_access(
    admin: Admin,
    State(state): State<DisclosureState>,
    QueryParams(query): QueryParams<CheckAccessQuery>,
) -> Result<Json<DisclosureCheckAccessResponse>, AdminError> {
    let requester = input::present(query.requester_did.as_deref());
    let target = input::present(query.target_user_did.as_deref());
    let (Some(requester), Some(target)) = (requester, target) else {
        return Err(ApiError::bad_request("requester_did and target_user_did are required").into());
    };
    let requester = input::did(requester, "requester_did")?;
    let target = input::did(target, "target_user_did")?;
    let reads = state.store.read();
    let Some(owner) = reads.find_user_by_external_id(&target).await? else {
        return Ok(Json(DisclosureCheckAccessResponse::NONE));
    };
    let filter = DisclosureFilter {
        target: Some(owner.id),
        requester: Some(RequesterFilter::Is(requester)),
        grant_status: Some(GrantStatus::Active),
        ..DisclosureFilter::all(admin.scope())
    };
    let newest = Paging { limit: 1, offset: 0 };
    let found = reads.list_disclosure_grants(&filter, newest).await?;
    let answer = found.rows.first().map(|found| (&found.grant).into());
    Ok(Json(answer.unwrap_or(DisclosureCheckAccessResponse::NONE)))
}
