//! Texts that contracts and senders choose.

use gw_types::U256;

/// At most `longest` characters of a text. Control characters, and invisible characters that change the direction of
/// text, are replaced, so that it cannot pretend to be something else in a page or a log line.
pub(crate) fn clean_text(text: &str, longest: usize) -> String {
    let is_invisible = |letter: char| {
        matches!(
            letter,
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
    };
    let is_hidden = |letter: char| letter.is_control() || is_invisible(letter);
    text.chars()
        .take(longest)
        .map(|letter| {
            if is_hidden(letter) {
                char::REPLACEMENT_CHARACTER
            } else {
                letter
            }
        })
        .collect()
}

/// The reason of a revert by the standard encodings `Error(string)` and `Panic(uint256)`.
pub(crate) fn revert_reason(output: &[u8]) -> Option<String> {
    const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
    const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];
    let (selector, data) = output.split_first_chunk::<4>()?;
    match *selector {
        ERROR => string(data).map(|reason| clean_text(&reason, super::LONGEST_REASON)),
        PANIC => {
            let code = <[u8; 32]>::try_from(data).ok()?;
            Some(format!("Panic(0x{:02x})", U256::from_be_bytes(code)))
        }
        _ => None,
    }
}

/// The text that a function with one output of type `string` returned. Invalid UTF-8 is replaced.
pub(crate) fn string(data: &[u8]) -> Option<String> {
    let number = |start: usize| -> Option<usize> {
        let bytes = data.get(start..)?.first_chunk::<32>()?;
        U256::from_be_bytes(*bytes).try_into().ok()
    };
    let start = number(0)?;
    let length = number(start)?;
    let first = start.checked_add(32)?;
    let bytes = data.get(first..first.checked_add(length)?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
