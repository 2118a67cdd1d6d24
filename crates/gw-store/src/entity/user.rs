//! Users, with their memberships, addresses, tokens and records.

pub(crate) mod users {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "users")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub external_id: String,
        pub kyc: bool,
        pub banned: bool,
        pub note: String,
        pub metadata: Json,
        pub auth_tenant_id: Option<String>,
        pub tokens_valid_from: Option<i64>,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod user_tombstones {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "user_tombstones")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub external_id: String,
        pub banned: bool,
        pub deleted_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod memberships {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "memberships")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub user_id: Uuid,
        pub group_id: Uuid,
        pub source: String,
        pub zk_credential_ref: Option<String>,
        pub expires_at: Option<i64>,
        pub created_at: i64,
        pub updated_at: i64,
        pub state: String,
        pub accepted_at: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod org_user_records {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "org_user_records")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Uuid,
        pub external_id: String,
        pub kyc: bool,
        pub banned: bool,
        pub note: String,
        pub metadata: Json,
        pub created_at: i64,
        pub updated_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod declined_organizations {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "declined_organizations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Uuid,
        pub external_id: String,
        pub declined_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod address_links {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "address_links")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub user_id: Uuid,
        pub address: String,
        pub link_type: String,
        pub contract_wallet: bool,
        pub verified_at: i64,
        pub ens_name: Option<String>,
        pub ens_resolved_at: Option<i64>,
        pub revoked_at: Option<i64>,
        pub revoked_by_admin: bool,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod former_links {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "former_links")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub address: String,
        pub external_id: String,
        pub revoked_by_admin: bool,
        pub ended_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod contract_wallet_proofs {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "contract_wallet_proofs")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub link_id: Uuid,
        pub hash: String,
        pub signature: String,
        pub checked_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod login_nullifiers {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "login_nullifiers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub session_id: String,
        pub nullifier: String,
        pub external_id: String,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod refresh_tokens {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "refresh_tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hash: Vec<u8>,
        pub family: Uuid,
        pub login: Option<Uuid>,
        pub user_id: Uuid,
        pub amr: String,
        pub family_started: i64,
        pub created_at: i64,
        pub expires_at: i64,
        pub used_at: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod revocations {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "revocations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub until: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
