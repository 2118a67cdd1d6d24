//! The schema, forward only: what was released is never edited, a change is a new step.

mod m0001_audit;
mod m0001_policy;
mod m0002_system;
mod m0003_directory;

use crate::dialect::Engine;
use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{
    MigrationTrait, MigratorTrait, SchemaManager,
    sea_query::{ColumnDef, ForeignKey, ForeignKeyAction, ForeignKeyCreateStatement, Index, IndexCreateStatement},
};

/// The steps of the policy database.
#[derive(Debug)]
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001_policy::Policy), Box::new(m0002_system::System), Box::new(m0003_directory::Directory)]
    }
}

/// The steps of the audit database.
#[derive(Debug)]
pub(crate) struct AuditMigrator;

impl MigratorTrait for AuditMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001_audit::Audit)]
    }
}

/// Runs the pending steps of `M` in the transaction behind `conn`.
pub(crate) async fn run<M: MigratorTrait>(conn: &sea_orm::DatabaseTransaction) -> Result<(), DbErr> {
    M::up(conn, None).await
}

/// Where the schema stands against `M`, without changing it.
pub(crate) async fn check<M: MigratorTrait>(conn: &impl ConnectionTrait) -> Result<(), crate::StoreError> {
    match M::get_pending_migrations_read_only(conn).await {
        Ok(pending) if pending.is_empty() => Ok(()),
        Ok(_) => Err(crate::StoreError::Schema("older than this build")),
        // A step in the database that this build does not know.
        Err(DbErr::Custom(_)) => Err(crate::StoreError::Schema("newer than this build")),
        Err(cause) => Err(cause.into()),
    }
}

/// `table_column…_key`, the name by which `dialect` tells conflicts apart.
fn unique(table: &str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().unique().name(format!("{table}_{}_key", columns.join("_"))).to_owned();
    for column in columns {
        index.col(*column);
    }
    index
}

fn index(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(format!("{table}_{}_idx", columns.join("_"))).table(table).to_owned();
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
    Engine::of(manager.get_connection())
}
