//! Organizations, groups and group access.

pub(crate) mod organizations {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "organizations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub slug: String,
        pub name: String,
        pub settings: Json,
        pub is_system: bool,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod groups {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "groups")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Uuid,
        pub parent_id: Option<Uuid>,
        pub slug: String,
        pub name: String,
        /// The name in lower case, computed here so that both engines agree.
        pub name_key: String,
        pub description: String,
        pub is_org_admin: bool,
        pub is_org_readonly_admin: bool,
        pub is_system: bool,
        pub auto_created: bool,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod group_access {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "group_access")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub group_id: Uuid,
        pub allowed_methods: Json,
        /// Claim names in fixed order, separated by commas.
        pub claims: String,
        pub rpc_api_key: Option<String>,
        pub verbose_errors: bool,
        pub created_at: i64,
        pub updated_at: i64,
        pub denied_methods: Json,
        pub expires_at: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
