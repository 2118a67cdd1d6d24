//! `/oauth`: the authorization code flow of first-party applications (spec/10 section 5).

pub(super) mod authorize;
pub(super) mod callback;
mod error;
pub(super) mod info;
pub(super) mod key_set;
pub(super) mod metadata;
#[cfg(feature = "mock-login")]
pub(super) mod mock_complete;
pub(super) mod restart;
pub(super) mod silent_complete;
pub(super) mod status;
pub(super) mod token;

use error::completed;
pub(in crate::routes) use error::other_browser;
pub(crate) use error::{OAuthErrorResponse, OauthError, SessionError};

use crate::{
    login::{LoginId, OpenerEvidence},
    oauth::{OauthId, OauthSession},
    request_info::RequestInfo,
    state::IdentityState,
};
use gw_http::ApiError;
use http::HeaderMap;

/// Finds the session of this id.
async fn session(state: &IdentityState, id: &str) -> Result<(OauthId, OauthSession), SessionError> {
    let id = OauthId::parse(id).ok_or(SessionError::Unknown)?;
    let session = state
        .inner
        .oauth
        .sessions
        .find(&id)
        .await?
        .ok_or(SessionError::Unknown)?;
    Ok((id, session))
}

/// Finds the session of this id for a poll, and counts the poll as the opener's or as another client's. Also returns
/// whether the opener polls.
async fn polled(
    state: &IdentityState,
    id: &str,
    headers: &HeaderMap,
    request_info: &RequestInfo,
) -> Result<(OauthId, OauthSession, bool), ApiError> {
    let limits = &state.inner.limits;
    match session(state, id).await {
        Ok((id, oauth_session)) => {
            let by_opener = oauth_session
                .opener
                .is(&OpenerEvidence::from_headers(headers, request_info.client));
            limits
                .poll_of(LoginId(oauth_session.login), by_opener, request_info.client)
                .await?;
            Ok((id, oauth_session, by_opener))
        }
        Err(error) => {
            limits.poll_from(request_info.client).await?;
            Err(error.into())
        }
    }
}

/// The path of BASE_URL, without a slash at its end.
fn base_path(state: &IdentityState) -> String {
    let base = url::Url::parse(&state.inner.config.base_url);
    base.map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}
