use crate::{DisclosureState, caller::User, error::OwnerError, me::ALL, wire::RequestWithDetails};
use axum::{Json, extract::State};
use gw_policy::disclosure::RequestStatus;
use gw_store::read::DisclosureFilter;

/// Lists the pending requests for the caller's data, the newest first; at most 1000.
#[utoipa::path(get, path = "/api/v1/me/disclosure/requests", tag = "disclosure", security(("bearer" = [])),
    responses((status = 200, body = Vec<RequestWithDetails>), OwnerError))]
pub(crate) async fn list_my_pending_disclosure_requests(
    user: User,
    State(state): State<DisclosureState>,
) -> Result<Json<Vec<RequestWithDetails>>, OwnerError> {
    list(&state, &user, Some(RequestStatus::Pending)).await
}

/// Lists all requests for the caller's data, the newest first; at most 1000. The export has all of them.
#[utoipa::path(get, path = "/api/v1/me/disclosure/requests/all", tag = "disclosure", security(("bearer" = [])),
    responses((status = 200, body = Vec<RequestWithDetails>), OwnerError))]
pub(crate) async fn list_my_disclosure_requests(
    user: User,
    State(state): State<DisclosureState>,
) -> Result<Json<Vec<RequestWithDetails>>, OwnerError> {
    list(&state, &user, None).await
}

async fn list(
    state: &DisclosureState,
    user: &User,
    status: Option<RequestStatus>,
) -> Result<Json<Vec<RequestWithDetails>>, OwnerError> {
    let filter = DisclosureFilter {
        request_status: status,
        ..DisclosureFilter::for_owner(user.id())
    };
    let found = state.store.read().list_disclosure_requests(&filter, ALL).await?;
    Ok(Json(found.rows.into_iter().map(Into::into).collect()))
}
