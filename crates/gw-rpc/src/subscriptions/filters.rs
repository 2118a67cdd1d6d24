//! Filters, which belong to a user in an organization, are kept in this instance and work over any transport; and the
//! calls that create and remove the subscriptions of a connection.

use super::{
    cursor::{LogCursor, Updates},
    membership_basis::MembershipBasis,
};
use crate::{
    call::{AuthorizedCall, CallContext, RpcCall},
    execute,
    outcome::{RpcOutcome, SubscriptionError},
    state::RpcContext,
};
use gw_evm::{Call, Method, SubscriptionCall, SubscriptionId, Topic};
use gw_policy::{Disclosed, view};
use gw_types::{DenyReason, OrgId, Seconds, Timestamp, UserId};
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
    user: UserId,
    org: Option<OrgId>,
}

impl Owner {
    /// The user and the organization of a permit.
    ///
    /// # Errors
    /// The denial of anonymous callers.
    pub(crate) fn for_call(authorized: &AuthorizedCall) -> Result<Self, RpcOutcome> {
        let user = authorized
            .permit()
            .user()
            .ok_or_else(|| authorized.denied(DenyReason::AuthRequired))?;
        Ok(Self {
            user,
            org: authorized.permit().org(),
        })
    }
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

    fn insert(
        &self,
        id: SubscriptionId,
        owner: Owner,
        cursor: LogCursor,
        authorized: &AuthorizedCall,
    ) -> Result<(), SubscriptionError> {
        let now = authorized.now();
        let basis = MembershipBasis::current(authorized.snapshot(), owner.user, owner.org, now);
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
    fn find(
        &self,
        id: Option<SubscriptionId>,
        owner: Owner,
        authorized: &AuthorizedCall,
    ) -> Result<Arc<AsyncMutex<LogCursor>>, SubscriptionError> {
        let mut filters = self.filters();
        let filter = id
            .and_then(|id| filters.get_mut(&id))
            .filter(|filter| filter.is_available_to(owner, authorized));
        let filter = filter.ok_or(SubscriptionError::NoFilter)?;
        filter.used = authorized.now();
        Ok(Arc::clone(&filter.cursor))
    }

    fn remove(&self, id: Option<SubscriptionId>, owner: Owner, authorized: &AuthorizedCall) -> bool {
        let mut filters = self.filters();
        let Some(id) = id else { return false };
        let is_own = filters
            .get(&id)
            .is_some_and(|filter| filter.is_available_to(owner, authorized));
        is_own && filters.remove(&id).is_some()
    }
}

impl Filter {
    fn is_available_to(&self, owner: Owner, authorized: &AuthorizedCall) -> bool {
        self.owner == owner
            && !self.is_idle(authorized.now())
            && self.basis.holds(authorized.snapshot(), owner.user, authorized.now())
    }

    fn is_idle(&self, now: Timestamp) -> bool {
        now > self.used.plus(IDLE)
    }
}

/// Answers a permitted call about filters and subscriptions. A filter belongs to its owner, a subscription to its
/// connection.
pub(crate) async fn answer(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    let Call::Subscription(call) = context.permit().call() else {
        return Err(RpcOutcome::Internal);
    };
    let call = call.clone();
    let (state, request, owner) = (
        context.state(),
        context.request(),
        Owner::for_call(context.authorized())?,
    );
    let message = || {
        request
            .message
            .as_ref()
            .ok_or(RpcOutcome::Subscription(SubscriptionError::NoConnection))
    };
    match call {
        SubscriptionCall::NewFilter(filter) => create(context, owner, Topic::Logs(filter)).await,
        SubscriptionCall::NewBlockFilter => create(context, owner, Topic::Heads).await,
        SubscriptionCall::Changes(id) => {
            let cursor = state
                .filters
                .find(id, owner, context.authorized())
                .map_err(RpcOutcome::Subscription)?;
            let mut cursor = cursor.lock().await;
            Ok(match cursor.poll(&mut context.reads()).await? {
                Updates::Logs(rows) => view::log_array(&rows),
                Updates::Blocks(hashes) => view::local::hashes(&hashes),
            })
        }
        SubscriptionCall::Logs(id) => {
            let cursor = state
                .filters
                .find(id, owner, context.authorized())
                .map_err(RpcOutcome::Subscription)?;
            let topic = cursor.lock().await.topic.clone();
            let Topic::Logs(filter) = topic else {
                return Err(RpcOutcome::Subscription(SubscriptionError::NoFilter));
            };
            let read = RpcCall::for_read(state, request, Method::GetLogs, Call::Logs(filter));
            execute::forward(&mut context.reads().authorize(&read)?).await
        }
        SubscriptionCall::Uninstall(id) => {
            let removed = state.filters.remove(id, owner, context.authorized());
            Ok(if removed { Disclosed::TRUE } else { Disclosed::FALSE })
        }
        SubscriptionCall::Subscribe(topic) => {
            let message = message()?;
            // A caller who may not read the topic gets the denial of that read now.
            LogCursor::underlying_read(state, request, &topic).authorize()?;
            let cursor = LogCursor::begin(&mut context.reads(), topic).await?;
            let id = fresh_id(state);
            message.subscribe(id, cursor).map_err(RpcOutcome::Subscription)?;
            Ok(view::local::live_id(id))
        }
        SubscriptionCall::Unsubscribe(id) => {
            if message()?.unsubscribe(id) {
                Ok(Disclosed::TRUE)
            } else {
                Err(RpcOutcome::Subscription(SubscriptionError::NoSubscription))
            }
        }
    }
}

async fn create(context: &mut CallContext<'_>, owner: Owner, topic: Topic) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    // A caller who may not read the topic gets the denial of that read now.
    LogCursor::underlying_read(state, context.request(), &topic).authorize()?;
    let cursor = LogCursor::begin(&mut context.reads(), topic).await?;
    let id = fresh_id(state);
    state
        .filters
        .insert(id, owner, cursor, context.authorized())
        .map_err(RpcOutcome::Subscription)?;
    Ok(view::local::live_id(id))
}

pub(crate) fn fresh_id(state: &RpcContext) -> SubscriptionId {
    let mut bits = [0; 16];
    state.http.entropy.fill(&mut bits);
    SubscriptionId::new(bits)
}
