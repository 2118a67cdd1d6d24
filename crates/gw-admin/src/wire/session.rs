use crate::sessions::LoginSession;
use gw_store::record::Login;
use gw_types::{ExternalId, Timestamp};
use serde::Serialize;
use std::net::IpAddr;
use utoipa::ToSchema;
use uuid::Uuid;

/// Logins on their way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionListResponse {
    pub(crate) sessions: Vec<SessionInfoResponse>,
    pub(crate) total: usize,
}

/// A login on its way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionInfoResponse {
    /// A handle that ends the session and polls nothing.
    id: Uuid,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    completed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    completed_at: Option<Timestamp>,
    /// Whether the last proof was refused.
    failed: bool,
    /// Why, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whose login it is, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    did: Option<ExternalId>,
    /// How it was proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// From where it was opened; super only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    client_address: Option<IpAddr>,
}

impl SessionInfoResponse {
    pub(crate) fn new(session: LoginSession, for_super: bool) -> Self {
        Self {
            id: session.id,
            created_at: session.opened_at,
            expires_at: session.expires_at,
            completed: session.completed_at.is_some(),
            completed_at: session.completed_at,
            failed: session.failure.is_some(),
            reason: session.failure,
            did: session.subject,
            provider: session.provider,
            client_address: for_super.then_some(session.client),
        }
    }
}

/// Logins of one user that can still refresh their tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSessionsResponse {
    pub(crate) sessions: Vec<UserSession>,
    pub(crate) total: usize,
}

/// A login of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSession {
    id: Uuid,
    /// How it was proved: `zk`, `directory`, `sp` or `mock`.
    provider: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its newest refresh token ends.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl From<Login> for UserSession {
    fn from(login: Login) -> Self {
        Self {
            id: login.id.0,
            provider: login.amr,
            created_at: login.started,
            expires_at: login.expires_at,
        }
    }
}
