use gw_audit::Stream;
use gw_store::record::{self, HoldScope};
use gw_types::{LegalHoldId, OrgId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A hold that keeps entries of the audit log from being pruned or erased.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LegalHold {
    #[schema(value_type = String, format = Uuid)]
    id: LegalHoldId,
    /// The organization whose entries are held, in all streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    org_id: Option<OrgId>,
    /// The stream whose entries are held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    stream: Option<Stream>,
    reason: String,
    /// The DID of the administrator who placed the hold, or the name of a token.
    placed_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<record::LegalHold> for LegalHold {
    fn from(row: record::LegalHold) -> Self {
        let record::LegalHold {
            id,
            scope,
            reason,
            placed_by,
            created_at,
        } = row;
        let (org_id, stream) = match scope {
            HoldScope::Organization(org) => (Some(org), None),
            HoldScope::Stream(stream) => (None, Some(stream)),
        };
        Self {
            id,
            org_id,
            stream,
            reason,
            placed_by,
            created_at,
        }
    }
}

/// A legal hold to place, on an organization or on a stream.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct LegalHoldRequest {
    #[schema(format = Uuid)]
    pub(crate) org_id: Option<String>,
    /// `admin`, `access`, `compliance`, `disclosure` or `security`.
    pub(crate) stream: Option<String>,
    /// The reason, for the audit log; 1 to 500 characters.
    pub(crate) reason: String,
}

/// Lifts a legal hold.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct LiftHoldRequest {
    /// The reason, for the audit log; 1 to 500 characters.
    pub(crate) reason: String,
}
