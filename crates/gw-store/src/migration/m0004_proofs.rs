//! Proofs of logins and links that are needed again: signatures of contract wallets (HD10) and nullifiers (ZK-77). Not
//! policy: the snapshot contains none of it.

use super::{id, index, number, reference, text, unique};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{ForeignKeyAction::Cascade, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Proofs;

impl MigrationName for Proofs {
    fn name(&self) -> &str {
        "m0004_proofs"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Proofs {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(contract_wallet_proofs()).await?;
        manager
            .create_index(index("contract_wallet_proofs", &["checked_at"]))
            .await?;
        manager.create_table(login_nullifiers()).await
    }
}

/// Hashes and signatures that contract wallets confirmed; the wallets are queried again.
fn contract_wallet_proofs() -> TableCreateStatement {
    Table::create()
        .table("contract_wallet_proofs")
        .col(id("link_id").primary_key())
        .col(text("hash"))
        .col(text("signature"))
        .col(number("checked_at"))
        .foreign_key(&mut reference(
            "contract_wallet_proofs",
            "link_id",
            "address_links",
            Cascade,
        ))
        .to_owned()
}

/// The account for which a credential was first presented. Stored by name, not by row id: it outlives a deleted
/// account, as a ban does.
fn login_nullifiers() -> TableCreateStatement {
    Table::create()
        .table("login_nullifiers")
        .col(id("id").primary_key())
        .col(text("session_id"))
        .col(text("nullifier"))
        .col(text("external_id"))
        .col(number("created_at"))
        .index(&mut unique("login_nullifiers", &["session_id", "nullifier"]))
        .to_owned()
}
