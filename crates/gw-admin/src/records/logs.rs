use super::LogRequest;
use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::{Admin, paging},
    wire::{AccessLogRow, AdminLogsResponse},
};
use axum::{Json, extract::State};
use gw_http::{CursorQuery, GrowingList, Page, PageQuery, Paged, QueryParams};
use gw_store::audit::{AccessFilter, AccessPosition, StatusFilter};
use gw_types::DenyReason;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Filter {
    /// One caller's calls.
    #[param(required = false)]
    external_id: Option<String>,
    /// Calls of one method.
    #[param(required = false)]
    method: Option<String>,
    /// Calls of one request.
    #[param(required = false)]
    correlation_id: Option<String>,
    /// Exactly this true outcome; not together with `outcome`.
    #[param(required = false)]
    status_code: Option<String>,
    /// `success`, `denied`, `error` or `all`.
    #[param(required = false)]
    outcome: Option<String>,
    /// Only calls that were denied for this reason: a value of `denial_reason`.
    #[param(required = false)]
    denial_reason: Option<String>,
    /// RFC 3339.
    #[param(required = false)]
    from: Option<String>,
    /// RFC 3339.
    #[param(required = false)]
    to: Option<String>,
}

/// Lists calls and retrievals, the newest first, with their true outcome and, for denials, the reason.
///
/// An administrator of an organization sees records filed under it. Only super sees parameters (HD12). Administrators
/// of organizations read `unregistered` for denied calls to another organization's contract and to an unregistered
/// address (HD30).
///
/// Every row is verified against its hash and its place in the log. For a row that was changed, only its id, `tampered`
/// and, where proven, its time are returned.
#[utoipa::path(get, path = "/api/v1/admin/logs", tag = "logs", params(Filter, PageQuery, CursorQuery),
    responses((status = 200, body = AdminLogsResponse), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn list_logs(
    admin: Admin,
    State(state): State<AdminState>,
    QueryParams(query): QueryParams<Filter>,
    page: Page<100>,
    list: GrowingList,
) -> Result<Json<AdminLogsResponse>, AdminError> {
    let request = LogRequest::new(&state, &admin, list, page)?;
    let filter = AccessFilter {
        external_id: query.external_id.filter(|text| !text.is_empty()),
        method: query.method.filter(|text| !text.is_empty()),
        correlation_id: query.correlation_id.filter(|text| !text.is_empty()),
        status: status(query.status_code.as_deref(), query.outcome.as_deref())?,
        denial_reasons: query
            .denial_reason
            .as_deref()
            .map(|text| reasons(&admin, text))
            .transpose()?,
        from: input::time(query.from.as_deref(), "from")?,
        to: input::time(query.to.as_deref(), "to")?,
        ..AccessFilter::all(admin.scope()?)
    };
    let after = request.after(AccessPosition::from_numbers)?;
    let logs = state.audit.continue_access_logs(&filter, after, paging(page)).await?;
    let (page, next_cursor) = request.answer(logs, |row| AccessLogRow::new(row, &admin), AccessPosition::to_numbers);
    let Paged {
        data,
        total,
        limit,
        offset,
    } = page;
    Ok(Json(AdminLogsResponse {
        data,
        total,
        limit,
        offset,
        next_cursor,
    }))
}

/// The filter by status code or by outcome (spec/70 rule 26).
fn status(code: Option<&str>, outcome: Option<&str>) -> Result<StatusFilter, AdminError> {
    match (code, outcome) {
        (Some(_), Some(_)) => Err(AdminError::bad_request("use status_code OR outcome, not both")),
        (Some(code), None) => match code.parse::<u16>() {
            Ok(code) if code > 0 => Ok(StatusFilter::Code(code)),
            Ok(_) | Err(_) => Err(AdminError::bad_request("invalid status_code")),
        },
        (None, None | Some("all")) => Ok(StatusFilter::Any),
        (None, Some("success")) => Ok(StatusFilter::Success),
        (None, Some("denied")) => Ok(StatusFilter::Denied),
        (None, Some("error")) => Ok(StatusFilter::Error),
        (None, Some(_)) => Err(AdminError::bad_request(
            "invalid outcome; expected one of: success, denied, error, all",
        )),
    }
}

/// The denial reasons that this administrator reads as the requested one (HD30).
fn reasons(admin: &Admin, text: &str) -> Result<Vec<DenyReason>, AdminError> {
    let requested = reason(text)?;
    Ok(DenyReason::ALL
        .iter()
        .copied()
        .filter(|reason| admin.visible_reason(*reason) == requested)
        .collect())
}

fn reason(text: &str) -> Result<DenyReason, AdminError> {
    let known = DenyReason::ALL.iter().copied().find(|reason| reason.as_str() == text);
    known.ok_or_else(|| AdminError::bad_request("invalid denial_reason"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_26_status_or_outcome() {
        assert!(matches!(status(None, None), Ok(StatusFilter::Any)));
        assert!(matches!(status(Some("404"), None), Ok(StatusFilter::Code(404))));
        assert!(matches!(status(None, Some("denied")), Ok(StatusFilter::Denied)));
        for (code, outcome) in [
            (Some("404"), Some("all")),
            (Some("0"), None),
            (Some("x"), None),
            (None, Some("good")),
        ] {
            assert!(status(code, outcome).is_err(), "{code:?} {outcome:?}");
        }
        assert!(reason("kyc_required").is_ok() && reason("whatever").is_err());
    }
}
