//! The policy tables, the epoch, the change rows and the triggers that write change rows (HD23).

use super::{
    engine, execute_all, flag, id, index, json, json_null, number, number_null, reference, text, text_null, unique,
};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::{
        Expr, ExprTrait,
        ForeignKeyAction::{Cascade, SetNull},
        Index, Table, TableCreateStatement,
    },
    {MigrationName, MigrationTrait, SchemaManager},
};

/// Every policy table with its key and its entity name in change rows; `snapshot` uses the same entity names.
pub(super) const POLICY_TABLES: [(&str, &str, &str); 11] = [
    ("users", "id", "user"),
    ("organizations", "id", "organization"),
    ("groups", "id", "group"),
    ("group_access", "group_id", "group_access"),
    ("memberships", "id", "membership"),
    ("contracts", "id", "contract"),
    ("contract_grants", "id", "grant"),
    ("address_links", "id", "link"),
    ("reservations", "id", "reservation"),
    ("tx_visibility", "id", "visibility"),
    ("revocations", "id", "revocation"),
];

#[derive(Debug)]
pub(super) struct PolicyTables;

impl MigrationName for PolicyTables {
    fn name(&self) -> &str {
        "m0001_policy"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for PolicyTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            epoch(),
            history(),
            changes(),
            users(),
            user_tombstones(),
            organizations(),
            groups(),
            group_access(),
            memberships(),
            contracts(),
            contract_grants(),
            address_links(),
            reservations(),
            tx_visibility(),
            revocations(),
        ] {
            manager.create_table(table).await?;
        }
        for (table, column) in [
            ("memberships", "group_id"),
            ("contracts", "org_id"),
            ("contracts", "deployed_by_user_id"),
            ("contract_grants", "group_id"),
            ("address_links", "address"),
            ("reservations", "tx_hash"),
            ("reservations", "org_id"),
            ("reservations", "user_id"),
            ("tx_visibility", "tx_hash"),
            ("tx_visibility", "sender_user_id"),
        ] {
            manager.create_index(index(table, &[column])).await?;
        }
        execute_all(manager, engine(manager).history_triggers()).await?;
        execute_all(
            manager,
            vec!["INSERT INTO policy_epoch (id, epoch) VALUES (1, 0)".to_owned()],
        )
        .await?;
        for (table, key, entity) in POLICY_TABLES {
            execute_all(manager, engine(manager).first_change_triggers(table, key, entity)).await?;
        }
        Ok(())
    }
}

/// One row: the current policy epoch. All mutations queue for its lock.
fn epoch() -> TableCreateStatement {
    Table::create()
        .table("policy_epoch")
        .col(number("id").primary_key())
        .col(number("epoch"))
        .check(("policy_epoch_single_row", Expr::col("id").eq(1)))
        .to_owned()
}

/// A stamp per epoch, which distinguishes two histories of equal length: an epoch lost in a failover and its successor
/// may have the same number. Written by triggers only.
fn history() -> TableCreateStatement {
    Table::create()
        .table("policy_history")
        .col(number("epoch").primary_key())
        .col(id("stamp"))
        .to_owned()
}

/// The rows that changed in each epoch; written by triggers only.
fn changes() -> TableCreateStatement {
    Table::create()
        .table("policy_changes")
        .col(number("epoch"))
        .col(text("entity"))
        .col(id("row_id"))
        .primary_key(
            Index::create()
                .name("policy_changes_pkey")
                .col("epoch")
                .col("entity")
                .col("row_id"),
        )
        .to_owned()
}

