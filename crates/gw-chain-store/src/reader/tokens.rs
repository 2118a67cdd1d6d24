//! Contracts, tokens and balances.

use super::{ChainReader, timestamp_of};
use crate::{
    ChainStoreError,
    convert::{self, Columns, amount_column, standard_column, token_id_column},
    entity::{balances, contracts, proxy_changes, token_balances, tokens},
    rows::{Balance, ContractRow, TokenBalance, TokenRow, TokenStandard},
};
use gw_types::{Address, U256};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use std::collections::{HashMap, HashSet};

/// The position of a token in the list of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPosition {
    /// The block of its first transfer.
    pub block_number: u64,
    /// Its address.
    pub address: Address,
}

/// The position of a balance in the list of a token's holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderPosition {
    /// The amount.
    pub balance: U256,
    /// The address.
    pub holder: Address,
    /// The token id of an ERC-1155 token, else `None`.
    pub token_id: Option<U256>,
}

impl ChainReader {
    /// Finds the contract at an address, with its newest proxy.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_contract(&self, address: Address) -> Result<Option<ContractRow>, ChainStoreError> {
        let newest = contracts::Entity::find()
            .filter(contracts::Column::Address.eq(address.to_vec()))
            .order_by_desc(contracts::Column::BlockNumber);
        let Some(model) = newest.one(&self.tx).await? else {
            return Ok(None);
        };
        let number = model.block_number;
        let timestamps = self.timestamps([number]).await?;
        let mut row = convert::contract_row(model, timestamp_of(&timestamps, Columns("contracts"), number)?)?;
        let change = proxy_changes::Entity::find()
            .filter(proxy_changes::Column::Address.eq(address.to_vec()))
            .filter(proxy_changes::Column::BlockNumber.gt(number))
            .order_by_desc(proxy_changes::Column::BlockNumber);
        if let Some(change) = change.one(&self.tx).await? {
            row.contract.proxy = convert::proxy(Columns("proxy_changes"), change.proxy_kind, change.implementation)?;
        }
        Ok(Some(row))
    }

    /// The addresses, among these, of stored contracts.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn contracts_among(&self, addresses: &[Address]) -> Result<HashSet<Address>, ChainStoreError> {
        let mut found = HashSet::new();
        for batch in addresses.chunks(self.batch_size()) {
            let rows: Vec<Vec<u8>> = contracts::Entity::find()
                .select_only()
                .column(contracts::Column::Address)
                .filter(contracts::Column::Address.is_in(bytes(batch)))
                .into_tuple()
                .all(&self.tx)
                .await?;
            for address in rows {
                found.insert(Columns("contracts").address("address", &address)?);
            }
        }
        Ok(found)
    }

    /// Finds a token.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_token(&self, address: Address) -> Result<Option<TokenRow>, ChainStoreError> {
        Ok(self.tokens_among(&[address]).await?.pop())
    }

    /// The tokens with these addresses, as far as they are stored, in no particular order.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn tokens_among(&self, addresses: &[Address]) -> Result<Vec<TokenRow>, ChainStoreError> {
        let mut models = Vec::new();
        for batch in addresses.chunks(self.batch_size()) {
            let rows = tokens::Entity::find().filter(tokens::Column::Address.is_in(bytes(batch)));
            models.extend(rows.all(&self.tx).await?);
        }
        self.token_rows(models).await
    }

    /// Lists tokens after a position, those with the newest first transfer first.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_tokens(
        &self,
        standard: Option<TokenStandard>,
        after: Option<TokenPosition>,
        limit: u64,
    ) -> Result<Vec<TokenRow>, ChainStoreError> {
        let mut rows = tokens::Entity::find()
            .order_by_desc(tokens::Column::BlockNumber)
            .order_by_desc(tokens::Column::Address)
            .limit(limit);
        if let Some(standard) = standard {
            rows = rows.filter(tokens::Column::Standard.eq(standard_column(standard)));
        }
        if let Some(after) = after {
            let number = convert::to_column(after.block_number)?;
            // The first condition bounds the part of the index that is read.
            rows = rows.filter(tokens::Column::BlockNumber.lte(number)).filter(
                Condition::any()
                    .add(tokens::Column::BlockNumber.lt(number))
                    .add(tokens::Column::Address.lt(after.address.to_vec())),
            );
        }
        self.token_rows(rows.all(&self.tx).await?).await
    }

    /// Finds the balance of an address in wei; `None` while it was not read.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_balance(&self, address: Address) -> Result<Option<Balance>, ChainStoreError> {
        Ok(self.balances_of(&[address]).await?.remove(&address))
    }

    /// The balances of these addresses in wei, as far as they were read.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn balances_of(&self, addresses: &[Address]) -> Result<HashMap<Address, Balance>, ChainStoreError> {
        let columns = Columns("balances");
        let mut found = HashMap::new();
        for batch in addresses.chunks(self.batch_size()) {
            let rows = balances::Entity::find().filter(balances::Column::Address.is_in(bytes(batch)));
            for row in rows.all(&self.tx).await? {
                let balance = Balance {
                    balance: columns.amount("balance", &row.balance)?,
                    block_number: columns.number("block_number", row.block_number)?,
                };
                found.insert(columns.address("address", &row.address)?, balance);
            }
        }
        Ok(found)
    }

    /// Lists the positive token balances of an address after a token and token id, by token and token id.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_token_balances(
        &self,
        holder: Address,
        after: Option<(Address, Option<U256>)>,
        limit: u64,
    ) -> Result<Vec<TokenBalance>, ChainStoreError> {
        let mut rows = token_balances::Entity::find()
            .filter(token_balances::Column::Holder.eq(holder.to_vec()))
            .filter(token_balances::Column::Balance.gt(amount_column(U256::ZERO)))
            .order_by_asc(token_balances::Column::TokenAddress)
            .order_by_asc(token_balances::Column::TokenId)
            .limit(limit);
        if let Some((token, token_id)) = after {
            rows = rows
                .filter(token_balances::Column::TokenAddress.gte(token.to_vec()))
                .filter(
                    Condition::any()
                        .add(token_balances::Column::TokenAddress.gt(token.to_vec()))
                        .add(token_balances::Column::TokenId.gt(token_id_column(token_id))),
                );
        }
        rows.all(&self.tx).await?.iter().map(convert::token_balance).collect()
    }

    /// Lists the positive balances in a token after a position, the largest first.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_holders(
        &self,
        token: Address,
        after: Option<HolderPosition>,
        limit: u64,
    ) -> Result<Vec<TokenBalance>, ChainStoreError> {
        let mut rows = token_balances::Entity::find()
            .filter(token_balances::Column::TokenAddress.eq(token.to_vec()))
            .filter(token_balances::Column::Balance.gt(amount_column(U256::ZERO)))
            .order_by_desc(token_balances::Column::Balance)
            .order_by_desc(token_balances::Column::Holder)
            .order_by_desc(token_balances::Column::TokenId)
            .limit(limit);
        if let Some(after) = after {
            let (balance, holder) = (amount_column(after.balance), after.holder.to_vec());
            let same_holder = Condition::all()
                .add(token_balances::Column::Holder.eq(holder.clone()))
                .add(token_balances::Column::TokenId.lt(token_id_column(after.token_id)));
            rows = rows
                .filter(token_balances::Column::Balance.lte(balance.clone()))
                .filter(
                    Condition::any()
                        .add(token_balances::Column::Balance.lt(balance))
                        .add(token_balances::Column::Holder.lt(holder))
                        .add(same_holder),
                );
        }
        rows.all(&self.tx).await?.iter().map(convert::token_balance).collect()
    }

    /// The positive balances of these addresses in a token, in no particular order.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn holders_among(
        &self,
        token: Address,
        addresses: &[Address],
    ) -> Result<Vec<TokenBalance>, ChainStoreError> {
        let mut found = Vec::new();
        for batch in addresses.chunks(self.batch_size()) {
            let rows = token_balances::Entity::find()
                .filter(token_balances::Column::TokenAddress.eq(token.to_vec()))
                .filter(token_balances::Column::Holder.is_in(bytes(batch)))
                // No range: SQLite would read the index of the token's balances instead of the holders' rows.
                .filter(token_balances::Column::Balance.ne(amount_column(U256::ZERO)));
            for row in rows.all(&self.tx).await? {
                found.push(convert::token_balance(&row)?);
            }
        }
        Ok(found)
    }

    pub(super) async fn token_rows(&self, models: Vec<tokens::Model>) -> Result<Vec<TokenRow>, ChainStoreError> {
        let timestamps = self.timestamps(models.iter().map(|model| model.block_number)).await?;
        let rows = models.into_iter().map(|model| {
            let timestamp = timestamp_of(&timestamps, Columns("tokens"), model.block_number)?;
            convert::token_row(model, timestamp)
        });
        rows.collect()
    }
}

fn bytes(addresses: &[Address]) -> Vec<Vec<u8>> {
    addresses.iter().map(|address| address.to_vec()).collect()
}
