//! Contracts, grants, and contracts whose registration ended or was deleted.

pub(crate) mod contracts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "contracts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Uuid,
        pub address: String,
        pub name: String,
        #[sea_orm(column_type = "Text", nullable)]
        pub abi: Option<String>,
        pub metadata: Json,
        pub deployed_at: Option<i64>,
        pub deployed_by_user_id: Option<Uuid>,
        pub allow_visibleto_unlock: bool,
        pub events_allow_dynamic_payload: bool,
        pub created_at: i64,
        pub updated_at: i64,
        pub trusted_router: bool,
        /// The first block that belongs to the organization, if another one had the address before.
        pub owned_from: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod contract_grants {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "contract_grants")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub contract_id: Uuid,
        pub group_id: Uuid,
        /// Claim names in fixed order, separated by commas.
        pub claims: String,
        pub functions: Option<Json>,
        pub event_rules: Option<Json>,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod retired_contracts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "retired_contracts")]
    pub struct Model {
        /// The id of the deleted registration.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub org_id: Uuid,
        pub deployed_by_user_id: Option<Uuid>,
        pub since: i64,
        pub retired_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod past_contracts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "past_contracts")]
    pub struct Model {
        /// The id of the registration that ended.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub org_id: Uuid,
        #[sea_orm(column_type = "Text", nullable)]
        pub abi: Option<String>,
        pub metadata: Json,
        pub deployed_by_user_id: Option<Uuid>,
        pub allow_visibleto_unlock: bool,
        pub events_allow_dynamic_payload: bool,
        /// The grants at the end of the registration.
        pub grants: Json,
        /// The first block that belonged to the organization, if another one had the address before.
        pub owned_from: Option<i64>,
        /// The last block that belonged to the organization; `None`: this registration shows no block.
        pub owned_until: Option<i64>,
        pub since: i64,
        pub ended_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
