//! The task that keeps a feed current.

use super::{FeedState, listen};
use crate::{
    Store, StoreError,
    dialect::HistoryId,
    snapshot::{self, ChangesSince},
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};

/// Time between two log lines during one outage.
const REMIND: Duration = Duration::from_secs(30);

/// Ends the tasks when the last feed is dropped.
#[derive(Debug)]
pub(super) struct FeedTasks(Vec<AbortHandle>);

impl Drop for FeedTasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Starts the tasks. `stamp` is the stamp of the published epoch.
pub(super) fn start(shared: &Arc<FeedState>, store: &Store, stamp: HistoryId) -> FeedTasks {
    let mut tasks = vec![tokio::spawn(run(Arc::clone(shared), store.clone(), stamp)).abort_handle()];
    if let Some(url) = listen::url(&store.inner.config.location) {
        tasks.push(tokio::spawn(listen::run(Arc::clone(shared), url)).abort_handle());
    }
    FeedTasks(tasks)
}

async fn run(shared: Arc<FeedState>, store: Store, mut stamp: HistoryId) {
    let mut whole = false;
    let mut outage = Outage::default();
    loop {
        let step = if whole {
            reload(&shared, &store).await
        } else {
            follow(&shared, &store, stamp).await
        };
        match step {
            Ok(Step::Confirmed(newest)) => {
                (whole, stamp) = (false, newest);
                outage.end();
            }
            Ok(Step::Broken(why)) => {
                tracing::warn!(
                    why,
                    "the policy snapshot is stale: only metadata is served until it is reloaded"
                );
                shared.doubt();
                whole = true;
                continue;
            }
            // Without a confirmation the snapshot stays fresh until the last one expires.
            Err(cause) => {
                shared.failures.send_modify(|failures| *failures += 1);
                outage.note(&cause);
            }
        }
        let listening = shared.listening.load(Ordering::Relaxed) && outage.since.is_none();
        let poll = if listening {
            shared.timing.poll_listening
        } else {
            shared.timing.poll_alone
        };
        tokio::select! {
            () = shared.look.notified() => {}
            () = tokio::time::sleep(poll) => {}
        }
    }
}

/// An outage during which no head could be read. It is logged at its start, regularly, and at its end.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
    last_logged: Option<Instant>,
}

impl Outage {
    fn note(&mut self, cause: &StoreError) {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if self
            .last_logged
            .is_none_or(|last_logged| now.duration_since(last_logged) >= REMIND)
        {
            self.last_logged = Some(now);
            let seconds = now.duration_since(since).as_secs();
            tracing::warn!(error = ?cause, seconds, "the policy epoch cannot be confirmed, so only metadata is served: \
                                                     the policy database does not answer; check the database server \
                                                     and the network");
        }
    }

    fn end(&mut self) {
        if let Some(since) = self.since {
            tracing::info!(
                seconds = since.elapsed().as_secs(),
                "the policy epoch is confirmed again"
            );
        }
        *self = Self::default();
    }
}

enum Step {
    /// The published epoch is the head, with this stamp.
    Confirmed(HistoryId),
    /// A full load is needed.
    Broken(&'static str),
}

/// Applies changes, if any, and confirms the head.
async fn follow(shared: &FeedState, store: &Store, stamp: HistoryId) -> Result<Step, StoreError> {
    let sent = shared.uptime.now();
    let current = shared.current.load_full();
    let (head, since) = snapshot::changes_since(&store.inner.pools, current.epoch(), stamp).await?;
    match since {
        ChangesSince::Nothing => {}
        ChangesSince::Changes(changes) => shared.publish(current.apply(head.epoch, changes), head.stamp),
        ChangesSince::Broken(why) => return Ok(Step::Broken(why)),
    }
    shared.confirm(sent, head.at);
    Ok(Step::Confirmed(head.stamp))
}

/// Loads all policy again.
async fn reload(shared: &FeedState, store: &Store) -> Result<Step, StoreError> {
    let sent = shared.uptime.now();
    let (snapshot, head) = snapshot::load(&store.inner.pools).await?;
    shared.publish(snapshot, head.stamp);
    shared.confirm(sent, head.at);
    Ok(Step::Confirmed(head.stamp))
}
