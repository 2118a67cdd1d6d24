use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    input::paging,
    me::{Counted, counted},
    wire::GrantWithRequest,
};
use axum::extract::State;
use gw_http::{Page, PageQuery};
use gw_policy::disclosure::GrantStatus;
use gw_store::read::DisclosureFilter;

/// Lists the grants of the caller's data that are in force, the newest first. `X-Total-Count` is the number of all.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Vec<GrantWithRequest>, headers(
        ("X-Total-Count" = u64, description = "The number of all"))), OwnerError))]
pub(crate) async fn list_my_active_disclosure_grants(
    user: User,
    State(state): State<DisclosureState>,
    page: Page<1000>,
) -> Result<Counted<GrantWithRequest>, OwnerError> {
    list(&state, &user, page, Some(GrantStatus::Active)).await
}

/// Lists all grants of the caller's data, the newest first. `X-Total-Count` is the number of all. The
/// export has them with their events.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants/all", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Vec<GrantWithRequest>, headers(
        ("X-Total-Count" = u64, description = "The number of all"))), OwnerError))]
pub(crate) async fn list_my_disclosure_grants(
    user: User,
    State(state): State<DisclosureState>,
    page: Page<1000>,
) -> Result<Counted<GrantWithRequest>, OwnerError> {
    list(&state, &user, page, None).await
}

async fn list(
    state: &DisclosureState,
    user: &User,
    page: Page<1000>,
    status: Option<GrantStatus>,
) -> Result<Counted<GrantWithRequest>, OwnerError> {
    let filter = DisclosureFilter {
        grant_status: status,
        ..DisclosureFilter::for_owner(user.id())
    };
    let found = state.store.read().list_disclosure_grants(&filter, paging(page)).await?;
    Ok(counted(found))
}
