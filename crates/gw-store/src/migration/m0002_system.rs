//! Tables outside policy that belong to the same transactions: refresh tokens, the audit outbox, the instances.

use super::{flag, id, index, number, number_null, reference, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct System;

impl MigrationName for System {
    fn name(&self) -> &str {
        "m0002_system"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for System {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [refresh_tokens(), audit_outbox(), instances()] {
            manager.create_table(table).await?;
        }
        manager.create_index(index("refresh_tokens", &["family"])).await?;
        manager.create_index(index("refresh_tokens", &["user_id"])).await
    }
}

/// SHA-256 of refresh tokens; used ones stay until they expire, so that reuse is detected (TK-5).
fn refresh_tokens() -> TableCreateStatement {
    Table::create()
        .table("refresh_tokens")
        .col(id("id").primary_key())
        .col(ColumnDef::new("hash").binary().not_null())
        .col(id("family"))
        .col(id("user_id"))
        .col(text("amr"))
        .col(number("family_started"))
        .col(number("created_at"))
        .col(number("expires_at"))
        .col(number_null("used_at"))
        .foreign_key(&mut reference("refresh_tokens", "user_id", "users", Cascade))
        .index(&mut unique("refresh_tokens", &["hash"]))
        .to_owned()
}

/// Audit entries on their way to the sealer (decision 46). Ids are assigned under the lock on the epoch row, so they
/// are in commit order.
fn audit_outbox() -> TableCreateStatement {
    Table::create()
        .table("audit_outbox")
        .col(number("id").auto_increment().primary_key())
        .col(text("action"))
        .col(id("actor_id").null())
        .col(text("actor_external_id"))
        .col(number("created_at"))
        .col(text_null("ip_address"))
        .col(id("org_id").null())
        .col(text_null("resource_id"))
        .col(text_null("resource_name"))
        .col(text("resource_type"))
        // The exact text that the sealed entry commits to.
        .col(text_null("old_value"))
        .col(text_null("new_value"))
        .col(text_null("correlation_id"))
        .to_owned()
}

/// Live instances (HD24).
fn instances() -> TableCreateStatement {
    Table::create()
        .table("instances")
        .col(id("id").primary_key())
        .col(text("name"))
        .col(flag("shared_cache"))
        .col(number("started_at"))
        .col(number("expires_at"))
        .to_owned()
}
