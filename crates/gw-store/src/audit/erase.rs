//! Erases the personal data of one person from the audit log (spec/70 rule 5): the salts and values stored next to the
//! entries, and the columns derived from them. Bytes and hashes stay, so the chain and every proof remain valid.
//!
//! Invariant: the records of the erasure are written, and preferably sealed, before [`AuditStore::erase`] runs:
//! verification reports a missing opening that no record covers.

use super::{
    chain_rows::{chain_of, unsigned},
    columns::Columns,
    prune::places_hold,
    readable::{CHUNK_BYTES, count_within, readable_rows, row_sizes},
    store::AuditStore,
};
use crate::{
    StoreError, dialect,
    entity::{bounds, entries},
    record::Holds,
};
use gw_audit::{
    Action, AdminEntry, ChainId, Content, Entry, Kind, Record, ResourceType, StoredEntry, erased, erased_where, names,
};
use gw_types::ExternalId;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use std::collections::HashMap;

/// Rows read per query.
const PAGE: u64 = 500;

/// The entries that an erasure affects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasurePlan {
    /// The entries that lose values, as chain and sequence number.
    pub entries: Vec<(ChainId, u64)>,
    /// Number of entries that a legal hold keeps unchanged.
    pub held: u64,
    /// Number of entries that name the person and cannot be decoded; `audit verify` examines them.
    pub unreadable: u64,
    ids: Vec<i64>,
}

impl AuditStore {
    /// Finds the entries that an erasure would change, without changing them. Reads every entry that contains the
    /// external id.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn plan_erasure(&self, person: &ExternalId, holds: &Holds) -> Result<ErasurePlan, StoreError> {
        // No entry of ours belongs to a malformed row.
        let chains: HashMap<i64, ChainId> = self
            .chain_rows()
            .await?
            .iter()
            .filter_map(|row| Some((row.id, chain_of(row).ok()?)))
            .collect();
        let mut plan = ErasurePlan::default();
        let mut after = 0;
        loop {
            let rows = entries::Entity::find()
                .filter(entries::Column::Id.gt(after))
                .filter(
                    Condition::any()
                        .add(entries::Column::ExternalId.eq(person.as_str()))
                        .add(dialect::holds_bytes(
                            &self.pools.reader,
                            "openings",
                            person.as_str().as_bytes(),
                            bounds::ENTRY,
                        )),
                )
                .order_by_asc(entries::Column::Id);
            let mut sizes = row_sizes(&self.pools.reader, &rows, PAGE).await?;
            sizes.truncate(count_within::<entries::Entity>(&sizes, CHUNK_BYTES));
            let Some(last) = sizes.last() else { return Ok(plan) };
            after = last.id;
            let ids = rows.filter(entries::Column::Id.is_in(sizes.iter().map(|size| size.id)));
            let read = readable_rows(&self.pools.reader, ids, PAGE).await?;
            plan.unreadable += read.malformed.len() as u64;
            for row in &read.rows {
                let Some(chain) = chains.get(&row.chain_id) else {
                    continue;
                };
                match openings_without(row, person) {
                    None => plan.unreadable += 1,
                    Some(None) => {}
                    Some(Some(_))
                        if holds.keep(chain.stream, row.org_id.map(Into::into)) || places_hold(row, holds) =>
                    {
                        plan.held += 1;
                    }
                    Some(Some(_)) => {
                        plan.entries.push((*chain, unsigned(row.seq, "seq")?));
                        plan.ids.push(row.id);
                    }
                }
            }
        }
    }

    /// Erases the planned entries and returns how many of them changed. Running it again after a crash erases the rest.
    ///
    /// # Errors
    /// If the database fails; the batches committed before stay erased.
    pub async fn erase(&self, person: &ExternalId, plan: &ErasurePlan) -> Result<u64, StoreError> {
        let mut count = 0;
        for ids in plan.ids.chunks(usize::try_from(PAGE).unwrap_or(1)) {
            let tx = self.pools.begin_write().await?;
            let rows = entries::Entity::find()
                .filter(entries::Column::Id.is_in(ids.iter().copied()))
                .all(&tx)
                .await?;
            for row in rows {
                let Some(Some(openings)) = openings_without(&row, person) else {
                    continue;
                };
                let entry = StoredEntry::new(row.bytes.clone(), openings.clone()).map_err(|_| malformed(&row))?;
                let columns = Columns::from_entry(&entry).map_err(|_| malformed(&row))?;
                let written = entries::Entity::update_many()
                    .col_expr(entries::Column::Openings, Expr::value(openings))
                    .col_expr(entries::Column::ExternalId, Expr::value(columns.external_id()))
                    .filter(entries::Column::Id.eq(row.id))
                    .exec(&tx)
                    .await?;
                count += written.rows_affected;
            }
            tx.commit().await?;
        }
        Ok(count)
    }

    /// Returns the sealed records of erasures. Unreadable records are left out: verification reports them.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn erasure_records(&self) -> Result<Vec<AdminEntry>, StoreError> {
        let rows = entries::Entity::find()
            .filter(entries::Column::Kind.eq(Kind::Admin.as_str()))
            .filter(entries::Column::Action.eq(Action::Delete.as_str()))
            .filter(entries::Column::ResourceType.eq(ResourceType::Audit.as_str()));
        let rows = self.readable(rows).await?;
        let record = |row: entries::Model| match StoredEntry::new(row.bytes, row.openings).ok()?.content().ok()? {
            Content::Record(Record::Admin(entry)) => Some(entry),
            Content::Record(_) | Content::Genesis(_) => None,
        };
        Ok(rows.into_iter().filter_map(record).collect())
    }

    /// Returns whether a sealed erasure record with the resource id `chain_text` exists among the rows with ids above
    /// `after_id`.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn has_sealed_erasure(&self, chain_text: &str, after_id: i64) -> Result<bool, StoreError> {
        let row = entries::Entity::find()
            .filter(entries::Column::Id.gt(after_id))
            .filter(entries::Column::ResourceType.eq(ResourceType::Audit.as_str()))
            .filter(entries::Column::Action.eq(Action::Delete.as_str()))
            .filter(entries::Column::ResourceId.eq(chain_text))
            .one(&self.pools.reader)
            .await?;
        Ok(row.is_some())
    }

    /// Returns the highest row id; 0 if there are no rows.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn last_id(&self) -> Result<i64, StoreError> {
        let newest = entries::Entity::find()
            .select_only()
            .column_as(entries::Column::Id.max(), "newest");
        let newest: Option<Option<i64>> = newest.into_tuple().one(&self.pools.reader).await?;
        Ok(newest.flatten().unwrap_or(0))
    }
}

