//! Legal holds, which keep entries of the audit log from being pruned or erased (spec/70 rule 24).

use super::{id, number, text, text_null};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct LegalHolds;

impl MigrationName for LegalHolds {
    fn name(&self) -> &str {
        "m0023_legal_holds"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LegalHolds {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(legal_holds()).await
    }
}

/// No reference to the organization: a hold outlives it. No change trigger: authorization decisions do not read holds.
fn legal_holds() -> TableCreateStatement {
    Table::create()
        .table("legal_holds")
        .col(id("id").primary_key())
        .col(id("org_id").null())
        .col(text_null("stream"))
        .col(text("reason"))
        .col(text("placed_by"))
        .col(number("created_at"))
        .to_owned()
}
