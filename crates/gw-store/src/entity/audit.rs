//! The tables of the audit database.

/// Chains: one per writer and stream, each with its end.
pub(crate) mod chains {
    use crate::entity::bounds::{self, bounded};
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
        /// The highest sequence number that the writer is known to have issued (HD25).
        pub issued: i64,
        /// Number of sealed entries, which is the sequence number of the next one.
        pub size: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub head_hash: Vec<u8>,
        pub head_time: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        by id,
        Stream: bounds::NAME, Holder: bounds::NAME, HeadHash: bounds::HASH
    }
}

/// Sealed entries of all chains.
pub(crate) mod entries {
    use crate::entity::bounds::{self, bounded};
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
        /// The policy store of the outbox row.
        pub store_id: Option<Uuid>,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        by id,
        Hash: bounds::HASH,
        Bytes: bounds::ENTRY,
        Openings: bounds::ENTRY,
        Kind: bounds::NAME,
        ExternalId: bounds::NOTE,
        CorrelationId: bounds::NOTE,
        Method: bounds::NOTE,
        DenialReason: bounds::NOTE,
        Action: bounds::NOTE,
        ResourceType: bounds::NOTE,
        ResourceId: bounds::NOTE,
        TxHash: bounds::NOTE,
    }
}

/// Signed notes, oldest first.
pub(crate) mod checkpoints {
    use crate::entity::bounds::{self, bounded};
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
        /// How often the chain had been re-anchored before.
        pub era: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        Note: bounds::NOTE
    }
}

/// Signed notes about re-anchorings, oldest first.
pub(crate) mod discontinuities {
    use crate::entity::bounds::{self, bounded};
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

    bounded! {
        Stream: bounds::NAME, Note: bounds::NOTE
    }
}

/// Anchors of pruned chains; the newest has the largest size.
pub(crate) mod anchors {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "anchors")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        /// Number of pruned entries.
        pub size: i64,
        /// The anchor (`gw_audit::Anchor`).
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub bytes: Vec<u8>,
        /// Its signature.
        pub note: String,
        /// The signed checkpoint that covers the pruned entries; its note is kept.
        pub checkpoint_size: i64,
        pub reason: String,
        /// The retention or the maximum number of rows.
        pub bound: String,
        /// The first entry that the prune of this row removed.
        pub first_seq: i64,
        pub lowest_id: i64,
        pub highest_id: i64,
        pub created_at: i64,
        /// Whether an audit entry about the prune exists.
        pub logged: bool,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        Bytes: bounds::ANCHOR, Note: bounds::NOTE, Reason: bounds::NAME, Bound: bounds::NAME
    }
}

/// Hashes of removed entries, 256 in a row (tlog-tiles, height 8).
pub(crate) mod hash_tiles {
    use crate::entity::bounds::{self, bounded};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "hash_tiles")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub chain_id: i64,
        /// The sequence number of its first entry divided by 256.
        pub tile: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hashes: Vec<u8>,
    }

    impl ActiveModelBehavior for ActiveModel {}

    bounded! {
        Hashes: bounds::TILE
    }
}

/// Starts of the journals; rows are only inserted.
pub(crate) mod journal_starts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "journal_starts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub shard: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        pub start_id: Uuid,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Leases for work that one instance does at a time.
pub(crate) mod leases {
    use crate::entity::bounds::{self, bounded};
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

    bounded! {
        by id,
        Name: bounds::NAME, Holder: bounds::NAME
    }
}
