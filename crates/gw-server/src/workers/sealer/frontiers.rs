//! What a chain has to continue before it is signed, and what is kept of a signature (spec/70 rules 7 and 8).

use crate::trust::{Trust, adopt};
use gw_audit::{Anchor, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, SigningGuard, verify::Finding};
use gw_store::{StoreError, audit::AuditStore};
use gw_types::Timestamp;
use std::sync::Arc;

/// The trusted heads as the sealer uses them.
#[derive(Clone, Debug)]
pub(super) struct Frontiers {
    trust: Arc<Trust>,
    keys: Vec<CheckpointPublicKey>,
}

impl Frontiers {
    /// `key` signs; older ones are known from the file.
    pub(super) fn new(trust: Arc<Trust>, key: CheckpointPublicKey) -> Self {
        let mut keys = vec![key];
        keys.extend(trust.file.heads().keys());
        Self { trust, keys }
    }

    /// What the chain has to continue: the trusted head; where there is none, the store's newest note.
    pub(super) async fn guard(&self, audit: &AuditStore, chain: ChainId) -> anyhow::Result<SigningGuard> {
        if let Some(guard) = self.trust.file.heads().head(chain).and_then(SigningGuard::from_trusted) {
            return Ok(guard);
        }
        let notes = audit.newest_checkpoints(chain).await?;
        let newest = notes
            .iter()
            .filter_map(|signed| Checkpoint::open(&signed.note, &self.keys).ok());
        let newest = newest.max_by_key(|note| (note.era(), note.size));
        Ok(newest
            .as_ref()
            .map_or_else(SigningGuard::fresh, SigningGuard::from_checkpoint))
    }

    /// Keeps what was signed.
    pub(super) fn keep(
        &self,
        chain: ChainId,
        guard: &SigningGuard,
        checkpoint: &Checkpoint,
        note: &str,
        key: &CheckpointKey,
    ) {
        self.trust.note_signed(chain, guard.edge(), checkpoint, note, key);
    }

    /// The newest note known of a chain, and its size.
    pub(super) fn newest_note(&self, chain: ChainId) -> Option<(u64, String)> {
        self.trust
            .file
            .heads()
            .head(chain)
            .and_then(|head| Some((head.size, head.note.clone()?)))
    }

    /// How far the chain is signed, as far as is known here, else by the store's own notes.
    pub(super) async fn signed_size(&self, audit: &AuditStore, chain: ChainId) -> anyhow::Result<u64> {
        if let Some((size, _)) = self.newest_note(chain) {
            return Ok(size);
        }
        let notes = audit.newest_checkpoints(chain).await?;
        let sizes = notes
            .iter()
            .filter_map(|signed| Checkpoint::open(&signed.note, &self.keys).ok());
        Ok(sizes.map(|note| note.size).max().unwrap_or(0))
    }

    /// The time of the last entry that was pruned off the chain, as a signed anchor says.
    pub(super) async fn pruned_until(&self, audit: &AuditStore, chain: ChainId) -> anyhow::Result<Option<Timestamp>> {
        let stored = match audit.anchor(chain).await {
            Ok(Some(stored)) => stored,
            Ok(None) | Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // One that is none is told by verification.
        let anchor = Anchor::open(&stored.bytes, &stored.note, chain, self.trust.cluster, &self.keys);
        Ok(anchor.ok().map(|anchor| anchor.head.time))
    }

    /// The origin of a chain's notes.
    pub(super) fn origin(&self, chain: ChainId) -> String {
        chain.origin(self.trust.cluster)
    }

    /// The chain contradicts what is trusted of it.
    pub(super) fn raise(&self, chain: ChainId, finding: &Finding) {
        self.trust.alarm.raise(chain, finding, 0, 0);
    }

    /// Whether the chain was re-anchored since era `known`; then its trusted head is another one.
    pub(super) async fn is_re_anchored(&self, audit: &AuditStore, chain: ChainId, known: u64) -> anyhow::Result<bool> {
        let stored = audit.discontinuities().await?;
        self.trust
            .file
            .update(|heads| adopt(heads, &stored, self.trust.cluster, &self.keys))?;
        Ok(self.trust.file.heads().head(chain).is_some_and(|head| head.era > known))
    }
}
