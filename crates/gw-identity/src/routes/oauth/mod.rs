//! `/oauth`: the authorization code flow of first-party applications (spec/10 section 5).

pub(super) mod authorize;
pub(super) mod callback;
mod error;
pub(super) mod info;
pub(super) mod metadata;
#[cfg(feature = "mock-login")]
pub(super) mod mock_complete;
pub(super) mod restart;
pub(super) mod silent_complete;
pub(super) mod status;
pub(super) mod token;

pub(crate) use error::{OauthError, SessionError};

use crate::{
    login::{LoginId, OpenerEvidence},
    oauth::{OauthId, OauthSession},
    routes::Provenance,
    state::IdentityState,
};
use gw_http::ApiError;
use http::HeaderMap;

/// The session of this id, if it is there.
async fn session(state: &IdentityState, id: &str) -> Result<(OauthId, OauthSession), SessionError> {
    let id = OauthId::parse(id).ok_or(SessionError::Unknown)?;
    let found = state
        .inner
        .oauth
        .sessions
        .find(&id)
        .await?
        .ok_or(SessionError::Unknown)?;
    Ok((id, found))
}

/// The same for a poll, counted as its opener's or as somebody else's; and whose it is.
async fn polled(
    state: &IdentityState,
    id: &str,
    headers: &HeaderMap,
    provenance: &Provenance,
) -> Result<(OauthId, OauthSession, bool), ApiError> {
    let limits = &state.inner.limits;
    match session(state, id).await {
        Ok((id, found)) => {
            let by_opener = found.opener.is(&OpenerEvidence::of(headers, provenance.client));
            limits
                .poll_of(LoginId(found.login), by_opener, provenance.client)
                .await?;
            Ok((id, found, by_opener))
        }
        Err(error) => {
            limits.poll_from(provenance.client).await?;
            Err(error.into())
        }
    }
}

/// The path under which BASE_URL stands, without a slash at its end.
fn base_path(state: &IdentityState) -> String {
    let base = url::Url::parse(&state.inner.config.base_url);
    base.map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}
