use crate::sessions::LoginSession;
use gw_store::record::Login;
use gw_types::{ExternalId, Timestamp};
use serde::Serialize;
use std::net::IpAddr;
use utoipa::ToSchema;
use uuid::Uuid;

/// A page of login sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionListResponse {
    pub(crate) sessions: Vec<SessionInfoResponse>,
    pub(crate) total: usize,
}

/// A login session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionInfoResponse {
    /// The public id. It can end the session, but not poll it.
    id: Uuid,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    completed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    completed_at: Option<Timestamp>,
    /// Whether the last proof was rejected.
    failed: bool,
    /// The exact reason why the last proof was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The user that the proof names; absent without a proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    did: Option<ExternalId>,
    /// The login provider of the proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// The client address that opened the session; super only.
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

/// A completed login of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSession {
    id: Uuid,
    /// The login provider: `zk`, `directory`, `sp` or `mock`.
    provider: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When the newest refresh token expires.
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
