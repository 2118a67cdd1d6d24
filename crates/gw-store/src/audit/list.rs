//! The access log and the audit log as administrators read them (spec/70 section 7), newest first.
//!
//! Invariant: scope is a part of the query, so rows and total are of the same set (rule 27); what is shown is read
//! from the hashed bytes, never from the columns it was found by.

use super::{
    AuditStore, OutboxEntry,
    integrity::{LogRow, SoundRow, TamperedRow},
    outbox::readable,
};
use crate::{
    Store, StoreError,
    entity::{audit_outbox, chains, entries},
    read::{PAGE_BYTES, Page, Paging, Scope, Weigh, portion},
};
use gw_audit::{AccessRecord, Action, AdminEntry, Hash, Kind, Record, ResourceType, StoredEntry, Stream};
use gw_types::{DenyReason, OrgId, Timestamp, UserId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, SimpleExpr},
};
use std::collections::HashMap;

/// Which access records.
#[derive(Clone, Debug)]
pub struct AccessFilter {
    /// Whose rows; a record without organization is for [`Scope::All`] only.
    pub scope: Scope,
    /// One caller's.
    pub external_id: Option<String>,
    /// Of one method.
    pub method: Option<String>,
    /// Of one request.
    pub correlation_id: Option<String>,
    /// With these outcomes.
    pub status: StatusFilter,
    /// Denied for one of these reasons.
    pub denial_reasons: Option<Vec<DenyReason>>,
    /// At or after this moment.
    pub from: Option<Timestamp>,
    /// At or before this moment.
    pub to: Option<Timestamp>,
}

impl AccessFilter {
    /// Everything in scope.
    pub const fn all(scope: Scope) -> Self {
        Self {
            scope,
            external_id: None,
            method: None,
            correlation_id: None,
            status: StatusFilter::Any,
            denial_reasons: None,
            from: None,
            to: None,
        }
    }
}

/// Which outcomes: a status or a family of them, never both (rule 26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// All of them.
    Any,
    /// Exactly this status.
    Code(u16),
    /// 2xx.
    Success,
    /// 4xx.
    Denied,
    /// 5xx.
    Error,
}

/// An access record as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Its id.
    pub id: i64,
    /// When the call took place.
    pub created_at: Timestamp,
    /// The entry's hash.
    pub hash: Hash,
    /// The record.
    pub record: AccessRecord,
}

/// Which audit entries.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    /// Whose rows; an entry without organization is for [`Scope::All`] only.
    pub scope: Scope,
    /// Of this kind of resource.
    pub resource_type: Option<ResourceType>,
    /// Of this resource.
    pub resource_id: Option<String>,
    /// By this user.
    pub actor: Option<UserId>,
    /// This was done.
    pub action: Option<Action>,
    /// In this organization.
    pub org: Option<OrgId>,
    /// At or after this moment.
    pub from: Option<Timestamp>,
    /// At or before this moment.
    pub to: Option<Timestamp>,
}

impl AuditFilter {
    /// Everything in scope.
    pub const fn all(scope: Scope) -> Self {
        Self {
            scope,
            resource_type: None,
            resource_id: None,
            actor: None,
            action: None,
            org: None,
            from: None,
            to: None,
        }
    }
}

/// An audit entry as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLog {
    /// Its id, the same before and after it is sealed.
    pub id: i64,
    /// Its number among the entries of its organization, from 0; the same before and after it is sealed. `None` without
    /// organization.
    pub org_seq: Option<u64>,
    /// When the mutation took place.
    pub created_at: Timestamp,
    /// The entry's hash, once it is sealed.
    pub hash: Option<Hash>,
    /// The entry.
    pub entry: AdminEntry,
}

