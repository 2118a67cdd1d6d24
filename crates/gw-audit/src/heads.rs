//! Trusted chain heads, which are kept outside the database that holds the chains (spec/70 rules 7 and 8).
//!
//! - [`TrustedHeads`]: the newest signed note of every chain with the edge of its tree, and the signed list of chains.
//! - [`SigningGuard`]: checks a stored chain before the gateway signs it.
//!
//! Invariant: [`SigningGuard::checkpoint`] returns a checkpoint only of a tree whose leaves continue the last trusted
//! head, entry by entry.

#![expect(
    clippy::result_large_err,
    reason = "a finding ends the signing of a chain, so its size costs nothing in the usual case"
)]

use crate::chain::Head;
use crate::checkpoint::{Checkpoint, CheckpointKey, CheckpointPublicKey};
use crate::discontinuity::Discontinuity;
use crate::entry::{ChainId, Header};
use crate::finding::{Finding, FindingKind};
use crate::hash::Hash;
use crate::ids::ShardId;
use crate::tree::{self, Frontier};
use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

impl core::fmt::Display for ChainId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.stream, self.shard)
    }
}

/// The text is not the name of a chain, `<stream>/<shard>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a chain: `<stream>/<shard>`")]
pub struct ChainNameError;

impl core::str::FromStr for ChainId {
    type Err = ChainNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (stream, shard) = text.split_once('/').ok_or(ChainNameError)?;
        let stream = stream.parse().map_err(|_| ChainNameError)?;
        let shard = ShardId(shard.parse().map_err(|_| ChainNameError)?);
        let id = Self { stream, shard };
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(ChainNameError)
        }
    }
}

impl ChainId {
    /// Parses the origin of a chain of `cluster`.
    pub fn from_origin(origin: &str, cluster: &str) -> Option<Self> {
        origin.strip_prefix(cluster)?.strip_prefix('/')?.parse().ok()
    }
}

/// The right edge of a chain: enough to append to its tree, and to check whether an entry continues the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainEdge {
    frontier: Frontier,
    /// The hash of the last entry; `None` if only the tree is known.
    last: Option<Hash>,
}

impl ChainEdge {
    /// An edge from a stored frontier. `last` is the hash of the last entry, if it is known.
    pub const fn new(frontier: Frontier, last: Option<Hash>) -> Self {
        Self { frontier, last }
    }

    /// The number of entries.
    pub const fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The frontier of the chain's tree.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The hash of the last entry, if it is known.
    pub const fn last(&self) -> Option<Hash> {
        self.last
    }

    /// Appends the next entry of the store. `stored` is the hash in the row.
    ///
    /// # Errors
    /// A finding, if the number, the hash or the link to the previous entry is not that of the next entry.
    pub fn push(&mut self, seq: u64, stored: Hash, bytes: &[u8]) -> Result<(), Finding> {
        let computed = tree::leaf(bytes);
        let expected_seq = self.size();
        let finding = |kind, stored, expected| Finding {
            kind,
            seq: Some(seq),
            time: None,
            stored,
            expected,
            place: None,
        };
        if seq != expected_seq {
            let kind = if seq > expected_seq {
                FindingKind::SeqGap
            } else {
                FindingKind::SeqDuplicate
            };
            return Err(Finding {
                seq: Some(expected_seq),
                ..finding(kind, Some(stored), None)
            });
        }
        let header = Header::read(bytes).map(|(header, _)| header);
        let header = header.map_err(|_| finding(FindingKind::HashMismatch, Some(stored), Some(computed)))?;
        if stored != computed || header.seq != seq {
            return Err(finding(FindingKind::HashMismatch, Some(stored), Some(computed)));
        }
        let last = if expected_seq == 0 { Some(Hash::ZERO) } else { self.last };
        if last.is_some_and(|last| last != header.prev) {
            return Err(finding(FindingKind::AnchorMismatch, Some(header.prev), last));
        }
        self.frontier.push(computed);
        self.last = Some(computed);
        Ok(())
    }

