//! Contracts, tokens and balances.

use super::{ChainReader, timestamp_of};
use crate::{
    ChainStoreError, Job, JobKind,
    convert::{self, Columns, amount_column, standard_column, token_id_column},
    entity::{balances, contracts, proxy_changes, tasks, token_balances, tokens},
    rows::{Balance, ContractRow, TokenBalance, TokenRow, TokenStandard},
};
use gw_types::{Address, U256};
use sea_orm::sea_query::{Alias, BinOper, Expr, Func};
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use std::collections::{HashMap, HashSet};

/// The position of a token in the list of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPosition {
    /// The block of its first transfer.
    pub block_number: u64,
    /// Its address.
    pub address: Address,
}

/// What an address has of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHolding {
    /// The token contract.
    pub token: Address,
    /// The address.
    pub holder: Address,
    /// The token id of an ERC-1155 token, else `None`.
    pub token_id: Option<U256>,
}

impl From<&TokenBalance> for TokenHolding {
    fn from(row: &TokenBalance) -> Self {
        Self {
            token: row.token,
            holder: row.holder,
            token_id: row.token_id,
        }
    }
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

    /// Lists tokens whose first transfer is in this block or an earlier one, those with the newest first: at most
    /// `limit` after `offset` of them.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_tokens_at(
        &self,
        standard: Option<TokenStandard>,
        newest: u64,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<TokenRow>, ChainStoreError> {
        let rows = tokens::Entity::find()
            .filter(is_token(standard, newest)?)
            .order_by_desc(tokens::Column::BlockNumber)
            .order_by_desc(tokens::Column::Address)
            .offset(offset_column(offset))
            .limit(limit);
        self.token_rows(rows.all(&self.tx).await?).await
    }

    /// The number of tokens whose first transfer is in this block or an earlier one.
    ///
    /// # Errors
    /// Any database error.
    pub async fn count_tokens(&self, standard: Option<TokenStandard>, newest: u64) -> Result<u64, ChainStoreError> {
        let tokens = tokens::Entity::find().filter(is_token(standard, newest)?);
        Ok(tokens.count(&self.tx).await?)
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

    /// Lists the token balances of an address after a token and token id, by token and token id. A balance that became
    /// zero is among them.
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
            .filter(is_held(token))
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

    /// Lists the positive balances in a token, the largest first: at most `limit` after `offset` of them.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_holders_at(
        &self,
        token: Address,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<TokenBalance>, ChainStoreError> {
        let rows = token_balances::Entity::find()
            .filter(is_held(token))
            .order_by_desc(token_balances::Column::Balance)
            .order_by_desc(token_balances::Column::Holder)
            .order_by_desc(token_balances::Column::TokenId)
            .offset(offset_column(offset))
            .limit(limit);
        rows.all(&self.tx).await?.iter().map(convert::token_balance).collect()
    }

    /// The number of positive balances in a token.
    ///
    /// # Errors
    /// Any database error.
    pub async fn count_holders(&self, token: Address) -> Result<u64, ChainStoreError> {
        Ok(token_balances::Entity::find()
            .filter(is_held(token))
            .count(&self.tx)
            .await?)
    }

    /// The balances of these addresses in these tokens, at most a page of them, in no particular order. A balance that
    /// became zero is among them.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn token_balances_among(
        &self,
        tokens: &[Address],
        addresses: &[Address],
    ) -> Result<Vec<TokenBalance>, ChainStoreError> {
        let mut found = Vec::new();
        if tokens.is_empty() {
            return Ok(found);
        }
        for batch in addresses.chunks(self.batch_size()) {
            let rows = token_balances::Entity::find()
                .filter(token_balances::Column::TokenAddress.is_in(bytes(tokens)))
                .filter(token_balances::Column::Holder.is_in(bytes(batch)));
            for row in rows.all(&self.tx).await? {
                found.push(convert::token_balance(&row)?);
            }
        }
        Ok(found)
    }

