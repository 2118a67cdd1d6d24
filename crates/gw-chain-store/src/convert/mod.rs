//! Conversion between rows and the models of the tables. Pure functions.

mod read;
mod write;

pub(crate) use read::{
    Owner, block_row, contract_row, frame, log, proxy, token_balance, token_row, transaction, transfer,
};
pub(crate) use write::{BlockModels, FirstIds, FramePlace, contract_model, frame_model, search_key};

use crate::{ChainStoreError, rows};
use gw_types::{Address, B256, U256};

/// Converts a block number or a row id to its column.
///
/// # Errors
/// [`ChainStoreError::InvalidBlock`] from 2^63 on.
pub(crate) fn to_column(number: u64) -> Result<i64, ChainStoreError> {
    i64::try_from(number).map_err(|_| ChainStoreError::InvalidBlock {
        block: number,
        reason: "its number, or the number of its rows, is too large",
    })
}

/// Converts the number of rows of something to its column.
pub(crate) fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Reads columns of one table; the errors name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns(pub(crate) &'static str);

impl Columns {
    pub(crate) fn malformed(self, column: &'static str) -> ChainStoreError {
        ChainStoreError::Row { table: self.0, column }
    }

    /// A block number, row id or number of rows.
    pub(crate) fn number(self, column: &'static str, value: i64) -> Result<u64, ChainStoreError> {
        u64::try_from(value).map_err(|_| self.malformed(column))
    }

    pub(crate) fn index(self, column: &'static str, value: i64) -> Result<u32, ChainStoreError> {
        u32::try_from(value).map_err(|_| self.malformed(column))
    }

    pub(crate) fn address(self, column: &'static str, bytes: &[u8]) -> Result<Address, ChainStoreError> {
        Address::try_from(bytes).map_err(|_| self.malformed(column))
    }

    pub(crate) fn hash(self, column: &'static str, bytes: &[u8]) -> Result<B256, ChainStoreError> {
        B256::try_from(bytes).map_err(|_| self.malformed(column))
    }

    pub(crate) fn amount(self, column: &'static str, bytes: &[u8]) -> Result<U256, ChainStoreError> {
        let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| self.malformed(column))?;
        Ok(U256::from_be_bytes(bytes))
    }

    pub(crate) fn text(self, column: &'static str, bytes: Vec<u8>) -> Result<String, ChainStoreError> {
        String::from_utf8(bytes).map_err(|_| self.malformed(column))
    }

    /// Applies one of the methods above to a column that may be null.
    pub(crate) fn optional<T, R>(
        self,
        column: &'static str,
        value: Option<R>,
        read: impl FnOnce(Self, &'static str, R) -> Result<T, ChainStoreError>,
    ) -> Result<Option<T>, ChainStoreError> {
        value.map(|value| read(self, column, value)).transpose()
    }

    fn optional_address(
        self,
        column: &'static str,
        value: Option<Vec<u8>>,
    ) -> Result<Option<Address>, ChainStoreError> {
        self.optional(column, value, |columns, column, value| columns.address(column, &value))
    }

    fn optional_amount(self, column: &'static str, value: Option<Vec<u8>>) -> Result<Option<U256>, ChainStoreError> {
        self.optional(column, value, |columns, column, value| columns.amount(column, &value))
    }

    fn optional_text(self, column: &'static str, value: Option<Vec<u8>>) -> Result<Option<String>, ChainStoreError> {
        self.optional(column, value, Self::text)
    }
}

pub(crate) fn amount_column(amount: U256) -> Vec<u8> {
    amount.to_be_bytes::<32>().to_vec()
}

/// The column of a token id that is part of a key: empty for tokens without ids.
pub(crate) fn token_id_column(token_id: Option<U256>) -> Vec<u8> {
    token_id.map(amount_column).unwrap_or_default()
}

/// The numbers that stand for the values of an enum in a column. Values must not change.
macro_rules! enum_column {
    ($to:ident, $from:ident, $type:ty, { $($value:ident = $number:literal),* $(,)? }) => {
        pub(crate) const fn $to(value: $type) -> i16 {
            match value {
                $(<$type>::$value => $number,)*
            }
        }

        pub(crate) fn $from(number: i16) -> Option<$type> {
            match number {
                $($number => Some(<$type>::$value),)*
                _ => None,
            }
        }
    };
}

enum_column!(standard_column, standard, rows::TokenStandard, { Erc20 = 20, Erc721 = 721, Erc1155 = 1155 });
enum_column!(call_type_column, call_type, rows::CallType, {
    Call = 1, StaticCall = 2, DelegateCall = 3, CallCode = 4, Create = 5, Create2 = 6, SelfDestruct = 7
});
enum_column!(proxy_kind_column, proxy_kind, rows::ProxyKind, {
    Minimal = 1, ImplementationSlot = 2, Beacon = 3, LogicSlot = 4
});

/// What the metadata columns of a token contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetadataColumns {
    Pending,
    Unavailable,
    Known,
}

enum_column!(metadata_column, metadata_columns, MetadataColumns, { Pending = 0, Unavailable = 1, Known = 2 });
