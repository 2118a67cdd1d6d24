//! Powers of ten, rounding and the text of scaled integers.

use alloy_primitives::U512;

/// `10^exponent`. The largest power of ten below 2^512 is 10^154; larger ones saturate.
pub(crate) fn power_of_ten(exponent: u32) -> U512 {
    U512::from(10u8).saturating_pow(U512::from(exponent))
}

/// `numerator / 10^exponent`, rounded to the nearest integer, a half to the even one.
pub(crate) fn divide_half_even(numerator: U512, exponent: u32) -> U512 {
    let divisor = power_of_ten(exponent);
    // A power of ten is not zero.
    let (quotient, remainder) = numerator.div_rem(divisor);
    // `remainder < divisor`: the subtraction does not wrap. It replaces a doubling, which could.
    let rest = divisor.saturating_sub(remainder);
    let rounds_up = match remainder.cmp(&rest) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => quotient.bit(0),
        std::cmp::Ordering::Greater => true,
    };
    quotient.saturating_add(U512::from(u8::from(rounds_up)))
}

/// The exact text of `mantissa / 10^scale`: no exponent, no zeros behind the last digit.
pub(crate) fn scaled_text(mantissa: U512, scale: u32) -> String {
    let (whole, fraction) = mantissa.div_rem(power_of_ten(scale));
    if fraction.is_zero() {
        return whole.to_string();
    }
    let fraction = fraction.to_string();
    let missing = usize::try_from(scale)
        .unwrap_or_default()
        .saturating_sub(fraction.len());
    format!("{whole}.{}{}", "0".repeat(missing), fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_end_at_512_bits() {
        assert_eq!(power_of_ten(0), U512::from(1));
        assert_eq!(power_of_ten(154).to_string(), format!("1{}", "0".repeat(154)));
        assert_eq!(power_of_ten(155), U512::MAX);
    }

    #[test]
    fn a_half_is_rounded_to_the_even_neighbour() {
        for (numerator, expected) in [
            (0, 0),
            (4, 0),
            (5, 0),
            (6, 1),
            (14, 1),
            (15, 2),
            (25, 2),
            (26, 3),
            (35, 4),
        ] {
            let rounded = divide_half_even(U512::from(numerator), 1);
            assert_eq!(rounded, U512::from(expected), "{numerator}");
        }
        assert_eq!(divide_half_even(U512::from(7), 0), U512::from(7));
        assert_eq!(divide_half_even(U512::MAX, 0), U512::MAX);
    }

    #[test]
    fn texts_have_no_needless_zeros() {
        for (mantissa, scale, expected) in [
            (0, 8, "0"),
            (1, 8, "0.00000001"),
            (10, 8, "0.0000001"),
            (100_000_000, 8, "1"),
            (1_050_000_000, 8, "10.5"),
            (12, 0, "12"),
        ] {
            assert_eq!(scaled_text(U512::from(mantissa), scale), expected);
        }
    }
}
