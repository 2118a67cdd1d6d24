//! Anchors: what is left of the pruned beginning of a chain, signed (spec/70 rules 23 and 24).
//!
//! Retention removes entries from the start of a chain only. The anchor holds all that a verification needs to go on
//! behind them: the end of what was removed, the right edge of the tree over it, the last entry of each organization,
//! and the erasures whose records went with it. The gateway signs it like a checkpoint: write access to the database does not
//! suffice to move the start of a chain. The hashes of the removed entries are kept apart, for proofs.

use crate::cbor::{CborError, Reader, Writer};
use crate::chain::{Chain, ChainError, Head, OrgHead};
use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey};
use crate::entry::{ChainId, Content, Entry, EntryError, Hash, Header, ShardId};
use crate::erasure::Erasures;
use crate::record::Record;
use crate::tree::{self, Frontier};
use gw_types::{OrgId, Timestamp};
use uuid::Uuid;

/// The pruned beginning of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The chain.
    pub chain: ChainId,
    /// How many entries are gone, and hash and time of the last of them.
    pub head: Head,
    /// The roots of the full subtrees over them, largest first.
    pub peaks: Vec<Hash>,
    /// The last entry of each organization among them, by id.
    pub orgs: Vec<(OrgId, OrgHead)>,
    /// Erasures whose records are gone.
    pub erasures: Erasures,
}

/// The version of the anchors made here.
const VERSION: u64 = 1;

impl Anchor {
    /// The anchor as deterministic bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        let mut map = writer.map();
        map.field("v").uint(VERSION);
        map.field("hash").bytes(self.head.hash.as_slice());
        let orgs = map.field("orgs");
        orgs.array(self.orgs.len());
        for (id, head) in &self.orgs {
            orgs.array(3);
            orgs.bytes(id.0.as_bytes());
            orgs.uint(head.size);
            orgs.bytes(head.hash.as_slice());
        }
        map.field("size").uint(self.head.size);
        map.field("time").int(self.head.time.micros());
        let peaks = map.field("peaks");
        peaks.array(self.peaks.len());
        for peak in &self.peaks {
            peaks.bytes(peak.as_slice());
        }
        map.field("shard").bytes(self.chain.shard.0.as_bytes());
        let erased = map.field("erased");
        let runs: Vec<_> = self
            .erasures
            .chains()
            .map(|id| (id, self.erasures.ranges(id).collect::<Vec<_>>()))
            .collect();
        erased.array(runs.len());
        for (chain, runs) in runs {
            erased.array(3);
            erased.text(chain.stream.as_str());
            erased.bytes(chain.shard.0.as_bytes());
            erased.array(runs.len() * 2);
            for run in runs {
                erased.uint(run.start);
                erased.uint(run.end);
            }
        }
        map.field("stream").text(self.chain.stream.as_str());
        bytes
    }

    /// Reads an anchor back; its signature is not checked.
    ///
    /// # Errors
    /// The bytes are no anchor.
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryError> {
        let mut reader = Reader::new(bytes);
        let mut map = reader.map()?;
        match map.get("v")?.uint()? {
            VERSION => {}
            version => return Err(EntryError::Version(version)),
        }
        let hash = Hash::new(map.get("hash")?.array_of()?);
        let list = map.get("orgs")?;
        let mut orgs = Vec::new();
        for _ in 0..list.array()? {
            triple(list)?;
            let id = OrgId(Uuid::from_bytes(list.array_of()?));
            orgs.push((
                id,
                OrgHead {
                    size: list.uint()?,
                    hash: Hash::new(list.array_of()?),
                },
            ));
        }
        let size = map.get("size")?.uint()?;
        let time = Timestamp::from_micros(map.get("time")?.int()?);
        let list = map.get("peaks")?;
        let mut peaks = Vec::new();
        for _ in 0..list.array()? {
            peaks.push(Hash::new(list.array_of()?));
        }
        let shard = ShardId(Uuid::from_bytes(map.get("shard")?.array_of()?));
        let list = map.get("erased")?;
        let mut erasures = Erasures::default();
        for _ in 0..list.array()? {
            triple(list)?;
            let stream = list.text()?.parse().map_err(|_| EntryError::Value)?;
            let chain = ChainId {
                stream,
                shard: ShardId(Uuid::from_bytes(list.array_of()?)),
            };
            for _ in 0..list.array()? / 2 {
                let start = list.uint()?;
                erasures.insert(chain, start..list.uint()?);
            }
        }
        let stream = map.get("stream")?.text()?.parse().map_err(|_| EntryError::Value)?;
        map.end()?;
        reader.end()?;
        let head = Head { size, hash, time };
        let anchor = Self {
            chain: ChainId { stream, shard },
            head,
            peaks,
            orgs,
            erasures,
        };
        // Invariant: one anchor has one encoding, and its peaks are as many as its size has.
        if size == 0 || anchor.frontier().is_none() || anchor.bytes() != bytes {
            return Err(EntryError::Value);
        }
        Ok(anchor)
    }

    /// The signature over the anchor, as a signed note: its origin is `<cluster>/<stream>/<shard>/anchor`, its size the
    /// number of removed entries, its root SHA-256(0x00 ‖ anchor bytes).
    pub fn sign(&self, cluster: &str, key: &CheckpointKey) -> String {
        self.statement(cluster).sign(key)
    }

    /// Reads an anchor that one of `keys` signed.
    ///
    /// # Errors
    /// The bytes are no anchor of this chain, or none that was signed.
    pub fn open(
        bytes: &[u8],
        note: &str,
        chain: ChainId,
        cluster: &str,
        keys: &[CheckpointPublicKey],
    ) -> Result<Self, AnchorError> {
        let anchor = Self::decode(bytes)?;
        let signed = Checkpoint::open(note, keys)?;
        if anchor.chain != chain || signed != anchor.statement(cluster) {
            return Err(AnchorError::Mismatch);
        }
        Ok(anchor)
    }

    fn statement(&self, cluster: &str) -> Checkpoint {
        let origin = format!("{}/anchor", self.chain.origin(cluster));
        Checkpoint::new(origin, self.head.size, tree::leaf(&self.bytes()))
    }

    /// The chain as it goes on behind the removed entries.
    pub fn chain(&self) -> Chain {
        Chain::resume(self.chain, self.head, self.orgs.iter().copied())
    }

    /// The tree over the removed entries; `None` if the peaks are not those of the size.
    pub fn frontier(&self) -> Option<Frontier> {
        Frontier::resume(self.head.size, self.peaks.clone())
    }
}

