//! `explorer reindex`, `explorer status`: the explorer's database, for operators. Without a subcommand, the explorer's
//! backend runs.

use super::{EXIT_FINDING, eprint_line, say};
use crate::{
    config::{IndexerConfig, ProcessEnv, registry::LogLevel},
    serve::{ServeError, causes, explorer::indexer_config, node},
    signal::Interrupt,
    system::{SystemClock, SystemEntropy},
    telemetry,
};
use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use gw_chain_store::{ChainStore, ChainStoreConfig, ChainStoreError, ChainWriter, Location, OtherChain, StoreStatus};
use gw_indexer::{Indexer, IndexerProgress, find_block_problem};
use gw_node::Node;
use gw_types::{Clock as _, Timestamp};
use serde_json::json;
use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Exit code of a command that was interrupted.
const EXIT_UNFINISHED: u8 = 3;
/// How often a terminal shows the progress.
const REDRAW: Duration = Duration::from_millis(500);
/// How often anything else gets a line about it.
const LINE: Duration = Duration::from_secs(10);
/// How long `status` waits for the node's newest block.
const HEAD_WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Remove the indexed blocks from a number on, and index them again. No other process may index meanwhile.
    Reindex {
        /// The first block to index again.
        #[arg(long, value_name = "NUMBER")]
        from: u64,
        /// Only remove the blocks: the indexer that runs next indexes them.
        #[arg(long)]
        no_wait: bool,
    },
    /// Report how far the index is, and who writes it; exit code 1 if it is missing, damaged or far behind. May run
    /// while the service runs.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The number of missing blocks from which on the index counts as far behind.
        #[arg(long, value_name = "BLOCKS", default_value_t = 100)]
        max_lag: u64,
    },
}

pub(super) async fn run(command: Command) -> Result<ExitCode, ServeError> {
    let config = IndexerConfig::load(&ProcessEnv::read())?;
    match command {
        Command::Reindex { from, no_wait } => reindex(config, from, no_wait).await,
        Command::Status { json, max_lag } => status(&config, json, max_lag).await,
    }
}

async fn read_status(location: &Location) -> Result<Option<StoreStatus>, ServeError> {
    let status = gw_chain_store::status(location, SystemClock.now()).await;
    let status = status.context("the database of the explorer cannot be read");
    status.map_err(ServeError::Unreadable)
}

async fn reindex(config: IndexerConfig, from: u64, no_wait: bool) -> Result<ExitCode, ServeError> {
    let mut interrupt = Interrupt::listen().context("the handlers of SIGTERM and SIGINT cannot be installed")?;
    let status = read_status(&config.location).await?;
    let indexed = status.as_ref().and_then(|status| {
        let head = status.head.as_ref()?.number;
        Some((status.chain_id?, status.first?, head))
    });
    let Some((chain_id, first, newest)) = indexed else {
        return Err(
            anyhow!("the database of the explorer has no blocks: start the indexer, it begins with them").into(),
        );
    };
    if from > newest {
        return Err(anyhow!("block {from} is not indexed: the newest indexed block is {newest}").into());
    }
    // Before anything is removed: without a node nothing could replace it.
    let node = if no_wait {
        None
    } else {
        let node = node::connect_indexer(&config.node, config.answer_bytes).await?;
        if node.chain_id() != chain_id {
            let other = node.chain_id();
            return Err(anyhow!("the database contains chain {chain_id}, the node serves chain {other}").into());
        }
        Some(node)
    };
    let store = ChainStore::open(ChainStoreConfig {
        location: config.location.clone(),
        connections: config.database_connections,
        chain_id,
        other_chain: OtherChain::Refuse,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    });
    let store = store.await.context("the database of the explorer cannot be opened")?;
    let indexing = indexer_config(&config.explorer, "explorer reindex");
    let writer = match store.writer(&indexing.name).await {
        Ok(writer) => writer,
        Err(ChainStoreError::OtherWriter { name }) => return Err(held(&config.location, &name).await),
        Err(error) => return Err(anyhow!(error).context("the database of the explorer failed").into()),
    };
    let removed = remove(&writer, from, first)
        .await
        .context("the blocks were not removed");
    if let Err(error) = removed {
        release(&writer).await;
        return Err(error.into());
    }
    say(format_args!("removed the indexed blocks {from} to {newest}\n"));
    let Some(node) = node else {
        release(&writer).await;
        say("the indexer that runs now or next indexes them again\n");
        return Ok(ExitCode::SUCCESS);
    };
    let mut operation = config.operation;
    // Its output is the progress; what goes wrong is logged.
    if operation.log_level == LogLevel::Info {
        operation.log_level = LogLevel::Warn;
    }
    let _log = telemetry::start_log(&operation).context("the log cannot be started")?;
    let mut indexer = Indexer::new(node, store, indexing, Arc::new(SystemClock));
    if !config.explorer.traces {
        indexer = indexer.without_traces();
    }
    let stop = CancellationToken::new();
    let progress = indexer.progress();
    let result = tokio::select! {
        result = indexer.index_to_head(&writer, &stop) => Some(result),
        () = show_progress(progress.clone()) => None,
        () = interrupt.heard() => None,
    };
    release(&writer).await;
    end_progress();
    match result {
        Some(result) => {
            result.context("the blocks were removed, but not all are indexed again; the next indexer continues")?;
            let height = progress.borrow().height.unwrap_or_default();
            say(format_args!("indexed up to block {height}\n"));
            say("balances, tokens and missing traces are read by the indexer that runs now or next\n");
            Ok(ExitCode::SUCCESS)
        }
        None => {
            eprint_line("interrupted: the indexer that runs next continues");
            Ok(ExitCode::from(EXIT_UNFINISHED))
        }
    }
}

