use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    grantee::reports::checkpoint_digest,
    input::paging,
    me::all_events,
    wire::{EventRow, Grant, RequestWithDetails},
};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery};
use gw_store::{
    read::DisclosureFilter,
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
    events: Vec<EventRow>,
}

/// Exports everything that happened to the caller's data: each request with its grant and all events, the newest first,
/// as a signed document. `total` is the number of requests; the next page begins after `offset` and `limit`.
#[utoipa::path(get, path = "/api/v1/me/disclosure/export", tag = "disclosure", security(("bearer" = [])),
    params(PageQuery), responses((status = 200, body = Object), OwnerError))]
pub(crate) async fn export_my_disclosures(
    user: User,
    State(state): State<DisclosureState>,
    page: Page<100>,
) -> Result<Json<Value>, OwnerError> {
    let filter = DisclosureFilter::for_owner(user.id());
    let found = state
        .store
        .read()
        .list_disclosure_requests(&filter, paging(page))
        .await?;
    let mut grants = grants_of(&state, &filter, &found.rows).await?;
    let mut disclosures = Vec::with_capacity(found.rows.len());
    for details in found.rows {
        let grant = grants.remove(&details.request.id);
        let events = match &grant {
            Some(grant) => all_events(&state, grant).await?,
            None => Vec::new(),
        };
        disclosures.push(Exported {
            details: details.into(),
            grant: grant.map(Into::into),
            events,
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
