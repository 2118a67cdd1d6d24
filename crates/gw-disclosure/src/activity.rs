//! The owner's calls that a grant discloses (rules 25 and 34).

use crate::{
    DisclosureState,
    wire::{ActivityLogEntry, ActivitySummary, DateRange},
};
use gw_policy::{
    disclosure::coverage::{activity_methods, check_class},
    disclosure::{ClassCheck, DataClass, coverage::ClassNotCovered},
    snapshot::DisclosureGrant,
};
use gw_store::{
    StoreError,
    audit::{AccessFilter, CallFilter},
    read::{Paging, Scope},
};
use gw_types::{ExternalId, Timestamp};
use std::collections::BTreeMap;

/// A page of the owner's calls, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityPage {
    /// The calls.
    pub calls: Vec<ActivityCall>,
    /// The number of all calls that the grant covers.
    pub total: u64,
}

/// A call of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityCall {
    /// The JSON-RPC method.
    pub method: String,
    /// The status that the owner was told.
    pub status_code: u16,
    /// When it was made.
    pub time: Timestamp,
}

/// Checks that the grant covers activity (rule 25).
///
/// # Errors
/// [`ClassNotCovered`] if it does not.
pub fn check_activity(grant: &DisclosureGrant) -> Result<(), ClassNotCovered> {
    check_class(&grant.scope, DataClass::Activity, ClassCheck::Strict)
}

/// The window of the calls that the grant covers: its lifetime, within the dates of its scope.
fn window(grant: &DisclosureGrant) -> (Timestamp, Timestamp) {
    let (start, end) = grant.scope.dates.unwrap_or((grant.granted_at, grant.expires_at));
    (start.max(grant.granted_at), end.min(grant.expires_at))
}

fn filter(grant: &DisclosureGrant, owner: &ExternalId) -> AccessFilter {
    let (start, end) = window(grant);
    let methods: Vec<String> = activity_methods(&grant.scope).map(str::to_owned).collect();
    AccessFilter {
        external_id: Some(owner.as_str().to_owned()),
        calls: if methods.is_empty() {
            CallFilter::JsonRpc
        } else {
            CallFilter::Methods(methods)
        },
        from: Some(start),
        to: Some(end),
        ..AccessFilter::all(Scope::Orgs(vec![grant.org]))
    }
}

impl DisclosureState {
    /// A page of the calls that the grant covers. A call appears once the sealer has moved its record to the audit
    /// store. A record that was changed there is left out.
    ///
    /// # Errors
    /// Any error of the audit store.
    pub async fn activity(
        &self,
        grant: &DisclosureGrant,
        owner: &ExternalId,
        paging: Paging,
    ) -> Result<ActivityPage, StoreError> {
        let page = self.audit.list_access_logs(&filter(grant, owner), paging).await?;
        let calls = page
            .rows
            .into_iter()
            .filter_map(gw_store::audit::LogRow::entry)
            .map(|log| ActivityCall {
                method: log.record.method.into_owned(),
                status_code: log.record.response_status.unwrap_or(log.record.status_code),
                time: log.created_at,
            });
        Ok(ActivityPage {
            calls: calls.collect(),
            total: page.total,
        })
    }

    /// The calls that the grant covers, in numbers.
    ///
    /// # Errors
    /// Any error of the audit store.
    pub(crate) async fn summary(
        &self,
        grant: &DisclosureGrant,
        owner: &ExternalId,
        now: Timestamp,
    ) -> Result<ActivitySummary, StoreError> {
        let counts = self.audit.count_access_logs(&filter(grant, owner)).await?;
        let (start, end) = window(grant);
        let mut summary = ActivitySummary {
            total_requests: 0,
            successful_count: 0,
            failed_count: 0,
            unique_method_count: 0,
            method_breakdown: BTreeMap::new(),
            date_range: DateRange { start, end },
            generated_at: now,
        };
        for count in counts {
            summary.total_requests += count.count;
            match count.status_code {
                200..=299 => summary.successful_count += count.count,
                400.. => summary.failed_count += count.count,
                _ => {}
            }
            *summary.method_breakdown.entry(count.method).or_default() += count.count;
        }
        summary.unique_method_count = summary.method_breakdown.len() as u64;
        Ok(summary)
    }
}

impl From<ActivityCall> for ActivityLogEntry {
    fn from(call: ActivityCall) -> Self {
        Self {
            method: call.method,
            status_code: call.status_code,
            created_at: call.time,
        }
    }
}
