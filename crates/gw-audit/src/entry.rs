//! Entries: a record and its position in a chain, as deterministic bytes.

use crate::cbor::{MapReader, Reader, Writer};
use crate::entry_error::EntryError;
use crate::fields::{FieldReader, FieldWriter, Fields, Openings};
use crate::genesis::Genesis;
use crate::hash::Hash;
use crate::ids::ShardId;
use crate::record::{Kind, Record, Stream};
use crate::tree;
use gw_types::{B256, Entropy, OrgId, Timestamp};
use uuid::Uuid;

/// The schema version of the entries that this crate writes.
pub const ENTRY_VERSION: u64 = 1;

/// The id of a chain: a stream and a writer's shard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId {
    /// The stream.
    pub stream: Stream,
    /// The shard.
    pub shard: ShardId,
}

impl ChainId {
    /// Whether a chain with this id can exist: the administrative stream has only one chain, with the nil shard, which
    /// all instances share (spec/70 rule 3).
    pub const fn can_be(&self) -> bool {
        !matches!(self.stream, Stream::Admin) || self.shard.0.is_nil()
    }
}

/// A record as bytes, not yet appended to a chain. Encoding needs no lock.
#[derive(Clone, Debug)]
pub struct EncodedRecord {
    pub(crate) kind: Kind,
    pub(crate) stream: Stream,
    pub(crate) org: Option<OrgId>,
    pub(crate) body: Vec<u8>,
    pub(crate) openings: Vec<u8>,
}

impl EncodedRecord {
    /// Encodes a record; each personal value gets a new salt.
    pub fn new(record: &Record, entropy: &dyn Entropy) -> Self {
        let write = |out: &mut FieldWriter<'_, '_>| match record {
            Record::Access(record) => record.write(out),
            Record::Admin(entry) => entry.write(out),
            Record::Security(event) => event.write(out),
            Record::Disclosure(read) => read.write(out),
            Record::SendIntent(intent) => intent.write(out),
            Record::SendOutcome(outcome) => outcome.write(out),
        };
        Self::encode(record.kind(), record.stream(), record.org_id(), entropy, write)
    }

    pub(crate) fn genesis(stream: Stream, genesis: &Genesis) -> Self {
        Self::encode(Kind::Genesis, stream, None, &NoSalts, |out| genesis.write(out))
    }

    fn encode(
        kind: Kind,
        stream: Stream,
        org: Option<OrgId>,
        entropy: &dyn Entropy,
        write: impl FnOnce(&mut FieldWriter<'_, '_>),
    ) -> Self {
        let (mut body, mut openings) = (Vec::with_capacity(384), Vec::with_capacity(192));
        write(&mut FieldWriter::new(&mut body, &mut openings, entropy));
        Self {
            kind,
            stream,
            org,
            body,
            openings,
        }
    }

    /// Extracts the record of an entry, to append it to another chain. Salts and commitments stay unchanged.
    ///
    /// # Errors
    /// The bytes are not an entry.
    pub fn reencode(bytes: &[u8], openings: Vec<u8>) -> Result<Self, EntryError> {
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

    /// Salts and personal values, which are stored next to the entry.
    pub fn openings(&self) -> &[u8] {
        &self.openings
    }

    /// An upper bound of the size of entry and openings together, in bytes.
    pub const fn size_bound(&self) -> usize {
        self.body.len() + self.openings.len() + Header::SIZE_BOUND
    }
}

/// The entropy for a genesis, which holds no personal value and so needs no salt.
#[derive(Debug)]
struct NoSalts;

impl Entropy for NoSalts {
    fn fill(&self, _: &mut [u8]) {}
}

/// An entry's position among the entries of its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgLink {
    /// The organization.
    pub id: OrgId,
    /// The number of this entry among the organization's entries in this chain, from 0.
    pub seq: u64,
    /// The hash of the organization's previous entry in this chain, or zero.
    pub prev: Hash,
}

/// An entry's position in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the record in the body.
    pub kind: Kind,
    /// The chain.
    pub chain: ChainId,
    /// The entry's number, from 0 without gaps.
    pub seq: u64,
    /// The hash of the previous entry, or zero.
    pub prev: Hash,
    /// When the entry was appended.
    pub time: Timestamp,
    /// The position among the organization's entries, if the record belongs to an organization.
    pub org: Option<OrgLink>,
}

impl Header {
    /// The largest size of a header in bytes.
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

    /// Decodes the header of an entry and returns the bytes of its body, which are not decoded.
    ///
    /// # Errors
    /// The bytes are not an entry.
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

/// An entry as a store holds it: its bytes, its hash and its openings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The entry's position, decoded from the bytes.
    pub header: Header,
    /// The entry's hash.
    pub hash: Hash,
    /// The deterministic bytes.
    pub bytes: Vec<u8>,
    /// Salts and personal values; never part of the hash.
    pub openings: Vec<u8>,
}

impl StoredEntry {
    /// Decodes an entry's header and computes its hash; the position in the chain is not checked.
    ///
    /// # Errors
    /// The bytes are not an entry.
    pub fn new(bytes: Vec<u8>, openings: Vec<u8>) -> Result<Self, EntryError> {
        let (header, _) = Header::read(&bytes)?;
        Ok(Self {
            header,
            hash: tree::leaf(&bytes),
            bytes,
            openings,
        })
    }

    /// Decodes the content of the entry.
    ///
    /// # Errors
    /// The bytes are not an entry, or the openings do not match its commitments.
    pub fn content(&self) -> Result<Content, EntryError> {
        Entry::decode(&self.bytes, &self.openings).map(|entry| entry.content)
    }
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The start of the chain.
    Genesis(Genesis),
    /// A record.
    Record(Record),
}

/// A completely decoded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position in the chain.
    pub header: Header,
    /// The content.
    pub content: Content,
    /// The number of its personal values that were erased.
    pub erased: u32,
}

impl Entry {
    /// Decodes an entry and opens every commitment whose opening was not erased.
    ///
    /// # Errors
    /// The bytes are not an entry, or the openings do not match its commitments.
    pub fn decode(bytes: &[u8], openings: &[u8]) -> Result<Self, EntryError> {
        let (header, body) = Header::read(bytes)?;
        let mut openings = Openings {
            rest: Reader::new(openings),
            erased: 0,
        };
        let org = header.org.map(|org| org.id);
        let input = FieldReader {
            body: Reader::new(body),
            openings: &mut openings,
            org,
        };
        let content = match header.kind {
            Kind::Genesis => Content::Genesis(Fields::read(input)?),
            Kind::Access => Content::Record(Record::Access(Fields::read(input)?)),
            Kind::Admin => Content::Record(Record::Admin(Fields::read(input)?)),
            Kind::Security => Content::Record(Record::Security(Fields::read(input)?)),
            Kind::Disclosure => Content::Record(Record::Disclosure(Fields::read(input)?)),
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

/// Erases every salt and value of the openings (spec/70 rule 5). Chain and proofs do not change.
///
/// # Errors
/// The openings are malformed.
pub fn erased(openings: &[u8]) -> Result<Vec<u8>, EntryError> {
    let mut reader = Reader::new(openings);
    let mut erased = Vec::new();
    while !reader.is_empty() {
        reader.skip().map_err(EntryError::Openings)?;
        Writer::new(&mut erased).null();
    }
    Ok(erased)
}
