//! The records of the API (spec/40 section 5). They are written by hand from judged rows; see `rows`.

use serde::Serialize;
use std::{collections::BTreeMap, ops::Range};

/// The text of an address, hash or party that the viewer may not see.
pub(crate) const PRIVATE: &str = "[PRIVATE]";

/// Why each address that is printed in clear in the same object is shown.
pub(crate) type AddressMetadata = BTreeMap<String, &'static str>;

/// A block. Its gas and its size are not shown: they tell how much others did.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    /// The number.
    #[schema(example = 1200)]
    pub(crate) number: u64,
    /// The hash.
    pub(crate) hash: String,
    /// The hash of the block before it.
    pub(crate) parent_hash: String,
    /// Seconds since 1970.
    #[schema(example = 1_700_000_000_i64)]
    pub(crate) timestamp: i64,
    /// The gas limit.
    pub(crate) gas_limit: u64,
    /// The base fee in wei; left out before EIP-1559, and if the operator hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_fee_per_gas: Option<String>,
    /// The number of its transactions that the viewer sees.
    #[schema(example = 3)]
    pub(crate) transaction_count: u64,
    /// The difficulty, a decimal number.
    pub(crate) difficulty: String,
    /// The sum of all difficulties up to this block, a decimal number; left out if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_difficulty: Option<String>,
    /// The nonce of the header, in hex.
    pub(crate) nonce: String,
    /// The recipient of the fees.
    pub(crate) miner: String,
    /// The extra data of the header, in hex.
    pub(crate) extra_data: String,
    /// The root of the state; zero unless the operator shows roots.
    pub(crate) state_root: String,
    /// The root of the transactions; zero unless the operator shows roots.
    pub(crate) transactions_root: String,
    /// The root of the receipts; zero unless the operator shows roots.
    pub(crate) receipts_root: String,
    /// The time of the block, RFC 3339.
    pub(crate) created_at: String,
}

/// A transaction. Members that the viewer may not see are empty or left out.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transaction {
    /// The hash; `[PRIVATE]` if the viewer sees the transaction only by a grant below full disclosure.
    pub(crate) hash: String,
    /// The number of its block.
    pub(crate) block_number: u64,
    /// The time of its block, in seconds since 1970.
    pub(crate) block_timestamp: i64,
    /// The number of transactions before it in its block that the viewer sees.
    pub(crate) tx_index: u64,
    /// The sender: an address, an alias, or `[PRIVATE]`.
    pub(crate) from: String,
    /// The recipient: an address, an alias, or `[PRIVATE]`; `null` for a deployment.
    pub(crate) to: Option<String>,
    /// The deployed contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contract_address: Option<String>,
    /// The amount in wei, a decimal number; empty if the viewer may not see it.
    #[schema(example = "1000000000000000000")]
    pub(crate) value: String,
    /// The gas that was used.
    pub(crate) gas_used: u64,
    /// The price per gas that was paid, in wei, a decimal number.
    pub(crate) gas_price: String,
    /// The gas limit.
    pub(crate) gas_limit: u64,
    /// The highest price per gas in wei (EIP-1559).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_fee_per_gas: Option<String>,
    /// The highest tip per gas in wei (EIP-1559).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_priority_fee_per_gas: Option<String>,
    /// The nonce of the sender; left out if the viewer may not see the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<u64>,
    /// The type (EIP-2718).
    pub(crate) tx_type: u8,
    /// The calldata in hex; empty if the viewer may not see it.
    pub(crate) input_data: String,
    /// 1 if it succeeded, else 0.
    pub(crate) status: u8,
    /// The error of a failed transaction, if the viewer may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The reason of a revert, if the viewer may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revert_reason: Option<String>,
    /// The time of its block, RFC 3339.
    pub(crate) created_at: String,
    /// `coin_transfer`, `contract_creation`, `contract_call`, `token_transfer`: only with `with_categories=true`.
    pub(crate) tx_categories: Vec<&'static str>,
    /// The number of its token transfers that the viewer sees: only with `with_categories=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_transfer_count: Option<u64>,
    /// Why each address in clear is shown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) address_metadata: AddressMetadata,
}

