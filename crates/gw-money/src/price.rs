//! Prices of tokens (CO-18).

use crate::{Decimal, DecimalError, decimal::ScaleError, digits::scaled_text, json};
use alloy_primitives::{U256, U512};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, num::NonZeroU128, str::FromStr};

/// The price of one whole token in a currency that the context names: an integer at scale 18, from 1 to 10^36 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(NonZeroU128);

/// Why a number is not a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The text is not a number.
    #[error(transparent)]
    Decimal(#[from] DecimalError),
    /// Zero or negative.
    #[error("a price must be greater than 0")]
    NotPositive,
    /// More than 18 decimal places.
    #[error("a price has at most 18 decimal places")]
    TooManyPlaces,
    /// 10^18 or more.
    #[error("a price must be less than 1e18")]
    TooLarge,
}

impl Price {
    /// The number of decimal places.
    pub const SCALE: u32 = 18;
    /// 10^36.
    const MANTISSA_LIMIT: u128 = 1_000_000_000_000_000_000_000_000_000_000_000_000;

    /// The price `mantissa / 10^18`.
    ///
    /// # Errors
    /// [`PriceError`] if the mantissa is 0, or 10^36 or more.
    pub fn from_mantissa(mantissa: u128) -> Result<Self, PriceError> {
        let mantissa = NonZeroU128::new(mantissa).ok_or(PriceError::NotPositive)?;
        if mantissa.get() >= Self::MANTISSA_LIMIT {
            return Err(PriceError::TooLarge);
        }
        Ok(Self(mantissa))
    }

    /// A price that a person entered. It is exact or refused.
    ///
    /// # Errors
    /// [`PriceError`] if the number is not positive, has more than 18 decimal places, or is 10^18 or more.
    pub fn from_manual(number: &Decimal) -> Result<Self, PriceError> {
        if number.is_zero() || number.is_negative() {
            return Err(PriceError::NotPositive);
        }
        let mantissa = number.scaled(Self::SCALE).map_err(|error| match error {
            ScaleError::TooManyPlaces => PriceError::TooManyPlaces,
            ScaleError::TooLarge => PriceError::TooLarge,
        })?;
        Self::from_wide(mantissa)
    }

    /// A price from a feed, rounded half to even to 18 decimal places. `None` for an unknown price: zero, also after
    /// rounding, or negative.
    ///
    /// # Errors
    /// [`PriceError::TooLarge`] if the rounded number is 10^18 or more.
    pub fn from_feed(number: &Decimal) -> Result<Option<Self>, PriceError> {
        if number.is_negative() {
            return Ok(None);
        }
        // Rounding never fails for its places.
        let mantissa = number.scaled_half_even(Self::SCALE).map_err(|_| PriceError::TooLarge)?;
        if mantissa.is_zero() {
            return Ok(None);
        }
        Self::from_wide(mantissa).map(Some)
    }

    /// The price times 10^18.
    pub const fn mantissa(self) -> u128 {
        self.0.get()
    }

    /// Whether this price is more than `percent` percent of `earlier` away from `earlier` (CO-16).
    pub fn jumps_from(self, earlier: Self, percent: u32) -> bool {
        let difference = U256::from(self.mantissa().abs_diff(earlier.mantissa()));
        // Below 2^160: no product wraps.
        difference.saturating_mul(U256::from(100u8))
            > U256::from(earlier.mantissa()).saturating_mul(U256::from(percent))
    }

    fn from_wide(mantissa: U512) -> Result<Self, PriceError> {
        Self::from_mantissa(u128::try_from(mantissa).map_err(|_| PriceError::TooLarge)?)
    }
}

/// The exact decimal text.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&scaled_text(U512::from(self.mantissa()), Self::SCALE))
    }
}

/// Reads the text as manual input.
impl FromStr for Price {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, PriceError> {
        Self::from_manual(&text.parse()?)
    }
}

/// A JSON number with the exact decimal text.
impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::serialize_number(self.to_string(), serializer)
    }
}

/// A JSON number or a numeric string, as manual input.
impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_manual(&Decimal::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
