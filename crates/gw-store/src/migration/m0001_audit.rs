//! The audit database: chains, their entries and signed notes (spec/70).
//!
//! Entries are only ever inserted; the columns besides the bytes serve queries.

use super::{execute_all, id, number, number_null, reference, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKeyAction::Restrict, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Audit;

impl MigrationName for Audit {
    fn name(&self) -> &str {
        "m0001_audit"
    }
}

/// Few and narrow indices: each is written up to fifty thousand times a second.
const INDICES: [&str; 5] = [
    "CREATE INDEX entries_kind_created_at_idx ON entries (kind, created_at)",
    "CREATE INDEX entries_org_id_created_at_idx ON entries (org_id, created_at) WHERE org_id IS NOT NULL",
    "CREATE INDEX entries_external_id_created_at_idx ON entries (external_id, created_at) \
     WHERE external_id IS NOT NULL",
    "CREATE INDEX entries_correlation_id_idx ON entries (correlation_id) WHERE correlation_id IS NOT NULL",
    "CREATE UNIQUE INDEX entries_outbox_id_key ON entries (outbox_id) WHERE outbox_id IS NOT NULL",
];

#[async_trait::async_trait]
impl MigrationTrait for Audit {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [chains(), entries(), checkpoints()] {
            manager.create_table(table).await?;
        }
        execute_all(manager, INDICES.map(str::to_owned).into()).await
    }
}

fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).binary().not_null().to_owned()
}

fn chains() -> TableCreateStatement {
    Table::create()
        .table("chains")
        .col(number("id").auto_increment().primary_key())
        .col(text("stream"))
        .col(id("shard"))
        .col(number("fence"))
        .col(text("holder"))
        .col(number("leased_until"))
        .col(number("issued"))
        .col(number("size"))
        .col(bytes("head_hash"))
        .col(number("head_time"))
        .index(&mut unique("chains", &["stream", "shard"]))
        .to_owned()
}

fn entries() -> TableCreateStatement {
    Table::create()
        .table("entries")
        .col(number("id").auto_increment().primary_key())
        .col(number("chain_id"))
        .col(number("seq"))
        .col(bytes("hash"))
        .col(bytes("bytes"))
        .col(bytes("openings"))
        .col(text("kind"))
        .col(number("created_at"))
        .col(id("org_id").null())
        .col(text_null("external_id"))
        .col(text_null("correlation_id"))
        .col(text_null("method"))
        .col(ColumnDef::new("status_code").integer().null())
        .col(text_null("denial_reason"))
        .col(text_null("action"))
        .col(id("actor_id").null())
        .col(text_null("resource_type"))
        .col(text_null("resource_id"))
        .col(text_null("tx_hash"))
        .col(number_null("outbox_id"))
        .foreign_key(&mut reference("entries", "chain_id", "chains", Restrict))
        .index(&mut unique("entries", &["chain_id", "seq"]))
        .to_owned()
}

fn checkpoints() -> TableCreateStatement {
    Table::create()
        .table("checkpoints")
        .col(number("id").auto_increment().primary_key())
        .col(number("chain_id"))
        .col(number("size"))
        .col(text("note"))
        .col(number("created_at"))
        .foreign_key(&mut reference("checkpoints", "chain_id", "chains", Restrict))
        .index(&mut unique("checkpoints", &["chain_id", "size"]))
        .to_owned()
}
