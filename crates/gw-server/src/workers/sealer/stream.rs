//! One stream of the journal on its way into its chain.

use super::{
    chain::SealedChain,
    frontiers::Frontiers,
    health::{OutOfStep, StallReason},
};
use anyhow::Context as _;
use gw_audit::{ChainId, StoredEntry, Stream};
use gw_journal::{Journal, Standing, StoredHead, Unsealed};
use gw_store::audit::{AuditStore, ToSeal};
use std::sync::Arc;
use std::time::Duration;
use tokio::{task::spawn_blocking, time::Instant};

/// How often the end of the chain is compared with the journal, while nothing else asks for it.
const COMPARE: Duration = Duration::from_secs(60);

/// A stream and the chain its records go to.
#[derive(Debug)]
pub(super) struct JournalStream {
    journal: Arc<Journal>,
    id: ChainId,
    sealed: SealedChain,
    /// When journal and store were last found to be in step; `None` if they may stand apart, and are compared before the
    /// next batch.
    compared: Option<Instant>,
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
        }
    }

    /// The chain in the store.
    pub(super) const fn chain(&mut self) -> &mut SealedChain {
        &mut self.sealed
    }

    /// How many records of the stream are numbered; `None` if that cannot be told.
    pub(super) fn issued(&self) -> Option<u64> {
        let heads = self.journal.heads().ok()?;
        heads.iter().find(|(id, _)| *id == self.id).map(|(_, head)| head.size)
    }

    /// Seals one batch; whether there may be more at once.
    pub(super) async fn step(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        most: usize,
    ) -> anyhow::Result<bool> {
        if self.compared.is_none_or(|at| at.elapsed() >= COMPARE) {
            let is_begun = self.reconcile(audit).await?;
            self.compared = Some(Instant::now());
            // Before anything is called, too: what an earlier process left unsigned is signed, and a claim says that its
            // writer lives.
            if is_begun {
                self.sealed.claim(audit, frontiers).await?;
            }
        }
        let done = self.batch(audit, frontiers, most).await;
        // The store said no, or did not say yes: where both stand is asked before anything else is tried.
        if done.is_err() {
            self.compared = None;
            self.sealed.release();
        }
        done
    }

    async fn batch(&mut self, audit: &AuditStore, frontiers: &mut Frontiers, most: usize) -> anyhow::Result<bool> {
        let (journal, stream) = (Arc::clone(&self.journal), self.id.stream);
        // Reads files and hashes.
        let batch = spawn_blocking(move || read_batch(&journal, stream, most)).await;
        let batch = batch.context("reading the journal failed")??;
        let full = batch.len() >= most;
        let Some(last) = batch.last() else { return Ok(false) };
        let (size, hash) = (last.entry.header.seq.saturating_add(1), last.entry.hash);
        self.sealed.seal(audit, frontiers, batch).await?;
        // Records leave the backlog only when the store is seen to hold them.
        let stored = audit
            .head(self.id)
            .await
            .context("the chain's end cannot be read back")?;
        if stored.is_none_or(|head| (head.size, head.hash) != (size, hash)) {
            return Err(OutOfStep(StallReason::Unconfirmed).into());
        }
        let journal = Arc::clone(&self.journal);
        spawn_blocking(move || journal.mark_sealed(stream, size))
            .await
            .context("marking failed")??;
        Ok(full)
    }

    /// Brings the journal's mark to where the store stands, if what the store has is of this journal; whether it has
    /// anything.
    async fn reconcile(&self, audit: &AuditStore) -> anyhow::Result<bool> {
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
            .context("comparing failed")??;
        match standings
            .into_iter()
            .find(|(of, _)| *of == stream)
            .map(|(_, standing)| standing)
        {
            None | Some(Standing::InStep | Standing::Moved) => Ok(head.is_some()),
            Some(Standing::Missing { .. }) => Err(OutOfStep(StallReason::Missing).into()),
            Some(Standing::Foreign) => Err(OutOfStep(StallReason::Foreign).into()),
        }
    }
}

/// The oldest records of a stream that are on disk and not sealed.
fn read_batch(journal: &Journal, stream: Stream, most: usize) -> anyhow::Result<Vec<ToSeal>> {
    let placed = |Unsealed {
                      lsn, bytes, openings, ..
                  }| {
        let entry = StoredEntry::new(bytes, openings).with_context(|| format!("record {lsn} of the journal"))?;
        Ok(ToSeal { entry })
    };
    journal.unsealed(stream, most)?.into_iter().map(placed).collect()
}
