//! An index for the events of a disclosure, which are found by the id of its request or grant (spec/50 rule 39).

use super::execute_all;
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct ResourceIndex;

impl MigrationName for ResourceIndex {
    fn name(&self) -> &str {
        "m0007_audit"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ResourceIndex {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = "CREATE INDEX entries_resource_id_created_at_idx ON entries (resource_id, created_at) \
                     WHERE resource_id IS NOT NULL";
        execute_all(manager, vec![index.to_owned()]).await
    }
}
