//! The audit outbox, instances, journal heads, signed heads and legal holds. The epoch and its change rows have no
//! entity: only `dialect` and the triggers access them.

pub(crate) mod audit_outbox {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "audit_outbox")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub action: String,
        pub actor_id: Option<Uuid>,
        pub actor_external_id: String,
        pub created_at: i64,
        pub ip_address: Option<String>,
        pub org_id: Option<Uuid>,
        pub resource_id: Option<String>,
        pub resource_name: Option<String>,
        pub resource_type: String,
        pub old_value: Option<String>,
        pub new_value: Option<String>,
        pub correlation_id: Option<String>,
        /// The salts of the entry's personal values derive from it: sealed again, the entry has the same bytes.
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub salt_seed: Option<Vec<u8>>,
        /// MAC over all columns above, with a key that is not in the database.
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub mac: Option<Vec<u8>>,
        /// When the audit store had the entry; the row is kept for a while in case the audit store loses it.
        pub sealed_at: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        by id,
        Action: bounds::OUTBOX,
        ActorExternalId: bounds::OUTBOX,
        IpAddress: bounds::OUTBOX,
        ResourceId: bounds::OUTBOX,
        ResourceName: bounds::OUTBOX,
        ResourceType: bounds::OUTBOX,
        OldValue: bounds::OUTBOX,
        NewValue: bounds::OUTBOX,
        CorrelationId: bounds::OUTBOX,
        SaltSeed: bounds::HASH,
        Mac: bounds::HASH,
    }
}

pub(crate) mod instances {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "instances")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub name: String,
        pub shared_cache: bool,
        pub started_at: i64,
        pub expires_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(crate) mod journal_heads {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "journal_heads")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub shard: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub stream: String,
        /// Number of records that the writer has numbered.
        pub issued: i64,
        pub noted_at: i64,
        /// When lost records of this chain were reported.
        pub reported_at: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        Stream: bounds::NAME
    }
}

pub(crate) mod signed_heads {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "signed_heads")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub origin: String,
        pub size: i64,
        pub note: String,
        pub noted_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        Origin: bounds::NAME, Note: bounds::NOTE
    }
}

/// Legal holds on the audit log.
pub(crate) mod legal_holds {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "legal_holds")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub org_id: Option<Uuid>,
        pub stream: Option<String>,
        pub reason: String,
        pub placed_by: String,
        pub created_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        by id,
        Stream: bounds::NAME, Reason: bounds::NOTE, PlacedBy: bounds::NOTE
    }
}
