//! Directory tenants.

pub(crate) mod directory_tenants {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "directory_tenants")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub tenant_id: String,
        pub label: String,
        pub auto_provision: bool,
        pub disabled: bool,
        pub default_org_id: Option<Uuid>,
        pub default_group_id: Option<Uuid>,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
