//! Stored refresh tokens (spec/10 section 4): only their SHA-256 is stored (TK-3).

use gw_types::{SessionId, Timestamp, TokenId, UserId};
use uuid::Uuid;

/// SHA-256 of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

/// A stored refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshToken {
    /// SHA-256 of the token.
    pub hash: TokenHash,
    /// The token's `jti`.
    pub id: TokenId,
    /// The family (`sid`): a first token and all its refreshes.
    pub family: SessionId,
    /// The login: the first family it created. The families of the wallet, the page and applications share one login.
    pub login: SessionId,
    /// The owner.
    pub user: UserId,
    /// How the login was proved (`amr`).
    pub amr: String,
    /// When the family's login took place; limits the family's lifetime (TK-5).
    pub family_started: Timestamp,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was exchanged for its successor.
    pub used_at: Option<Timestamp>,
}

/// Input for creating a refresh token.
#[derive(Clone, Debug)]
pub struct NewRefreshToken {
    /// SHA-256 of the token.
    pub hash: TokenHash,
    /// The token's `jti`.
    pub id: TokenId,
    /// The family.
    pub family: SessionId,
    /// The login: the first family it created.
    pub login: SessionId,
    /// The owner.
    pub user: UserId,
    /// How the login was proved.
    pub amr: String,
    /// When the family's login took place.
    pub family_started: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The own application for which a login was started silently (spec/10 OA-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application<'a> {
    /// Its client id.
    pub client: &'a str,
    /// SHA-256 of the redirect URI that receives the code.
    pub redirect: [u8; 32],
}

/// Result of exchanging a refresh token (TK-4, TK-5). Only [`Rotation::Done`] stored a successor; after
/// [`Rotation::Reused`] the login is revoked, and the transaction must be committed nevertheless.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The old token is used up and the successor stored.
    Done,
    /// No such token, or its family was revoked.
    Unknown,
    /// The token or its family has expired.
    Expired,
    /// The token was used moments ago: a parallel refresh, rejected without further consequences.
    JustUsed,
    /// The token was used before: a copy exists, so the whole login is revoked with everything it created (HD35).
    Reused,
}

/// A pending login, for the audit entry about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingLogin {
    /// Its id.
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Whether its proof had arrived.
    pub completed: bool,
}

/// A token family, for the list of a user's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The family (`sid`).
    pub id: SessionId,
    /// The login: the first family it created.
    pub login: SessionId,
    /// The owner.
    pub user: UserId,
    /// How the login was proved.
    pub amr: String,
    /// When the login took place.
    pub started: Timestamp,
    /// When its newest token expires.
    pub expires_at: Timestamp,
}

/// A login, for the list of a user's sessions: one row, even if it created several families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its id: the first family it created.
    pub id: SessionId,
    /// How it was proved.
    pub amr: String,
    /// When it took place.
    pub started: Timestamp,
    /// When the newest of its refresh tokens expires.
    pub expires_at: Timestamp,
}

/// What happens to the personal URLs that a login created when it ends (HD35).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginUrls {
    /// They end with it.
    End,
    /// They stay until they expire, as their owner chose.
    Keep,
}
