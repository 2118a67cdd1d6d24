use super::{
    BadRehearsal, Rehearsal,
    shoulder::{Shoulder, Way},
};
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    scope::Admin,
    wire::{ViewAsAnswer, ViewAsRequest},
};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{any, get},
};
use gw_evm::{Class, Lookup, Method};
use gw_http::ApiError;
use serde_json::Value;

/// One read, as this member would make it (V2): answered as far as the administrator may see it too. What only the member
/// sees is not there, or masked.
///
/// For administrators of the organization, in person, and recorded before it is answered. A denial is the one that the
/// member would meet.
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
) -> Result<(StatusCode, Json<ViewAsAnswer>), Failure> {
    let operator = Shoulder::operator(&admin, &org)?;
    let (shoulder, _) = Shoulder::of(&state, operator, &did)?;
    let JsonBody(body) = body?;
    let method = body.method.trim();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(Failure::bad("method must have 1 to 128 characters"));
    }
    let name = match Method::lookup(method) {
        Lookup::Known(known) => match known.class() {
            Class::Write => return Err(Failure::bad("view-as only reads: a dry-run shows what a send would do")),
            Class::Live => {
                return Err(Failure::bad(
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
            | Class::Trace => known.as_str(),
        },
        // What operators name beside the registry is not examined, so nobody else sees it.
        Lookup::Extra(_) | Lookup::Blocked | Lookup::Unknown => "unknown method",
    };
    shoulder.record(&state, &admin, Way::ViewAs, name, &body.params).await?;
    let call = Rehearsal {
        operator: shoulder.operator,
        target: shoulder.target.id,
        org: shoulder.org,
        method: method.to_owned(),
        params: body.params,
        client: admin.ip(),
    };
    let said = state
        .tester
        .rehearse(call)
        .await
        .map_err(|BadRehearsal(why)| Failure::bad(why))?;
    let status = match said.status {
        429 => StatusCode::TOO_MANY_REQUESTS,
        500 => StatusCode::INTERNAL_SERVER_ERROR,
        502 => StatusCode::BAD_GATEWAY,
        503 => StatusCode::SERVICE_UNAVAILABLE,
        // The member's answer, error or result, is what was asked for.
        _ => StatusCode::OK,
    };
    let part = |name: &str| said.answer.get(name).cloned();
    let id = body.id.unwrap_or(Value::Null);
    Ok((
        status,
        Json(ViewAsAnswer {
            jsonrpc: "2.0",
            id,
            result: part("result"),
            error: part("error"),
        }),
    ))
}

/// Where the reads of the explorer are mirrored, once there is one: the way in and its refusals, and nothing behind them.
/// What is mounted here records with [`Shoulder::record`] before it answers, and shows what a viewer with the
/// administrator beside sees.
pub(crate) fn mirror() -> Router<AdminState> {
    let base = "/api/v1/admin/impersonate/{did}";
    Router::new()
        .route(&format!("{base}/in/{{org_id}}/{{*rest}}"), get(nothing_there))
        .route(&format!("{base}/{{*rest}}"), any(nowhere))
}

async fn nothing_there(
    admin: Admin,
    State(state): State<AdminState>,
    Path((did, org, _)): Path<(String, String, String)>,
) -> Result<(), Failure> {
    let operator = Shoulder::operator(&admin, &org)?;
    let (_shoulder, _) = Shoulder::of(&state, operator, &did)?;
    Err(Failure::not_found("nothing of this name can be viewed"))
}

async fn nowhere(admin: Admin) -> Result<(), Failure> {
    admin.require_person()?;
    Err(Failure::bad("name the organization: /impersonate/{did}/in/{org_id}/…"))
}
