//! The records of reads under grants of disclosure (spec/50 rule 39).

use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead};
use gw_journal::{Journal, JournalError};
use gw_policy::{snapshot::DisclosureGrant, visibility::GrantUse};
use gw_types::UserId;
use std::{borrow::Cow, net::IpAddr};

/// Where the request of a read came from.
#[derive(Clone, Debug, Default)]
pub struct ReadOrigin {
    /// The address of the client.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the request.
    pub correlation_id: Option<Cow<'static, str>>,
}

/// The record of a read under a grant by its grantee, whose user row is `viewer`; without what it returned.
pub fn grant_read(
    grant: &DisclosureGrant,
    viewer: UserId,
    action: DisclosureAction,
    data: DisclosureData,
    origin: ReadOrigin,
) -> DisclosureRead {
    DisclosureRead {
        grant_id: grant.id,
        org_id: Some(grant.org),
        owner_id: grant.owner,
        viewer_id: Some(viewer),
        viewer_external_id: Some(grant.grantee.clone()),
        action,
        data,
        record_count: None,
        first: None,
        last: None,
        methods: grant.scope.methods.as_ref().map(|methods| methods.join(",").into()),
        addresses: Vec::new(),
        ip_address: origin.ip_address,
        correlation_id: origin.correlation_id,
    }
}

/// The reads of an answer that needs these grants: of `/rpc`, or of a feed of the explorer.
pub fn feed_reveals(uses: Vec<GrantUse>, origin: &ReadOrigin) -> Vec<DisclosureRead> {
    let (action, data) = (DisclosureAction::FeedReveal, DisclosureData::Transactions);
    let reads = uses.into_iter().map(|shown| DisclosureRead {
        addresses: shown.addresses.into_iter().collect(),
        ..grant_read(&shown.grant, shown.viewer, action, data, origin.clone())
    });
    reads.collect()
}

/// Journals reads, and waits until they are on disk.
///
/// # Errors
/// [`JournalError`] if they are not known to be durable: the answer must not leave.
pub async fn journal_reads(journal: &Journal, reads: Vec<DisclosureRead>) -> Result<(), JournalError> {
    let mut last = None;
    for read in reads {
        last = Some(journal.append(read)?);
    }
    match last {
        // The journal is written in order, so what precedes is on disk, too.
        Some(position) => journal.durable(position).await,
        None => Ok(()),
    }
}
