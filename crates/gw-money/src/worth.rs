//! The value of tokens, and its comparison with a threshold (CO-19, CO-20).

use crate::{
    DecimalError, Price, Threshold, TokenAmount,
    decimal::{self, ScaleError},
    digits::{divide_half_even, power_of_ten, scaled_text},
    json,
};
use alloy_primitives::U512;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{cmp::Ordering, fmt, iter::Sum, str::FromStr};

/// The exact value of amounts of tokens, all priced in one currency that the context names.
///
/// Values compare as numbers, whatever the decimal places of their tokens.
// Bounds. An amount is below 2^256 < 1.16·10^77, a price mantissa below 10^36: the numerator of one token is below
// 1.16·10^113 and fits 512 bits (1.34·10^154). In a sum, the numerators of tokens with fewer places are multiplied by
// up to 10^77 and may exceed 512 bits; the sum is then `Saturated`.
//
// Saturation never changes a decision: a numerator of 2^512 at the largest denominator, 10^95, is a value above 10^59,
// and no threshold exceeds 10^15.
#[derive(Clone, Copy, Debug)]
pub struct Worth(Value);

#[derive(Clone, Copy, Debug)]
enum Value {
    /// `numerator / 10^(decimals + 18)`.
    Exact { numerator: U512, decimals: u32 },
    /// The numerator exceeds 512 bits. Above every exact value.
    Saturated,
}

/// A value rounded half to even to 8 decimal places, for logs and records (CO-20). It decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiatAmount(U512);

/// Why a text is not an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FiatAmountError {
    /// The text is not a number.
    #[error(transparent)]
    Decimal(#[from] DecimalError),
    /// Negative, more than 8 decimal places, or beyond 512 bits.
    #[error("not an amount of money with at most 8 decimal places")]
    OutOfRange,
}

impl Worth {
    /// No value.
    pub const ZERO: Self = Self(Value::Exact {
        numerator: U512::ZERO,
        decimals: 0,
    });

    /// The value of an amount at a price.
    pub fn new(amount: TokenAmount, price: Price) -> Self {
        let units = U512::saturating_from(amount.units);
        // Below 2^376: the product does not saturate.
        Self(match units.checked_mul(U512::from(price.mantissa())) {
            Some(numerator) => Value::Exact {
                numerator,
                decimals: u32::from(amount.decimals.get()),
            },
            None => Value::Saturated,
        })
    }

    /// The sum of two values over their common denominator. It saturates and never wraps.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.plus(other.0).unwrap_or(Value::Saturated))
    }

    /// Whether the value is strictly below the threshold. A value at the threshold is not.
    pub fn is_below(self, threshold: Threshold) -> bool {
        match self.0 {
            Value::Saturated => false,
            Value::Exact { numerator, decimals } => {
                // At most 10^23 · 10^95: the right side does not saturate. If the left side does, it is the larger.
                let value = numerator.saturating_mul(power_of_ten(Threshold::SCALE));
                let limit = U512::from(threshold.mantissa())
                    .saturating_mul(power_of_ten(decimals.saturating_add(Price::SCALE)));
                value < limit
            }
        }
    }

    /// Whether the sum left 512 bits. Such a value is above every threshold.
    pub fn is_saturated(self) -> bool {
        matches!(self.0, Value::Saturated)
    }

    /// The value rounded half to even to 8 decimal places. `None` for a saturated sum.
    pub fn fiat_amount(self) -> Option<FiatAmount> {
        match self.0 {
            Value::Saturated => None,
            Value::Exact { numerator, decimals } => {
                let surplus = decimals.saturating_add(Price::SCALE).saturating_sub(Threshold::SCALE);
                Some(FiatAmount(divide_half_even(numerator, surplus)))
            }
        }
    }
}

impl Value {
    /// `None` if the sum leaves 512 bits.
    fn plus(self, other: Self) -> Option<Self> {
        let decimals = self.decimals()?.max(other.decimals()?);
        let numerator = self
            .numerator_at(decimals)?
            .checked_add(other.numerator_at(decimals)?)?;
        Some(Self::Exact { numerator, decimals })
    }

    fn decimals(self) -> Option<u32> {
        match self {
            Self::Exact { decimals, .. } => Some(decimals),
            Self::Saturated => None,
        }
    }

    /// The numerator over `10^(decimals + 18)`; `None` if it leaves 512 bits. `decimals` is not below the own ones.
    fn numerator_at(self, decimals: u32) -> Option<U512> {
        match self {
            Self::Exact {
                numerator,
                decimals: own,
            } => numerator.checked_mul(power_of_ten(decimals.saturating_sub(own))),
            Self::Saturated => None,
        }
    }
}

impl Sum for Worth {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Self::plus)
    }
}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = match (self.0.decimals(), other.0.decimals()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(left), Some(right)) => (left, right),
        };
        let decimals = left.max(right);
        // Only the side with fewer places is multiplied. If its product leaves 512 bits, it is the larger.
        match (self.0.numerator_at(decimals), other.0.numerator_at(decimals)) {
            (Some(left), Some(right)) => left.cmp(&right),
            (None, _) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        }
    }
}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worth {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worth {}

impl FiatAmount {
    /// The longest text: 154 digits and a point.
    const MAX_LENGTH: usize = 155;
}

/// The exact decimal text.
impl fmt::Display for FiatAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&scaled_text(self.0, Threshold::SCALE))
    }
}

/// Reads a stored amount. Its text may be longer than that of a [`Decimal`](crate::Decimal).
impl FromStr for FiatAmount {
    type Err = FiatAmountError;

    fn from_str(text: &str) -> Result<Self, FiatAmountError> {
        let number = decimal::parse(text, Self::MAX_LENGTH)?;
        if number.is_negative() {
            return Err(FiatAmountError::OutOfRange);
        }
        number
            .scaled(Threshold::SCALE)
            .map(Self)
            .map_err(|error: ScaleError| match error {
                ScaleError::TooManyPlaces | ScaleError::TooLarge => FiatAmountError::OutOfRange,
            })
    }
}

/// A JSON number with the exact decimal text.
impl Serialize for FiatAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::serialize_number(self.to_string(), serializer)
    }
}

/// A JSON number with the text of an amount.
impl<'de> Deserialize<'de> for FiatAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::deserialize_raw(deserializer)?
            .get()
            .parse()
            .map_err(de::Error::custom)
    }
}
