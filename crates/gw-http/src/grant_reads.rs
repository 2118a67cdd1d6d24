//! The records of reads under grants of disclosure (spec/50 rule 39).

use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead};
use gw_journal::{Journal, JournalError};
use gw_policy::visibility::GrantUse;
use std::{borrow::Cow, net::IpAddr};

/// Where the request of a read came from.
#[derive(Clone, Debug, Default)]
pub struct ReadOrigin {
    /// The address of the client.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the request.
    pub correlation_id: Option<Cow<'static, str>>,
}

/// The reads of an answer that needs these grants: of `/rpc`, or of a feed of the explorer.
pub fn feed_reveals(uses: Vec<GrantUse>, origin: &ReadOrigin) -> Vec<DisclosureRead> {
    let reads = uses.into_iter().map(
        |GrantUse {
             grant,
             viewer,
             addresses,
         }| DisclosureRead {
            grant_id: grant.id,
            org_id: Some(grant.org),
            owner_id: grant.owner,
            viewer_id: Some(viewer),
            viewer_external_id: Some(grant.grantee.clone()),
            action: DisclosureAction::FeedReveal,
            data: DisclosureData::Transactions,
            record_count: None,
            first: None,
            last: None,
            methods: grant.scope.methods.as_ref().map(|methods| methods.join(",").into()),
            addresses: addresses.into_iter().collect(),
            ip_address: origin.ip_address,
            correlation_id: origin.correlation_id.clone(),
        },
    );
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
