//! Masking of addresses in JSON texts (HD12, HD30): the rule for every surface whose readers are administrators.
//!
//! An administrator is a viewer like any other: an address that is not Full for them reads `[PRIVATE]`, in every part
//! of a response, including notes and audit values. Which addresses are Full is up to the caller.

use gw_types::Address;

/// The placeholder for a value that the caller may not see.
pub const PRIVATE: &str = "[PRIVATE]";

/// Members that name a person. They are not masked: a DID may contain an address, but administrators know their
/// members.
const NAMES: [&str; 10] = [
    "external_id",
    "actor_external_id",
    "did",
    "dids",
    "user_did",
    "requester_did",
    "target_did",
    "decided_by_did",
    "viewer_did",
    "identity",
];

/// The JSON text with `[PRIVATE]` in place of each address that `shows` refuses; `None` if nothing was masked.
pub fn mask_addresses(json: &[u8], shows: impl Fn(Address) -> bool) -> Option<Vec<u8>> {
    let mut masked: Option<Vec<u8>> = None;
    let (mut copied, mut key): (usize, &[u8]) = (0, b"");
    for token in tokens(json) {
        if token.is_key {
            key = token.text;
        }
        if !token.is_key && NAMES.iter().any(|name| name.as_bytes() == key) {
            continue;
        }
        for (offset, word) in words(token.text) {
            if let Some(address) = address_of(word)
                && !shows(address)
            {
                let start = token.start + offset;
                let out = masked.get_or_insert_with(|| Vec::with_capacity(json.len()));
                out.extend_from_slice(json.get(copied..start).unwrap_or_default());
                out.extend_from_slice(PRIVATE.as_bytes());
                copied = start + word.len();
            }
        }
    }
    let mut out = masked?;
    out.extend_from_slice(json.get(copied..).unwrap_or_default());
    Some(out)
}

/// A string of a JSON text, without its quotes. `start` is its byte offset in the text.
struct Token<'t> {
    start: usize,
    text: &'t [u8],
    is_key: bool,
}

/// The strings of a JSON text, in order.
fn tokens(json: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut position = 0;
    core::iter::from_fn(move || {
        let start = position + json.get(position..)?.iter().position(|byte| *byte == b'"')? + 1;
        let mut escaped = false;
        let length = json.get(start..)?.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        let text = json.get(start..start + length)?;
        position = start + length + 1;
        let next = json
            .get(position..)
            .unwrap_or_default()
            .iter()
            .find(|byte| !byte.is_ascii_whitespace());
        Some(Token {
            start,
            text,
            is_key: next == Some(&b':'),
        })
    })
}

/// The runs of letters and digits in a JSON string, with their offsets. Escape sequences belong to no run.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut position = 0;
    core::iter::from_fn(move || {
        loop {
            let rest = text.get(position..)?;
            match rest.first()? {
                b'\\' => position += if rest.get(1) == Some(&b'u') { 6 } else { 2 },
                byte if byte.is_ascii_alphanumeric() => {
                    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                    let start = position;
                    position += length;
                    return Some((start, rest.get(..length)?));
                }
                _ => position += 1,
            }
        }
    })
}

/// The address that a word may spell: 20 bytes of hex, or a 32-byte ABI word with an address that is not a small
/// number.
fn address_of(word: &[u8]) -> Option<Address> {
    let text = core::str::from_utf8(word).ok()?;
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    let address = match digits.len() {
        40 => digits,
        64 => digits.strip_prefix("000000000000000000000000")?,
        _ => return None,
    };
    let address: Address = address.parse().ok()?;
    let is_small_number = address.iter().take(12).all(|byte| *byte == 0);
    (digits.len() == 40 || !is_small_number).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "0x1111111111111111111111111111111111111111";
    const OTHER: &str = "0xAbCdefabcdefabcdefabcdefabcdefabcdefabcd";

    fn read(json: &str) -> String {
        let known: Address = KNOWN.parse().unwrap();
        let out = mask_addresses(json.as_bytes(), |address| address == known);
        String::from_utf8(out.unwrap_or_else(|| json.as_bytes().to_vec())).unwrap()
    }

    /// HD12, HD30: in every position and notation.
    #[test]
    fn hd30_addresses_that_are_not_full_are_masked_everywhere() {
        let bare = OTHER.trim_start_matches("0x").to_lowercase();
        for (text, shown) in [
            (
                format!(r#"{{"address":"{KNOWN}","to":"{OTHER}"}}"#),
                format!(r#"{{"address":"{KNOWN}","to":"[PRIVATE]"}}"#),
            ),
            (
                format!(r#"{{"note": "pays {OTHER}, and\n{OTHER}"}}"#),
                r#"{"note": "pays [PRIVATE], and\n[PRIVATE]"}"#.into(),
            ),
            (
                format!(r#"{{"note":"\"{bare}\" \u00e4{bare}"}}"#),
                r#"{"note":"\"[PRIVATE]\" \u00e4[PRIVATE]"}"#.into(),
            ),
            (format!(r#"{{"{OTHER}":[1,"x"]}}"#), r#"{"[PRIVATE]":[1,"x"]}"#.into()),
            (format!(r#"["0x{bare:0>64}"]"#), r#"["[PRIVATE]"]"#.into()),
            (
                format!(r#"{{"error":"{OTHER} is taken"}}"#),
                r#"{"error":"[PRIVATE] is taken"}"#.into(),
            ),
        ] {
            assert_eq!(read(&text), shown, "{text}");
        }
    }

    #[test]
    fn hd30_what_is_no_address_stays() {
        let bare = OTHER.trim_start_matches("0x");
        for text in [
            format!(r#"{{"did":"did:pkh:eip155:1:{OTHER}","dids":["did:pkh:eip155:1:{OTHER}"]}}"#),
            format!(r#"{{"entry_hash":"{}"}}"#, "ab".repeat(32)),
            format!(r#"{{"word":"0x{:064x}"}}"#, u64::MAX),
            format!(r#"{{"id":"0190a5f0-7b5e-7c3a-9f00-0123456789ab","long":"0x{bare}ff"}}"#),
            r#"{"n":1.50,"x":"unended"#.to_owned(),
            String::new(),
        ] {
            assert_eq!(read(&text), text);
        }
    }
}
