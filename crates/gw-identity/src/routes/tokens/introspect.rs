//! `POST /introspect`: whether a token is active (TK-7). In doubt, a token is inactive.

use crate::{
    request_info::RequestInfo,
    routes::oauth::{OAuthErrorResponse, OauthError, token::client_of},
    state::IdentityState,
    tokens::hash,
};
use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use gw_http::{ApiError, ErrorCode, described_error, read_body};
use gw_policy::{
    access::{TokenFacts, identify},
    snapshot::User,
};
use gw_types::{Secret, Timestamp, TokenId};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;

/// The state of a token.
#[derive(Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct IntrospectResponse {
    /// Whether the token is active.
    active: bool,
    /// When it expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    /// When it was issued, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    /// Whether the user's KYC is completed; for access tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    kyc: Option<bool>,
    /// The user's external id.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    /// `access_token` or `refresh_token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
}

/// Errors in the format of the token endpoint, or in the format of the other routes.
#[derive(Debug)]
pub(crate) enum IntrospectError {
    Client(OauthError),
    Other(ApiError),
}

impl From<OauthError> for IntrospectError {
    fn from(error: OauthError) -> Self {
        Self::Client(error)
    }
}

impl From<ApiError> for IntrospectError {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl IntoResponse for IntrospectError {
    fn into_response(self) -> Response {
        match self {
            Self::Client(error) => error.into_response(),
            Self::Other(error) => error.into_response(),
        }
    }
}

described_error!(
    IntrospectError,
    "OAuthOrAPIError",
    [
        ErrorCode::BadRequest.answer(),
        (StatusCode::BAD_REQUEST, "invalid_request"),
        (StatusCode::UNAUTHORIZED, "invalid_client"),
        ErrorCode::PayloadTooLarge.answer(),
        (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable"),
        ErrorCode::Unavailable.answer(),
        (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"),
        (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
    ]
);

/// Introspect a token
///
/// Takes the form fields `token` and, optionally, `token_type_hint`. Where INTROSPECT_REQUIRE_CLIENT is set, a
/// first-party application authenticates as at the token endpoint, by HTTP Basic or `client_id` and `client_secret`.
#[utoipa::path(
    post,
    path = "/introspect",
    operation_id = "introspectToken",
    tag = "tokens",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = IntrospectResponse),
        IntrospectError,
        (
            status = 401,
            body = OAuthErrorResponse,
            description = "INTROSPECT_REQUIRE_CLIENT is set and the client did not authenticate"
        ),
        (status = 403),
    ),
)]
pub(crate) async fn introspect(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    request: Request,
) -> Result<Json<IntrospectResponse>, IntrospectError> {
    let (parts, body) = request.into_parts();
    let body = read_body(body).await?;
    if state.inner.config.introspect_require_client {
        client_of(&state, &parts.headers, &body, &request_info).await?;
    }
    // The hint only says where to look first; the token itself tells its kind.
    let token = form_urlencoded::parse(&body)
        .find(|(name, _)| name == "token")
        .map(|(_, value)| Secret::new(value.trim()))
        .filter(|token| !token.expose().is_empty())
        .ok_or_else(|| ApiError::bad_request("token required"))?;
    let now = state.http_context.now();
    let response = match access(&state, &token, now) {
        Some(response) => Some(response),
        None => refresh(&state, &token, now).await,
    };
    Ok(Json(response.unwrap_or_default()))
}

fn access(state: &IdentityState, token: &Secret, now: Timestamp) -> Option<IntrospectResponse> {
    let claims = state.http_context.tokens.access(token.expose(), now).ok()?;
    let user = known(state, &claims.facts())?;
    Some(IntrospectResponse {
        active: true,
        exp: Some(claims.expires_at.secs()),
        iat: Some(claims.issued_at.secs()),
        kyc: Some(user.kyc),
        sub: Some(claims.subject.as_str().to_owned()),
        token_type: Some("access_token"),
    })
}

async fn refresh(state: &IdentityState, token: &Secret, now: Timestamp) -> Option<IntrospectResponse> {
    let claims = state.http_context.tokens.refresh(token.expose(), now).ok()?;
    let facts = TokenFacts {
        subject: claims.subject,
        token: claims.token,
        session: TokenId(claims.session.0),
        issued_at: claims.issued_at,
    };
    let user = known(state, &facts)?;
    let stored = state.store.read().find_refresh_token(hash(token)).await.ok()??;
    let usable = stored.used_at.is_none() && stored.expires_at > now && stored.user == user.id;
    usable.then(|| IntrospectResponse {
        active: true,
        exp: Some(stored.expires_at.secs()),
        iat: Some(claims.issued_at.secs()),
        kyc: None,
        sub: Some(facts.subject.as_str().to_owned()),
        token_type: Some("refresh_token"),
    })
}

/// The user, unless banned, revoked or unknown, or policy is stale.
fn known(state: &IdentityState, facts: &TokenFacts) -> Option<Arc<User>> {
    identify(&*state.http_context.policy.pin()?, facts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;
    use gw_journal::JournalError;
    use gw_store::StoreError;
    use gw_types::Seconds;
    use http_body_util::BodyExt as _;

    /// House rule 17. The errors of a client have a table of their own; these are those that its authentication has.
    #[tokio::test]
    async fn every_error_has_its_status_and_code() {
        let table: Vec<IntrospectError> = vec![
            ApiError::bad_request("token required").into(),
            ApiError::payload_too_large().into(),
            ApiError::unavailable("too many request bodies are on their way").into(),
            OauthError::TwoMethods.into(),
            OauthError::Client.into(),
            OauthError::TooManyFailures(Seconds(9)).into(),
            OauthError::Store(StoreError::Detached).into(),
            OauthError::Unrecorded(JournalError::Full).into(),
        ];
        let mut answers = Vec::new();
        for error in table {
            // A new variant stops the build here: add it to the table.
            let code = match &error {
                IntrospectError::Client(error) => error.answer().1,
                IntrospectError::Other(error) => error.code().as_str(),
            };
            let is_oauth = matches!(error, IntrospectError::Client(_));
            let response = error.into_response();
            answers.push((response.status(), code));
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body[if is_oauth { "error" } else { "code" }], code);
        }
        assert!(IntrospectError::lists_exactly(answers));
    }
}
