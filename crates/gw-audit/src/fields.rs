//! Encoding and decoding of each record's fields as CBOR. One list of fields per record serves both directions.
//!
//! The entry contains a personal field as a commitment, `SHA-256(salt ‖ value)`. Salts and values are stored separately
//! as the entry's *openings*: a CBOR sequence whose n-th item opens the n-th commitment. The item is `[salt, value]`,
//! or null once it is erased (spec/70 rule 5).

use crate::cbor::{CborError, MapReader, MapWriter, Reader, Writer};
use crate::entry_error::EntryError;
use crate::genesis::Genesis;
use crate::record::{
    AccessRecord, Action, AdminEntry, AuthMethod, DisclosureAction, DisclosureData, DisclosureRead, MatchedVia,
    OutboxFault, Outcome, ResourceType, SecurityEvent, SecurityKind, SendIntent, SendOutcome, TraceKind,
};
use gw_types::{
    Address, B256, Claim, Claims, DenyReason, DisclosureGrantId, Entropy, Epoch, ExternalId, OrgId, PersonalUrlId,
    SessionId, Timestamp, UserId,
};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::net::IpAddr;
use uuid::Uuid;

/// A record as a list of fields.
pub(crate) trait Fields: Sized {
    /// Encodes the record as one map.
    fn write(&self, out: &mut FieldWriter<'_, '_>);
    /// Decodes the record from its map and its openings.
    fn read(input: FieldReader<'_, '_>) -> Result<Self, EntryError>;
}

/// Lists the fields of each record in encoded order. A `plain` field is encoded directly and a `personal` field as a
/// commitment. The `org` field is the organization, which is encoded in the entry's header instead of the body.
macro_rules! fields {
    ($($type:ident { $($how:ident $name:ident,)* })*) => {$(
        impl Fields for $type {
            fn write(&self, out: &mut FieldWriter<'_, '_>) {
                let mut map = out.map();
                $(map.$how(stringify!($name), &self.$name);)*
            }

            fn read(input: FieldReader<'_, '_>) -> Result<Self, EntryError> {
                input.map(|map| Ok(Self { $($name: map.$how(stringify!($name))?,)* }))
            }
        }
    )*};
}

fields! {
    Genesis {
        plain shard,
        plain format,
        plain cluster,
        plain checkpoint_key,
    }
    AccessRecord {
        org org_id,
        plain method,
        personal ip_address,
        plain rpc_url_id,
        plain trace_kind,
        plain auth_method,
        plain duration_us,
        personal external_id,
        plain matched_via,
        plain node_called,
        plain status_code,
        plain upstream_ms,
        plain policy_epoch,
        plain denial_reason,
        plain correlation_id,
        personal request_params,
        plain response_status,
    }
    AdminEntry {
        org org_id,
        plain action,
        plain actor_id,
        plain store_id,
        personal new_value,
        personal old_value,
        plain outbox_id,
        personal ip_address,
        plain resource_id,
        plain outbox_fault,
        personal resource_name,
        plain resource_type,
        plain correlation_id,
        personal actor_external_id,
    }
    SecurityEvent {
        org org_id,
        plain kind,
        plain count,
        plain reason,
        personal address,
        plain user_id,
        plain provider,
        personal ip_address,
        plain session_id,
        personal external_id,
        plain correlation_id,
    }
    DisclosureRead {
        org org_id,
        plain data,
        plain last,
        plain first,
        plain action,
        plain methods,
        plain grant_id,
        plain owner_id,
        personal addresses,
        plain viewer_id,
        personal ip_address,
        plain record_count,
        plain correlation_id,
        personal viewer_external_id,
    }
    SendIntent {
        org org_id,
        plain hash,
        plain nonce,
        plain claims,
        personal sender,
        personal creates,
        personal subject,
        personal visible_to,
    }
    SendOutcome {
        org org_id,
        plain hash,
        plain outcome,
        plain node_code,
    }
}

