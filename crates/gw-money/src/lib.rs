//! Exact money: currencies, prices, thresholds and their comparison (spec/60 sections 3 and 5).
//!
//! [`Decimal`] is the text of a number; [`Price`] and [`Threshold`] are made from it. [`Worth`] is the value of an
//! amount of tokens, or of several, and says whether that value is below a threshold. [`FiatAmount`] is its text.
//!
//! Not here: which price, currency and threshold apply (the compliance decision), and where prices come from.
//!
//! Invariants: no value passes through a float, and no operation wraps. The only rounding is in
//! [`Price::from_feed`] and in [`Worth::fiat_amount`], whose result decides nothing.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

mod currency;
mod decimal;
mod digits;
mod json;
mod price;
mod threshold;
mod token;
mod worth;

pub use currency::{Currency, CurrencyError, CurrencyList, CurrencyListError};
pub use decimal::{Decimal, DecimalError};
pub use price::{Price, PriceError};
pub use threshold::{Threshold, ThresholdError};
pub use token::{TokenAmount, TokenDecimals, TokenDecimalsError};
pub use worth::{FiatAmount, FiatAmountError, Worth};
