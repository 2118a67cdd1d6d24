//! `POST /auth/request`: opens a login session (ZK-1, ZK-4, ZK-5, ZK-13).

use crate::{
    login::{AuthorizationRequest, LoginError, LoginId, LoginSession, Opener, RequestFacts, callback_base},
    login_secret::{LoginSecret, SECRET_HEADER},
    request_info::RequestInfo,
    routes::cookies,
    state::IdentityState,
};
use axum::{Json, extract::State, response::IntoResponse};
use gw_http::{AllowedOrigins, ApiError, ErrorBody, JsonBody};
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

/// The optional parameters of a login.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
pub(crate) struct AuthRequestBody {
    /// The page's own origin, from which the wallet's callback URL is built.
    callback_origin: Option<String>,
}

/// An open session and the request that the wallet answers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct AuthRequestResponse {
    /// The session.
    session_id: String,
    /// The message for the wallet.
    auth_request: AuthorizationRequest,
}

/// Start a login
///
/// The body may be absent. The status poll must show the answer's `X-Login-Secret` header or the `pp_login` cookie to
/// get the tokens.
#[utoipa::path(
    post,
    path = "/auth/request",
    operation_id = "startLogin",
    tag = "auth",
    request_body = Option<AuthRequestBody>,
    responses(
        (status = 200, body = AuthRequestResponse),
        (status = 403, body = ErrorBody, description = "A page of another site made the request"),
        (status = 429, body = ErrorBody),
        (status = 500, body = ErrorBody, description = "VERIFIER_ID not configured"),
        (status = 503, body = ErrorBody, description = "too many open sessions, or the credential schema is not at \
             hand"),
    ),
)]
pub(crate) async fn request(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    headers: HeaderMap,
    body: Option<JsonBody<AuthRequestBody>>,
) -> Result<impl IntoResponse, ApiError> {
    let JsonBody(body) = body.unwrap_or(JsonBody(AuthRequestBody::default()));
    let (http_context, config) = (&*state.http_context, &state.inner.config);
    let verifier = config.verifier(http_context.production)?;
    let scope = config.scope()?;
    let now = http_context.now();
    let base = callback_base(
        body.callback_origin.as_deref(),
        &config.base_url,
        &http_context.origins,
        http_context.production,
    );
    let id = LoginId(http_context.entropy.uuid());
    let facts = RequestFacts {
        verifier,
        base: &base,
        session: id.0,
        scope,
        circuits: &config.auth_circuits,
        now,
    };
    let auth_request = AuthorizationRequest::new(&facts, &*http_context.entropy);
    let secret = LoginSecret::fresh(&*http_context.entropy);
    let opener = Opener::new(secret.expose(), request_info.client, &headers);
    let session = LoginSession::new(auth_request.clone(), opener, now);
    state
        .inner
        .sessions
        .open(id, &session)
        .await
        .map_err(LoginError::from)?;

    let mut answer = match AllowedOrigins::sent_by_browser(&headers) {
        true => cookies::set_login(http_context, &secret),
        false => HeaderMap::new(),
    };
    if let Ok(value) = HeaderValue::from_str(secret.expose()) {
        answer.insert(SECRET_HEADER, value);
    }
    Ok((
        answer,
        Json(AuthRequestResponse {
            session_id: id.0.to_string(),
            auth_request,
        }),
    ))
}
