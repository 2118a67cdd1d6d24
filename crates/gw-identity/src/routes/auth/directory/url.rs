//! `GET /auth/directory/url`: where the browser goes to log in with the directory (DS-2).

use super::{SECRET_HEADER, check_redirect};
use crate::{
    directory::DirectoryError,
    routes::{Provenance, cookies},
    state::IdentityState,
};
use axum::{
    Json,
    extract::{RawQuery, State},
    response::IntoResponse,
};
use gw_http::{ApiError, ErrorBody, OwnOrigins};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;

/// A login that has begun.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = DirectoryURLResponse)]
pub(crate) struct DirectoryUrlResponse {
    /// Comes back with the callback; ends after ten minutes.
    state: String,
    /// The directory's login page.
    url: String,
}

/// Start a directory login
///
/// The callback must come from the browser that asked: it shows the `pp_directory` cookie set here, or the
/// `X-Login-Secret` header of this answer.
#[utoipa::path(
    get,
    path = "/auth/directory/url",
    operation_id = "directoryUrl",
    tag = "auth",
    params(("redirect_uri" = String, Query, description = "A page of ours that gets the code")),
    responses(
        (status = 200, body = DirectoryUrlResponse),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "No directory is configured"),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn url(
    State(state): State<IdentityState>,
    provenance: Provenance,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let directory = state.directory.as_deref().ok_or(DirectoryError::NotConfigured)?;
    let redirect = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "redirect_uri")
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
        .ok_or(DirectoryError::NoRedirect)?;
    check_redirect(&redirect, &state.edge.origins, state.edge.production)?;
    let opened = directory
        .open(&redirect, provenance.client, OwnOrigins::sent_by_browser(&headers))
        .await?;
    let mut answer = cookies::set_directory(&state.edge, &headers, &opened.browser);
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