fn triple(list: &mut Reader<'_>) -> Result<(), EntryError> {
    if list.array()? == 3 {
        Ok(())
    } else {
        Err(EntryError::Cbor(CborError::Type))
    }
}

/// Why an anchor is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnchorError {
    /// The bytes.
    #[error(transparent)]
    Malformed(#[from] EntryError),
    /// The note.
    #[error(transparent)]
    Note(#[from] CheckpointError),
    /// The note is about another anchor.
    #[error("the note is not about this anchor")]
    Mismatch,
}

/// Entries at the start of a chain that are about to be removed, looked at one by one: a changed entry is evidence and
/// must stay.
#[derive(Clone, Debug)]
pub struct Removal {
    id: ChainId,
    /// None until the genesis.
    chain: Option<Chain>,
    frontier: Frontier,
    erasures: Erasures,
}

/// Why an entry must stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemovalError {
    /// It does not continue the chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The stored hash is not the entry's.
    #[error("the stored hash is not the entry's")]
    Hash,
    /// What lies beside it is not what it committed to.
    #[error("its personal values are not what was committed to")]
    Openings,
}

impl Removal {
    /// Begins behind what was removed before, or at the start of a chain.
    pub fn after(id: ChainId, anchor: Option<&Anchor>) -> Option<Self> {
        let Some(anchor) = anchor else {
            return Some(Self {
                id,
                chain: None,
                frontier: Frontier::default(),
                erasures: Erasures::default(),
            });
        };
        let frontier = anchor.frontier()?;
        (anchor.chain == id).then(|| Self {
            id,
            chain: Some(anchor.chain()),
            frontier,
            erasures: anchor.erasures.clone(),
        })
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// The entry is not what was sealed: neither it nor any after it may be removed.
    pub fn take(&mut self, bytes: &[u8], openings: &[u8], stored: &[u8]) -> Result<Header, RemovalError> {
        let entry = Entry::decode(bytes, openings).map_err(|error| match error {
            EntryError::Commitment | EntryError::Openings(_) => RemovalError::Openings,
            EntryError::Cbor(_) | EntryError::Version(_) | EntryError::Value => ChainError::Entry(error).into(),
        })?;
        if tree::leaf(bytes).as_slice() != stored {
            return Err(RemovalError::Hash);
        }
        let (header, hash) = match &mut self.chain {
            Some(chain) => chain.accept(bytes)?,
            None => {
                let (chain, header, hash) = Chain::replay(self.id, bytes)?;
                self.chain = Some(chain);
                (header, hash)
            }
        };
        self.frontier.push(hash);
        if let Content::Record(Record::Admin(entry)) = &entry.content {
            self.erasures.take(entry);
        }
        Ok(header)
    }

    /// The tree over everything removed so far.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The anchor behind the last entry taken; `None` before the first.
    pub fn anchor(&self) -> Option<Anchor> {
        let chain = self.chain.as_ref()?;
        let mut orgs: Vec<_> = chain.orgs().collect();
        orgs.sort_unstable_by_key(|(id, _)| *id);
        Some(Anchor {
            chain: self.id,
            head: chain.head(),
            peaks: self.frontier.peaks().to_vec(),
            orgs,
            erasures: self.erasures.clone(),
        })
    }
}
