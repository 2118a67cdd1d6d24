//! The tables of the first release.

use sea_orm_migration::{
    async_trait,
    sea_orm::{ConnectionTrait, DbErr},
    sea_query::{ColumnDef, Index, Table, TableCreateStatement},
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct ChainTables;

impl MigrationName for ChainTables {
    fn name(&self) -> &str {
        "m0001_chain"
    }
}

/// Each index with its reason. Rows of the large tables have no index besides their key: the posting index finds them
/// by address, and a block or transaction knows the ids of its rows.
const INDICES: [&str; 18] = [
    // A block by its hash, and suggestions for the start of a hash.
    "CREATE UNIQUE INDEX blocks_hash_key ON blocks (hash)",
    // The block of a frame id.
    "CREATE INDEX blocks_first_frame_idx ON blocks (first_frame, number)",
    // The first block that changed since a generation.
    "CREATE INDEX changed_blocks_generation_idx ON changed_blocks (generation, number)",
    // A transaction by its hash, and suggestions. Not unique: early chains have repeated hashes.
    "CREATE INDEX transactions_hash_idx ON transactions (hash)",
    // The contracts and proxy changes of a block; a reorganization removes the newest.
    "CREATE INDEX contracts_block_number_idx ON contracts (block_number, address)",
    "CREATE INDEX proxy_changes_block_number_idx ON proxy_changes (block_number, address)",
    // Pages of tokens, and a reorganization removes the newest.
    "CREATE INDEX tokens_block_number_idx ON tokens (block_number, address)",
    // Pages of tokens of one standard.
    "CREATE INDEX tokens_standard_idx ON tokens (standard, block_number, address)",
    // Suggestions for the start of a symbol or name.
    "CREATE INDEX tokens_symbol_key_idx ON tokens (symbol_key)",
    "CREATE INDEX tokens_name_key_idx ON tokens (name_key)",
    // A reorganization discards what was read at removed blocks.
    "CREATE INDEX tokens_metadata_block_idx ON tokens (metadata_block)",
    "CREATE INDEX tokens_supply_block_idx ON tokens (supply_block)",
    "CREATE INDEX balances_block_number_idx ON balances (block_number)",
    "CREATE INDEX token_balances_block_number_idx ON token_balances (block_number)",
    // The tokens of an address.
    "CREATE INDEX token_balances_holder_idx ON token_balances (holder, token_address, token_id)",
    // The holders of a token, the largest first.
    "CREATE INDEX token_balances_balance_idx ON token_balances (token_address, balance, holder, token_id)",
    // The tasks that are due.
    "CREATE INDEX tasks_due_at_idx ON tasks (kind, due_at)",
    // Blocks whose trace is missing, for the state of the indexer.
    "CREATE INDEX blocks_frames_complete_idx ON blocks (number) WHERE NOT frames_complete",
];

/// The one row of each of the tables that have one.
const ROWS: [&str; 2] = [
    "INSERT INTO chain_state (id, chain_id, generation, finalized) VALUES (1, NULL, 1, NULL)",
    "INSERT INTO writer_lease (id, holder, name, expires_at) VALUES (1, NULL, '', 0)",
];

#[async_trait::async_trait]
impl MigrationTrait for ChainTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let tables = [
            blocks(),
            changed_blocks(),
            transactions(),
            logs(),
            token_transfers(),
            frames(),
            contracts(),
            proxy_changes(),
            tokens(),
            token_balances(),
            balances(),
            tasks(),
            chain_state(),
            writer_lease(),
        ];
        for table in tables {
            manager.create_table(table).await?;
        }
        for sql in INDICES.into_iter().chain(ROWS) {
            manager.get_connection().execute_unprepared(sql).await?;
        }
        Ok(())
    }
}

fn blocks() -> TableCreateStatement {
    Table::create()
        .table("blocks")
        .col(number("number").primary_key())
        .col(bytes("hash"))
        .col(bytes("parent_hash"))
        .col(number("timestamp"))
        .col(number("gas_limit"))
        .col(number("gas_used"))
        .col(bytes_null("base_fee_per_gas"))
        .col(bytes("difficulty"))
        .col(bytes_null("total_difficulty"))
        .col(number("nonce"))
        .col(bytes("miner"))
        .col(bytes("extra_data"))
        .col(bytes("state_root"))
        .col(bytes("transactions_root"))
        .col(bytes("receipts_root"))
        .col(flag("frames_complete"))
        .col(number("first_transaction"))
        .col(number("transaction_count"))
        .col(number("first_transfer"))
        .col(number("transfer_count"))
        .col(number("first_frame"))
        .col(number("frame_count"))
        .col(number("first_log"))
        .col(number("log_count"))
        .to_owned()
}

fn changed_blocks() -> TableCreateStatement {
    Table::create()
        .table("changed_blocks")
        .col(number("number").primary_key())
        .col(number("generation"))
        .to_owned()
}

