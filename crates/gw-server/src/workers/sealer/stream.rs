//! Seals one stream of the journal into its chain.

use super::{
    chain::SealedChain,
    frontiers::Frontiers,
    health::{OutOfStep, StallReason},
};
use crate::serve::journal::sealed_edge;
use anyhow::Context as _;
use gw_audit::{
    ChainId, StoredEntry, Stream,
    verify::{Finding, FindingKind},
};
use gw_journal::{Journal, StoredHead, StreamComparison, Unsealed};
use gw_store::audit::{AuditStore, ToSeal};
use std::sync::Arc;
use std::time::Duration;
use tokio::{task::spawn_blocking, time::Instant};

/// Time between two comparisons of the chain's head with the journal, unless a failure requires one earlier.
const COMPARE_INTERVAL: Duration = Duration::from_secs(60);

/// A stream and the chain of its records.
#[derive(Debug)]
pub(super) struct JournalStream {
    journal: Arc<Journal>,
    id: ChainId,
    sealed: SealedChain,
    /// Time of the last comparison in which journal and store agreed; `None` if they must be compared before the next
    /// batch.
    compared: Option<Instant>,
    /// The end of the chain in the store that was reported as not written by this journal.
    reported: Option<StoredHead>,
}

impl JournalStream {
    pub(super) fn new(journal: Arc<Journal>, stream: Stream) -> Self {
        let shard = journal.shard();
        let id = ChainId { stream, shard };
        Self {
            journal,
            id,
            sealed: SealedChain::new(id, shard.to_string()),
            compared: None,
            reported: None,
        }
    }

    /// The chain in the store.
    pub(super) const fn chain(&mut self) -> &mut SealedChain {
        &mut self.sealed
    }

    /// Count of the stream's numbered records; `None` if the journal cannot be read.
    pub(super) fn issued(&self) -> Option<u64> {
        let heads = self.journal.heads().ok()?;
        heads.iter().find(|(id, _)| *id == self.id).map(|(_, head)| head.size)
    }

    /// Seals one batch of at most `limit` records. Returns whether more records may wait.
    pub(super) async fn step(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        limit: usize,
    ) -> anyhow::Result<bool> {
        if self.compared.is_none_or(|time| time.elapsed() >= COMPARE_INTERVAL) {
            let has_entries = self.reconcile(audit, frontiers).await?;
            self.compared = Some(Instant::now());
            // Claim the chain even before the first call: the claim shows that the writer is alive, and entries that an
            // earlier process left unsigned are signed.
            if has_entries {
                self.sealed.claim(audit, frontiers).await?;
            }
        }
        let result = self.batch(audit, frontiers, limit).await;
        // The store rejected the batch or did not confirm it. Compare store and journal before the next attempt.
        if result.is_err() {
            self.compared = None;
            self.sealed.release();
        }
        result
    }

    async fn batch(&mut self, audit: &AuditStore, frontiers: &mut Frontiers, limit: usize) -> anyhow::Result<bool> {
        let (journal, stream) = (Arc::clone(&self.journal), self.id.stream);
        // On the blocking pool, because it reads files and hashes records.
        let batch = spawn_blocking(move || read_batch(&journal, stream, limit)).await;
        let batch = batch.context("reading the journal failed")??;
        let full = batch.len() >= limit;
        let Some(last) = batch.last() else { return Ok(false) };
        let (size, hash) = (last.entry.header.seq.saturating_add(1), last.entry.hash);
        self.sealed.seal(audit, frontiers, batch).await?;
        // Records leave the backlog only after a read confirmed that the store has them.
        let stored = audit
            .head(self.id)
            .await
            .context("the chain's head cannot be read back")?;
        if stored.is_none_or(|head| (head.size, head.hash) != (size, hash)) {
            return Err(OutOfStep(StallReason::Unconfirmed).into());
        }
        let journal = Arc::clone(&self.journal);
        spawn_blocking(move || journal.mark_sealed(stream, size))
            .await
            .context("marking the records as sealed failed")??;
        Ok(full)
    }

    /// Sets the journal's mark of sealed records to the size of the chain in the store, if its entries come from this
    /// journal. Returns whether the chain has entries.
    async fn reconcile(&mut self, audit: &AuditStore, frontiers: &Frontiers) -> anyhow::Result<bool> {
        let stream = self.id.stream;
        let head = audit
            .head(self.id)
            .await
            .context("the audit store's chains cannot be read")?;
        let stored = head.map_or_else(
            || StoredHead::empty(stream),
            |head| StoredHead {
                stream,
                size: head.size,
                hash: head.hash,
            },
        );
        let journal = Arc::clone(&self.journal);
        let standings = spawn_blocking(move || journal.reconcile(&[stored]))
            .await
            .context("comparing the journal with the audit store failed")??;
        match standings
            .into_iter()
            .find(|(compared_stream, _)| *compared_stream == stream)
            .map(|(_, standing)| standing)
        {
            None | Some(StreamComparison::InStep | StreamComparison::Moved) => Ok(head.is_some()),
            Some(StreamComparison::Missing { .. }) => Err(OutOfStep(StallReason::Missing).into()),
            Some(StreamComparison::Foreign) => {
                self.report_foreign(frontiers, stored).await?;
                Err(OutOfStep(StallReason::Foreign).into())
            }
        }
    }

    /// Raises the alarm, and keeps the end of the chain as this journal wrote it in the trusted heads: verification
    /// then reports the contradiction, also after a restart, until the chain is re-anchored.
    async fn report_foreign(&mut self, frontiers: &Frontiers, stored: StoredHead) -> anyhow::Result<()> {
        if self.reported == Some(stored) {
            return Ok(());
        }
        let (journal, trusted) = (Arc::clone(&self.journal), frontiers.trusted());
        let edge = spawn_blocking(move || sealed_edge(&journal, &trusted, &stored))
            .await
            .context("reading the journal failed")?
            .context("the sealed entries of the shard cannot be read from the journal")?;
        if let Some((chain, head)) = edge {
            frontiers
                .keep_unsigned(chain, head)
                .context("the trusted heads cannot be written")?;
        }
        let finding = Finding {
            stored: Some(stored.hash),
            ..Finding::new(FindingKind::Fork, stored.size.checked_sub(1))
        };
        frontiers.raise(self.id, &finding);
        tracing::error!(
            chain = %self.id,
            "the audit database has entries of this chain that the journal did not write: they are not signed, and new \
             records wait in the journal until a restart, after which they go on in a new shard; find who wrote to the \
             audit database"
        );
        self.reported = Some(stored);
        Ok(())
    }
}

/// The oldest records of a stream that are on disk and not sealed.
fn read_batch(journal: &Journal, stream: Stream, limit: usize) -> anyhow::Result<Vec<ToSeal>> {
    let to_seal = |Unsealed {
                       lsn, bytes, openings, ..
                   }| {
        let entry = StoredEntry::new(bytes, openings).with_context(|| format!("record {lsn} of the journal"))?;
        Ok(ToSeal { entry })
    };
    journal.unsealed(stream, limit)?.into_iter().map(to_seal).collect()
}
