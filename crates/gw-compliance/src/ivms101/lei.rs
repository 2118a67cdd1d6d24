//! Legal entity identifiers (ISO 17442).

/// Whether a text is a legal entity identifier: 18 digits and upper-case letters and two check digits, which make the
/// number divide by 97 with remainder 1 (ISO 7064, MOD 97-10; a letter counts as 10 to 35).
pub fn is_lei(text: &str) -> bool {
    let has_form = text.len() == 20
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && text.bytes().rev().take(2).all(|byte| byte.is_ascii_digit());
    let remainder = text
        .chars()
        .filter_map(|character| character.to_digit(36))
        .fold(0u32, |rest, digit| {
            // Below 97 · 100 + 36.
            let shift = if digit < 10 { 10 } else { 100 };
            rest.saturating_mul(shift).saturating_add(digit) % 97
        });
    has_form && remainder == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// CO-38: the check digits of ISO 17442.
    #[test]
    fn co38_check_digits_of_known_identifiers_hold() {
        for lei in [
            "506700GE1G29325QX363",
            "5493001KJTIIGC8Y1R12",
            "HWUPKR0MPOU8FGXBT394",
            "7LTWFZYICNSX8D621K86",
        ] {
            assert!(is_lei(lei), "{lei}");
            assert!(!is_lei(&lei.to_lowercase()), "{lei} in lower case");
        }
        for text in [
            "",
            "506700GE1G29325QX362",
            "506700GE1G29325QX36",
            "506700GE1G29325QX3633",
            "506700GE1G29325QX3 3",
            "506700GE1G29325QÜ363",
            "00000000000000000000",
        ] {
            assert!(!is_lei(text), "{text}");
        }
    }

    proptest! {
        /// CO-38: exactly one pair of check digits from 02 to 98 fits, and no other digit in the place of one.
        #[test]
        fn co38_one_pair_of_check_digits_fits(stem in "[0-9A-Z]{17}", last in 0u8..10, other in 0u8..10) {
            let fitting = |last: u8| {
                (2..=98).map(|digits| format!("{stem}{last}{digits:02}")).filter(|lei| is_lei(lei)).collect::<Vec<_>>()
            };
            let leis = fitting(last);
            prop_assert_eq!(leis.len(), 1);
            prop_assert_eq!(leis == fitting(other), last == other);
            let changed = leis[0].replacen(&format!("{stem}{last}"), &format!("{stem}{other}"), 1);
            prop_assert_eq!(is_lei(&changed), last == other);
        }
    }
}
