//! State changes of convicted transactions (HD28), and the block at which each send was evaluated.

use super::{engine, execute_all, flag, id, index, json, number, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::Table,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct WithheldChanges;

impl MigrationName for WithheldChanges {
    fn name(&self) -> &str {
        "m0015_withheld"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for WithheldChanges {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut judged = text_null("judged_block").to_owned();
        manager
            .alter_table(Table::alter().table("watched_sends").add_column(&mut judged).to_owned())
            .await?;
        // Whether the request named an organization.
        let mut named = flag("is_named").default(false).to_owned();
        manager
            .alter_table(Table::alter().table("watched_sends").add_column(&mut named).to_owned())
            .await?;
        // The transaction's index in its block, and its number of events: later log indices are numbered without them.
        for column in ["place", "logs"] {
            let mut column = number(column).default(0).to_owned();
            manager
                .alter_table(Table::alter().table("convictions").add_column(&mut column).to_owned())
                .await?;
        }
        manager
            .create_table(
                Table::create()
                    .table("withheld_changes")
                    .col(id("id").primary_key())
                    .col(id("conviction_id"))
                    .col(text("address"))
                    // The owner of the contract there, unless the owner is on the sender's side.
                    .col(id("org_id").null())
                    .col(json("side_org_ids"))
                    .col(number("block_number"))
                    .col(number("block_time"))
                    .col(number("place"))
                    .col(json("change"))
                    .col(number("created_at"))
                    .index(&mut unique("withheld_changes", &["conviction_id", "address"]))
                    .to_owned(),
            )
            .await?;
        manager.create_index(index("withheld_changes", &["org_id"])).await?;
        execute_all(
            manager,
            engine(manager).change_triggers("withheld_changes", "id", "withheld_change"),
        )
        .await
    }
}