/// A token transfer: one per moved token id.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenTransfer {
    /// The hash of its transaction; `[PRIVATE]` if the viewer does not see the transaction.
    pub(crate) tx_hash: String,
    /// The number of transfers before it in its transaction that the viewer sees.
    pub(crate) log_index: u64,
    /// The token contract.
    pub(crate) token_address: String,
    /// The previous owner: an address, an alias, or `[PRIVATE]`.
    pub(crate) from: String,
    /// The new owner: an address, an alias, or `[PRIVATE]`.
    pub(crate) to: String,
    /// The amount, a decimal number; empty if the viewer may not see it.
    pub(crate) value: String,
    /// The number of its block.
    pub(crate) block_number: u64,
    /// The time of its block, in seconds since 1970.
    pub(crate) timestamp: i64,
    /// `transfer`, `mint` or `burn`.
    pub(crate) transfer_type: &'static str,
    /// `ERC-20`, `ERC-721` or `ERC-1155`.
    pub(crate) token_type: &'static str,
    /// The token id, a decimal number, if the token has ids and the viewer may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_id: Option<String>,
    /// Always false: transfers are read from events.
    pub(crate) is_internal: bool,
    /// Why each address in clear is shown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) address_metadata: AddressMetadata,
}

/// An internal transaction: a call that a contract made.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InternalTransaction {
    /// The hash of its transaction; `[PRIVATE]` if the viewer sees the transaction only by a grant below full
    /// disclosure.
    pub(crate) tx_hash: String,
    /// The number of its block.
    pub(crate) block_number: u64,
    /// The number of internal transactions before it in its transaction that the viewer sees.
    #[schema(example = "0")]
    pub(crate) trace_address: String,
    /// The caller: an address, an alias, or `[PRIVATE]`.
    pub(crate) from: String,
    /// The called address or the created contract; `null` for a failed creation.
    pub(crate) to: Option<String>,
    /// The amount in wei that it moves, a decimal number; empty if the viewer may not see it. A `DELEGATECALL` moves
    /// nothing.
    pub(crate) value: String,
    /// The gas limit.
    pub(crate) gas: u64,
    /// The gas that was used.
    pub(crate) gas_used: u64,
    /// The calldata in hex, if the viewer may see it and `inputData` of the transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// The returned data in hex, if the viewer may see it and `inputData` of the transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// The instruction.
    pub(crate) call_type: &'static str,
    /// The error, if the viewer may see it and `inputData` of the transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The time of its block, in seconds since 1970.
    pub(crate) timestamp: i64,
    /// Why each address in clear is shown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) address_metadata: AddressMetadata,
}

/// An event log. Words that the viewer may not see are zero.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    /// The hash of its transaction; `[PRIVATE]` if the viewer does not see the transaction.
    pub(crate) tx_hash: String,
    /// The number of logs before it in its transaction that the viewer sees.
    pub(crate) log_index: u64,
    /// The contract that emitted it.
    pub(crate) address: String,
    /// The first topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic0: Option<String>,
    /// The second topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic1: Option<String>,
    /// The third topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic2: Option<String>,
    /// The fourth topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic3: Option<String>,
    /// The data in hex.
    pub(crate) data: String,
    /// The number of its block.
    pub(crate) block_number: u64,
    /// The time of its block, in seconds since 1970.
    pub(crate) timestamp: i64,
    /// Always false: logs of removed blocks are not listed.
    pub(crate) removed: bool,
}

/// The id of the chain.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExplorerChainIDResponse {
    /// The id (EIP-155).
    #[schema(example = 1337)]
    pub(crate) chain_id: u64,
}

/// The number of the newest block.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExplorerBlockNumberResponse {
    /// The number.
    #[schema(example = 1200)]
    pub(crate) number: u64,
}

