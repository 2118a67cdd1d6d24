//! The ends of the chains after a record, and the sends without a recorded outcome.
//!
//! The journal appends at one such state. Another one, the *base*, is stored on disk: the state before the oldest
//! segment. It allows segments to be deleted without losing the ends of the chains and the open sends.

use crate::disk;
use crate::error::{OpenError, missing};
use crate::header::{ChainSizes, Progress, STREAMS};
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
    /// The hash of the last entry; zero for a chain without entries.
    pub(crate) fn get(&self, stream: Stream) -> Hash {
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

    /// Adds the entry of record `lsn + 1`.
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

    pub(crate) fn reached(&self) -> Progress {
        let mut sizes = ChainSizes::default();
        self.chains
            .iter()
            .for_each(|(stream, chain)| sizes.set(*stream, chain.head().size));
        Progress { lsn: self.lsn, sizes }
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

    /// The time of the newest entry in all chains.
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
    /// The number of open sends.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the open sends of another shard, except for those with the same hash.
    pub(crate) fn extend(&mut self, other: &Self) {
        for open in &other.0 {
            if self.0.iter().all(|known| known.hash != open.hash) {
                self.0.push(open.clone());
            }
        }
    }

    /// Adds the send of an intent entry, and removes the send of an outcome entry; ignores other entries.
    pub(crate) fn fold(&mut self, kind: Kind, entry: &[u8], openings: &[u8]) -> Result<(), EntryError> {
        match kind {
            Kind::SendIntent | Kind::SendOutcome => {}
            Kind::Genesis | Kind::Access | Kind::Admin | Kind::Security | Kind::Disclosure => return Ok(()),
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
            Content::Genesis(_)
            | Content::Record(Record::Access(_) | Record::Admin(_) | Record::Security(_) | Record::Disclosure(_)) => {}
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
                    Record::Access(_)
                    | Record::Admin(_)
                    | Record::Security(_)
                    | Record::Disclosure(_)
                    | Record::SendOutcome(_),
                ) => None,
            })
            .collect()
    }
}

/// The state before the oldest segment.
#[derive(Clone, Debug)]
pub(crate) struct BaseState {
    pub(crate) heads: Heads,
    pub(crate) intents: OpenIntents,
}

impl BaseState {
    const NAME: &str = "base";

    pub(crate) fn save(&self, dir: &Path) -> std::io::Result<()> {
        disk::replace(&dir.join(Self::NAME), &self.encode())
    }

    pub(crate) fn load(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
        let path = dir.join(Self::NAME);
        let bytes = std::fs::read(&path).map_err(missing(&path, "the state before the oldest segment is missing"))?;
        let checked = bytes
            .split_last_chunk::<4>()
            .filter(|(bytes, sum)| u32::from_le_bytes(**sum) == crc32c::crc32c(bytes));
        let decoded = checked.and_then(|(bytes, _)| Self::decode(bytes, shard).ok());
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
        let mut reader = Reader::new(bytes);
        let mut base = Self {
            heads: Heads::new(shard),
            intents: OpenIntents::default(),
        };
        expect(&mut reader, 3)?;
        base.heads.lsn = reader.uint()?;
        for _ in 0..reader.array()? {
            expect(&mut reader, 5)?;
            let stream = reader.text()?.parse().map_err(|_| CborError::Type)?;
            let (size, hash) = (reader.uint()?, Hash::new(reader.array_of()?));
            let head = Head {
                size,
                hash,
                time: Timestamp::from_micros(reader.int()?),
            };
            let mut orgs = Vec::new();
            for _ in 0..reader.array()? {
                expect(&mut reader, 3)?;
                let org = OrgId(Uuid::from_bytes(reader.array_of()?));
                orgs.push((
                    org,
                    OrgHead {
                        size: reader.uint()?,
                        hash: Hash::new(reader.array_of()?),
                    },
                ));
            }
            base.heads
                .chains
                .insert(stream, Chain::resume(ChainId { stream, shard }, head, orgs));
        }
        for _ in 0..reader.array()? {
            expect(&mut reader, 3)?;
            let hash = B256::new(reader.array_of()?);
            base.intents.0.push(OpenIntent {
                hash,
                entry: reader.bytes()?.to_vec(),
                openings: reader.bytes()?.to_vec(),
            });
        }
        reader.end()?;
        Ok(base)
    }
}

fn expect(reader: &mut Reader<'_>, len: u64) -> Result<(), CborError> {
    if reader.array()? == len {
        Ok(())
    } else {
        Err(CborError::Type)
    }
}
