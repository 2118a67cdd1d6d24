//! Re-anchorings of chains, and checkpoints of a re-anchored chain: a size is signed once per era (spec/70 rule 22).

use super::{engine, execute_all, id, number, text};
use crate::dialect::Engine;
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::Table,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Discontinuities;

impl MigrationName for Discontinuities {
    fn name(&self) -> &str {
        "m0004_audit"
    }
}

/// SQLite can drop a constraint only with its table.
const SQLITE: [&str; 4] = [
    "CREATE TABLE checkpoints_next ( id integer NOT NULL PRIMARY KEY AUTOINCREMENT, chain_id integer NOT NULL, \
     size integer NOT NULL, note text NOT NULL, created_at integer NOT NULL, era integer NOT NULL DEFAULT 0, \
     CONSTRAINT checkpoints_chain_id_size_era_key UNIQUE (chain_id, size, era), \
     FOREIGN KEY (chain_id) REFERENCES chains (id) ON DELETE RESTRICT )",
    "INSERT INTO checkpoints_next (id, chain_id, size, note, created_at) \
     SELECT id, chain_id, size, note, created_at FROM checkpoints ORDER BY id",
    "DROP TABLE checkpoints",
    "ALTER TABLE checkpoints_next RENAME TO checkpoints",
];
const POSTGRES: [&str; 3] = [
    "ALTER TABLE checkpoints ADD COLUMN era bigint NOT NULL DEFAULT 0",
    "ALTER TABLE checkpoints DROP CONSTRAINT checkpoints_chain_id_size_key",
    "ALTER TABLE checkpoints ADD CONSTRAINT checkpoints_chain_id_size_era_key UNIQUE (chain_id, size, era)",
];

#[async_trait::async_trait]
impl MigrationTrait for Discontinuities {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No reference to `chains`: a chain whose row is gone can be re-anchored too.
        let table = Table::create()
            .table("discontinuities")
            .col(number("id").auto_increment().primary_key())
            .col(text("stream"))
            .col(id("shard"))
            .col(text("note"))
            .col(number("created_at"))
            .to_owned();
        manager.create_table(table).await?;
        let statements: Vec<String> = match engine(manager) {
            Engine::Sqlite => SQLITE.map(str::to_owned).into(),
            Engine::Postgres => POSTGRES.map(str::to_owned).into(),
        };
        execute_all(manager, statements).await
    }
}