/// Numbers of the chain. All but those of blocks count what the viewer sees.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChainStats {
    /// The number of blocks.
    pub(crate) total_blocks: u64,
    /// The number of transactions that the viewer sees.
    pub(crate) total_transactions: u64,
    /// The number of addresses that the viewer may look up and that have rows.
    pub(crate) total_addresses: u64,
    /// The number of tokens that the viewer sees.
    pub(crate) total_tokens: u64,
    /// The mean time between the last 100 blocks, in seconds.
    pub(crate) avg_block_time: f64,
    /// Always true.
    pub(crate) privacy_enabled: bool,
}

/// The number of transactions in a span of time.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TxHistoryPoint {
    /// The begin of the span, in seconds since 1970.
    pub(crate) timestamp: i64,
    /// The number of transactions in it that the viewer sees.
    pub(crate) count: u64,
}

/// Numbers of an address, over the rows that the viewer sees.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddressStats {
    /// The address.
    pub(crate) address: String,
    /// The number of transactions.
    pub(crate) tx_count: u64,
    /// The number of internal transactions.
    pub(crate) internal_tx_count: u64,
    /// The number of token transfers.
    pub(crate) token_transfer_count: u64,
    /// The time of the oldest row, in seconds since 1970; 0 without rows.
    pub(crate) first_seen: i64,
    /// The time of the newest row, in seconds since 1970; 0 without rows.
    pub(crate) last_seen: i64,
    /// Whether it is a contract.
    pub(crate) is_contract: bool,
    /// The time of the newest row, RFC 3339.
    pub(crate) updated_at: String,
}

/// The transactions of an address.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct AddressTransactionsResponse {
    /// The transactions, the newest first.
    pub(crate) transactions: Vec<Transaction>,
    /// The `cursor` of the next page. Left out on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// The token transfers of an address.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct AddressTransfersResponse {
    /// The transfers, the newest first.
    pub(crate) transfers: Vec<TokenTransfer>,
    /// The `cursor` of the next page. Left out on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Whether an address is a contract.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExplorerIsContractResponse {
    /// Whether it is.
    pub(crate) is_contract: bool,
}

/// How far the indexer is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SyncStatus {
    /// The newest block that is shown.
    pub(crate) last_indexed_block: u64,
    /// Whether blocks of the chain are missing.
    pub(crate) is_syncing: bool,
    /// The time of the newest block that is shown, RFC 3339.
    pub(crate) updated_at: String,
    /// The newest block of the chain, if the node reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latest_chain_block: Option<u64>,
    /// The number of gaps: always 0, because blocks are stored in order.
    pub(crate) gap_count: u64,
    /// The newest block that no reorganization removes, if the node reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finalized_block: Option<u64>,
}

/// A token.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    /// The token contract.
    pub(crate) address: String,
    /// The symbol, as the contract reports it.
    pub(crate) symbol: String,
    /// The name, as the contract reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The number of decimals, as the contract reports it.
    pub(crate) decimals: u8,
    /// `ERC-20`, `ERC-721` or `ERC-1155`.
    pub(crate) token_type: &'static str,
    /// The total supply, a decimal number, if the contract reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_supply: Option<String>,
    /// The number of holders that the viewer sees.
    pub(crate) holder_count: u64,
    /// The number of transfers that the viewer sees.
    pub(crate) transfer_count: u64,
    /// The block of the first transfer that the viewer sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_number: Option<u64>,
    /// The time of that block, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<String>,
    /// Of the unfiltered API only: whether balances of holders are still to be read, so that `holderCount` may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) balances_pending: Option<bool>,
}

/// A holder of a token.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenHolder {
    /// The holder: an address or an alias.
    pub(crate) address: String,
    /// The token id of an ERC-1155 token, a decimal number: each holder has a row per token id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_id: Option<String>,
    /// The balance, a decimal number; empty if the viewer may not see it.
    pub(crate) balance: String,
    /// The share of the supply in percent; 0 if the viewer may not see it.
    pub(crate) percentage: f64,
    /// Whether the holder is a contract.
    pub(crate) is_contract: bool,
    /// Of the unfiltered API only: whether the balance changed since it was read, and is to be read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_pending: Option<bool>,
}