    /// Whether the balance of this address in wei is to be read again: what is stored is of an earlier block.
    ///
    /// # Errors
    /// Any database error.
    pub async fn is_balance_pending(&self, address: Address) -> Result<bool, ChainStoreError> {
        let job = Job::Balance { address };
        let count = is_of_kind(JobKind::Balance)
            .filter(tasks::Column::Key.eq(job.key()))
            .count(&self.tx);
        Ok(count.await? > 0)
    }

    /// At most `limit` of the token balances of an address that are to be read again: what is stored of them, if
    /// anything, is of an earlier block.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn pending_balances_of(
        &self,
        holder: Address,
        limit: u64,
    ) -> Result<HashSet<TokenHolding>, ChainStoreError> {
        // The index `tasks_holder_idx` serves only this expression.
        let holder_of_key = Func::cust(Alias::new("substr"))
            .arg(Expr::col(tasks::Column::Key))
            .arg(Expr::cust("21"))
            .arg(Expr::cust("20"));
        let of_holder = Expr::Binary(
            Box::new(Expr::from(holder_of_key)),
            BinOper::Equal,
            Box::new(Expr::val(holder.to_vec())),
        );
        let rows = is_of_kind(JobKind::TokenBalance).filter(of_holder).limit(limit);
        holdings(&rows.all(&self.tx).await?)
    }

    /// At most `limit` of the balances in these tokens, at most a page of them, that are to be read again: what is
    /// stored of them, if anything, is of an earlier block.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn pending_balances_in(
        &self,
        tokens: &[Address],
        limit: u64,
    ) -> Result<HashSet<TokenHolding>, ChainStoreError> {
        if tokens.is_empty() {
            return Ok(HashSet::new());
        }
        let of_tokens = tokens.iter().fold(Condition::any(), |of_tokens, token| {
            let mut last = token.to_vec();
            last.extend([0xff; 52]);
            // With the kind in each part, each part is a range of the key of the table.
            let of_token = Condition::all()
                .add(tasks::Column::Kind.eq(JobKind::TokenBalance.column()))
                .add(tasks::Column::Key.between(token.to_vec(), last));
            of_tokens.add(of_token)
        });
        let rows = tasks::Entity::find().filter(of_tokens).limit(limit);
        holdings(&rows.all(&self.tx).await?)
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

fn is_of_kind(kind: JobKind) -> Select<tasks::Entity> {
    tasks::Entity::find().filter(tasks::Column::Kind.eq(kind.column()))
}

fn holdings(rows: &[tasks::Model]) -> Result<HashSet<TokenHolding>, ChainStoreError> {
    let holding = |row: &tasks::Model| match Job::from_columns(row.kind, &row.key)? {
        Job::TokenBalance {
            token,
            holder,
            token_id,
        } => Ok(TokenHolding {
            token,
            holder,
            token_id,
        }),
        _ => Err(ChainStoreError::Row {
            table: "tasks",
            column: "kind",
        }),
    };
    rows.iter().map(holding).collect()
}

/// The tokens of a standard, or all, whose first transfer is in this block or an earlier one.
fn is_token(standard: Option<TokenStandard>, newest: u64) -> Result<Condition, ChainStoreError> {
    let newest = tokens::Column::BlockNumber.lte(convert::to_column(newest)?);
    let is_standard = standard.map(|standard| tokens::Column::Standard.eq(standard_column(standard)));
    Ok(Condition::all().add(newest).add_option(is_standard))
}

/// The positive balances in a token.
fn is_held(token: Address) -> Condition {
    Condition::all()
        .add(token_balances::Column::TokenAddress.eq(token.to_vec()))
        .add(token_balances::Column::Balance.gt(amount_column(U256::ZERO)))
}

/// An offset as both engines take it.
fn offset_column(offset: u64) -> u64 {
    offset.min(i64::MAX.cast_unsigned())
}

fn bytes(addresses: &[Address]) -> Vec<Vec<u8>> {
    addresses.iter().map(|address| address.to_vec()).collect()
}
