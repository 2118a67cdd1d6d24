//! Properties against integers without bounds.

use alloy_primitives::U256;
use gw_money::{Decimal, FiatAmount, Price, Threshold, TokenAmount, TokenDecimals, Worth};
use num_bigint::BigUint;
use proptest::prelude::*;
use std::cmp::Ordering;

/// A fraction that is not negative.
#[derive(Clone, Debug)]
struct Rational {
    numerator: BigUint,
    denominator: BigUint,
}

impl Rational {
    fn new(numerator: BigUint, places: u32) -> Self {
        Self {
            numerator,
            denominator: ten_to(places),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            numerator: &self.numerator * &other.denominator + &other.numerator * &self.denominator,
            denominator: &self.denominator * &other.denominator,
        }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }
}

fn ten_to(places: u32) -> BigUint {
    BigUint::from(10u8).pow(places)
}

#[derive(Clone, Debug)]
struct Token {
    units: U256,
    decimals: u8,
    price: u128,
}

impl Token {
    fn worth(&self) -> Worth {
        let amount = TokenAmount::new(self.units, TokenDecimals::new(self.decimals).unwrap());
        Worth::new(amount, Price::from_mantissa(self.price).unwrap())
    }

    fn value(&self) -> Rational {
        let units = BigUint::from_bytes_be(&self.units.to_be_bytes::<32>());
        Rational::new(units * self.price, u32::from(self.decimals) + 18)
    }
}

fn value(tokens: &[Token]) -> Rational {
    let zero = Rational::new(BigUint::ZERO, 0);
    tokens.iter().fold(zero, |sum, token| sum.plus(&token.value()))
}

fn worth(tokens: &[Token]) -> Worth {
    tokens.iter().map(Token::worth).sum()
}

/// Amounts of all sizes: a random number of 256 bits is nearly always a large one.
fn units() -> impl Strategy<Value = U256> {
    (any::<[u8; 32]>(), 0usize..=256).prop_map(|(bytes, shift)| U256::from_be_bytes(bytes).wrapping_shr(shift))
}

fn price() -> impl Strategy<Value = u128> {
    (1u128..1_000_000_000_000_000_000_000_000_000_000_000_000, 0u32..36)
        .prop_map(|(mantissa, places)| (mantissa / 10u128.pow(places)).max(1))
}

fn token() -> impl Strategy<Value = Token> {
    (units(), 0u8..=77, price()).prop_map(|(units, decimals, price)| Token { units, decimals, price })
}

