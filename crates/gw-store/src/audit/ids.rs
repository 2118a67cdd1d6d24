//! Ids of the audit store's rows. The engine gives them, unless somebody used them up: then rows get the lowest ids that
//! are left, and sealing goes on.

use super::store::AuditStore;
use crate::{StoreError, dialect};
use gw_audit::verify::EXHAUSTED_ID;
use sea_orm::{ActiveValue, ConnectionTrait};

/// The tables whose ids the engine gives.
const NUMBERED: [&str; 6] = [
    "entries",
    "chains",
    "checkpoints",
    "discontinuities",
    "anchors",
    "hash_tiles",
];

impl AuditStore {
    /// The id of the next row of a table, where the engine cannot give one.
    pub(super) async fn free_id(
        &self,
        conn: &impl ConnectionTrait,
        table: &'static str,
    ) -> Result<Option<i64>, StoreError> {
        let ids = dialect::ids(conn, table).await?;
        let exhausted = ids.is_exhausted();
        if !exhausted && !self.watch.is_distrusted(table) {
            return Ok(None);
        }
        if exhausted && self.watch.tells_of(table) {
            tracing::error!(
                table,
                sequence = ids.given,
                highest = ids.highest,
                "the ids of a table of the audit database are used up: somebody changed it. Rows get the lowest free ids \
                 meanwhile; run `ledger-gateway audit verify`, which names what to put back"
            );
        }
        // Ids of pruned entries are not used again.
        let pruned = match table {
            "entries" => dialect::highest_pruned_id(conn).await?,
            _ => None,
        };
        let given = ids.given.filter(|given| *given < EXHAUSTED_ID);
        let last = [ids.highest_sound, pruned, given]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(0);
        Ok(Some(last.saturating_add(1)))
    }

    /// The same as a value of a row.
    pub(super) async fn next_id(
        &self,
        conn: &impl ConnectionTrait,
        table: &'static str,
    ) -> Result<ActiveValue<i64>, StoreError> {
        Ok(self
            .free_id(conn, table)
            .await?
            .map_or(ActiveValue::NotSet, ActiveValue::Set))
    }

    /// Tables whose ids are used up, each with the statement that puts its numbering right.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn exhausted_ids(&self) -> Result<Vec<(&'static str, String)>, StoreError> {
        let conn = &self.pools.reader;
        let mut exhausted = Vec::new();
        for table in NUMBERED {
            if dialect::ids(conn, table).await?.is_exhausted() {
                exhausted.push((table, dialect::renumber(conn, table)));
            }
        }
        Ok(exhausted)
    }
}
