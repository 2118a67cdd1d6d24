//! `POST /oauth/session/{id}/mock-complete`: completes a session without a wallet, in development (MK-4).

use super::{callback, completed, session};
use crate::{
    complete_login::LoginAttempt,
    login::{LoginError, LoginId},
    oauth::Progress,
    request_info::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, JsonBody};
use serde::{Deserialize, Serialize};

/// The user who logs in if the request names none.
const SOMEBODY: &str = "did:test:somebody";

/// The user to log in.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MockCompleteRequest {
    did: Option<String>,
}

/// The user who was logged in.
#[derive(Debug, Serialize)]
pub(crate) struct OauthMockCompleteResponse {
    ok: bool,
    did: String,
}

/// Complete an OAuth session without a proof. Not part of the API description: no release has it.
pub(crate) async fn mock_complete(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    Path(id): Path<String>,
    body: Option<JsonBody<MockCompleteRequest>>,
) -> Result<Json<OauthMockCompleteResponse>, ApiError> {
    if !state.inner.oauth.allow_mock {
        return Err(ApiError::forbidden("mock login is disabled"));
    }
    let (_, oauth_session) = session(&state, &id).await?;
    if oauth_session.progress != Progress::Pending {
        return Err(completed());
    }
    let JsonBody(body) = body.unwrap_or(JsonBody(MockCompleteRequest::default()));
    let did = body
        .did
        .filter(|did| !did.is_empty())
        .unwrap_or_else(|| SOMEBODY.to_owned());
    let token: Result<String, LoginError> = Ok(format!("mock.{did}"));
    let attempt = LoginAttempt {
        session: LoginId(oauth_session.login),
        token,
        request_info,
    };
    callback::run(&state, &id, attempt).await?;
    Ok(Json(OauthMockCompleteResponse { ok: true, did }))
}
