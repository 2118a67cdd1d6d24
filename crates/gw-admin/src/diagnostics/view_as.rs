use super::impersonation::{Impersonator, MemberCall, Purpose};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::Admin,
    wire::{ViewAsAnswer, ViewAsRequest},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use gw_evm::{Class, Method, MethodLookup};
use gw_http::ApiError;
use serde_json::Value;

/// Makes one read as this member. The response contains only values that the administrator may see too; other values
/// are left out or masked (V2).
///
/// Callers are users who administer the organization. The read is recorded before it is answered. If the member may not
/// make the read, the answer is the denial that the member would get.
#[utoipa::path(post, path = "/api/v1/admin/impersonate/{did}/in/{org_id}/rpc", tag = "diagnostics",
    request_body = ViewAsRequest,
    params(("did" = String, Path, description = "The member"), ("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = ViewAsAnswer), (status = 400), (status = 401), (status = 403),
        (status = 404, description = "No such member"), (status = 429), (status = 502), (status = 503)))]
pub(crate) async fn view_as(
    admin: Admin,
    State(state): State<AdminState>,
    Path((did, org)): Path<(String, String)>,
    body: Result<JsonBody<ViewAsRequest>, ApiError>,
) -> Result<(StatusCode, Json<ViewAsAnswer>), AdminError> {
    let (impersonation, _) = Impersonator::authorize(&admin, &org)?.impersonate(&state, &did)?;
    let JsonBody(body) = body?;
    let method = body.method.trim();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(AdminError::bad_request("method must have 1 to 128 characters"));
    }
    let recorded_as = match Method::lookup(method) {
        MethodLookup::Registered(registered) => match registered.class() {
            Class::Write => {
                return Err(AdminError::bad_request(
                    "view-as only reads: a dry-run shows what a send would do",
                ));
            }
            Class::Subscription => {
                return Err(AdminError::bad_request(
                    "view-as only reads: filters and subscriptions are their owner's",
                ));
            }
            Class::Meta
            | Class::Chain
            | Class::State
            | Class::Sim
            | Class::Log
            | Class::Tx
            | Class::Block
            | Class::Trace => registered.as_str(),
        },
        // The gateway does not examine custom methods, so it shows them only to their caller.
        MethodLookup::Custom(_) | MethodLookup::Blocked | MethodLookup::Unknown => "unknown method",
    };
    let call = MemberCall {
        purpose: Purpose::ViewAs,
        method: method.to_owned(),
        recorded_as,
        params: body.params,
    };
    let simulated = impersonation.simulate(&state, &admin, call).await?;
    let status = match simulated.status {
        429 => StatusCode::TOO_MANY_REQUESTS,
        500 => StatusCode::INTERNAL_SERVER_ERROR,
        502 => StatusCode::BAD_GATEWAY,
        503 => StatusCode::SERVICE_UNAVAILABLE,
        // The member's JSON-RPC response, a result or an error, is the content of the answer.
        _ => StatusCode::OK,
    };
    let member_of = |name: &str| simulated.answer.get(name).cloned();
    let id = body.id.unwrap_or(Value::Null);
    Ok((
        status,
        Json(ViewAsAnswer {
            jsonrpc: "2.0",
            id,
            result: member_of("result"),
            error: member_of("error"),
        }),
    ))
}