/// The balance of an address in a token.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Balance {
    /// The address.
    pub(crate) address: String,
    /// The token contract: an address or an alias.
    pub(crate) token_address: String,
    /// The newest block that is shown.
    pub(crate) block_number: u64,
    /// The token id of an ERC-1155 token, a decimal number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_id: Option<String>,
    /// The balance, a decimal number; empty if the viewer may not see it.
    pub(crate) balance: String,
    /// Of the unfiltered API only: whether the balance changed since it was read, and is to be read again. `balance` is
    /// empty if it was never read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_pending: Option<bool>,
}

/// A contract.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplorerContract)]
pub(crate) struct Contract {
    /// The address.
    pub(crate) address: String,
    /// The code in hex.
    pub(crate) bytecode: String,
    /// The Keccak-256 hash of the code that was deployed.
    pub(crate) bytecode_hash: String,
    /// The account that created it: an address, an alias or `[PRIVATE]`; empty for the genesis block.
    pub(crate) creator: String,
    /// The hash of the transaction that created it, or `[PRIVATE]`; empty for the genesis block.
    pub(crate) creation_tx: String,
    /// The block that created it; absent if `creationTx` is `[PRIVATE]`, of which it would tell the time (HD41).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_number: Option<u64>,
    /// The name under which an organization registered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contract_name: Option<String>,
    /// Whether an organization registered its ABI.
    pub(crate) is_verified: bool,
}

/// An address under a grant of disclosure.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ResolveAddressResponse {
    /// `full`, `pseudonymous` or `redacted`.
    pub(crate) disclosure_level: &'static str,
    /// The grant.
    pub(crate) grant_id: String,
    /// The alias of the address under the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pseudonym: Option<String>,
    /// The address, if the grant discloses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) real_address: Option<String>,
    /// The classes of data that the grant discloses.
    pub(crate) scope_methods: Vec<String>,
}

/// The transactions of an address under a grant of disclosure.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct GrantTransactionsResponse {
    pub(crate) transactions: Vec<GrantTransaction>,
    /// `full`, `pseudonymous` or `redacted`.
    pub(crate) disclosure_level: &'static str,
    /// What each name in the rows stands for, at the level `pseudonymous`: `disclosed`, `external` or `mine`.
    pub(crate) address_labels: BTreeMap<String, &'static str>,
    /// The `cursor` of the next page. Left out on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// A transaction of an address under a grant of disclosure.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct GrantTransaction {
    /// The hash; only at the level `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tx_hash: Option<String>,
    /// The sender: its address, its name under the grant, or `[PRIVATE]`.
    pub(crate) from: String,
    /// The receiver; left out for a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The value in wei; `hidden` below the level `full`.
    pub(crate) value: String,
    /// `in`, `out` or `self`.
    pub(crate) direction: &'static str,
    /// 1 if it succeeded, else 0.
    pub(crate) status: u8,
    pub(crate) gas_used: u64,
    /// 0 if the gateway rounds times.
    pub(crate) block_number: u64,
    /// Seconds since 1970.
    pub(crate) block_timestamp: i64,
}

/// What a grant of disclosure would show.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DisclosurePreviewResponse {
    /// Who would see it.
    pub(crate) requester_did: String,
    /// `full`, `pseudonymous` or `redacted`.
    pub(crate) disclosure_level: &'static str,
    pub(crate) scope_methods: Vec<String>,
    /// The end of the grant if it were approved now, RFC 3339.
    pub(crate) expires_at: String,
    /// Whether transactions would be shown.
    pub(crate) discloses_transactions: bool,
    /// Whether the owner's calls during the grant would be shown.
    pub(crate) discloses_activity: bool,
    /// The number of addresses that would be disclosed.
    pub(crate) address_count: u64,
    /// The first 20 of them.
    pub(crate) addresses: Vec<PreviewedAddress>,
    /// What each name in the rows stands for, at the level `pseudonymous`: `disclosed` or `external`. The requester's
    /// own addresses are not told apart here.
    pub(crate) address_labels: BTreeMap<String, &'static str>,
}

