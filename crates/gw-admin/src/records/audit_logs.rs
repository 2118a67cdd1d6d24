use super::LogRequest;
use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::{Admin, paging},
    wire::{AuditLogRow, AuditLogs, AuditLogsResponse},
};
use axum::{Json, extract::State, response::AppendHeaders};
use gw_http::{CursorQuery, GrowingList, Page, PageQuery, Paged, QueryParams};
use gw_store::audit::{AuditFilter, AuditPosition};
use serde::Deserialize;
use std::str::FromStr;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Filter {
    /// `organization`, `group`, `user`, …
    #[param(required = false)]
    resource_type: Option<String>,
    /// The changed record.
    #[param(required = false)]
    resource_id: Option<String>,
    /// The acting user's id.
    #[param(required = false)]
    actor_id: Option<String>,
    /// `create`, `update`, `delete`, `assign` or `revoke`.
    #[param(required = false)]
    action: Option<String>,
    /// Entries of one organization.
    #[param(required = false)]
    org_id: Option<String>,
    /// RFC 3339.
    #[param(required = false)]
    from: Option<String>,
    /// RFC 3339.
    #[param(required = false)]
    to: Option<String>,
    /// `true` for an object with `data`, `total` and `next_cursor`; by default the answer is the rows alone.
    #[param(required = false)]
    envelope: Option<String>,
}

/// Lists mutations, the newest first, with the values before and after. Entries that are not sealed yet are included.
/// Without `envelope`, `X-Total-Count` is the size of the whole list and `X-Next-Cursor` is the cursor of the next
/// page. For a sealed entry that was changed, only its id, `tampered` and, where proven, its time are returned.
#[utoipa::path(get, path = "/api/v1/admin/audit-logs", tag = "logs", params(Filter, PageQuery, CursorQuery),
    responses((status = 200, body = AuditLogs, headers(
            ("X-Total-Count" = u64, description = "The number of rows of the whole list"),
            ("X-Next-Cursor" = Option<String>, description = "For `cursor` of the next page; absent on the last page"),
        )), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn list_audit_logs(
    admin: Admin,
    State(state): State<AdminState>,
    QueryParams(query): QueryParams<Filter>,
    page: Page<100>,
    list: GrowingList,
) -> Result<(AppendHeaders<Vec<(&'static str, String)>>, Json<AuditLogs>), AdminError> {
    let request = LogRequest::new(&state, &admin, list, page)?;
    let envelope = match query.envelope.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(AdminError::bad_request("invalid envelope: `true` or `false`")),
    };
    let org = match query.org_id.as_deref() {
        Some(org) => Some(admin.readable_org(&state, org).await?.id),
        None => None,
    };
    let filter = AuditFilter {
        resource_type: code(query.resource_type.as_deref(), "resource_type")?,
        resource_id: query.resource_id,
        actor: query
            .actor_id
            .as_deref()
            .map(|id| input::id(id, "actor_id"))
            .transpose()?,
        action: code(query.action.as_deref(), "action")?,
        org,
        from: input::time(query.from.as_deref(), "from")?,
        to: input::time(query.to.as_deref(), "to")?,
        ..AuditFilter::all(admin.scope()?)
    };
    let after = request.after(AuditPosition::from_numbers)?;
    let logs = state
        .audit
        .continue_audit_logs(&state.store, &filter, after, paging(page))
        .await?;
    let (page, next_cursor) = request.answer(logs, |row| AuditLogRow::new(row, &admin), AuditPosition::to_numbers);
    let Paged {
        data,
        total,
        limit,
        offset,
    } = page;
    let mut headers = vec![("x-total-count", total.to_string())];
    headers.extend(next_cursor.clone().map(|cursor| ("x-next-cursor", cursor)));
    let body = if envelope {
        AuditLogs::Page(AuditLogsResponse {
            data,
            total,
            limit,
            offset,
            next_cursor,
        })
    } else {
        AuditLogs::Rows(data)
    };
    Ok((AppendHeaders(headers), Json(body)))
}

fn code<T: FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, AdminError> {
    text.map(str::parse)
        .transpose()
        .map_err(|_| AdminError::bad_request(format!("invalid {what}")))
}
