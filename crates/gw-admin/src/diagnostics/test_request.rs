use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::{Admin, covers},
    wire::{TestRequestInput, TestRequestResponse},
};
use axum::{Json, extract::State, http::StatusCode};
use gw_evm::{Class, Method, MethodLookup};
use gw_http::{ClientAddress, simulation::TestCall};
use gw_types::{OrgId, Secret};

/// The `identity` in the response for an anonymous caller.
const ANONYMOUS: &str = "test:dashboard";
const BAD_TOKEN: &str = "jwt_token is not valid";

/// Runs one JSON-RPC call as the bearer of a token, through every check of a real call. The response has the opaque
/// answer that the caller would get, and the reason of a denial, which only administrators read.
///
/// An administrator of an organization tests calls in it, with tokens of its users. Sends need `allow_write` and the
/// super token.
#[utoipa::path(post, path = "/api/v1/admin/test-request", tag = "diagnostics", request_body = TestRequestInput,
    responses((status = 200, body = TestRequestResponse), (status = 400), (status = 401),
        (status = 403, body = TestRequestResponse, description = "Denied, or outside the administrator's \
             organizations"),
        (status = 502, body = TestRequestResponse), (status = 503, body = TestRequestResponse)))]
pub(crate) async fn test_request(
    admin: Admin,
    State(state): State<AdminState>,
    JsonBody(body): JsonBody<TestRequestInput>,
) -> Result<(StatusCode, Json<TestRequestResponse>), AdminError> {
    admin.require_writer()?;
    let scope = admin.scope()?;
    let org: Option<OrgId> = match body.org_id.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => Some(input::id(text, "org_id")?),
        None => None,
    };
    let method = body.method.trim().to_owned();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(AdminError::bad_request("method must have 1 to 128 characters"));
    }
    let writes = match state.custom_methods.lookup(&method) {
        // A passthrough method may be a send.
        MethodLookup::Custom(custom) => custom
            .method()
            .is_none_or(|registered| registered.class() == Class::Write),
        MethodLookup::Registered(registered) => registered.class() == Class::Write,
        MethodLookup::Blocked | MethodLookup::Unknown => false,
    };
    if writes && !(body.allow_write && admin.is_super()) {
        return Err(AdminError::bad_request(
            "sends are not tested: they take effect. allow_write and the super token run one",
        ));
    }
    let token = body
        .jwt_token
        .as_deref()
        .map(|token| token.trim().trim_start_matches("Bearer "));
    let token = token.filter(|token| !token.is_empty());
    let claims = token
        .map(|token| state.http_context.tokens.access(token, state.clock.now()))
        .transpose();
    let claims = claims.map_err(|_| AdminError::bad_request(BAD_TOKEN))?;
    let identity = claims
        .as_ref()
        .map_or(ANONYMOUS.to_owned(), |claims| claims.subject.as_str().to_owned());
    if !admin.is_super() {
        let Some(org) = org else {
            return Err(AdminError::bad_request("org_id is required"));
        };
        let user = match &claims {
            Some(claims) => state.store.read().find_user_by_external_id(&claims.subject).await?,
            None => None,
        };
        let Some(user) = user else {
            return Err(admin.unknown_target("user not found"));
        };
        let is_member = state.store.read().organizations_of(user.id).await?.contains(&org);
        if !covers(&scope, org) || !is_member {
            return Err(admin.unknown_target("user not found"));
        }
    }
    let started_at = state.clock.now();
    let call = TestCall {
        token: token.map(Secret::new),
        org,
        method,
        params: body.params,
        client: ClientAddress(admin.ip()),
    };
    let tested = state
        .calls
        .test_call(call)
        .await
        .map_err(|_| AdminError::bad_request(BAD_TOKEN))?;
    let latency = state.clock.now().micros().saturating_sub(started_at.micros()).max(0) / 1000;
    let message = tested.answer.pointer("/error/message").and_then(|text| text.as_str());
    let error = message.map(|text| match tested.reason {
        Some(reason) => format!("{text} ({})", admin.visible_reason(reason).as_str()),
        None => text.to_owned(),
    });
    let status = match tested.status {
        // A denial, as it is decided: on the wire it is the opaque answer.
        401 | 403 | 404 => StatusCode::FORBIDDEN,
        502 => StatusCode::BAD_GATEWAY,
        503 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let result = tested.answer.get("result").cloned();
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
