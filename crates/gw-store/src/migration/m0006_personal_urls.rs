//! Personal RPC URLs (HD17).

use super::{engine, execute_all, id, index, json, number, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct PersonalUrls;

impl MigrationName for PersonalUrls {
    fn name(&self) -> &str {
        "m0006_personal_urls"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for PersonalUrls {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(urls()).await?;
        manager.create_index(index("personal_urls", &["user_id"])).await?;
        manager.create_index(index("personal_urls", &["org_id"])).await?;
        let triggers = engine(manager).change_triggers("personal_urls", "id", "personal_url");
        execute_all(manager, triggers).await
    }
}

/// SHA-256 of the secrets; a revoked URL has no row.
fn urls() -> TableCreateStatement {
    Table::create()
        .table("personal_urls")
        .col(id("id").primary_key())
        .col(text("secret_hash"))
        .col(id("user_id"))
        .col(id("org_id"))
        .col(text("name"))
        .col(text("scope"))
        .col(json("contracts"))
        .col(number("created_at"))
        .col(number("expires_at"))
        .foreign_key(&mut reference("personal_urls", "user_id", "users", Cascade))
        .foreign_key(&mut reference("personal_urls", "org_id", "organizations", Cascade))
        .index(&mut unique("personal_urls", &["secret_hash"]))
        .to_owned()
}
