//! The work that is not part of a block's commit: balances, supplies and metadata of tokens, and traces that failed
//! when their block was indexed.
//!
//! The store keeps the work in a queue that survives a restart. What is read at a block that a reorganization then
//! removes is read again.

use crate::{
    decode::{contract_rows, creations_of, transaction_trace},
    error::IndexerError,
    indexer::{CATCH_UP_LAG, Indexer, is_stopped_within, log_store_failure},
    token::{TokenQuery, TokenReader, metadata, number},
};
use futures_util::{StreamExt as _, stream};
use gw_chain_store::{BlockFrames, ChainStoreError, ChainWriter, Job, JobKind, Reading, Task, rows::BlockNumHash};
use gw_policy::snapshot::VisibleState;
use gw_types::{Address, Bytes, Seconds};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Most tasks that are taken at once.
const TASKS_AT_ONCE: u32 = 100;
/// Most traces of blocks that are taken at once.
const TRACES_AT_ONCE: u32 = 4;
/// Most view functions that run at once.
const CONCURRENT_VIEWS: usize = 4;
/// The time after which a task is taken again if its worker ended.
const HOLD: Seconds = Seconds(120);
/// The pause when there is no work.
const PAUSE: Duration = Duration::from_millis(500);

/// The answer of a view function.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ViewAnswer {
    /// The output.
    Output(Bytes),
    /// There is no output, or it may not be stored.
    None,
    /// The node could not run it now.
    Unavailable,
}

