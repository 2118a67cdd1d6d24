//! `POST /auth/directory/service-principal`: exchanges a service principal's directory token for a gateway token (DS-5,
//! DS-7, DS-8).

use crate::{
    directory::DirectoryError,
    directory_login::{log_in, note_refusal},
    request_info::RequestInfo,
    state::IdentityState,
    tokens::AuthResponse,
};
use axum::{Json, extract::State};
use gw_http::{Amr, ApiError, ErrorBody, JsonBody};
use gw_types::Secret;
use serde::Deserialize;

/// A directory access token from the client credentials grant.
#[derive(Deserialize, utoipa::ToSchema)]
pub(crate) struct DirectoryServicePrincipalRequest {
    /// The token.
    access_token: String,
}

/// Log in as a service principal
#[utoipa::path(
    post,
    path = "/auth/directory/service-principal",
    operation_id = "directoryServicePrincipal",
    tag = "auth",
    request_body = DirectoryServicePrincipalRequest,
    responses(
        (status = 200, body = AuthResponse),
        DirectoryError,
        (status = 404, body = ErrorBody, description = "No directory is configured"),
        (status = 429, body = ErrorBody),
    ),
)]
pub(crate) async fn service_principal(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    body: Result<JsonBody<DirectoryServicePrincipalRequest>, ApiError>,
) -> Result<Json<AuthResponse>, ApiError> {
    let directory = state.directory.as_deref().ok_or(DirectoryError::NotConfigured)?;
    let token = Secret::new(body?.0.access_token.trim());
    if token.expose().is_empty() {
        return Err(ApiError::bad_request("access_token must not be empty"));
    }
    let record = |subject, error: DirectoryError| {
        note_refusal(&state, subject, Amr::Sp, &request_info, &error);
        error
    };
    let identity = directory
        .verify_service_principal(&token)
        .await
        .map_err(|error| record(None, error))?;
    let subject = identity.subject.clone();
    let pair = log_in(&state, directory, identity, Amr::Sp, &request_info)
        .await
        .map_err(|error| record(Some(subject), error))?;
    Ok(Json(AuthResponse::new(pair, state.http_context.now())))
}
