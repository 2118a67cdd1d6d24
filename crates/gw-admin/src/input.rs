//! Reading what administrators send: each check says which member is wrong and what it should be.

use crate::error::Failure;
use gw_evm::Extras;
use gw_store::record::Object;
use gw_types::{Address, B256, Claims, ExternalId, Timestamp};
use serde::Deserialize;

/// Asks what a call would do (spec/80 section 4).
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Preview {
    /// The same checks and the same answer, and nothing is written.
    #[param(required = false)]
    pub(crate) dry_run: bool,
}

/// A UUID in a path or body.
pub(crate) fn id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::bad(format!("{what} must be a UUID")))
}

/// The most ids of one call on many records.
const MOST_IDS: usize = 200;

/// The ids of a call on many records, each once; `field` must name some of them, called `records`.
pub(crate) fn ids<T: std::str::FromStr + PartialEq>(
    texts: &[String],
    field: &str,
    records: &str,
) -> Result<Vec<T>, Failure> {
    if texts.is_empty() || texts.len() > MOST_IDS {
        return Err(Failure::bad(format!("{field} must name 1 to {MOST_IDS} {records}")));
    }
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        let id = self::id(text, field)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// A 20-byte hex address; mixed case is fine, a checksum is not required.
pub(crate) fn address(text: &str) -> Result<Address, Failure> {
    if !text.starts_with("0x") {
        return Err(Failure::bad("invalid ethereum address format"));
    }
    text.parse()
        .map_err(|_| Failure::bad("invalid ethereum address format"))
}

/// A 32-byte hex hash.
pub(crate) fn hash(text: &str, what: &str) -> Result<B256, Failure> {
    if !text.starts_with("0x") {
        return Err(Failure::bad(format!("{what} must be a 32-byte hex hash")));
    }
    text.parse()
        .map_err(|_| Failure::bad(format!("{what} must be a 32-byte hex hash")))
}

/// A name of 1 to 255 characters.
pub(crate) fn name(text: &str) -> Result<String, Failure> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 255 || text.chars().any(char::is_control) {
        return Err(Failure::bad(
            "name must have 1 to 255 characters, and no control characters",
        ));
    }
    Ok(text.to_owned())
}

/// `[A-Za-z0-9][A-Za-z0-9_-]*`, at most 100 (A1).
pub(crate) fn slug(text: &str) -> Result<String, Failure> {
    let mut bytes = text.bytes();
    let starts = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    // An id in the place of a slug is never ambiguous.
    if text.parse::<gw_types::OrgId>().is_ok() {
        return Err(Failure::bad("slug must not be a UUID"));
    }
    if !starts || text.len() > 100 || !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
        return Err(Failure::bad(
            "slug must match [A-Za-z0-9][A-Za-z0-9_-]* and have at most 100 characters",
        ));
    }
    Ok(text.to_owned())
}

/// A DID of W3C shape, or a directory identity.
pub(crate) fn did(text: &str) -> Result<ExternalId, Failure> {
    ExternalId::new(text).map_err(|why| Failure::bad(format!("did is malformed: {why}")))
}

/// A future RFC 3339 time; absent and empty are permanent (A7).
pub(crate) fn expiry(text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => {
            let at = Timestamp::parse(text).map_err(|_| Failure::bad("expires_at must be an RFC 3339 time"))?;
            if at <= now {
                return Err(Failure::bad("expires_at must be in the future"));
            }
            Ok(Some(at))
        }
    }
}

/// An RFC 3339 time in a query.
pub(crate) fn time(text: Option<&str>, what: &str) -> Result<Option<Timestamp>, Failure> {
    text.map(Timestamp::parse)
        .transpose()
        .map_err(|_| Failure::bad(format!("invalid {what} timestamp; expected RFC3339")))
}

/// Claims by name (C1).
pub(crate) fn claims(names: &[String]) -> Result<Claims, Failure> {
    names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Claims, gw_types::UnknownClaim>>()
        .map_err(|e| Failure::bad(e.to_string()))
}