/// An address that would be disclosed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct PreviewedAddress {
    /// The owner's address.
    pub(crate) address: String,
    /// What the requester would see instead: the address, an alias, or `[PRIVATE]`.
    pub(crate) shown_as: String,
    /// The number of its transactions that would be shown.
    pub(crate) transaction_count: u64,
    /// The newest 10 of them, as the requester would see them.
    pub(crate) transactions: Vec<GrantTransaction>,
}

/// The calls of the owner of the addresses under a grant of disclosure.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct GrantActivityLogsResponse {
    pub(crate) logs: Vec<GrantActivityLogEntry>,
    /// The number of all calls that the grant covers.
    pub(crate) total: u64,
    pub(crate) limit: u64,
    pub(crate) offset: u64,
}

/// A call of the owner.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct GrantActivityLogEntry {
    /// The JSON-RPC method.
    pub(crate) method: String,
    /// The status that the owner was told.
    pub(crate) status_code: u16,
    /// RFC 3339.
    pub(crate) timestamp: String,
}

/// An address that somebody disclosed to the viewer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DisclosedAddress {
    /// The address, its alias under the grant, or `[PRIVATE]`.
    pub(crate) address: String,
    /// Its id under the grant, for the pages of the grant.
    pub(crate) address_id: String,
    pub(crate) owner_did: String,
    pub(crate) grant_id: String,
    /// `full`, `pseudonymous` or `redacted`.
    pub(crate) disclosure_level: &'static str,
    /// RFC 3339.
    pub(crate) expires_at: String,
}

/// An uploaded ABI was stored.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExplorerABIUpdateResponse {
    /// Always true.
    pub(crate) success: bool,
    /// The contract.
    pub(crate) address: String,
}

/// A suggestion for a search.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SearchSuggestion {
    /// `block`, `transaction`, `address` or `token`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The number, hash or address to look up.
    pub(crate) value: String,
    /// The text to show.
    pub(crate) label: String,
}

/// The addresses of the viewer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ViewableAddressesResponse {
    /// The viewer's own addresses.
    pub(crate) own_addresses: Vec<OwnAddress>,
    /// The addresses that others disclosed to the viewer, of the newest 500 grants.
    pub(crate) disclosed_addresses: Vec<DisclosedAddress>,
    /// The viewer's DID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) viewer_did: Option<String>,
    /// The `wallet` of the query in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) viewer_wallet: Option<String>,
}

/// An address of the viewer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OwnAddress {
    /// The address.
    pub(crate) address: String,
}

/// Which blocks the indexer has.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexerProgressResponse {
    /// Always 1.
    pub(crate) id: u8,
    /// The first block.
    pub(crate) min_fetched_block: u64,
    /// The newest block that is shown.
    pub(crate) max_fetched_block: u64,
    /// Whether every block between them is there: always, because blocks are stored in order.
    pub(crate) backfill_complete: bool,
    /// The time of the newest block that is shown, RFC 3339.
    pub(crate) updated_at: String,
}

/// How far the indexer is behind the chain.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplorerCatchupProgressResponse {
    /// Whether blocks of the chain are missing.
    pub(crate) is_running: bool,
    /// The share of the blocks that are there, in whole percent.
    pub(crate) percent_complete: u64,
    /// The number of blocks that are there.
    pub(crate) processed: u64,
    /// The number of blocks of the chain, as far as it is known.
    pub(crate) total: u64,
}

impl ExplorerCatchupProgressResponse {
    /// From the blocks that are there, and the newest block of the chain if it is known.
    pub(crate) fn new(blocks: Range<u64>, latest: Option<u64>) -> Self {
        let processed = blocks.end.saturating_sub(blocks.start);
        let end = latest.map_or(blocks.end, |latest| latest.saturating_add(1));
        let total = end.saturating_sub(blocks.start).max(processed);
        Self {
            is_running: processed < total,
            percent_complete: processed.saturating_mul(100).checked_div(total).unwrap_or(100),
            processed,
            total,
        }
    }
}
