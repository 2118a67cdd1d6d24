//! The access log and the audit log for administrators (spec/70 section 7), newest first.
//!
//! Invariant: the query includes the scope, so rows and total count the same set (rule 27); displayed values are read
//! from the hashed bytes, never from the columns that the query uses.

use super::{
    AuditStore, OutboxEntry,
    cursor::{AccessPosition, AuditPosition, LogPage, newest_position},
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
    ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, LikeExpr, SimpleExpr},
};
use std::collections::HashMap;

/// Filter for access records.
#[derive(Clone, Debug)]
pub struct AccessFilter {
    /// The visible organizations; a record without organization is visible to [`Scope::All`] only.
    pub scope: Scope,
    /// The caller.
    pub external_id: Option<String>,
    /// The RPC method.
    pub method: Option<String>,
    /// Only calls of JSON-RPC methods, which requests to other routes are not.
    pub calls: CallFilter,
    /// The correlation id of the request.
    pub correlation_id: Option<String>,
    /// The outcomes.
    pub status: StatusFilter,
    /// Any of these denial reasons.
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
            calls: CallFilter::Any,
            correlation_id: None,
            status: StatusFilter::Any,
            denial_reasons: None,
            from: None,
            to: None,
        }
    }
}

/// Filter for the methods of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFilter {
    /// Every record.
    Any,
    /// Calls of JSON-RPC methods.
    JsonRpc,
    /// Calls of these JSON-RPC methods.
    Methods(Vec<String>),
}

impl CallFilter {
    fn condition(&self) -> Option<SimpleExpr> {
        use entries::Column as C;
        // Here only: its methods have the names of those of numbers.
        use sea_orm::sea_query::ExprTrait as _;
        match self {
            Self::Any => None,
            // Records of other routes are named by HTTP method and path, with a blank between them.
            Self::JsonRpc => {
                let method = || Expr::col(C::Method.as_column_ref());
                let has_namespace = method().like(LikeExpr::new("%\\_%").escape('\\'));
                Some(has_namespace.and(method().not_like("% %")))
            }
            Self::Methods(names) => Some(C::Method.is_in(names)),
        }
    }
}

/// The number of calls of one method with one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// The method.
    pub method: String,
    /// The true outcome.
    pub status_code: u16,
    /// The number of calls.
    pub count: u64,
}

/// Filter for outcomes: one status or a class of statuses, never both (rule 26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// Every status.
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

/// An access record in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The row id.
    pub id: i64,
    /// Time of the call.
    pub created_at: Timestamp,
    /// The entry's hash.
    pub hash: Hash,
    /// The record.
    pub record: AccessRecord,
}

/// Filter for audit entries.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    /// The visible organizations; an entry without organization is visible to [`Scope::All`] only.
    pub scope: Scope,
    /// The type of the resource.
    pub resource_type: Option<ResourceType>,
    /// The id of the resource.
    pub resource_id: Option<String>,
    /// The user who acted.
    pub actor: Option<UserId>,
    /// The action.
    pub action: Option<Action>,
    /// The organization.
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

/// An audit entry in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLog {
    /// The outbox id, which sealing does not change.
    pub id: i64,
    /// The entry's number among the entries of its organization, from 0; sealing does not change it. `None` without
    /// organization.
    pub org_seq: Option<u64>,
    /// Time of the mutation.
    pub created_at: Timestamp,
    /// The entry's hash once sealed.
    pub hash: Option<Hash>,
    /// The entry.
    pub entry: AdminEntry,
}

