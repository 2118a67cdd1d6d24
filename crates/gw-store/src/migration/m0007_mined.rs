//! Post-execution results of sends (spec/02 HD2): watched sends, suspensions and quarantines.

use super::{engine, execute_all, id, index, number, number_null, reference, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Mined;

impl MigrationName for Mined {
    fn name(&self) -> &str {
        "m0007_mined"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Mined {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [watched_sends(), suspensions(), quarantines()] {
            manager.create_table(table).await?;
        }
        manager.create_index(index("watched_sends", &["block_number"])).await?;
        for (table, key, entity) in [("suspensions", "id", "suspension"), ("quarantines", "id", "quarantine")] {
            execute_all(manager, engine(manager).change_triggers(table, key, entity)).await?;
        }
        Ok(())
    }
}

/// Every send, from before it is forwarded until its block was checked. Not policy: nothing on a request path reads it.
fn watched_sends() -> TableCreateStatement {
    Table::create()
        .table("watched_sends")
        .col(id("id").primary_key())
        // Unknown until the node answers, if the node signs.
        .col(text_null("tx_hash"))
        .col(text("sender"))
        .col(text("nonce"))
        .col(id("user_id"))
        .col(id("org_id"))
        .col(number("created_at"))
        // The block where it was found; NULL while it is pending.
        .col(number_null("block_number"))
        .foreign_key(&mut reference("watched_sends", "user_id", "users", Cascade))
        .foreign_key(&mut reference("watched_sends", "org_id", "organizations", Cascade))
        .to_owned()
}

fn suspensions() -> TableCreateStatement {
    Table::create()
        .table("suspensions")
        .col(id("id").primary_key())
        .col(id("user_id"))
        .col(id("org_id").null())
        .col(text("tx_hash"))
        .col(text("block_hash"))
        .col(text("reason"))
        .col(number("created_at"))
        .foreign_key(&mut reference("suspensions", "user_id", "users", Cascade))
        .index(&mut unique("suspensions", &["user_id"]))
        .to_owned()
}

fn quarantines() -> TableCreateStatement {
    Table::create()
        .table("quarantines")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(id("org_id").null())
        .col(text("tx_hash"))
        .col(text("block_hash"))
        .col(text("reason"))
        .col(number("created_at"))
        .index(&mut unique("quarantines", &["address"]))
        .to_owned()
}
