//! Events of disclosures (spec/50 rule 39): what happened to a request or a grant, and each read under a grant.

use crate::code::codes;
use gw_types::{Address, DisclosureGrantId, ExternalId, OrgId, Timestamp, UserId};
use std::borrow::Cow;
use std::net::IpAddr;

codes! {
    /// The kind of event. A [`DisclosureRead`] holds a read; the audit entries of requests and grants hold the others.
    DisclosureAction {
        /// The grantee read calls of the owner.
        ViewLogs = "view_logs",
        /// The grantee read transactions.
        ViewTransactions = "view_transactions",
        /// The grantee read a summary.
        ViewSummary = "view_summary",
        /// The grantee read a report.
        ExportReport = "export_report",
        /// The grantee listed the disclosed addresses.
        ViewAddresses = "view_addresses",
        /// The grantee resolved the id of an address.
        Resolve = "resolve",
        /// An answer of `/rpc` or a feed of the explorer showed something that only the grant discloses.
        FeedReveal = "feed_reveal",
        /// An administrator created the request.
        Requested = "requested",
        /// The owner approved the request.
        Approved = "approved",
        /// The owner rejected the request.
        Rejected = "rejected",
        /// The grant was revoked.
        Revoked = "revoked",
        /// The request or the grant ended.
        Expired = "expired",
        /// An administrator deleted the request.
        Deleted = "deleted",
    }
}

impl DisclosureAction {
    /// Whether the event is a read, not a state transition.
    pub const fn is_read(self) -> bool {
        match self {
            Self::ViewLogs
            | Self::ViewTransactions
            | Self::ViewSummary
            | Self::ExportReport
            | Self::ViewAddresses
            | Self::Resolve
            | Self::FeedReveal => true,
            Self::Requested | Self::Approved | Self::Rejected | Self::Revoked | Self::Expired | Self::Deleted => false,
        }
    }
}

codes! {
    /// What a read returned (`Event.resource_type`).
    DisclosureData {
        /// Calls of the owner.
        AccessLogs = "access_logs",
        /// Transactions.
        Transactions = "transactions",
        /// A summary.
        Summary = "summary",
        /// A report.
        Report = "report",
        /// Disclosed addresses.
        Addresses = "addresses",
    }
}

/// A read under a grant of disclosure. It is in the journal before its answer leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureRead {
    /// The grant.
    pub grant_id: DisclosureGrantId,
    /// The organization of the grant.
    pub org_id: Option<OrgId>,
    /// The user whose data was read.
    pub owner_id: UserId,
    /// The user who read it.
    pub viewer_id: Option<UserId>,
    /// The DID of the user who read it. Personal.
    pub viewer_external_id: Option<ExternalId>,
    /// The kind of read.
    pub action: DisclosureAction,
    /// What was returned.
    pub data: DisclosureData,
    /// The number of returned rows.
    pub record_count: Option<u64>,
    /// The time of the oldest returned row.
    pub first: Option<Timestamp>,
    /// The time of the newest returned row.
    pub last: Option<Timestamp>,
    /// The methods to which the read was limited, separated by commas.
    pub methods: Option<Cow<'static, str>>,
    /// The addresses of the owner that were read. Personal.
    pub addresses: Vec<Address>,
    /// The IP address of the request. Personal.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the request.
    pub correlation_id: Option<Cow<'static, str>>,
}