impl AuditStore {
    /// Lists access records, newest first. Records that are still in a journal are not included.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_access_logs(
        &self,
        filter: &AccessFilter,
        paging: Paging,
    ) -> Result<Page<LogRow<AccessLog>>, StoreError> {
        Ok(self.continue_access_logs(filter, None, paging).await?.into())
    }

    /// Lists access records after a position, newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn continue_access_logs(
        &self,
        filter: &AccessFilter,
        after: Option<AccessPosition>,
        paging: Paging,
    ) -> Result<LogPage<AccessLog, AccessPosition>, StoreError> {
        use entries::Column as C;
        let condition = self.access_condition(filter).await?;
        let select = entries::Entity::find().filter(condition);
        let total = select.clone().count(&self.pools.reader).await?;
        let (select, remaining) = match after {
            None => (select, total),
            Some(position) => {
                let select = select.filter(position.rows_after());
                let remaining = select.clone().count(&self.pools.reader).await?;
                (select, remaining)
            }
        };
        let query = select.order_by_desc(C::CreatedAt).order_by_desc(C::Id);
        let checks = self.read_page(query, paging, PAGE_BYTES).await?;
        let positions = checks.iter().map(AccessPosition::from_check).collect();
        let rows = self.check_rows(checks).await?;
        Ok(LogPage {
            rows: rows.into_iter().map(|row| row.and_then(access_log)).collect(),
            positions,
            total,
            remaining: remaining.saturating_sub(paging.offset),
        })
    }

    /// Counts access records by method and true outcome. Records that are still in a journal are not included.
    ///
    /// # Errors
    /// Any database error.
    pub async fn count_access_logs(&self, filter: &AccessFilter) -> Result<Vec<CallCount>, StoreError> {
        use entries::Column as C;
        let counts: Vec<(Option<String>, Option<i32>, i64)> = entries::Entity::find()
            .select_only()
            .column(C::Method)
            .column(C::StatusCode)
            .column_as(C::Id.count(), "count")
            .filter(self.access_condition(filter).await?)
            .group_by(C::Method)
            .group_by(C::StatusCode)
            .order_by_asc(C::Method)
            .order_by_asc(C::StatusCode)
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        let counts = counts.into_iter().map(|(method, status, count)| CallCount {
            method: method.unwrap_or_default(),
            status_code: status.and_then(|status| u16::try_from(status).ok()).unwrap_or_default(),
            count: u64::try_from(count).unwrap_or_default(),
        });
        Ok(counts.collect())
    }

    async fn access_condition(&self, filter: &AccessFilter) -> Result<Condition, StoreError> {
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
        Ok(Condition::all()
            .add(self.shown_kind(Kind::Access, Stream::Access).await?)
            .add_option(filter.scope.holds(C::OrgId))
            .add_option(filter.external_id.as_ref().map(|id| C::ExternalId.eq(id)))
            .add_option(filter.method.as_ref().map(|method| C::Method.eq(method)))
            .add_option(filter.calls.condition())
            .add_option(filter.correlation_id.as_ref().map(|id| C::CorrelationId.eq(id)))
            .add_option(status)
            .add_option(reasons.map(|reasons| C::DenialReason.is_in(reasons)))
            .add_option(filter.from.map(|at| C::CreatedAt.gte(at.micros())))
            .add_option(filter.to.map(|at| C::CreatedAt.lte(at.micros()))))
    }

    /// Lists audit entries, newest first: those waiting in the policy store's outbox, then the sealed ones.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn list_audit_logs(
        &self,
        policy: &Store,
        filter: &AuditFilter,
        paging: Paging,
    ) -> Result<Page<LogRow<AuditLog>>, StoreError> {
        Ok(self.continue_audit_logs(policy, filter, None, paging).await?.into())
    }

    /// Lists audit entries after a position, newest first.
    ///
    /// # Errors
    /// If a database fails.
    pub async fn continue_audit_logs(
        &self,
        policy: &Store,
        filter: &AuditFilter,
        after: Option<AuditPosition>,
        paging: Paging,
    ) -> Result<LogPage<AuditLog, AuditPosition>, StoreError> {
        let mut position = match after {
            Some(position) => position,
            None => AuditPosition::start(newest_position(&self.pools.reader).await?),
        };
        let OutboxPage {
            entries,
            total,
            remaining: total_waiting,
            bytes,
            ids,
            places,
        } = waiting(policy, filter, position, paging).await?;
        let waiting = self.with_org_numbers(entries, &ids, &places).await?;
        let mut positions = Vec::with_capacity(waiting.len());
        for entry in &waiting {
            position = position.after_waiting(entry.id);
            positions.push(Some(position));
        }
        let mut rows: Vec<_> = waiting.into_iter().map(LogRow::Entry).collect();
        let kind = self.shown_kind(Kind::Admin, Stream::Admin).await?;
        let sealed = entries::Entity::find().filter(sealed_condition(filter, kind, &ids));
        let total_sealed = sealed.clone().count(&self.pools.reader).await?;
        let (sealed, remaining_sealed) = match after.and_then(AuditPosition::sealed_after) {
            None => (sealed, total_sealed),
            Some(condition) => {
                let sealed = sealed.filter(condition);
                let remaining = sealed.clone().count(&self.pools.reader).await?;
                (sealed, remaining)
            }
        };
        let row_count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        // Waiting entries that did not fit into this page precede the sealed ones.
        let is_cut = row_count < paging.limit && paging.offset.saturating_add(row_count) < total_waiting;
        let sealed_paging = Paging {
            limit: if is_cut {
                0
            } else {
                paging.limit.saturating_sub(row_count)
            },
            offset: paging.offset.saturating_sub(total_waiting),
        };
        let sealed = sealed
            .order_by_desc(entries::Column::ChainId)
            .order_by_desc(entries::Column::Seq);
        let checks = self
            .read_page(sealed, sealed_paging, PAGE_BYTES.saturating_sub(bytes))
            .await?;
        positions.extend(checks.iter().map(|check| position.after_sealed(check)));
        rows.extend(
            self.check_rows(checks)
                .await?
                .into_iter()
                .map(|row| row.and_then(audit_log)),
        );
        Ok(LogPage {
            rows,
            positions,
            total: total_sealed.saturating_add(total),
            remaining: remaining_sealed
                .saturating_add(total_waiting)
                .saturating_sub(paging.offset),
        })
    }

    /// Adds to waiting entries the per-organization numbers with which they will be sealed.
    async fn with_org_numbers(
        &self,
        entries: Vec<OutboxEntry>,
        waiting: &[i64],
        places: &HashMap<i64, u64>,
    ) -> Result<Vec<AuditLog>, StoreError> {
        let mut sealed: HashMap<OrgId, u64> = HashMap::new();
        let mut rows = Vec::with_capacity(entries.len());
        for OutboxEntry {
            id, created_at, entry, ..
        } in entries
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

    /// Counts the sealed entries of an organization, without those that are still in the outbox.
    async fn sealed_of(&self, org: OrgId, waiting: &[i64]) -> Result<u64, StoreError> {
        use entries::Column as C;
        let newest = entries::Entity::find()
            .filter(C::Kind.eq(Kind::Admin.as_str()))
            .filter(C::OrgId.eq(org.0))
            .filter(Condition::all().add_option(not_waiting(waiting)))
            .order_by_desc(C::ChainId)
            .order_by_desc(C::Seq)
            .one(&self.pools.reader)
            .await
            .map_err(StoreError::from);
        // The page is shown anyway, with this row marked as tampered.
        let newest = match newest {
            Err(error) if error.is_malformed() => return Ok(0),
            read => read?,
        };
        let Some(row) = newest else {
            return self.pruned_of(org).await;
        };
        let Ok(entry) = StoredEntry::new(row.bytes, row.openings) else {
            return Ok(0);
        };
        Ok(entry.header.org.map_or(0, |link| link.seq.saturating_add(1)))
    }
}

