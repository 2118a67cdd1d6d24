use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::{Admin, paging},
    wire::AuditLogRow,
};
use axum::{Json, extract::State, response::AppendHeaders};
use gw_http::{Page, PageQuery, QueryParams, fitting};
use gw_store::audit::AuditFilter;
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
}

/// Lists mutations, the newest first, with the values before and after. Entries that are not sealed yet are included.
/// `X-Total-Count` is the size of the whole list. For a sealed entry that was changed, only its id, `tampered` and,
/// where proven, its time are returned.
#[utoipa::path(get, path = "/api/v1/admin/audit-logs", tag = "logs", params(Filter, PageQuery),
    responses((status = 200, body = [AuditLogRow]), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn list_audit_logs(
    admin: Admin,
    State(state): State<AdminState>,
    QueryParams(query): QueryParams<Filter>,
    page: Page<100>,
) -> Result<(AppendHeaders<[(&'static str, String); 1]>, Json<Vec<AuditLogRow>>), AdminError> {
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
    let logs = state.audit.list_audit_logs(&state.store, &filter, paging(page)).await?;
    let total = AppendHeaders([("x-total-count", logs.total.to_string())]);
    let rows = logs.rows.into_iter().map(|row| AuditLogRow::new(row, &admin)).collect();
    Ok((total, Json(fitting(rows))))
}

fn code<T: FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, AdminError> {
    text.map(str::parse)
        .transpose()
        .map_err(|_| AdminError::bad_request(format!("invalid {what}")))
}
