//! `GET /auth/directory/url`: starts a directory login and returns the URL for the browser (DS-2).

use super::check_redirect;
use crate::{
    directory::DirectoryError, login_secret::SECRET_HEADER, request_info::RequestInfo, routes::cookies,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{RawQuery, State},
    response::IntoResponse,
};
use gw_http::{AllowedOrigins, ApiError, ErrorBody};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;

/// A started login.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = DirectoryURLResponse)]
pub(crate) struct DirectoryUrlResponse {
    /// Returned with the callback; valid for ten minutes.
    state: String,
    /// The directory's login page.
    url: String,
}

/// Start a directory login
///
/// The callback must come from the same browser: it shows the `pp_directory` cookie set here, or the `X-Login-Secret`
/// header of this answer.
#[utoipa::path(
    get,
    path = "/auth/directory/url",
    operation_id = "directoryUrl",
    tag = "auth",
    params(("redirect_uri" = String, Query, description = "The page of an allowed origin that receives the code")),
    responses(
        (status = 200, body = DirectoryUrlResponse),
        (status = 400, body = ErrorBody),
        (status = 403),
        (status = 404, body = ErrorBody, description = "No directory is configured"),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn url(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let directory = state.directory.as_deref().ok_or(DirectoryError::NotConfigured)?;
    let redirect = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "redirect_uri")
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
        .ok_or(DirectoryError::NoRedirect)?;
    check_redirect(&redirect, &state.http_context.origins, state.http_context.production)?;
    let opened = directory
        .open(
            &redirect,
            request_info.client,
            AllowedOrigins::sent_by_browser(&headers),
        )
        .await?;
    let mut answer = cookies::set_directory(&state.http_context, &headers, &opened.browser);
    if let Ok(value) = HeaderValue::from_str(&opened.browser) {
        answer.insert(SECRET_HEADER, value);
    }
    Ok((
        answer,
        Json(DirectoryUrlResponse {
            state: opened.state,
            url: opened.url,
        }),
    ))
}
