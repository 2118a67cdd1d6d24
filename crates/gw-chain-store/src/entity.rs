//! SeaORM 2 entities of the tables: raw column types without meaning. `convert` converts them to rows.
//!
//! Addresses, hashes, code and untrusted text are bytes, amounts 32 big-endian bytes; other unsigned numbers are stored
//! as the signed number with the same bits. Block numbers and ids stay below 2^63.
#![expect(
    unreachable_pub,
    reason = "the derive makes its items as public as the model, whatever the module is"
)]

/// The headers of blocks, with the ids of their rows.
pub(crate) mod blocks {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "blocks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hash: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub parent_hash: Vec<u8>,
        pub timestamp: i64,
        pub gas_limit: i64,
        pub gas_used: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub base_fee_per_gas: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub difficulty: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub total_difficulty: Option<Vec<u8>>,
        pub nonce: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub miner: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub extra_data: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub state_root: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub transactions_root: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub receipts_root: Vec<u8>,
        pub frames_complete: bool,
        pub first_transaction: i64,
        pub transaction_count: i64,
        pub first_transfer: i64,
        pub transfer_count: i64,
        pub first_frame: i64,
        pub frame_count: i64,
        pub first_log: i64,
        pub log_count: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Transactions with their receipts, and where their rows are.
pub(crate) mod transactions {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "transactions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub block_number: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub hash: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub from_address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub to_address: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub created_contract: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub value: Vec<u8>,
        pub gas_limit: i64,
        pub gas_used: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub effective_gas_price: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub max_fee_per_gas: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub max_priority_fee_per_gas: Option<Vec<u8>>,
        pub nonce: i64,
        pub transaction_type: i16,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub input: Vec<u8>,
        pub success: bool,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub error: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub revert_reason: Option<Vec<u8>>,
        pub first_transfer: i64,
        pub transfer_count: i64,
        /// The position in the block of its first frame.
        pub frame_position: i64,
        pub frame_count: i64,
        pub first_log: i64,
        pub log_count: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Blocks whose rows changed after they were appended.
pub(crate) mod changed_blocks {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "changed_blocks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        pub generation: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Event logs.
pub(crate) mod logs {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "logs")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub transaction_id: i64,
        pub log_index: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub topic0: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub topic1: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub topic2: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub topic3: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub data: Vec<u8>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Token transfers.
pub(crate) mod token_transfers {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "token_transfers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub transaction_id: i64,
        pub log_index: i64,
        pub batch_position: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub token_address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub from_address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub to_address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub value: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub token_id: Option<Vec<u8>>,
        pub standard: i16,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Internal transactions. Their id is the first id of the block plus the position: a trace that is completed later
/// changes the ids of later frames, not their rows.
pub(crate) mod frames {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "frames")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub block_number: i64,
        #[sea_orm(primary_key, auto_increment = false)]
        pub position: i64,
        pub transaction_id: i64,
        /// Each index as four big-endian bytes.
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub trace_address: Vec<u8>,
        pub call_type: i16,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub from_address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub to_address: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub value: Vec<u8>,
        pub gas: i64,
        pub gas_used: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub input: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub output: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub error: Option<Vec<u8>>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Created contracts.
pub(crate) mod contracts {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "contracts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub address: Vec<u8>,
        #[sea_orm(primary_key, auto_increment = false)]
        pub block_number: i64,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub creator: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub creation_transaction: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub code_hash: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub code: Vec<u8>,
        pub proxy_kind: Option<i16>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub implementation: Option<Vec<u8>>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Changes of proxies after their creation.
pub(crate) mod proxy_changes {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "proxy_changes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub address: Vec<u8>,
        #[sea_orm(primary_key, auto_increment = false)]
        pub block_number: i64,
        pub proxy_kind: Option<i16>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub implementation: Option<Vec<u8>>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Token contracts.
pub(crate) mod tokens {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub address: Vec<u8>,
        /// The block of the first transfer.
        pub block_number: i64,
        pub standard: i16,
        pub metadata_state: i16,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub name: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub symbol: Option<Vec<u8>>,
        pub decimals: Option<i16>,
        /// The start of the name in lower case, for searches.
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub name_key: Option<Vec<u8>>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub symbol_key: Option<Vec<u8>>,
        /// The block at which the metadata was read.
        pub metadata_block: Option<i64>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)", nullable)]
        pub total_supply: Option<Vec<u8>>,
        pub supply_block: Option<i64>,
        pub holder_count: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Positive balances in tokens. `token_id` is empty for tokens without ids.
pub(crate) mod token_balances {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "token_balances")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub token_address: Vec<u8>,
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub holder: Vec<u8>,
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub token_id: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub balance: Vec<u8>,
        pub block_number: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Balances in wei.
pub(crate) mod balances {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "balances")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub address: Vec<u8>,
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub balance: Vec<u8>,
        pub block_number: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// The queue of work that is not part of a block's commit.
pub(crate) mod tasks {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "tasks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: i16,
        #[sea_orm(primary_key, auto_increment = false)]
        #[sea_orm(column_type = "VarBinary(StringLen::None)")]
        pub key: Vec<u8>,
        pub attempts: i64,
        pub due_at: i64,
        /// Rises with each request for the same work, so that a request during the work is not lost.
        pub version: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// One row: the chain and the numbers of the whole store.
pub(crate) mod chain_state {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "chain_state")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub chain_id: Option<i64>,
        pub generation: i64,
        pub finalized: Option<i64>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// One row: the instance that writes.
pub(crate) mod writer_lease {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "writer_lease")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub holder: Option<Uuid>,
        pub name: String,
        pub expires_at: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
