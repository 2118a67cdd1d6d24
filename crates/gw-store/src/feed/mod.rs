//! The newest snapshot, and whether it is fresh (HD23, HD21).
//!
//! One worker per feed reads the head, applies changes and publishes; it is woken by this instance's own commits, by
//! PostgreSQL's notifications and by a poll that never stops. Callers only read.
//!
//! Invariant: [`Feed::pin`] returns `fresh` only if, by the boot-time clock, the head was read less than
//! [`FeedTiming::stale_after`] ago and was the pinned epoch or an older one; any inconsistency (a gap, a lower head, an
//! unknown entity, a replica, clocks apart) makes the snapshot stale until a full load succeeds.

mod boot;
mod clock;
mod listen;
pub mod rules;
mod worker;

use crate::{
    Store, StoreError,
    dialect::{self, HistoryId},
    snapshot,
    store::Inner,
};
use arc_swap::ArcSwap;
use gw_policy::Snapshot;
use gw_types::Epoch;
use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};

pub use boot::{BootClock, Uptime};
pub use clock::{ClockJump, FeedClock};

/// How much longer than [`FeedTiming::stale_after`] a commit waits to be applied here before its caller gets "not
/// confirmed". The instance is stale by then; the extra time is for a slow machine.
const CATCH_UP: Duration = Duration::from_secs(3);
/// The wait for a commit ends after this many failed polls in a row: the database is unreachable.
const GIVE_UP: u64 = 2;

/// How often the feed polls and how long it trusts the result.
#[derive(Clone, Copy, Debug)]
pub struct FeedTiming {
    /// An unconfirmed head makes the snapshot stale after this long.
    pub stale_after: Duration,
    /// Poll interval while LISTEN works: a safety net.
    pub poll_listening: Duration,
    /// Poll interval without LISTEN, and on SQLite.
    pub poll_alone: Duration,
    /// A larger distance between our clock and the database's makes the snapshot stale (E-5).
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
    shared: Arc<FeedState>,
    _worker: Option<Arc<worker::FeedTasks>>,
}

/// A snapshot taken for one call (HD20: never held longer), and whether it may be trusted now.
#[derive(Clone, Debug)]
pub struct CallSnapshot {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// Whether data other than metadata may be served from it.
    pub fresh: bool,
}

/// Listener for clock jumps.
#[derive(Default)]
struct ClockJumpListener(OnceLock<Box<dyn Fn(ClockJump) + Send + Sync>>);

impl core::fmt::Debug for ClockJumpListener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ClockJumpListener")
            .field(&self.0.get().is_some())
            .finish()
    }
}

/// The state that readers and the worker share.
#[derive(Debug)]
pub(crate) struct FeedState {
    current: ArcSwap<Snapshot>,
    /// When the query that confirmed the head was sent, in nanoseconds of uptime; 0 if unconfirmed.
    confirmed: AtomicU64,
    /// The applied epoch and its stamp, for tasks that wait for an epoch.
    applied: watch::Sender<(Epoch, HistoryId)>,
    /// Wakes the worker.
    look: Notify,
    /// Number of failed polls.
    failures: watch::Sender<u64>,
    /// Whether the database's notifications are known to arrive.
    listening: AtomicBool,
    /// Whether our clock and the database's are too far apart (E-5).
    apart: AtomicBool,
    on_clock_jump: ClockJumpListener,
    uptime: Arc<dyn Uptime>,
    clock: FeedClock,
    timing: FeedTiming,
}

