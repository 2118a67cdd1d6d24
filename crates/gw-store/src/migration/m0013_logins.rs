//! The login behind refresh tokens and personal URLs (HD35): both end with their login.

use super::{id, index};
use sea_orm_migration::{
    async_trait,
    sea_orm::{ConnectionTrait, DbErr},
    sea_query::Table,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct Logins;

impl MigrationName for Logins {
    fn name(&self) -> &str {
        "m0013_logins"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Logins {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["refresh_tokens", "personal_urls"] {
            let mut column = id("login").null().to_owned();
            manager
                .alter_table(Table::alter().table(table).add_column(&mut column).to_owned())
                .await?;
            manager.create_index(index(table, &["login"])).await?;
        }
        // Until now every family was a login of its own. The login of existing URLs is unknown: they live until they
        // expire.
        manager
            .get_connection()
            .execute_unprepared("UPDATE refresh_tokens SET login = family")
            .await?;
        Ok(())
    }
}
