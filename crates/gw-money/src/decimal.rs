//! Numbers as text (CO-17).

use crate::digits::power_of_ten;
use alloy_primitives::U512;
use std::str::FromStr;

/// The longest text of a number, in characters.
const MAX_LENGTH: usize = 100;
/// The largest absolute value of a written exponent. The numbers of a double end at 10^308.
const MAX_EXPONENT: i32 = 400;

/// A decimal number, read from its text without loss: `mantissa · 10^exponent`.
///
/// The text has the form of a JSON number: no leading `+`, no leading zeros, digits on both sides of the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Not for zero.
    is_negative: bool,
    /// No multiple of ten, or zero. Below 10^100: the text has no more digits.
    mantissa: U512,
    exponent: i32,
}

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is empty.
    #[error("a number is missing")]
    Empty,
    /// The text has more than 100 characters.
    #[error("a number has at most 100 characters")]
    TooLong,
    /// The text does not have the form of a JSON number. NaN and infinity do not.
    #[error("not a decimal number")]
    Malformed,
    /// The exponent is above 400 or below -400.
    #[error("the exponent of a number is between -400 and 400")]
    Exponent,
}

/// Why a number does not fit a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleError {
    /// The number has more decimal places than the scale.
    TooManyPlaces,
    /// The integer exceeds 512 bits.
    TooLarge,
}

impl Decimal {
    /// Reads a JSON value: a number, or a string that contains one.
    ///
    /// # Errors
    /// [`DecimalError`] if the value is neither.
    pub fn from_json(json: &str) -> Result<Self, DecimalError> {
        if !json.starts_with('"') {
            return json.parse();
        }
        // Each character may be written as six.
        if json.len() > MAX_LENGTH.saturating_mul(6).saturating_add(2) {
            return Err(DecimalError::TooLong);
        }
        let text: String = serde_json::from_str(json).map_err(|_| DecimalError::Malformed)?;
        text.parse()
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    /// Whether this is below zero. A zero with a sign is not.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// The absolute value, times `10^scale`.
    pub(crate) fn scaled(&self, scale: u32) -> Result<U512, ScaleError> {
        if self.is_zero() {
            return Ok(U512::ZERO);
        }
        match self.shift(scale) {
            // 10^154 is the largest power of ten in 512 bits.
            Shift::Left(155..) => Err(ScaleError::TooLarge),
            Shift::Left(places) => self
                .mantissa
                .checked_mul(power_of_ten(places))
                .ok_or(ScaleError::TooLarge),
            // The mantissa is no multiple of ten: a digit would be lost.
            Shift::Right(_) => Err(ScaleError::TooManyPlaces),
        }
    }

    /// The absolute value, times `10^scale`, rounded half to even.
    pub(crate) fn scaled_half_even(&self, scale: u32) -> Result<U512, ScaleError> {
        match self.shift(scale) {
            Shift::Left(_) => self.scaled(scale),
            Shift::Right(places) => Ok(crate::digits::divide_half_even(self.mantissa, places)),
        }
    }

    fn shift(&self, scale: u32) -> Shift {
        let places = i64::from(self.exponent).saturating_add(i64::from(scale));
        let distance = u32::try_from(places.unsigned_abs()).unwrap_or(u32::MAX);
        if places >= 0 {
            Shift::Left(distance)
        } else {
            Shift::Right(distance)
        }
    }
}

/// By how many places the digits of a mantissa move.
enum Shift {
    Left(u32),
    Right(u32),
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        parse(text, MAX_LENGTH)
    }
}

/// Reads a number of at most `max_length` characters, of which at most 154 are digits of the mantissa.
pub(crate) fn parse(text: &str, max_length: usize) -> Result<Decimal, DecimalError> {
    if text.is_empty() {
        return Err(DecimalError::Empty);
    }
    if text.len() > max_length {
        return Err(DecimalError::TooLong);
    }
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, written_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(DecimalError::Malformed),
        Some(parts) => parts,
        None => (number, ""),
    };
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || has_leading_zero {
        return Err(DecimalError::Malformed);
    }
    // Zeros at the end are left out, so that texts of one value give one number.
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::Malformed);
    }
    let significant = digits.trim_end_matches('0');
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let zeros = i32::try_from(digits.len().saturating_sub(significant.len())).unwrap_or(i32::MAX);
    let mantissa = match significant {
        "" => U512::ZERO,
        digits => U512::from_str_radix(digits, 10).map_err(|_| DecimalError::TooLong)?,
    };
    Ok(Decimal {
        is_negative: is_negative && !mantissa.is_zero(),
        mantissa,
        exponent: if mantissa.is_zero() {
            0
        } else {
            exponent.saturating_sub(places).saturating_add(zeros)
        },
    })
}

fn written_exponent(text: &str) -> Result<i32, DecimalError> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::Malformed);
    }
    // Digits that no integer of 32 bits holds are out of range.
    let size = digits.parse::<i32>().map_err(|_| DecimalError::Exponent)?;
    if size > MAX_EXPONENT {
        return Err(DecimalError::Exponent);
    }
    Ok(if is_negative { -size } else { size })
}
