//! The hash chain: numbers, links and times of entries (spec/70 rules 3 to 6).

use crate::entry::{ChainId, EncodedRecord, Header, OrgLink, StoredEntry};
use crate::entry_error::EntryError;
use crate::genesis::Genesis;
use crate::hash::Hash;
use crate::record::Kind;
use crate::tree;
use gw_types::{OrgId, Timestamp};
use std::collections::HashMap;

/// The end of a chain: everything that is needed to append the next entry, except the heads of the organizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of entries, which is also the number of the next one.
    pub size: u64,
    /// The hash of the last entry.
    pub hash: Hash,
    /// The time of the last entry.
    pub time: Timestamp,
}

/// The last entry of one organization in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgHead {
    /// The number of the organization's entries.
    pub size: u64,
    /// The hash of the organization's last entry.
    pub hash: Hash,
}

/// A chain that is being written or replayed.
#[derive(Clone, Debug)]
pub struct Chain {
    id: ChainId,
    head: Head,
    orgs: HashMap<OrgId, OrgHead>,
}

/// Number and hash of a record that was appended to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainedRecord {
    /// The entry's number.
    pub seq: u64,
    /// The entry's hash.
    pub hash: Hash,
}

/// Why an entry does not continue a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The bytes are not an entry.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The entry belongs to another chain.
    #[error("the entry belongs to another chain")]
    Chain,
    /// The entry has another number than the next one.
    #[error("the entry has number {actual}; the next number of the chain is {expected}")]
    Seq {
        /// The next number of the chain.
        expected: u64,
        /// The number of the entry.
        actual: u64,
    },
    /// The entry does not link to the hash of the previous entry.
    #[error("the entry does not link to the previous entry")]
    Prev,
    /// The entry is older than the previous entry.
    #[error("the entry is older than the previous entry")]
    Time,
    /// The entry does not link to its organization's previous entry.
    #[error("the entry does not link to its organization's previous entry")]
    Org,
    /// The first entry is not a genesis, or a later entry is one.
    #[error("the first entry of a chain, and only the first, must be a genesis")]
    Genesis,
}

impl Chain {
    /// Starts a chain and appends the bytes of its first entry, the genesis, to `out`.
    pub fn begin(id: ChainId, genesis: &Genesis, now: Timestamp, out: &mut Vec<u8>) -> (Self, ChainedRecord) {
        let mut chain = Self::empty(id);
        let chained = chain.link(&EncodedRecord::genesis(id.stream, genesis), now, out);
        (chain, chained)
    }

    /// Starts to replay an existing chain from its first entry.
    ///
    /// # Errors
    /// The bytes are not the genesis entry of the chain `id`.
    pub fn replay(id: ChainId, genesis: &[u8]) -> Result<(Self, Header, Hash), ChainError> {
        let mut chain = Self::empty(id);
        let (header, hash) = chain.accept(genesis)?;
        Ok((chain, header, hash))
    }

    /// Continues an existing chain from its end.
    pub fn resume(id: ChainId, head: Head, orgs: impl IntoIterator<Item = (OrgId, OrgHead)>) -> Self {
        Self {
            id,
            head,
            orgs: orgs.into_iter().collect(),
        }
    }

    /// The id of the chain.
    pub const fn id(&self) -> ChainId {
        self.id
    }

    /// The end of the chain.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The last entry of each organization.
    pub fn orgs(&self) -> impl Iterator<Item = (OrgId, OrgHead)> {
        self.orgs.iter().map(|(id, head)| (*id, *head))
    }

    /// Sets an organization's last entry, for a chain that was resumed without it.
    pub fn set_org(&mut self, org: OrgId, head: OrgHead) {
        self.orgs.insert(org, head);
    }

    /// Makes a record the next entry of the chain and appends the entry's bytes to `out`.
    ///
    /// The entry's time is `now`, or the time of the previous entry if the clock went back.
    pub fn link(&mut self, record: &EncodedRecord, now: Timestamp, out: &mut Vec<u8>) -> ChainedRecord {
        let org = record.org.map(|id| self.org_link(id));
        let time = now.max(self.head.time);
        let header = Header {
            kind: record.kind,
            chain: self.id,
            seq: self.head.size,
            prev: self.head.hash,
            time,
            org,
        };
        let start = out.len();
        header.write(&record.body, out);
        let hash = tree::leaf(out.get(start..).unwrap_or_default());
        self.advance(&header, hash);
        ChainedRecord { seq: header.seq, hash }
    }

    /// Makes a record the next entry of the chain and returns the entry with its openings.
    ///
    /// # Errors
    /// [`EntryError`] if the encoded bytes cannot be read back, which no [`EncodedRecord`] causes.
    pub fn entry(&mut self, record: EncodedRecord, now: Timestamp) -> Result<StoredEntry, EntryError> {
        let mut bytes = Vec::with_capacity(record.size_bound());
        self.link(&record, now, &mut bytes);
        StoredEntry::new(bytes, record.openings)
    }

    /// Replays the next entry of an existing chain.
    ///
    /// # Errors
    /// The entry does not continue the chain; the chain is then unchanged.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<(Header, Hash), ChainError> {
        let (header, _) = Header::read(bytes)?;
        if header.chain != self.id {
            return Err(ChainError::Chain);
        }
        if header.seq != self.head.size {
            return Err(ChainError::Seq {
                expected: self.head.size,
                actual: header.seq,
            });
        }
        if header.prev != self.head.hash {
            return Err(ChainError::Prev);
        }
        if (header.kind == Kind::Genesis) != (header.seq == 0) {
            return Err(ChainError::Genesis);
        }
        if header.time < self.head.time {
            return Err(ChainError::Time);
        }
        if header.org.is_some_and(|org| org != self.org_link(org.id)) {
            return Err(ChainError::Org);
        }
        let hash = tree::leaf(bytes);
        self.advance(&header, hash);
        Ok((header, hash))
    }

    /// Invariant: a chain leaves this module only with its genesis in it.
    fn empty(id: ChainId) -> Self {
        let head = Head {
            size: 0,
            hash: Hash::ZERO,
            time: Timestamp::from_micros(i64::MIN),
        };
        Self {
            id,
            head,
            orgs: HashMap::new(),
        }
    }

    fn org_link(&self, id: OrgId) -> OrgLink {
        let head = self.orgs.get(&id).copied().unwrap_or(OrgHead {
            size: 0,
            hash: Hash::ZERO,
        });
        OrgLink {
            id,
            seq: head.size,
            prev: head.hash,
        }
    }

    fn advance(&mut self, header: &Header, hash: Hash) {
        self.head = Head {
            size: header.seq.saturating_add(1),
            hash,
            time: header.time,
        };
        if let Some(org) = header.org {
            self.orgs.insert(
                org.id,
                OrgHead {
                    size: org.seq.saturating_add(1),
                    hash,
                },
            );
        }
    }
}
