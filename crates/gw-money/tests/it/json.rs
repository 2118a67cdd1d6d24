//! Numbers in JSON documents (CO-17).

use gw_money::{Currency, Decimal, FiatAmount, Price, Threshold, TokenAmount, TokenDecimals, Worth};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// CO-17: a number and a numeric string give the same.
#[test]
fn co17_numbers_and_numeric_strings_are_read_exactly() {
    for (json, text) in [
        ("29.08", "29.08"),
        (r#""29.08""#, "29.08"),
        (
            "123456789012345678.123456789012345678",
            "123456789012345678.123456789012345678",
        ),
        (
            r#""123456789012345678.123456789012345678""#,
            "123456789012345678.123456789012345678",
        ),
        ("1e-18", "0.000000000000000001"),
        ("0.10", "0.1"),
        (" 2 ", "2"),
        (r#""\u0031\u002e5""#, "1.5"),
    ] {
        let price: Price = serde_json::from_str(json).unwrap();
        assert_eq!(price.to_string(), text, "{json}");
        assert_eq!(serde_json::to_string(&price).unwrap(), text, "{json}");
    }
    let threshold: Threshold = serde_json::from_str("901.48").unwrap();
    assert_eq!(serde_json::to_string(&threshold).unwrap(), "901.48");
    assert_eq!(serde_json::to_string(&Threshold::DEFAULT).unwrap(), "1000");
    assert_eq!(serde_json::to_string(&Threshold::MAX).unwrap(), "1000000000000000");
}

/// CO-17.
#[test]
fn co17_values_that_are_no_numbers_are_refused() {
    let long = format!("\"{}\"", "1".repeat(101));
    let spelled = format!("\"{}\"", "\\u0031".repeat(101));
    let short = format!("\"{}\"", "\\u0031".repeat(100));
    for json in [
        "null",
        "true",
        "[1]",
        "{}",
        r#""""#,
        r#""NaN""#,
        r#""Infinity""#,
        r#"" 1""#,
        r#""1,5""#,
        r#""0x1""#,
        &long,
        &spelled,
        "1e401",
    ] {
        assert!(serde_json::from_str::<Decimal>(json).is_err(), "{json}");
        assert!(serde_json::from_str::<Price>(json).is_err(), "{json}");
        assert!(serde_json::from_str::<Threshold>(json).is_err(), "{json}");
        assert!(Decimal::from_json(json).is_err(), "{json}");
    }
    assert!(serde_json::from_str::<Decimal>(&short).is_ok());
    let message = serde_json::from_str::<Price>(r#""0""#).unwrap_err().to_string();
    assert!(message.starts_with("a price must be greater than 0"), "{message}");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    prices: BTreeMap<Currency, Option<Price>>,
    threshold: Option<Threshold>,
    amount: Option<FiatAmount>,
    decimals: TokenDecimals,
}

/// CO-17: the types are members of documents, in maps and options too.
#[test]
fn co17_documents_keep_the_exact_text() {
    let text = concat!(
        r#"{"prices":{"eur":0.000000000000000001,"usd":null},"threshold":0.00000001,"#,
        r#""amount":12345678901234567890123456789.12345678,"decimals":77}"#
    );
    let row: Row = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&row).unwrap(), text);
    assert!(serde_json::from_str::<TokenDecimals>("78").is_err());
    assert!(serde_json::from_str::<TokenDecimals>("-1").is_err());
    assert!(serde_json::from_str::<TokenDecimals>("6.0").is_err());
}

/// CO-17: the reader of request bodies, which names the failing member, keeps the text of numbers.
#[test]
fn co17_numbers_pass_exactly_through_the_reader_of_request_bodies() {
    let text = r#"{"prices":{"eur":0.100000000000000001},"threshold":"901.48","amount":null,"decimals":18}"#;
    let row: Row = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap();
    let price = row.prices[&Currency::EUR].unwrap();
    assert_eq!(price.to_string(), "0.100000000000000001");
    assert_eq!(row.threshold.unwrap().to_string(), "901.48");

    let wrong = text.replace("901.48", "-1");
    let error = serde_path_to_error::deserialize::<_, Row>(&mut serde_json::Deserializer::from_str(&wrong));
    let error = error.unwrap_err();
    assert_eq!(error.path().to_string(), "threshold");
    assert!(
        error.to_string().contains("a threshold must not be negative"),
        "{error}"
    );
}

/// CO-20: the text of the largest amounts is read back.
#[test]
fn co20_amounts_have_no_upper_bound_in_their_text() {
    let price = Price::from_mantissa(999_999_999_999_999_999_999_999_999_999_999_999).unwrap();
    let whole = TokenDecimals::new(0).unwrap();
    let one = Worth::new(TokenAmount::new(alloy_primitives::U256::MAX, whole), price);
    let amount = one.plus(one).fiat_amount().unwrap();
    let text = serde_json::to_string(&amount).unwrap();
    assert!(text.len() > 96, "{text}");
    assert_eq!(serde_json::from_str::<FiatAmount>(&text).unwrap(), amount);
    for text in ["-1", "0.000000001", "1e400", "\"1\""] {
        assert!(serde_json::from_str::<FiatAmount>(text).is_err(), "{text}");
    }
}
