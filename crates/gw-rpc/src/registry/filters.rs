//! The filters of this instance. A filter belongs to a user in an organization, and works over any transport.

use super::{LogCursor, MembershipBasis};
use crate::outcome::SubscriptionError;
use gw_evm::SubscriptionId;
use gw_policy::Snapshot;
use gw_types::{OrgId, Seconds, Timestamp, UserId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Mutex as AsyncMutex;

/// The most filters of one user, in all organizations; the error message contains this number.
const PER_USER: usize = 32;
/// The most filters of one instance.
const PER_INSTANCE: usize = 8192;
/// A filter that is not polled for this long is removed, as in geth.
const IDLE: Seconds = Seconds(300);

/// The owner of a filter or a subscription. For other callers it does not exist (WS-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: UserId,
    pub(crate) org: Option<OrgId>,
}

/// All filters of this instance.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<HashMap<SubscriptionId, Filter>>);

#[derive(Debug)]
struct Filter {
    owner: Owner,
    basis: MembershipBasis,
    used: Timestamp,
    /// Each poll locks the cursor, because it begins where the previous one ended.
    cursor: Arc<AsyncMutex<LogCursor>>,
}

impl Filters {
    fn filters(&self) -> MutexGuard<'_, HashMap<SubscriptionId, Filter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a filter of the owner.
    ///
    /// # Errors
    /// [`SubscriptionError::TooManyFilters`] if the owner or the instance has the most filters.
    pub(crate) fn insert(
        &self,
        id: SubscriptionId,
        owner: Owner,
        cursor: LogCursor,
        (snapshot, now): (&Snapshot, Timestamp),
    ) -> Result<(), SubscriptionError> {
        let basis = MembershipBasis::current(snapshot, owner.user, owner.org, now);
        let mut filters = self.filters();
        filters.retain(|_, filter| !filter.is_idle(now));
        let own_count = filters
            .values()
            .filter(|filter| filter.owner.user == owner.user)
            .count();
        if own_count >= PER_USER || filters.len() >= PER_INSTANCE {
            return Err(SubscriptionError::TooManyFilters);
        }
        filters.insert(
            id,
            Filter {
                owner,
                basis,
                used: now,
                cursor: Arc::new(AsyncMutex::new(cursor)),
            },
        );
        Ok(())
    }

    /// The caller's filter of this id.
    ///
    /// # Errors
    /// [`SubscriptionError::NoFilter`] for a filter that is unknown, another caller's, expired, or whose membership has
    /// ended.
    pub(crate) fn find(
        &self,
        id: Option<SubscriptionId>,
        owner: Owner,
        (snapshot, now): (&Snapshot, Timestamp),
    ) -> Result<Arc<AsyncMutex<LogCursor>>, SubscriptionError> {
        let mut filters = self.filters();
        let filter = id
            .and_then(|id| filters.get_mut(&id))
            .filter(|filter| filter.is_available_to(owner, snapshot, now));
        let filter = filter.ok_or(SubscriptionError::NoFilter)?;
        filter.used = now;
        Ok(Arc::clone(&filter.cursor))
    }

    /// Removes the caller's filter of this id. Returns whether there was one.
    pub(crate) fn remove(
        &self,
        id: Option<SubscriptionId>,
        owner: Owner,
        (snapshot, now): (&Snapshot, Timestamp),
    ) -> bool {
        let mut filters = self.filters();
        let Some(id) = id else { return false };
        let is_own = filters
            .get(&id)
            .is_some_and(|filter| filter.is_available_to(owner, snapshot, now));
        is_own && filters.remove(&id).is_some()
    }
}

impl Filter {
    fn is_available_to(&self, owner: Owner, snapshot: &Snapshot, now: Timestamp) -> bool {
        self.owner == owner && !self.is_idle(now) && self.basis.holds(snapshot, owner.user, now)
    }

    fn is_idle(&self, now: Timestamp) -> bool {
        now > self.used.plus(IDLE)
    }
}