/// Encodes the fields of one record into a body and its openings.
pub(crate) struct FieldWriter<'b, 'e> {
    body: Writer<'b>,
    openings: Writer<'b>,
    salts: Salts<'e>,
}

impl<'b, 'e> FieldWriter<'b, 'e> {
    pub(crate) fn new(body: &'b mut Vec<u8>, openings: &'b mut Vec<u8>, entropy: &'e dyn Entropy) -> Self {
        let salts = Salts {
            entropy,
            drawn: [0; SALTS_AT_ONCE],
            used: SALTS_AT_ONCE,
        };
        Self {
            body: Writer::new(body),
            openings: Writer::new(openings),
            salts,
        }
    }

    fn map(&mut self) -> FieldsOut<'_, 'b, 'e> {
        let committer = Committer {
            openings: &mut self.openings,
            salts: &mut self.salts,
        };
        FieldsOut {
            map: self.body.map(),
            committer,
        }
    }
}

struct FieldsOut<'o, 'b, 'e> {
    map: MapWriter<'o, 'b>,
    committer: Committer<'o, 'b, 'e>,
}

impl FieldsOut<'_, '_, '_> {
    fn plain(&mut self, key: &'static str, field: &impl Field) {
        field.write(key, &mut self.map);
    }

    fn personal(&mut self, key: &'static str, field: &impl Personal) {
        field.commit(key, &mut self.map, &mut self.committer);
    }

    #[expect(clippy::unused_self, reason = "one form for every kind of field")]
    fn org(&mut self, _: &'static str, _: &impl AuditOrg) {}
}

/// The number of salt bytes drawn at once: most records have at most three personal values.
const SALTS_AT_ONCE: usize = 3 * 16;

struct Salts<'e> {
    entropy: &'e dyn Entropy,
    drawn: [u8; SALTS_AT_ONCE],
    used: usize,
}

impl Salts<'_> {
    fn next(&mut self) -> [u8; 16] {
        if self.used == SALTS_AT_ONCE {
            self.entropy.fill(&mut self.drawn);
            self.used = 0;
        }
        let salt = self
            .drawn
            .get(self.used..)
            .and_then(|rest| rest.first_chunk::<16>())
            .copied();
        self.used += 16;
        salt.unwrap_or_else(|| {
            let mut salt = [0; 16];
            self.entropy.fill(&mut salt);
            salt
        })
    }
}

struct Committer<'o, 'b, 'e> {
    openings: &'o mut Writer<'b>,
    salts: &'o mut Salts<'e>,
}

impl Committer<'_, '_, '_> {
    /// Writes the opening of a value, and its commitment to `body`.
    fn commit(&mut self, value: &str, body: &mut Writer<'_>) {
        let salt = self.salts.next();
        self.openings.array(2);
        self.openings.bytes(&salt);
        self.openings.text(value);
        body.bytes(&commitment(&salt, value));
    }
}

/// The commitment to a personal value.
pub(crate) fn commitment(salt: &[u8; 16], value: &str) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(value).finalize().into()
}

/// Decodes the fields of one record from a body and its openings.
pub(crate) struct FieldReader<'r, 'a> {
    pub(crate) body: Reader<'a>,
    pub(crate) openings: &'r mut Openings<'a>,
    pub(crate) org: Option<OrgId>,
}

impl FieldReader<'_, '_> {
    fn map<T>(self, read: impl FnOnce(&mut FieldsIn<'_, '_>) -> Result<T, EntryError>) -> Result<T, EntryError> {
        let mut body = self.body;
        let mut fields = FieldsIn {
            map: body.map()?,
            openings: self.openings,
            org: self.org,
        };
        let record = read(&mut fields)?;
        fields.map.end()?;
        body.end()?;
        Ok(record)
    }
}

struct FieldsIn<'r, 'a> {
    map: MapReader<'r, 'a>,
    openings: &'r mut Openings<'a>,
    org: Option<OrgId>,
}

impl FieldsIn<'_, '_> {
    fn plain<T: Field>(&mut self, key: &'static str) -> Result<T, EntryError> {
        T::read(key, &mut self.map)
    }

