use super::{
    reader::{GrantPath, GrantReader, ReadDetails},
    reports::{ReportType, report},
};
use crate::{DisclosureState, error::GrantError, wire::Report};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_audit::{DisclosureAction, DisclosureData};

/// Returns a signed report. The same report is returned for a day. Only the grantee reads it, or the holder of a token
/// that the grantee made.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/grants/{grant_id}/report/{report_type}", tag = "disclosure",
    params(("grant_id" = String, Path, format = Uuid, description = "The grant"),
        ("report_type" = String, Path,
            description = "`activity_summary`, `sanctions_check` or `compliance_report`.")),
    responses((status = 200, body = Report), GrantError))]
pub(crate) async fn get_disclosure_report(
    GrantPath(id): GrantPath,
    reader: GrantReader,
    State(state): State<DisclosureState>,
    Path(path): Path<(String, String)>,
) -> Result<Json<Report>, GrantError> {
    let grant = reader.open(&state, id)?;
    let report_type = ReportType::parse(&path.1).ok_or(GrantError::ReportType)?;
    let report = report(&state, &reader, &grant, report_type).await?;
    let details = ReadDetails {
        action: DisclosureAction::ExportReport,
        data: DisclosureData::Report,
        record_count: None,
        times: None,
    };
    reader.record(&state, &grant, details).await?;
    Ok(Json(report))
}
