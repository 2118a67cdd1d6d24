//! The progress of the indexer, for operators and for the `sync` endpoints of the explorer.

use gw_types::{Clock, Timestamp};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// How often a line about catching up is logged, and the longest time over which a rate is computed.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest time over which a rate is computed.
const RATE_INTERVAL: Duration = Duration::from_secs(1);

/// What the indexer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexerState {
    /// Another instance is the writer, or the indexer has not started.
    Standby,
    /// It waits for a node that confirms the head.
    WaitingForNode,
    /// It indexes blocks that are far below the head.
    CatchingUp,
    /// It indexes new blocks.
    Following,
    /// It ended.
    Stopped,
}

/// The progress of the indexer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexerProgress {
    /// What it does.
    pub state: IndexerState,
    /// The newest indexed block.
    pub height: Option<u64>,
    /// The block up to which it indexes.
    pub target: Option<u64>,
    /// The newest finalized block of the store.
    pub finalized: Option<u64>,
    /// Indexed blocks per second, lately.
    pub blocks_per_second: f64,
    /// Indexed transactions per second, lately.
    pub transactions_per_second: f64,
    /// The expected time until it reaches the target.
    pub time_left: Option<Duration>,
    /// When one of these changed.
    pub updated_at: Timestamp,
}

impl IndexerProgress {
    /// How many blocks it is behind its target.
    pub fn lag(&self) -> Option<u64> {
        let height = self.height.map_or(0, |height| height.saturating_add(1));
        Some(self.target?.saturating_add(1).saturating_sub(height))
    }
}

/// Publishes the progress, logs it and counts it.
#[derive(Debug)]
pub(crate) struct ProgressRecorder {
    sender: watch::Sender<IndexerProgress>,
    clock: Arc<dyn Clock>,
    meter: Mutex<RateMeter>,
}

/// What was indexed since a moment.
#[derive(Debug)]
struct RateMeter {
    since: Instant,
    blocks: u32,
    transactions: u32,
}

impl RateMeter {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            blocks: 0,
            transactions: 0,
        }
    }
}

impl ProgressRecorder {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let progress = IndexerProgress {
            state: IndexerState::Standby,
            height: None,
            target: None,
            finalized: None,
            blocks_per_second: 0.0,
            transactions_per_second: 0.0,
            time_left: None,
            updated_at: clock.now(),
        };
        Self {
            sender: watch::Sender::new(progress),
            clock,
            meter: Mutex::new(RateMeter::new()),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<IndexerProgress> {
        self.sender.subscribe()
    }

    pub(crate) fn current(&self) -> IndexerProgress {
        *self.sender.borrow()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut IndexerProgress)) {
        let mut progress = self.current();
        change(&mut progress);
        if progress == self.current() {
            return;
        }
        progress.updated_at = self.clock.now();
        set_gauge("ledger_gateway_indexer_height", progress.height);
        set_gauge("ledger_gateway_indexer_target", progress.target);
        set_gauge("ledger_gateway_indexer_finalized", progress.finalized);
        self.sender.send_replace(progress);
    }

    /// Sets what the indexer does. The time before it began to catch up does not count for the rates.
    pub(crate) fn set_state(&self, state: IndexerState) {
        if state == IndexerState::CatchingUp && self.current().state != state {
            *self.meter() = RateMeter::new();
        }
        self.update(|progress| progress.state = state);
    }

    /// Counts an indexed block.
    pub(crate) fn record_block(&self, number: u64, transactions: usize) {
        let transactions = u32::try_from(transactions).unwrap_or(u32::MAX);
        metrics::counter!("ledger_gateway_indexer_blocks_total").increment(1);
        metrics::counter!("ledger_gateway_indexer_transactions_total").increment(transactions.into());
        let mut meter = self.meter();
        meter.blocks = meter.blocks.saturating_add(1);
        meter.transactions = meter.transactions.saturating_add(transactions);
        let elapsed = meter.since.elapsed();
        self.update(|progress| {
            progress.height = Some(number);
            if elapsed >= RATE_INTERVAL {
                progress.blocks_per_second = f64::from(meter.blocks) / elapsed.as_secs_f64();
                progress.transactions_per_second = f64::from(meter.transactions) / elapsed.as_secs_f64();
            }
            progress.time_left = time_left(progress);
        });
        if elapsed >= LOG_INTERVAL {
            *meter = RateMeter::new();
            if self.current().state == IndexerState::CatchingUp {
                self.log();
            }
        }
    }

    fn meter(&self) -> MutexGuard<'_, RateMeter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) {
        let progress = self.current();
        tracing::info!(
            block = progress.height,
            target_block = progress.target,
            blocks_per_second = progress.blocks_per_second.round(),
            transactions_per_second = progress.transactions_per_second.round(),
            seconds_left = progress.time_left.map(|left| left.as_secs()),
            "the indexer catches up with the chain"
        );
    }
}

fn time_left(progress: &IndexerProgress) -> Option<Duration> {
    let lag = u32::try_from(progress.lag()?).unwrap_or(u32::MAX);
    if lag == 0 {
        return Some(Duration::ZERO);
    }
    Duration::try_from_secs_f64(f64::from(lag) / progress.blocks_per_second).ok()
}

fn set_gauge(name: &'static str, value: Option<u64>) {
    if let Some(value) = value {
        // No chain has more blocks.
        metrics::gauge!(name).set(f64::from(u32::try_from(value).unwrap_or(u32::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::ManualClock;

    #[tokio::test(start_paused = true)]
    async fn progress_has_rates_and_the_time_left() {
        let clock = ManualClock::default();
        let recorder = ProgressRecorder::new(Arc::new(clock.clone()));
        recorder.update(|progress| progress.target = Some(99));
        assert_eq!(recorder.current().lag(), Some(100));
        clock.pass(7);
        for number in 0..20 {
            tokio::time::advance(Duration::from_millis(100)).await;
            recorder.record_block(number, 3);
        }
        let progress = recorder.current();
        assert_eq!((progress.height, progress.lag()), (Some(19), Some(80)));
        assert_eq!(
            (progress.blocks_per_second, progress.transactions_per_second),
            (10.0, 30.0)
        );
        assert_eq!(progress.time_left, Some(Duration::from_secs(8)));
        assert_eq!(progress.updated_at, clock.now());
    }

    #[tokio::test]
    async fn a_receiver_sees_changes_only() {
        let recorder = ProgressRecorder::new(Arc::new(ManualClock::default()));
        let mut receiver = recorder.subscribe();
        recorder.update(|progress| progress.height = None);
        assert!(!receiver.has_changed().unwrap());
        recorder.update(|progress| progress.height = Some(1));
        assert!(receiver.has_changed().unwrap());
        assert_eq!(receiver.borrow_and_update().height, Some(1));
    }
}