impl AuditStore {
    /// Access records, newest first. What waits in a journal is not among them yet.
    pub async fn list_access_logs(
        &self,
        filter: &AccessFilter,
        paging: Paging,
    ) -> Result<Page<LogRow<AccessLog>>, StoreError> {
        use entries::Column as C;
        let status = match filter.status {
            StatusFilter::Any => None,
            StatusFilter::Code(code) => Some(C::StatusCode.eq(i32::from(code))),
            StatusFilter::Success => Some(C::StatusCode.between(200, 299)),
            StatusFilter::Denied => Some(C::StatusCode.between(400, 499)),
            StatusFilter::Error => Some(C::StatusCode.between(500, 599)),
        };
        let reasons = filter
            .denial_reasons
            .as_ref()
            .map(|reasons| reasons.iter().map(|reason| reason.as_str()));
        let which = Condition::all()
            .add(self.shown_kind(Kind::Access, Stream::Access).await?)
            .add_option(filter.scope.holds(C::OrgId))
            .add_option(filter.external_id.as_ref().map(|id| C::ExternalId.eq(id)))
            .add_option(filter.method.as_ref().map(|method| C::Method.eq(method)))
            .add_option(filter.correlation_id.as_ref().map(|id| C::CorrelationId.eq(id)))
            .add_option(status)
            .add_option(reasons.map(|reasons| C::DenialReason.is_in(reasons)))
            .add_option(filter.from.map(|at| C::CreatedAt.gte(at.micros())))
            .add_option(filter.to.map(|at| C::CreatedAt.lte(at.micros())));
        let found = entries::Entity::find().filter(which);
        let total = found.clone().count(&self.pools.reader).await?;
        let found = found.order_by_desc(C::CreatedAt).order_by_desc(C::Id);
        let rows = self.judged(self.found(found, paging, PAGE_BYTES).await?).await?;
        Ok(Page {
            rows: rows.into_iter().map(|row| row.and_then(access_log)).collect(),
            total,
        })
    }

    /// Audit entries, newest first: those that wait in the policy store's outbox, then the sealed ones.
    pub async fn list_audit_logs(
        &self,
        policy: &Store,
        filter: &AuditFilter,
        paging: Paging,
    ) -> Result<Page<LogRow<AuditLog>>, StoreError> {
        let Waiting {
            found,
            total,
            bytes,
            ids,
            places,
        } = waiting(policy, filter, paging).await?;
        let waiting = self.numbered(found, &ids, &places).await?;
        let mut rows: Vec<_> = waiting.into_iter().map(LogRow::Entry).collect();
        let kind = self.shown_kind(Kind::Admin, Stream::Admin).await?;
        let sealed = entries::Entity::find().filter(sealed_condition(filter, kind, &ids));
        let all = sealed.clone().count(&self.pools.reader).await?.saturating_add(total);
        let read = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        // What waits and did not fit comes before what is sealed.
        let cut = read < paging.limit && paging.offset.saturating_add(read) < total;
        let left = Paging {
            limit: if cut { 0 } else { paging.limit.saturating_sub(read) },
            offset: paging.offset.saturating_sub(total),
        };
        let sealed = sealed
            .order_by_desc(entries::Column::ChainId)
            .order_by_desc(entries::Column::Seq);
        let found = self.found(sealed, left, PAGE_BYTES.saturating_sub(bytes)).await?;
        rows.extend(self.judged(found).await?.into_iter().map(|row| row.and_then(audit_log)));
        Ok(Page { rows, total: all })
    }

    /// Waiting entries with the numbers among their organization's that they will be sealed with.
    async fn numbered(
        &self,
        found: Vec<OutboxEntry>,
        waiting: &[i64],
        places: &HashMap<i64, u64>,
    ) -> Result<Vec<AuditLog>, StoreError> {
        let mut sealed: HashMap<OrgId, u64> = HashMap::new();
        let mut rows = Vec::with_capacity(found.len());
        for OutboxEntry {
            id, created_at, entry, ..
        } in found
        {
            let org_seq = match (entry.org_id, places.get(&id)) {
                (Some(org), Some(place)) => {
                    let before = match sealed.get(&org) {
                        Some(before) => *before,
                        None => {
                            let before = self.sealed_of(org, waiting).await?;
                            sealed.insert(org, before);
                            before
                        }
                    };
                    Some(before.saturating_add(*place))
                }
                (Some(_), None) | (None, _) => None,
            };
            rows.push(AuditLog {
                id,
                org_seq,
                created_at,
                hash: None,
                entry,
            });
        }
        Ok(rows)
    }

