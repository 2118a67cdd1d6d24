//! What is known of the chains outside the database that holds them (spec/70 rules 7 and 8).
//!
//! - [`TrustedHeads`]: the newest signed note of every chain with the edge of its tree, and the signed list of chains.
//! - [`SigningGuard`]: what stands between a chain in the store and our signature over it.
//!
//! Invariant: [`SigningGuard::checkpoint`] gives a checkpoint only of a tree whose every leaf was an entry that continued
//! the last trusted one.

use crate::chain::Head;
use crate::checkpoint::{Checkpoint, CheckpointKey, CheckpointPublicKey};
use crate::discontinuity::Discontinuity;
use crate::entry::{ChainId, Hash, Header, ShardId};
use crate::tree::{self, Frontier};
use crate::verify::{Finding, FindingKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

impl core::fmt::Display for ChainId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.stream, self.shard)
    }
}

/// A text that is no `<stream>/<shard>`.
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
    /// The chain that an origin of `cluster` names.
    pub fn from_origin(origin: &str, cluster: &str) -> Option<Self> {
        origin.strip_prefix(cluster)?.strip_prefix('/')?.parse().ok()
    }
}

/// The right edge of a chain: enough to append to its tree, and to tell whether an entry continues it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainEdge {
    frontier: Frontier,
    /// The hash of the last entry; `None` where only the tree is known.
    last: Option<Hash>,
}

impl ChainEdge {
    /// An edge kept earlier. `last` is the hash of the last entry, if it is known.
    pub const fn new(frontier: Frontier, last: Option<Hash>) -> Self {
        Self { frontier, last }
    }

    /// The number of entries.
    pub const fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The tree.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The hash of the last entry, if it is known.
    pub const fn last(&self) -> Option<Hash> {
        self.last
    }

    /// Takes the next entry as the store has it.
    ///
    /// # Errors
    /// A finding, if it is not the entry that comes next: its number, its hash or its link to the one before.
    pub fn push(&mut self, seq: u64, stored: Hash, bytes: &[u8]) -> Result<(), Finding> {
        let computed = tree::leaf(bytes);
        let due = self.size();
        let finding = |kind, stored, expected| Finding {
            kind,
            seq: Some(seq),
            time: None,
            stored,
            expected,
        };
        if seq != due {
            let kind = if seq > due {
                FindingKind::SeqGap
            } else {
                FindingKind::SeqDuplicate
            };
            return Err(Finding {
                seq: Some(due),
                ..finding(kind, Some(stored), None)
            });
        }
        let header = Header::read(bytes).map(|(header, _)| header);
        let header = header.map_err(|_| finding(FindingKind::HashMismatch, Some(stored), Some(computed)))?;
        if stored != computed || header.seq != seq {
            return Err(finding(FindingKind::HashMismatch, Some(stored), Some(computed)));
        }
        let last = if due == 0 { Some(Hash::ZERO) } else { self.last };
        if last.is_some_and(|last| last != header.prev) {
            return Err(finding(FindingKind::AnchorMismatch, Some(header.prev), last));
        }
        self.frontier.push(computed);
        self.last = Some(computed);
        Ok(())
    }

    /// Takes the hash of the next entry, which retention removed.
    pub fn push_pruned(&mut self, hash: Hash) {
        self.frontier.push(hash);
        self.last = Some(hash);
    }
}

/// What must hold before a chain is signed.
#[derive(Clone, Debug)]
pub struct SigningGuard {
    edge: ChainEdge,
    /// A size and root signed or seen before that the chain must still reach.
    floor: Option<(u64, Hash)>,
    era: u64,
}

impl SigningGuard {
    /// For a chain nothing is known of.
    pub fn fresh() -> Self {
        Self {
            edge: ChainEdge::default(),
            floor: None,
            era: 0,
        }
    }

    /// For a chain of which only a signed note is known: it is read from its beginning, and must be as it says.
    pub fn from_checkpoint(note: &Checkpoint) -> Self {
        Self {
            edge: ChainEdge::default(),
            floor: Some((note.size, note.root)),
            era: note.era(),
        }
    }

    /// For a chain that goes on at a trusted head.
    pub fn from_trusted(head: &TrustedHead) -> Option<Self> {
        Some(Self {
            edge: head.edge()?,
            floor: None,
            era: head.era,
        })
    }

    /// Whether entries are still to be read: the number of the next one.
    pub const fn next(&self) -> u64 {
        self.edge.size()
    }

