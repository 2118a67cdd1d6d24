//! The indexer: keeps the store at the head of the chain.
//!
//! Invariants:
//! - Blocks are read concurrently and appended one after the other, so the store has no gaps.
//! - Only `append` and `revert_to` change the blocks, each in one transaction. The indexer keeps nothing between two
//!   blocks that a restart would lose.

use crate::{
    config::IndexerConfig,
    error::IndexerError,
    fetch::Fetcher,
    progress::{IndexerProgress, IndexerState, ProgressRecorder},
    token::{OwnStateOnly, ViewPolicy},
};
use futures_util::{StreamExt as _, stream};
use gw_chain_store::{ChainStore, ChainStoreError, ChainWriter, rows::BlockNumHash};
use gw_node::{Block, BlockReader, Node, NodeError};
use gw_types::Clock;
use std::sync::Arc;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

/// How far the head may be below the newest indexed block. A lower head is a chain reset (X6).
const DEEPEST_RETREAT: u64 = 128;
/// From this many missing blocks on, the indexer catches up: queued work waits (X4).
pub(crate) const CATCH_UP_LAG: u64 = 100;

/// Keeps a store at the head of the node's chain.
#[derive(Debug)]
pub struct Indexer {
    pub(crate) store: ChainStore,
    pub(crate) fetcher: Fetcher,
    pub(crate) policy: Arc<dyn ViewPolicy>,
    pub(crate) config: IndexerConfig,
    pub(crate) progress: ProgressRecorder,
}

/// How an attempt to index the missing blocks ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The store has all blocks up to the target, or the node has no more.
    Complete,
    /// The newest stored block may have left the chain.
    CheckChain,
    /// The indexer shall stop.
    Stop,
}

impl Indexer {
    /// An indexer that writes the blocks of this node's chain into this store.
    pub fn new(node: Arc<Node>, store: ChainStore, config: IndexerConfig, clock: Arc<dyn Clock>) -> Self {
        let fetcher = Fetcher {
            reader: BlockReader::new(node),
            delays: config.delays,
        };
        Self {
            store,
            fetcher,
            policy: Arc::new(OwnStateOnly),
            config,
            progress: ProgressRecorder::new(clock),
        }
    }

    /// Sets the policy for what stored answers of tokens may depend on.
    #[must_use]
    pub fn with_view_policy(mut self, policy: Arc<dyn ViewPolicy>) -> Self {
        self.policy = policy;
        self
    }

    /// Indexes blocks without internal transactions (`ENABLE_TRACING`). They stay in the queue of work.
    #[must_use]
    pub fn without_traces(mut self) -> Self {
        self.fetcher.reader = self.fetcher.reader.without_traces();
        self
    }

    /// The progress, and its changes.
    pub fn progress(&self) -> watch::Receiver<IndexerProgress> {
        self.progress.subscribe()
    }

    /// Becomes the writer as soon as no other instance is it, and indexes until `stop` is cancelled.
    ///
    /// # Errors
    /// [`IndexerError`] if an operator must decide, or the store is damaged.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), IndexerError> {
        let result = loop {
            let writer = match self.become_writer(stop).await {
                Ok(Some(writer)) => writer,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            match self.run_as_writer(&writer, stop).await {
                Ok(()) => {
                    self.release(&writer).await;
                    break Ok(());
                }
                Err(IndexerError::Store(ChainStoreError::LeaseLost)) => {
                    tracing::warn!("another instance took over indexing");
                }
                Err(error) => {
                    self.release(&writer).await;
                    break Err(error);
                }
            }
        };
        self.set_state(IndexerState::Stopped);
        result
    }

    /// Indexes as the holder of the lease until the store has the newest block, or `stop` is cancelled. The queue of
    /// work stays for [`Self::run`].
    ///
    /// # Errors
    /// [`IndexerError`] if another instance took the lease, an operator must decide, or the store is damaged.
    pub async fn index_to_head(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), IndexerError> {
        let head_reached = stop.child_token();
        let mut progress = self.progress();
        let wait = async {
            // The state tells that the height was compared with the head.
            let at_head =
                |progress: &IndexerProgress| progress.state == IndexerState::Following && progress.lag() == Some(0);
            // `self` holds the sender.
            let _reached = progress.wait_for(at_head).await;
            head_reached.cancel();
            Ok(())
        };
        let result = tokio::try_join!(
            self.follow(writer, &head_reached),
            self.keep_lease(writer, &head_reached),
            async { head_reached.run_until_cancelled(wait).await.unwrap_or(Ok(())) }
        );
        self.set_state(IndexerState::Stopped);
        result.map(|_| ())
    }

