//! Re-anchoring: a signed record that a chain goes on from another head than the one that was signed (spec/70 rule 22).
//!
//! It hides nothing. Verification goes on behind it, lists it, and keeps reporting what it covers as authorized.

use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey, decode_hash, encode_hash};
use crate::entry::{ChainId, Hash};
use crate::tree::Frontier;
use gw_types::Timestamp;

/// How the origin of a re-anchoring ends, so that its note is never taken for a checkpoint.
const ORIGIN: &str = "re-anchor";
/// Characters of an actor's name and of a reason at most.
const ACTOR: usize = 128;
const REASON: usize = 512;

/// A chain's jump from the head that was signed to the head that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discontinuity {
    /// The chain.
    pub chain: ChainId,
    /// How many there are of the chain with this one.
    pub era: u64,
    /// Size and root that were signed or trusted last.
    pub from: (u64, Hash),
    /// Size and root of the tree as it is. A number below the size without a row counts as a leaf of zeros.
    pub to: (u64, Hash),
    /// The roots of the tree's full subtrees, largest first.
    pub peaks: Vec<Hash>,
    /// The hash of the last entry there is.
    pub last: Option<Hash>,
    /// The largest size up to which the chain is still as it was signed: nothing below it is excused.
    pub intact: u64,
    /// The number after the highest one given out: what is lost below it is known.
    pub issued: u64,
    /// When.
    pub time: Timestamp,
    /// Who decided it.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// Why a text is no actor or no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an actor of at most {ACTOR} and a reason of at most {REASON} characters on one line are needed")]
pub struct TextError;

impl Discontinuity {
    /// Whether actor and reason can stand in a record.
    ///
    /// # Errors
    /// If one is empty, too long or has control characters.
    pub fn check_texts(actor: &str, reason: &str) -> Result<(), TextError> {
        let fits = |text: &str, most: usize| {
            !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
        };
        if fits(actor, ACTOR) && fits(reason, REASON) {
            Ok(())
        } else {
            Err(TextError)
        }
    }

    /// The signed note.
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

    /// Reads a note that one of `keys` signed.
    ///
    /// # Errors
    /// If none of them did, or it is no re-anchoring of a chain of `cluster`.
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
        let read = Self {
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
        let root = Frontier::resume(read.to.0, read.peaks.clone())?.root();
        (root == read.to.1 && read.era > 0 && read.intact <= read.to.0).then_some(read)
    }

    /// Whether a finding about this entry is covered.
    pub const fn covers(&self, seq: u64) -> bool {
        self.intact <= seq && seq < self.to.0
    }
}
