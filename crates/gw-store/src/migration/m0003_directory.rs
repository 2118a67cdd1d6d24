//! The directory tenants that may vouch for users (spec/10 section 6).

use super::{engine, execute_all, flag, id, index, m0001_policy::POLICY_TABLES, number, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ForeignKeyAction::SetNull, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Directory;

impl MigrationName for Directory {
    fn name(&self) -> &str {
        "m0003_directory"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Directory {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(tenants()).await?;
        // Removing a tenant affects all its users.
        manager.create_index(index("users", &["auth_tenant_id"])).await?;
        for (table, key, entity) in POLICY_TABLES {
            execute_all(manager, engine(manager).renew_change_triggers(table, key, entity)).await?;
        }
        let triggers = engine(manager).change_triggers("directory_tenants", "id", "directory_tenant");
        execute_all(manager, triggers).await
    }
}

fn tenants() -> TableCreateStatement {
    Table::create()
        .table("directory_tenants")
        .col(id("id").primary_key())
        .col(text("tenant_id"))
        .col(text("label"))
        .col(flag("auto_provision"))
        .col(flag("disabled"))
        .col(id("default_org_id").null())
        .col(id("default_group_id").null())
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference(
            "directory_tenants",
            "default_org_id",
            "organizations",
            SetNull,
        ))
        .foreign_key(&mut reference(
            "directory_tenants",
            "default_group_id",
            "groups",
            SetNull,
        ))
        .index(&mut unique("directory_tenants", &["tenant_id"]))
        .to_owned()
}
