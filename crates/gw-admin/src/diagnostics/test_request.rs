use super::{BadToken, TestCall};
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::{Admin, covers},
    wire::{TestRequestInput, TestRequestResponse},
};
use axum::{Json, extract::State, http::StatusCode};
use gw_evm::{Class, Lookup, Method};
use gw_types::{OrgId, Secret};

/// Who asks where no token is given: an anonymous caller.
const NOBODY: &str = "test:dashboard";
const BAD_TOKEN: &str = "jwt_token is not valid";

/// Runs one JSON-RPC call as the bearer of a token would, through everything that a call goes through, and says what comes
/// of it and why. The caller's answer is the opaque one; the reason is for administrators.
///
/// Administrators of an organization test in it, with tokens of its users. Sends need `allow_write` and the super token.
#[utoipa::path(post, path = "/api/v1/admin/test-request", tag = "diagnostics", request_body = TestRequestInput,
    responses((status = 200, body = TestRequestResponse), (status = 400), (status = 401),
        (status = 403, body = TestRequestResponse, description = "Denied, or outside the administrator's organizations"),
        (status = 502, body = TestRequestResponse), (status = 503, body = TestRequestResponse)))]
pub(crate) async fn test_request(
    admin: Admin,
    State(state): State<AdminState>,
    JsonBody(body): JsonBody<TestRequestInput>,
) -> Result<(StatusCode, Json<TestRequestResponse>), Failure> {
    admin.require_writer()?;
    let scope = admin.scope()?;
    let org: Option<OrgId> = match body.org_id.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => Some(input::id(text, "org_id")?),
        None => None,
    };
    let method = body.method.trim().to_owned();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(Failure::bad("method must have 1 to 128 characters"));
    }
    let writes = match state.extras.lookup(&method) {
        // What passes unexamined may be a send.
        Lookup::Extra(extra) => extra.row().is_none_or(|row| row.class() == Class::Write),
        Lookup::Known(row) => row.class() == Class::Write,
        Lookup::Blocked | Lookup::Unknown => false,
    };
    if writes && !(body.allow_write && admin.is_super()) {
        return Err(Failure::bad(
            "sends are not tested: they take effect. allow_write and the super token run one",
        ));
    }
    let token = body
        .jwt_token
        .as_deref()
        .map(|token| token.trim().trim_start_matches("Bearer "));
    let token = token.filter(|token| !token.is_empty());
    let claims = token
        .map(|token| state.edge.tokens.access(token, state.clock.now()))
        .transpose();
    let claims = claims.map_err(|_| Failure::bad(BAD_TOKEN))?;
    let identity = claims
        .as_ref()
        .map_or(NOBODY.to_owned(), |claims| claims.subject.as_str().to_owned());
    if !admin.is_super() {
        let Some(org) = org else {
            return Err(Failure::bad("org_id is required"));
        };
        let user = match &claims {
            Some(claims) => state.store.read().find_user_by_external_id(&claims.subject).await?,
            None => None,
        };
        let Some(user) = user else {
            return Err(admin.unknown_target("user not found"));
        };
        let inside = state.store.read().organizations_of(user.id).await?.contains(&org);
        if !covers(&scope, org) || !inside {
            return Err(admin.unknown_target("user not found"));
        }
    }
    let began = state.clock.now();
    let call = TestCall {
        token: token.map(Secret::new),
        org,
        method,
        params: body.params,
        client: admin.ip(),
    };
    let said = state
        .tester
        .run(call)
        .await
        .map_err(|BadToken| Failure::bad(BAD_TOKEN))?;
    let latency = state.clock.now().micros().saturating_sub(began.micros()).max(0) / 1000;
    let message = said.answer.pointer("/error/message").and_then(|text| text.as_str());
    let error = message.map(|text| match said.reason {
        Some(reason) => format!("{text} ({})", admin.visible_reason(reason).as_str()),
        None => text.to_owned(),
    });
    let status = match said.status {
        // A denial, as it is decided: on the wire it is the opaque answer.
        401 | 403 | 404 => StatusCode::FORBIDDEN,
        502 => StatusCode::BAD_GATEWAY,
        503 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let result = said.answer.get("result").cloned();
    Ok((
        status,
        Json(TestRequestResponse {
            result,
            error,
            identity,
            latency_ms: latency,
        }),
    ))
}