/// The openings of an entry without the values that concern a person. The inner `None` means that nothing concerns the
/// person; the outer `None`, that the entry cannot be decoded and is left unchanged as evidence.
#[expect(
    clippy::option_option,
    reason = "not to be read, nothing to erase, and what stays are three answers"
)]
fn openings_without(row: &entries::Model, person: &ExternalId) -> Option<Option<Vec<u8>>> {
    let entry = Entry::decode(&row.bytes, &row.openings).ok()?;
    let subject = match &entry.content {
        Content::Genesis(_) => return Some(None),
        Content::Record(record) => {
            // Erasure records are kept: they justify the erasures.
            if matches!(record, Record::Admin(entry)
                if entry.resource_type == ResourceType::Audit && entry.action == Action::Delete)
            {
                return Some(None);
            }
            subject(record)
        }
    };
    let is_subject = subject.is_some_and(|subject| subject == person.as_str());
    // Erases all values of the person's own calls; in other entries, only the values that name the person.
    if is_subject {
        return Some(Some(erased(&row.openings).ok()?).filter(|openings| *openings != row.openings));
    }
    let (openings, count) = erased_where(&row.openings, |value| names(value, person.as_str())).ok()?;
    Some((count > 0).then_some(openings))
}

fn subject(record: &Record) -> Option<&str> {
    match record {
        Record::Access(call) => call.external_id.as_ref().map(ExternalId::as_str),
        Record::Security(event) => event.external_id.as_ref().map(ExternalId::as_str),
        Record::Disclosure(read) => read.viewer_external_id.as_ref().map(ExternalId::as_str),
        Record::SendIntent(intent) => intent.subject.as_ref().map(ExternalId::as_str),
        Record::Admin(_) | Record::SendOutcome(_) => None,
    }
}

fn malformed(row: &entries::Model) -> StoreError {
    StoreError::Row {
        table: "entries",
        column: "bytes",
        id: row.id.to_string(),
    }
}
