//! Filters: made, polled and ended over any transport, kept for (user, organization) in this instance. Subscriptions
//! come by here, too, on their way to their connection.

use super::{
    membership_basis::MembershipBasis,
    stream::{News, Stream},
};
use crate::{
    execute,
    question::{Asked, Judged},
    record::Found,
    reply::{LiveFault, Reply},
    state::Inner,
};
use gw_evm::{Call, Live, LiveId, Method, Topic};
use gw_policy::{Disclosed, view};
use gw_types::{DenyReason, OrgId, Seconds, Timestamp, UserId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Mutex as Turn;

/// The most filters of one user, in all organizations; the message of the fault says so.
const PER_USER: usize = 32;
/// The most filters of one instance.
const IN_ALL: usize = 8192;
/// A filter that is not asked for so long is gone, as with geth.
const IDLE: Seconds = Seconds(300);

/// Whose a filter or a subscription is: it does not exist for anybody else (WS-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    user: UserId,
    org: Option<OrgId>,
}

impl Owner {
    /// Whoever the permit was for.
    pub(crate) fn of(judged: &Judged) -> Result<Self, Reply> {
        let user = judged
            .permit
            .user()
            .ok_or_else(|| judged.denied(DenyReason::AuthRequired))?;
        Ok(Self {
            user,
            org: judged.permit.org(),
        })
    }
}

/// All filters of this instance.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<HashMap<LiveId, Filter>>);

#[derive(Debug)]
struct Filter {
    owner: Owner,
    basis: MembershipBasis,
    used: Timestamp,
    /// One poll at a time: each tells of the blocks after the one before.
    stream: Arc<Turn<Stream>>,
}

impl Filters {
    fn known(&self) -> MutexGuard<'_, HashMap<LiveId, Filter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, id: LiveId, owner: Owner, stream: Stream, judged: &Judged) -> Result<(), LiveFault> {
        let now = judged.now;
        let basis = MembershipBasis::of(&judged.snapshot, owner.user, owner.org, now);
        let mut known = self.known();
        known.retain(|_, filter| !filter.is_idle(now));
        let own = known.values().filter(|filter| filter.owner.user == owner.user).count();
        if own >= PER_USER || known.len() >= IN_ALL {
            return Err(LiveFault::TooManyFilters);
        }
        known.insert(
            id,
            Filter {
                owner,
                basis,
                used: now,
                stream: Arc::new(Turn::new(stream)),
            },
        );
        Ok(())
    }

    /// The caller's own filter of this name. Foreign, expired, unknown, and made on a membership that is over, are one.
    fn find(&self, id: Option<LiveId>, owner: Owner, judged: &Judged) -> Result<Arc<Turn<Stream>>, LiveFault> {
        let mut known = self.known();
        let filter = id
            .and_then(|id| known.get_mut(&id))
            .filter(|filter| filter.is_of(owner, judged));
        let filter = filter.ok_or(LiveFault::NoFilter)?;
        filter.used = judged.now;
        Ok(Arc::clone(&filter.stream))
    }

    fn remove(&self, id: Option<LiveId>, owner: Owner, judged: &Judged) -> bool {
        let mut known = self.known();
        let Some(id) = id else { return false };
        let is_own = known.get(&id).is_some_and(|filter| filter.is_of(owner, judged));
        is_own && known.remove(&id).is_some()
    }
}

impl Filter {
    fn is_of(&self, owner: Owner, judged: &Judged) -> bool {
        self.owner == owner && !self.is_idle(judged.now) && self.basis.holds(&judged.snapshot, owner.user, judged.now)
    }

    fn is_idle(&self, now: Timestamp) -> bool {
        now > self.used.plus(IDLE)
    }
}

/// A permitted call of class LIVE. Filters are their owner's, subscriptions their connection's.
pub(crate) async fn answer(asked: &Asked, judged: &Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    let Call::Live(live) = judged.permit.call() else {
        return Err(Reply::Internal);
    };
    let (state, owner) = (asked.state(), Owner::of(judged)?);
    match live {
        Live::NewFilter(filter) => create(asked, judged, owner, Topic::Logs(filter.clone()), found).await,
        Live::NewBlockFilter => create(asked, judged, owner, Topic::Heads, found).await,
        Live::Changes(id) => {
            let stream = state.filters.find(*id, owner, judged).map_err(Reply::Live)?;
            let mut stream = stream.lock().await;
            Ok(match stream.look(state, asked.origin(), found).await? {
                News::Logs(rows) => view::listed(&rows),
                News::Blocks(hashes) => view::local::hashes(&hashes),
            })
        }
        Live::Logs(id) => {
            let stream = state.filters.find(*id, owner, judged).map_err(Reply::Live)?;
            let topic = stream.lock().await.topic.clone();
            let Topic::Logs(filter) = topic else {
                return Err(Reply::Live(LiveFault::NoFilter));
            };
            let asked = Asked::reading(state, asked.origin(), Method::GetLogs, Call::Logs(filter));
            let judged = asked.judge()?;
            execute::forward(&asked, judged, found).await
        }
        Live::Uninstall(id) => {
            let removed = state.filters.remove(*id, owner, judged);
            Ok(if removed { Disclosed::TRUE } else { Disclosed::FALSE })
        }
        Live::Subscribe(topic) => {
            let message = asked
                .origin()
                .message
                .as_ref()
                .ok_or(Reply::Live(LiveFault::NoConnection))?;
            // Whoever may not read it is told so now, in the words of the read.
            Stream::question(state, asked.origin(), topic).judge()?;
            let stream = Stream::begin(state, topic.clone(), found).await?;
            let id = fresh_id(state);
            message.subscribe(id, stream).map_err(Reply::Live)?;
            Ok(view::local::live_id(id))
        }
        Live::Unsubscribe(id) => {
            let message = asked
                .origin()
                .message
                .as_ref()
                .ok_or(Reply::Live(LiveFault::NoConnection))?;
            if message.unsubscribe(*id) {
                Ok(Disclosed::TRUE)
            } else {
                Err(Reply::Live(LiveFault::NoSubscription))
            }
        }
    }
}

async fn create(
    asked: &Asked,
    judged: &Judged,
    owner: Owner,
    topic: Topic,
    found: &mut Found,
) -> Result<Disclosed, Reply> {
    let state = asked.state();
    // Whoever may not read it is told so now, in the words of the read.
    Stream::question(state, asked.origin(), &topic).judge()?;
    let stream = Stream::begin(state, topic, found).await?;
    let id = fresh_id(state);
    state.filters.insert(id, owner, stream, judged).map_err(Reply::Live)?;
    Ok(view::local::live_id(id))
}

pub(crate) fn fresh_id(state: &Inner) -> LiveId {
    let mut bits = [0; 16];
    state.edge.entropy.fill(&mut bits);
    LiveId::new(bits)
}
