//! `POST /oauth/session/{id}/mock-complete`: completes a session without a wallet, in development (MK-4).

use super::{SessionError, callback, session};
use crate::{
    login::{Attempt, LoginError, LoginId},
    oauth::Progress,
    routes::Provenance,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, JsonBody};
use serde::{Deserialize, Serialize};

/// Who logs in when nobody is named.
const SOMEBODY: &str = "did:test:somebody";

/// Whom to log in.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MockCompleteRequest {
    did: Option<String>,
}

/// Who was logged in.
#[derive(Debug, Serialize)]
pub(crate) struct OauthMockCompleteResponse {
    ok: bool,
    did: String,
}

/// Complete an OAuth session without a proof. Not part of the API description: no release has it.
pub(crate) async fn mock_complete(
    State(state): State<IdentityState>,
    provenance: Provenance,
    Path(id): Path<String>,
    body: Option<JsonBody<MockCompleteRequest>>,
) -> Result<Json<OauthMockCompleteResponse>, ApiError> {
    if !state.inner.oauth.allow_mock {
        return Err(SessionError::MockOff.into());
    }
    let (_, found) = session(&state, &id).await?;
    if found.progress != Progress::Pending {
        return Err(SessionError::Done.into());
    }
    let JsonBody(body) = body.unwrap_or(JsonBody(MockCompleteRequest::default()));
    let did = body
        .did
        .filter(|did| !did.is_empty())
        .unwrap_or_else(|| SOMEBODY.to_owned());
    let token: Result<String, LoginError> = Ok(format!("mock.{did}"));
    let attempt = Attempt {
        session: LoginId(found.login),
        token,
        provenance,
    };
    callback::run(&state, &id, attempt).await?;
    Ok(Json(OauthMockCompleteResponse { ok: true, did }))
}
