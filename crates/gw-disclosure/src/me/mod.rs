//! Routes of owners below `/api/v1/me/disclosure`.

pub(crate) mod counters;
pub(crate) mod export;
pub(crate) mod grants;
pub(crate) mod requests;

use crate::{
    DisclosureState,
    caller::User,
    error::{NO_GRANT, NO_REQUEST, OwnerError, denied},
    events::{self, EventReader},
    wire::EventRow,
};
use axum::{Json, response::AppendHeaders};
use gw_http::ApiError;
use gw_store::{
    read::{Page, Paging},
    record::{DisclosureGrant, DisclosureRequestDetails, GrantWithRequest},
};
use gw_types::DisclosureRequestId;

/// The first grants of an owner, and the newest events of a grant in one document.
const ALL: Paging = Paging { limit: 1000, offset: 0 };

/// A page of an owner's requests or grants, with `X-Total-Count`.
type Counted<T> = (AppendHeaders<[(&'static str, String); 1]>, Json<Vec<T>>);

fn counted<S, T: From<S>>(page: Page<S>) -> Counted<T> {
    let rows = page.rows.into_iter().map(T::from).collect();
    let headers = AppendHeaders([("x-total-count", page.total.to_string())]);
    (headers, Json(rows))
}

fn request_id(text: &str) -> Result<DisclosureRequestId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found(NO_REQUEST))
}

/// A request for the user's own data (rule 3).
///
/// # Errors
/// 404 for a request that does not exist; 403 for one of another owner.
async fn own_request(state: &DisclosureState, user: &User, id: &str) -> Result<DisclosureRequestDetails, OwnerError> {
    let details = state.store.read().find_disclosure_request(request_id(id)?).await?;
    let details = details.ok_or_else(|| ApiError::not_found(NO_REQUEST))?;
    if details.request.target != user.id() {
        return Err(denied().into());
    }
    Ok(details)
}

/// A grant of the user's own data.
///
/// # Errors
/// 404 for a grant that does not exist, and for one of another owner.
async fn own_grant(state: &DisclosureState, user: &User, id: &str) -> Result<GrantWithRequest, OwnerError> {
    let grant = match id.parse() {
        Ok(id) => state.store.read().find_disclosure_grant(id).await?,
        Err(_) => None,
    };
    let own = grant.filter(|found| found.grant.owner == user.id());
    Ok(own.ok_or_else(|| ApiError::not_found(NO_GRANT))?)
}

/// The newest events of a grant for a document, at most [`ALL`], and the number of all. The list of events has the
/// rest.
async fn newest_events(state: &DisclosureState, grant: &DisclosureGrant) -> Result<Page<EventRow>, OwnerError> {
    Ok(events::list(state, grant, EventReader::Owner, ALL).await?)
}
