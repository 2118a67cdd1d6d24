//! The cases of `vectors.json`, which `vectors.py` computes with exact fractions. To make the file again:
//! `python3 crates/gw-money/tests/vectors.py > crates/gw-money/tests/vectors.json`.

use alloy_primitives::U256;
use gw_money::{
    Currency, Decimal, DecimalError, Price, PriceError, Threshold, ThresholdError, TokenAmount, TokenDecimals, Worth,
};
use serde::Deserialize;
use std::str::FromStr;

#[derive(Deserialize)]
struct Vectors {
    worth: Vec<WorthCase>,
    numbers: Vec<NumberCase>,
    currencies: Vec<CurrencyCase>,
}

#[derive(Deserialize)]
struct WorthCase {
    name: String,
    tokens: Vec<TokenCase>,
    threshold: String,
    is_below: bool,
    fiat: Option<String>,
}

#[derive(Deserialize)]
struct TokenCase {
    units: String,
    decimals: u8,
    price: String,
}

#[derive(Deserialize)]
struct NumberCase {
    text: String,
    manual: String,
    feed: String,
    threshold: String,
}

#[derive(Deserialize)]
struct CurrencyCase {
    code: String,
    digits: Option<u8>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors.json")).unwrap()
}

fn worth(case: &WorthCase) -> Worth {
    let value = |token: &TokenCase| {
        let units = U256::from_str(&token.units).unwrap();
        let amount = TokenAmount::new(units, TokenDecimals::new(token.decimals).unwrap());
        Worth::new(amount, token.price.parse().unwrap())
    };
    case.tokens.iter().map(value).sum()
}

/// CO-19, CO-20 and CO-21.
#[test]
fn co21_values_and_comparisons_agree_with_exact_fractions() {
    let cases = vectors().worth;
    assert!(cases.len() > 800);
    for case in cases {
        let worth = worth(&case);
        let threshold: Threshold = case.threshold.parse().unwrap();
        assert_eq!(worth.is_below(threshold), case.is_below, "{}", case.name);
        let fiat = worth.fiat_amount().map(|amount| amount.to_string());
        assert_eq!(fiat, case.fiat, "{}", case.name);
        assert_eq!(worth.is_saturated(), case.fiat.is_none(), "{}", case.name);
        if let Some(text) = case.fiat {
            assert_eq!(text.parse(), Ok(worth.fiat_amount().unwrap()), "{}", case.name);
        }
    }
}

/// CO-19: the order of the tokens does not matter.
#[test]
fn co19_a_sum_is_the_same_in_each_order() {
    for case in vectors().worth {
        let mut reversed = case;
        let forward = worth(&reversed);
        reversed.tokens.reverse();
        assert_eq!(worth(&reversed), forward, "{}", reversed.name);
    }
}

fn decimal_kind(error: DecimalError) -> &'static str {
    match error {
        DecimalError::Empty => "empty",
        DecimalError::TooLong => "too_long",
        DecimalError::Malformed => "malformed",
        DecimalError::Exponent => "exponent",
    }
}

fn price_kind(error: PriceError) -> &'static str {
    match error {
        PriceError::Decimal(error) => decimal_kind(error),
        PriceError::NotPositive => "not_positive",
        PriceError::TooManyPlaces => "too_many_places",
        PriceError::TooLarge => "too_large",
    }
}

fn threshold_kind(error: ThresholdError) -> &'static str {
    match error {
        ThresholdError::Decimal(error) => decimal_kind(error),
        ThresholdError::Negative => "negative",
        ThresholdError::TooManyPlaces => "too_many_places",
        ThresholdError::TooLarge => "too_large",
    }
}

/// CO-18: manual input is exact or refused.
#[test]
fn co18_manual_prices_are_exact_or_refused() {
    for case in vectors().numbers {
        let price: Result<Price, PriceError> = case.text.parse();
        let outcome = price.map_or_else(
            |error| price_kind(error).to_owned(),
            |price| price.mantissa().to_string(),
        );
        assert_eq!(outcome, case.manual, "{}", case.text);
        if let Ok(price) = price {
            assert_eq!(price.to_string().parse(), Ok(price), "{}", case.text);
        }
    }
}

/// CO-18: feed input is rounded half to even; zero is unknown.
#[test]
fn co18_feed_prices_are_rounded_half_to_even() {
    for case in vectors().numbers {
        let price = Decimal::from_str(&case.text)
            .map_err(PriceError::from)
            .and_then(|number| Price::from_feed(&number));
        let outcome = match price {
            Err(error) => price_kind(error).to_owned(),
            Ok(None) => "unknown".to_owned(),
            Ok(Some(price)) => price.mantissa().to_string(),
        };
        assert_eq!(outcome, case.feed, "{}", case.text);
    }
}

/// CO-3 and CO-18.
#[test]
fn co3_thresholds_are_exact_or_refused() {
    for case in vectors().numbers {
        let threshold: Result<Threshold, ThresholdError> = case.text.parse();
        let outcome = threshold.map_or_else(
            |error| threshold_kind(error).to_owned(),
            |threshold| threshold.mantissa().to_string(),
        );
        assert_eq!(outcome, case.threshold, "{}", case.text);
        if let Ok(threshold) = threshold {
            assert_eq!(threshold.to_string().parse(), Ok(threshold), "{}", case.text);
        }
    }
}

/// CO-10.
#[test]
fn co10_minor_units_are_those_of_the_standard() {
    for case in vectors().currencies {
        let currency: Currency = case.code.parse().unwrap();
        assert_eq!(currency.minor_unit_digits(), case.digits, "{}", case.code);
    }
}
