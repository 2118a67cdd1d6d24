//! Numbers in proofs: decimal texts that stand for elements of BN254's fields (ZK-33).
//!
//! Invariant: each number has exactly one text. A leading zero, a sign, a blank, or a number not below the modulus is
//! rejected, so that one signal cannot be written in two ways.

use ark_bn254::{Fq, Fr};
use ark_ff::{BigInteger256, PrimeField};
use gw_types::U256;

/// Number of digits of the largest element.
const MAX_DIGITS: usize = 77;

/// Why a text is not a canonical number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Empty, or something other than decimal digits.
    #[error("not a decimal number")]
    Digits,
    /// A leading zero.
    #[error("a leading zero")]
    LeadingZero,
    /// Not below the modulus.
    #[error("not below the modulus")]
    Range,
}

/// Parses a public signal: a number below the order of the group.
///
/// # Errors
/// [`NumberError`] if the text is not canonical or the number is not below the order.
pub fn scalar(text: &str) -> Result<Fr, NumberError> {
    Fr::from_bigint(limbs(text)?).ok_or(NumberError::Range)
}

/// Parses a coordinate: a number below the modulus of the base field.
///
/// # Errors
/// [`NumberError`] if the text is not canonical or the number is not below the modulus.
pub fn coordinate(text: &str) -> Result<Fq, NumberError> {
    Fq::from_bigint(limbs(text)?).ok_or(NumberError::Range)
}

/// Converts a scalar to a contract's 256-bit word.
pub fn word(scalar: &Fr) -> U256 {
    U256::from_limbs(scalar.into_bigint().0)
}

/// Converts a contract's word to a scalar. `None` if it is not below the order.
pub fn scalar_from_word(word: U256) -> Option<Fr> {
    Fr::from_bigint(BigInteger256::new(word.into_limbs()))
}

fn limbs(text: &str) -> Result<BigInteger256, NumberError> {
    match text.as_bytes() {
        [] => return Err(NumberError::Digits),
        digits if !digits.iter().all(u8::is_ascii_digit) => return Err(NumberError::Digits),
        [b'0', _, ..] => return Err(NumberError::LeadingZero),
        digits if digits.len() > MAX_DIGITS => return Err(NumberError::Range),
        _ => {}
    }
    let number = U256::from_str_radix(text, 10).map_err(|_| NumberError::Range)?;
    Ok(BigInteger256::new(number.into_limbs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: &str = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    const Q: &str = "21888242871839275222246405745257275088696311157297823662689037894645226208583";

    /// Decrements the last digit.
    fn below(text: &str) -> String {
        let (rest, last) = text.split_at(text.len() - 1);
        format!("{rest}{}", last.parse::<u8>().unwrap() - 1)
    }

    #[test]
    fn zk33_numbers_have_one_text() {
        for text in ["0", "1", "10", &below(R)] {
            assert_eq!(scalar(text).unwrap().into_bigint().to_string(), text);
            assert_eq!(word(&scalar(text).unwrap()).to_string(), text);
        }
        assert_eq!(coordinate(&below(Q)).unwrap().into_bigint().to_string(), below(Q));
        for (text, error) in [
            ("", NumberError::Digits),
            ("-1", NumberError::Digits),
            ("+1", NumberError::Digits),
            (" 1", NumberError::Digits),
            ("1_0", NumberError::Digits),
            ("0x1", NumberError::Digits),
            ("1e3", NumberError::Digits),
            ("١", NumberError::Digits),
            ("00", NumberError::LeadingZero),
            ("01", NumberError::LeadingZero),
            (R, NumberError::Range),
            (&"9".repeat(77), NumberError::Range),
            (&"1".repeat(100_000), NumberError::Range),
        ] {
            assert_eq!(scalar(text), Err(error), "{text}");
        }
        assert!(coordinate(R).is_ok());
        assert_eq!(coordinate(Q), Err(NumberError::Range));
    }

    #[test]
    fn words_that_are_no_field_element_are_none() {
        assert_eq!(scalar_from_word(U256::from(7)), Some(Fr::from(7u8)));
        assert_eq!(scalar_from_word(U256::MAX), None);
    }
}
