//! Shared infrastructure, approved code and system toggles.

pub(crate) mod shared_infrastructure {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "shared_infrastructure")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub name: String,
        pub description: String,
        pub codehash: Option<String>,
        pub implementation_codehash: Option<String>,
        pub broken_codehash: Option<String>,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod approved_code {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "approved_code")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub code_hash: String,
        pub code_size: i64,
        pub name: String,
        pub approved_by: String,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod system_toggles {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "system_toggles")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub enabled: bool,
        pub reason: String,
        pub changed_by: String,
        pub changed_at: i64,
        pub expires_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