    /// How many entries of an organization are sealed, without those that are still in the outbox.
    async fn sealed_of(&self, org: OrgId, waiting: &[i64]) -> Result<u64, StoreError> {
        use entries::Column as C;
        let newest = entries::Entity::find()
            .filter(C::Kind.eq(Kind::Admin.as_str()))
            .filter(C::OrgId.eq(org.0))
            .filter(Condition::all().add_option(not_waiting(waiting)))
            .order_by_desc(C::ChainId)
            .order_by_desc(C::Seq)
            .one(&self.pools.reader)
            .await?;
        let Some(row) = newest else {
            return self.pruned_of(org).await;
        };
        // A page is shown all the same; the row is shown as tampered.
        let Ok(entry) = StoredEntry::new(row.bytes, row.openings) else {
            return Ok(0);
        };
        Ok(entry.header.org.map_or(0, |link| link.seq.saturating_add(1)))
    }
}

impl AuditStore {
    /// Rows of one kind, and whatever of the stream's chains has a kind that no entry has: it is shown as tampered, not
    /// left out. Known kinds are asked for alone while there is nothing else, which an index answers.
    async fn shown_kind(&self, kind: Kind, stream: Stream) -> Result<Condition, StoreError> {
        use entries::Column as C;
        let own = Condition::any().add(C::Kind.eq(kind.as_str()));
        let foreign = entries::Entity::find()
            .select_only()
            .column(C::Id)
            .filter(foreign_kind());
        let found: Option<i64> = foreign.into_tuple().one(&self.pools.reader).await?;
        if found.is_none() {
            return Ok(own);
        }
        let chains = chains::Entity::find().filter(chains::Column::Stream.eq(stream.as_str()));
        let chains: Vec<i64> = chains
            .select_only()
            .column(chains::Column::Id)
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        Ok(own.add(foreign_kind().add(C::ChainId.is_in(chains))))
    }

    /// How many entries of an organization's mutations were pruned, where none is left.
    async fn pruned_of(&self, org: OrgId) -> Result<u64, StoreError> {
        let admin = chains::Entity::find().filter(chains::Column::Stream.eq(Stream::Admin.as_str()));
        for chain in admin.all(&self.pools.reader).await? {
            let orgs = self.pruned_orgs(chain.id).await?;
            if let Some((_, head)) = orgs.into_iter().find(|(of, _)| *of == org) {
                return Ok(head.size);
            }
        }
        Ok(0)
    }
}

/// What of a page waits in the outbox.
struct Waiting {
    found: Vec<OutboxEntry>,
    /// How many wait that the filter wants.
    total: u64,
    /// About how long the found ones are.
    bytes: usize,
    /// All waiting ids: one that is sealed meanwhile is listed here, not twice.
    ids: Vec<i64>,
    /// The place of each waiting entry among those of its organization, from 0.
    places: HashMap<i64, u64>,
}

/// Rows of a page at most where one of them is malformed: their lengths are not known before they are read.
const FEW: u64 = 100;

/// What of a page still waits in the outbox; a row that is sealed between the two queries is taken from there.
async fn waiting(policy: &Store, filter: &AuditFilter, paging: Paging) -> Result<Waiting, StoreError> {
    use audit_outbox::Column as C;
    let tx = policy.inner.pools.begin_read().await?;
    let waits = || audit_outbox::Entity::find().filter(C::SealedAt.is_null());
    let ids: Vec<i64> = waits()
        .select_only()
        .column(C::Id)
        .order_by_asc(C::Id)
        .into_tuple()
        .all(&tx)
        .await?;
    let which = Condition::all()
        .add_option(filter.scope.holds(C::OrgId))
        .add_option(filter.resource_type.map(|kind| C::ResourceType.eq(kind.as_str())))
        .add_option(filter.resource_id.as_ref().map(|id| C::ResourceId.eq(id)))
        .add_option(filter.actor.map(|actor| C::ActorId.eq(actor.0)))
        .add_option(filter.action.map(|action| C::Action.eq(action.as_str())))
        .add_option(filter.org.map(|org| C::OrgId.eq(org.0)))
        .add_option(filter.from.map(|at| C::CreatedAt.gte(at.micros())))
        .add_option(filter.to.map(|at| C::CreatedAt.lte(at.micros())));
    let found = waits().filter(which);
    let total = found.clone().count(&tx).await?;
    let found = found.order_by_desc(C::Id);
    let rows: Vec<_> = match portion(&tx, found.clone(), paging, PAGE_BYTES).await {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        // Somebody put there what no column holds: it costs its row, not the page.
        Err(error) if error.is_malformed() => {
            readable(&tx, found.limit(paging.limit.min(FEW)).offset(paging.offset)).await?
        }
        Err(error) => return Err(error),
    };
    let mut orgs: Vec<_> = rows.iter().flatten().filter_map(|row| row.org_id).collect();
    orgs.sort_unstable();
    orgs.dedup();
    let mut all: Vec<(i64, uuid::Uuid)> = Vec::new();
    if !orgs.is_empty() {
        let waiting = waits().select_only().column(C::Id).column(C::OrgId);
        all = waiting
            .filter(C::OrgId.is_in(orgs))
            .order_by_asc(C::Id)
            .into_tuple()
            .all(&tx)
            .await?;
    }
    tx.rollback().await?;
    let mut counts: HashMap<uuid::Uuid, u64> = HashMap::new();
    let mut places = HashMap::with_capacity(all.len());
    for (id, org) in all {
        let count = counts.entry(org).or_default();
        places.insert(id, *count);
        *count += 1;
    }
    let bytes = rows.iter().flatten().map(Weigh::weight).sum();
    let store = policy.outbox_mark().await?.store;
    let found = rows.into_iter().map(|row| policy.found_entry(store, row)).collect();
    Ok(Waiting {
        found,
        total,
        bytes,
        ids,
        places,
    })
}

