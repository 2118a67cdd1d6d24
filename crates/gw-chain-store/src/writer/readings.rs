//! What workers read from the node at a block: balances, supplies and metadata.

use super::{ChainWriter, require_block, tasks};
use crate::{
    ChainStoreError, Task,
    convert::{self, MetadataColumns, amount_column, metadata_column, token_id_column},
    dialect::Transaction,
    entity::{balances, token_balances, tokens},
    rows::{BlockNumHash, TokenMetadata},
};
use gw_types::{Address, U256};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QuerySelect,
    sea_query::{Alias, Expr, OnConflict},
};

/// A value that depends on the block at which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The balance of an address in wei.
    Balance {
        /// The address.
        address: Address,
        /// The amount in wei.
        balance: U256,
    },
    /// The balance of an address in a token.
    TokenBalance {
        /// The token contract.
        token: Address,
        /// The address.
        holder: Address,
        /// The token id of an ERC-1155 token, else `None`.
        token_id: Option<U256>,
        /// The amount.
        balance: U256,
    },
    /// The total supply of a token.
    TokenSupply {
        /// The token contract.
        token: Address,
        /// The amount; `None` if the contract does not report it.
        supply: Option<U256>,
    },
    /// The metadata of a token.
    TokenMetadata {
        /// The token contract.
        token: Address,
        /// What the contract answered; `None` if it does not answer.
        metadata: Option<TokenMetadata>,
    },
}

