//! The events of a grant of disclosure (spec/50 rule 39): its reads, which the sealer moves here from the journals, and
//! the transitions of its request and of itself, which are audit entries.

use super::{
    AuditFilter, AuditLog, AuditStore,
    integrity::{LogRow, SoundRow, TamperedRow},
};
use crate::{
    Store, StoreError,
    entity::entries,
    read::{PAGE_BYTES, Page, Paging, Scope},
};
use gw_audit::{Action, AdminEntry, DisclosureAction, DisclosureRead, Hash, Kind, Record, ResourceType};
use gw_policy::disclosure::{GrantStatus, RequestStatus};
use gw_types::{DisclosureGrantId, DisclosureRequestId, Timestamp, UserId};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, Select};
use serde_json::Value;
use std::net::IpAddr;

/// Maximum audit entries of one request and its grant. Their state machines make at most seven, and each rotation of
/// the encryption key one more.
const MAX_TRANSITIONS: u64 = 200;

/// An event of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureEvent {
    /// The row id of a read, or the outbox id of a transition: unique among reads and among transitions.
    pub id: i64,
    /// When it happened.
    pub created_at: Timestamp,
    /// The entry's hash once sealed.
    pub hash: Option<Hash>,
    /// The kind of event.
    pub action: DisclosureAction,
    /// The user who read or decided.
    pub actor: Option<UserId>,
    /// The IP address of the request.
    pub ip_address: Option<IpAddr>,
    /// What was read; `None` for a transition.
    pub read: Option<DisclosureRead>,
}

