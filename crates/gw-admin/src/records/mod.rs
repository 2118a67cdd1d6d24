//! `/logs` and `/audit-logs`: the access log and the audit log.
pub(crate) mod audit_logs;
pub(crate) mod logs;

use crate::{AdminState, error::AdminError, scope::Admin};
use gw_http::{GrowingList, Page, Paged, Position};
use gw_store::{audit::LogPage, read::Scope};
use serde::Serialize;

/// The requested part of a log, which rows are added to while it is read.
struct LogRequest<'a> {
    state: &'a AdminState,
    list: GrowingList,
    page: Page<100>,
    /// What the administrator reads: a cursor continues the list for the same scope only.
    scope: String,
}

impl<'a> LogRequest<'a> {
    fn new(state: &'a AdminState, admin: &Admin, list: GrowingList, page: Page<100>) -> Result<Self, AdminError> {
        let scope = match admin.scope()? {
            Scope::All => "all".to_owned(),
            Scope::Orgs(mut orgs) => {
                orgs.sort_unstable();
                orgs.dedup();
                orgs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        };
        Ok(Self {
            state,
            list,
            page,
            scope,
        })
    }

    /// The position that the page begins after; `None` without a cursor.
    fn after<const N: usize, P>(
        &self,
        position: impl FnOnce(Position<N>) -> Option<P>,
    ) -> Result<Option<P>, AdminError> {
        let Some(numbers) = self.list.after(&self.state.http_context, &self.scope)? else {
            return Ok(None);
        };
        if self.page.offset > 0 {
            return Err(AdminError::bad_request("use cursor OR offset, not both"));
        }
        let position = position(numbers);
        position
            .map(Some)
            .ok_or_else(|| AdminError::bad_request("invalid pagination cursor"))
    }

    /// The page of these rows, and the cursor of the next page.
    fn answer<const N: usize, T, P: Copy, R: Serialize>(
        &self,
        logs: LogPage<T, P>,
        row: impl FnMut(gw_store::audit::LogRow<T>) -> R,
        numbers: impl FnOnce(P) -> Position<N>,
    ) -> (Paged<R>, Option<String>) {
        let LogPage {
            rows,
            positions,
            total,
            remaining,
        } = logs;
        let before = self.page.offset;
        let page = self
            .page
            .answer(rows.into_iter().map(row).collect(), remaining.saturating_add(before));
        let given = page.data.len();
        let last = positions.into_iter().take(given).rev().find_map(|position| position);
        let has_more = u64::try_from(given).is_ok_and(|given| given < remaining);
        let cursor = last
            .filter(|_| has_more)
            .and_then(|position| self.list.next(&self.state.http_context, &self.scope, numbers(position)));
        (Paged { total, ..page }, cursor)
    }
}
