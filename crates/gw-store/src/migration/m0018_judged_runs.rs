//! Columns for the simulated runs that authorized each send. The mined transaction is compared with them, to find
//! effects that no authorized run had (HD2, HD38).

use super::{flag_null, json_null, number_null};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::Table,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct JudgedRuns;

impl MigrationName for JudgedRuns {
    fn name(&self) -> &str {
        "m0018_judged_runs"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for JudgedRuns {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for mut column in [
            number_null("judged_number"),
            json_null("judged_runs"),
            flag_null("judged_may_vary"),
            json_null("judged_changes"),
        ] {
            manager
                .alter_table(Table::alter().table("watched_sends").add_column(&mut column).to_owned())
                .await?;
        }
        Ok(())
    }
}
