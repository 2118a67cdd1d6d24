//! `/sessions`: pending and recent login sessions (decision 22; spec/80 §11).
//!
//! Super sees all of them, an administrator the sessions of users of their organizations. Tokens, secrets and requests
//! stay in the session store and never reach this crate.

pub(crate) mod delete;
pub(crate) mod list;

use gw_types::{ExternalId, Timestamp};
use std::{net::IpAddr, pin::Pin};
use uuid::Uuid;

/// The login session store; the server implements it.
pub trait LoginSessions: Send + Sync + core::fmt::Debug {
    /// All sessions, the next to expire first.
    fn list(&self) -> Answer<'_, Vec<LoginSession>>;
    /// The session with this id.
    fn find(&self, id: Uuid) -> Answer<'_, Option<LoginSession>>;
    /// Ends a session; returns whether there was one.
    fn end(&self, id: Uuid) -> Answer<'_, bool>;
}

/// The future that methods of [`LoginSessions`] return.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionsAway>> + Send + 'a>>;

/// The session store is not reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the login session store is not reachable")]
pub struct SessionsAway;

/// A login session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSession {
    /// The public id, which ends the session and polls nothing.
    pub id: Uuid,
    /// When the session was opened.
    pub opened_at: Timestamp,
    /// When the session expires.
    pub expires_at: Timestamp,
    /// The client address that opened the session.
    pub client: IpAddr,
    /// When the login was completed.
    pub completed_at: Option<Timestamp>,
    /// The exact reason why the last proof was refused.
    pub failure: Option<String>,
    /// The user, if a proof has named them.
    pub subject: Option<ExternalId>,
    /// The login provider of the proof.
    pub provider: Option<String>,
}
