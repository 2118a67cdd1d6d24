//! The loop of one chain: a step, a short wait, and a longer wait after a failure. Each chain has its own loop, so that
//! a chain that waits for a database lock does not delay the others.

use super::{
    alarm::record,
    chain::{SealedChain, Signer},
    frontiers::Frontiers,
    health::{SealingHealth, StallReason},
    outbox::Outbox,
    stream::JournalStream,
};
use gw_audit::{SecurityKind, Stream};
use gw_journal::Journal;
use gw_store::audit::AuditStore;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Most entries per transaction.
const BATCH: usize = 5000;
/// Wait while there is nothing to seal.
const IDLE: Duration = Duration::from_millis(100);
/// Wait after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// The source of a chain's entries.
#[derive(Debug)]
pub(super) enum Source {
    Journal(Box<JournalStream>),
    Outbox(Box<Outbox>),
}

/// The dependencies of every chain's worker.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) audit: AuditStore,
    pub(super) journal: Arc<Journal>,
    pub(super) signer: Arc<Signer>,
    pub(super) frontiers: Frontiers,
    pub(super) health: Arc<SealingHealth>,
}

/// Seals and signs one chain.
#[derive(Debug)]
pub(super) struct ChainWorker {
    stream: Stream,
    source: Source,
    tools: Tools,
    /// Time of the next attempt after a failure.
    retry_at: Option<Instant>,
}

impl ChainWorker {
    pub(super) fn new(stream: Stream, source: Source, tools: Tools) -> Self {
        Self {
            stream,
            source,
            tools,
            retry_at: None,
        }
    }

    /// Seals until `end` is cancelled.
    pub(super) async fn run(&mut self, end: &CancellationToken) {
        while !end.is_cancelled() {
            if !self.step().await {
                end.run_until_cancelled(sleep(IDLE)).await;
            }
        }
    }

    /// Seals and signs the remaining records.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        self.retry_at = None;
        while self.step().await {}
        self.sign().await
    }

    /// Seals one batch, and signs if a signature is due. Returns whether more records may wait.
    pub(super) async fn step(&mut self) -> bool {
        if self.retry_at.is_some_and(|time| time > Instant::now()) {
            return false;
        }
        match self.seal().await {
            Ok(full) => {
                self.succeeded();
                full
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    /// Signs the unsigned entries.
    pub(super) async fn sign(&mut self) -> anyhow::Result<()> {
        let (
            chain,
            Tools {
                audit,
                signer,
                frontiers,
                ..
            },
        ) = (chain(&mut self.source), &mut self.tools);
        chain.sign(audit, signer, frontiers).await
    }

    async fn seal(&mut self) -> anyhow::Result<bool> {
        let Tools {
            audit,
            signer,
            frontiers,
            ..
        } = &mut self.tools;
        let (full, issued) = match &mut self.source {
            Source::Journal(stream) => (stream.step(audit, frontiers, BATCH).await?, stream.issued()),
            Source::Outbox(outbox) => (outbox.step(audit, frontiers, BATCH).await?, None),
        };
        chain(&mut self.source).keep(audit, signer, frontiers, issued).await?;
        Ok(full)
    }

    fn succeeded(&mut self) {
        self.retry_at = None;
        if let Some(waited) = self.tools.health.note_success(self.stream) {
            tracing::info!(stream = %self.stream, waited_s = waited.as_secs(), "records are sealed again");
        }
    }

    fn failed(&mut self, error: &anyhow::Error) {
        self.retry_at = Some(Instant::now() + RETRY);
        let (stream, reason) = (self.stream, StallReason::from_error(error));
        tracing::warn!(%stream, reason = reason.as_str(), error = format!("{error:#}"), "records could not be sealed; \
             the sealer retries");
        if self.tools.health.note_failure(stream, reason) {
            report_stall(&self.tools.journal, stream, reason);
        }
    }

    /// Skips the wait before the next step.
    #[cfg(test)]
    pub(super) fn wake(&mut self) {
        self.retry_at = None;
        if let Source::Outbox(outbox) = &mut self.source {
            outbox.poll_at_once();
        }
    }
}

/// Reports a chain that has not been sealed for too long.
pub(super) fn report_stall(journal: &Journal, stream: Stream, reason: StallReason) {
    tracing::error!(
        %stream,
        reason = reason.as_str(),
        "records have been waiting to be sealed for too long: check the audit store and run \
         `ledger-gateway audit verify`. The journal keeps the records"
    );
    let reason = format!("{stream}:{}", reason.as_str());
    record(journal, SecurityKind::SealingStalled, reason, None);
}

fn chain(source: &mut Source) -> &mut SealedChain {
    match source {
        Source::Journal(stream) => stream.chain(),
        Source::Outbox(outbox) => outbox.chain(),
    }
}
