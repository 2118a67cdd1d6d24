//! Entries of mutations: they wait in the policy store, written by the mutation's own transaction, until they get their
//! place in the one administrative chain of the deployment (spec/70 rules 3 and 15, decision 46).

use super::{
    chain::{SealedChain, Signer},
    frontiers::Frontiers,
};
use anyhow::Context as _;
use gw_audit::{Chain, ChainId, Draft, Genesis, Record, ShardId, StoredEntry, Stream};
use gw_store::{
    Store,
    audit::{AuditStore, OutboxEntry, ToSeal},
};
use gw_types::{Entropy, Timestamp};
use std::sync::Arc;
use tokio::time::{Duration, Instant};
use uuid::Uuid;

/// The chain is one for all instances, so its shard is nobody's.
const SHARD: ShardId = ShardId(Uuid::nil());
/// How often the outbox is looked into.
const LOOK: Duration = Duration::from_millis(200);

/// The outbox and the chain its entries go to.
#[derive(Debug)]
pub(super) struct Outbox {
    store: Store,
    entropy: Arc<dyn Entropy>,
    genesis: Genesis,
    sealed: SealedChain,
    /// The chain's end and the last outbox row in it; asked of the store anew after any failure.
    known: Option<(Chain, i64)>,
    looked: Option<Instant>,
}

impl Outbox {
    pub(super) fn new(store: Store, entropy: Arc<dyn Entropy>, signer: &Signer, holder: String) -> Self {
        Self {
            store,
            entropy,
            genesis: Genesis::new(SHARD, signer.cluster, signer.public().to_bytes()),
            sealed: SealedChain::new(Self::chain_id(), holder),
            known: None,
            looked: None,
        }
    }

    const fn chain_id() -> ChainId {
        ChainId { stream: Stream::Admin, shard: SHARD }
    }

    /// The chain in the store.
    pub(super) fn chain(&mut self) -> Option<&mut SealedChain> {
        Some(&mut self.sealed)
    }

    /// Seals one batch; whether there may be more at once.
    pub(super) async fn step(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        most: usize,
    ) -> anyhow::Result<bool> {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return Ok(false);
        }
        let full = self.batch(audit, frontiers, most).await.inspect_err(|_| self.known = None)?;
        // Look again at once only where there is more.
        self.looked = if full { None } else { Some(Instant::now()) };
        Ok(full)
    }

    async fn batch(&mut self, audit: &AuditStore, frontiers: &mut Frontiers, most: usize) -> anyhow::Result<bool> {
        let Some(claim) = self.sealed.claim(audit, frontiers).await? else { return Ok(false) };
        let (mut chain, after) = match self.known.take() {
            Some(known) => known,
            None => {
                let chain = match claim.head {
                    Some(head) => Chain::resume(Self::chain_id(), head, audit.org_heads(Self::chain_id()).await?),
                    None => self.begin(audit, frontiers).await?,
                };
                (chain, audit.last_outbox_id().await?)
            }
        };
        let waiting = self.store.outbox(after, u64::try_from(most).unwrap_or(u64::MAX)).await?;
        let Some(last) = waiting.last().map(|row| row.id) else {
            self.known = Some((chain, after));
            return Ok(false);
        };
        let full = waiting.len() >= most;
        let mut batch = Vec::with_capacity(waiting.len());
        for OutboxEntry { id, created_at, entry } in waiting {
            let draft = Draft::new(&Record::Admin(entry), &*self.entropy);
            let entry = chain.entry(draft, created_at).context("an outbox row cannot be written as an entry")?;
            batch.push(ToSeal { entry, outbox_id: Some(id) });
        }
        self.sealed.seal(audit, frontiers, batch).await?;
        self.store.forget_outbox(last).await?;
        self.known = Some((chain, last));
        Ok(full)
    }

    /// The chain's first entry.
    async fn begin(&mut self, audit: &AuditStore, frontiers: &mut Frontiers) -> anyhow::Result<Chain> {
        let mut bytes = Vec::new();
        // The earliest time there is: no outbox row may be older than the start of its chain.
        let (chain, _) = Chain::begin(Self::chain_id(), &self.genesis, Timestamp::from_micros(0), &mut bytes);
        let entry = StoredEntry::new(bytes, Vec::new())?;
        self.sealed.seal(audit, frontiers, vec![ToSeal { entry, outbox_id: None }]).await?;
        Ok(chain)
    }
}