impl ChainWriter {
    /// Stores what was read at a stored block, and removes the tasks that asked for it, in one transaction. A value
    /// that was read at a later block is kept; values of unknown tokens are ignored.
    ///
    /// # Errors
    /// [`ChainStoreError::UnknownBlock`] if a reorganization removed the block: the values must be read again;
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn set_readings(
        &self,
        at: BlockNumHash,
        readings: &[Reading],
        done: &[Task],
    ) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        require_block(&tx, at).await?;
        let block_number = convert::to_column(at.number)?;
        for reading in readings {
            set(&tx, reading, block_number).await?;
        }
        tasks::finish(&tx, done, self.config.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Stores a balance in wei; see [`ChainWriter::set_readings`].
    ///
    /// # Errors
    /// As [`ChainWriter::set_readings`].
    pub async fn set_balance(&self, at: BlockNumHash, address: Address, balance: U256) -> Result<(), ChainStoreError> {
        self.set_readings(at, &[Reading::Balance { address, balance }], &[])
            .await
    }

    /// Stores a balance in a token; see [`ChainWriter::set_readings`].
    ///
    /// # Errors
    /// As [`ChainWriter::set_readings`].
    pub async fn set_token_balance(
        &self,
        at: BlockNumHash,
        token: Address,
        holder: Address,
        token_id: Option<U256>,
        balance: U256,
    ) -> Result<(), ChainStoreError> {
        let reading = Reading::TokenBalance {
            token,
            holder,
            token_id,
            balance,
        };
        self.set_readings(at, &[reading], &[]).await
    }

    /// Stores the metadata of a token; see [`ChainWriter::set_readings`].
    ///
    /// # Errors
    /// As [`ChainWriter::set_readings`].
    pub async fn set_token_metadata(
        &self,
        at: BlockNumHash,
        token: Address,
        metadata: Option<TokenMetadata>,
    ) -> Result<(), ChainStoreError> {
        self.set_readings(at, &[Reading::TokenMetadata { token, metadata }], &[])
            .await
    }
}

async fn set(tx: &Transaction, reading: &Reading, block_number: i64) -> Result<(), ChainStoreError> {
    match reading {
        Reading::Balance { address, balance } => set_balance(tx, *address, *balance, block_number).await,
        Reading::TokenBalance {
            token,
            holder,
            token_id,
            balance,
        } => {
            let row = token_balances::Model {
                token_address: token.to_vec(),
                holder: holder.to_vec(),
                token_id: token_id_column(*token_id),
                balance: amount_column(*balance),
                block_number,
            };
            set_token_balance(tx, row).await
        }
        Reading::TokenSupply { token, supply } => {
            let is_newer = not_after(tokens::Column::SupplyBlock, block_number);
            tokens::Entity::update_many()
                .col_expr(tokens::Column::TotalSupply, Expr::value(supply.map(amount_column)))
                .col_expr(tokens::Column::SupplyBlock, Expr::value(block_number))
                .filter(tokens::Column::Address.eq(token.to_vec()))
                .filter(is_newer)
                .exec(tx)
                .await?;
            Ok(())
        }
        Reading::TokenMetadata { token, metadata } => set_metadata(tx, *token, metadata.as_ref(), block_number).await,
    }
}

/// Condition that nothing was read yet, or nothing at a later block.
fn not_after(column: tokens::Column, block_number: i64) -> Condition {
    Condition::any().add(column.is_null()).add(column.lte(block_number))
}

async fn set_balance(
    tx: &Transaction,
    address: Address,
    balance: U256,
    block_number: i64,
) -> Result<(), ChainStoreError> {
    let row = balances::Model {
        address: address.to_vec(),
        balance: amount_column(balance),
        block_number,
    };
    let newer = OnConflict::column(balances::Column::Address)
        .update_columns([balances::Column::Balance, balances::Column::BlockNumber])
        .action_and_where(
            Expr::col((balances::Entity, balances::Column::BlockNumber))
                .lte(Expr::col((Alias::new("excluded"), balances::Column::BlockNumber))),
        )
        .to_owned();
    balances::Entity::insert_many([row.into_active_model().reset_all()])
        .on_conflict(newer)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

async fn set_token_balance(tx: &Transaction, row: token_balances::Model) -> Result<(), ChainStoreError> {
    let token = row.token_address.clone();
    let known = tokens::Entity::find_by_id(token.clone())
        .select_only()
        .column(tokens::Column::BlockNumber)
        .into_tuple::<i64>()
        .one(tx)
        .await?;
    if known.is_none() {
        return Ok(());
    }
    let holder = row.holder.clone();
    let was_holder = is_holder(tx, &token, &holder).await?;
    let newer = OnConflict::columns([
        token_balances::Column::TokenAddress,
        token_balances::Column::Holder,
        token_balances::Column::TokenId,
    ])
    .update_columns([token_balances::Column::Balance, token_balances::Column::BlockNumber])
    .action_and_where(
        Expr::col((token_balances::Entity, token_balances::Column::BlockNumber))
            .lte(Expr::col((Alias::new("excluded"), token_balances::Column::BlockNumber))),
    )
    .to_owned();
    token_balances::Entity::insert_many([row.into_active_model().reset_all()])
        .on_conflict(newer)
        .exec_without_returning(tx)
        .await?;
    let change = match (was_holder, is_holder(tx, &token, &holder).await?) {
        (false, true) => 1_i64,
        (true, false) => -1,
        (true, true) | (false, false) => return Ok(()),
    };
    let column = tokens::Column::HolderCount;
    tokens::Entity::update_many()
        .col_expr(column, Expr::col(column).add(change))
        .filter(tokens::Column::Address.eq(token))
        .exec(tx)
        .await?;
    Ok(())
}

/// Whether an address has a positive balance in a token, in any token id.
async fn is_holder(tx: &Transaction, token: &[u8], holder: &[u8]) -> Result<bool, ChainStoreError> {
    let positive = token_balances::Entity::find()
        .select_only()
        .column(token_balances::Column::BlockNumber)
        .filter(token_balances::Column::TokenAddress.eq(token.to_vec()))
        .filter(token_balances::Column::Holder.eq(holder.to_vec()))
        // No range: SQLite would read the index of the token's balances instead of the holder's rows.
        .filter(token_balances::Column::Balance.ne(amount_column(U256::ZERO)))
        .limit(1);
    Ok(positive.into_tuple::<i64>().one(tx).await?.is_some())
}

async fn set_metadata(
    tx: &Transaction,
    token: Address,
    metadata: Option<&TokenMetadata>,
    block_number: i64,
) -> Result<(), ChainStoreError> {
    let state = match metadata {
        Some(_) => MetadataColumns::Known,
        None => MetadataColumns::Unavailable,
    };
    let name = metadata.and_then(|metadata| metadata.name.as_deref());
    let symbol = metadata.and_then(|metadata| metadata.symbol.as_deref());
    let decimals = metadata.and_then(|metadata| metadata.decimals);
    let bytes = |text: Option<&str>| Expr::value(text.map(|text| text.as_bytes().to_vec()));
    let key = |text: Option<&str>| Expr::value(text.map(convert::search_key));
    tokens::Entity::update_many()
        .col_expr(tokens::Column::MetadataState, Expr::value(metadata_column(state)))
        .col_expr(tokens::Column::Name, bytes(name))
        .col_expr(tokens::Column::Symbol, bytes(symbol))
        .col_expr(tokens::Column::Decimals, Expr::value(decimals.map(i16::from)))
        .col_expr(tokens::Column::NameKey, key(name))
        .col_expr(tokens::Column::SymbolKey, key(symbol))
        .col_expr(tokens::Column::MetadataBlock, Expr::value(block_number))
        .filter(tokens::Column::Address.eq(token.to_vec()))
        .filter(not_after(tokens::Column::MetadataBlock, block_number))
        .exec(tx)
        .await?;
    Ok(())
}
