//! Makes every column of the audit database verifiable: drops the times of notes, which nothing reads and no signature
//! covers, and raises `issued` to at least the number of sealed entries.

use super::execute_all;
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct ProvedColumns;

impl MigrationName for ProvedColumns {
    fn name(&self) -> &str {
        "m0005_audit"
    }
}

const STATEMENTS: [&str; 3] = [
    "ALTER TABLE checkpoints DROP COLUMN created_at",
    "ALTER TABLE discontinuities DROP COLUMN created_at",
    "UPDATE chains SET issued = size - 1 WHERE issued < size - 1",
];

#[async_trait::async_trait]
impl MigrationTrait for ProvedColumns {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        execute_all(manager, STATEMENTS.map(str::to_owned).into()).await
    }
}
