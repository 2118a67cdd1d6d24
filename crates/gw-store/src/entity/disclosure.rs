//! Requests and grants of disclosure.

pub(crate) mod disclosure_requests {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "disclosure_requests")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub requester_user_id: Option<Uuid>,
        pub requester_did: Option<String>,
        pub target_user_id: Uuid,
        pub org_id: Uuid,
        pub disclosure_level: String,
        pub scope: Json,
        pub reason: String,
        pub legal_basis: Option<String>,
        pub status: String,
        pub requested_at: i64,
        pub expires_at: Option<i64>,
        pub decided_at: Option<i64>,
        pub decided_by_user_id: Option<Uuid>,
        pub decision_reason: Option<String>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod disclosure_grants {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "disclosure_grants")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub request_id: Uuid,
        pub owner_user_id: Uuid,
        pub grantee_did: Option<String>,
        pub org_id: Uuid,
        pub disclosure_level: String,
        pub scope: Json,
        pub include_future_addresses: bool,
        pub granted_at: i64,
        pub expires_at: i64,
        pub revoked_at: Option<i64>,
        pub revoked_reason: Option<String>,
        /// When the end was recorded: at the revocation, or by the sweeper.
        pub ended_at: Option<i64>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub secret: Option<Vec<u8>>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
