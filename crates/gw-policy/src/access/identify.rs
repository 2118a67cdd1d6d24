//! Who calls: from what a verified token says to the user row (spec/20 A9, A10, J1; spec/10).
//!
//! Signature, expiry and audience of the token are checked by whoever verified it; here only policy is asked.

use super::beside::Beside;
use crate::snapshot::{PersonalUrl, Snapshot, User};
use gw_types::{B256, ExternalId, Timestamp, TokenId};
use std::sync::Arc;

/// Who a call is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No token was presented.
    Anonymous,
    /// A token of this user; the row is looked up again in the snapshot that decides.
    User(Arc<User>),
    /// A personal URL of this user; both rows are looked up again.
    Url(Arc<User>, Arc<PersonalUrl>),
    /// Nobody: an administrator wants to see what would come of a call of this user (HD7).
    Beside(Arc<User>, Beside),
}

impl Caller {
    /// The user it is, if it is one.
    pub fn user(&self) -> Option<&Arc<User>> {
        match self {
            Self::Anonymous => None,
            Self::User(user) | Self::Url(user, _) | Self::Beside(user, _) => Some(user),
        }
    }

    /// Who looks over the user's shoulder.
    pub fn beside(&self) -> Option<Beside> {
        match self {
            Self::Anonymous | Self::User(_) | Self::Url(..) => None,
            Self::Beside(_, beside) => Some(*beside),
        }
    }
}

/// What a verified access token says.
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

/// Why a valid token names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The token, its family, or all older tokens of the user were revoked: 401.
    Revoked,
    /// The subject has no user row: the opaque 404 on `/rpc` (A9).
    UnknownUser,
    /// The account is banned: the opaque 404 on `/rpc` for every method, metadata included (A10).
    Banned,
    /// The directory tenant that vouched for the user is not allowed any more (TK-8); answered like a ban.
    TenantNotAllowed,
}

/// The user behind a verified token.
///
/// A ban is answered before the revocation that comes with it, so that a banned caller always meets A10's 404.
pub fn identify(snapshot: &Snapshot, token: &TokenFacts) -> Result<Arc<User>, Refused> {
    let user = snapshot.user_by_external(&token.subject);
    if user.is_some_and(|user| user.banned) {
        return Err(Refused::Banned);
    }
    if snapshot.revocation(token.token).is_some() || snapshot.revocation(token.session).is_some() {
        return Err(Refused::Revoked);
    }
    let user = user.ok_or(Refused::UnknownUser)?;
    if snapshot.shuts_out(user) {
        return Err(Refused::TenantNotAllowed);
    }
    if user.tokens_valid_from.is_some_and(|from| token.issued_at < from) {
        return Err(Refused::Revoked);
    }
    Ok(Arc::clone(user))
}

/// The user behind a personal URL, by the hash of its secret (HD17). A ban is answered before anything else, as for
/// tokens; a URL that is over, or was made before all the user's tokens ended, is none. Nor is one in an organization
/// where the user is no member now (HD35): banned there, removed, or a member until a time that has come.
pub fn identify_url(
    snapshot: &Snapshot,
    secret: B256,
    now: Timestamp,
) -> Result<(Arc<User>, Arc<PersonalUrl>), Refused> {
    let url = snapshot
        .personal_url(secret)
        .filter(|url| now < url.expires_at)
        .ok_or(Refused::Revoked)?;
    let user = snapshot.user(url.user).ok_or(Refused::Revoked)?;
    if user.banned {
        return Err(Refused::Banned);
    }
    if !snapshot.is_member(user.id, url.org, now) {
        return Err(Refused::Revoked);
    }
    if snapshot.shuts_out(user) {
        return Err(Refused::TenantNotAllowed);
    }
    if user.tokens_valid_from.is_some_and(|from| url.created_at < from) {
        return Err(Refused::Revoked);
    }
    Ok((Arc::clone(user), Arc::clone(url)))
}
