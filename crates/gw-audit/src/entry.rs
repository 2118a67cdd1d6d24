//! An entry: a record with its place in a chain, as deterministic bytes.

use crate::cbor::{CborError, MapReader, Reader, Writer};
use crate::fields::{Fields, Input, Openings, Out};
use crate::record::{Kind, Record, Stream};
use crate::tree;
use gw_types::{B256, Entropy, OrgId, Timestamp};
use uuid::Uuid;

/// A SHA-256 hash.
pub type Hash = B256;

/// The schema version of the entries made here.
pub const ENTRY_VERSION: u64 = 1;

/// The name of the entry format, as the first entry of each chain states it.
pub const ENTRY_FORMAT: &str = "ledger-gateway-entry/1";

/// One writer's chain within a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub Uuid);

impl From<Uuid> for ShardId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl core::fmt::Display for ShardId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

/// One policy store: its id is made with its schema and stays with its backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub Uuid);

impl From<Uuid> for StoreId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl core::fmt::Display for StoreId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

/// Which chain: a stream and the writer's shard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId {
    /// The stream.
    pub stream: Stream,
    /// The shard.
    pub shard: ShardId,
}

impl ChainId {
    /// Whether there can be such a chain: the administrative stream is one chain of all instances, with the nil shard
    /// (spec/70 rule 3).
    pub const fn can_be(&self) -> bool {
        !matches!(self.stream, Stream::Admin) || self.shard.0.is_nil()
    }
}

/// The body of a chain's first entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The shard, once more.
    pub shard: ShardId,
    /// [`ENTRY_FORMAT`].
    pub format: String,
    /// The cluster's name.
    pub cluster: String,
    /// The public key that will sign this chain's checkpoints.
    pub checkpoint_key: B256,
}

impl Genesis {
    /// The first entry of a chain of `cluster`.
    pub fn new(shard: ShardId, cluster: &str, checkpoint_key: [u8; 32]) -> Self {
        Self {
            shard,
            format: ENTRY_FORMAT.to_owned(),
            cluster: cluster.to_owned(),
            checkpoint_key: B256::new(checkpoint_key),
        }
    }
}

/// A record as bytes, not yet placed in a chain. Making one needs no lock.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) kind: Kind,
    pub(crate) stream: Stream,
    pub(crate) org: Option<OrgId>,
    pub(crate) body: Vec<u8>,
    pub(crate) openings: Vec<u8>,
}

impl Draft {
    /// Encodes a record; each personal value gets a fresh salt.
    pub fn new(record: &Record, entropy: &dyn Entropy) -> Self {
        let write = |out: &mut Out<'_, '_>| match record {
            Record::Access(record) => record.write(out),
            Record::Admin(entry) => entry.write(out),
            Record::Security(event) => event.write(out),
            Record::SendIntent(intent) => intent.write(out),
            Record::SendOutcome(outcome) => outcome.write(out),
        };
        Self::written(record.kind(), record.stream(), record.org_id(), entropy, write)
    }

    pub(crate) fn genesis(stream: Stream, genesis: &Genesis) -> Self {
        Self::written(Kind::Genesis, stream, None, &NothingPersonal, |out| genesis.write(out))
    }

    fn written(
        kind: Kind,
        stream: Stream,
        org: Option<OrgId>,
        entropy: &dyn Entropy,
        write: impl FnOnce(&mut Out<'_, '_>),
    ) -> Self {
        let (mut body, mut openings) = (Vec::with_capacity(384), Vec::with_capacity(192));
        write(&mut Out::new(&mut body, &mut openings, entropy));
        Self {
            kind,
            stream,
            org,
            body,
            openings,
        }
    }

    /// The draft an entry was made of, to be placed in another chain: salts and commitments stay the same.
    pub fn again(bytes: &[u8], openings: Vec<u8>) -> Result<Self, EntryError> {
        let (header, body) = Header::read(bytes)?;
        let org = header.org.map(|org| org.id);
        Ok(Self {
            kind: header.kind,
            stream: header.chain.stream,
            org,
            body: body.to_vec(),
            openings,
        })
    }

    /// The kind of the record.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The stream the record belongs to.
    pub const fn stream(&self) -> Stream {
        self.stream
    }

    /// Salts and personal values, to be kept beside the entry.
    pub fn openings(&self) -> &[u8] {
        &self.openings
    }

    /// An upper bound of the size of entry and openings together.
    pub const fn size_bound(&self) -> usize {
        self.body.len() + self.openings.len() + Header::SIZE_BOUND
    }
}

/// A genesis holds no personal value, so needs no salt.
#[derive(Debug)]
struct NothingPersonal;

impl Entropy for NothingPersonal {
    fn fill(&self, _: &mut [u8]) {}
}

/// An entry's place under its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgLink {
    /// The organization.
    pub id: OrgId,
    /// The number of this entry among the organization's entries in this chain, from 0.
    pub seq: u64,
    /// The hash of the organization's previous entry in this chain, or zero.
    pub prev: Hash,
}

/// An entry's place in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What kind of record follows.
    pub kind: Kind,
    /// The chain.
    pub chain: ChainId,
    /// The entry's number, without gaps from 0.
    pub seq: u64,
    /// The hash of the entry before, or zero.
    pub prev: Hash,
    /// When the entry was appended.
    pub time: Timestamp,
    /// The place under the organization, if it is filed under one.
    pub org: Option<OrgLink>,
}

impl Header {
    /// No header takes more bytes.
    const SIZE_BOUND: usize = 320;

