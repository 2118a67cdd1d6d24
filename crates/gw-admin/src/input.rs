//! Parsing and validation of what administrators send. Each error names the member and the form it must have.

use crate::error::AdminError;
use gw_evm::CustomMethods;
use gw_store::record::JsonObject;
use gw_types::{Address, B256, Claims, ExternalId, Timestamp};
use serde::Deserialize;

/// Requests a dry run: the response says what the call would do (spec/80 section 4).
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Preview {
    /// Runs all checks and returns the usual answer, but writes nothing.
    #[param(required = false)]
    pub(crate) dry_run: bool,
}

/// A UUID in a path or body.
pub(crate) fn id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, AdminError> {
    text.parse()
        .map_err(|_| AdminError::bad_request(format!("{what} must be a UUID")))
}

/// Most ids in one batch request.
const MAX_IDS: usize = 200;

/// The ids of a batch request, without duplicates. `field` is the member that holds the ids, `records` the plural noun
/// for the error text.
pub(crate) fn ids<T: std::str::FromStr + PartialEq>(
    texts: &[String],
    field: &str,
    records: &str,
) -> Result<Vec<T>, AdminError> {
    if texts.is_empty() || texts.len() > MAX_IDS {
        return Err(AdminError::bad_request(format!(
            "{field} must name 1 to {MAX_IDS} {records}"
        )));
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
pub(crate) fn address(text: &str) -> Result<Address, AdminError> {
    if !text.starts_with("0x") {
        return Err(AdminError::bad_request("invalid ethereum address format"));
    }
    text.parse()
        .map_err(|_| AdminError::bad_request("invalid ethereum address format"))
}

/// A 32-byte hex hash.
pub(crate) fn hash(text: &str, what: &str) -> Result<B256, AdminError> {
    if !text.starts_with("0x") {
        return Err(AdminError::bad_request(format!("{what} must be a 32-byte hex hash")));
    }
    text.parse()
        .map_err(|_| AdminError::bad_request(format!("{what} must be a 32-byte hex hash")))
}

/// A name of 1 to 255 characters.
pub(crate) fn name(text: &str) -> Result<String, AdminError> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 255 || text.chars().any(char::is_control) {
        return Err(AdminError::bad_request(
            "name must have 1 to 255 characters, and no control characters",
        ));
    }
    Ok(text.to_owned())
}

/// `[A-Za-z0-9][A-Za-z0-9_-]*`, at most 100 (A1).
pub(crate) fn slug(text: &str) -> Result<String, AdminError> {
    let mut bytes = text.bytes();
    let starts_alphanumeric = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    // A slug that parses as a UUID would be ambiguous where an id or a slug may stand.
    if text.parse::<gw_types::OrgId>().is_ok() {
        return Err(AdminError::bad_request("slug must not be a UUID"));
    }
    if !starts_alphanumeric || text.len() > 100 || !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    {
        return Err(AdminError::bad_request(
            "slug must match [A-Za-z0-9][A-Za-z0-9_-]* and have at most 100 characters",
        ));
    }
    Ok(text.to_owned())
}

/// A DID of W3C shape, or a directory identity.
pub(crate) fn did(text: &str) -> Result<ExternalId, AdminError> {
    ExternalId::new(text).map_err(|why| AdminError::bad_request(format!("did is malformed: {why}")))
}

/// A future RFC 3339 time. Absent or empty text means permanent (A7).
pub(crate) fn expiry(text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, AdminError> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => {
            let time =
                Timestamp::parse(text).map_err(|_| AdminError::bad_request("expires_at must be an RFC 3339 time"))?;
            if time <= now {
                return Err(AdminError::bad_request("expires_at must be in the future"));
            }
            Ok(Some(time))
        }
    }
}

/// An RFC 3339 time in a query.
pub(crate) fn time(text: Option<&str>, what: &str) -> Result<Option<Timestamp>, AdminError> {
    text.map(Timestamp::parse)
        .transpose()
        .map_err(|_| AdminError::bad_request(format!("invalid {what} timestamp; expected RFC3339")))
}

/// Claims by name (C1).
pub(crate) fn claims(names: &[String]) -> Result<Claims, AdminError> {
    names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Claims, gw_types::UnknownClaim>>()
        .map_err(|e| AdminError::bad_request(e.to_string()))
}

/// Canonical method names. The entry `*` means every method of the registry. Unknown and blocked names are rejected
/// (G3), and so are prefixes that the operator did not register (G4).
pub(crate) fn methods(names: &[String], custom_methods: &CustomMethods) -> Result<Vec<String>, AdminError> {
    let mut methods = Vec::with_capacity(names.len());
    for name in names {
        let canonical = custom_methods
            .entry(name)
            .map_err(|error| AdminError::bad_request(format!("method `{name}` {error}")))?;
        if !methods.contains(&canonical) {
            methods.push(canonical);
        }
    }
    Ok(methods)
}

/// A text of at most `max` characters. Control characters other than line breaks and tabs are rejected.
pub(crate) fn text(text: &str, what: &str, max: usize) -> Result<String, AdminError> {
    if text.chars().count() > max {
        return Err(AdminError::bad_request(format!(
            "{what} must have at most {max} characters"
        )));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(AdminError::bad_request(format!(
            "{what} must not contain control characters"
        )));
    }
    Ok(text.to_owned())
}

/// Most bytes of a free-form object as JSON.
pub(crate) const MAX_OBJECT_BYTES: usize = 16 * 1024;

/// A free-form object of at most [`MAX_OBJECT_BYTES`] bytes as JSON.
pub(crate) fn object(object: Option<JsonObject>, what: &str) -> Result<Option<JsonObject>, AdminError> {
    let Some(object) = object else { return Ok(None) };
    let text =
        serde_json::to_string(&object).map_err(|_| AdminError::bad_request(format!("{what} must be a JSON object")))?;
    if text.len() > MAX_OBJECT_BYTES {
        return Err(AdminError::bad_request(format!(
            "{what} must have at most {MAX_OBJECT_BYTES} bytes as JSON"
        )));
    }
    // PostgreSQL cannot store NUL characters in JSON.
    if text.contains("\\u0000") {
        return Err(AdminError::bad_request(format!(
            "{what} must not contain NUL characters"
        )));
    }
    Ok(Some(object))
}

/// An upstream key: visible ASCII, because it is sent in a header.
pub(crate) fn api_key(text: &str) -> Result<&str, AdminError> {
    if text.len() > 4096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AdminError::bad_request(
            "rpc_api_key must have 1 to 4096 visible ASCII characters",
        ));
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

    /// Free-form values are stored unchanged, so their size is limited.
    #[test]
    fn free_values_are_bounded() {
        let object_of = |length: usize| JsonObject::from_iter([("k".to_owned(), "x".repeat(length).into())]);
        assert!(object(None, "metadata").unwrap().is_none());
        assert!(
            object(Some(object_of(MAX_OBJECT_BYTES - 8)), "metadata")
                .unwrap()
                .is_some()
        );
        assert!(object(Some(object_of(MAX_OBJECT_BYTES - 7)), "metadata").is_err());
        assert!(object(Some(JsonObject::from_iter([("k".to_owned(), "\0".into())])), "metadata").is_err());
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
                &CustomMethods::default(),
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
