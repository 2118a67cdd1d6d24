//! Row ids of the audit store. The database engine assigns them, unless its sequence was used up by tampering: then
//! rows get the lowest free ids, and sealing continues.

use super::store::AuditStore;
use crate::{StoreError, dialect};
use gw_audit::verify::EXHAUSTED_ID;
use sea_orm::{ActiveValue, ConnectionTrait};

/// The tables whose ids the engine assigns.
const NUMBERED: [&str; 6] = [
    "entries",
    "chains",
    "checkpoints",
    "discontinuities",
    "anchors",
    "hash_tiles",
];

impl AuditStore {
    /// Returns the id for the next row of a table if the engine cannot assign one.
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
        if exhausted && self.watch.is_first_report_of(table) {
            tracing::error!(
                table,
                sequence = ids.given,
                highest = ids.highest,
                "the id sequence of a table of the audit database is exhausted: the likely cause is manual SQL; new \
                 rows get the lowest free ids until it is repaired; run `ledger-gateway audit verify`, which prints \
                 the SQL of the repair"
            );
        }
        // Ids of pruned entries are not reused.
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

    /// Returns [`free_id`](Self::free_id) as an active value.
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

    /// Returns the tables whose ids are used up, each with the statement that repairs its sequence.
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
