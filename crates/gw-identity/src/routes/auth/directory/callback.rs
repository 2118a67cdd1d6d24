//! `POST /auth/directory/callback`: the browser returns with a code (DS-3, DS-4, DS-7, DS-8).

use super::is_allowed_redirect;
use crate::{
    directory::{Directory, DirectoryError},
    directory_login::{log_in, note_refusal},
    login_secret::SECRET_HEADER,
    request_info::RequestInfo,
    routes::cookies,
    state::IdentityState,
    tokens::{AuthResponse, TokenPair},
};
use axum::{Json, extract::State, response::IntoResponse};
use gw_http::{Amr, ApiError, ErrorBody, JsonBody};
use http::{HeaderMap, header};
use serde::Deserialize;

/// The parameters that the directory added to the redirect.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct DirectoryCallbackRequest {
    /// The directory's code.
    code: String,
    /// The redirect URI that the login began with.
    redirect_uri: String,
    /// The state that the login began with.
    state: String,
}

/// Complete a directory login
#[utoipa::path(
    post,
    path = "/auth/directory/callback",
    operation_id = "directoryCallback",
    tag = "auth",
    request_body = DirectoryCallbackRequest,
    responses(
        (status = 200, body = AuthResponse),
        DirectoryError,
        (status = 404, body = ErrorBody, description = "No directory is configured"),
        (status = 429, body = ErrorBody),
    ),
)]
pub(crate) async fn callback(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    headers: HeaderMap,
    body: Result<JsonBody<DirectoryCallbackRequest>, ApiError>,
) -> Result<impl IntoResponse, ApiError> {
    let directory = state.directory.as_deref().ok_or(DirectoryError::NotConfigured)?;
    let JsonBody(body) = body?;
    if [&body.code, &body.redirect_uri, &body.state]
        .iter()
        .any(|member| member.is_empty())
    {
        return Err(ApiError::bad_request("code, redirect_uri and state must not be empty"));
    }
    let http_context = &state.http_context;
    if !is_allowed_redirect(&body.redirect_uri, &http_context.origins, http_context.production) {
        return Err(DirectoryError::Redirect.into());
    }
    let pair = complete(&state, directory, &body, &headers, &request_info).await?;
    let tokens = AuthResponse::new(pair, state.http_context.now());
    let mut answer = cookies::clear_directory(&state.http_context);
    for access in cookies::set_access(&state.http_context, &headers, &tokens).get_all(header::SET_COOKIE) {
        answer.append(header::SET_COOKIE, access.clone());
    }
    Ok((answer, Json(tokens)))
}

async fn complete(
    state: &IdentityState,
    directory: &Directory,
    body: &DirectoryCallbackRequest,
    headers: &HeaderMap,
    request_info: &RequestInfo,
) -> Result<TokenPair, DirectoryError> {
    let record = |subject, error: DirectoryError| {
        note_refusal(state, subject, Amr::Directory, request_info, &error);
        error
    };
    let in_header = headers.get(SECRET_HEADER).and_then(|value| value.to_str().ok());
    let secrets: Vec<&str> = [in_header, cookies::directory_secret(headers)]
        .into_iter()
        .flatten()
        .collect();
    // A POST from a page always has one of these headers.
    let page = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    let pending = directory
        .take(&body.state, &secrets, request_info.client, page)
        .await
        .and_then(|pending| {
            if pending.redirect_uri == body.redirect_uri {
                Ok(pending)
            } else {
                Err(DirectoryError::Redirect)
            }
        })
        .map_err(|error| record(None, error))?;
    let identity = directory
        .redeem(&body.code, &pending)
        .await
        .map_err(|error| record(None, error))?;
    let subject = identity.subject.clone();
    log_in(state, directory, identity, Amr::Directory, request_info)
        .await
        .map_err(|error| record(Some(subject), error))
}
