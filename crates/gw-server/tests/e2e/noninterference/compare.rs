//! Compares two responses byte by byte, except for values that each gateway generates.
//!
//! Only these are not compared literally:
//! - ids that the gateway generates: each id of one world corresponds to one id of the other during the whole test. Ids
//!   that the caller may not see correspond to no id, so a response that contains one differs;
//! - hashes of blocks, which correspond by block number: they are digests of everything in the block;
//! - the order of the few lists that are ordered by id ([`UNORDERED`]);
//! - times (RFC 3339, and the members of [`MOMENTS`], which include durations) and secrets ([`SECRETS`]);
//! - the gateway's own address, which has another port in each world;
//! - the headers of [`HEADERS`] and the value of `Retry-After`, because the two requests are sent a moment apart.

use crate::harness::Response;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Headers that are not compared: the time, and the length of the body, which is compared itself.
const HEADERS: [&str; 2] = ["date", "content-length"];

/// The header with the secret of a new login.
const LOGIN_SECRET: &str = "x-login-secret";

const RETRY_AFTER: &str = "retry-after";

/// The header with a cursor, which is encrypted with a random nonce.
const NEXT_CURSOR: &str = "x-next-cursor";

/// Members with random string values.
const SECRETS: [&str; 16] = [
    "access_token",
    "refresh_token",
    "nonce",
    "secret",
    "url",
    "deeplink",
    "universal_link",
    "qr_code",
    "session",
    "signature",
    "thid",
    "oauth_session_id",
    "callbackUrl",
    "reason",
    // The digest of a record that contains ids and times.
    "entry_hash",
    // Encrypted with a random nonce; all have one length.
    "next_cursor",
];

/// A signed document.
const EXPORT: &str = "/me/disclosure/export";

/// The route whose `message` is not compared, because it contains the nonce. Elsewhere `message` is compared.
const CHALLENGE: &str = "/eth/link/challenge";

/// Members with times or durations, as numbers.
const MOMENTS: [&str; 8] = [
    "duration_us",
    "upstream_ms",
    "head_age_ms",
    "latency_ms",
    "iat",
    "exp",
    "created_time",
    "expires_time",
];

/// Routes whose lists are ordered by generated ids, or whose members have ids as names. Their responses are compared
/// without regard to order.
const UNORDERED: [&str; 5] = ["/access/check", "/dry-run", "/sync-check", "/grant-summary", "/me/orgs"];

/// The correspondence between ids and digests of the left world and of the right one.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    right: BTreeMap<String, String>,
    left: BTreeMap<String, String>,
}

