use crate::{
    DisclosureState,
    caller::User,
    error::OwnerError,
    events::{self, EventReader},
    me::own_grant,
    wire::EventRow,
};
use axum::{
    Json,
    extract::{Path, State},
    response::AppendHeaders,
};
use gw_http::{ApiError, CursorQuery, GrowingList, Page, fitting};
use gw_store::read::Paging;

/// Lists who read what under a grant of the caller's data and when, and the changes of the grant, the newest first. A
/// read appears within a few seconds. `X-Next-Cursor` is the cursor of the next page.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants/{grant_id}/events", tag = "disclosure",
    security(("bearer" = [])), params(("grant_id" = String, Path, format = Uuid, description = "The grant"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "The number of events: 100 if it is left out."), CursorQuery),
    responses((status = 200, body = Vec<EventRow>, headers(
        ("X-Total-Count" = u64, description = "The number of events"),
        ("X-Next-Cursor" = Option<String>, description = "For `cursor` of the next page; absent on the last page"),
    )), OwnerError))]
pub(crate) async fn list_my_disclosure_events(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    page: Page<100>,
    list: GrowingList,
) -> Result<(AppendHeaders<Vec<(&'static str, String)>>, Json<Vec<EventRow>>), OwnerError> {
    let grant = own_grant(&state, &user, &id).await?.grant;
    let scope = format!("user {}", user.id());
    let invalid = || ApiError::bad_request("invalid pagination cursor");
    let offset = match list.after::<2>(&state.http_context, &scope)? {
        None => 0,
        Some(numbers) => {
            let [total, offset] = numbers.map(|number| number.and_then(|number| u64::try_from(number).ok()));
            let (total, offset) = total.zip(offset).ok_or_else(invalid)?;
            // Events that were added since stand before the page, so it begins as many events later.
            let now = events::list(&state, &grant, EventReader::Owner, Paging { limit: 1, offset: 0 }).await?;
            offset.saturating_add(now.total.saturating_sub(total))
        }
    };
    let paging = Paging {
        limit: u64::from(page.limit),
        offset,
    };
    let found = events::list(&state, &grant, EventReader::Owner, paging).await?;
    let rows = fitting(found.rows);
    let next = offset.saturating_add(rows.len() as u64);
    let mut headers = vec![("x-total-count", found.total.to_string())];
    if !rows.is_empty() && next < found.total {
        let position = [found.total, next].map(|number| i64::try_from(number).ok());
        let cursor = list.next(&state.http_context, &scope, position);
        headers.extend(cursor.map(|cursor| ("x-next-cursor", cursor)));
    }
    Ok((AppendHeaders(headers), Json(rows)))
}