fn transactions() -> TableCreateStatement {
    Table::create()
        .table("transactions")
        .col(number("id").primary_key())
        .col(number("block_number"))
        .col(bytes("hash"))
        .col(bytes("from_address"))
        .col(bytes_null("to_address"))
        .col(bytes_null("created_contract"))
        .col(bytes("value"))
        .col(number("gas_limit"))
        .col(number("gas_used"))
        .col(bytes("effective_gas_price"))
        .col(bytes_null("max_fee_per_gas"))
        .col(bytes_null("max_priority_fee_per_gas"))
        .col(number("nonce"))
        .col(small("transaction_type"))
        .col(bytes("input"))
        .col(flag("success"))
        .col(bytes_null("error"))
        .col(bytes_null("revert_reason"))
        .col(number("first_transfer"))
        .col(number("transfer_count"))
        .col(number("frame_position"))
        .col(number("frame_count"))
        .col(number("first_log"))
        .col(number("log_count"))
        .to_owned()
}

fn logs() -> TableCreateStatement {
    Table::create()
        .table("logs")
        .col(number("id").primary_key())
        .col(number("transaction_id"))
        .col(number("log_index"))
        .col(bytes("address"))
        .col(bytes_null("topic0"))
        .col(bytes_null("topic1"))
        .col(bytes_null("topic2"))
        .col(bytes_null("topic3"))
        .col(bytes("data"))
        .to_owned()
}

fn token_transfers() -> TableCreateStatement {
    Table::create()
        .table("token_transfers")
        .col(number("id").primary_key())
        .col(number("transaction_id"))
        .col(number("log_index"))
        .col(number("batch_position"))
        .col(bytes("token_address"))
        .col(bytes("from_address"))
        .col(bytes("to_address"))
        .col(bytes("value"))
        .col(bytes_null("token_id"))
        .col(small("standard"))
        .to_owned()
}

fn frames() -> TableCreateStatement {
    Table::create()
        .table("frames")
        .col(number("block_number"))
        .col(number("position"))
        .col(number("transaction_id"))
        .col(bytes("trace_address"))
        .col(small("call_type"))
        .col(bytes("from_address"))
        .col(bytes_null("to_address"))
        .col(bytes("value"))
        .col(number("gas"))
        .col(number("gas_used"))
        .col(bytes("input"))
        .col(bytes("output"))
        .col(bytes_null("error"))
        .primary_key(Index::create().col("block_number").col("position"))
        .to_owned()
}

fn contracts() -> TableCreateStatement {
    Table::create()
        .table("contracts")
        .col(bytes("address"))
        .col(number("block_number"))
        .col(bytes_null("creator"))
        .col(bytes_null("creation_transaction"))
        .col(bytes("code_hash"))
        .col(bytes("code"))
        .col(small_null("proxy_kind"))
        .col(bytes_null("implementation"))
        .primary_key(Index::create().col("address").col("block_number"))
        .to_owned()
}

fn proxy_changes() -> TableCreateStatement {
    Table::create()
        .table("proxy_changes")
        .col(bytes("address"))
        .col(number("block_number"))
        .col(small_null("proxy_kind"))
        .col(bytes_null("implementation"))
        .primary_key(Index::create().col("address").col("block_number"))
        .to_owned()
}

fn tokens() -> TableCreateStatement {
    Table::create()
        .table("tokens")
        .col(bytes("address").primary_key())
        .col(number("block_number"))
        .col(small("standard"))
        .col(small("metadata_state"))
        .col(bytes_null("name"))
        .col(bytes_null("symbol"))
        .col(small_null("decimals"))
        .col(bytes_null("name_key"))
        .col(bytes_null("symbol_key"))
        .col(number_null("metadata_block"))
        .col(bytes_null("total_supply"))
        .col(number_null("supply_block"))
        .col(number("holder_count"))
        .to_owned()
}

fn token_balances() -> TableCreateStatement {
    Table::create()
        .table("token_balances")
        .col(bytes("token_address"))
        .col(bytes("holder"))
        .col(bytes("token_id"))
        .col(bytes("balance"))
        .col(number("block_number"))
        .primary_key(Index::create().col("token_address").col("holder").col("token_id"))
        .to_owned()
}

fn balances() -> TableCreateStatement {
    Table::create()
        .table("balances")
        .col(bytes("address").primary_key())
        .col(bytes("balance"))
        .col(number("block_number"))
        .to_owned()
}

fn tasks() -> TableCreateStatement {
    Table::create()
        .table("tasks")
        .col(small("kind"))
        .col(bytes("key"))
        .col(number("attempts"))
        .col(number("due_at"))
        .col(number("version"))
        .primary_key(Index::create().col("kind").col("key"))
        .to_owned()
}

fn chain_state() -> TableCreateStatement {
    Table::create()
        .table("chain_state")
        .col(number("id").primary_key())
        .col(number_null("chain_id"))
        .col(number("generation"))
        .col(number_null("finalized"))
        .to_owned()
}

fn writer_lease() -> TableCreateStatement {
    Table::create()
        .table("writer_lease")
        .col(number("id").primary_key())
        .col(id_null("holder"))
        .col(text("name"))
        .col(number("expires_at"))
        .to_owned()
}

fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).binary().not_null().to_owned()
}

fn bytes_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).binary().null().to_owned()
}

fn number(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().not_null().to_owned()
}

fn number_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().null().to_owned()
}

fn small(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).small_integer().not_null().to_owned()
}

fn small_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).small_integer().null().to_owned()
}

fn flag(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).boolean().not_null().to_owned()
}

fn id_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).uuid().null().to_owned()
}

fn text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().not_null().to_owned()
}
