//! Refresh tokens of record (spec/10 section 4): only their SHA-256 is stored (TK-3).

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
    /// The login: the first family it made. The wallet's family, the page's and those of applications are of one login.
    pub login: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// How the login was proved (`amr`).
    pub amr: String,
    /// When the family's login took place; bounds the family's life (TK-5).
    pub family_started: Timestamp,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it was exchanged for its successor.
    pub used_at: Option<Timestamp>,
}

/// What makes a refresh token.
#[derive(Clone, Debug)]
pub struct NewRefreshToken {
    /// SHA-256 of the token.
    pub hash: TokenHash,
    /// The token's `jti`.
    pub id: TokenId,
    /// The family.
    pub family: SessionId,
    /// The login: the first family it made.
    pub login: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// How the login was proved.
    pub amr: String,
    /// When the family's login took place.
    pub family_started: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// For which application of ours a login was started silently (spec/10 OA-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application<'a> {
    /// Its client id.
    pub client: &'a str,
    /// SHA-256 of the address its code is sent to.
    pub redirect: [u8; 32],
}

/// What became of an attempt to exchange a refresh token (TK-4, TK-5). Only [`Rotation::Done`] stored a successor;
/// after [`Rotation::Reused`] the login is dead, and the transaction is to be committed nevertheless.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The old token is used up and the successor stored.
    Done,
    /// No such token, or its family was revoked.
    Unknown,
    /// It is past its end, or its family is.
    Expired,
    /// It was used moments ago: a parallel refresh, refused without further ado.
    JustUsed,
    /// It was used before: somebody has a copy, so the whole login is dead now, with all it made (HD35).
    Reused,
}

/// A login on its way, for the entry of who ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingLogin {
    /// Its id.
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Whether its proof had come.
    pub completed: bool,
}

/// A token family, for the list of a user's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The family (`sid`).
    pub id: SessionId,
    /// The login: the first family it made.
    pub login: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// How the login was proved.
    pub amr: String,
    /// When the login took place.
    pub started: Timestamp,
    /// When its newest token ends.
    pub expires_at: Timestamp,
}

/// A login, for the list of a user's sessions: one row whatever it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its id: the first family it made.
    pub id: SessionId,
    /// How it was proved.
    pub amr: String,
    /// When it took place.
    pub started: Timestamp,
    /// When the newest of its refresh tokens ends.
    pub expires_at: Timestamp,
}

/// What becomes of the personal URLs that a login made when it ends (HD35).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginUrls {
    /// They end with it.
    End,
    /// They stay until they end by themselves: their owner said so.
    Keep,
}
