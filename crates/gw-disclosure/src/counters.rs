//! Numbers for the reminders of owners and administrators: what waits for a decision, and what ends soon.

use crate::wire::DisclosureCounters;
use gw_policy::disclosure::{GrantStatus, RequestStatus};
use gw_store::{
    Queries, StoreError,
    read::{DisclosureFilter, Paging},
};
use gw_types::Seconds;

/// A grant that ends within this time is reminded of.
const SOON: Seconds = Seconds(7 * 86_400);
const NO_ROWS: Paging = Paging { limit: 0, offset: 0 };

/// Counts the requests and grants of a filter.
///
/// # Errors
/// Any error of the store.
pub(crate) async fn count(reads: &Queries<'_>, filter: DisclosureFilter) -> Result<DisclosureCounters, StoreError> {
    let pending = DisclosureFilter {
        request_status: Some(RequestStatus::Pending),
        ..filter.clone()
    };
    let active = DisclosureFilter {
        grant_status: Some(GrantStatus::Active),
        ..filter
    };
    let ending = DisclosureFilter {
        ends_before: Some(reads.now().plus(SOON)),
        ..active.clone()
    };
    Ok(DisclosureCounters {
        pending_requests: reads.list_disclosure_requests(&pending, NO_ROWS).await?.total,
        active_grants: reads.list_disclosure_grants(&active, NO_ROWS).await?.total,
        grants_ending_soon: reads.list_disclosure_grants(&ending, NO_ROWS).await?.total,
    })
}
