//! Masking of addresses in admin responses (HD12, HD30): one rule for the whole admin API.
//!
//! An administrator is a viewer like any other: an address that is not Full for them reads `[PRIVATE]`, in every part
//! of a response, including notes and audit values. Contracts that their organizations registered stay in clear,
//! because the administrator manages them. The super token sees everything.
//!
//! [`mask`] wraps every route, so that no handler can leak an address by forgetting the rule. A handler that sorts,
//! counts or filters by an address uses [`AddressView`] itself. Not masked here: responses of the `/rpc` pipeline
//! and of the explorer, which `gw_policy` has already rendered for their viewer, and the names of people.

use crate::{AdminState, record::CallerSlot};
use axum::{
    body::{Body, to_bytes},
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_http::ApiError;
use gw_policy::{PolicySettings, Snapshot, visibility::Viewer};
use gw_store::read::Scope;
use gw_types::{Address, DenyReason, Timestamp, UserId};
use http::header;

/// The placeholder for a value that the caller may not see.
pub(crate) const PRIVATE: &str = "[PRIVATE]";

/// Replaces a denial reason that tells another organization's contract from an unregistered address (T2, HD40).
/// Organization administrators see the replacement.
pub(crate) const fn reason(reason: DenyReason) -> DenyReason {
    match reason {
        DenyReason::ForeignOrg | DenyReason::CrossOrg | DenyReason::OrgMismatch => DenyReason::Unregistered,
        reason => reason,
    }
}

/// The data API of the explorer below the impersonation path.
pub(crate) const IMPERSONATED_EXPLORER: &str = "/api/v1/admin/impersonate/{did}/in/{org_id}/api/v1/explorer/{*path}";

/// Routes whose responses the `/rpc` pipeline or the explorer has already masked.
const PIPELINE_ROUTES: [&str; 4] = [
    IMPERSONATED_EXPLORER,
    "/api/v1/admin/test-request",
    "/api/v1/admin/orgs/{org_id}/dry-run",
    "/api/v1/admin/impersonate/{did}/in/{org_id}/rpc",
];

/// Responses above this size, in bytes, are masked on a blocking thread.
const BLOCKING_THRESHOLD: usize = 256 * 1024;

/// Members that name a person. They are not masked: a DID may contain an address, but administrators know their
/// members.
const NAMES: [&str; 7] = [
    "external_id",
    "actor_external_id",
    "did",
    "dids",
    "user_did",
    "requester_did",
    "identity",
];

/// The addresses that one administrator may see.
#[derive(Debug)]
pub(crate) struct AddressView<'s> {
    snapshot: &'s Snapshot,
    scope: &'s Scope,
    viewer: Viewer<'s>,
}

impl<'s> AddressView<'s> {
    /// The view of the administrator `user` of the organizations in `scope`. Without a user it is the view of an
    /// anonymous caller.
    pub(crate) fn new(
        snapshot: &'s Snapshot,
        scope: &'s Scope,
        user: Option<UserId>,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Self {
        Self {
            snapshot,
            scope,
            viewer: Viewer::new(snapshot, user, now, policy_settings),
        }
    }

    /// Whether the administrator may see the address.
    pub(crate) fn shows(&self, address: Address) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Orgs(orgs) => {
                let registered = self
                    .snapshot
                    .contract(address)
                    .is_some_and(|contract| orgs.contains(&contract.org));
                registered || self.viewer.sees(address)
            }
        }
    }

    /// The address in lower-case hex, or [`PRIVATE`].
    pub(crate) fn print(&self, address: Address) -> String {
        if self.shows(address) {
            crate::wire::lower(address)
        } else {
            PRIVATE.to_owned()
        }
    }
}

/// Middleware around every admin route that masks addresses in the response.
pub(crate) async fn mask(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let caller_slot = request.extensions().get::<CallerSlot>().cloned();
    let is_pipeline_route = request
        .extensions()
        .get::<MatchedPath>()
        .is_some_and(|path| PIPELINE_ROUTES.contains(&path.as_str()));
    let response = next.run(request).await;
    let Some((user, scope)) = caller_slot
        .as_ref()
        .and_then(CallerSlot::administrator)
        .filter(|_| !is_pipeline_route)
    else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal().into_response();
    };
    let is_large = bytes.len() > BLOCKING_THRESHOLD;
    let mask_body = move || {
        let pinned = state.feed.pin();
        // With a stale policy the administrator's view is not known: mask as for an anonymous caller.
        let user = Some(user).filter(|_| pinned.fresh);
        let view = AddressView::new(
            &pinned.snapshot,
            &scope,
            user,
            state.clock.now(),
            &state.policy_settings,
        );
        masked(&bytes, |address| view.shows(address)).map_or_else(|| Body::from(bytes), Body::from)
    };
    let masked_body = if is_large {
        tokio::task::spawn_blocking(mask_body).await
    } else {
        Ok(mask_body())
    };
    let Ok(masked_body) = masked_body else {
        return ApiError::internal().into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, masked_body)
}

/// The JSON text with `[PRIVATE]` in place of each address that `shows` refuses; `None` if nothing was masked.
fn masked(json: &[u8], shows: impl Fn(Address) -> bool) -> Option<Vec<u8>> {
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
        let out = masked(json.as_bytes(), |address| address == known);
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
