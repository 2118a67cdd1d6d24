use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    input::paging,
    me::{Counted, counted},
    wire::RequestWithDetails,
};
use axum::extract::State;
use gw_http::{Page, PageQuery};
use gw_policy::disclosure::RequestStatus;
use gw_store::read::DisclosureFilter;

/// Lists the pending requests for the caller's data, the newest first. `X-Total-Count` is the number of all.
#[utoipa::path(get, path = "/api/v1/me/disclosure/requests", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Vec<RequestWithDetails>, headers(
        ("X-Total-Count" = u64, description = "The number of all"))), OwnerError))]
pub(crate) async fn list_my_pending_disclosure_requests(
    user: User,
    State(state): State<DisclosureState>,
    page: Page<1000>,
) -> Result<Counted<RequestWithDetails>, OwnerError> {
    list(&state, &user, page, Some(RequestStatus::Pending)).await
}

/// Lists all requests for the caller's data, the newest first. `X-Total-Count` is the number of all. The
/// export has them with their events.
#[utoipa::path(get, path = "/api/v1/me/disclosure/requests/all", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Vec<RequestWithDetails>, headers(
        ("X-Total-Count" = u64, description = "The number of all"))), OwnerError))]
pub(crate) async fn list_my_disclosure_requests(
    user: User,
    State(state): State<DisclosureState>,
    page: Page<1000>,
) -> Result<Counted<RequestWithDetails>, OwnerError> {
    list(&state, &user, page, None).await
}

async fn list(
    state: &DisclosureState,
    user: &User,
    page: Page<1000>,
    status: Option<RequestStatus>,
) -> Result<Counted<RequestWithDetails>, OwnerError> {
    let filter = DisclosureFilter {
        request_status: status,
        ..DisclosureFilter::for_owner(user.id())
    };
    let found = state
        .store
        .read()
        .list_disclosure_requests(&filter, paging(page))
        .await?;
    Ok(counted(found))
}
