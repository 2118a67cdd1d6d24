use gw_types::{Address, B256, ConvictionId, ExternalId, OrgId, QuarantineId, SuspensionId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A mined transaction whose effects differed from its trace. The transaction and its effects are withheld from all
/// users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedConviction {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: ConvictionId,
    #[schema(value_type = String)]
    pub(crate) tx_hash: B256,
    #[schema(value_type = String)]
    pub(crate) block_hash: B256,
    /// The user who sent it; shown to super, and to administrators of the organization that it was sent under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) external_id: Option<ExternalId>,
    /// The sender's address; super only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) sender: Option<Address>,
    /// The affected organizations that the reader administers. Administrators of all affected organizations may clear
    /// the conviction.
    #[schema(value_type = Vec<String>)]
    pub(crate) wronged_org_ids: Vec<OrgId>,
    /// Whether the reader may clear the conviction.
    pub(crate) clearable: bool,
    /// Why the transaction would have been denied.
    pub(crate) reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

/// A user whose right to send is suspended, because the effects of their transaction, once mined, differed from its
/// trace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedSuspension {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: SuspensionId,
    /// The user; shown to super, and to administrators of the organization that the transaction was sent under.
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

/// An account that a withheld transaction changed, whose earlier state is shown; or an address that is closed because
/// the changes of the transaction are not known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedQuarantine {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: QuarantineId,
    /// The address; shown to super, and to administrators of the contract's organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) address: Option<Address>,
    /// The organization of the contract at the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) org_id: Option<OrgId>,
    /// `withheld`: the address is open, but the changes are hidden. Otherwise the address is closed, to `everybody` or
    /// to the `sender_side`: the sender and the members of the sender's organizations.
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

/// Clears a conviction, suspension or quarantine.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ClearMinedRequest {
    /// The reason, for the audit log; 1 to 500 characters.
    pub(crate) reason: String,
}
