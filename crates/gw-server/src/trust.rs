//! What this instance knows about the audit log independently of its database: the file of trusted heads in the
//! journal's directory, the witness that receives every signed note, and the alarm for tamper findings (spec/70 rules
//! 7, 8 and 19).

mod alarm;
mod heads_file;

pub(crate) use alarm::TamperAlarm;
pub(crate) use heads_file::{HeadsFile, read_heads};

use crate::webhook::{Post, Webhook};
use gw_audit::{
    ChainEdge, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Discontinuity, TrustedHead, TrustedHeads,
};
use gw_types::Clock;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The log target of signed notes. The name is stable, so that log shippers can select by it.
pub(crate) const LOG_TARGET: &str = "audit.checkpoint";

/// Trusted heads, tamper alarm and witness of this instance.
#[derive(Debug)]
pub(crate) struct AuditTrust {
    pub(crate) file: HeadsFile,
    pub(crate) alarm: TamperAlarm,
    pub(crate) cluster: &'static str,
    clock: Arc<dyn Clock>,
    witness: Option<Webhook>,
    /// How long a signed list of chains is valid.
    interval: Duration,
    /// When the last list was signed, and how many chains it names.
    listed: Mutex<Option<(Instant, usize)>>,
}

impl AuditTrust {
    pub(crate) fn new(
        file: HeadsFile,
        alarm: TamperAlarm,
        cluster: &'static str,
        clock: Arc<dyn Clock>,
        witness: Option<Webhook>,
        interval: Duration,
    ) -> Self {
        Self {
            file,
            alarm,
            cluster,
            clock,
            witness,
            interval,
            listed: Mutex::default(),
        }
    }

    /// The number of entries of a chain that re-anchorings have accounted for. Losses below it are accepted already.
    pub(crate) fn accepted(&self, chain: ChainId) -> u64 {
        let heads = self.file.heads();
        let keys: Vec<_> = heads.keys().collect();
        let notes = heads.discontinuities(chain).iter();
        let discontinuities = notes.filter_map(|note| Discontinuity::open(note, self.cluster, &keys).ok());
        discontinuities
            .map(|discontinuity| discontinuity.issued)
            .max()
            .unwrap_or(0)
    }

    /// Stores a head that this instance signed, and sends the note to the log and to the witness.
    pub(crate) fn note_signed(
        &self,
        chain: ChainId,
        edge: &ChainEdge,
        checkpoint: &Checkpoint,
        note: &str,
        key: &CheckpointKey,
    ) {
        tracing::info!(target: LOG_TARGET, %chain, size = checkpoint.size, note, "a checkpoint was signed");
        let mut list = None;
        let written = self.file.update(|heads| {
            heads.remember_key(&key.public());
            heads.advance(chain, TrustedHead::new(Some(note.to_owned()), edge, checkpoint.era()));
            if self.list_is_due(heads) {
                list = Some(heads.sign_list(self.cluster, self.clock.now().micros().unsigned_abs(), key));
            }
            true
        });
        if let Err(error) = written {
            tracing::error!(
                %error,
                "the trusted heads could not be written: the audit log is checked against older heads; check the \
                 journal directory"
            );
        }
        if let Some(list) = &list {
            tracing::info!(target: LOG_TARGET, note = list.as_str(), "the list of chains was signed");
        }
        if let Some(witness) = &self.witness {
            for note in [Some(note.to_owned()), list].into_iter().flatten() {
                witness.post(Post {
                    content_type: "text/plain; charset=utf-8",
                    body: note,
                });
            }
        }
    }

    /// Whether half of the interval has passed since the last signed list, or the number of chains has changed.
    fn list_is_due(&self, heads: &TrustedHeads) -> bool {
        let chains = heads.heads().count();
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let due = listed.is_none_or(|(at, listed_chains)| listed_chains != chains || at.elapsed() * 2 >= self.interval);
        if due {
            *listed = Some((Instant::now(), chains));
        }
        due
    }
}

/// Applies the re-anchorings in the audit store to the trusted heads. They are signed, so the store need not be
/// trusted. Returns whether any was new.
pub(crate) fn adopt(
    heads: &mut TrustedHeads,
    stored: &[(ChainId, String)],
    cluster: &str,
    keys: &[CheckpointPublicKey],
) -> bool {
    let mut changed = false;
    for (chain, note) in stored {
        match Discontinuity::open(note, cluster, keys) {
            Ok(discontinuity) if discontinuity.chain == *chain => changed |= heads.re_anchor(note, &discontinuity),
            Ok(_) | Err(_) => {
                tracing::warn!(%chain, "a re-anchoring in the audit store is ignored: no known key signed it")
            }
        }
    }
    changed
}
