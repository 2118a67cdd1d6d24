//! Thresholds (CO-3, CO-18).

use crate::{Decimal, DecimalError, decimal::ScaleError, digits::scaled_text, json};
use alloy_primitives::U512;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// A threshold in a currency that the context names: an integer at scale 8, from 0 to 10^23 (a value of 10^15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u128);

/// Why a number is not a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// The text is not a number.
    #[error(transparent)]
    Decimal(#[from] DecimalError),
    /// Below zero.
    #[error("a threshold must not be negative")]
    Negative,
    /// More than 8 decimal places.
    #[error("a threshold has at most 8 decimal places")]
    TooManyPlaces,
    /// Above 10^15.
    #[error("a threshold must not exceed 1e15")]
    TooLarge,
}

impl Threshold {
    /// The number of decimal places.
    pub const SCALE: u32 = 8;
    /// The threshold below which nothing is: every transfer needs a record (CO-6).
    pub const ZERO: Self = Self(0);
    /// 1000, the threshold of an organization that sets none (CO-1).
    pub const DEFAULT: Self = Self(100_000_000_000);
    /// 10^15.
    pub const MAX: Self = Self(100_000_000_000_000_000_000_000);

    /// The threshold `mantissa / 10^8`.
    ///
    /// # Errors
    /// [`ThresholdError::TooLarge`] if the mantissa exceeds 10^23.
    pub const fn from_mantissa(mantissa: u128) -> Result<Self, ThresholdError> {
        if mantissa > Self::MAX.0 {
            return Err(ThresholdError::TooLarge);
        }
        Ok(Self(mantissa))
    }

    /// The threshold of this value.
    ///
    /// # Errors
    /// [`ThresholdError`] if the number is negative, has more than 8 decimal places, or exceeds 10^15.
    pub fn from_decimal(number: &Decimal) -> Result<Self, ThresholdError> {
        if number.is_negative() {
            return Err(ThresholdError::Negative);
        }
        let mantissa = number.scaled(Self::SCALE).map_err(|error| match error {
            ScaleError::TooManyPlaces => ThresholdError::TooManyPlaces,
            ScaleError::TooLarge => ThresholdError::TooLarge,
        })?;
        Self::from_mantissa(u128::try_from(mantissa).map_err(|_| ThresholdError::TooLarge)?)
    }

    /// The threshold times 10^8.
    pub const fn mantissa(self) -> u128 {
        self.0
    }
}

/// The exact decimal text.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&scaled_text(U512::from(self.0), Self::SCALE))
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        Self::from_decimal(&text.parse()?)
    }
}

/// A JSON number with the exact decimal text.
impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::serialize_number(self.to_string(), serializer)
    }
}

/// A JSON number or a numeric string.
impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_decimal(&Decimal::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
