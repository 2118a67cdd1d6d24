//! The schema, forward only: released steps are never edited, a change is a new step.

mod m0001_audit;
mod m0001_policy;
mod m0002_outbox_origin;
mod m0002_system;
mod m0003_audit_retention;
mod m0003_directory;
mod m0004_audit;
mod m0004_proofs;
mod m0005_access;
mod m0005_audit;
mod m0006_audit;
mod m0006_personal_urls;
mod m0007_audit;
mod m0007_mined;
mod m0008_convictions;
mod m0009_retired_contracts;
mod m0011_membership_state;
mod m0013_logins;
mod m0014_past_contracts;
mod m0015_withheld;
mod m0016_declined_organizations;
mod m0017_former_links;
mod m0018_judged_runs;
mod m0019_approved_code;
mod m0020_outbox;
mod m0023_legal_holds;
mod m0024_disclosure;
mod m0025_webhooks;

use crate::dialect::{Engine, Transaction};
use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{
    MigrationTrait, MigratorTrait, SchemaManager,
    sea_query::{ColumnDef, ForeignKey, ForeignKeyAction, ForeignKeyCreateStatement, Index, IndexCreateStatement},
};

/// The complete schema of a database: one object per line, as `dialect::schema` describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition {
    sqlite: &'static str,
    postgres: &'static str,
}

impl Definition {
    pub(crate) const fn for_engine(self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }
}

/// The schema of the policy database after all steps.
pub(crate) const POLICY: Definition = Definition {
    sqlite: include_str!("schema/sqlite.txt"),
    postgres: include_str!("schema/postgres.txt"),
};

/// The schema of the audit database after all steps.
pub(crate) const AUDIT: Definition = Definition {
    sqlite: include_str!("schema/audit-sqlite.txt"),
    postgres: include_str!("schema/audit-postgres.txt"),
};

/// The migration steps of the policy database.
#[derive(Debug)]
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_policy::PolicyTables),
            Box::new(m0002_system::System),
            Box::new(m0003_directory::Directory),
            Box::new(m0004_proofs::Proofs),
            Box::new(m0005_access::Access),
            Box::new(m0006_personal_urls::PersonalUrls),
            Box::new(m0007_mined::Mined),
            Box::new(m0008_convictions::Convictions),
            Box::new(m0009_retired_contracts::RetiredContracts),
            Box::new(m0011_membership_state::MembershipState),
            Box::new(m0013_logins::Logins),
            Box::new(m0014_past_contracts::PastContracts),
            Box::new(m0015_withheld::WithheldChanges),
            Box::new(m0016_declined_organizations::DeclinedOrganizations),
            Box::new(m0017_former_links::FormerLinks),
            Box::new(m0018_judged_runs::JudgedRuns),
            Box::new(m0019_approved_code::ApprovedCode),
            Box::new(m0020_outbox::AuthenticatedOutbox),
            Box::new(m0023_legal_holds::LegalHolds),
            Box::new(m0024_disclosure::Disclosure),
            Box::new(m0025_webhooks::Webhooks),
        ]
    }
}

/// The migration steps of the audit database.
#[derive(Debug)]
pub(crate) struct AuditMigrator;

impl MigratorTrait for AuditMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_audit::Audit),
            Box::new(m0002_outbox_origin::OutboxOrigin),
            Box::new(m0003_audit_retention::Retention),
            Box::new(m0004_audit::Discontinuities),
            Box::new(m0005_audit::ProvedColumns),
            Box::new(m0006_audit::JournalStarts),
            Box::new(m0007_audit::ResourceIndex),
        ]
    }
}

/// The names of the steps of `M`, as the database lists those that were run.
pub(crate) fn names<M: MigratorTrait>() -> Vec<String> {
    M::migrations().iter().map(|step| step.name().to_owned()).collect()
}

/// Runs the pending steps of `M` in the transaction behind `conn`.
pub(crate) async fn run<M: MigratorTrait>(tx: &Transaction) -> Result<(), DbErr> {
    tx.with_raw(async |raw| M::up(raw, None).await).await
}

/// State of a database in which none of our steps was run.
const EMPTY: &str = "missing: nothing was ever applied to this database";

/// Compares the schema with the steps of `M`, without changing it.
pub(crate) async fn check<M: MigratorTrait>(conn: &impl ConnectionTrait) -> Result<(), crate::StoreError> {
    match M::get_pending_migrations_read_only(conn).await {
        Ok(pending) if pending.is_empty() => Ok(()),
        Ok(pending) if pending.len() == M::migrations().len() => Err(crate::StoreError::Schema(EMPTY)),
        Ok(_) => Err(crate::StoreError::Schema("older than this build")),
        // The database contains a step that this build does not know.
        Err(DbErr::Custom(_)) => Err(crate::StoreError::Schema("newer than this build")),
        Err(cause) => Err(cause.into()),
    }
}

/// Unique index `table_column…_key`; `dialect` identifies conflicts by this name.
fn unique(table: &str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create()
        .unique()
        .name(format!("{table}_{}_key", columns.join("_")))
        .to_owned();
    for column in columns {
        index.col(*column);
    }
    index
}

