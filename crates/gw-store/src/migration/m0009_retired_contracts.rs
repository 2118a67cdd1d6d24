//! Contracts whose registration was deleted (spec/02 HD27): policy decisions still treat their organization as owner.

use super::{engine, execute_all, id, number, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct RetiredContracts;

impl MigrationName for RetiredContracts {
    fn name(&self) -> &str {
        "m0009_retired_contracts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RetiredContracts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(retired_contracts()).await?;
        execute_all(
            manager,
            engine(manager).change_triggers("retired_contracts", "id", "retired_contract"),
        )
        .await
    }
}

/// No reference to an organization or a user: the row outlives both.
fn retired_contracts() -> TableCreateStatement {
    Table::create()
        .table("retired_contracts")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(id("org_id"))
        .col(id("deployed_by_user_id").null())
        .col(number("since"))
        .col(number("retired_at"))
        .index(&mut unique("retired_contracts", &["address"]))
        .to_owned()
}