impl ViewAnswer {
    fn output(&self) -> Option<&[u8]> {
        match self {
            Self::Output(output) => Some(output),
            Self::None | Self::Unavailable => None,
        }
    }
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TaskResult {
    /// What to store.
    Reading(Reading),
    /// There is nothing to store.
    Nothing,
    /// It failed and is tried again later.
    Failed,
}

impl Indexer {
    /// Does queued work until `stop` is cancelled. While the indexer catches up with the chain, the work waits.
    pub(crate) async fn work(&self, writer: &ChainWriter, stop: &CancellationToken) -> Result<(), IndexerError> {
        while !stop.is_cancelled() {
            let is_near_head = self.progress.current().lag().is_some_and(|lag| lag <= CATCH_UP_LAG);
            let work = async {
                if is_near_head {
                    self.work_once(writer).await
                } else {
                    Ok(false)
                }
            };
            // A task that is interrupted stays in the queue.
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                result = work => result,
            };
            let has_worked = match result {
                Ok(has_worked) => has_worked,
                Err(IndexerError::Store(error)) if error.is_unavailable() => {
                    log_store_failure(&error);
                    false
                }
                Err(error) => return Err(error),
            };
            if !has_worked && is_stopped_within(stop, PAUSE).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Does a batch of work of each kind; whether there was any.
    async fn work_once(&self, writer: &ChainWriter) -> Result<bool, IndexerError> {
        let mut has_worked = false;
        for kind in JobKind::ALL {
            let limit = match kind {
                JobKind::Frames | JobKind::Block => TRACES_AT_ONCE,
                JobKind::Balance | JobKind::TokenBalance | JobKind::TokenMetadata | JobKind::TokenSupply => {
                    TASKS_AT_ONCE
                }
            };
            let tasks = writer.take_tasks(kind, limit, HOLD).await?;
            if tasks.is_empty() {
                continue;
            }
            has_worked = true;
            // What is read now is read at the newest stored block.
            let Some(at) = self.stored_head().await? else {
                return Ok(false);
            };
            let results = match kind {
                JobKind::Balance => self.read_balances(&tasks, at).await,
                JobKind::Frames | JobKind::Block => self.read_blocks(writer, &tasks).await?,
                JobKind::TokenBalance | JobKind::TokenMetadata | JobKind::TokenSupply => {
                    self.read_tokens(&tasks, at).await
                }
            };
            self.store_results(writer, kind, at, &tasks, results).await?;
        }
        Ok(has_worked)
    }

    async fn store_results(
        &self,
        writer: &ChainWriter,
        kind: JobKind,
        at: BlockNumHash,
        tasks: &[Task],
        results: Vec<TaskResult>,
    ) -> Result<(), IndexerError> {
        let (mut readings, mut done, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (task, result) in tasks.iter().zip(results) {
            match result {
                TaskResult::Reading(reading) => {
                    readings.push(reading);
                    done.push(*task);
                }
                TaskResult::Nothing => done.push(*task),
                TaskResult::Failed => failed.push(*task),
            }
        }
        match writer.set_readings(at, &readings, &done).await {
            Ok(()) => count(kind, "done", done.len()),
            // A reorganization removed the block: everything is read again.
            Err(ChainStoreError::UnknownBlock { .. }) => failed.append(&mut done),
            Err(error) => return Err(error.into()),
        }
        if !failed.is_empty() {
            count(kind, "failed", failed.len());
            writer.retry_tasks(&failed).await?;
        }
        Ok(())
    }

    async fn read_balances(&self, tasks: &[Task], at: BlockNumHash) -> Vec<TaskResult> {
        let address = |task: &Task| match task.job {
            Job::Balance { address } => address,
            Job::TokenBalance { holder, .. } => holder,
            Job::TokenMetadata { token } | Job::TokenSupply { token } => token,
            Job::Frames { .. } | Job::Block { .. } => Address::ZERO,
        };
        let addresses: Vec<Address> = tasks.iter().map(address).collect();
        match self.fetcher.reader.balances(&addresses, at.hash).await {
            Ok(balances) => {
                let result = |(address, balance): (Address, Option<_>)| match balance {
                    Some(balance) => TaskResult::Reading(Reading::Balance { address, balance }),
                    None => TaskResult::Failed,
                };
                addresses.into_iter().zip(balances).map(result).collect()
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the indexer could not read balances"
                );
                vec![TaskResult::Failed; tasks.len()]
            }
        }
    }

    async fn read_tokens(&self, tasks: &[Task], at: BlockNumHash) -> Vec<TaskResult> {
        let jobs: Vec<Job> = tasks.iter().map(|task| task.job).collect();
        let reads = stream::iter(jobs).map(|job| self.read_token(job, at));
        reads.buffered(CONCURRENT_VIEWS).collect().await
    }

    async fn read_token(&self, job: Job, at: BlockNumHash) -> TaskResult {
        match job {
            Job::TokenMetadata { token } => {
                let mut answers = Vec::with_capacity(3);
                for query in [TokenQuery::Name, TokenQuery::Symbol, TokenQuery::Decimals] {
                    answers.push(self.view(token, query, at).await);
                }
                let [name, symbol, decimals] = answers.as_slice() else {
                    return TaskResult::Failed;
                };
                if answers.contains(&ViewAnswer::Unavailable) {
                    return TaskResult::Failed;
                }
                let metadata = metadata(name.output(), symbol.output(), decimals.output());
                TaskResult::Reading(Reading::TokenMetadata { token, metadata })
            }
            Job::TokenSupply { token } => {
                let supply = match self.view(token, TokenQuery::TotalSupply, at).await {
                    ViewAnswer::Unavailable => return TaskResult::Failed,
                    answer => answer.output().and_then(number),
                };
                TaskResult::Reading(Reading::TokenSupply { token, supply })
            }
            Job::TokenBalance {
                token,
                holder,
                token_id,
            } => {
                let query = token_id.map_or(TokenQuery::BalanceOf(holder), |id| TokenQuery::BalanceOfId(holder, id));
                let balance = match self.view(token, query, at).await {
                    ViewAnswer::Unavailable => return TaskResult::Failed,
                    answer => answer.output().and_then(number),
                };
                // A balance that the contract does not report is unknown, not zero.
                balance.map_or(TaskResult::Nothing, |balance| {
                    TaskResult::Reading(Reading::TokenBalance {
                        token,
                        holder,
                        token_id,
                        balance,
                    })
                })
            }
            Job::Balance { .. } | Job::Frames { .. } | Job::Block { .. } => TaskResult::Failed,
        }
    }

    /// Runs a view function of a token. What is stored depends on the whole state; users are shown it only while no
    /// change is withheld (HD28).
    async fn view(&self, token: Address, query: TokenQuery, at: BlockNumHash) -> ViewAnswer {
        let tokens = TokenReader::from_blocks(self.fetcher.reader.clone(), Arc::clone(&self.policy));
        match tokens.output(token, query.input(), at, &VisibleState::default()).await {
            Ok(output) => output.map_or(ViewAnswer::None, ViewAnswer::Output),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a view function of a token could not run"
                );
                ViewAnswer::Unavailable
            }
        }
    }

