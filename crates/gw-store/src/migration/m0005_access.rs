//! Shared infrastructure, system toggles, trusted routers, and denied methods and expiry of group access.

use super::{engine, execute_all, flag, id, number, number_null, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Access;

impl MigrationName for Access {
    fn name(&self) -> &str {
        "m0005_access"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Access {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(shared_infrastructure()).await?;
        manager.create_table(system_toggles()).await?;
        // SQLite adds one column at a time.
        for (table, mut column) in [
            ("contracts", flag("trusted_router").default(false).to_owned()),
            (
                "group_access",
                ColumnDef::new("denied_methods")
                    .json()
                    .not_null()
                    .default("[]")
                    .to_owned(),
            ),
            ("group_access", number_null("expires_at")),
        ] {
            manager
                .alter_table(Table::alter().table(table).add_column(&mut column).to_owned())
                .await?;
        }
        for (table, entity) in [
            ("shared_infrastructure", "shared_infrastructure"),
            ("system_toggles", "system_toggle"),
        ] {
            execute_all(manager, engine(manager).change_triggers(table, "id", entity)).await?;
        }
        Ok(())
    }
}

fn shared_infrastructure() -> TableCreateStatement {
    Table::create()
        .table("shared_infrastructure")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(text("name"))
        .col(text("description"))
        .col(text_null("codehash"))
        .col(text_null("implementation_codehash"))
        // The hash of different code found at the address: while set, the tag has no effect.
        .col(text_null("broken_codehash"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .index(&mut unique("shared_infrastructure", &["address"]))
        .to_owned()
}

/// At most one row per toggle; without a row the configuration decides.
fn system_toggles() -> TableCreateStatement {
    Table::create()
        .table("system_toggles")
        .col(id("id").primary_key())
        .col(flag("enabled"))
        .col(text("reason"))
        .col(text("changed_by"))
        .col(number("changed_at"))
        .col(number("expires_at"))
        .to_owned()
}
