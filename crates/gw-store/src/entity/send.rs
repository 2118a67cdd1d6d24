//! Tables that the send path writes.

pub(crate) mod reservations {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "reservations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub org_id: Uuid,
        pub user_id: Uuid,
        pub kind: String,
        pub sender: String,
        /// Decimal text: nonces have 64 bits, signed columns 63.
        pub nonce: String,
        pub tx_hash: Option<String>,
        pub state: String,
        pub expires_at: i64,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod tx_visibility {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "tx_visibility")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub tx_hash: String,
        pub sender_user_id: Uuid,
        pub recipients: Json,
        pub active: bool,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