    fn personal<T: Personal>(&mut self, key: &'static str) -> Result<T, EntryError> {
        T::open(key, &mut self.map, self.openings)
    }

    fn org<T: AuditOrg>(&mut self, _: &'static str) -> Result<T, EntryError> {
        T::from_header(self.org)
    }
}

/// The openings that are not used yet, and the number of used ones that were erased.
pub(crate) struct Openings<'a> {
    pub(crate) rest: Reader<'a>,
    pub(crate) erased: u32,
}

impl Openings<'_> {
    /// Opens the next commitment; `None` if its opening was erased.
    fn open<T: Text>(&mut self, committed: &[u8]) -> Result<Option<T>, EntryError> {
        if self.rest.null() {
            self.erased += 1;
            return Ok(None);
        }
        let item = &mut self.rest;
        if item.array().map_err(EntryError::Openings)? != 2 {
            return Err(EntryError::Openings(CborError::Type));
        }
        let salt = item.array_of::<16>().map_err(EntryError::Openings)?;
        let value = item.text().map_err(EntryError::Openings)?;
        if commitment(&salt, value) != committed {
            return Err(EntryError::Commitment);
        }
        T::from_text(value).map(Some).ok_or(EntryError::Value)
    }
}

/// A value that is encoded directly.
trait Value: Sized {
    fn put(&self, to: &mut Writer<'_>);
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError>;
}

/// A field that is encoded directly: a required or an optional value.
trait Field: Sized {
    fn write(&self, key: &'static str, map: &mut MapWriter<'_, '_>);
    fn read(key: &'static str, map: &mut MapReader<'_, '_>) -> Result<Self, EntryError>;
}

impl<T: Value> Field for T {
    fn write(&self, key: &'static str, map: &mut MapWriter<'_, '_>) {
        self.put(map.field(key));
    }

    fn read(key: &'static str, map: &mut MapReader<'_, '_>) -> Result<Self, EntryError> {
        T::take(map.get(key)?)
    }
}

impl<T: Value> Field for Option<T> {
    fn write(&self, key: &'static str, map: &mut MapWriter<'_, '_>) {
        if let Some(value) = self {
            value.put(map.field(key));
        }
    }

    fn read(key: &'static str, map: &mut MapReader<'_, '_>) -> Result<Self, EntryError> {
        map.find(key)?.map(T::take).transpose()
    }
}

/// A personal field, encoded as commitments: an optional value, or a list.
trait Personal: Sized {
    fn commit(&self, key: &'static str, map: &mut MapWriter<'_, '_>, committer: &mut Committer<'_, '_, '_>);
    fn open(key: &'static str, map: &mut MapReader<'_, '_>, openings: &mut Openings<'_>) -> Result<Self, EntryError>;
}

impl<T: Text> Personal for Option<T> {
    fn commit(&self, key: &'static str, map: &mut MapWriter<'_, '_>, committer: &mut Committer<'_, '_, '_>) {
        if let Some(value) = self {
            committer.commit(&value.to_text(), map.field(key));
        }
    }

    fn open(key: &'static str, map: &mut MapReader<'_, '_>, openings: &mut Openings<'_>) -> Result<Self, EntryError> {
        match map.find(key)? {
            Some(committed) => openings.open(committed.bytes()?),
            None => Ok(None),
        }
    }
}

impl<T: Text> Personal for Vec<T> {
    fn commit(&self, key: &'static str, map: &mut MapWriter<'_, '_>, committer: &mut Committer<'_, '_, '_>) {
        let list = map.field(key);
        list.array(self.len());
        for value in self {
            committer.commit(&value.to_text(), list);
        }
    }

    fn open(key: &'static str, map: &mut MapReader<'_, '_>, openings: &mut Openings<'_>) -> Result<Self, EntryError> {
        let list = map.get(key)?;
        let mut values = Self::new();
        for _ in 0..list.array()? {
            values.extend(openings.open::<T>(list.bytes()?)?);
        }
        Ok(values)
    }
}

/// The organization of a record, taken from the entry's header.
trait AuditOrg: Sized {
    fn from_header(org: Option<OrgId>) -> Result<Self, EntryError>;
}

impl AuditOrg for Option<OrgId> {
    fn from_header(org: Self) -> Result<Self, EntryError> {
        Ok(org)
    }
}

impl AuditOrg for OrgId {
    fn from_header(org: Option<OrgId>) -> Result<Self, EntryError> {
        org.ok_or(EntryError::Value)
    }
}

/// A value with exactly one text form. Commitments are made over the text.
trait Text: Sized {
    fn to_text(&self) -> Cow<'_, str>;
    fn from_text(text: &str) -> Option<Self>;
}

impl Text for String {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Text for Cow<'static, str> {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(Self::Owned(text.to_owned()))
    }
}

impl Text for ExternalId {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.as_str())
    }
    fn from_text(text: &str) -> Option<Self> {
        Self::new(text).ok()
    }
}

