//! Consequences of post-execution violations: withheld transactions, and suspensions and quarantines that outlive the
//! user and organization they concern (spec/02 HD28, HD37).

use super::{engine, execute_all, id, index, json, number, number_null, text, text_null, unique};
use crate::dialect::Engine;
use sea_orm_migration::{
    async_trait,
    sea_orm::{ConnectionTrait, DbErr},
    sea_query::{Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Convictions;

impl MigrationName for Convictions {
    fn name(&self) -> &str {
        "m0008_convictions"
    }
}

/// Copies the rows of step m0007 into the new tables. Rows without a user are dropped, as they were deleted with their
/// user. Each suspension becomes a conviction of the same transaction, which only a super admin clears.
const COPIES: [&str; 4] = [
    "INSERT INTO watched_sends (id, tx_hash, sender, nonce, external_id, org_id, created_at, block_number) \
     SELECT old.id, old.tx_hash, old.sender, old.nonce, users.external_id, old.org_id, old.created_at, \
     old.block_number FROM old_watched_sends AS old JOIN users ON users.id = old.user_id",
    "INSERT INTO convictions (id, tx_hash, block_hash, external_id, org_id, reason, created_at) \
     SELECT old.id, old.tx_hash, old.block_hash, users.external_id, old.org_id, old.reason, old.created_at \
     FROM old_suspensions AS old JOIN users ON users.id = old.user_id",
    "INSERT INTO suspensions (id, external_id, org_id, conviction_id, tx_hash, block_hash, reason, created_at) \
     SELECT old.id, users.external_id, old.org_id, old.id, old.tx_hash, old.block_hash, old.reason, old.created_at \
     FROM old_suspensions AS old JOIN users ON users.id = old.user_id",
    "INSERT INTO quarantines (id, address, org_id, tx_hash, block_hash, reason, created_at) \
     SELECT id, address, org_id, tx_hash, block_hash, reason, created_at FROM old_quarantines",
];

#[async_trait::async_trait]
impl MigrationTrait for Convictions {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        let engine = engine(manager);
        // No statement drops the reference to users or an inline constraint on both engines, so the tables are created
        // again.
        for table in ["watched_sends", "suspensions", "quarantines"] {
            connection
                .execute_unprepared(&format!("CREATE TABLE old_{table} AS SELECT * FROM {table}"))
                .await?;
            connection.execute_unprepared(&format!("DROP TABLE {table}")).await?;
        }
        if engine == Engine::Postgres {
            for table in ["suspensions", "quarantines"] {
                connection
                    .execute_unprepared(&format!("DROP FUNCTION {table}_changed()"))
                    .await?;
            }
        }
        for table in [watched_sends(), convictions(), suspensions(), quarantines()] {
            manager.create_table(table).await?;
        }
        for copy in COPIES {
            connection.execute_unprepared(copy).await?;
        }
        for table in ["watched_sends", "suspensions", "quarantines"] {
            connection
                .execute_unprepared(&format!("DROP TABLE old_{table}"))
                .await?;
        }
        manager.create_index(index("watched_sends", &["block_number"])).await?;
        let policy = [
            ("convictions", "conviction"),
            ("suspensions", "suspension"),
            ("quarantines", "quarantine"),
        ];
        for (table, entity) in policy {
            execute_all(manager, engine.change_triggers(table, "id", entity)).await?;
        }
        Ok(())
    }
}

/// Every send, from before it is forwarded until its block was checked, by the sender's external id: it outlives the
/// user, the memberships and the organization.
fn watched_sends() -> TableCreateStatement {
    Table::create()
        .table("watched_sends")
        .col(id("id").primary_key())
        // Unknown until the node answers, if the node signs.
        .col(text_null("tx_hash"))
        .col(text("sender"))
        .col(text("nonce"))
        .col(text("external_id"))
        .col(id("org_id"))
        // The organizations of which the sender was an active member.
        .col(json("org_ids").default("[]"))
        .col(number("created_at"))
        // The block where it was found; NULL while it is pending.
        .col(number_null("block_number"))
        .to_owned()
}

/// Transactions that did more than their trace, one row per person who sent them. Cleared rows stay, so that they are
/// not found again.
fn convictions() -> TableCreateStatement {
    Table::create()
        .table("convictions")
        .col(id("id").primary_key())
        .col(text("tx_hash"))
        .col(text("block_hash"))
        .col(text_null("sender"))
        .col(text("external_id"))
        .col(id("org_id").null())
        // The organizations that may see it besides super admins, and those whose administrators may clear it.
        .col(json("touched_org_ids").default("[]"))
        .col(json("wronged_org_ids").default("[]"))
        .col(text("reason"))
        .col(number("created_at"))
        .col(number_null("cleared_at"))
        .col(text_null("cleared_by"))
        .index(&mut unique("convictions", &["tx_hash", "external_id"]))
        .to_owned()
}

fn suspensions() -> TableCreateStatement {
    Table::create()
        .table("suspensions")
        .col(id("id").primary_key())
        .col(text("external_id"))
        .col(id("org_id").null())
        .col(id("conviction_id").null())
        .col(text("tx_hash"))
        .col(text("block_hash"))
        .col(text("reason"))
        .col(number("created_at"))
        .index(&mut unique("suspensions", &["external_id", "tx_hash"]))
        .to_owned()
}

fn quarantines() -> TableCreateStatement {
    Table::create()
        .table("quarantines")
        .col(id("id").primary_key())
        .col(text("address"))
        // The owner of the contract there, if one is registered.
        .col(id("org_id").null())
        .col(id("conviction_id").null())
        // The side to which it is closed; NULL if it is closed to all users.
        .col(text_null("side_external_id"))
        .col(json("side_org_ids").default("[]"))
        .col(text("tx_hash"))
        .col(text("block_hash"))
        .col(text("reason"))
        .col(number("created_at"))
        .index(&mut unique("quarantines", &["address", "tx_hash"]))
        .to_owned()
}
