//! Post-execution results of sends.

pub(crate) mod watched_sends {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "watched_sends")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub tx_hash: Option<String>,
        pub sender: String,
        /// Decimal text: nonces have 64 bits, signed columns 63.
        pub nonce: String,
        pub external_id: String,
        pub org_id: Uuid,
        pub org_ids: Json,
        pub is_named: bool,
        pub created_at: i64,
        pub block_number: Option<i64>,
        pub judged_block: Option<String>,
        pub judged_number: Option<i64>,
        pub judged_runs: Option<Json>,
        pub judged_may_vary: Option<bool>,
        pub judged_changes: Option<Json>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod convictions {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "convictions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub tx_hash: String,
        pub block_hash: String,
        pub sender: Option<String>,
        pub external_id: String,
        pub org_id: Option<Uuid>,
        pub touched_org_ids: Json,
        pub wronged_org_ids: Json,
        pub reason: String,
        pub created_at: i64,
        pub cleared_at: Option<i64>,
        pub cleared_by: Option<String>,
        pub place: i64,
        pub logs: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod suspensions {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "suspensions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub external_id: String,
        pub org_id: Option<Uuid>,
        pub conviction_id: Option<Uuid>,
        pub tx_hash: String,
        pub block_hash: String,
        pub reason: String,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod quarantines {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "quarantines")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub org_id: Option<Uuid>,
        pub conviction_id: Option<Uuid>,
        pub side_external_id: Option<String>,
        pub side_org_ids: Json,
        pub tx_hash: String,
        pub block_hash: String,
        pub reason: String,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod withheld_changes {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "withheld_changes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub conviction_id: Uuid,
        pub address: String,
        pub org_id: Option<Uuid>,
        pub side_org_ids: Json,
        pub block_number: i64,
        pub block_time: i64,
        pub place: i64,
        pub change: Json,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