impl Pairs {
    /// Pairs two values. Returns false if one of them is paired with another value.
    pub(super) fn pair(&mut self, left: &str, right: &str) -> bool {
        match (self.right.get(left), self.left.get(right)) {
            (Some(partner), _) => partner == right,
            (None, Some(_)) => false,
            (None, None) => {
                self.right.insert(left.to_owned(), right.to_owned());
                self.left.insert(right.to_owned(), left.to_owned());
                true
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Id(&'a str),
    Digest(&'a str),
    Moment,
}

fn is_id(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether the text is the id of a filter or subscription: 128 bits in hex, and no hex digit follows.
fn is_handle(text: &[u8], next: Option<&u8>) -> bool {
    text.len() == 34
        && text.starts_with(b"0x")
        && text[2..].iter().all(u8::is_ascii_hexdigit)
        && !next.is_some_and(u8::is_ascii_hexdigit)
}

/// The length of a record's id at `at`, if there is one. It is derived from the record's digest and so has more digits
/// than a sequence number.
fn record_number(text: &[u8], at: usize) -> Option<usize> {
    const MEMBER: &[u8] = b"\"id\":";
    let begins = at >= MEMBER.len() && &text[at - MEMBER.len()..at] == MEMBER;
    let length = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (begins && length >= 10).then_some(length)
}

fn is_digest(text: &[u8]) -> bool {
    text.len() == 66 && text.starts_with(b"0x") && text[2..].iter().all(u8::is_ascii_hexdigit)
}

/// The length of the timestamp at the start of `text`, `2026-11-22T15:45:42.123456Z` or without a fraction.
fn moment(text: &[u8]) -> Option<usize> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let prefix = text.get(..shape.len())?;
    let fits = prefix.iter().zip(shape).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == shape,
    });
    let end = text[shape.len()..]
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || *byte == b'.'))?;
    (fits && text[shape.len() + end] == b'Z').then_some(shape.len() + end + 1)
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (bytes, mut pieces, mut at, mut text_start) = (text.as_bytes(), Vec::new(), 0, 0);
    while at < bytes.len() {
        let special = if bytes.get(at..at + 36).is_some_and(is_id) {
            Some((36, Piece::Id(&text[at..at + 36])))
        } else if bytes
            .get(at..at + 34)
            .is_some_and(|text| is_handle(text, bytes.get(at + 34)))
        {
            Some((34, Piece::Id(&text[at..at + 34])))
        } else if let Some(length) = record_number(bytes, at) {
            Some((length, Piece::Id(&text[at..at + length])))
        } else if bytes.get(at..at + 66).is_some_and(is_digest) {
            Some((66, Piece::Digest(&text[at..at + 66])))
        } else {
            moment(&bytes[at..]).map(|length| (length, Piece::Moment))
        };
        match special {
            Some((length, piece)) => {
                if text_start < at {
                    pieces.push(Piece::Text(&text[text_start..at]));
                }
                pieces.push(piece);
                at += length;
                text_start = at;
            }
            None => at += 1,
        }
    }
    if text_start < text.len() {
        pieces.push(Piece::Text(&text[text_start..]));
    }
    pieces
}

/// Every id in a text.
pub(super) fn ids(text: &str) -> BTreeSet<String> {
    let ids = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Id(id) => Some(id.to_owned()),
        Piece::Text(_) | Piece::Digest(_) | Piece::Moment => None,
    });
    ids.collect()
}

/// Removes the values of these members from `text`. `opening` is the text between colon and value, `is_end` finds the
/// first character after the value.
fn without_values(text: String, members: &[&str], is_end: fn(char) -> bool, opening: &str) -> String {
    members.iter().fold(text, |text, name| {
        let member = format!("\"{name}\":{opening}");
        let mut parts = text.split(&member);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            before + &member + &part[part.find(is_end).unwrap_or(part.len())..]
        })
    })
}

