use gw_types::{Address, B256, ConvictionId, ExternalId, OrgId, QuarantineId, SuspensionId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A transaction that did, once mined, what its trace had not shown: it is withheld from everybody, and so is what it changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedConviction {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: ConvictionId,
    #[schema(value_type = String)]
    pub(crate) tx_hash: B256,
    #[schema(value_type = String)]
    pub(crate) block_hash: B256,
    /// Who sent it; for super, and where it was sent under an organization of the reader's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) external_id: Option<ExternalId>,
    /// Its sender; for super only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) sender: Option<Address>,
    /// The organizations whose administrators may clear it together, of those the reader administers.
    #[schema(value_type = Vec<String>)]
    pub(crate) wronged_org_ids: Vec<OrgId>,
    /// Whether the reader may clear what follows from it.
    pub(crate) clearable: bool,
    /// Why the transaction would have been denied.
    pub(crate) reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

/// A person who lost the right to send: a transaction of theirs did, once mined, what its trace had not shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedSuspension {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: SuspensionId,
    /// Whose right; for super, and where it was sent under an organization of the reader's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) external_id: Option<ExternalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) org_id: Option<OrgId>,
    #[schema(value_type = String)]
    pub(crate) tx_hash: B256,
    #[schema(value_type = String)]
    pub(crate) block_hash: B256,
    /// Whether the reader may clear it.
    pub(crate) clearable: bool,
    /// Why the transaction would have been denied.
    pub(crate) reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

/// An account that such a transaction changed: everybody is shown it as before. Or an address that is closed because what the
/// transaction changed cannot be known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedQuarantine {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: QuarantineId,
    /// For super, and where it is a contract of an organization of the reader's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) address: Option<Address>,
    /// The organization of the contract there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) org_id: Option<OrgId>,
    /// `withheld`: nothing is closed, what was changed is not shown. Else `everybody`, or `sender_side`: the sender and the
    /// members of the sender's organizations.
    pub(crate) closed_to: &'static str,
    #[schema(value_type = String)]
    pub(crate) tx_hash: B256,
    #[schema(value_type = String)]
    pub(crate) block_hash: B256,
    /// Whether the reader may clear it.
    pub(crate) clearable: bool,
    /// Why the transaction would have been denied.
    pub(crate) reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

/// Withheld transactions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedConvictionListResponse {
    pub(crate) data: Vec<MinedConviction>,
}

/// People who lost the right to send.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedSuspensionListResponse {
    pub(crate) data: Vec<MinedSuspension>,
}

/// Closed addresses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedQuarantineListResponse {
    pub(crate) data: Vec<MinedQuarantine>,
}

/// Clears a finding.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ClearMinedRequest {
    /// Why, for the audit log; up to 500 characters.
    pub(crate) reason: String,
}
