//! Tables for pruning: signed anchors, and the hashes of removed entries for roots and proofs (spec/70 rules 23, 24).

use super::{execute_all, number, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKeyAction::Restrict, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Retention;

impl MigrationName for Retention {
    fn name(&self) -> &str {
        "m0003_audit_retention"
    }
}

/// Before the intent of a send is pruned, its outcome is looked up by transaction hash.
const INDICES: [&str; 1] = ["CREATE INDEX entries_tx_hash_idx ON entries (tx_hash) WHERE tx_hash IS NOT NULL"];

#[async_trait::async_trait]
impl MigrationTrait for Retention {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [anchors(), hash_tiles(), leases()] {
            manager.create_table(table).await?;
        }
        execute_all(manager, INDICES.map(str::to_owned).into()).await
    }
}

fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).binary().not_null().to_owned()
}

fn anchors() -> TableCreateStatement {
    Table::create()
        .table("anchors")
        .col(number("id").auto_increment().primary_key())
        .col(number("chain_id"))
        .col(number("size"))
        .col(bytes("bytes"))
        .col(text("note"))
        .col(number("checkpoint_size"))
        .col(text("reason"))
        .col(text("bound"))
        .col(number("first_seq"))
        .col(number("lowest_id"))
        .col(number("highest_id"))
        .col(number("created_at"))
        .col(ColumnDef::new("logged").boolean().not_null())
        .foreign_key(&mut reference("anchors", "chain_id", "chains", Restrict))
        .index(&mut unique("anchors", &["chain_id", "size"]))
        .to_owned()
}

fn hash_tiles() -> TableCreateStatement {
    Table::create()
        .table("hash_tiles")
        .col(number("id").auto_increment().primary_key())
        .col(number("chain_id"))
        .col(number("tile"))
        .col(bytes("hashes"))
        .foreign_key(&mut reference("hash_tiles", "chain_id", "chains", Restrict))
        .index(&mut unique("hash_tiles", &["chain_id", "tile"]))
        .to_owned()
}

fn leases() -> TableCreateStatement {
    Table::create()
        .table("leases")
        .col(text("name").primary_key())
        .col(text("holder"))
        .col(number("leased_until"))
        .to_owned()
}
