use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    me::{ALL, own_request},
    wire::{OtherGrant, OwnedRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_policy::disclosure::GrantStatus;
use gw_store::read::DisclosureFilter;

/// Returns a request for the caller's data, and who else may see the caller's data now.
#[utoipa::path(get, path = "/api/v1/me/disclosure/requests/{request_id}", tag = "disclosure",
    security(("bearer" = [])), params(("request_id" = String, Path, format = Uuid, description = "The request")),
    responses((status = 200, body = OwnedRequest), OwnerError))]
pub(crate) async fn get_my_disclosure_request(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
) -> Result<Json<OwnedRequest>, OwnerError> {
    let details = own_request(&state, &user, &id).await?;
    let filter = DisclosureFilter {
        grant_status: Some(GrantStatus::Active),
        ..DisclosureFilter::for_owner(user.id())
    };
    let grants = state.store.read().list_disclosure_grants(&filter, ALL).await?;
    let others = grants.rows.into_iter().map(|found| found.grant);
    let others = others.filter(|grant| grant.request != details.request.id);
    Ok(Json(OwnedRequest {
        other_grants: others.map(OtherGrant::from).collect(),
        details: details.into(),
    }))
}