    /// Appends the hash of the next entry, which retention removed.
    pub fn push_pruned(&mut self, hash: Hash) {
        self.frontier.push(hash);
        self.last = Some(hash);
    }
}

/// Checks that a stored chain continues what was signed before, so that the gateway may sign it.
#[derive(Clone, Debug)]
pub struct SigningGuard {
    edge: ChainEdge,
    /// A size and root signed or seen earlier that the chain has to reach again.
    floor: Option<(u64, Hash)>,
    era: u64,
}

impl SigningGuard {
    /// For a chain without any trusted head.
    pub fn fresh() -> Self {
        Self {
            edge: ChainEdge::default(),
            floor: None,
            era: 0,
        }
    }

    /// For a chain of which only a signed note is known. The chain is read from its beginning and must have the note's
    /// root at the note's size.
    pub fn from_checkpoint(note: &Checkpoint) -> Self {
        Self {
            edge: ChainEdge::default(),
            floor: Some((note.size, note.root)),
            era: note.era(),
        }
    }

    /// For a chain that continues at a trusted head; `None` if the peaks of the head do not fit its size.
    pub fn from_trusted(head: &TrustedHead) -> Option<Self> {
        Some(Self {
            edge: head.edge()?,
            floor: None,
            era: head.era,
        })
    }

    /// The number of the next entry to read.
    pub const fn next(&self) -> u64 {
        self.edge.size()
    }

    /// The number of re-anchorings of the chain.
    pub const fn era(&self) -> u64 {
        self.era
    }

    /// The edge behind the entries read so far.
    pub const fn edge(&self) -> &ChainEdge {
        &self.edge
    }

    /// Starts again at the beginning of the chain, because the store ends below what was already read. The chain must
    /// reach its earlier size and root again, as after a failover whose lost entries the journal restores.
    pub fn rewind(&mut self) {
        let reached = (self.edge.size(), self.edge.frontier.root());
        if self.floor.is_none_or(|(size, _)| size < reached.0) {
            self.floor = Some(reached);
        }
        self.edge = ChainEdge::default();
    }

    /// Reads the next entry. `stored` is the hash in the row.
    ///
    /// # Errors
    /// A finding, if the entry does not continue the chain, or the root differs from the one signed at this size.
    pub fn push(&mut self, seq: u64, stored: Hash, bytes: &[u8]) -> Result<(), Finding> {
        self.edge.push(seq, stored, bytes)?;
        self.compare()
    }

    /// Reads the hash of the next entry, which retention removed.
    ///
    /// # Errors
    /// A finding, if the root differs from the one signed at this size.
    pub fn push_pruned(&mut self, hash: Hash) -> Result<(), Finding> {
        self.edge.push_pruned(hash);
        self.compare()
    }

    /// Compares the root with the one signed at this size.
    fn compare(&mut self) -> Result<(), Finding> {
        if let Some((size, root)) = self.floor.filter(|(size, _)| *size == self.edge.size()) {
            let computed = self.edge.frontier.root();
            if computed != root {
                let kind = FindingKind::AnchorMismatch;
                return Err(Finding {
                    kind,
                    seq: size.checked_sub(1),
                    time: None,
                    stored: Some(computed),
                    expected: Some(root),
                    place: None,
                });
            }
            self.floor = None;
        }
        Ok(())
    }

    /// The checkpoint to sign.
    ///
    /// # Errors
    /// [`FindingKind::ChainTruncated`] while the chain is shorter than its signed size.
    pub fn checkpoint(&self, origin: &str) -> Result<Checkpoint, Finding> {
        match self.floor {
            Some((size, root)) if size > self.edge.size() => Err(Finding {
                kind: FindingKind::ChainTruncated,
                seq: size.checked_sub(1),
                time: None,
                stored: None,
                expected: Some(root),
                place: None,
            }),
            Some(_) | None => Ok(Checkpoint::new(origin, self.edge.size(), self.edge.frontier.root()).in_era(self.era)),
        }
    }
}