async fn remove(writer: &ChainWriter, from: u64, first: u64) -> Result<(), ChainStoreError> {
    match from.checked_sub(1) {
        Some(ancestor) if from > first => writer.revert_to(ancestor).await.map(drop),
        _ => writer.wipe().await,
    }
}

/// Lets a waiting instance go on at once. If this fails, it does so after the end of this process.
async fn release(writer: &ChainWriter) {
    if let Err(error) = writer.release().await {
        eprint_line(format_args!("the lease was not released: {}", causes(&error.into())));
    }
}

/// The error if another process indexes.
async fn held(location: &Location, name: &str) -> ServeError {
    let status = read_status(location).await.ok().flatten();
    let age = match status.and_then(|status| status.lease) {
        Some(lease) => format!(", last seen {} seconds ago", lease.age.0),
        None => String::new(),
    };
    ServeError::Busy(format!(
        "`{name}` indexes into this database{age}: stop it, run this command again, and start it afterwards; to read \
         single blocks again beside it, request them with POST /api/v1/explorer/index/block/NUMBER"
    ))
}

async fn show_progress(progress: watch::Receiver<IndexerProgress>) {
    let is_terminal = std::io::stderr().is_terminal();
    let mut ticks = interval(if is_terminal { REDRAW } else { LINE });
    // The first tick is at once, before there is a rate.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let line = progress_line(&progress.borrow());
        if is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        } else {
            eprint_line(line);
        }
    }
}

/// Ends the line that a terminal shows.
fn end_progress() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

fn progress_line(progress: &IndexerProgress) -> String {
    let (Some(target), Some(lag)) = (progress.target, progress.lag()) else {
        return "waiting for the node".to_owned();
    };
    let height = progress
        .height
        .map_or_else(|| "none".to_owned(), |height| height.to_string());
    let left = match progress.time_left {
        Some(left) => duration(left),
        None => "unknown time".to_owned(),
    };
    format!(
        "block {height} of {target}, {lag} missing, {:.0} blocks/s, {:.0} transactions/s, {left} left",
        progress.blocks_per_second, progress.transactions_per_second
    )
}

/// A time as people read it.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// What `status` knows besides the database.
struct Chain {
    head: Option<u64>,
    /// Why there is no head.
    error: Option<String>,
    chain_id: Option<u64>,
    /// A block that cannot be indexed, and why.
    stuck_at: Option<(u64, String)>,
}

/// Asks the node for its newest block, and whether the `next` block can be indexed.
async fn ask_node(config: &IndexerConfig, next: Option<u64>) -> Chain {
    let ask = async {
        let node = node::connect_indexer(&config.node, config.answer_bytes).await?;
        let (chain_id, head) = (node.chain_id(), head_of(&node).await);
        let stuck_at = match next.filter(|next| *next <= head) {
            Some(next) => find_block_problem(node, next).await.map(|problem| (next, problem)),
            None => None,
        };
        Ok::<_, anyhow::Error>((chain_id, head, stuck_at))
    };
    match timeout(HEAD_WAIT, ask).await {
        Ok(Ok((chain_id, head, stuck_at))) => Chain {
            head: Some(head),
            error: None,
            chain_id: Some(chain_id),
            stuck_at,
        },
        Ok(Err(error)) => Chain {
            head: None,
            error: Some(causes(&error)),
            chain_id: None,
            stuck_at: None,
        },
        Err(_) => Chain {
            head: None,
            error: Some("the node did not answer in time".to_owned()),
            chain_id: None,
            stuck_at: None,
        },
    }
}