impl Feed {
    /// Loads all policy and keeps it current from then on.
    ///
    /// # Errors
    /// [`StoreError::NotPrimary`] if the database is a replica; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn start(store: &Store, timing: FeedTiming, uptime: Arc<dyn Uptime>) -> Result<Self, StoreError> {
        let clock = FeedClock::new(Arc::clone(&store.inner.config.clock));
        let sent = uptime.now();
        let (snapshot, head) = snapshot::load(&store.inner.pools).await?;
        let shared = Arc::new(FeedState {
            applied: watch::Sender::new((snapshot.epoch(), head.stamp)),
            current: ArcSwap::from_pointee(snapshot),
            confirmed: AtomicU64::new(0),
            look: Notify::new(),
            failures: watch::Sender::new(0),
            listening: AtomicBool::new(false),
            apart: AtomicBool::new(false),
            on_clock_jump: ClockJumpListener::default(),
            uptime,
            clock,
            timing,
        });
        shared.confirm(sent, head.at);
        store.attach(Arc::downgrade(&shared));
        let worker = worker::start(&shared, store, head.stamp);
        Ok(Self {
            shared,
            _worker: Some(Arc::new(worker)),
        })
    }

    /// Creates a handle that does not keep the worker alive, for the store that announces commits.
    pub(crate) fn from_shared(shared: Arc<FeedState>) -> Self {
        Self { shared, _worker: None }
    }

    /// The newest snapshot.
    pub fn pin(&self) -> CallSnapshot {
        // The order matters: a snapshot may be newer than what was confirmed, never older.
        let confirmed = self.shared.confirmed.load(Ordering::Acquire);
        let snapshot = self.shared.current.load_full();
        let (now, stale_after) = (nanos(self.shared.uptime.now()), nanos(self.shared.timing.stale_after));
        CallSnapshot {
            snapshot,
            fresh: rules::is_fresh(confirmed, now, stale_after),
        }
    }

    /// The newest epoch applied here.
    pub fn epoch(&self) -> Epoch {
        self.shared.applied.borrow().0
    }

    /// Waits until this instance has applied `epoch`, and returns whether it has. Gives up if the database is
    /// unreachable, or some seconds after [`FeedTiming::stale_after`]; the instance is stale by then.
    pub async fn catch_up_to(&self, epoch: Epoch) -> bool {
        let mut applied = self.shared.applied.subscribe();
        let mut failures = self.shared.failures.subscribe();
        let failed = failures.borrow_and_update().saturating_add(GIVE_UP);
        self.shared.look.notify_one();
        let mut reached = pin!(async { applied.wait_for(|(applied, _)| *applied >= epoch).await.is_ok() });
        let mut away = pin!(async { failures.wait_for(|failures| *failures >= failed).await.is_ok() });
        for patience in [self.shared.timing.stale_after, CATCH_UP] {
            tokio::select! {
                biased;
                reached = &mut reached => return reached,
                _ = &mut away => break,
                () = tokio::time::sleep(patience) => self.shared.doubt(),
            }
        }
        self.shared.doubt();
        false
    }

    /// Whether the applied state contains the very commit that raised `epoch`: after a failover another commit may have
    /// the same number (RL1). If a later epoch is applied, the database is queried.
    pub(crate) async fn has_applied(&self, store: &Inner, epoch: Epoch, stamp: HistoryId) -> bool {
        let (applied, newest) = *self.shared.applied.borrow();
        if applied == epoch {
            return newest == stamp;
        }
        let recorded = dialect::stamp(&store.pools.reader, epoch).await;
        applied > epoch && recorded.is_ok_and(|recorded| recorded == Some(stamp))
    }

    /// Whether our clock and the database's agree; only metadata is served while they do not (E-5).
    pub fn clocks_agree(&self) -> bool {
        !self.shared.apart.load(Ordering::Relaxed)
    }

    /// Registers a listener for jumps of our clock against the database's; only the first registration counts. The
    /// listener runs on the feed's task and must not block.
    pub fn on_clock_jump(&self, listener: impl Fn(ClockJump) + Send + Sync + 'static) {
        let _first = self.shared.on_clock_jump.0.set(Box::new(listener));
    }

    /// Waits until another epoch than `epoch` is applied here; for streams that end when a permission ends (HD18 WS-6).
    pub async fn changed_since(&self, epoch: Epoch) -> Epoch {
        let mut applied = self.shared.applied.subscribe();
        match applied.wait_for(|(applied, _)| *applied != epoch).await {
            Ok(applied) => applied.0,
            // The sender lives as long as this feed.
            Err(_) => epoch,
        }
    }

    /// Returns the clock for decisions: the later of our clock and the database's (E-5).
    pub fn clock(&self) -> FeedClock {
        self.shared.clock.clone()
    }
}

impl FeedState {
    /// Publishes a snapshot.
    fn publish(&self, snapshot: Snapshot, stamp: HistoryId) {
        let epoch = snapshot.epoch();
        self.current.store(Arc::new(snapshot));
        self.applied.send_replace((epoch, stamp));
    }

    /// Records that a query sent at `sent` found the published epoch to be the head.
    fn confirm(&self, sent: Duration, database_time: Option<gw_types::Timestamp>) {
        let waited = self.uptime.now().saturating_sub(sent);
        let skew = self.clock.observe(database_time, waited, self.timing.max_skew);
        let apart = skew.by > self.timing.max_skew;
        let were_apart = self.apart.swap(apart, Ordering::Relaxed);
        if apart {
            self.doubt();
            if !were_apart {
                let (ours_ahead, seconds) = (skew.ahead, skew.by.as_secs());
                tracing::error!(
                    ours_ahead,
                    seconds,
                    "the clocks of this machine and of the policy database differ too much: only metadata is served \
                     until they agree; correct the wrong clock"
                );
                self.notify_clock_jump(ClockJump::Apart {
                    ahead: skew.ahead,
                    by: skew.by,
                });
            }
            return;
        }
        self.confirmed.store(nanos(sent).max(1), Ordering::Release);
        if were_apart || !skew.taken_back.is_zero() {
            tracing::warn!(
                taken_back_seconds = skew.taken_back.as_secs(),
                "the clocks of this machine and of the policy database agree again; all requests are served"
            );
            self.notify_clock_jump(ClockJump::Confirmed {
                taken_back: skew.taken_back,
            });
        }
    }

    fn notify_clock_jump(&self, jump: ClockJump) {
        if let Some(listener) = self.on_clock_jump.0.get() {
            listener(jump);
        }
    }

    /// Makes the snapshot stale until the next confirmation.
    fn doubt(&self) {
        self.confirmed.store(0, Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, dialect::full_disk, record::NewOrganization};

    /// RL1: an epoch lost in a failover and its successor have the same number.
    #[tokio::test]
    async fn rl1_another_historys_epoch_is_not_the_commit_that_was_waited_for() {
        let place = full_disk::place();
        let store = full_disk::open(&place.1).await;
        store.migrate().await.unwrap();
        let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock))
            .await
            .unwrap();
        let commit = async |slug: &str| {
            let mut tx = store.begin(&Actor::named(Actor::SUPER_ADMIN)).await.unwrap();
            tx.create_organization(NewOrganization {
                slug: slug.into(),
                ..Default::default()
            })
            .await
            .unwrap();
            tx.commit().await.unwrap()
        };
        let (older, newest) = (commit("one").await, commit("two").await);
        let other = HistoryId(uuid::Uuid::from_u128(1));
        for epoch in [older, newest] {
            let stamp = dialect::stamp(&store.inner.pools.reader, epoch).await.unwrap().unwrap();
            assert!(feed.catch_up_to(epoch).await && feed.has_applied(&store.inner, epoch, stamp).await);
            assert!(!feed.has_applied(&store.inner, epoch, other).await, "another history");
        }
        assert!(
            !feed.has_applied(&store.inner, Epoch(newest.0 + 1), other).await,
            "not applied yet"
        );
    }
}
