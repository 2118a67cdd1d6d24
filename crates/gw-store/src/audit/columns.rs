//! Columns copied from an entry, for queries. Displayed values are always read from the entry's bytes.

use crate::entity::entries;
use gw_audit::{Content, EntryError, Record, ResourceType, StoredEntry, outbox::is_invalid_id_entry};
use sea_orm::ActiveValue::{NotSet, Set};
use uuid::Uuid;

/// The columns of one entry. They depend on the entry alone, so that a verification can compare them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    kind: &'static str,
    created_at: i64,
    org_id: Option<Uuid>,
    external_id: Option<String>,
    correlation_id: Option<String>,
    method: Option<String>,
    status_code: Option<i32>,
    denial_reason: Option<&'static str>,
    action: Option<&'static str>,
    actor_id: Option<Uuid>,
    resource_type: Option<&'static str>,
    resource_id: Option<String>,
    tx_hash: Option<String>,
    outbox_id: Option<i64>,
    store_id: Option<Uuid>,
    /// Whether the row has an outbox id: the entry of a mutation has one, the entry about a row without a valid id has
    /// none.
    has_outbox_id: bool,
}

impl Columns {
    pub(super) fn from_entry(entry: &StoredEntry) -> Result<Self, EntryError> {
        let common = Self {
            kind: entry.header.kind.as_str(),
            created_at: entry.header.time.micros(),
            org_id: entry.header.org.map(|org| org.id.0),
            ..Self::default()
        };
        Ok(match entry.content()? {
            Content::Genesis(_) => common,
            Content::Record(record) => common.with_record(record),
        })
    }

    fn with_record(self, record: Record) -> Self {
        match record {
            Record::Access(call) => Self {
                external_id: call.external_id.map(Into::into),
                correlation_id: call.correlation_id.map(Into::into),
                method: Some(call.method.into()),
                status_code: Some(call.status_code.into()),
                denial_reason: call.denial_reason.map(|reason| reason.as_str()),
                ..self
            },
            Record::Admin(entry) => Self {
                has_outbox_id: !is_invalid_id_entry(&entry),
                external_id: entry.actor_external_id.map(Into::into),
                correlation_id: entry.correlation_id.map(Into::into),
                action: Some(entry.action.as_str()),
                actor_id: entry.actor_id.map(|user| user.0),
                resource_type: Some(entry.resource_type.as_str()),
                resource_id: entry.resource_id,
                outbox_id: entry.outbox_id.and_then(|id| i64::try_from(id).ok()),
                store_id: entry.store_id.map(|store| store.0),
                ..self
            },
            Record::Security(event) => Self {
                external_id: event.external_id.map(Into::into),
                correlation_id: event.correlation_id.map(Into::into),
                action: Some(event.kind.as_str()),
                actor_id: event.user_id.map(|user| user.0),
                ..self
            },
            Record::Disclosure(read) => Self {
                external_id: read.viewer_external_id.map(Into::into),
                correlation_id: read.correlation_id.map(Into::into),
                action: Some(read.action.as_str()),
                actor_id: read.viewer_id.map(|user| user.0),
                resource_type: Some(ResourceType::DisclosureGrant.as_str()),
                resource_id: Some(read.grant_id.to_string()),
                ..self
            },
            Record::SendIntent(intent) => Self {
                external_id: intent.subject.map(Into::into),
                tx_hash: Some(intent.hash.to_string()),
                ..self
            },
            Record::SendOutcome(outcome) => Self {
                tx_hash: Some(outcome.hash.to_string()),
                ..self
            },
        }
    }

    /// The external id of the column: a personal value stored next to the entry, and erased with its opening.
    pub(super) fn external_id(&self) -> Option<String> {
        self.external_id.clone()
    }

    /// Whether a stored row has these columns.
    pub(super) fn stand_in(&self, row: &entries::Model) -> bool {
        self.kind == row.kind
            && self.created_at == row.created_at
            && self.org_id == row.org_id
            && self.external_id == row.external_id
            && self.correlation_id == row.correlation_id
            && self.method == row.method
            && self.status_code == row.status_code
            && self.denial_reason == row.denial_reason.as_deref()
            && self.action == row.action.as_deref()
            && self.actor_id == row.actor_id
            && self.resource_type == row.resource_type.as_deref()
            && self.resource_id == row.resource_id
            && self.tx_hash == row.tx_hash
            && self.store_id == row.store_id
            && row.outbox_id.is_some() == self.has_outbox_id
            // Older entries do not contain the outbox id: only the column has it.
            && (self.outbox_id.is_none() || self.outbox_id == row.outbox_id)
    }

    pub(super) fn row(self, chain: i64, seq: i64, entry: &StoredEntry) -> entries::ActiveModel {
        entries::ActiveModel {
            id: NotSet,
            chain_id: Set(chain),
            seq: Set(seq),
            hash: Set(entry.hash.to_vec()),
            bytes: Set(entry.bytes.clone()),
            openings: Set(entry.openings.clone()),
            kind: Set(self.kind.to_owned()),
            created_at: Set(self.created_at),
            org_id: Set(self.org_id),
            external_id: Set(self.external_id),
            correlation_id: Set(self.correlation_id),
            method: Set(self.method),
            status_code: Set(self.status_code),
            denial_reason: Set(self.denial_reason.map(str::to_owned)),
            action: Set(self.action.map(str::to_owned)),
            actor_id: Set(self.actor_id),
            resource_type: Set(self.resource_type.map(str::to_owned)),
            resource_id: Set(self.resource_id),
            tx_hash: Set(self.tx_hash),
            outbox_id: Set(self.outbox_id),
            store_id: Set(self.store_id),
        }
    }
}
