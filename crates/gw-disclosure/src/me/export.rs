use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    grantee::reports::checkpoint_digest,
    input::paging,
    me::newest_events,
    wire::{EventRow, Grant, RequestWithDetails},
};
use axum::{Json, extract::State};
use gw_http::{ApiError, PageQuery};
use gw_store::{
    read::{DisclosureFilter, Page},
    record::{DisclosureGrant, DisclosureRequestDetails},
};
use gw_types::DisclosureRequestId;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Everything about one request for the owner's data.
#[derive(Debug, Serialize)]
struct Exported {
    #[serde(flatten)]
    details: RequestWithDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
    /// The number of all events of the grant.
    event_count: u64,
    /// The newest of them.
    events: Vec<EventRow>,
}

/// The most requests of a page: each costs some queries.
const MAX_REQUESTS: u32 = 100;
/// The largest integer that every reader of JSON represents exactly.
const MAX_OFFSET: u64 = (1 << 53) - 1;
/// A page of the export ends with the request that fills it to this many events.
const PAGE_EVENTS: usize = 5000;

/// Exports everything that happened to the caller's data: each request with its grant and its newest 1000 events, the
/// newest first, as a signed document. `event_count` is the number of all events; the list of a grant's events has the
/// others. `total` is the number of requests; a page has at most 100, and fewer if they have many events: `limit` says
/// how many. The next page begins after `offset` and `limit`.
#[utoipa::path(get, path = "/api/v1/me/disclosure/export", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Object), OwnerError))]
pub(crate) async fn export_my_disclosures(
    user: User,
    State(state): State<DisclosureState>,
    mut page: gw_http::Page<MAX_REQUESTS>,
) -> Result<Json<Value>, OwnerError> {
    page.limit = page.limit.min(MAX_REQUESTS);
    // The canonical form of the document writes no larger number exactly.
    if page.offset > MAX_OFFSET {
        return Err(ApiError::bad_request("offset must be at most 9007199254740991").into());
    }
    let filter = DisclosureFilter::for_owner(user.id());
    let found = state
        .store
        .read()
        .list_disclosure_requests(&filter, paging(page))
        .await?;
    let mut grants = grants_of(&state, &filter, &found.rows).await?;
    let (mut disclosures, mut event_count) = (Vec::with_capacity(found.rows.len()), 0);
    for details in found.rows {
        if event_count >= PAGE_EVENTS {
            break;
        }
        let grant = grants.remove(&details.request.id);
        let events = match &grant {
            Some(grant) => newest_events(&state, grant).await?,
            None => Page {
                rows: Vec::new(),
                total: 0,
            },
        };
        event_count += events.rows.len();
        disclosures.push(Exported {
            details: details.into(),
            grant: grant.map(Into::into),
            event_count: events.total,
            events: events.rows,
        });
    }
    let page = page.answer(disclosures, found.total);
    let mut document = json!({
        "subject": user.caller.user.external_id.as_str(),
        "generated_at": state.http_context.now().to_rfc3339(),
        // Its members have no key that is not a string.
        "disclosures": serde_json::to_value(page.data).unwrap_or_default(),
        "total": page.total,
        "limit": page.limit,
        "offset": page.offset,
    });
    if let (Some(digest), Value::Object(members)) = (checkpoint_digest(&state).await?, &mut document) {
        members.insert("checkpoint".to_owned(), digest.into());
    }
    Ok(Json(state.sign(document)?))
}

/// The grants of these requests.
async fn grants_of(
    state: &DisclosureState,
    filter: &DisclosureFilter,
    requests: &[DisclosureRequestDetails],
) -> Result<HashMap<DisclosureRequestId, DisclosureGrant>, OwnerError> {
    let mut grants = HashMap::new();
    let wanted: std::collections::HashSet<_> = requests.iter().map(|details| details.request.id).collect();
    let mut paging = super::ALL;
    loop {
        let found = state.store.read().list_disclosure_grants(filter, paging).await?;
        let count = found.rows.len() as u64;
        let rows = found.rows.into_iter().map(|found| found.grant);
        grants.extend(
            rows.filter(|grant| wanted.contains(&grant.request))
                .map(|grant| (grant.request, grant)),
        );
        paging.offset = paging.offset.saturating_add(count);
        if count == 0 || paging.offset >= found.total {
            return Ok(grants);
        }
    }
}
