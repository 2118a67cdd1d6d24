//! Anchors: signed summaries of the pruned beginning of a chain (spec/70 rules 23 and 24).
//!
//! Retention removes entries only from the start of a chain. The anchor holds everything that a verification needs to
//! start behind the removed entries: the head of the removed part, the right edge of the tree over it, the last removed
//! entry of each organization, and the erasures whose records were removed. The gateway signs the anchor like a
//! checkpoint, so write access to the database is not enough to move the start of a chain. The hashes of the removed
//! entries are stored separately, for proofs.

use crate::cbor::{CborError, Reader, Writer};
use crate::chain::{Chain, ChainError, Head, OrgHead};
use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey};
use crate::entry::{ChainId, Content, Entry, Header};
use crate::entry_error::EntryError;
use crate::erasure::Erasures;
use crate::hash::Hash;
use crate::ids::ShardId;
use crate::record::Record;
use crate::tree::{self, Frontier};
use gw_types::{OrgId, Timestamp};
use uuid::Uuid;

/// The pruned beginning of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The chain.
    pub chain: ChainId,
    /// The number of removed entries, and the hash and time of the last one.
    pub head: Head,
    /// The roots of the full subtrees over the removed entries, largest first.
    pub peaks: Vec<Hash>,
    /// The last removed entry of each organization, sorted by organization id.
    pub orgs: Vec<(OrgId, OrgHead)>,
    /// Erasures whose records were removed.
    pub erasures: Erasures,
}

/// The version of the anchor encoding that this crate writes.
const VERSION: u64 = 1;

impl Anchor {
    /// Encodes the anchor as deterministic CBOR.
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

    /// Decodes an anchor without checking its signature.
    ///
    /// # Errors
    /// The bytes are not the deterministic encoding of an anchor.
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
        // Invariant: an anchor has exactly one encoding, and the number of its peaks fits its size.
        if size == 0 || anchor.frontier().is_none() || anchor.bytes() != bytes {
            return Err(EntryError::Value);
        }
        Ok(anchor)
    }

    /// Signs the anchor and returns the signed note. The note's origin is `<cluster>/<stream>/<shard>/anchor`, its size
    /// is the number of removed entries, and its root is SHA-256(0x00 ‖ anchor bytes).
    pub fn sign(&self, cluster: &str, key: &CheckpointKey) -> String {
        self.statement(cluster).sign(key)
    }

    /// Decodes an anchor and checks that one of `keys` signed it.
    ///
    /// # Errors
    /// The bytes are not an anchor of `chain`, or `note` is not a valid signature over them.
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

    /// The chain that continues behind the removed entries.
    pub fn chain(&self) -> Chain {
        Chain::resume(self.chain, self.head, self.orgs.iter().copied())
    }

    /// The tree over the removed entries; `None` if the number of peaks does not fit the size.
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

/// Why an anchor is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnchorError {
    /// The bytes are malformed.
    #[error(transparent)]
    Malformed(#[from] EntryError),
    /// The note is malformed, or no known key signed it.
    #[error(transparent)]
    Note(#[from] CheckpointError),
    /// The note signs another anchor, or the anchor belongs to another chain.
    #[error("the note does not sign this anchor of this chain")]
    Mismatch,
}

/// Checks the entries at the start of a chain, one by one, before retention removes them. A changed entry is evidence
/// and must stay.
#[derive(Clone, Debug)]
pub struct Removal {
    id: ChainId,
    /// `None` until the genesis entry was taken.
    chain: Option<Chain>,
    frontier: Frontier,
    erasures: Erasures,
}

/// Why an entry must not be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemovalError {
    /// The entry does not continue the chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The stored hash is not the hash of the entry.
    #[error("the stored hash is not the hash of the entry")]
    Hash,
    /// The openings do not match the commitments in the entry.
    #[error("the personal values of the entry do not match its commitments")]
    Openings,
}

impl Removal {
    /// Starts behind the entries that `anchor` covers, or at the start of the chain if there is no anchor. `None` if
    /// the anchor belongs to another chain or its peaks do not fit its size.
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

    /// Checks the next entry and adds it to the removed part. `stored` is the hash in the row.
    ///
    /// # Errors
    /// The entry is not what was sealed: neither it nor any later entry may be removed.
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

    /// The tree over all removed entries, those before the previous anchor included.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The anchor behind the last taken entry; `None` before the first one.
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
