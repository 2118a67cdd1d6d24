//! Whether two answers are the same bytes, but for what each gateway makes up by itself.
//!
//! What is not compared literally, and nothing else:
//! - ids that the gateway generates: an id of one world stands for one id of the other, for the whole of the test. Ids of
//!   what the asker may not see stand for nothing, so an answer that holds one differs;
//! - hashes of blocks, by their number: they are digests of everything in the block;
//! - the order of the few lists that come in the order of ids ([`UNORDERED`]);
//! - moments (RFC 3339, and the members of [`MOMENTS`]), spans (`duration_ms`) and secrets ([`SECRETS`]);
//! - the gateway's own address, which has another port in each world;
//! - the headers of [`HEADERS`], and for how long `Retry-After` asks to wait: the worlds are asked a moment apart.

use crate::harness::Answer;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// When it was answered, and how long the body is, which is compared itself.
const HEADERS: [&str; 2] = ["date", "content-length"];

/// The secret of a login just begun.
const LOGIN_SECRET: &str = "x-login-secret";

const RETRY_AFTER: &str = "retry-after";

/// Members whose strings are drawn by chance.
const SECRETS: [&str; 15] = [
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
    // A digest of a record, which holds ids and moments.
    "entry_hash",
];

/// The text to sign holds the nonce; everywhere else a message is compared.
const CHALLENGE: &str = "/eth/link/challenge";

/// Members that hold a number of seconds or milliseconds.
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

/// Routes whose lists come in the order of generated ids, or whose members are named by them. Their answers are compared as
/// sets.
const UNORDERED: [&str; 5] = ["/access/check", "/dry-run", "/sync-check", "/grant-summary", "/me/orgs"];

/// Which id of the left world stands for which of the right one.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    right: BTreeMap<String, String>,
    left: BTreeMap<String, String>,
}

impl Pairs {
    /// Pairs two words, unless one of them has another partner.
    pub(super) fn pair(&mut self, left: &str, right: &str) -> bool {
        match (self.right.get(left), self.left.get(right)) {
            (Some(known), _) => known == right,
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
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A filter's or a subscription's: 128 bits, and no digit more.
fn is_handle(text: &[u8], next: Option<&u8>) -> bool {
    text.len() == 34
        && text.starts_with(b"0x")
        && text[2..].iter().all(u8::is_ascii_hexdigit)
        && !next.is_some_and(u8::is_ascii_hexdigit)
}

/// The length of the number that stands for a record: made of its digest, so longer than one that counts.
fn record_number(text: &[u8], at: usize) -> Option<usize> {
    const MEMBER: &[u8] = b"\"id\":";
    let begins = at >= MEMBER.len() && &text[at - MEMBER.len()..at] == MEMBER;
    let length = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (begins && length >= 10).then_some(length)
}

fn is_digest(text: &[u8]) -> bool {
    text.len() == 66 && text.starts_with(b"0x") && text[2..].iter().all(u8::is_ascii_hexdigit)
}

/// The length of the moment that `text` begins with, `2026-11-22T15:45:42.123456Z` or without a fraction.
fn moment(text: &[u8]) -> Option<usize> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let head = text.get(..shape.len())?;
    let fits = head.iter().zip(shape).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == shape,
    });
    let end = text[shape.len()..]
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || *byte == b'.'))?;
    (fits && text[shape.len() + end] == b'Z').then_some(shape.len() + end + 1)
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (bytes, mut found, mut at, mut from) = (text.as_bytes(), Vec::new(), 0, 0);
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
                if from < at {
                    found.push(Piece::Text(&text[from..at]));
                }
                found.push(piece);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    if from < text.len() {
        found.push(Piece::Text(&text[from..]));
    }
    found
}

/// Every id in a text.
pub(super) fn ids(text: &str) -> BTreeSet<String> {
    let ids = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Id(id) => Some(id.to_owned()),
        Piece::Text(_) | Piece::Digest(_) | Piece::Moment => None,
    });
    ids.collect()
}

/// `text` without the values of these members: strings up to their quote, numbers up to their end.
fn without(text: String, members: &[&str], is_end: fn(char) -> bool, opening: &str) -> String {
    members.iter().fold(text, |text, name| {
        let member = format!("\"{name}\":{opening}");
        let mut parts = text.split(&member);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            before + &member + &part[part.find(is_end).unwrap_or(part.len())..]
        })
    })
}

/// Status, headers and body as one text.
pub(super) fn comparable_text(answer: &Answer, path: &str, own_url: &str) -> String {
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
        let value = if [LOGIN_SECRET, RETRY_AFTER].contains(&name.as_str()) {
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
    let text = without(text, &SECRETS, |c| c == '"', "\"");
    let text = without(text, &MOMENTS, |c| !(c.is_ascii_digit() || c == '.'), "");
    if path.ends_with(CHALLENGE) {
        without(text, &["message"], |c| c == '"', "\"")
    } else {
        text
    }
}

/// Whether two answers are the same but for what is paired; `hidden` is paired with nothing.
pub(super) fn same(left: &str, right: &str, pairs: &mut Pairs, hidden: &BTreeSet<String>) -> bool {
    let (left, right) = (pieces(left), pieces(right));
    left.len() == right.len()
        && left.iter().zip(&right).all(|(left, right)| match (left, right) {
            (Piece::Id(left), Piece::Id(right)) => {
                !hidden.contains(*left) && !hidden.contains(*right) && pairs.pair(left, right)
            }
            (Piece::Digest(one), Piece::Digest(other)) => {
                one == other || pairs.right.get(*one).is_some_and(|known| known == other)
            }
            (left, right) => left == right,
        })
}

/// Whether the answers of a route are compared as sets.
pub(super) fn is_unordered(path: &str) -> bool {
    UNORDERED.iter().any(|end| path.ends_with(end))
}

/// The same without regard to order: an id that is paired is its partner, one that is neither paired nor hidden is any.
pub(super) fn same_sets(left: &str, right: &str, pairs: &Pairs, hidden: &BTreeSet<String>) -> bool {
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
    fn ids_correspond_one_to_one_and_hidden_ones_to_nothing() {
        let (mut pairs, nothing) = (Pairs::default(), BTreeSet::new());
        assert!(same(
            &format!("{A} at 2026-11-22T15:45:42.1Z"),
            &format!("{B} at 2026-11-22T15:45:43Z"),
            &mut pairs,
            &nothing
        ));
        assert!(!same(A, A, &mut pairs, &nothing), "it stands for another already");
        assert!(!same(B, B, &mut pairs, &nothing));
        assert!(!same(A, B, &mut pairs, &BTreeSet::from([A.to_owned()])));
        assert!(!same("a", "b", &mut pairs, &nothing));
        let digest = |byte: &str| format!("0x{}", byte.repeat(32));
        assert!(
            !same(&digest("aa"), &digest("bb"), &mut pairs, &nothing),
            "a digest that nobody paired"
        );
        assert!(pairs.pair(&digest("aa"), &digest("bb")) && same(&digest("aa"), &digest("bb"), &mut pairs, &nothing));
    }

    #[test]
    fn only_the_values_of_the_named_members_are_taken_out() {
        let text = r#"{"access_token":"x","note":"n","iat":12,"kyc":true}"#.to_owned();
        let text = without(text, &SECRETS, |c| c == '"', "\"");
        let text = without(text, &MOMENTS, |c| !(c.is_ascii_digit() || c == '.'), "");
        assert_eq!(text, r#"{"access_token":"","note":"n","iat":,"kyc":true}"#);
    }
}
