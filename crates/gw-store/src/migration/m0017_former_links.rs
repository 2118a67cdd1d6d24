//! Links deleted with an account (HD13, HD37): their owners by external id, so that the row outlives the account.

use super::{engine, execute_all, flag, id, index, number, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct FormerLinks;

impl MigrationName for FormerLinks {
    fn name(&self) -> &str {
        "m0017_former_links"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for FormerLinks {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(former_links()).await?;
        manager.create_index(index("former_links", &["address"])).await?;
        execute_all(
            manager,
            engine(manager).change_triggers("former_links", "id", "former_link"),
        )
        .await
    }
}

fn former_links() -> TableCreateStatement {
    Table::create()
        .table("former_links")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(text("external_id"))
        .col(flag("revoked_by_admin"))
        .col(number("ended_at"))
        .index(&mut unique("former_links", &["external_id", "address"]))
        .to_owned()
}