fn threshold() -> impl Strategy<Value = u128> {
    (0u128..=100_000_000_000_000_000_000_000, 0u32..24).prop_map(|(mantissa, places)| mantissa / 10u128.pow(places))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// CO-19: the comparison is that of exact fractions, whether or not the sum leaves 512 bits.
    #[test]
    fn co19_comparison_is_exact(tokens in prop::collection::vec(token(), 0..6), threshold in threshold()) {
        let limit = Rational::new(BigUint::from(threshold), 8);
        let expected = value(&tokens).cmp(&limit).is_lt();
        prop_assert_eq!(worth(&tokens).is_below(Threshold::from_mantissa(threshold).unwrap()), expected);
    }

    /// CO-19: the same at the threshold nearest to the value, and one step beside it.
    #[test]
    fn co19_comparison_is_exact_near_the_threshold(mut token in token(), step in 0u128..3, unit in 0u8..3) {
        // Units that make about 10^6 at the price.
        token.units = U256::from(token.units.wrapping_to::<u64>());
        token.decimals = token.decimals.min(30);
        let exact = token.value();
        let nearest = &exact.numerator * ten_to(8) / &exact.denominator;
        let nearest = u128::try_from(nearest).unwrap_or(u128::MAX).min(Threshold::MAX.mantissa() - 2);
        token.units = (token.units + U256::from(unit)).saturating_sub(U256::from(1));
        let threshold = nearest + step;
        let limit = Rational::new(BigUint::from(threshold), 8);
        let below = token.worth().is_below(Threshold::from_mantissa(threshold).unwrap());
        prop_assert_eq!(below, token.value().cmp(&limit).is_lt());
    }

    /// CO-19: values compare as fractions; a saturated one is above all others.
    #[test]
    fn co19_values_are_ordered(
        left in prop::collection::vec(token(), 0..3),
        right in prop::collection::vec(token(), 0..3),
    ) {
        let (a, b) = (worth(&left), worth(&right));
        let expected = match (a.is_saturated(), b.is_saturated()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => value(&left).cmp(&value(&right)),
        };
        prop_assert_eq!(a.cmp(&b), expected);
        prop_assert_eq!(a == b, expected.is_eq());
    }

    /// CO-19: a sum saturates exactly if its numerator over the common denominator leaves 512 bits.
    #[test]
    fn co19_saturation_is_that_of_the_common_denominator(tokens in prop::collection::vec(token(), 1..6)) {
        let places = tokens.iter().map(|token| u32::from(token.decimals)).max().unwrap() + 18;
        let sum = value(&tokens);
        let numerator = sum.numerator * ten_to(places) / sum.denominator;
        prop_assert_eq!(worth(&tokens).is_saturated(), numerator.bits() > 512);
    }

    /// CO-20: the shown amount is at most half a step away, and even at exactly half a step.
    #[test]
    fn co20_amounts_are_rounded_half_to_even(tokens in prop::collection::vec(token(), 1..4)) {
        let Some(amount) = worth(&tokens).fiat_amount() else {
            return Ok(());
        };
        let text = amount.to_string();
        prop_assert!(!text.contains('.') || !text.ends_with('0'));
        let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
        let shown: BigUint = format!("{whole}{places:0<8}").parse().unwrap();
        let sum = value(&tokens);
        // |shown - exact| · 2 against one step, both times the denominator.
        let (exact, step) = (&sum.numerator * ten_to(8), &sum.denominator);
        let scaled = &shown * step;
        let distance = if scaled > exact { &scaled - &exact } else { &exact - &scaled };
        match (distance * 2u8).cmp(step) {
            Ordering::Less => {}
            Ordering::Equal => prop_assert!(!shown.bit(0)),
            Ordering::Greater => prop_assert!(false, "{text}"),
        }
        prop_assert_eq!(text.parse::<FiatAmount>(), Ok(amount));
    }

    /// CO-17 and CO-18: texts of prices and thresholds are read back exactly.
    #[test]
    fn co18_texts_are_read_back(price in price(), threshold in threshold()) {
        let price = Price::from_mantissa(price).unwrap();
        prop_assert_eq!(price.to_string().parse(), Ok(price));
        let feed = price.to_string().parse::<Decimal>().unwrap();
        prop_assert_eq!(Price::from_feed(&feed), Ok(Some(price)));
        let threshold = Threshold::from_mantissa(threshold).unwrap();
        prop_assert_eq!(threshold.to_string().parse(), Ok(threshold));
        let json = serde_json::to_string(&(price, threshold)).unwrap();
        prop_assert_eq!(serde_json::from_str::<(Price, Threshold)>(&json).unwrap(), (price, threshold));
    }

    /// CO-17: no text makes the parser fail otherwise than by an error.
    #[test]
    fn co17_any_text_is_read_or_refused(text in "[-+0-9.eE]{0,30}|\\PC{0,20}") {
        if let Ok(number) = text.parse::<Decimal>() {
            let _ = Price::from_manual(&number);
            let _ = Price::from_feed(&number);
            let _ = Threshold::from_decimal(&number);
            let _ = text.parse::<FiatAmount>();
            prop_assert!(serde_json::from_str::<Decimal>(&text).is_ok());
        }
        let _ = Decimal::from_json(&text);
    }

    /// CO-16.
    #[test]
    fn co16_jumps_are_measured_exactly(new in price(), old in price(), percent in any::<u32>()) {
        let expected = BigUint::from(new.abs_diff(old)) * 100u8 > BigUint::from(old) * percent;
        let (new, old) = (Price::from_mantissa(new).unwrap(), Price::from_mantissa(old).unwrap());
        prop_assert_eq!(new.jumps_from(old, percent), expected);
    }
}

/// CO-16: the bound itself is no jump.
#[test]
fn co16_a_change_by_exactly_the_percentage_is_no_jump() {
    let price = |text: &str| text.parse::<Price>().unwrap();
    for (new, is_jump) in [
        ("150", false),
        ("150.000000000000000001", true),
        ("50", false),
        ("49.99", true),
    ] {
        assert_eq!(price(new).jumps_from(price("100"), 50), is_jump, "{new}");
    }
}
