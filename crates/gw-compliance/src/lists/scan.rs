//! Addresses in free text.

use gw_types::Address;
use std::str::Chars;

/// What a text contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) addresses: Vec<Address>,
    /// Texts that start like an address and are none.
    pub(super) unreadable: Vec<String>,
}

/// The hexadecimal digits of an address.
const ADDRESS_DIGITS: usize = 40;
/// The hexadecimal digits of a hash of a transaction, or of an address on other kinds of chains.
const HASH_DIGITS: usize = 64;
/// A shorter text after `0x` is no remains of an address.
const MIN_DIGITS: usize = 4;

/// Finds `0x` with exactly 40 hexadecimal digits in any case. Checksums are not looked at: a wrong one still names an
/// address.
///
/// Characters without width are skipped: they break an address without being seen. A Cyrillic `х` counts as `x`.
pub(super) fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut characters = text.chars();
    let mut is_inside_word = false;
    while let Some(character) = characters.next() {
        let mut tail = characters.clone();
        let has_prefix = character == '0' && tail.find(|next| !has_no_width(*next)).is_some_and(is_prefix);
        if !has_prefix {
            if !has_no_width(character) {
                is_inside_word = is_word(character);
            }
            continue;
        }
        let word = take_word(&mut tail);
        characters = tail;
        let is_hash = word.len() == HASH_DIGITS && is_hex(&word);
        match address(&word) {
            Some(address) => scan.addresses.push(address),
            None if word.len() >= MIN_DIGITS && !is_hash && !is_inside_word => {
                scan.unreadable.push(format!("0x{word}"));
            }
            None => {}
        }
        is_inside_word = false;
    }
    scan
}

/// Takes letters and digits. A character without width ends an address that is complete.
fn take_word(characters: &mut Chars<'_>) -> String {
    let mut word = String::new();
    let mut ahead = characters.clone();
    while let Some(character) = ahead.next() {
        if has_no_width(character) {
            if word.len() == ADDRESS_DIGITS && is_hex(&word) {
                break;
            }
        } else if is_word(character) {
            word.push(character);
        } else {
            break;
        }
        *characters = ahead.clone();
    }
    word
}

/// The address of 40 hexadecimal digits.
pub(super) fn address(digits: &str) -> Option<Address> {
    // A prefix is no digit.
    if is_hex(digits) { digits.parse().ok() } else { None }
}

/// Removes characters that are not seen.
pub(super) fn without_invisible(text: &str) -> String {
    text.chars()
        .filter(|character| !has_no_width(*character) && !character.is_whitespace())
        .collect()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_prefix(character: char) -> bool {
    matches!(character, 'x' | 'X' | 'х' | 'Х')
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Zero-width spaces and joiners, marks of direction, the soft hyphen and the byte order mark.
fn has_no_width(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGITS: &str = "8589427373d6d84e98730d7795d8f6f8731fda16";

    fn sample_address() -> Address {
        DIGITS.parse().unwrap()
    }

    /// CO-36: tricks with case, checksums and characters that are not seen.
    #[test]
    fn co36_addresses_are_found_in_text() {
        let upper = DIGITS.to_uppercase();
        let (start, end) = DIGITS.split_at(20);
        for text in [
            format!("0x{DIGITS}"),
            format!("0X{upper}"),
            format!("0x{upper}"),
            format!("(ETH wallet: 0x{DIGITS}, since 2020)"),
            format!("eip155:1:0x{DIGITS}."),
            format!("Ethereum0x{DIGITS}"),
            format!("https://etherscan.io/address/0x{DIGITS}#code"),
            format!("\u{a0}0x{DIGITS}\u{a0}"),
            format!("0\u{200b}x{start}\u{ad}{end}\u{feff}"),
            format!("0х{DIGITS}"),
            format!("0x{DIGITS}\u{200b}and"),
            format!("地址0x{DIGITS}是"),
            format!("00x{DIGITS}"),
        ] {
            let scan = scan(&text);
            assert_eq!(scan.addresses, [sample_address()], "{text}");
            assert!(scan.unreadable.is_empty(), "{text}");
        }
        let two = scan(&format!("0x{DIGITS};0x{}", "1".repeat(40)));
        assert_eq!(two.addresses, [sample_address(), Address::repeat_byte(0x11)]);
    }

    /// CO-36: an address that cannot be read is reported, never dropped.
    #[test]
    fn co36_remains_of_addresses_are_reported() {
        let (start, _) = DIGITS.split_at(39);
        let (left, right) = DIGITS.split_at(20);
        for text in [
            format!("0x{start}"),
            format!("0x{DIGITS}1"),
            format!("0x{start}g"),
            format!("0x{start}а"),
            format!("0x{DIGITS}and"),
            format!("0x{left} {right}"),
            "0x8589...da16".to_owned(),
        ] {
            let scan = scan(&text);
            assert!(scan.addresses.is_empty(), "{text}");
            assert_eq!(scan.unreadable.len(), 1, "{text}");
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in [
            "",
            "0",
            "0x",
            "0x1f",
            "x",
            DIGITS,
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "TYmxWqBgVqZ1qcWDbdNfLdWuNYhWkuVhnm",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            &format!("0x{}", "ab".repeat(32)),
        ] {
            assert_eq!(scan(text), Scan::default(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn co36_each_address_of_a_text_is_found(
            bytes in any::<[u8; 20]>(), before in "[^0-9a-zA-Z_]{0,10}", after in "([^0-9a-zA-Z_].{0,10})?",
        ) {
            let address = Address::from(bytes);
            let found = scan(&format!("{before}{address}{after}"));
            prop_assert!(found.addresses.contains(&address));
            let found = scan(&format!("{before}{address:#x}{after}"));
            prop_assert!(found.addresses.contains(&address));
        }

        #[test]
        fn any_text_is_scanned(text in "(0x|[0-9a-fxX]|.){0,80}") {
            scan(&text);
        }
    }
}