    pub(crate) fn write(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mut map = writer.map();
        map.field("v").uint(ENTRY_VERSION);
        map.field("seq").uint(self.seq);
        map.field("body").raw(body);
        map.field("kind").text(self.kind.as_str());
        map.field("prev").bytes(self.prev.as_slice());
        map.field("time").int(self.time.micros());
        map.field("shard").bytes(self.chain.shard.0.as_bytes());
        if let Some(org) = &self.org {
            map.field("org_id").bytes(org.id.0.as_bytes());
        }
        map.field("stream").text(self.chain.stream.as_str());
        if let Some(org) = &self.org {
            map.field("org_seq").uint(org.seq);
            map.field("org_prev").bytes(org.prev.as_slice());
        }
    }

    /// Reads the header of an entry and the bytes of its body, which are not looked into.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), EntryError> {
        let mut reader = Reader::new(bytes);
        let mut map = reader.map()?;
        match map.get("v")?.uint()? {
            ENTRY_VERSION => {}
            version => return Err(EntryError::Version(version)),
        }
        let seq = map.get("seq")?.uint()?;
        let body = map.get("body")?.skip()?;
        let kind = code(&mut map, "kind")?;
        let prev = B256::new(map.get("prev")?.array_of()?);
        let time = Timestamp::from_micros(map.get("time")?.int()?);
        let shard = ShardId(Uuid::from_bytes(map.get("shard")?.array_of()?));
        let org_id = map.find("org_id")?.map(Reader::array_of).transpose()?;
        let stream = code(&mut map, "stream")?;
        let org = match org_id {
            Some(id) => {
                let id = OrgId(Uuid::from_bytes(id));
                let seq = map.get("org_seq")?.uint()?;
                Some(OrgLink {
                    id,
                    seq,
                    prev: B256::new(map.get("org_prev")?.array_of()?),
                })
            }
            None => None,
        };
        map.end()?;
        reader.end()?;
        Ok((
            Self {
                kind,
                chain: ChainId { stream, shard },
                seq,
                prev,
                time,
                org,
            },
            body,
        ))
    }
}

fn code<T: core::str::FromStr>(map: &mut MapReader<'_, '_>, key: &'static str) -> Result<T, EntryError> {
    map.get(key)?.text()?.parse().map_err(|_| EntryError::Value)
}

/// An entry as it is kept: its bytes, its hash, and beside it what its commitments stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The entry's place; the same as in the bytes.
    pub header: Header,
    /// The entry's hash.
    pub hash: Hash,
    /// The deterministic bytes.
    pub bytes: Vec<u8>,
    /// Salts and personal values; never part of the hash.
    pub openings: Vec<u8>,
}

impl StoredEntry {
    /// Reads an entry back and computes its hash; its place in the chain is not checked.
    pub fn new(bytes: Vec<u8>, openings: Vec<u8>) -> Result<Self, EntryError> {
        let (header, _) = Header::read(&bytes)?;
        Ok(Self {
            header,
            hash: tree::leaf(&bytes),
            bytes,
            openings,
        })
    }

    /// The record inside.
    pub fn content(&self) -> Result<Content, EntryError> {
        Entry::decode(&self.bytes, &self.openings).map(|entry| entry.content)
    }
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The start of the chain.
    Genesis(Genesis),
    /// A record.
    Record(Record),
}

/// An entry read back whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub header: Header,
    /// What it holds.
    pub content: Content,
    /// How many of its personal values were erased.
    pub erased: u32,
}

impl Entry {
    /// Reads an entry and opens every commitment that was not erased.
    pub fn decode(bytes: &[u8], openings: &[u8]) -> Result<Self, EntryError> {
        let (header, body) = Header::read(bytes)?;
        let mut openings = Openings {
            rest: Reader::new(openings),
            erased: 0,
        };
        let org = header.org.map(|org| org.id);
        let input = Input {
            body: Reader::new(body),
            openings: &mut openings,
            org,
        };
        let content = match header.kind {
            Kind::Genesis => Content::Genesis(Fields::read(input)?),
            Kind::Access => Content::Record(Record::Access(Fields::read(input)?)),
            Kind::Admin => Content::Record(Record::Admin(Fields::read(input)?)),
            Kind::Security => Content::Record(Record::Security(Fields::read(input)?)),
            Kind::SendIntent => Content::Record(Record::SendIntent(Fields::read(input)?)),
            Kind::SendOutcome => Content::Record(Record::SendOutcome(Fields::read(input)?)),
        };
        openings.rest.end().map_err(EntryError::Openings)?;
        let stream = match &content {
            Content::Genesis(_) => header.chain.stream,
            Content::Record(record) => record.stream(),
        };
        if stream != header.chain.stream {
            return Err(EntryError::Value);
        }
        Ok(Self {
            header,
            content,
            erased: openings.erased,
        })
    }
}

/// The openings with every salt and value erased (spec/70 rule 5); chain and proofs stay as they are.
pub fn erased(openings: &[u8]) -> Result<Vec<u8>, EntryError> {
    let mut reader = Reader::new(openings);
    let mut erased = Vec::new();
    while !reader.is_empty() {
        reader.skip().map_err(EntryError::Openings)?;
        Writer::new(&mut erased).null();
    }
    Ok(erased)
}

/// Why bytes are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry's bytes.
    #[error("the entry is malformed")]
    Cbor(#[from] CborError),
    /// A schema version nobody here knows.
    #[error("the schema version {0} is unknown")]
    Version(u64),
    /// A value outside its type.
    #[error("a value is outside its type")]
    Value,
    /// The bytes beside the entry.
    #[error("the openings are malformed")]
    Openings(#[source] CborError),
    /// A salt and value that are not what was committed to.
    #[error("a personal value is not what was committed to")]
    Commitment,
}