impl AuditStore {
    /// Condition for rows of one kind, and for rows of the stream's chains with an unknown kind: these are shown as
    /// tampered, not left out. If there is no unknown kind, the condition names the known kind alone, so that an index
    /// serves the query.
    async fn shown_kind(&self, kind: Kind, stream: Stream) -> Result<Condition, StoreError> {
        use entries::Column as C;
        let own = Condition::any().add(C::Kind.eq(kind.as_str()));
        let foreign = entries::Entity::find()
            .select_only()
            .column(C::Id)
            .filter(foreign_kind());
        let foreign_id: Option<i64> = foreign.into_tuple().one(&self.pools.reader).await?;
        if foreign_id.is_none() {
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

    /// Counts the pruned entries of an organization that has no sealed entry left.
    async fn pruned_of(&self, org: OrgId) -> Result<u64, StoreError> {
        let chains = self.chain_rows().await?;
        for chain in chains.iter().filter(|row| row.stream == Stream::Admin.as_str()) {
            let orgs = self.pruned_orgs(chain.id).await?;
            if let Some((_, head)) = orgs.into_iter().find(|(id, _)| *id == org) {
                return Ok(head.size);
            }
        }
        Ok(0)
    }
}

/// The part of a page that waits in the outbox.
struct OutboxPage {
    entries: Vec<OutboxEntry>,
    /// Number of waiting entries that match the filter.
    total: u64,
    /// Number of those that follow the position.
    remaining: u64,
    /// Approximate size of the entries.
    bytes: usize,
    /// All waiting ids: an entry that is sealed meanwhile is listed as waiting, not twice.
    ids: Vec<i64>,
    /// The index of each waiting entry among the waiting entries of its organization, from 0.
    places: HashMap<i64, u64>,
}

/// Maximum rows of a page that has a malformed row: row sizes are unknown before the rows are read.
const FEW: u64 = 100;

/// Reads the part of a page that still waits in the outbox.
async fn waiting(
    policy: &Store,
    filter: &AuditFilter,
    position: AuditPosition,
    paging: Paging,
) -> Result<OutboxPage, StoreError> {
    use audit_outbox::Column as C;
    let tx = policy.inner.pools.begin_read().await?;
    let select_waiting = || audit_outbox::Entity::find().filter(C::SealedAt.is_null());
    let ids: Vec<i64> = select_waiting()
        .select_only()
        .column(C::Id)
        .order_by_asc(C::Id)
        .into_tuple()
        .all(&tx)
        .await?;
    let condition = Condition::all()
        .add_option(filter.scope.holds(C::OrgId))
        .add_option(filter.resource_type.map(|kind| C::ResourceType.eq(kind.as_str())))
        .add_option(filter.resource_id.as_ref().map(|id| C::ResourceId.eq(id)))
        .add_option(filter.actor.map(|actor| C::ActorId.eq(actor.0)))
        .add_option(filter.action.map(|action| C::Action.eq(action.as_str())))
        .add_option(filter.org.map(|org| C::OrgId.eq(org.0)))
        .add_option(filter.from.map(|at| C::CreatedAt.gte(at.micros())))
        .add_option(filter.to.map(|at| C::CreatedAt.lte(at.micros())));
    let select = select_waiting().filter(condition);
    let total = select.clone().count(&tx).await?;
    let (select, remaining) = match position.waiting_after() {
        None => (select, total),
        Some(condition) => {
            let select = select.filter(condition);
            let remaining = select.clone().count(&tx).await?;
            (select, remaining)
        }
    };
    let query = select.order_by_desc(C::Id);
    let rows: Vec<_> = match portion(&tx, query.clone(), paging, PAGE_BYTES).await {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        // A value of a wrong type costs its own row, not the page.
        Err(error) if error.is_malformed() => readable(&tx, query.offset(paging.offset), paging.limit.min(FEW)).await?,
        Err(error) => return Err(error),
    };
    let mut orgs: Vec<_> = rows.iter().flatten().filter_map(|row| row.org_id).collect();
    orgs.sort_unstable();
    orgs.dedup();
    let mut waiting_orgs: Vec<(i64, uuid::Uuid)> = Vec::new();
    if !orgs.is_empty() {
        let waiting = select_waiting().select_only().column(C::Id).column(C::OrgId);
        waiting_orgs = waiting
            .filter(C::OrgId.is_in(orgs))
            .order_by_asc(C::Id)
            .into_tuple()
            .all(&tx)
            .await?;
    }
    tx.rollback().await?;
    let mut counts: HashMap<uuid::Uuid, u64> = HashMap::new();
    let mut places = HashMap::with_capacity(waiting_orgs.len());
    for (id, org) in waiting_orgs {
        let count = counts.entry(org).or_default();
        places.insert(id, *count);
        *count += 1;
    }
    let bytes = rows.iter().flatten().map(Weigh::weight).sum();
    let store = policy.outbox_mark().await?.store;
    let entries = rows.into_iter().map(|row| policy.entry_from_row(store, row)).collect();
    Ok(OutboxPage {
        entries,
        total,
        remaining,
        bytes,
        ids,
        places,
    })
}

/// Condition that excludes sealed rows that still waited when the outbox was read. `None` if nothing waited.
fn not_waiting(ids: &[i64]) -> Option<SimpleExpr> {
    // The ids are written into the SQL: they may exceed the limit of bound parameters. They are integers from the
    // database.
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

/// Condition for an unknown kind or a misplaced genesis, as index ranges between the known kinds.
fn foreign_kind() -> Condition {
    use entries::Column as C;
    let mut kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    kinds.sort_unstable();
    let between = kinds.iter().zip(kinds.iter().skip(1));
    let between = between.map(|(kind, next)| Condition::all().add(C::Kind.gt(*kind)).add(C::Kind.lt(*next)));
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

/// Converts a sealed entry for a listing.
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