async fn head_of(node: &Node) -> u64 {
    loop {
        match node.head() {
            Some(head) => return head.number,
            None => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn status(config: &IndexerConfig, as_json: bool, max_lag: u64) -> Result<ExitCode, ServeError> {
    let status = read_status(&config.location).await?;
    let head = status.as_ref().and_then(|status| status.head.as_ref());
    let chain = ask_node(config, head.map(|head| head.number.saturating_add(1))).await;
    let target = chain
        .head
        .map(|head| head.saturating_sub(config.explorer.confirmations));
    let findings = findings(status.as_ref(), &chain, target, max_lag);
    if as_json {
        say(format_args!("{}\n", report(status.as_ref(), &chain, target, &findings)));
    } else {
        say(text(status.as_ref(), &chain, target, &findings));
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_FINDING)
    })
}

/// The number of blocks that the index lacks.
fn lag(status: &StoreStatus, target: Option<u64>) -> Option<u64> {
    let indexed = status.head.as_ref().map_or(0, |head| head.number.saturating_add(1));
    Some(target?.saturating_add(1).saturating_sub(indexed))
}

/// What an operator must look at.
fn findings(status: Option<&StoreStatus>, chain: &Chain, target: Option<u64>, max_lag: u64) -> Vec<String> {
    let mut findings = Vec::new();
    let Some(status) = status else {
        findings.push("there is no index: the database is missing or empty".to_owned());
        return findings;
    };
    if let Some(error) = &chain.error {
        findings.push(format!("the node cannot be asked: {error}"));
    }
    if let (Some(stored), Some(served)) = (status.chain_id, chain.chain_id)
        && stored != served
    {
        findings.push(format!(
            "the database contains chain {stored}, the node serves chain {served}"
        ));
        return findings;
    }
    if status.missing_blocks > 0 {
        let first = "index them again with `explorer reindex`";
        findings.push(format!(
            "{} blocks are missing between the others: {first}",
            status.missing_blocks
        ));
    }
    if let Some(lag) = lag(status, target).filter(|lag| *lag > max_lag) {
        findings.push(format!("the index is {lag} blocks behind the chain"));
    }
    if let Some((block, problem)) = &chain.stuck_at {
        findings.push(format!("block {block} cannot be indexed and is tried again: {problem}"));
    }
    match &status.lease {
        None => findings.push("no process indexes".to_owned()),
        Some(lease) if !lease.is_valid => findings.push(format!(
            "no process indexes: `{}` was last seen {} seconds ago",
            lease.name, lease.age.0
        )),
        Some(_) => {}
    }
    findings
}

fn report(status: Option<&StoreStatus>, chain: &Chain, target: Option<u64>, findings: &[String]) -> serde_json::Value {
    let Some(status) = status else {
        return json!({ "nodeHead": chain.head, "findings": findings });
    };
    let queue: serde_json::Map<String, serde_json::Value> = status
        .queue
        .iter()
        .map(|queue| {
            let tasks = json!({ "tasks": queue.tasks, "failed": queue.failed });
            (queue.kind.as_str().to_owned(), tasks)
        })
        .collect();
    let lease = status
        .lease
        .as_ref()
        .map(|lease| json!({ "holder": lease.name, "ageSeconds": lease.age.0, "isValid": lease.is_valid }));
    json!({
        "chainId": status.chain_id,
        "firstBlock": status.first,
        "lastIndexedBlock": status.head.as_ref().map(|head| head.number),
        "lastIndexedTime": status.head.as_ref().map(|head| Timestamp::from_secs(head.timestamp).to_rfc3339()),
        "finalizedBlock": status.finalized,
        "nodeHead": chain.head,
        "lagBlocks": lag(status, target),
        "missingBlocks": status.missing_blocks,
        "blocksWithoutTrace": status.blocks_without_frames,
        "queue": queue,
        "lease": lease,
        "databaseBytes": status.bytes,
        "generation": status.generation,
        "findings": findings,
    })
}

fn text(status: Option<&StoreStatus>, chain: &Chain, target: Option<u64>, findings: &[String]) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let number = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    if let Some(status) = status {
        let indexed = match (&status.head, status.first) {
            (Some(head), Some(first)) => format!(
                "{first} to {}, of {}",
                head.number,
                Timestamp::from_secs(head.timestamp).to_rfc3339()
            ),
            _ => "none".to_owned(),
        };
        lines.push(("chain", number(status.chain_id)));
        lines.push(("indexed blocks", indexed));
        lines.push(("newest block of the node", number(chain.head)));
        lines.push(("blocks behind", number(lag(status, target))));
        lines.push(("finalized block", number(status.finalized)));
        lines.push(("missing blocks", status.missing_blocks.to_string()));
        lines.push(("blocks without a trace", status.blocks_without_frames.to_string()));
        let queue = status.queue.iter().filter(|queue| queue.tasks > 0);
        let queue: Vec<String> = queue
            .map(|queue| match queue.failed {
                0 => format!("{} {}", queue.tasks, queue.kind.as_str()),
                failed => format!(
                    "{} {} ({failed} failed and are repeated)",
                    queue.tasks,
                    queue.kind.as_str()
                ),
            })
            .collect();
        let queue = if queue.is_empty() {
            "empty".to_owned()
        } else {
            queue.join(", ")
        };
        lines.push(("queue", queue));
        let holder = match &status.lease {
            Some(lease) => format!("{}, last seen {} seconds ago", lease.name, lease.age.0),
            None => "none".to_owned(),
        };
        lines.push(("indexing process", holder));
        lines.push(("database size", size(status.bytes)));
        lines.push(("generation", status.generation.to_string()));
    }
    let mut text: String = lines
        .into_iter()
        .map(|(name, value)| format!("{name:<25} {value}\n"))
        .collect();
    for finding in findings {
        text.push_str(&format!("problem: {finding}\n"));
    }
    text
}

