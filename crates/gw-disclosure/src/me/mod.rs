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
use gw_http::ApiError;
use gw_store::{
    read::Paging,
    record::{DisclosureGrant, DisclosureRequestDetails, GrantWithRequest},
};
use gw_types::DisclosureRequestId;

/// The most requests or grants of one answer: those of an owner are not paged.
const ALL: Paging = Paging { limit: 1000, offset: 0 };

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

/// All events of a grant, the newest first.
async fn all_events(state: &DisclosureState, grant: &DisclosureGrant) -> Result<Vec<EventRow>, OwnerError> {
    let (mut all, mut paging) = (Vec::new(), ALL);
    loop {
        let page = events::list(state, grant, EventReader::Owner, paging).await?;
        let count = page.rows.len() as u64;
        all.extend(page.rows);
        paging.offset = paging.offset.saturating_add(count);
        if count == 0 || paging.offset >= page.total {
            return Ok(all);
        }
    }
}