fn users() -> TableCreateStatement {
    Table::create()
        .table("users")
        .col(id("id").primary_key())
        .col(text("external_id"))
        .col(flag("kyc"))
        .col(flag("banned"))
        .col(text("note"))
        .col(json("metadata"))
        .col(text_null("auth_tenant_id"))
        .col(number_null("tokens_valid_from"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .index(&mut unique("users", &["external_id"]))
        .to_owned()
}

/// External ids of deleted users: a ban and the revocation of old tokens outlive the row (spec/80 section 7).
fn user_tombstones() -> TableCreateStatement {
    Table::create()
        .table("user_tombstones")
        .col(text("external_id").primary_key())
        .col(flag("banned"))
        .col(number("deleted_at"))
        .to_owned()
}

fn organizations() -> TableCreateStatement {
    Table::create()
        .table("organizations")
        .col(id("id").primary_key())
        .col(text("slug"))
        .col(text("name"))
        .col(json("settings"))
        .col(flag("is_system"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .index(&mut unique("organizations", &["slug"]))
        .to_owned()
}

fn groups() -> TableCreateStatement {
    Table::create()
        .table("groups")
        .col(id("id").primary_key())
        .col(id("org_id"))
        .col(id("parent_id").null())
        .col(text("slug"))
        .col(text("name"))
        .col(text("name_key"))
        .col(text("description"))
        .col(flag("is_org_admin"))
        .col(flag("is_org_readonly_admin"))
        .col(flag("is_system"))
        .col(flag("auto_created"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("groups", "org_id", "organizations", Cascade))
        .index(&mut unique("groups", &["org_id", "slug"]))
        .index(&mut unique("groups", &["org_id", "name_key"]))
        // A5, checked on the merged state of a partial update.
        .check((
            "groups_one_admin_flag",
            Expr::col("is_org_admin").and(Expr::col("is_org_readonly_admin")).not(),
        ))
        .to_owned()
}

fn group_access() -> TableCreateStatement {
    Table::create()
        .table("group_access")
        .col(id("group_id").primary_key())
        .col(json("allowed_methods"))
        .col(text("claims"))
        .col(text_null("rpc_api_key"))
        .col(flag("verbose_errors"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("group_access", "group_id", "groups", Cascade))
        .to_owned()
}

fn memberships() -> TableCreateStatement {
    Table::create()
        .table("memberships")
        .col(id("id").primary_key())
        .col(id("user_id"))
        .col(id("group_id"))
        .col(text("source"))
        .col(text_null("zk_credential_ref"))
        .col(number_null("expires_at"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("memberships", "user_id", "users", Cascade))
        .foreign_key(&mut reference("memberships", "group_id", "groups", Cascade))
        .index(&mut unique("memberships", &["user_id", "group_id"]))
        .to_owned()
}

fn contracts() -> TableCreateStatement {
    Table::create()
        .table("contracts")
        .col(id("id").primary_key())
        .col(id("org_id"))
        .col(text("address"))
        .col(text("name"))
        .col(text_null("abi"))
        .col(json("metadata"))
        .col(number_null("deployed_at"))
        .col(id("deployed_by_user_id").null())
        .col(flag("allow_visibleto_unlock"))
        .col(flag("events_allow_dynamic_payload"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("contracts", "org_id", "organizations", Cascade))
        .foreign_key(&mut reference("contracts", "deployed_by_user_id", "users", SetNull))
        .index(&mut unique("contracts", &["address"]))
        .to_owned()
}

fn contract_grants() -> TableCreateStatement {
    Table::create()
        .table("contract_grants")
        .col(id("id").primary_key())
        .col(id("contract_id"))
        .col(id("group_id"))
        .col(text("claims"))
        .col(json_null("functions"))
        .col(json_null("event_rules"))
        .col(number("created_at"))
        .col(number("updated_at"))
        .foreign_key(&mut reference("contract_grants", "contract_id", "contracts", Cascade))
        .foreign_key(&mut reference("contract_grants", "group_id", "groups", Cascade))
        .index(&mut unique("contract_grants", &["contract_id", "group_id"]))
        .to_owned()
}

fn address_links() -> TableCreateStatement {
    Table::create()
        .table("address_links")
        .col(id("id").primary_key())
        .col(id("user_id"))
        .col(text("address"))
        .col(text("link_type"))
        .col(flag("contract_wallet"))
        .col(number("verified_at"))
        .col(text_null("ens_name"))
        .col(number_null("ens_resolved_at"))
        .col(number_null("revoked_at"))
        .col(flag("revoked_by_admin"))
        .col(number("created_at"))
        .foreign_key(&mut reference("address_links", "user_id", "users", Cascade))
        .index(&mut unique("address_links", &["user_id", "address"]))
        .check((
            "address_links_link_type",
            Expr::col("link_type").is_in(["user", "system"]),
        ))
        .to_owned()
}

/// Not unique by address: a reservation is not exclusive (HD14).
fn reservations() -> TableCreateStatement {
    Table::create()
        .table("reservations")
        .col(id("id").primary_key())
        .col(text("address"))
        .col(id("org_id"))
        .col(id("user_id"))
        .col(text("kind"))
        .col(text("sender"))
        .col(text("nonce"))
        .col(text_null("tx_hash"))
        .col(text("state"))
        .col(number("expires_at"))
        .col(number("created_at"))
        .foreign_key(&mut reference("reservations", "org_id", "organizations", Cascade))
        .foreign_key(&mut reference("reservations", "user_id", "users", Cascade))
        .to_owned()
}

fn tx_visibility() -> TableCreateStatement {
    Table::create()
        .table("tx_visibility")
        .col(id("id").primary_key())
        .col(text("tx_hash"))
        .col(id("sender_user_id"))
        .col(json("recipients"))
        .col(flag("active"))
        .col(number("created_at"))
        .foreign_key(&mut reference("tx_visibility", "sender_user_id", "users", Cascade))
        .to_owned()
}

/// Revoked access tokens and families, kept until they would have expired.
fn revocations() -> TableCreateStatement {
    Table::create()
        .table("revocations")
        .col(id("id").primary_key())
        .col(number("until"))
        .to_owned()
}