/// The trusted head of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedHead {
    /// The newest signed note that was made or read; absent if only the edge was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The number of entries in the tree.
    pub size: u64,
    /// The roots of the tree's full subtrees, largest first.
    pub peaks: Vec<Hash>,
    /// The hash of the last entry, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Hash>,
    /// The number of re-anchorings of the chain up to this head.
    #[serde(default)]
    pub era: u64,
    /// The signed part of a head whose later entries only a journal knows; absent if the head is signed as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<SignedPart>,
}

/// The entries of a chain that were signed, below a head that was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedPart {
    /// The number of signed entries.
    pub size: u64,
    /// The hash of the last signed entry, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Hash>,
}

impl TrustedHead {
    /// The head at an edge; `note` is the signed note over it, if there is one.
    pub fn new(note: Option<String>, edge: &ChainEdge, era: u64) -> Self {
        Self {
            note,
            size: edge.size(),
            peaks: edge.frontier.peaks().to_vec(),
            last: edge.last,
            era,
            signed: None,
        }
    }

    /// The head at an edge that only a journal knows: it extends `trusted` by entries that are not signed.
    /// The store must still have these entries, or verification reports it.
    pub fn unsigned(edge: &ChainEdge, trusted: Option<&Self>) -> Self {
        Self {
            signed: Some(trusted.map_or_else(SignedPart::default, Self::signed_part)),
            ..Self::new(None, edge, trusted.map_or(0, |head| head.era))
        }
    }

    /// The entries up to this head that were signed.
    pub fn signed_part(&self) -> SignedPart {
        self.signed.unwrap_or(SignedPart {
            size: self.size,
            last: self.last,
        })
    }

    /// The edge of the chain at this head; `None` if the number of peaks does not fit the size.
    pub fn edge(&self) -> Option<ChainEdge> {
        Some(ChainEdge::new(
            Frontier::resume(self.size, self.peaks.clone())?,
            self.last,
        ))
    }

    /// The root of the tree; `None` if the number of peaks does not fit the size.
    pub fn root(&self) -> Option<Hash> {
        self.edge().map(|edge| edge.frontier.root())
    }
}

/// The last part of the origin of a list of chains.
const CHAINS: &str = "chains";

/// The signed list of chains. It shows when a whole chain was removed (rule 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainList {
    /// Origin, size and root of each chain, sorted by origin.
    pub heads: Vec<Checkpoint>,
}

impl ChainList {
    /// The origin of the lists of a cluster.
    pub fn origin(cluster: &str) -> String {
        format!("{cluster}/{CHAINS}")
    }

    /// The list as a checkpoint: its size is `counter`, its root is over the lines as leaves, and it has one extension
    /// line per chain.
    pub fn checkpoint(&self, cluster: &str, counter: u64) -> Checkpoint {
        let lines: Vec<_> = self.heads.iter().map(line).collect();
        let root = lines
            .iter()
            .map(|line| tree::leaf(line.as_bytes()))
            .collect::<Frontier>()
            .root();
        Checkpoint {
            extensions: lines,
            ..Checkpoint::new(Self::origin(cluster), counter, root)
        }
    }

    /// Reads a list from a checkpoint; `None` if the checkpoint is not a list of chains of `cluster`, or if its lines
    /// do not have its root.
    pub fn read(checkpoint: &Checkpoint, cluster: &str) -> Option<Self> {
        if checkpoint.origin != Self::origin(cluster) {
            return None;
        }
        let heads: Option<Vec<_>> = checkpoint.extensions.iter().map(|line| parse_line(line)).collect();
        let list = Self { heads: heads? };
        (list.checkpoint(cluster, checkpoint.size) == *checkpoint).then_some(list)
    }
}

fn line(head: &Checkpoint) -> String {
    let root = crate::checkpoint::encode_hash(&head.root);
    match head.era() {
        0 => format!("{} {} {root}", head.origin, head.size),
        era => format!("{} {} {root} {era}", head.origin, head.size),
    }
}

fn parse_line(text: &str) -> Option<Checkpoint> {
    let mut words = text.split(' ');
    let (origin, size, root) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let era = words.next().map_or(Some(0), |era| era.parse().ok())?;
    let head = Checkpoint::new(origin, size, crate::checkpoint::decode_hash(root)?).in_era(era);
    (line(&head) == text).then_some(head)
}

