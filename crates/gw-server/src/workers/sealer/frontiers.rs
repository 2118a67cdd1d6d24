//! The trusted head that a chain must continue before it is signed, and the record of new signatures (spec/70 rules 7
//! and 8).

use crate::trust::{AuditTrust, adopt};
use gw_audit::{
    Anchor, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, SigningGuard, TrustedHead, TrustedHeads,
    verify::Finding,
};
use gw_store::{StoreError, audit::AuditStore};
use gw_types::Timestamp;
use std::{io, sync::Arc};

/// The sealer's access to the trusted heads.
#[derive(Clone, Debug)]
pub(super) struct Frontiers {
    trust: Arc<AuditTrust>,
    keys: Vec<CheckpointPublicKey>,
}

impl Frontiers {
    /// `key` is the current key; the older keys come from the file of trusted heads.
    pub(super) fn new(trust: Arc<AuditTrust>, key: CheckpointPublicKey) -> Self {
        let mut keys = vec![key];
        keys.extend(trust.file.heads().keys());
        Self { trust, keys }
    }

    /// The guard with the head that the chain must continue: the trusted head or, without one, the store's newest valid
    /// note.
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

    /// Records a new signature in the trusted heads.
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

    /// The newest trusted note of a chain, and its size.
    pub(super) fn newest_note(&self, chain: ChainId) -> Option<(u64, String)> {
        self.trust
            .file
            .heads()
            .head(chain)
            .and_then(|head| Some((head.size, head.note.clone()?)))
    }

    /// Count of the chain's signed entries: from the trusted head or, without one, from the store's valid notes.
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

    /// The time of the chain's last pruned entry, from its signed anchor.
    pub(super) async fn pruned_until(&self, audit: &AuditStore, chain: ChainId) -> anyhow::Result<Option<Timestamp>> {
        let stored = match audit.anchor(chain).await {
            Ok(Some(stored)) => stored,
            Ok(None) | Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Verification reports an invalid anchor.
        let anchor = Anchor::open(&stored.bytes, &stored.note, chain, self.trust.cluster, &self.keys);
        Ok(anchor.ok().map(|anchor| anchor.head.time))
    }

    /// A copy of the trusted heads.
    pub(super) fn trusted(&self) -> TrustedHeads {
        self.trust.file.heads()
    }

    /// Keeps a head that only the journal knows.
    pub(super) fn keep_unsigned(&self, chain: ChainId, head: TrustedHead) -> io::Result<()> {
        self.trust.file.update(|heads| heads.advance(chain, head))
    }

    /// The origin of a chain's notes.
    pub(super) fn origin(&self, chain: ChainId) -> String {
        chain.origin(self.trust.cluster)
    }

    /// Raises the alarm: the chain contradicts its trusted head.
    pub(super) fn raise(&self, chain: ChainId, finding: &Finding) {
        self.trust.alarm.raise(chain, finding, 0, 0);
    }

    /// Whether the chain was re-anchored after era `known`. Adopts new re-anchorings into the trusted heads.
    pub(super) async fn is_re_anchored(&self, audit: &AuditStore, chain: ChainId, known: u64) -> anyhow::Result<bool> {
        let stored = audit.discontinuities().await?;
        self.trust
            .file
            .update(|heads| adopt(heads, &stored, self.trust.cluster, &self.keys))?;
        Ok(self.trust.file.heads().head(chain).is_some_and(|head| head.era > known))
    }
}
