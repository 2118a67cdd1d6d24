//! Creation code that a super admin approved (HD2).

use super::{engine, execute_all, id, number, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct ApprovedCode;

impl MigrationName for ApprovedCode {
    fn name(&self) -> &str {
        "m0019_approved_code"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ApprovedCode {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(approved_code()).await?;
        execute_all(
            manager,
            engine(manager).change_triggers("approved_code", "id", "approved_code"),
        )
        .await
    }
}

fn approved_code() -> TableCreateStatement {
    Table::create()
        .table("approved_code")
        .col(id("id").primary_key())
        .col(text("code_hash"))
        .col(number("code_size"))
        .col(text("name"))
        .col(text("approved_by"))
        .col(number("created_at"))
        .index(&mut unique("approved_code", &["code_hash"]))
        .to_owned()
}