fn size(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_chain_store::LeaseStatus;
    use gw_indexer::IndexerState;
    use gw_types::Seconds;

    fn stored() -> StoreStatus {
        StoreStatus {
            chain_id: Some(1337),
            generation: 3,
            first: Some(0),
            head: None,
            finalized: None,
            missing_blocks: 0,
            blocks_without_frames: 0,
            queue: Vec::new(),
            lease: Some(LeaseStatus {
                name: "instance".to_owned(),
                age: Seconds(4),
                is_valid: true,
            }),
            bytes: 1,
        }
    }

    fn chain(head: Option<u64>) -> Chain {
        Chain {
            head,
            error: head.is_none().then(|| "away".to_owned()),
            chain_id: head.map(|_| 1337),
            stuck_at: None,
        }
    }

    #[test]
    fn x4_status_finds_what_an_operator_must_look_at() {
        let findings_at = |status: &StoreStatus, head| findings(Some(status), &chain(head), head, 100);
        assert_eq!(
            findings_at(&stored(), Some(99)),
            [""; 0],
            "100 blocks are missing, as far as it may be behind"
        );
        assert_eq!(
            findings_at(&stored(), Some(100)),
            ["the index is 101 blocks behind the chain"]
        );
        assert_eq!(findings_at(&stored(), None), ["the node cannot be asked: away"]);
        assert_eq!(
            findings(None, &chain(Some(1)), Some(1), 100),
            ["there is no index: the database is missing or empty"]
        );
        let contradicting = Chain {
            stuck_at: Some((7, "`timestamp` is out of range".to_owned())),
            ..chain(Some(7))
        };
        assert_eq!(
            findings(Some(&stored()), &contradicting, Some(7), 100),
            ["block 7 cannot be indexed and is tried again: `timestamp` is out of range"],
            "x7"
        );
        let mut status = stored();
        status.lease = None;
        status.missing_blocks = 2;
        assert_eq!(findings_at(&status, Some(0)).len(), 2);
        status = stored();
        status.lease.as_mut().unwrap().is_valid = false;
        assert_eq!(
            findings_at(&status, Some(0)),
            ["no process indexes: `instance` was last seen 4 seconds ago"]
        );
        status = stored();
        status.chain_id = Some(1);
        assert_eq!(
            findings_at(&status, Some(0)),
            ["the database contains chain 1, the node serves chain 1337"]
        );
    }

    #[test]
    fn progress_is_one_line_with_the_rate_and_the_time_left() {
        let mut progress = IndexerProgress {
            state: IndexerState::CatchingUp,
            height: Some(99),
            target: Some(7299),
            finalized: None,
            blocks_per_second: 120.4,
            transactions_per_second: 300.0,
            time_left: Some(Duration::from_secs(61)),
            updated_at: Timestamp::from_secs(0),
        };
        assert_eq!(
            progress_line(&progress),
            "block 99 of 7299, 7200 missing, 120 blocks/s, 300 transactions/s, 1 min 1 s left"
        );
        progress.target = None;
        assert_eq!(progress_line(&progress), "waiting for the node");
        assert_eq!(duration(Duration::from_secs(7260)), "2 h 1 min");
    }
}
