//! Re-anchoring: a signed record that a chain continues from another head than the one signed last (spec/70 rule 22).
//!
//! A re-anchoring hides nothing. Verification continues behind it, lists it, and still reports the findings it covers,
//! as authorized.

use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey, decode_hash, encode_hash};
use crate::entry::ChainId;
use crate::hash::Hash;
use crate::tree::Frontier;
use gw_types::Timestamp;

/// The last part of the origin of a re-anchoring note, so that the note is never taken for a checkpoint.
const ORIGIN: &str = "re-anchor";
/// The longest actor, in characters.
const ACTOR: usize = 128;
/// The longest reason, in characters.
const REASON: usize = 512;

/// A re-anchoring: the chain's step from the head that was signed to the head that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discontinuity {
    /// The chain.
    pub chain: ChainId,
    /// The number of re-anchorings of the chain, this one included.
    pub era: u64,
    /// The size and root that were signed or trusted last.
    pub from: (u64, Hash),
    /// The size and root of the tree in the store. A number below the size that has no row counts as a leaf of zeros.
    pub to: (u64, Hash),
    /// The roots of the full subtrees of the tree in the store, largest first.
    pub peaks: Vec<Hash>,
    /// The hash of the last entry in the store.
    pub last: Option<Hash>,
    /// The largest size up to which the chain is still as it was signed. Findings below it are not covered.
    pub intact: u64,
    /// The number after the highest one issued by the writer. Lost numbers below it are covered.
    pub issued: u64,
    /// When the re-anchoring was decided.
    pub time: Timestamp,
    /// Who decided it.
    pub actor: String,
    /// Why it was decided.
    pub reason: String,
}

/// The actor or the reason of a re-anchoring is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an actor of at most {ACTOR} and a reason of at most {REASON} characters on one line are needed")]
pub struct TextError;

impl Discontinuity {
    /// Checks that actor and reason fit into a record.
    ///
    /// # Errors
    /// One of them is empty, too long or has control characters.
    pub fn check_texts(actor: &str, reason: &str) -> Result<(), TextError> {
        let fits = |text: &str, max: usize| {
            !text.trim().is_empty() && text.chars().count() <= max && !text.chars().any(char::is_control)
        };
        if fits(actor, ACTOR) && fits(reason, REASON) {
            Ok(())
        } else {
            Err(TextError)
        }
    }

    /// Signs the re-anchoring and returns the signed note.
    pub fn sign(&self, cluster: &str, key: &CheckpointKey) -> String {
        let peaks: Vec<_> = self.peaks.iter().map(encode_hash).collect();
        let last = self.last.as_ref().map_or_else(|| "-".to_owned(), encode_hash);
        let extensions = vec![
            format!("era {}", self.era),
            format!("from {} {}", self.from.0, encode_hash(&self.from.1)),
            format!(
                "peaks {}",
                if peaks.is_empty() {
                    "-".to_owned()
                } else {
                    peaks.join(",")
                }
            ),
            format!("last {last}"),
            format!("intact {}", self.intact),
            format!("issued {}", self.issued),
            format!("time {}", self.time.micros()),
            format!("actor {}", self.actor),
            format!("reason {}", self.reason),
        ];
        let origin = format!("{}/{ORIGIN}", self.chain.origin(cluster));
        Checkpoint {
            extensions,
            ..Checkpoint::new(origin, self.to.0, self.to.1)
        }
        .sign(key)
    }

    /// Parses a note and checks that one of `keys` signed it.
    ///
    /// # Errors
    /// None of `keys` signed the note, or it is not a re-anchoring of a chain of `cluster`.
    pub fn open(note: &str, cluster: &str, keys: &[CheckpointPublicKey]) -> Result<Self, CheckpointError> {
        let checkpoint = Checkpoint::open(note, keys)?;
        Self::read(&checkpoint, cluster).ok_or(CheckpointError::Malformed)
    }

    fn read(checkpoint: &Checkpoint, cluster: &str) -> Option<Self> {
        let origin = checkpoint.origin.strip_suffix(ORIGIN)?.strip_suffix('/')?;
        let chain = ChainId::from_origin(origin, cluster)?;
        let [era, from, peaks, last, intact, issued, time, actor, reason] = checkpoint.extensions.as_slice() else {
            return None;
        };
        let (from_size, from_root) = from.strip_prefix("from ")?.split_once(' ')?;
        let peaks = match peaks.strip_prefix("peaks ")? {
            "-" => Vec::new(),
            list => list.split(',').map(decode_hash).collect::<Option<_>>()?,
        };
        let last = match last.strip_prefix("last ")? {
            "-" => None,
            hash => Some(decode_hash(hash)?),
        };
        let discontinuity = Self {
            chain,
            era: era.strip_prefix("era ")?.parse().ok()?,
            from: (from_size.parse().ok()?, decode_hash(from_root)?),
            to: (checkpoint.size, checkpoint.root),
            last,
            intact: intact.strip_prefix("intact ")?.parse().ok()?,
            issued: issued.strip_prefix("issued ")?.parse().ok()?,
            time: Timestamp::from_micros(time.strip_prefix("time ")?.parse().ok()?),
            actor: actor.strip_prefix("actor ")?.to_owned(),
            reason: reason.strip_prefix("reason ")?.to_owned(),
            peaks,
        };
        let root = Frontier::resume(discontinuity.to.0, discontinuity.peaks.clone())?.root();
        let is_consistent =
            root == discontinuity.to.1 && discontinuity.era > 0 && discontinuity.intact <= discontinuity.to.0;
        is_consistent.then_some(discontinuity)
    }

    /// Whether a finding about the entry `seq` is covered.
    pub const fn covers(&self, seq: u64) -> bool {
        self.intact <= seq && seq < self.to.0
    }
}
