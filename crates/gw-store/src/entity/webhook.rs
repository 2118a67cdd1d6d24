//! Webhooks of organizations, and the events that wait for delivery.

pub(crate) mod webhooks {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "webhooks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub org_id: Uuid,
        pub url: String,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub secret: Vec<u8>,
        pub created_at: i64,
        pub updated_at: i64,
        pub last_success_at: Option<i64>,
        pub last_failure_at: Option<i64>,
        pub last_failure: Option<String>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod webhook_events {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "webhook_events")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Uuid,
        pub event_type: String,
        pub request_id: Option<Uuid>,
        pub grant_id: Option<Uuid>,
        pub status: Option<String>,
        pub created_at: i64,
        /// Number of failed attempts.
        pub attempts: i64,
        pub next_attempt_at: i64,
        /// The worker that delivers it.
        pub claim: Option<Uuid>,
        /// When another worker may take it.
        pub claimed_until: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