fn index(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create()
        .name(format!("{table}_{}_idx", columns.join("_")))
        .table(table)
        .to_owned();
    for column in columns {
        index.col(*column);
    }
    index
}

fn reference(
    table: &'static str,
    column: &'static str,
    to: &'static str,
    on_delete: ForeignKeyAction,
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("{table}_{column}_fkey"))
        .from(table, column)
        .to(to, "id")
        .on_delete(on_delete)
        .to_owned()
}

fn id(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).uuid().not_null().to_owned()
}

fn text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().not_null().to_owned()
}

fn text_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().null().to_owned()
}

fn flag(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).boolean().not_null().to_owned()
}

fn flag_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).boolean().null().to_owned()
}

fn number(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().not_null().to_owned()
}

fn number_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().null().to_owned()
}

fn json(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).json().not_null().to_owned()
}

fn json_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).json().null().to_owned()
}

async fn execute_all(manager: &SchemaManager<'_>, statements: Vec<String>) -> Result<(), DbErr> {
    for sql in statements {
        manager.get_connection().execute_unprepared(&sql).await?;
    }
    Ok(())
}

fn engine(manager: &SchemaManager<'_>) -> Engine {
    Engine::for_connection(manager.get_connection())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sea_orm::{Database, TransactionTrait as _};

    /// A store filled by each earlier version keeps its rows, and then records policy changes.
    #[tokio::test]
    async fn e2_a_filled_store_of_every_earlier_version_is_brought_up_to_date() {
        let steps = u32::try_from(Migrator::migrations().len()).unwrap();
        for from in 2..steps {
            let db = Database::connect("sqlite::memory:").await.unwrap();
            let tx = db.begin().await.unwrap();
            Migrator::up(&tx, Some(from)).await.unwrap();
            tx.execute_unprepared(
                "INSERT INTO users (id, external_id, kyc, banned, note, metadata, created_at, updated_at) \
                 VALUES (x'00000000000000000000000000000001', 'did:test:a', 1, 0, '', '{}', 1, 1)",
            )
            .await
            .unwrap();
            tx.execute_unprepared(
                "INSERT INTO address_links (id, user_id, address, link_type, contract_wallet, verified_at, \
                 revoked_by_admin, created_at) VALUES (x'00000000000000000000000000000002', \
                 x'00000000000000000000000000000001', '0x11', 'user', 0, 1, 0, 1)",
            )
            .await
            .unwrap();
            // Rows that step m0007 stored by user id are kept by external id.
            let has_old_rows = from == 7;
            if has_old_rows {
                tx.execute_unprepared(
                    "INSERT INTO organizations (id, slug, name, settings, is_system, created_at, updated_at) \
                     VALUES (x'00000000000000000000000000000001', 'bank', 'bank', '{}', 0, 1, 1)",
                )
                .await
                .unwrap();
                for (table, columns, values) in [
                    ("suspensions", "user_id", "x'00000000000000000000000000000001'"),
                    ("quarantines", "address", "'0x22'"),
                ] {
                    let sql = format!(
                        "INSERT INTO {table} (id, {columns}, tx_hash, block_hash, reason, created_at) \
                         VALUES (x'00000000000000000000000000000003', {values}, '0xaa', '0xbb', 'cross_org', 1)"
                    );
                    tx.execute_unprepared(&sql).await.unwrap();
                }
                tx.execute_unprepared(
                    "INSERT INTO watched_sends (id, sender, nonce, user_id, org_id, created_at) VALUES \
                     (x'00000000000000000000000000000004', '0x11', '7', x'00000000000000000000000000000001', \
                     x'00000000000000000000000000000001', 1)",
                )
                .await
                .unwrap();
            }
            Migrator::up(&tx, None).await.unwrap();
            let count = async |sql: &str| {
                let row = tx
                    .query_one_raw(Engine::for_connection(&tx).statement(sql.to_owned()))
                    .await
                    .unwrap()
                    .unwrap();
                row.try_get_by_index::<i64>(0).unwrap()
            };
            assert_eq!(count("SELECT count(*) FROM users").await, 1, "from step {from}");
            assert_eq!(count("SELECT count(*) FROM address_links").await, 1, "from step {from}");
            for table in ["suspensions", "convictions", "watched_sends"] {
                let rows = count(&format!(
                    "SELECT count(*) FROM {table} WHERE external_id = 'did:test:a'"
                ))
                .await;
                assert_eq!(rows, i64::from(has_old_rows), "{table} from step {from}");
            }
            assert_eq!(
                count("SELECT count(*) FROM quarantines").await,
                i64::from(has_old_rows),
                "from step {from}"
            );
            let before = count("SELECT count(*) FROM policy_changes").await;
            tx.execute_unprepared("UPDATE policy_epoch SET epoch = epoch + 1")
                .await
                .unwrap();
            tx.execute_unprepared("UPDATE users SET banned = 1").await.unwrap();
            assert!(
                count("SELECT count(*) FROM policy_changes").await > before,
                "from step {from}"
            );
        }
    }
}