    /// How often the chain had been re-anchored.
    pub const fn era(&self) -> u64 {
        self.era
    }

    /// The edge as it is.
    pub const fn edge(&self) -> &ChainEdge {
        &self.edge
    }

    /// The store ends below what was seen: it is read again from its beginning and must come to be what it was, as after
    /// a failover that the journal makes up for.
    pub fn rewind(&mut self) {
        let seen = (self.edge.size(), self.edge.frontier.root());
        if self.floor.is_none_or(|(size, _)| size < seen.0) {
            self.floor = Some(seen);
        }
        self.edge = ChainEdge::default();
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// A finding, if it does not continue the chain, or makes another tree of it than was signed.
    pub fn push(&mut self, seq: u64, stored: Hash, bytes: &[u8]) -> Result<(), Finding> {
        self.edge.push(seq, stored, bytes)?;
        self.compare()
    }

    /// Takes the hash of the next entry, which retention removed.
    ///
    /// # Errors
    /// A finding, if it makes another tree of the chain than was signed.
    pub fn push_pruned(&mut self, hash: Hash) -> Result<(), Finding> {
        self.edge.push_pruned(hash);
        self.compare()
    }

    /// Compares the tree with what was signed at its size.
    fn compare(&mut self) -> Result<(), Finding> {
        if let Some((size, root)) = self.floor.filter(|(size, _)| *size == self.edge.size()) {
            let found = self.edge.frontier.root();
            if found != root {
                let kind = FindingKind::AnchorMismatch;
                return Err(Finding {
                    kind,
                    seq: size.checked_sub(1),
                    time: None,
                    stored: Some(found),
                    expected: Some(root),
                });
            }
            self.floor = None;
        }
        Ok(())
    }

    /// The checkpoint to sign.
    ///
    /// # Errors
    /// `chain_truncated` while the chain is shorter than what was signed of it.
    pub fn checkpoint(&self, origin: &str) -> Result<Checkpoint, Finding> {
        match self.floor {
            Some((size, root)) if size > self.edge.size() => Err(Finding {
                kind: FindingKind::ChainTruncated,
                seq: size.checked_sub(1),
                time: None,
                stored: None,
                expected: Some(root),
            }),
            Some(_) | None => Ok(Checkpoint::new(origin, self.edge.size(), self.edge.frontier.root()).in_era(self.era)),
        }
    }
}

/// What is trusted of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedHead {
    /// The newest signed note seen or made; absent where only the edge was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How many entries the tree has.
    pub size: u64,
    /// The roots of its full subtrees, largest first.
    pub peaks: Vec<Hash>,
    /// The hash of the last entry, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Hash>,
    /// How often the chain was re-anchored before.
    #[serde(default)]
    pub era: u64,
}

impl TrustedHead {
    /// The head at an edge; `note` is what was signed of it.
    pub fn new(note: Option<String>, edge: &ChainEdge, era: u64) -> Self {
        Self {
            note,
            size: edge.size(),
            peaks: edge.frontier.peaks().to_vec(),
            last: edge.last,
            era,
        }
    }

    /// The edge; `None` if the peaks do not fit the size.
    pub fn edge(&self) -> Option<ChainEdge> {
        Some(ChainEdge::new(
            Frontier::resume(self.size, self.peaks.clone())?,
            self.last,
        ))
    }

    /// The root of the tree.
    pub fn root(&self) -> Option<Hash> {
        self.edge().map(|edge| edge.frontier.root())
    }
}

/// How the origin of a list of chains ends.
const CHAINS: &str = "chains";

/// The signed list of chains: a chain that vanishes as a whole is missed by its line (rule 8).
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

    /// The list as a checkpoint: `counter` as size, the root over the lines as leaves, one extension line a chain.
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

    /// Reads a list; `None` if the checkpoint is no list, or its lines do not make its root.
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

/// The end of a chain as the store has it, and what is to be compared with a trusted head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChain {
    /// The chain.
    pub chain: ChainId,
    /// Its end.
    pub head: Option<Head>,
    /// The hash over the bytes of the entry that the trusted head ends with; `None` if it is not there.
    pub at_trusted: Option<Hash>,
}

/// What is trusted of all chains, kept outside the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedHeads {
    heads: BTreeMap<String, TrustedHead>,
    /// The newest signed list of chains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<String>,
    /// The re-anchorings seen, as signed notes, in their order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    discontinuities: BTreeMap<String, Vec<String>>,
    /// The public keys under which chains were signed here, old ones included.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    keys: BTreeSet<Hash>,
}

