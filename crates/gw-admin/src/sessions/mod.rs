//! `/sessions`: logins on their way (decision 22; spec/80 §11).
//!
//! Super sees all of them; an administrator those of users of own organizations. Tokens, secrets and requests never
//! come here: they stay with whoever keeps the sessions.

pub(crate) mod delete;
pub(crate) mod list;

use gw_types::{ExternalId, Timestamp};
use std::{net::IpAddr, pin::Pin};
use uuid::Uuid;

/// Where login sessions are; wired to who keeps them.
pub trait LoginSessions: Send + Sync + core::fmt::Debug {
    /// All of them, the next to end first.
    fn list(&self) -> Answer<'_, Vec<LoginSession>>;
    /// One of them.
    fn find(&self, id: Uuid) -> Answer<'_, Option<LoginSession>>;
    /// Ends one; says whether there was one.
    fn end(&self, id: Uuid) -> Answer<'_, bool>;
}

/// What comes back from [`LoginSessions`].
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionsAway>> + Send + 'a>>;

/// The sessions cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the login sessions cannot be reached")]
pub struct SessionsAway;

/// A login on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSession {
    /// Its id.
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// From where it was opened.
    pub client: IpAddr,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// Why its last proof was refused, exactly.
    pub failure: Option<String>,
    /// Whose it is, if that is known.
    pub subject: Option<ExternalId>,
    /// How it was proved.
    pub provider: Option<String>,
}