/// Leaves out sealed rows that still waited when the outbox was read. `None` where nothing waited.
fn not_waiting(ids: &[i64]) -> Option<SimpleExpr> {
    // Numbers of our own, written out: there may be more than a statement takes as parameters.
    let list = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    (!ids.is_empty()).then(|| Expr::cust(format!("(outbox_id IS NULL OR outbox_id NOT IN ({list}))")))
}

fn sealed_condition(filter: &AuditFilter, kind: Condition, waiting: &[i64]) -> Condition {
    use entries::Column as C;
    Condition::all()
        .add(kind)
        .add_option(not_waiting(waiting))
        .add_option(filter.scope.holds(C::OrgId))
        .add_option(filter.resource_type.map(|kind| C::ResourceType.eq(kind.as_str())))
        .add_option(filter.resource_id.as_ref().map(|id| C::ResourceId.eq(id)))
        .add_option(filter.actor.map(|actor| C::ActorId.eq(actor.0)))
        .add_option(filter.action.map(|action| C::Action.eq(action.as_str())))
        .add_option(filter.org.map(|org| C::OrgId.eq(org.0)))
        .add_option(filter.from.map(|at| C::CreatedAt.gte(at.micros())))
        .add_option(filter.to.map(|at| C::CreatedAt.lte(at.micros())))
}

/// A kind that no entry has at this place, as ranges of the index between the kinds there are.
fn foreign_kind() -> Condition {
    use entries::Column as C;
    let mut kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    kinds.sort_unstable();
    let between = kinds.iter().zip(kinds.iter().skip(1));
    let between = between.map(|(one, next)| Condition::all().add(C::Kind.gt(*one)).add(C::Kind.lt(*next)));
    // Only the first entry of a chain is a genesis.
    let genesis = Condition::all()
        .add(C::Kind.eq(Kind::Genesis.as_str()))
        .add(C::Seq.gt(0));
    let outside = Condition::any().add_option(kinds.first().map(|first| C::Kind.lt(*first)));
    let outside = outside.add_option(kinds.last().map(|last| C::Kind.gt(*last)));
    Condition::all().add(between.fold(outside.add(genesis), Condition::add))
}

fn access_log(row: SoundRow) -> LogRow<AccessLog> {
    match row.record {
        Record::Access(record) => LogRow::Entry(AccessLog {
            id: row.id,
            created_at: row.header.time,
            hash: row.hash,
            record,
        }),
        _ => LogRow::Tampered(TamperedRow {
            id: row.id,
            hash: Some(row.hash),
            created_at: Some(row.header.time),
        }),
    }
}

/// A sealed entry as it is listed.
pub(super) fn audit_log(row: SoundRow) -> LogRow<AuditLog> {
    match (row.record, row.outbox_id) {
        (Record::Admin(entry), Some(id)) => LogRow::Entry(AuditLog {
            id,
            org_seq: row.header.org.map(|link| link.seq),
            // The sealer chains an entry with the time of its mutation.
            created_at: row.header.time,
            hash: Some(row.hash),
            entry,
        }),
        (_, id) => LogRow::Tampered(TamperedRow {
            id: id.unwrap_or(row.id),
            hash: Some(row.hash),
            created_at: Some(row.header.time),
        }),
    }
}
