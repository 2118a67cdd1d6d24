//! Webhooks of organizations, and the events that wait for delivery.

use super::{id, index, number, number_null, reference, text, text_null};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKey, ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Webhooks;

impl MigrationName for Webhooks {
    fn name(&self) -> &str {
        "m0025_webhooks"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Webhooks {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(webhooks()).await?;
        manager.create_table(webhook_events()).await?;
        manager
            .create_index(index("webhook_events", &["org_id", "created_at"]))
            .await?;
        manager
            .create_index(index("webhook_events", &["next_attempt_at"]))
            .await
    }
}

/// `secret` is encrypted. No change trigger: no decision reads webhooks.
fn webhooks() -> TableCreateStatement {
    Table::create()
        .table("webhooks")
        .col(id("org_id").primary_key())
        .col(text("url"))
        .col(ColumnDef::new("secret").binary().not_null())
        .col(number("created_at"))
        .col(number("updated_at"))
        .col(number_null("last_success_at"))
        .col(number_null("last_failure_at"))
        .col(text_null("last_failure"))
        .foreign_key(&mut reference("webhooks", "org_id", "organizations", Cascade))
        .to_owned()
}

/// An event is deleted when it is delivered or dropped.
fn webhook_events() -> TableCreateStatement {
    Table::create()
        .table("webhook_events")
        .col(id("id").primary_key())
        .col(id("org_id"))
        .col(text("event_type"))
        .col(ColumnDef::new("request_id").uuid().null())
        .col(ColumnDef::new("grant_id").uuid().null())
        .col(text_null("status"))
        .col(number("created_at"))
        .col(number("attempts"))
        .col(number("next_attempt_at"))
        .col(ColumnDef::new("claim").uuid().null())
        .col(number_null("claimed_until"))
        .foreign_key(
            ForeignKey::create()
                .name("webhook_events_org_id_fkey")
                .from("webhook_events", "org_id")
                .to("webhooks", "org_id")
                .on_delete(Cascade),
        )
        .to_owned()
}
