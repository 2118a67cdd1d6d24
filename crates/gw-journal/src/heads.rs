//! Where the chains stand after some record, and which sends have no outcome yet.
//!
//! The journal writes on at one such state; another one, the *base*, is kept on disk as it was before the
//! oldest segment, so that segments can be deleted without forgetting where anything stood.

use crate::disk;
use crate::error::{OpenError, missing};
use crate::header::{Reached, STREAMS, Sizes};
use gw_audit::cbor::{CborError, Reader, Writer};
use gw_audit::{
    Chain, ChainError, ChainId, Content, Entry, EntryError, Hash, Head, Header, Kind, OrgHead, Record, SendIntent,
    ShardId, Stream,
};
use gw_types::{B256, OrgId, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use uuid::Uuid;

/// The hash of the last entry of each stream's chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hashes([Hash; STREAMS]);

impl Hashes {
    /// Zero for a chain without entries.
    pub(crate) fn of(&self, stream: Stream) -> Hash {
        self.0.get(stream as usize).copied().unwrap_or_default()
    }
}

/// The chains of one shard after record `lsn`.
#[derive(Clone, Debug)]
pub(crate) struct Heads {
    pub(crate) shard: ShardId,
    pub(crate) lsn: u64,
    pub(crate) chains: BTreeMap<Stream, Chain>,
}

impl Heads {
    pub(crate) const fn new(shard: ShardId) -> Self {
        Self {
            shard,
            lsn: 0,
            chains: BTreeMap::new(),
        }
    }

    /// Takes the entry of record `lsn + 1`.
    pub(crate) fn accept(&mut self, entry: &[u8]) -> Result<(Header, Hash), ChainError> {
        let (header, _) = Header::read(entry)?;
        let stream = header.chain.stream;
        let accepted = match self.chains.get_mut(&stream) {
            Some(chain) => chain.accept(entry)?,
            None => {
                let (chain, header, hash) = Chain::replay(
                    ChainId {
                        stream,
                        shard: self.shard,
                    },
                    entry,
                )?;
                self.chains.insert(stream, chain);
                (header, hash)
            }
        };
        self.lsn += 1;
        Ok(accepted)
    }

    pub(crate) fn reached(&self) -> Reached {
        let mut sizes = Sizes::default();
        self.chains
            .iter()
            .for_each(|(stream, chain)| sizes.set(*stream, chain.head().size));
        Reached { lsn: self.lsn, sizes }
    }

    /// The last hash of each chain.
    pub(crate) fn hashes(&self) -> Hashes {
        let mut hashes = Hashes::default();
        for (stream, chain) in &self.chains {
            if let Some(slot) = hashes.0.get_mut(*stream as usize) {
                *slot = chain.head().hash;
            }
        }
        hashes
    }

    /// The time of the last entry of all.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.chains.values().map(|chain| chain.head().time).max()
    }
}

/// Sends whose outcome is not recorded, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenIntents(Vec<OpenIntent>);

#[derive(Clone, Debug)]
struct OpenIntent {
    hash: B256,
    entry: Vec<u8>,
    openings: Vec<u8>,
}

impl OpenIntents {
    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes note of an entry, if it is an intent or an outcome.
    pub(crate) fn fold(&mut self, kind: Kind, entry: &[u8], openings: &[u8]) -> Result<(), EntryError> {
        match kind {
            Kind::SendIntent | Kind::SendOutcome => {}
            Kind::Genesis | Kind::Access | Kind::Admin | Kind::Security => return Ok(()),
        }
        match Entry::decode(entry, openings)?.content {
            Content::Record(Record::SendIntent(intent)) => {
                self.0.push(OpenIntent {
                    hash: intent.hash,
                    entry: entry.to_vec(),
                    openings: openings.to_vec(),
                });
            }
            Content::Record(Record::SendOutcome(outcome)) => {
                if let Some(at) = self.0.iter().position(|open| open.hash == outcome.hash) {
                    self.0.remove(at);
                }
            }
            Content::Genesis(_) | Content::Record(Record::Access(_) | Record::Admin(_) | Record::Security(_)) => {}
        }
        Ok(())
    }