/// The end of a chain in the store, for the comparison with a trusted head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChain {
    /// The chain.
    pub chain: ChainId,
    /// The end of the chain in the store.
    pub head: Option<Head>,
    /// The hash computed over the stored bytes of the trusted head's last signed entry; `None` if the entry is not
    /// stored.
    pub at_trusted: Option<Hash>,
}

/// The trusted heads of all chains, kept outside the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedHeads {
    heads: BTreeMap<String, TrustedHead>,
    /// The newest signed list of chains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<String>,
    /// The known re-anchorings of each chain, as signed notes, in their order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    discontinuities: BTreeMap<String, Vec<String>>,
    /// The public keys that signed chains of this instance, old ones included.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    keys: BTreeSet<Hash>,
    /// The chains of other instances whose last entries wait for a signature.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unsigned: BTreeMap<String, UnsignedSince>,
}

/// Since when entries of a chain wait for a signature, by the clock of the instance that saw them. The times in
/// unsigned entries prove nothing, because a writer of the database can rewrite these entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnsignedSince {
    /// The number of signed entries.
    signed: u64,
    /// Microseconds since 1970.
    since: i64,
}

impl TrustedHeads {
    /// Since when entries behind the `signed` signed ones were seen in a chain; `None` if there were none before.
    pub fn unsigned_since(&self, chain: ChainId, signed: u64) -> Option<Timestamp> {
        let known = self.unsigned.get(&chain.to_string())?;
        // A lower count means that signed notes were removed since.
        (signed <= known.signed).then_some(Timestamp::from_micros(known.since))
    }

    /// Records which chains have unsigned entries at `now`, with the number of signed entries of each. A chain whose
    /// number did not grow keeps its earlier time. Returns whether anything changed.
    pub fn note_unsigned(&mut self, waiting: impl IntoIterator<Item = (ChainId, u64)>, now: Timestamp) -> bool {
        let noted = waiting.into_iter().map(|(chain, signed)| {
            let name = chain.to_string();
            let known = self.unsigned.get(&name).filter(|known| signed <= known.signed).copied();
            let since = UnsignedSince {
                signed,
                since: now.micros(),
            };
            (name, known.unwrap_or(since))
        });
        let unsigned = noted.collect();
        let has_changed = self.unsigned != unsigned;
        self.unsigned = unsigned;
        has_changed
    }

    /// The trusted head of a chain.
    pub fn head(&self, chain: ChainId) -> Option<&TrustedHead> {
        self.heads.get(&chain.to_string())
    }

    /// All trusted heads; names that are not the name of a chain are skipped.
    pub fn heads(&self) -> impl Iterator<Item = (ChainId, &TrustedHead)> {
        self.heads
            .iter()
            .filter_map(|(name, head)| Some((name.parse().ok()?, head)))
    }

    /// Sets the trusted head of a chain and returns true, if it is newer (by era, then by size) than the present one,
    /// or has the root of a present one without note or last hash.
    pub fn advance(&mut self, chain: ChainId, head: TrustedHead) -> bool {
        let present = self.heads.get(&chain.to_string());
        let is_newer = present.is_none_or(|present| {
            (head.era, head.size) > (present.era, present.size)
                || ((head.era, head.size) == (present.era, present.size)
                    && head.root() == present.root()
                    && (present.note.is_none() || present.last.is_none()))
        });
        if is_newer {
            self.heads.insert(chain.to_string(), head);
        }
        is_newer
    }

