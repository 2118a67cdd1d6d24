//! Pages are bounded by bytes as well as by rows: whoever fills rows with text must not make a list of them costly.

use super::Paging;
use crate::{
    StoreError,
    entity::{audit_outbox, contracts, entries, groups, organizations, users},
};
use sea_orm::{ConnectionTrait, EntityTrait, QuerySelect, Select};
use serde_json::Value;

/// The most bytes that the long columns of one page have together; one row is always there.
pub(crate) const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The rows that are read before their weight is known.
const FIRST: u64 = 32;

/// A row that may be long.
pub(crate) trait Weigh {
    /// About how many bytes its long columns have.
    fn weight(&self) -> usize;
}

/// The rows of a page, fewer where they are long: as many as have `budget` bytes, and the first one.
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
        let read = count(&rows);
        let limit = next.min(paging.limit.saturating_sub(read));
        if limit == 0 {
            return Ok(rows);
        }
        let offset = paging.offset.saturating_add(read);
        let found = select.clone().limit(limit).offset(offset).all(conn).await?;
        let ends = count(&found) < limit;
        for row in found {
            bytes = bytes.saturating_add(row.weight());
            if bytes > budget && !rows.is_empty() {
                return Ok(rows);
            }
            rows.push(row);
        }
        if ends || bytes > budget {
            return Ok(rows);
        }
        // As many again as fit, if they are like those before.
        let fits = u64::try_from((budget - bytes) / (bytes / rows.len().max(1)).max(1)).unwrap_or(u64::MAX);
        next = fits.min(count(&rows).saturating_mul(8)).max(1);
    }
}

fn count<T>(rows: &[T]) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}

/// The bytes of its texts, about.
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
