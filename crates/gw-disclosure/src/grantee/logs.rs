use super::reader::{GrantPath, GrantReader, ReadDetails};
use crate::{
    DisclosureState,
    activity::check_activity,
    csv::{self, Csv},
    error::GrantError,
    input::paging,
    wire::ActivityLogEntry,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use gw_audit::{DisclosureAction, DisclosureData};
use gw_http::{Page, PageQuery};
use http::HeaderMap;

/// Lists the owner's calls that the grant covers, the newest first: as JSON, or as CSV for `Accept: text/csv`. Only the
/// grantee reads them, or the holder of a token that the grantee made.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/grants/{grant_id}/logs", tag = "disclosure",
    params(("grant_id" = String, Path, format = Uuid, description = "The grant"), PageQuery),
    responses(
        (status = 200, content((Vec<ActivityLogEntry> = "application/json"), (String = "text/csv"))),
        GrantError))]
pub(crate) async fn list_disclosed_logs(
    GrantPath(id): GrantPath,
    reader: GrantReader,
    State(state): State<DisclosureState>,
    page: Page<100>,
    headers: HeaderMap,
) -> Result<Response, GrantError> {
    let grant = reader.open(&state, id)?;
    check_activity(&grant.grant)?;
    let found = state
        .activity(&grant.grant, &grant.owner.external_id, paging(page))
        .await?;
    let rows: Vec<ActivityLogEntry> = found.calls.into_iter().map(Into::into).collect();
    let details = ReadDetails {
        action: DisclosureAction::ViewLogs,
        data: DisclosureData::AccessLogs,
        record_count: Some(rows.len() as u64),
        times: rows
            .last()
            .zip(rows.first())
            .map(|(last, first)| (last.created_at, first.created_at)),
    };
    reader.record(&state, &grant, details).await?;
    if !csv::is_requested(&headers) {
        return Ok(Json(rows).into_response());
    }
    let mut table = Csv::new(&["created_at", "method", "status_code"]);
    for row in rows {
        let (time, status) = (row.created_at.to_rfc3339(), row.status_code.to_string());
        table.push([time.as_str(), row.method.as_str(), status.as_str()]);
    }
    Ok(table.into_response())
}