impl TrustedHeads {
    /// The head of a chain.
    pub fn head(&self, chain: ChainId) -> Option<&TrustedHead> {
        self.heads.get(&chain.to_string())
    }

    /// All heads; a name that is no chain's is passed over.
    pub fn heads(&self) -> impl Iterator<Item = (ChainId, &TrustedHead)> {
        self.heads
            .iter()
            .filter_map(|(name, head)| Some((name.parse().ok()?, head)))
    }

    /// Takes a head, unless a longer one of the same or a later era is there. Says whether it did.
    pub fn advance(&mut self, chain: ChainId, head: TrustedHead) -> bool {
        let known = self.heads.get(&chain.to_string());
        let newer = known.is_none_or(|known| {
            (head.era, head.size) > (known.era, known.size)
                || ((head.era, head.size) == (known.era, known.size)
                    && head.root() == known.root()
                    && (known.note.is_none() || known.last.is_none()))
        });
        if newer {
            self.heads.insert(chain.to_string(), head);
        }
        newer
    }

    /// The public keys known here.
    pub fn keys(&self) -> impl Iterator<Item = CheckpointPublicKey> {
        self.keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok())
    }

    /// Remembers a public key. Says whether it was new.
    pub fn remember_key(&mut self, key: &CheckpointPublicKey) -> bool {
        self.keys.insert(Hash::new(key.to_bytes()))
    }

    /// The newest signed list of chains.
    pub fn list(&self) -> Option<&str> {
        self.list.as_deref()
    }

    /// Signs the list of all chains known here and keeps it; `counter` grows with every list of the cluster.
    pub fn sign_list(&mut self, cluster: &str, counter: u64, key: &CheckpointKey) -> String {
        let heads = self.heads().filter_map(|(chain, head)| {
            Some(Checkpoint::new(chain.origin(cluster), head.size, head.root()?).in_era(head.era))
        });
        let mut heads: Vec<_> = heads.collect();
        heads.sort_by(|one, other| one.origin.cmp(&other.origin));
        let note = ChainList { heads }.checkpoint(cluster, counter).sign(key);
        self.list = Some(note.clone());
        note
    }

    /// The re-anchorings of a chain, as signed notes.
    pub fn discontinuities(&self, chain: ChainId) -> &[String] {
        self.discontinuities.get(&chain.to_string()).map_or(&[], Vec::as_slice)
    }

    /// Takes a re-anchoring that [`Discontinuity::open`] found signed: from then on the chain's head is the one it names,
    /// if it goes on from the head known here. Says whether anything changed.
    pub fn re_anchor(&mut self, note: &str, discontinuity: &Discontinuity) -> bool {
        let name = discontinuity.chain.to_string();
        let known = self.discontinuities.entry(name.clone()).or_default();
        let new = !known.iter().any(|other| other == note);
        if new {
            known.push(note.to_owned());
        }
        let head = self.heads.get(&name);
        let follows = head.is_none_or(|head| {
            // A later note of the chain than the one named was signed or seen here: the record is about less than that.
            let (size, root) = discontinuity.from;
            head.era < discontinuity.era && (head.size < size || (head.size == size && head.root() == Some(root)))
        });
        if follows {
            self.heads.insert(name, discontinuity.head());
        }
        new || follows
    }

    /// Everything signed that is kept here: heads and the list.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.heads
            .values()
            .filter_map(|head| head.note.as_deref())
            .chain(self.list.as_deref())
    }

    /// What of the trusted chains the store does not have, or has otherwise. `will_restore` says of a chain how many of
    /// its entries the journal of this instance still holds or will write again by itself.
    pub fn missing_from(
        &self,
        stored: &[StoredChain],
        will_restore: impl Fn(ChainId) -> u64,
    ) -> Vec<(ChainId, Finding)> {
        let mut missing = Vec::new();
        for (chain, head) in self.heads().filter(|(_, head)| head.size > 0) {
            let found = stored.iter().find(|found| found.chain == chain);
            let size = found.and_then(|found| found.head).map_or(0, |head| head.size);
            let finding = |kind, stored, expected| Finding {
                kind,
                seq: head.size.checked_sub(1),
                time: None,
                stored,
                expected,
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
            let at_trusted = found.and_then(|found| found.at_trusted);
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
    /// The head that is trusted after it.
    fn head(&self) -> TrustedHead {
        TrustedHead {
            note: None,
            size: self.to.0,
            peaks: self.peaks.clone(),
            last: self.last,
            era: self.era,
        }
    }
}