    async fn become_writer(&self, stop: &CancellationToken) -> Result<Option<ChainWriter>, IndexerError> {
        self.set_state(IndexerState::Standby);
        let mut is_first = true;
        loop {
            match self.store.writer(&self.config.name).await {
                Ok(writer) => return Ok(Some(writer)),
                Err(ChainStoreError::OtherWriter { name }) => {
                    if std::mem::take(&mut is_first) {
                        tracing::info!(writer = name, "another instance indexes: this one waits");
                    }
                }
                Err(error) if error.is_unavailable() => log_store_failure(&error),
                Err(error) => return Err(error.into()),
            }
            if is_stopped_within(stop, self.config.delays.standby).await {
                return Ok(None);
            }
        }
    }

    async fn release(&self, writer: &ChainWriter) {
        if let Err(error) = writer.release().await {
            log_store_failure(&error);
        }
    }

    /// Follows the chain, does queued work and renews the lease, until one of them fails or `stop` is cancelled.
    async fn run_as_writer(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), IndexerError> {
        tokio::try_join!(
            self.follow(writer, stop),
            self.work(writer, stop),
            self.keep_lease(writer, stop)
        )
        .map(|_| ())
    }

    async fn keep_lease(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), IndexerError> {
        while !is_stopped_within(stop, self.config.delays.lease).await {
            match writer.renew().await {
                Err(error) if error.is_unavailable() => log_store_failure(&error),
                result => result?,
            }
        }
        Ok(())
    }