impl Text for IpAddr {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The text is the EIP-55 checksummed form.
impl Text for Address {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_checksum(None))
    }
    fn from_text(text: &str) -> Option<Self> {
        Self::parse_checksummed(text, None).ok()
    }
}

impl Value for Cow<'static, str> {
    fn put(&self, to: &mut Writer<'_>) {
        to.text(self);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(Self::Owned(from.text()?.to_owned()))
    }
}

impl Value for String {
    fn put(&self, to: &mut Writer<'_>) {
        to.text(self);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(from.text()?.to_owned())
    }
}

impl Value for bool {
    fn put(&self, to: &mut Writer<'_>) {
        to.bool(*self);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(from.bool()?)
    }
}

impl Value for i64 {
    fn put(&self, to: &mut Writer<'_>) {
        to.int(*self);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(from.int()?)
    }
}

macro_rules! uints {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, to: &mut Writer<'_>) {
                to.uint(u64::from(*self));
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
                Self::try_from(from.uint()?).map_err(|_| EntryError::Value)
            }
        }
    )*};
}

uints!(u16 u32 u64);

impl Value for Epoch {
    fn put(&self, to: &mut Writer<'_>) {
        to.uint(self.0);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(Self(from.uint()?))
    }
}

macro_rules! uuids {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, to: &mut Writer<'_>) {
                to.bytes(self.0.as_bytes());
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
                Ok(Uuid::from_bytes(from.array_of()?).into())
            }
        }
    )*};
}

uuids!(UserId SessionId PersonalUrlId DisclosureGrantId crate::ShardId crate::StoreId);

impl Value for Timestamp {
    fn put(&self, to: &mut Writer<'_>) {
        to.int(self.micros());
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(Self::from_micros(from.int()?))
    }
}

impl Value for B256 {
    fn put(&self, to: &mut Writer<'_>) {
        to.bytes(self.as_slice());
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        Ok(Self(from.array_of()?))
    }
}

macro_rules! coded {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, to: &mut Writer<'_>) {
                to.text(self.as_str());
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
                from.text()?.parse().map_err(|_| EntryError::Value)
            }
        }
    )*};
}

coded!(Action AuthMethod DisclosureAction DisclosureData MatchedVia Outcome OutboxFault ResourceType SecurityKind);
coded!(TraceKind);

impl Value for DenyReason {
    fn put(&self, to: &mut Writer<'_>) {
        to.text(self.as_str());
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        let text = from.text()?;
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == text)
            .ok_or(EntryError::Value)
    }
}

impl Value for Claims {
    fn put(&self, to: &mut Writer<'_>) {
        to.array(self.iter().count());
        self.iter().for_each(|claim| to.text(claim.as_str()));
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, EntryError> {
        let mut claims = Self::NONE;
        for _ in 0..from.array()? {
            claims = claims.with(from.text()?.parse::<Claim>().map_err(|_| EntryError::Value)?);
        }
        Ok(claims)
    }
}