impl AuditStore {
    /// Lists the events of a grant and of its request, newest first. Reads that are still in a journal are not
    /// included.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn list_disclosure_events(
        &self,
        policy: &Store,
        request: DisclosureRequestId,
        grant: DisclosureGrantId,
        paging: Paging,
    ) -> Result<Page<LogRow<DisclosureEvent>>, StoreError> {
        use entries::Column as C;
        let transitions = self.transitions(policy, request, grant).await?;
        let select = entries::Entity::find()
            .filter(C::ResourceId.eq(grant.to_string()))
            .filter(C::Kind.eq(Kind::Disclosure.as_str()));
        let reads = select.clone().count(&self.pools.reader).await?;
        // The position of each transition in the whole list: it follows the reads after it and the newer transitions.
        let mut positions = Vec::with_capacity(transitions.len());
        for (newer, transition) in transitions.iter().enumerate() {
            let after = match reads {
                0 => 0,
                1.. => {
                    let after = select.clone().filter(C::CreatedAt.gt(transition.created_at.micros()));
                    after.count(&self.pools.reader).await?
                }
            };
            positions.push(after.saturating_add(to_u64(newer)));
        }
        let total = reads.saturating_add(to_u64(transitions.len()));
        let end = paging.offset.saturating_add(paging.limit);
        let before = positions.iter().filter(|position| **position < paging.offset).count();
        let mut shown = transitions.into_iter().zip(positions).collect::<Vec<_>>();
        shown.retain(|(_, position)| (paging.offset..end).contains(position));
        let read_paging = Paging {
            limit: paging.limit.saturating_sub(to_u64(shown.len())),
            offset: paging.offset.saturating_sub(to_u64(before)),
        };
        let mut rows = self.read_events(select, read_paging).await?;
        for (transition, position) in shown {
            let index = usize::try_from(position.saturating_sub(paging.offset)).unwrap_or(usize::MAX);
            rows.insert(index.min(rows.len()), LogRow::Entry(transition));
        }
        Ok(Page { rows, total })
    }

    async fn read_events(
        &self,
        select: Select<entries::Entity>,
        paging: Paging,
    ) -> Result<Vec<LogRow<DisclosureEvent>>, StoreError> {
        let query = select
            .order_by_desc(entries::Column::CreatedAt)
            .order_by_desc(entries::Column::Id);
        let checks = self.read_page(query, paging, PAGE_BYTES).await?;
        let rows = self.check_rows(checks).await?;
        Ok(rows.into_iter().map(|row| row.and_then(read_event)).collect())
    }

    /// Returns the transitions of a request and its grant, newest first.
    async fn transitions(
        &self,
        policy: &Store,
        request: DisclosureRequestId,
        grant: DisclosureGrantId,
    ) -> Result<Vec<DisclosureEvent>, StoreError> {
        let resources = [
            (ResourceType::DisclosureRequest, request.to_string()),
            (ResourceType::DisclosureGrant, grant.to_string()),
        ];
        let mut events = Vec::new();
        for (resource_type, id) in resources {
            let filter = AuditFilter {
                resource_type: Some(resource_type),
                resource_id: Some(id),
                ..AuditFilter::all(Scope::All)
            };
            let paging = Paging {
                limit: MAX_TRANSITIONS,
                offset: 0,
            };
            let page = self.list_audit_logs(policy, &filter, paging).await?;
            events.extend(page.rows.into_iter().filter_map(LogRow::entry).filter_map(transition));
        }
        events.sort_by_key(|event| core::cmp::Reverse((event.created_at, event.id)));
        // The entries of a request and of its grant about one revocation have the time of their mutation.
        events.dedup_by_key(|event| (event.created_at, event.action));
        Ok(events)
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn read_event(row: SoundRow) -> LogRow<DisclosureEvent> {
    match row.record {
        Record::Disclosure(read) => LogRow::Entry(DisclosureEvent {
            id: row.id,
            created_at: row.header.time,
            hash: Some(row.hash),
            action: read.action,
            actor: read.viewer_id,
            ip_address: read.ip_address,
            read: Some(read),
        }),
        Record::Access(_) | Record::Admin(_) | Record::Security(_) | Record::SendIntent(_) | Record::SendOutcome(_) => {
            LogRow::Tampered(TamperedRow {
                id: row.id,
                hash: Some(row.hash),
                created_at: Some(row.header.time),
            })
        }
    }
}

/// Converts an audit entry; `None` for the creation of a grant, which the approval stands for, and for changes of its
/// secret.
fn transition(log: AuditLog) -> Option<DisclosureEvent> {
    Some(DisclosureEvent {
        id: log.id,
        created_at: log.created_at,
        hash: log.hash,
        action: transition_kind(&log.entry)?,
        actor: log.entry.actor_id,
        ip_address: log.entry.ip_address,
        read: None,
    })
}

fn transition_kind(entry: &AdminEntry) -> Option<DisclosureAction> {
    let image = |text: &Option<String>| {
        text.as_deref()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let new = image(&entry.new_value);
    let status = new.as_ref().and_then(|new| new.get("status")).and_then(Value::as_str);
    match (entry.resource_type, entry.action) {
        (ResourceType::DisclosureRequest, Action::Create) => Some(DisclosureAction::Requested),
        (ResourceType::DisclosureRequest, Action::Delete) => Some(DisclosureAction::Deleted),
        (ResourceType::DisclosureRequest, Action::Update) => match RequestStatus::parse(status?)? {
            RequestStatus::Approved => Some(DisclosureAction::Approved),
            RequestStatus::Rejected => Some(DisclosureAction::Rejected),
            RequestStatus::Expired => Some(DisclosureAction::Expired),
            RequestStatus::Pending | RequestStatus::Revoked => None,
        },
        (ResourceType::DisclosureRequest | ResourceType::DisclosureGrant, Action::Revoke) => {
            Some(DisclosureAction::Revoked)
        }
        // Only the end of a grant has no old value and leaves its secret as it is.
        (ResourceType::DisclosureGrant, Action::Update) => {
            let is_end = entry.old_value.is_none() && new.as_ref()?.pointer("/secret/changed").is_none();
            let is_expired = status.and_then(GrantStatus::parse) == Some(GrantStatus::Expired);
            (is_end && is_expired).then_some(DisclosureAction::Expired)
        }
        _ => None,
    }
}
