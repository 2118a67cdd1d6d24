//! Tamper-evident outbox rows (changes, removals and forgeries are detected), and other data stored outside the audit
//! database (spec/70 rules 15 and 18, HD25).

use super::{engine, execute_all, id, number, number_null, text};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, Index, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct AuthenticatedOutbox;

impl MigrationName for AuthenticatedOutbox {
    fn name(&self) -> &str {
        "m0020_outbox"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for AuthenticatedOutbox {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let columns = [
            ColumnDef::new("salt_seed").binary().null().to_owned(),
            ColumnDef::new("mac").binary().null().to_owned(),
            number_null("sealed_at"),
        ];
        for mut column in columns {
            manager
                .alter_table(Table::alter().table("audit_outbox").add_column(&mut column).to_owned())
                .await?;
        }
        for table in [policy_store(), journal_heads(), signed_heads()] {
            manager.create_table(table).await?;
        }
        execute_all(manager, INDICES.map(str::to_owned).into()).await?;
        execute_all(manager, vec![engine(manager).insert_policy_store().to_owned()]).await
    }
}

/// The sealer looks for waiting rows several times a second, among all kept rows.
const INDICES: [&str; 2] = [
    "CREATE INDEX audit_outbox_waiting_idx ON audit_outbox (id) WHERE sealed_at IS NULL",
    "CREATE INDEX audit_outbox_sealed_at_idx ON audit_outbox (sealed_at) WHERE sealed_at IS NOT NULL",
];

/// One row: the id of this policy store, and the last id of an outbox row.
fn policy_store() -> TableCreateStatement {
    Table::create()
        .table("policy_store")
        .col(number("id").primary_key())
        .col(id("store_id"))
        .col(number("last_outbox_id"))
        .to_owned()
}

/// Number of records that each writer has numbered: shows what a lost journal contained (HD25).
fn journal_heads() -> TableCreateStatement {
    Table::create()
        .table("journal_heads")
        .col(id("shard"))
        .col(text("stream"))
        .col(number("issued"))
        .col(number("noted_at"))
        .col(number_null("reported_at"))
        .primary_key(Index::create().col("shard").col("stream"))
        .to_owned()
}

/// The newest signed note of each chain; the audit database must not fall behind it.
fn signed_heads() -> TableCreateStatement {
    Table::create()
        .table("signed_heads")
        .col(text("origin").primary_key())
        .col(number("size"))
        .col(text("note"))
        .col(number("noted_at"))
        .to_owned()
}
