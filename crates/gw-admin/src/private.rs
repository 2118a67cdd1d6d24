//! What an administrator is told of addresses (HD12, HD30): one rule for the whole admin API.
//!
//! An administrator is a viewer like everybody else: an address that is not Full for them reads `[PRIVATE]`, wherever it
//! stands in an answer, notes and audit values included. What their organizations registered is theirs to administer and
//! stays in clear. The super token sees all.
//!
//! [`mask`] goes around every route, so none can leak by forgetting the rule. A handler that orders, counts or matches by
//! an address asks [`AddressView`] itself. Not masked here: answers of the pipeline of `/rpc`, which `gw_policy::view` has
//! opened for its viewers, and the names of people.

use crate::{AdminState, record::CallerSlot};
use axum::{
    body::{Body, to_bytes},
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_http::ApiError;
use gw_policy::{Knobs, Snapshot, visibility::Viewer};
use gw_store::read::Scope;
use gw_types::{Address, DenyReason, Timestamp, UserId};
use http::header;

/// Stands for what the caller may not see.
pub(crate) const PRIVATE: &str = "[PRIVATE]";

/// Replaces a denial reason that tells a foreign contract from an unregistered address (T2, HD40). Organization
/// administrators see the replacement.
pub(crate) const fn reason(reason: DenyReason) -> DenyReason {
    match reason {
        DenyReason::ForeignOrg | DenyReason::CrossOrg | DenyReason::OrgMismatch => DenyReason::Unregistered,
        reason => reason,
    }
}

/// Routes that answer with what the pipeline of `/rpc` shows.
const JUDGED: [&str; 3] = [
    "/api/v1/admin/test-request",
    "/api/v1/admin/orgs/{org_id}/dry-run",
    "/api/v1/admin/impersonate/{did}/in/{org_id}/rpc",
];

/// An answer that is longer is masked beside the threads that serve everybody.
const LONG: usize = 256 * 1024;

/// Members that name a person. A DID may hold an address; who a member is, is no secret to their administrators.
const NAMES: [&str; 7] = [
    "external_id",
    "actor_external_id",
    "did",
    "dids",
    "user_did",
    "requester_did",
    "identity",
];

/// What one administrator may be told of addresses.
#[derive(Debug)]
pub(crate) struct AddressView<'s> {
    snapshot: &'s Snapshot,
    scope: &'s Scope,
    viewer: Viewer<'s>,
}

impl<'s> AddressView<'s> {
    /// The view of the administrator `user` of the organizations in `scope`; nobody's view without a user.
    pub(crate) fn new(
        snapshot: &'s Snapshot,
        scope: &'s Scope,
        user: Option<UserId>,
        now: Timestamp,
        knobs: &'s Knobs,
    ) -> Self {
        Self {
            snapshot,
            scope,
            viewer: Viewer::new(snapshot, user, now, knobs),
        }
    }

    /// Whether the address may be told.
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

    /// The address as it is printed.
    pub(crate) fn print(&self, address: Address) -> String {
        if self.shows(address) {
            crate::wire::lower(address)
        } else {
            PRIVATE.to_owned()
        }
    }
}

/// The middleware around every administrative route.
pub(crate) async fn mask(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let who = request.extensions().get::<CallerSlot>().cloned();
    let judged = request
        .extensions()
        .get::<MatchedPath>()
        .is_some_and(|path| JUDGED.contains(&path.as_str()));
    let answer = next.run(request).await;
    let Some((user, scope)) = who.as_ref().and_then(CallerSlot::administrator).filter(|_| !judged) else {
        return answer;
    };
    let (mut parts, body) = answer.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal().into_response();
    };
    let long = bytes.len() > LONG;
    let work = move || {
        let pinned = state.feed.pin();
        // With a stale policy nothing is known to be the caller's to see.
        let user = Some(user).filter(|_| pinned.fresh);
        let view = AddressView::new(&pinned.snapshot, &scope, user, state.clock.now(), &state.knobs);
        masked(&bytes, |address| view.shows(address)).map_or_else(|| Body::from(bytes), Body::from)
    };
    let shown = if long {
        tokio::task::spawn_blocking(work).await
    } else {
        Ok(work())
    };
    let Ok(shown) = shown else {
        return ApiError::internal().into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, shown)
}

/// JSON text in which addresses that `shows` refuses read `[PRIVATE]`; `None` if there are none.
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
        for (at, word) in words(token.text) {
            if let Some(address) = address_of(word)
                && !shows(address)
            {
                let begin = token.at + at;
                let out = masked.get_or_insert_with(|| Vec::with_capacity(json.len()));
                out.extend_from_slice(json.get(copied..begin).unwrap_or_default());
                out.extend_from_slice(PRIVATE.as_bytes());
                copied = begin + word.len();
            }
        }
    }
    let mut out = masked?;
    out.extend_from_slice(json.get(copied..).unwrap_or_default());
    Some(out)
}

/// A string of a JSON text, without its quotes.
struct Token<'t> {
    at: usize,
    text: &'t [u8],
    is_key: bool,
}

/// The strings of a JSON text, in their order.
fn tokens(json: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut from = 0;
    core::iter::from_fn(move || {
        let at = from + json.get(from..)?.iter().position(|byte| *byte == b'"')? + 1;
        let mut escaped = false;
        let length = json.get(at..)?.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        let text = json.get(at..at + length)?;
        from = at + length + 1;
        let next = json
            .get(from..)
            .unwrap_or_default()
            .iter()
            .find(|byte| !byte.is_ascii_whitespace());
        Some(Token {
            at,
            text,
            is_key: next == Some(&b':'),
        })
    })
}

/// The runs of letters and digits of a JSON string, and where they begin. What is escaped belongs to none.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut from = 0;
    core::iter::from_fn(move || {
        loop {
            let rest = text.get(from..)?;
            match rest.first()? {
                b'\\' => from += if rest.get(1) == Some(&b'u') { 6 } else { 2 },
                byte if byte.is_ascii_alphanumeric() => {
                    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                    let at = from;
                    from += length;
                    return Some((at, rest.get(..length)?));
                }
                _ => from += 1,
            }
        }
    })
}

/// The address that a word may be: twenty bytes of hex, or an ABI word that holds no small number.
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
    let small = address.iter().take(12).all(|byte| *byte == 0);
    (digits.len() == 40 || !small).then_some(address)
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

    /// HD12, HD30: wherever it stands and however it is written.
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
