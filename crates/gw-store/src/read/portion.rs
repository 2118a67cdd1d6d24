//! Limits pages by bytes as well as by rows: rows filled with text must not make a listing costly.

use super::Paging;
use crate::{
    StoreError,
    entity::{audit_outbox, contracts, entries, groups, organizations, users},
};
use sea_orm::{ConnectionTrait, EntityTrait, QuerySelect, Select};
use serde_json::Value;

/// Maximum total bytes of the long columns of one page; the first row is always included.
pub(crate) const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Number of rows read before their sizes are known.
const FIRST: u64 = 32;

/// A row that may be long.
pub(crate) trait Weigh {
    /// Returns the approximate number of bytes in its long columns.
    fn weight(&self) -> usize;
}

/// Returns the rows of a page: the first one, and further ones while their total size is within `budget`.
pub(crate) async fn portion<E>(
    conn: &impl ConnectionTrait,
    select: Select<E>,
    paging: Paging,
    budget: usize,
) -> Result<Vec<E::Model>, StoreError>
where
    E: EntityTrait<Model: Weigh + Send + Sync>,
{
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    let mut next = FIRST;
    loop {
        let row_count = count(&rows);
        let limit = next.min(paging.limit.saturating_sub(row_count));
        if limit == 0 {
            return Ok(rows);
        }
        let offset = paging.offset.saturating_add(row_count);
        let chunk = select.clone().limit(limit).offset(offset).all(conn).await?;
        let ends = count(&chunk) < limit;
        for row in chunk {
            bytes = bytes.saturating_add(row.weight());
            if bytes > budget && !rows.is_empty() {
                return Ok(rows);
            }
            rows.push(row);
        }
        if ends || bytes > budget {
            return Ok(rows);
        }
        // As many as fit, if they are as long as the rows so far.
        let fits = u64::try_from((budget - bytes) / (bytes / rows.len().max(1)).max(1)).unwrap_or(u64::MAX);
        next = fits.min(count(&rows).saturating_mul(8)).max(1);
    }
}

fn count<T>(rows: &[T]) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}

/// Approximate size of a JSON value in bytes.
fn json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(json).sum::<usize>() + 2,
        Value::Object(members) => {
            members
                .iter()
                .map(|(name, value)| name.len() + json(value) + 4)
                .sum::<usize>()
                + 2
        }
    }
}

impl Weigh for users::Model {
    fn weight(&self) -> usize {
        self.note.len() + json(&self.metadata)
    }
}

impl Weigh for organizations::Model {
    fn weight(&self) -> usize {
        self.name.len() + json(&self.settings)
    }
}

impl Weigh for groups::Model {
    fn weight(&self) -> usize {
        self.name.len() + self.description.len()
    }
}

impl Weigh for contracts::Model {
    fn weight(&self) -> usize {
        self.abi.as_deref().map_or(0, str::len) + json(&self.metadata)
    }
}

impl Weigh for entries::Model {
    fn weight(&self) -> usize {
        self.bytes.len() + self.openings.len()
    }
}

impl Weigh for audit_outbox::Model {
    fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_deref().map_or(0, str::len);
        text(&self.old_value) + text(&self.new_value)
    }
}
