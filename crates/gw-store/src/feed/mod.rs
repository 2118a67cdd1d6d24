//! The newest snapshot, and whether it is fresh (HD23, HD21).
//!
//! One worker per feed asks for the head, applies what changed and publishes; it is woken by this instance's own
//! commits, by PostgreSQL's notifications and by a poll that never stops. Callers only read.
//!
//! Invariant: [`Feed::pin`] says `fresh` only if, by the boot-time clock, the head was asked for less than
//! [`FeedTiming::stale_after`] before and the answer was the pinned epoch or an older one; anything that does not
//! fit (a gap, a lower head, an unknown entity, a replica, clocks apart) is stale until a full load succeeded.

mod boot;
mod clock;
mod listen;
pub mod rules;
mod worker;

use crate::{Store, StoreError, snapshot};
use arc_swap::ArcSwap;
use gw_policy::Snapshot;
use gw_types::Epoch;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};

pub use boot::{BootClock, Uptime};
pub use clock::FeedClock;

/// How often the feed looks and how long it trusts what it saw.
#[derive(Clone, Copy, Debug)]
pub struct FeedTiming {
    /// An unconfirmed head makes the snapshot stale after this long.
    pub stale_after: Duration,
    /// Poll while LISTEN works: a safety net.
    pub poll_listening: Duration,
    /// Poll without it, and on SQLite.
    pub poll_alone: Duration,
    /// A longer distance between our clock and the database's is stale (E-5).
    pub max_skew: Duration,
}

impl Default for FeedTiming {
    fn default() -> Self {
        Self {
            stale_after: Duration::from_secs(2),
            poll_listening: Duration::from_secs(1),
            poll_alone: Duration::from_millis(200),
            max_skew: Duration::from_secs(1),
        }
    }
}

/// The newest snapshot of one instance; cheap to clone. Its worker ends with the last clone.
#[derive(Clone, Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    _worker: Option<Arc<worker::Running>>,
}

/// A snapshot taken for one call (HD20: never held longer), and whether it may be trusted now.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// Whether anything but metadata may be served from it.
    pub fresh: bool,
}

/// What readers and the worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    current: ArcSwap<Snapshot>,
    /// When the query that confirmed the head was sent, in nanoseconds of uptime; 0: not confirmed.
    confirmed: AtomicU64,
    /// The epoch that is applied, for those who wait for one.
    applied: watch::Sender<Epoch>,
    /// Asks the worker to look now.
    look: Notify,
    /// Whether the database's notifications are known to arrive.
    listening: AtomicBool,
    uptime: Arc<dyn Uptime>,
    clock: FeedClock,
    timing: FeedTiming,
}

impl Feed {
    /// Loads all policy and keeps it current from then on.
    pub async fn start(store: &Store, timing: FeedTiming, uptime: Arc<dyn Uptime>) -> Result<Self, StoreError> {
        let clock = FeedClock::new(Arc::clone(&store.inner.config.clock));
        let sent = uptime.now();
        let (snapshot, head) = snapshot::load(&store.inner.pools).await?;
        let shared = Arc::new(Shared {
            applied: watch::Sender::new(snapshot.epoch()),
            current: ArcSwap::from_pointee(snapshot),
            confirmed: AtomicU64::new(0),
            look: Notify::new(),
            listening: AtomicBool::new(false),
            uptime,
            clock,
            timing,
        });
        shared.confirm(sent, head.at);
        store.attach(Arc::downgrade(&shared));
        let worker = worker::start(&shared, store, head.stamp);
        Ok(Self { shared, _worker: Some(Arc::new(worker)) })
    }

    /// The feed without its worker's life, for the store that announces commits.
    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self { shared, _worker: None }
    }

    /// The newest snapshot.
    pub fn pin(&self) -> Pinned {
        // In this order: a snapshot may be newer than what was confirmed, never older.
        let confirmed = self.shared.confirmed.load(Ordering::Acquire);
        let snapshot = self.shared.current.load_full();
        let (now, stale_after) = (nanos(self.shared.uptime.now()), nanos(self.shared.timing.stale_after));
        Pinned { snapshot, fresh: rules::is_fresh(confirmed, now, stale_after) }
    }

    /// The newest epoch applied here.
    pub fn epoch(&self) -> Epoch {
        *self.shared.applied.borrow()
    }

    /// Waits until this instance has applied `epoch`; gives up after the time it trusts a head. It is stale by then.
    pub async fn catch_up_to(&self, epoch: Epoch) {
        let mut applied = self.shared.applied.subscribe();
        self.shared.look.notify_one();
        let reached = applied.wait_for(|applied| *applied >= epoch);
        if !matches!(tokio::time::timeout(self.shared.timing.stale_after, reached).await, Ok(Ok(_))) {
            self.shared.doubt();
        }
    }

    /// Waits for the next epoch to be applied here; for streams that end with a right (HD18 WS-6).
    pub async fn changed_since(&self, epoch: Epoch) -> Epoch {
        let mut applied = self.shared.applied.subscribe();
        match applied.wait_for(|applied| *applied != epoch).await {
            Ok(applied) => *applied,
            // The sender lives as long as this feed.
            Err(_) => epoch,
        }
    }

    /// The time for decisions: the later of our clock and the database's, never decreasing (E-5).
    pub fn clock(&self) -> FeedClock {
        self.shared.clock.clone()
    }
}

impl Shared {
    /// Publishes a snapshot.
    fn publish(&self, snapshot: Snapshot) {
        let epoch = snapshot.epoch();
        self.current.store(Arc::new(snapshot));
        self.applied.send_replace(epoch);
    }

    /// Notes that a query sent at `sent` found the published epoch to be the head.
    fn confirm(&self, sent: Duration, database_time: Option<gw_types::Timestamp>) {
        let waited = self.uptime.now().saturating_sub(sent);
        if self.clock.observe(database_time, waited) > self.timing.max_skew {
            tracing::warn!("policy is stale: the database's clock and ours are too far apart");
            self.doubt();
        } else {
            self.confirmed.store(nanos(sent).max(1), Ordering::Release);
        }
    }

    /// Nothing but a new confirmation makes the snapshot fresh again.
    fn doubt(&self) {
        self.confirmed.store(0, Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
