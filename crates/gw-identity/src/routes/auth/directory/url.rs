//! `GET /auth/directory/url`: starts a directory login and returns the URL for the browser (DS-2).

use super::is_allowed_redirect;
use crate::{
    directory::{self, OpenError},
    login_secret::SECRET_HEADER,
    request_info::RequestInfo,
    routes::cookies,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{RawQuery, State},
    response::IntoResponse,
};
use gw_http::{AllowedOrigins, ApiError, ErrorBody, ErrorCode, described_error};
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

/// Why no directory login was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrlError {
    /// No directory is configured.
    #[error("no directory is configured")]
    NotConfigured,
    /// No redirect was named.
    #[error("no redirect was named")]
    NoRedirect,
    /// The redirect leads to a page that is not allowed.
    #[error("the redirect is not allowed")]
    Redirect,
    /// The login could not be opened.
    #[error("the login could not be opened")]
    Open(#[from] OpenError),
}

impl From<UrlError> for ApiError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::NotConfigured => directory::not_configured(),
            UrlError::NoRedirect => Self::bad_request("redirect_uri query parameter required"),
            UrlError::Redirect => directory::redirect_not_allowed(),
            UrlError::Open(OpenError::Unavailable) => directory::unavailable(),
            UrlError::Open(OpenError::Busy(wait)) => {
                Self::unavailable("too many open login sessions").retry_after(wait)
            }
            UrlError::Open(OpenError::TooManyLogins(wait)) => Self::rate_limited(wait),
        }
    }
}

described_error!(
    UrlError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Unavailable.answer()
    ]
);

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
        UrlError,
        (status = 403),
        (status = 404, body = ErrorBody, description = "No directory is configured"),
    ),
)]
pub(crate) async fn url(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let directory = state.directory.as_deref().ok_or(UrlError::NotConfigured)?;
    let redirect = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "redirect_uri")
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
        .ok_or(UrlError::NoRedirect)?;
    if !is_allowed_redirect(&redirect, &state.http_context.origins, state.http_context.production) {
        return Err(UrlError::Redirect.into());
    }
    let opened = directory
        .open(
            &redirect,
            request_info.client,
            AllowedOrigins::sent_by_browser(&headers),
        )
        .await
        .map_err(UrlError::from)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;
    use gw_types::Seconds;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status_and_text() {
        let table = [
            (UrlError::NotConfigured, 404, "not found"),
            (UrlError::NoRedirect, 400, "redirect_uri query parameter required"),
            (UrlError::Redirect, 400, "redirect_uri is not allowed"),
            (UrlError::Open(OpenError::Unavailable), 503, "directory unavailable"),
            (
                UrlError::Open(OpenError::Busy(Seconds(9))),
                503,
                "too many open login sessions",
            ),
            (
                UrlError::Open(OpenError::TooManyLogins(Seconds(9))),
                429,
                "rate limit exceeded",
            ),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                UrlError::NotConfigured
                | UrlError::NoRedirect
                | UrlError::Redirect
                | UrlError::Open(OpenError::Unavailable | OpenError::Busy(_) | OpenError::TooManyLogins(_)) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(UrlError::lists_exactly(answers));
    }
}
