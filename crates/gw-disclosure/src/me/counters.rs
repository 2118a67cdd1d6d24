use crate::{DisclosureState, caller::User, counters::count, error::OwnerError, wire::DisclosureCounters};
use axum::{Json, extract::State};
use gw_store::read::DisclosureFilter;

/// Counts the requests that wait for the caller's decision, the grants of the caller's data that are in force, and
/// those that end within 7 days.
#[utoipa::path(get, path = "/api/v1/me/disclosure/counters", tag = "disclosure", security(("bearer" = [])),
    responses((status = 200, body = DisclosureCounters), OwnerError))]
pub(crate) async fn count_my_disclosures(
    user: User,
    State(state): State<DisclosureState>,
) -> Result<Json<DisclosureCounters>, OwnerError> {
    let counters = count(&state.store.read(), DisclosureFilter::for_owner(user.id())).await?;
    Ok(Json(counters))
}