    async fn follow(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), IndexerError> {
        let mut moves = self.fetcher.reader.head_moves();
        let mut finalized_at: Option<Instant> = None;
        // The stored blocks are compared with the node at start.
        let (mut must_check, mut failures) = (true, 0_u32);
        while !stop.is_cancelled() {
            moves.mark_unchanged();
            let step = async {
                let outcome = self.step(writer, must_check, stop).await?;
                if finalized_at.is_none_or(|at| at.elapsed() >= self.config.delays.finalized) {
                    self.update_finalized(writer, stop).await?;
                    finalized_at = Some(Instant::now());
                }
                Ok(outcome)
            };
            match step.await {
                Ok(Outcome::Stop) | Err(StepError::Stopped) => break,
                Ok(Outcome::CheckChain) => {
                    (must_check, failures) = (true, 0);
                    // A node that contradicts itself must not keep the indexer busy.
                    if is_stopped_within(stop, self.config.delays.first_retry).await {
                        break;
                    }
                    continue;
                }
                Ok(Outcome::Complete) => (must_check, failures) = (false, 0),
                Err(StepError::Node(error)) => {
                    failures = failures.saturating_add(1);
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the indexer cannot query the node"
                    );
                }
                Err(StepError::Indexer(IndexerError::Store(error))) if error.is_unavailable() => {
                    failures = failures.saturating_add(1);
                    log_store_failure(&error);
                    // Whether the failed write took effect is not known.
                    must_check = true;
                }
                Err(StepError::Indexer(error)) => return Err(error),
            }
            let pause = if failures > 0 {
                self.config.delays.before_retry(failures)
            } else {
                self.config.delays.poll
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
                _ = moves.changed(), if failures == 0 => {}
            }
        }
        Ok(())
    }

    /// Brings the store to the present head.
    async fn step(
        &self,
        writer: &ChainWriter,
        must_check: bool,
        stop: &CancellationToken,
    ) -> Result<Outcome, StepError> {
        let Some(head) = self.fetcher.reader.head() else {
            self.set_state(IndexerState::WaitingForNode);
            return Ok(Outcome::Complete);
        };
        let mut newest = self.stored_head().await?;
        if let Some(stored) = newest {
            let is_same = (stored.number, stored.hash) == (head.number, head.hash);
            if (must_check || head.number <= stored.number) && !is_same {
                newest = self.remove_foreign_blocks(writer, stored, head, stop).await?;
            }
        }
        let first = newest.map_or(self.config.first_block, |newest| newest.number.saturating_add(1));
        let target = head.number.checked_sub(self.config.confirmations);
        self.progress.update(|progress| {
            progress.height = newest.map(|newest| newest.number);
            progress.target = target;
        });
        let Some(target) = target.filter(|target| *target >= first) else {
            self.set_state(IndexerState::Following);
            return Ok(Outcome::Complete);
        };
        let is_far = target.saturating_sub(first) >= CATCH_UP_LAG;
        self.set_state(if is_far {
            IndexerState::CatchingUp
        } else {
            IndexerState::Following
        });
        let outcome = self.append_blocks(writer, first, target, stop).await?;
        if is_far && outcome == Outcome::Complete {
            tracing::info!(block = target, "the indexer caught up with the chain");
            self.set_state(IndexerState::Following);
        }
        Ok(outcome)
    }

    /// Reads these blocks concurrently and appends them in order.
    async fn append_blocks(
        &self,
        writer: &ChainWriter,
        first: u64,
        target: u64,
        stop: &CancellationToken,
    ) -> Result<Outcome, StepError> {
        let reads = stream::iter(first..=target).map(|number| self.fetcher.block(number));
        // Invariant: at most this many blocks are held, whether they are being read or wait for their turn.
        let mut blocks = std::pin::pin!(reads.buffered(self.config.concurrent_reads.get()));
        let mut last = self.stored_time().await?;
        loop {
            let block = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Outcome::Stop),
                block = blocks.next() => block,
            };
            // The chain became shorter while it was read.
            let Some(Some(block)) = block else {
                return Ok(Outcome::Complete);
            };
            let time = block.block.timestamp;
            if let Some((number, before)) = last
                && time < before
            {
                return self.remove_untimely(writer, number, before, time).await;
            }
            match writer.append(&block, &[]).await {
                Ok(_) => {
                    last = Some((block.block.number, time));
                    self.progress.record_block(block.block.number, block.transactions.len());
                }
                Err(ChainStoreError::OtherParent { .. } | ChainStoreError::NotNext { .. }) => {
                    return Ok(Outcome::CheckChain);
                }
                Err(error) => return Err(IndexerError::from(error).into()),
            }
        }
    }

    /// The number and the time of the newest stored block.
    async fn stored_time(&self) -> Result<Option<(u64, i64)>, IndexerError> {
        let reader = self.store.reader().await?;
        let head = reader.progress().head.as_ref();
        Ok(head.map(|row| (row.block.number, row.block.timestamp)))
    }

    /// Removes the newest stored block because the next one is older: the node gave a wrong time for one of them. Both
    /// are read again. A first block stays: there is nothing below it to continue from.
    async fn remove_untimely(
        &self,
        writer: &ChainWriter,
        number: u64,
        stored: i64,
        next: i64,
    ) -> Result<Outcome, StepError> {
        tracing::warn!(
            block = number,
            time = stored,
            next_time = next,
            "a block is older than the one before it: both are read again; check the node if this is repeated"
        );
        let first = self.store.reader().await.map_err(IndexerError::from)?.progress().first;
        if let Some(below) = number
            .checked_sub(1)
            .filter(|below| first.is_some_and(|first| first <= *below))
        {
            writer.revert_to(below).await.map_err(IndexerError::from)?;
        }
        Ok(Outcome::CheckChain)
    }

    /// Removes stored blocks that are not on the node's chain; returns the newest block that stays.
    ///
    /// # Errors
    /// [`IndexerError::ChainReset`] and [`IndexerError::OtherChain`], unless the indexer may start again.
    async fn remove_foreign_blocks(
        &self,
        writer: &ChainWriter,
        newest: BlockNumHash,
        head: Block,
        stop: &CancellationToken,
    ) -> Result<Option<BlockNumHash>, StepError> {
        if newest.number.saturating_sub(head.number) > DEEPEST_RETREAT {
            let error = IndexerError::ChainReset {
                newest: newest.number,
                head: head.number,
            };
            return self.start_again(writer, error).await;
        }
        let highest = newest.number.min(head.number);
        let Some(ancestor) = unless_stopped(stop, self.common_ancestor(highest)).await?? else {
            return self.start_again(writer, IndexerError::OtherChain).await;
        };
        if ancestor == newest {
            return Ok(Some(newest));
        }
        let depth = newest.number.saturating_sub(ancestor.number);
        tracing::warn!(
            block = ancestor.number,
            removed_blocks = depth,
            "the chain was reorganized: the indexer removes blocks and indexes their replacements"
        );
        metrics::counter!("ledger_gateway_indexer_reorganizations_total").increment(1);
        writer.revert_to(ancestor.number).await.map_err(IndexerError::from)?;
        Ok(Some(ancestor))
    }

    async fn start_again(&self, writer: &ChainWriter, error: IndexerError) -> Result<Option<BlockNumHash>, StepError> {
        if !self.config.reindex_after_reset {
            return Err(error.into());
        }
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "all indexed blocks are removed"
        );
        writer.wipe().await.map_err(IndexerError::from)?;
        Ok(None)
    }

    /// The newest stored block, up to this number, that is on the node's chain. Blocks below it are its ancestors, so
    /// bisection finds it.
    async fn common_ancestor(&self, highest: u64) -> Result<Option<BlockNumHash>, StepError> {
        let reader = self.store.reader().await.map_err(IndexerError::from)?;
        let first = reader.progress().first.unwrap_or_default();
        let (mut low, mut high) = (first, highest);
        let mut ancestor = None;
        // The newest block is usually on the chain, or its parent is.
        let mut probe = highest;
        while low <= high {
            let stored = reader.find_block(probe).await.map_err(IndexerError::from)?;
            let stored = stored.map(|row| row.block.hash);
            let present = self.fetcher.reader.header(probe).await?.map(|block| block.hash);
            match stored.filter(|hash| present == Some(*hash)) {
                Some(hash) => {
                    ancestor = Some(BlockNumHash { number: probe, hash });
                    low = probe.saturating_add(1);
                }
                None => match probe.checked_sub(1) {
                    Some(below) => high = below,
                    None => break,
                },
            }
            probe = low.midpoint(high);
        }
        Ok(ancestor)
    }

    async fn update_finalized(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), StepError> {
        let finalized = unless_stopped(stop, self.fetcher.reader.finalized()).await??;
        let (Some(finalized), Some(newest)) = (finalized, self.stored_head().await?) else {
            return Ok(());
        };
        let block = if finalized.number < newest.number {
            BlockNumHash {
                number: finalized.number,
                hash: finalized.hash,
            }
        } else {
            newest
        };
        if self.progress.current().finalized == Some(block.number) {
            return Ok(());
        }
        match writer.set_finalized(block).await {
            Ok(()) => self.progress.update(|progress| progress.finalized = Some(block.number)),
            // It is below the first stored block, or the chain was reorganized meanwhile.
            Err(ChainStoreError::UnknownBlock { .. }) => {}
            Err(error) => return Err(IndexerError::from(error).into()),
        }
        Ok(())
    }

    pub(crate) async fn stored_head(&self) -> Result<Option<BlockNumHash>, IndexerError> {
        let reader = self.store.reader().await?;
        let head = reader.progress().head.as_ref();
        Ok(head.map(|row| row.block.num_hash()))
    }

    fn set_state(&self, state: IndexerState) {
        self.progress.set_state(state);
    }
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// The node did not answer.
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    /// The indexer shall stop.
    #[error("the indexer stops")]
    Stopped,
    /// The store failed, or an operator must decide.
    #[error(transparent)]
    Indexer(#[from] IndexerError),
}

pub(crate) fn log_store_failure(error: &ChainStoreError) {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the indexer cannot use the database of the explorer"
    );
}

/// Does not wait for a node when the indexer shall stop.
async fn unless_stopped<T>(stop: &CancellationToken, query: impl Future<Output = T>) -> Result<T, StepError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(StepError::Stopped),
        output = query => Ok(output),
    }
}

/// Waits; whether the indexer shall stop.
pub(crate) async fn is_stopped_within(stop: &CancellationToken, time: std::time::Duration) -> bool {
    tokio::time::timeout(time, stop.cancelled()).await.is_ok()
}
