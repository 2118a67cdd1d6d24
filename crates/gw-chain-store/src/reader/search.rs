//! Suggestions for the start of a hash, symbol or name.

use super::ChainReader;
use crate::{
    ChainStoreError,
    convert::{self, Columns},
    entity::{blocks, tokens, transactions},
    rows::{BlockNumHash, TokenRow},
};
use gw_postings::RowId;
use gw_types::B256;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use std::collections::HashSet;

/// The start of a hash: all hashes between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashPrefix {
    first: B256,
    last: B256,
}

impl HashPrefix {
    /// Parses `0x` and 1 to 64 hexadecimal digits, in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
        if digits.is_empty() || digits.len() > 64 {
            return None;
        }
        let (mut first, mut last) = ([0_u8; 32], [0xff_u8; 32]);
        for (position, digit) in digits.chars().enumerate() {
            let digit = u8::try_from(digit.to_digit(16)?).ok()?;
            let (first, last) = (first.get_mut(position / 2)?, last.get_mut(position / 2)?);
            if position % 2 == 0 {
                *first = digit << 4;
                *last = (digit << 4) | 0x0f;
            } else {
                *first |= digit;
                *last = *first;
            }
        }
        Some(Self {
            first: first.into(),
            last: last.into(),
        })
    }
}

impl ChainReader {
    /// Lists blocks whose hash has this start, in the order of the hashes.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn search_blocks(&self, prefix: HashPrefix, limit: u64) -> Result<Vec<BlockNumHash>, ChainStoreError> {
        let rows: Vec<(i64, Vec<u8>)> = blocks::Entity::find()
            .select_only()
            .column(blocks::Column::Number)
            .column(blocks::Column::Hash)
            .filter(blocks::Column::Hash.gte(prefix.first.to_vec()))
            .filter(blocks::Column::Hash.lte(prefix.last.to_vec()))
            .order_by_asc(blocks::Column::Hash)
            .limit(limit)
            .into_tuple()
            .all(&self.tx)
            .await?;
        let columns = Columns("blocks");
        let rows = rows.into_iter().map(|(number, hash)| {
            Ok(BlockNumHash {
                number: columns.number("number", number)?,
                hash: columns.hash("hash", &hash)?,
            })
        });
        rows.collect()
    }

    /// Lists ids and hashes of transactions whose hash has this start, in the order of the hashes, after a hash.
    /// Not all of them are visible: the caller filters by id and continues after the last one.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn search_transactions(
        &self,
        prefix: HashPrefix,
        after: Option<B256>,
        limit: u64,
    ) -> Result<Vec<(RowId, B256)>, ChainStoreError> {
        let mut rows = transactions::Entity::find()
            .select_only()
            .column(transactions::Column::Id)
            .column(transactions::Column::Hash)
            .filter(transactions::Column::Hash.gte(prefix.first.to_vec()))
            .filter(transactions::Column::Hash.lte(prefix.last.to_vec()))
            .order_by_asc(transactions::Column::Hash)
            .limit(limit);
        if let Some(after) = after {
            rows = rows.filter(transactions::Column::Hash.gt(after.to_vec()));
        }
        let columns = Columns("transactions");
        let rows: Vec<(i64, Vec<u8>)> = rows.into_tuple().all(&self.tx).await?;
        let rows = rows.into_iter().map(|(id, hash)| {
            let id = RowId(columns.number("id", id)?);
            Ok((id, columns.hash("hash", &hash)?))
        });
        rows.collect()
    }

    /// The ids of the transactions with these hashes, as far as they are stored, in no particular order. A hash may
    /// stand for several transactions.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn transaction_ids(&self, hashes: &[B256]) -> Result<Vec<RowId>, ChainStoreError> {
        let columns = Columns("transactions");
        let mut ids = Vec::new();
        for batch in hashes.chunks(self.batch_size()) {
            let hashes = batch.iter().map(|hash| hash.to_vec());
            let rows: Vec<i64> = transactions::Entity::find()
                .select_only()
                .column(transactions::Column::Id)
                .filter(transactions::Column::Hash.is_in(hashes))
                .into_tuple()
                .all(&self.tx)
                .await?;
            for id in rows {
                ids.push(RowId(columns.number("id", id)?));
            }
        }
        Ok(ids)
    }

    /// Lists tokens whose symbol or name has this start, in either case: at most `limit` by symbol, then at most
    /// `limit` by name.
    ///
    /// # Errors
    /// [`ChainStoreError::Row`] if a stored row is malformed; any database error.
    pub async fn search_tokens(&self, text: &str, limit: u64) -> Result<Vec<TokenRow>, ChainStoreError> {
        let first = convert::search_key(text);
        if first.is_empty() {
            return Ok(Vec::new());
        }
        // No UTF-8 text contains this byte.
        let end = [first.as_slice(), &[0xff]].concat();
        let mut models = Vec::new();
        for column in [tokens::Column::SymbolKey, tokens::Column::NameKey] {
            let rows = tokens::Entity::find()
                .filter(column.gte(first.clone()))
                .filter(column.lt(end.clone()))
                .order_by_asc(column)
                .limit(limit);
            models.extend(rows.all(&self.tx).await?);
        }
        let mut known = HashSet::new();
        models.retain(|model| known.insert(model.address.clone()));
        self.token_rows(models).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_spans_all_hashes_that_start_with_it() {
        let prefix = HashPrefix::parse("0xAb1").unwrap();
        let hash = |start: &[u8], rest: u8| {
            let mut hash = [rest; 32];
            hash[..start.len()].copy_from_slice(start);
            B256::from(hash)
        };
        assert_eq!(prefix.first, hash(&[0xab, 0x10], 0));
        assert_eq!(prefix.last, hash(&[0xab, 0x1f], 0xff));
        let whole = HashPrefix::parse(&format!("0x{}", "9c".repeat(32))).unwrap();
        assert_eq!(
            (whole.first, whole.last),
            (B256::repeat_byte(0x9c), B256::repeat_byte(0x9c))
        );
        for text in ["", "0x", "ab", "0xg", &format!("0x{}", "0".repeat(65))] {
            assert_eq!(HashPrefix::parse(text), None, "{text}");
        }
    }
}
