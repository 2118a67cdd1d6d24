//! People who declined or left an organization (HD32, decision 62): by external id, so that the row outlives the
//! account.

use super::{id, index, number, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct DeclinedOrganizations;

impl MigrationName for DeclinedOrganizations {
    fn name(&self) -> &str {
        "m0016_declined_organizations"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for DeclinedOrganizations {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(declined_organizations()).await?;
        manager
            .create_index(index("declined_organizations", &["external_id"]))
            .await
    }
}

/// Not part of the snapshot: it is read only when an invitation is created.
fn declined_organizations() -> TableCreateStatement {
    Table::create()
        .table("declined_organizations")
        .col(id("id").primary_key())
        .col(id("org_id"))
        .col(text("external_id"))
        .col(number("declined_at"))
        .foreign_key(&mut reference(
            "declined_organizations",
            "org_id",
            "organizations",
            Cascade,
        ))
        .index(&mut unique("declined_organizations", &["org_id", "external_id"]))
        .to_owned()
}
