//! The reader of a grant: its grantee, or the holder of a token that the grantee made (rule 38).

use super::token::{self, TokenHolder};
use crate::{
    DisclosureState,
    caller::{Origin, check_query},
    error::GrantError,
    grants::GrantRefusal,
    record::Caller,
};
use axum::extract::{FromRequestParts, Path};
use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead};
use gw_http::{ApiError, AuthError, AuthenticatedUser, ReadOrigin, grant_read};
use gw_policy::{Snapshot, access::identify, disclosure::OpenGrant, snapshot::User};
use gw_types::{DisclosureGrantId, Timestamp};
use http::request::Parts;
use std::sync::Arc;

/// The grant in a path, checked before the caller is (rule 18).
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantPath(pub(crate) DisclosureGrantId);

impl FromRequestParts<DisclosureState> for GrantPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &DisclosureState) -> Result<Self, ApiError> {
        let malformed = || ApiError::bad_request("grant_id must be a UUID");
        let values = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let values = values.map_err(|_| malformed())?.0;
        let grant = values.iter().find(|(name, _)| name == "grant_id");
        grant
            .and_then(|(_, text)| text.parse().ok())
            .map(Self)
            .ok_or_else(malformed)
    }
}

/// The reader of a grant, by the policy of this snapshot.
#[derive(Debug)]
pub(crate) struct GrantReader {
    /// The grantee, whose rights count.
    pub(crate) user: Arc<User>,
    /// The grant of the token, if the reader has one.
    token: Option<DisclosureGrantId>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) now: Timestamp,
    pub(crate) origin: Origin,
}

impl FromRequestParts<DisclosureState> for GrantReader {
    type Rejection = GrantError;

    async fn from_request_parts(parts: &mut Parts, state: &DisclosureState) -> Result<Self, GrantError> {
        let origin = Origin::new(parts, state);
        let (user, token, snapshot) = match token::holder(state, &parts.headers).await? {
            Some(TokenHolder { grant, maker }) => {
                let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale);
                let snapshot = snapshot.map_err(ApiError::from)?;
                let user = identify(&snapshot, &maker).map_err(|_| GrantError::Token)?;
                origin.set_caller(Caller::Token(user.external_id.clone()));
                (user, Some(grant), snapshot)
            }
            None => {
                let caller = AuthenticatedUser::authenticate(&state.http_context, &parts.headers);
                let caller = caller.map_err(|error| match error {
                    AuthError::Missing => GrantError::Token,
                    error => ApiError::from(error).into(),
                })?;
                origin.set_caller(Caller::User(caller.clone()));
                (caller.user, None, caller.snapshot)
            }
        };
        check_query(parts)?;
        let now = state.http_context.now();
        Ok(Self {
            user,
            token,
            snapshot,
            now,
            origin,
        })
    }
}

impl GrantReader {
    /// The grant, if the reader may use it.
    ///
    /// # Errors
    /// 403 for a token of another grant; 404 for a grant that does not exist or that is not the reader's; 403 for one
    /// that has ended.
    pub(crate) fn open(&self, state: &DisclosureState, id: DisclosureGrantId) -> Result<OpenGrant, GrantError> {
        if self.token.is_some_and(|grant| grant != id) {
            return Err(GrantError::TokenMismatch);
        }
        let grant = state.open_grant(&self.snapshot, &self.user.external_id, id, self.now)?;
        self.origin
            .set_org_of_member(grant.grant.org, &self.snapshot, self.user.id, self.now);
        Ok(grant)
    }

    /// Journals a read. The answer leaves afterwards.
    ///
    /// # Errors
    /// 503 if the read cannot be recorded: nothing is shown.
    pub(crate) async fn record(
        &self,
        state: &DisclosureState,
        grant: &OpenGrant,
        read: ReadDetails,
    ) -> Result<(), GrantError> {
        let origin = ReadOrigin {
            ip_address: Some(self.origin.ip),
            correlation_id: self.origin.correlation_id.clone().map(Into::into),
        };
        let read = DisclosureRead {
            record_count: read.record_count,
            first: read.times.map(|(first, _)| first),
            last: read.times.map(|(_, last)| last),
            ..grant_read(&grant.grant, self.user.id, read.action, read.data, origin)
        };
        Ok(state.record_reads(vec![read]).await?)
    }
}

/// What a read returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadDetails {
    pub(crate) action: DisclosureAction,
    pub(crate) data: DisclosureData,
    pub(crate) record_count: Option<u64>,
    /// The times of the oldest and of the newest row.
    pub(crate) times: Option<(Timestamp, Timestamp)>,
}

impl From<GrantRefusal> for GrantError {
    fn from(refusal: GrantRefusal) -> Self {
        match refusal {
            GrantRefusal::Unknown => Self::Unknown,
            GrantRefusal::Revoked => Self::Revoked,
            GrantRefusal::Expired => Self::Expired,
            GrantRefusal::Secret(error) => Self::Secret(error),
        }
    }
}
