//! Requests and grants of disclosure (spec/50).

use super::{engine, execute_all, flag, id, index, json, number, number_null, reference, text, text_null, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKeyAction::Restrict, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Disclosure;

impl MigrationName for Disclosure {
    fn name(&self) -> &str {
        "m0024_disclosure"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Disclosure {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(requests()).await?;
        manager.create_table(grants()).await?;
        let indexes = [
            index("disclosure_requests", &["target_user_id", "requested_at"]),
            index("disclosure_requests", &["org_id", "requested_at"]),
            index("disclosure_requests", &["status", "expires_at"]),
            index("disclosure_grants", &["owner_user_id", "granted_at"]),
            index("disclosure_grants", &["org_id", "granted_at"]),
            index("disclosure_grants", &["grantee_did", "expires_at"]),
            index("disclosure_grants", &["ended_at", "expires_at"]),
        ];
        for index in indexes {
            manager.create_index(index).await?;
        }
        let triggers = engine(manager).change_triggers("disclosure_grants", "id", "disclosure_grant");
        execute_all(manager, triggers).await
    }
}

/// No reference to users and organizations: requests outlive both. No change trigger: no decision reads requests.
fn requests() -> TableCreateStatement {
    Table::create()
        .table("disclosure_requests")
        .col(id("id").primary_key())
        .col(ColumnDef::new("requester_user_id").uuid().null())
        .col(text_null("requester_did"))
        .col(id("target_user_id"))
        .col(id("org_id"))
        .col(text("disclosure_level"))
        .col(json("scope"))
        .col(text("reason"))
        .col(text_null("legal_basis"))
        .col(text("status"))
        .col(number("requested_at"))
        .col(number_null("expires_at"))
        .col(number_null("decided_at"))
        .col(ColumnDef::new("decided_by_user_id").uuid().null())
        .col(text_null("decision_reason"))
        .to_owned()
}

/// `secret` is encrypted, and null once it is destroyed.
fn grants() -> TableCreateStatement {
    Table::create()
        .table("disclosure_grants")
        .col(id("id").primary_key())
        .col(id("request_id"))
        .col(id("owner_user_id"))
        .col(text_null("grantee_did"))
        .col(id("org_id"))
        .col(text("disclosure_level"))
        .col(json("scope"))
        .col(flag("include_future_addresses"))
        .col(number("granted_at"))
        .col(number("expires_at"))
        .col(number_null("revoked_at"))
        .col(text_null("revoked_reason"))
        .col(number_null("ended_at"))
        .col(ColumnDef::new("secret").binary().null())
        .foreign_key(&mut reference(
            "disclosure_grants",
            "request_id",
            "disclosure_requests",
            Restrict,
        ))
        .index(&mut unique("disclosure_grants", &["request_id"]))
        .to_owned()
}