    /// The public keys that signed chains of this instance, old ones included.
    pub fn keys(&self) -> impl Iterator<Item = CheckpointPublicKey> {
        self.keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok())
    }

    /// Adds a public key; returns whether it was new.
    pub fn remember_key(&mut self, key: &CheckpointPublicKey) -> bool {
        self.keys.insert(Hash::new(key.to_bytes()))
    }

    /// The newest signed list of chains.
    pub fn list(&self) -> Option<&str> {
        self.list.as_deref()
    }

    /// Signs the list of all chains with a trusted head, stores it and returns it. `counter` grows with every list of
    /// the cluster.
    pub fn sign_list(&mut self, cluster: &str, counter: u64, key: &CheckpointKey) -> String {
        let heads = self.heads().filter_map(|(chain, head)| {
            Some(Checkpoint::new(chain.origin(cluster), head.size, head.root()?).in_era(head.era))
        });
        let mut heads: Vec<_> = heads.collect();
        heads.sort_by(|a, b| a.origin.cmp(&b.origin));
        let note = ChainList { heads }.checkpoint(cluster, counter).sign(key);
        self.list = Some(note.clone());
        note
    }

    /// The re-anchorings of a chain, as signed notes.
    pub fn discontinuities(&self, chain: ChainId) -> &[String] {
        self.discontinuities.get(&chain.to_string()).map_or(&[], Vec::as_slice)
    }

    /// Adds a re-anchoring whose signature [`Discontinuity::open`] checked, and returns whether anything changed. The
    /// trusted head of the chain becomes the head of the re-anchoring, unless a later head is trusted already.
    pub fn re_anchor(&mut self, note: &str, discontinuity: &Discontinuity) -> bool {
        let name = discontinuity.chain.to_string();
        let notes = self.discontinuities.entry(name.clone()).or_default();
        let is_new = !notes.iter().any(|known| known == note);
        if is_new {
            notes.push(note.to_owned());
        }
        let head = self.heads.get(&name);
        let replaces_head = head.is_none_or(|head| {
            // A re-anchoring does not cover a head that was signed or read after the one it starts from.
            let (size, root) = discontinuity.from;
            head.era < discontinuity.era && (head.size < size || (head.size == size && head.root() == Some(root)))
        });
        if replaces_head {
            self.heads.insert(name, discontinuity.head());
        }
        is_new || replaces_head
    }

    /// All signed notes: those of the heads and the list of chains.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.heads
            .values()
            .filter_map(|head| head.note.as_deref())
            .chain(self.list.as_deref())
    }

    /// Compares the stored chains with the trusted heads and returns a finding for each chain that is missing, shorter
    /// or different in its signed part. `will_restore` returns the size of a chain up to which the journal of this
    /// instance still holds the entries or writes them again.
    pub fn missing_from(
        &self,
        stored: &[StoredChain],
        will_restore: impl Fn(ChainId) -> u64,
    ) -> Vec<(ChainId, Finding)> {
        let mut missing = Vec::new();
        let signed = self.heads().map(|(chain, head)| (chain, head.signed_part()));
        for (chain, head) in signed.filter(|(_, head)| head.size > 0) {
            let stored_chain = stored.iter().find(|stored| stored.chain == chain);
            let size = stored_chain.and_then(|stored| stored.head).map_or(0, |head| head.size);
            let finding = |kind, stored, expected| Finding {
                kind,
                seq: head.size.checked_sub(1),
                time: None,
                stored,
                expected,
                place: None,
            };
            if size < head.size {
                if will_restore(chain) < head.size {
                    let kind = if size == 0 {
                        FindingKind::ShardMissing
                    } else {
                        FindingKind::ChainTruncated
                    };
                    missing.push((chain, finding(kind, None, head.last)));
                }
                continue;
            }
            let at_trusted = stored_chain.and_then(|stored| stored.at_trusted);
            match head.last {
                Some(last) if at_trusted != Some(last) => {
                    let kind = if at_trusted.is_some() {
                        FindingKind::AnchorMismatch
                    } else {
                        FindingKind::SeqGap
                    };
                    missing.push((chain, finding(kind, at_trusted, Some(last))));
                }
                Some(_) | None => {}
            }
        }
        missing
    }
}

impl Discontinuity {
    /// The trusted head after the re-anchoring.
    fn head(&self) -> TrustedHead {
        TrustedHead {
            note: None,
            size: self.to.0,
            peaks: self.peaks.clone(),
            last: self.last,
            era: self.era,
            signed: None,
        }
    }
}
