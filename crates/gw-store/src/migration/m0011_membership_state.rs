//! Whether members agreed to their memberships (HD32), and the records of organizations about a person (RT24).

use super::{engine, execute_all, flag, id, index, json, number, number_null, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct MembershipState;

impl MigrationName for MembershipState {
    fn name(&self) -> &str {
        "m0011_membership_state"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for MembershipState {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Existing memberships stay in force: there was no consent when they were created.
        let state = ColumnDef::new("state").text().not_null().default("accepted").to_owned();
        // SQLite adds one column at a time.
        for mut column in [state, number_null("accepted_at")] {
            manager
                .alter_table(Table::alter().table("memberships").add_column(&mut column).to_owned())
                .await?;
        }
        manager.create_table(org_user_records()).await?;
        manager
            .create_index(index("org_user_records", &["external_id"]))
            .await?;
        execute_all(
            manager,
            engine(manager).change_triggers("org_user_records", "id", "org_user_record"),
        )
        .await
    }
}

/// An organization's record about a person, by external id: it outlives the account.
fn org_user_records() -> TableCreateStatement {
    Table::create()
        .table("org_user_records")
        .col(id("id").primary_key())
        .col(id("org_id"))
        .col(text("external_id"))
        .col(flag("kyc"))
        .col(flag("banned"))
        .col(text("note"))
        .col(json("metadata"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("org_user_records", "org_id", "organizations", Cascade))
        .index(&mut unique("org_user_records", &["org_id", "external_id"]))
        .to_owned()
}
