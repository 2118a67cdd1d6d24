//! The starts of each journal: a copy of a journal directory, or one that was put back to an older state, does not know
//! the newest start (HD24).

use super::{id, number};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Index, Table},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct JournalStarts;

impl MigrationName for JournalStarts {
    fn name(&self) -> &str {
        "m0006_audit"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for JournalStarts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Rows are only inserted, so the runtime role needs no further privilege.
        let table = Table::create()
            .table("journal_starts")
            .col(id("shard"))
            .col(number("number"))
            .col(id("start_id"))
            .primary_key(Index::create().name("journal_starts_pkey").col("shard").col("number"))
            .to_owned();
        manager.create_table(table).await
    }
}
