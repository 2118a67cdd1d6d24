use crate::{DisclosureState, caller::User, error::OwnerError, me::ALL, wire::GrantWithRequest};
use axum::{Json, extract::State};
use gw_policy::disclosure::GrantStatus;
use gw_store::read::DisclosureFilter;

/// Lists the grants of the caller's data that are in force, the newest first; at most 1000.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants", tag = "disclosure", security(("bearer" = [])),
    responses((status = 200, body = Vec<GrantWithRequest>), OwnerError))]
pub(crate) async fn list_my_active_disclosure_grants(
    user: User,
    State(state): State<DisclosureState>,
) -> Result<Json<Vec<GrantWithRequest>>, OwnerError> {
    list(&state, &user, Some(GrantStatus::Active)).await
}

/// Lists all grants of the caller's data, the newest first; at most 1000. The export has all of them.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants/all", tag = "disclosure", security(("bearer" = [])),
    responses((status = 200, body = Vec<GrantWithRequest>), OwnerError))]
pub(crate) async fn list_my_disclosure_grants(
    user: User,
    State(state): State<DisclosureState>,
) -> Result<Json<Vec<GrantWithRequest>>, OwnerError> {
    list(&state, &user, None).await
}

async fn list(
    state: &DisclosureState,
    user: &User,
    status: Option<GrantStatus>,
) -> Result<Json<Vec<GrantWithRequest>>, OwnerError> {
    let filter = DisclosureFilter {
        grant_status: status,
        ..DisclosureFilter::for_owner(user.id())
    };
    let found = state.store.read().list_disclosure_grants(&filter, ALL).await?;
    Ok(Json(found.rows.into_iter().map(Into::into).collect()))
}
