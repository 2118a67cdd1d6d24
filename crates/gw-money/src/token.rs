//! Amounts of tokens.

use alloy_primitives::U256;
use serde::{Deserialize, Serialize};

/// The number of decimal places of a token: 0 to 77 (CO-13). 10^77 is the largest power of ten in 256 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct TokenDecimals(u8);

/// A number of decimal places above 77.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("decimals must be between 0 and 77")]
pub struct TokenDecimalsError;

/// An amount of a token in its smallest unit, with the token's decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAmount {
    /// The number of smallest units.
    pub units: U256,
    /// A whole token is `10^decimals` units.
    pub decimals: TokenDecimals,
}

impl TokenDecimals {
    /// The largest value.
    pub const MAX: Self = Self(77);
    /// The native token (CO-13).
    pub const NATIVE: Self = Self(18);

    /// Checks the range.
    ///
    /// # Errors
    /// [`TokenDecimalsError`] above 77.
    pub const fn new(decimals: u8) -> Result<Self, TokenDecimalsError> {
        if decimals > Self::MAX.0 {
            return Err(TokenDecimalsError);
        }
        Ok(Self(decimals))
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TokenAmount {
    /// An amount in smallest units.
    pub const fn new(units: U256, decimals: TokenDecimals) -> Self {
        Self { units, decimals }
    }
}

impl TryFrom<u8> for TokenDecimals {
    type Error = TokenDecimalsError;

    fn try_from(decimals: u8) -> Result<Self, TokenDecimalsError> {
        Self::new(decimals)
    }
}

impl From<TokenDecimals> for u8 {
    fn from(decimals: TokenDecimals) -> Self {
        decimals.0
    }
}
