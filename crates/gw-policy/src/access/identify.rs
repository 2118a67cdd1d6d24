//! Identifies the caller: from the claims of a verified token to the user row (spec/20 A9, A10, J1; spec/10).
//!
//! Signature, expiry and audience of the token have been checked before.

use crate::{
    principal::Impersonation,
    snapshot::{PersonalUrl, Snapshot, User},
};
use gw_types::{B256, ExternalId, Timestamp, TokenId};
use std::sync::Arc;

/// The caller of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No token was presented.
    Anonymous,
    /// A token of this user. [`super::decide`] looks the row up again in its snapshot.
    User(Arc<User>),
    /// A personal URL of this user. [`super::decide`] looks both rows up again.
    Url(Arc<User>, Arc<PersonalUrl>),
    /// An administrator who requests the outcome of a call of this user (HD7).
    Impersonated(Arc<User>, Impersonation),
}

impl Caller {
    /// The user, unless the caller is anonymous.
    pub fn user(&self) -> Option<&Arc<User>> {
        match self {
            Self::Anonymous => None,
            Self::User(user) | Self::Url(user, _) | Self::Impersonated(user, _) => Some(user),
        }
    }

    /// The impersonation, if the call is part of one.
    pub fn impersonation(&self) -> Option<Impersonation> {
        match self {
            Self::Anonymous | Self::User(_) | Self::Url(..) => None,
            Self::Impersonated(_, impersonation) => Some(*impersonation),
        }
    }
}

/// The claims of a verified access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// The token's subject.
    pub subject: ExternalId,
    /// `jti`
    pub token: TokenId,
    /// `sid`: the token family, revoked as a whole at logout.
    pub session: TokenId,
    /// `iat`
    pub issued_at: Timestamp,
}

/// Why a valid token identifies no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The token, its family, or all older tokens of the user were revoked: 401.
    Revoked,
    /// The subject has no user row: the opaque 404 on `/rpc` (A9).
    UnknownUser,
    /// The account is banned: the opaque 404 on `/rpc` for every method, metadata included (A10).
    Banned,
    /// The directory tenant that vouched for the user is no longer allowed (TK-8); answered like a ban.
    TenantNotAllowed,
}

/// The user of a verified token.
///
/// # Errors
/// [`IdentityError`]. The ban is checked before revocations, because a ban also revokes tokens and a banned caller must
/// always get the 404 of A10.
pub fn identify(snapshot: &Snapshot, token: &TokenFacts) -> Result<Arc<User>, IdentityError> {
    let user = snapshot.user_by_external(&token.subject);
    if user.is_some_and(|user| user.banned) {
        return Err(IdentityError::Banned);
    }
    if snapshot.revocation(token.token).is_some() || snapshot.revocation(token.session).is_some() {
        return Err(IdentityError::Revoked);
    }
    let user = user.ok_or(IdentityError::UnknownUser)?;
    if snapshot.is_excluded(user) {
        return Err(IdentityError::TenantNotAllowed);
    }
    if user
        .tokens_valid_from
        .is_some_and(|valid_from| token.issued_at < valid_from)
    {
        return Err(IdentityError::Revoked);
    }
    Ok(Arc::clone(user))
}

/// The owner of a personal URL, by the hash of its secret (HD17).
///
/// # Errors
/// [`IdentityError`]; the ban is checked first, as for tokens. A URL counts as revoked if it has expired, if it is
/// older than the revocation of all the user's tokens, or if the user is not an active member of its organization:
/// banned there, removed, or expired (HD35).
pub fn identify_url(
    snapshot: &Snapshot,
    secret: B256,
    now: Timestamp,
) -> Result<(Arc<User>, Arc<PersonalUrl>), IdentityError> {
    let url = snapshot
        .personal_url(secret)
        .filter(|url| now < url.expires_at)
        .ok_or(IdentityError::Revoked)?;
    let user = snapshot.user(url.user).ok_or(IdentityError::Revoked)?;
    if user.banned {
        return Err(IdentityError::Banned);
    }
    if !snapshot.is_member(user.id, url.org, now) {
        return Err(IdentityError::Revoked);
    }
    if snapshot.is_excluded(user) {
        return Err(IdentityError::TenantNotAllowed);
    }
    if user
        .tokens_valid_from
        .is_some_and(|valid_from| url.created_at < valid_from)
    {
        return Err(IdentityError::Revoked);
    }
    Ok((Arc::clone(user), Arc::clone(url)))
}