    pub(crate) fn to_vec(&self) -> Vec<SendIntent> {
        let content = |open: &OpenIntent| {
            Entry::decode(&open.entry, &open.openings)
                .ok()
                .map(|entry| entry.content)
        };
        self.0
            .iter()
            .filter_map(|open| match content(open)? {
                Content::Record(Record::SendIntent(intent)) => Some(intent),
                Content::Genesis(_)
                | Content::Record(
                    Record::Access(_) | Record::Admin(_) | Record::Security(_) | Record::SendOutcome(_),
                ) => None,
            })
            .collect()
    }
}

/// The state before the oldest segment.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) heads: Heads,
    pub(crate) intents: OpenIntents,
}

impl Base {
    const NAME: &str = "base";

    pub(crate) fn save(&self, dir: &Path) -> std::io::Result<()> {
        disk::replace(&dir.join(Self::NAME), &self.encode())
    }

    pub(crate) fn load(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
        let path = dir.join(Self::NAME);
        let bytes = std::fs::read(&path).map_err(missing(&path, "the state before the oldest segment is missing"))?;
        let whole = bytes
            .split_last_chunk::<4>()
            .filter(|(bytes, sum)| u32::from_le_bytes(**sum) == crc32c::crc32c(bytes));
        let decoded = whole.and_then(|(bytes, _)| Self::decode(bytes, shard).ok());
        decoded.ok_or_else(|| OpenError::corrupt(&path, 0, "the state before the oldest segment cannot be read"))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.array(3);
        out.uint(self.heads.lsn);
        out.array(self.heads.chains.len());
        for (stream, chain) in &self.heads.chains {
            let head = chain.head();
            out.array(5);
            out.text(stream.as_str());
            out.uint(head.size);
            out.bytes(head.hash.as_slice());
            out.int(head.time.micros());
            out.array(chain.orgs().count());
            for (org, head) in chain.orgs() {
                out.array(3);
                out.bytes(org.0.as_bytes());
                out.uint(head.size);
                out.bytes(head.hash.as_slice());
            }
        }
        out.array(self.intents.0.len());
        for open in &self.intents.0 {
            out.array(3);
            out.bytes(open.hash.as_slice());
            out.bytes(&open.entry);
            out.bytes(&open.openings);
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], shard: ShardId) -> Result<Self, CborError> {
        let mut from = Reader::new(bytes);
        let mut base = Self {
            heads: Heads::new(shard),
            intents: OpenIntents::default(),
        };
        expect(&mut from, 3)?;
        base.heads.lsn = from.uint()?;
        for _ in 0..from.array()? {
            expect(&mut from, 5)?;
            let stream = from.text()?.parse().map_err(|_| CborError::Type)?;
            let (size, hash) = (from.uint()?, Hash::new(from.array_of()?));
            let head = Head {
                size,
                hash,
                time: Timestamp::from_micros(from.int()?),
            };
            let mut orgs = Vec::new();
            for _ in 0..from.array()? {
                expect(&mut from, 3)?;
                let org = OrgId(Uuid::from_bytes(from.array_of()?));
                orgs.push((
                    org,
                    OrgHead {
                        size: from.uint()?,
                        hash: Hash::new(from.array_of()?),
                    },
                ));
            }
            base.heads
                .chains
                .insert(stream, Chain::resume(ChainId { stream, shard }, head, orgs));
        }
        for _ in 0..from.array()? {
            expect(&mut from, 3)?;
            let hash = B256::new(from.array_of()?);
            base.intents.0.push(OpenIntent {
                hash,
                entry: from.bytes()?.to_vec(),
                openings: from.bytes()?.to_vec(),
            });
        }
        from.end()?;
        Ok(base)
    }
}

fn expect(from: &mut Reader<'_>, len: u64) -> Result<(), CborError> {
    if from.array()? == len {
        Ok(())
    } else {
        Err(CborError::Type)
    }
}