/// Status, headers and body as one text, without the values that are not compared.
pub(super) fn comparable_text(answer: &Response, path: &str, own_url: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in &answer.headers {
        if HEADERS.contains(&name.as_str()) {
            continue;
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        // The value of a cookie is a secret, its name and attributes are not.
        let value = match value.split_once('=').zip(value.find(';')) {
            Some(((cookie, _), end)) if name == "set-cookie" => format!("{cookie}={}", &value[end..]),
            _ => value.into_owned(),
        };
        let value = if [LOGIN_SECRET, RETRY_AFTER, NEXT_CURSOR].contains(&name.as_str()) {
            String::new()
        } else {
            value
        };
        lines.push(format!("{name}: {value}"));
    }
    lines.sort();
    let mut text = format!("{}\n", answer.status);
    for line in lines {
        writeln!(text, "{line}").unwrap();
    }
    text.push('\n');
    text.push_str(&answer.body);
    let port = own_url
        .rsplit_once(':')
        .map(|(_, port)| format!("\"{port}\""))
        .unwrap_or_default();
    let text = text.replace(own_url, "<gateway>").replace(&port, "\"<port>\"");
    let text = without_values(text, &SECRETS, |c| c == '"', "\"");
    let text = without_values(text, &MOMENTS, |c| !(c.is_ascii_digit() || c == '.'), "");
    if path.ends_with(CHALLENGE) {
        without_values(text, &["message"], |c| c == '"', "\"")
    } else if path.contains(EXPORT) {
        // The signature covers the time.
        without_values(text, &["public_key", "value", "checkpoint"], |c| c == '"', "\"")
    } else {
        text
    }
}

/// Whether two responses are the same except for paired ids and digests. Ids in `hidden` are never paired.
pub(super) fn is_same(left: &str, right: &str, pairs: &mut Pairs, hidden: &BTreeSet<String>) -> bool {
    let (left, right) = (pieces(left), pieces(right));
    left.len() == right.len()
        && left.iter().zip(&right).all(|(left, right)| match (left, right) {
            (Piece::Id(left), Piece::Id(right)) => {
                !hidden.contains(*left) && !hidden.contains(*right) && pairs.pair(left, right)
            }
            (Piece::Digest(left), Piece::Digest(right)) => {
                left == right || pairs.right.get(*left).is_some_and(|partner| partner == right)
            }
            (left, right) => left == right,
        })
}

/// Whether the responses of a route are compared without regard to order.
pub(super) fn is_unordered(path: &str) -> bool {
    UNORDERED.iter().any(|end| path.ends_with(end))
}

/// Like [`is_same`], without regard to order. A paired id equals its partner only. Ids that are neither paired nor
/// hidden all equal each other.
pub(super) fn is_same_unordered(left: &str, right: &str, pairs: &Pairs, hidden: &BTreeSet<String>) -> bool {
    let read = |text: &str, is_left: bool| {
        let (head, body) = text.split_once("\n\n")?;
        let mut plain = String::new();
        for piece in pieces(body) {
            plain.push_str(match piece {
                Piece::Id(id) if hidden.contains(id) => id,
                Piece::Id(id) | Piece::Digest(id) if is_left && pairs.right.contains_key(id) => &pairs.right[id],
                Piece::Id(id) if !is_left && pairs.left.contains_key(id) => id,
                Piece::Id(_) => "<id>",
                Piece::Digest(text) | Piece::Text(text) => text,
                Piece::Moment => "<moment>",
            });
        }
        let mut body = serde_json::from_str(&plain).ok()?;
        sort(&mut body);
        Some((head.to_owned(), body))
    };
    read(left, true).is_some_and(|left| Some(left) == read(right, false))
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(rows) => {
            rows.iter_mut().for_each(sort);
            rows.sort_by_key(Value::to_string);
        }
        Value::Object(members) => members.values_mut().for_each(sort),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "11111111-1111-4111-8111-111111111111";
    const B: &str = "22222222-2222-4222-8222-222222222222";

    #[test]
    fn ids_correspond_one_to_one_and_hidden_ids_to_none() {
        let (mut pairs, nothing) = (Pairs::default(), BTreeSet::new());
        assert!(is_same(
            &format!("{A} at 2026-11-22T15:45:42.1Z"),
            &format!("{B} at 2026-11-22T15:45:43Z"),
            &mut pairs,
            &nothing
        ));
        assert!(
            !is_same(A, A, &mut pairs, &nothing),
            "the id is paired with another one"
        );
        assert!(!is_same(B, B, &mut pairs, &nothing));
        assert!(!is_same(A, B, &mut pairs, &BTreeSet::from([A.to_owned()])));
        assert!(!is_same("a", "b", &mut pairs, &nothing));
        let digest = |byte: &str| format!("0x{}", byte.repeat(32));
        assert!(
            !is_same(&digest("aa"), &digest("bb"), &mut pairs, &nothing),
            "an unpaired digest"
        );
        assert!(
            pairs.pair(&digest("aa"), &digest("bb")) && is_same(&digest("aa"), &digest("bb"), &mut pairs, &nothing)
        );
    }

    #[test]
    fn only_the_values_of_the_named_members_are_removed() {
        let text = r#"{"access_token":"x","note":"n","iat":12,"kyc":true}"#.to_owned();
        let text = without_values(text, &SECRETS, |c| c == '"', "\"");
        let text = without_values(text, &MOMENTS, |c| !(c.is_ascii_digit() || c == '.'), "");
        assert_eq!(text, r#"{"access_token":"","note":"n","iat":,"kyc":true}"#);
    }
}