/// Canonical method names; `*` alone stands for every row of the registry. Unknown and blocked names are refused (G3), and
/// prefixes the operator did not register (G4).
pub(crate) fn methods(names: &[String], extras: &Extras) -> Result<Vec<String>, Failure> {
    let mut methods = Vec::with_capacity(names.len());
    for name in names {
        let canonical = extras
            .entry(name)
            .map_err(|error| Failure::bad(format!("method `{name}` {error}")))?;
        if !methods.contains(&canonical) {
            methods.push(canonical);
        }
    }
    Ok(methods)
}

/// A text of at most `most` characters.
pub(crate) fn text(text: &str, what: &str, most: usize) -> Result<String, Failure> {
    if text.chars().count() > most {
        return Err(Failure::bad(format!("{what} must have at most {most} characters")));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(Failure::bad(format!("{what} must not contain control characters")));
    }
    Ok(text.to_owned())
}

/// The most bytes of an object that is kept as it comes, as JSON.
pub(crate) const MOST_OBJECT: usize = 16 * 1024;

/// A free object of at most [`MOST_OBJECT`] bytes.
pub(crate) fn object(given: Option<Object>, what: &str) -> Result<Option<Object>, Failure> {
    let Some(object) = given else { return Ok(None) };
    let text = serde_json::to_string(&object).map_err(|_| Failure::bad(format!("{what} must be a JSON object")))?;
    if text.len() > MOST_OBJECT {
        return Err(Failure::bad(format!(
            "{what} must have at most {MOST_OBJECT} bytes as JSON"
        )));
    }
    // PostgreSQL keeps no such text.
    if text.contains("\\u0000") {
        return Err(Failure::bad(format!("{what} must not contain NUL characters")));
    }
    Ok(Some(object))
}

/// An upstream key: what a header carries.
pub(crate) fn api_key(text: &str) -> Result<&str, Failure> {
    if text.len() > 4096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::bad("rpc_api_key must have 1 to 4096 visible ASCII characters"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_slugs() {
        for good in ["a", "Meridian-Bank_2", "0x"] {
            assert!(slug(good).is_ok(), "{good}");
        }
        for bad in [
            "99999999-9999-4999-8999-999999999999",
            "99999999999949998999999999999999",
            "",
            "-a",
            "_a",
            "a b",
            "ä",
            &"a".repeat(101),
        ] {
            assert!(slug(bad).is_err(), "{bad}");
        }
    }

    /// What is kept as it comes has an end.
    #[test]
    fn free_values_are_bounded() {
        let of = |length: usize| Object::from_iter([("k".to_owned(), "x".repeat(length).into())]);
        assert!(object(None, "metadata").unwrap().is_none());
        assert!(object(Some(of(MOST_OBJECT - 8)), "metadata").unwrap().is_some());
        assert!(object(Some(of(MOST_OBJECT - 7)), "metadata").is_err());
        assert!(object(Some(Object::from_iter([("k".to_owned(), "\0".into())])), "metadata").is_err());
        for good in ["k", "Bearer-1.2_3~4+/=", &"k".repeat(4096)] {
            assert!(api_key(good).is_ok(), "{good}");
        }
        for bad in ["a b", "a\r\nX-Other: b", "a\0", "\u{e4}", &"k".repeat(4097)] {
            assert!(api_key(bad).is_err(), "{bad:?}");
        }
        assert!(name(&"n".repeat(256)).is_err() && name("a\0b").is_err() && name("a\r\nb").is_err());
        assert!(text("a\nb", "note", 9).is_ok() && text("a\0b", "note", 9).is_err());
    }

    #[test]
    fn g3_unknown_and_blocked_methods_are_refused() {
        let list = |names: &[&str]| {
            methods(
                &names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(),
                &Extras::default(),
            )
        };
        assert_eq!(list(&["ETH_CALL", "eth_call", "*"]).unwrap(), ["eth_call", "*"]);
        for bad in ["eth_sign", "debug_storageRangeAt", "eth_", "eth_cal*", "nope"] {
            assert!(list(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a7_expiry_is_in_the_future() {
        let now = Timestamp::from_secs(1_700_000_000);
        assert_eq!(expiry(None, now).unwrap(), None);
        assert!(expiry(Some("2023-01-01T00:00:00Z"), now).is_err());
        assert!(expiry(Some("soon"), now).is_err());
        assert!(expiry(Some("2033-01-01T00:00:00Z"), now).unwrap().is_some());
    }
}
