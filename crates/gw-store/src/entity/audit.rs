//! The tables of the audit database.

/// One writer's chain within a stream, and its end.
pub(crate) mod chains {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "chains")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub stream: String,
        pub shard: Uuid,
        pub fence: i64,
        pub holder: String,
        pub leased_until: i64,
        /// The highest number the writer is known to have given out (HD25).
        pub issued: i64,
        /// How many entries are sealed, so the number of the next one.
        pub size: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub head_hash: Vec<u8>,
        pub head_time: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Sealed entries of all chains.
pub(crate) mod entries {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "entries")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        pub seq: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hash: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub bytes: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub openings: Vec<u8>,
        pub kind: String,
        pub created_at: i64,
        pub org_id: Option<Uuid>,
        pub external_id: Option<String>,
        pub correlation_id: Option<String>,
        pub method: Option<String>,
        pub status_code: Option<i32>,
        pub denial_reason: Option<String>,
        pub action: Option<String>,
        pub actor_id: Option<Uuid>,
        pub resource_type: Option<String>,
        pub resource_id: Option<String>,
        pub tx_hash: Option<String>,
        pub outbox_id: Option<i64>,
        /// The policy store whose outbox row it was.
        pub store_id: Option<Uuid>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Signed notes, oldest first.
pub(crate) mod checkpoints {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "checkpoints")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        pub size: i64,
        pub note: String,
        /// How often the chain had been re-anchored.
        pub era: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Signed notes about re-anchorings, oldest first.
pub(crate) mod discontinuities {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "discontinuities")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub stream: String,
        pub shard: Uuid,
        pub note: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// What is left of pruned beginnings of chains, the newest with the greatest size.
pub(crate) mod anchors {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "anchors")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        /// How many entries are gone.
        pub size: i64,
        /// The anchor (`gw_audit::Anchor`).
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub bytes: Vec<u8>,
        /// Its signature.
        pub note: String,
        /// The signed checkpoint that covers what is gone; its note stays.
        pub checkpoint_size: i64,
        pub reason: String,
        /// The retention or the number of rows that was kept to.
        pub bound: String,
        /// The first entry that the prune of this row removed.
        pub first_seq: i64,
        pub lowest_id: i64,
        pub highest_id: i64,
        pub created_at: i64,
        /// Whether an audit entry tells of it.
        pub logged: bool,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Hashes of removed entries, 256 in a row (tlog-tiles, height 8).
pub(crate) mod hash_tiles {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "hash_tiles")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        /// The number of its first entry divided by 256.
        pub tile: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hashes: Vec<u8>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Which instance does the work that only one may do at a time.
pub(crate) mod leases {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "leases")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub name: String,
        pub holder: String,
        pub leased_until: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