    async fn read_blocks(&self, writer: &ChainWriter, tasks: &[Task]) -> Result<Vec<TaskResult>, IndexerError> {
        let mut results = Vec::with_capacity(tasks.len());
        for task in tasks {
            results.push(match task.job {
                Job::Frames { block } => self.complete_block(writer, block).await?,
                Job::Block { block } => self.replace_block(writer, block).await?,
                Job::Balance { .. }
                | Job::TokenBalance { .. }
                | Job::TokenMetadata { .. }
                | Job::TokenSupply { .. } => TaskResult::Failed,
            });
        }
        Ok(results)
    }

    /// Reads a stored block again, and replaces its rows.
    async fn replace_block(&self, writer: &ChainWriter, number: u64) -> Result<TaskResult, IndexerError> {
        let stored = self.store.reader().await?.find_block(number).await?;
        let Some(stored) = stored else {
            return Ok(TaskResult::Nothing);
        };
        let data = match self.fetcher.read(number).await {
            Ok(Some(data)) => data,
            Ok(None) => return Ok(TaskResult::Failed),
            Err(error) => {
                tracing::warn!(
                    block = number,
                    error = &error as &dyn std::error::Error,
                    "a block could not be read again; it is tried later"
                );
                return Ok(TaskResult::Failed);
            }
        };
        // A reorganization that is not noticed yet, or a trace that is not available now.
        if stored.block.num_hash() != data.block.num_hash()
            || (stored.block.frames_complete && !data.block.frames_complete)
        {
            return Ok(TaskResult::Failed);
        }
        match writer.replace_block(&data).await {
            Ok(is_changed) => {
                tracing::info!(block = number, is_changed, "a block was read again");
                Ok(TaskResult::Nothing)
            }
            Err(ChainStoreError::UnknownBlock { .. }) => Ok(TaskResult::Failed),
            Err(error @ ChainStoreError::InvalidBlock { .. }) => {
                tracing::error!(
                    block = number,
                    error = &error as &dyn std::error::Error,
                    "a block could not be replaced; to index it anew, remove it and all later blocks"
                );
                Ok(TaskResult::Nothing)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the frames of a block that was stored without them.
    async fn complete_block(&self, writer: &ChainWriter, number: u64) -> Result<TaskResult, IndexerError> {
        let reader = self.store.reader().await?;
        let Some(stored) = reader.find_block(number).await? else {
            return Ok(TaskResult::Nothing);
        };
        let rows = reader.list_transactions_of_block(number).await?;
        drop(reader);
        let at = stored.block.num_hash();
        let hashes: Vec<_> = rows.iter().map(|row| row.transaction.hash).collect();
        let trees = match self.fetcher.reader.call_trees(at.number, at.hash, &hashes).await {
            Ok(Some(trees)) => trees,
            Ok(None) => return Ok(TaskResult::Failed),
            Err(error) => {
                tracing::debug!(
                    block = number,
                    error = &error as &dyn std::error::Error,
                    "a block could not be traced"
                );
                return Ok(TaskResult::Failed);
            }
        };
        let creations = creations_of(&trees, &hashes);
        let addresses: Vec<Address> = creations.iter().map(|creation| creation.address).collect();
        let states = self.fetcher.contract_states(&addresses, at.hash).await;
        let Some(contracts) = states.ok().and_then(|states| contract_rows(&creations, &states).ok()) else {
            return Ok(TaskResult::Failed);
        };
        let trace = BlockFrames {
            transactions: (trees.iter().zip(&rows))
                .map(|(tree, row)| transaction_trace(tree, row.transaction.success))
                .collect(),
            contracts,
        };
        match writer.complete_frames(at, &trace).await {
            Ok(()) | Err(ChainStoreError::FramesComplete { .. }) => Ok(TaskResult::Nothing),
            Err(ChainStoreError::UnknownBlock { .. }) => Ok(TaskResult::Failed),
            Err(error) => Err(error.into()),
        }
    }
}

fn count(kind: JobKind, result: &'static str, tasks: usize) {
    let tasks = u64::try_from(tasks).unwrap_or(u64::MAX);
    metrics::counter!("ledger_gateway_indexer_tasks_total", "kind" => kind.as_str(), "result" => result)
        .increment(tasks);
}
