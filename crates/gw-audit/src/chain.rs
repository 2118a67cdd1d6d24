//! The hash chain: who comes next, under which hash (spec/70 rules 3 to 6).

use crate::entry::{ChainId, Draft, EntryError, Genesis, Hash, Header, OrgLink, StoredEntry};
use crate::record::Kind;
use crate::tree;
use gw_types::{OrgId, Timestamp};
use std::collections::HashMap;

/// The end of a chain: all that is needed to continue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of entries, so the number of the next one.
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
    /// The hash of its last one.
    pub hash: Hash,
}

/// A chain being written or replayed.
#[derive(Clone, Debug)]
pub struct Chain {
    id: ChainId,
    head: Head,
    orgs: HashMap<OrgId, OrgHead>,
}

/// Where a draft was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The entry's number.
    pub seq: u64,
    /// The entry's hash.
    pub hash: Hash,
}

/// Why an entry does not continue a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The bytes are no entry.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// An entry of another chain.
    #[error("the entry belongs to another chain")]
    Chain,
    /// The number is not the next one.
    #[error("entry {found} stands where {expected} belongs")]
    Seq {
        /// The number that should come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// The entry does not name the hash of the one before.
    #[error("the entry does not follow the one before")]
    Prev,
    /// The entry is older than the one before.
    #[error("the entry is older than the one before")]
    Time,
    /// The entry does not follow the organization's previous one.
    #[error("the entry does not follow its organization's previous one")]
    Org,
    /// A first entry that is no genesis, or a genesis that is not first.
    #[error("a genesis belongs at the start, and only there")]
    Genesis,
}

impl Chain {
    /// A new chain; the bytes of its first entry, the genesis, are appended to `out`.
    pub fn begin(id: ChainId, genesis: &Genesis, now: Timestamp, out: &mut Vec<u8>) -> (Self, Placed) {
        let mut chain = Self::empty(id);
        let placed = chain.link(&Draft::genesis(id.stream, genesis), now, out);
        (chain, placed)
    }

    /// A chain written earlier, by its first entry.
    pub fn replay(id: ChainId, genesis: &[u8]) -> Result<(Self, Header, Hash), ChainError> {
        let mut chain = Self::empty(id);
        let (header, hash) = chain.accept(genesis)?;
        Ok((chain, header, hash))
    }

    /// A chain known by its end.
    pub fn resume(id: ChainId, head: Head, orgs: impl IntoIterator<Item = (OrgId, OrgHead)>) -> Self {
        Self {
            id,
            head,
            orgs: orgs.into_iter().collect(),
        }
    }

    /// Which chain this is.
    pub const fn id(&self) -> ChainId {
        self.id
    }

    /// Its end.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The last entry of each organization.
    pub fn orgs(&self) -> impl Iterator<Item = (OrgId, OrgHead)> {
        self.orgs.iter().map(|(id, head)| (*id, *head))
    }

    /// Names an organization's last entry, where the chain was resumed without it.
    pub fn set_org(&mut self, org: OrgId, head: OrgHead) {
        self.orgs.insert(org, head);
    }

    /// Gives a draft the next place and appends the entry's bytes to `out`.
    ///
    /// The entry's time is `now`, or that of the entry before if the clock went back.
    pub fn link(&mut self, draft: &Draft, now: Timestamp, out: &mut Vec<u8>) -> Placed {
        let org = draft.org.map(|id| self.org_link(id));
        let time = now.max(self.head.time);
        let header = Header {
            kind: draft.kind,
            chain: self.id,
            seq: self.head.size,
            prev: self.head.hash,
            time,
            org,
        };
        let start = out.len();
        header.write(&draft.body, out);
        let hash = tree::leaf(out.get(start..).unwrap_or_default());
        self.advance(&header, hash);
        Placed { seq: header.seq, hash }
    }

    /// Gives a draft the next place and returns the entry with what lies beside it.
    pub fn entry(&mut self, draft: Draft, now: Timestamp) -> Result<StoredEntry, EntryError> {
        let mut bytes = Vec::with_capacity(draft.size_bound());
        self.link(&draft, now, &mut bytes);
        StoredEntry::new(bytes, draft.openings)
    }

    /// Takes an entry written earlier, if it continues the chain; a refused entry changes nothing.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<(Header, Hash), ChainError> {
        let (header, _) = Header::read(bytes)?;
        if header.chain != self.id {
            return Err(ChainError::Chain);
        }
        if header.seq != self.head.size {
            return Err(ChainError::Seq {
                expected: self.head.size,
                found: header.seq,
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

    /// Invariant: leaves this module only with its genesis in it.
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
