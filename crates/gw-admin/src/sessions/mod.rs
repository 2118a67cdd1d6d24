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
    fn list(&self) -> SessionFuture<'_, Vec<LoginSession>>;
    /// The session with this id.
    fn find(&self, id: Uuid) -> SessionFuture<'_, Option<LoginSession>>;
    /// Ends a session; returns whether there was one.
    fn end(&self, id: Uuid) -> SessionFuture<'_, bool>;
}

/// The future that methods of [`LoginSessions`] return.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionsUnavailable>> + Send + 'a>>;

/// The session store is not reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the login session store is not reachable")]
pub struct SessionsUnavailable;

/// A login session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSession {
    /// The public id. It can end the session, but not poll it.
    pub id: Uuid,
    /// When the session was opened.
    pub opened_at: Timestamp,
    /// When the session expires.
    pub expires_at: Timestamp,
    /// The client address that opened the session.
    pub client: IpAddr,
    /// When the login was completed.
    pub completed_at: Option<Timestamp>,
    /// The exact reason why the last proof was rejected.
    pub failure: Option<String>,
    /// The user that the proof names; `None` without a proof.
    pub subject: Option<ExternalId>,
    /// The login provider of the proof.
    pub provider: Option<String>,
}
