use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    me::{newest_events, own_grant},
    receipt::{Disclosure, receipt},
};
use axum::{
    Json,
    extract::{Path, State},
};
use serde_json::Value;

/// Returns a signed consent receipt of a grant of the caller's data, in the shape of ISO/IEC TS 27560: who, what, for
/// which purpose, on which legal basis, for how long, how to withdraw, and the newest 1000 events. `event_count` is the
/// number of all events; the list of events has the others.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants/{grant_id}/receipt", tag = "disclosure",
    security(("bearer" = [])), params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    responses((status = 200, body = Object), OwnerError))]
pub(crate) async fn get_disclosure_receipt(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, OwnerError> {
    let found = own_grant(&state, &user, &id).await?;
    let events = newest_events(&state, &found.grant).await?;
    let organization = user.caller.snapshot.organization(found.grant.org);
    let document = receipt(&Disclosure {
        owner: &user.caller.user.external_id,
        // An organization without a name was deleted.
        organization: organization.map(|org| &*org.name),
        request: &found.request,
        grant: &found.grant,
        events: &events,
        base_url: &state.base_url,
        now: state.http_context.now(),
    });
    Ok(Json(state.sign(document)?))
}
