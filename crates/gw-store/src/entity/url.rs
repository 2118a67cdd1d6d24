//! Personal RPC URLs.

pub(crate) mod personal_urls {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "personal_urls")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub secret_hash: String,
        pub user_id: Uuid,
        pub org_id: Uuid,
        pub name: String,
        pub scope: String,
        pub contracts: Json,
        pub created_at: i64,
        pub expires_at: i64,
        pub login: Option<Uuid>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
