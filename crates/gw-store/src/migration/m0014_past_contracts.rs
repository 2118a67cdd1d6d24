//! Previous owners of a contract (spec/02 HD41): permissions in such an organization decide about the contract's logs
//! of that time.

use super::{engine, execute_all, flag, id, index, json, number, number_null, text, text_null};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct PastContracts;

impl MigrationName for PastContracts {
    fn name(&self) -> &str {
        "m0014_past_contracts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for PastContracts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(past_contracts()).await?;
        manager.create_index(index("past_contracts", &["address"])).await?;
        let mut first = number_null("owned_from");
        manager
            .alter_table(Table::alter().table("contracts").add_column(&mut first).to_owned())
            .await?;
        execute_all(
            manager,
            engine(manager).change_triggers("past_contracts", "id", "past_contract"),
        )
        .await
    }
}

/// Registrations that ended, with the data needed to filter logs of their time. No reference to an organization, a user
/// or a group: the row outlives them.
fn past_contracts() -> TableCreateStatement {
    Table::create()
        .table("past_contracts")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(id("org_id"))
        .col(text_null("abi"))
        .col(json("metadata"))
        .col(id("deployed_by_user_id").null())
        .col(flag("allow_visibleto_unlock"))
        .col(flag("events_allow_dynamic_payload"))
        .col(json("grants"))
        .col(number_null("owned_from"))
        .col(number_null("owned_until"))
        .col(number("since"))
        .col(number("ended_at"))
        .to_owned()
}
