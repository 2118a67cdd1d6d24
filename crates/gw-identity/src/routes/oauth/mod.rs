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
    oauth::{OauthId, OauthSession},
    state::IdentityState,
};

/// The session of this id, if it is there.
async fn session(state: &IdentityState, id: &str) -> Result<(OauthId, OauthSession), SessionError> {
    let id = OauthId::parse(id).ok_or(SessionError::Unknown)?;
    let found = state.inner.oauth.sessions.find(&id).await?.ok_or(SessionError::Unknown)?;
    Ok((id, found))
}

/// The path under which BASE_URL stands, without a slash at its end.
fn base_path(state: &IdentityState) -> String {
    let base = url::Url::parse(&state.inner.config.base_url);
    base.map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}
