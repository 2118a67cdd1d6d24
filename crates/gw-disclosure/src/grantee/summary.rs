use super::reader::{GrantPath, GrantReader, ReadDetails};
use crate::{DisclosureState, activity::check_activity, error::GrantError, wire::ActivitySummary};
use axum::{Json, extract::State};
use gw_audit::{DisclosureAction, DisclosureData};

/// Returns the owner's calls that the grant covers in numbers. Only the grantee reads them, or the holder of a token
/// that the grantee made.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/grants/{grant_id}/summary", tag = "disclosure",
    params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    responses((status = 200, body = ActivitySummary), GrantError))]
pub(crate) async fn get_disclosed_summary(
    GrantPath(id): GrantPath,
    reader: GrantReader,
    State(state): State<DisclosureState>,
) -> Result<Json<ActivitySummary>, GrantError> {
    let grant = reader.open(&state, id)?;
    check_activity(&grant.grant)?;
    let summary = state
        .summary(&grant.grant, &grant.owner.external_id, reader.now)
        .await?;
    let details = ReadDetails {
        action: DisclosureAction::ViewSummary,
        data: DisclosureData::Summary,
        record_count: Some(summary.total_requests),
        times: None,
    };
    reader.record(&state, &grant, details).await?;
    Ok(Json(summary))
}
