//! The cookies of the backend (spec/40 section 7, steps 1 and 7), and their encryption.
//!
//! A cookie holds its token encrypted and authenticated, so a token that is read from a cookie is one that the gateway
//! gave to this backend, and a browser cannot use it elsewhere.

use crate::{
    impersonation::{IMPERSONATION_LIFE, Impersonation},
    session::{AccessToken, Tokens},
    sign_in_states::{PendingContent, PendingSignIn, STATE_LIFE},
};
use aes_gcm::{
    Aes256Gcm, Key, Nonce,
    aead::{Aead as _, Payload},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use cookie::{Cookie, SameSite, time::Duration};
use gw_http::auth::cookie;
use gw_types::{Entropy, Seconds, Secret, Timestamp};
use hmac::{Hmac, Mac as _};
use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;

/// Holds the access token.
pub(crate) const AUTH: &str = "explorer_auth";
/// Holds the refresh token.
pub(crate) const REFRESH: &str = "explorer_refresh";
/// Holds whom an administrator views as.
const VIEW_AS: &str = "explorer_view_as";
/// Holds a sign-in that began in this browser. The first characters of its state follow, so that several tabs have
/// different cookies.
const STATE: &str = "explorer_state_";
/// Browsers accept a cookie of this prefix from this host only, over https only (RFC 6265bis).
const HOST: &str = "__Host-";
const STATE_CHARS: usize = 16;
/// The most sign-ins of one browser; beginning another ends the oldest. All cookies must fit into one request.
const MAX_PENDING: usize = 4;

/// The lifetime of [`AUTH`].
const AUTH_LIFE: Seconds = Seconds(30 * 60);
/// The lifetime of [`REFRESH`].
const REFRESH_LIFE: Seconds = Seconds(7 * 24 * 3600);

const NONCE: usize = 12;

/// Reads and writes the cookies.
pub(crate) struct Cookies {
    cipher: Box<Aes256Gcm>,
    /// Whether browsers reach the explorer over https.
    is_https: bool,
}

impl core::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Cookies(…)")
    }
}

/// The encrypted text of the cookies of a session.
#[derive(Serialize, Deserialize)]
struct Content {
    token: String,
    /// Seconds since 1970.
    until: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

impl Cookies {
    /// Derives the key from the client secret: all instances of one client read each other's cookies, and a new secret
    /// ends all sessions. `None` only if the key derivation fails.
    pub(crate) fn new(client_secret: &Secret, is_https: bool) -> Option<Self> {
        let mut derived = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(client_secret.expose().as_bytes()).ok()?;
        derived.update(b"ledger-gateway explorer cookies");
        let key: [u8; 32] = derived.finalize().into_bytes().into();
        Some(Self {
            cipher: Box::new(<Aes256Gcm as aes_gcm::KeyInit>::new(&Key::<Aes256Gcm>::from(key))),
            is_https,
        })
    }

    /// The access token of a request. It may be expired.
    pub(crate) fn access(&self, headers: &HeaderMap) -> Option<AccessToken> {
        let content: Content = self.open(AUTH, cookie(headers, AUTH)?)?;
        Some(AccessToken {
            token: Secret::new(content.token),
            expires_at: Timestamp::from_secs(content.until),
            refresh_at: Timestamp::from_secs(content.refresh_at?),
            subject: content.subject,
        })
    }

    /// The refresh token of a request, unless its cookie has expired.
    pub(crate) fn refresh(&self, headers: &HeaderMap, now: Timestamp) -> Option<Secret> {
        let content: Content = self.open(REFRESH, cookie(headers, REFRESH)?)?;
        (now < Timestamp::from_secs(content.until)).then(|| Secret::new(content.token))
    }

    /// The headers that store a session. `None` only if the encryption fails.
    pub(crate) fn session(&self, tokens: &Tokens, now: Timestamp, entropy: &dyn Entropy) -> Option<HeaderMap> {
        let access = Content {
            token: tokens.access.token.expose().to_owned(),
            until: tokens.access.expires_at.secs(),
            refresh_at: Some(tokens.access.refresh_at.secs()),
            subject: tokens.access.subject.clone(),
        };
        let refresh = Content {
            token: tokens.refresh.expose().to_owned(),
            until: now.plus(REFRESH_LIFE).secs(),
            refresh_at: None,
            subject: None,
        };
        let mut headers = HeaderMap::new();
        append(&mut headers, AUTH, &self.seal(AUTH, &access, entropy)?, AUTH_LIFE);
        append(
            &mut headers,
            REFRESH,
            &self.seal(REFRESH, &refresh, entropy)?,
            REFRESH_LIFE,
        );
        Some(headers)
    }

    /// The headers that end a session.
    pub(crate) fn clear_session() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in [AUTH, REFRESH, VIEW_AS] {
            append(&mut headers, name, "", Seconds(0));
        }
        headers
    }

    /// Whether a request has the cookie of an impersonation, even if it cannot be decrypted.
    pub(crate) fn has_view_as(headers: &HeaderMap) -> bool {
        pairs(headers).any(|(name, _)| name == VIEW_AS)
    }

    /// Whom a request views as, unless the choice is over.
    pub(crate) fn view_as(&self, headers: &HeaderMap, now: Timestamp) -> Option<Impersonation> {
        let choice: Impersonation = self.open(VIEW_AS, cookie(headers, VIEW_AS)?)?;
        choice.is_alive(now).then_some(choice)
    }

    /// The header that stores whom to view as. `None` only if the encryption fails.
    pub(crate) fn set_view_as(&self, choice: &Impersonation, entropy: &dyn Entropy) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        append(
            &mut headers,
            VIEW_AS,
            &self.seal(VIEW_AS, choice, entropy)?,
            IMPERSONATION_LIFE,
        );
        Some(headers)
    }

    /// The header that ends view-as.
    pub(crate) fn clear_view_as() -> HeaderMap {
        let mut headers = HeaderMap::new();
        append(&mut headers, VIEW_AS, "", Seconds(0));
        headers
    }

    /// The headers that store a sign-in, and end the oldest ones of the browser if it has too many. `None` only if the
    /// encryption fails.
    pub(crate) fn begin_sign_in(
        &self,
        pending: &PendingSignIn,
        request: &HeaderMap,
        entropy: &dyn Entropy,
    ) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let name = self.state_name(&pending.state);
        let mut others: Vec<_> = self
            .state_cookies(request)
            .filter(|(other, _)| *other != name)
            .collect();
        // What cannot be read is of no use, so it goes first.
        others.sort_by_key(|(_, pending)| pending.as_ref().map(|pending| pending.begun));
        let surplus = (others.len() + 1).saturating_sub(MAX_PENDING);
        for (other, _) in others.iter().take(surplus) {
            append(&mut headers, other, "", Seconds(0));
        }
        append(
            &mut headers,
            &name,
            &self.seal(&name, &pending.content(), entropy)?,
            STATE_LIFE,
        );
        Some(headers)
    }

    /// The sign-in of this state that began in the browser. It may be over.
    pub(crate) fn pending_sign_in(&self, headers: &HeaderMap, state: &str) -> Option<PendingSignIn> {
        let name = self.state_name(state);
        let content: PendingContent = self.open(&name, cookie(headers, &name)?)?;
        PendingSignIn::try_from(content)
            .ok()
            .filter(|pending| pending.state == state)
    }

    /// The cookies of all sign-ins that began in the browser, with their names. One that cannot be read is `None`.
    fn state_cookies(&self, headers: &HeaderMap) -> impl Iterator<Item = (String, Option<PendingSignIn>)> {
        let prefix = self.state_name("");
        pairs(headers)
            .filter(move |(name, _)| name.starts_with(&prefix) && is_token(name))
            .map(|(name, value)| {
                let content: Option<PendingContent> = self.open(name, value);
                let pending = content.and_then(|content| PendingSignIn::try_from(content).ok());
                (name.to_owned(), pending)
            })
    }

    /// The header that removes the cookie of [`Self::begin_sign_in`].
    pub(crate) fn clear_state(&self, state: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        append(&mut headers, &self.state_name(state), "", Seconds(0));
        headers
    }

    /// A state of another form has no cookie; what is named then does not matter.
    fn state_name(&self, state: &str) -> String {
        let start = state.get(..STATE_CHARS).filter(|start| is_token(start));
        let prefix = if self.is_https { HOST } else { "" };
        format!("{prefix}{STATE}{}", start.unwrap_or_default())
    }

    fn seal(&self, name: &str, content: &impl Serialize, entropy: &dyn Entropy) -> Option<String> {
        let mut nonce = [0u8; NONCE];
        entropy.fill(&mut nonce);
        let plain = serde_json::to_vec(content).ok()?;
        let payload = Payload {
            msg: &plain,
            aad: name.as_bytes(),
        };
        let sealed = self.cipher.encrypt(&Nonce::from(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    fn open<T: DeserializeOwned>(&self, name: &str, text: &str) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload {
            msg: sealed,
            aad: name.as_bytes(),
        };
        let plain = self.cipher.decrypt(&Nonce::from(*nonce), payload).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

/// The names and values of all cookies of a request.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(header::COOKIE).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Whether a text can be part of a cookie's name.
fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Adds cookies to those that a response sets already. (`HeaderMap::extend` would replace them.)
pub(crate) fn set_also(headers: &mut HeaderMap, cookies: &HeaderMap) {
    for (name, value) in cookies {
        headers.append(name.clone(), value.clone());
    }
}

/// Appends a `Set-Cookie`. All cookies have the same attributes: no script reads them, no plain connection carries
/// them, and no page of another site sends them with a request of its own.
fn append(headers: &mut HeaderMap, name: &str, value: &str, life: Seconds) {
    let cookie = Cookie::build((name, value))
        .path("/")
        .http_only(true)
        .secure(true)
        .same_site(SameSite::Lax)
        .max_age(Duration::seconds(i64::from(life.0)))
        .build();
    // Names and values are base64url, which is always a valid header value.
    if let Ok(value) = HeaderValue::from_str(&cookie.to_string()) {
        headers.append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::return_url::ReturnUrl;
    use gw_types::testing::SeededEntropy;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn cookies() -> Cookies {
        Cookies::new(&Secret::new("client secret"), true).unwrap()
    }

    fn tokens() -> Tokens {
        Tokens {
            access: AccessToken {
                token: Secret::new("access.token.text"),
                expires_at: NOW.plus(Seconds(900)),
                refresh_at: NOW.plus(Seconds(600)),
                subject: Some("did:test:viewer".to_owned()),
            },
            refresh: Secret::new("refresh.token.text"),
        }
    }

    /// The request's headers of a browser that stored these.
    fn sent_back(set: &HeaderMap) -> HeaderMap {
        let pairs = set.get_all("set-cookie").iter().map(|value| {
            let text = value.to_str().unwrap();
            (header::COOKIE, text.split(';').next().unwrap().parse().unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    fn texts(headers: &HeaderMap) -> Vec<&str> {
        headers
            .get_all("set-cookie")
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect()
    }

    #[test]
    fn step_7_the_cookies_have_their_lives_and_attributes() {
        let set = cookies().session(&tokens(), NOW, &SeededEntropy::default()).unwrap();
        let texts = texts(&set);
        let rest: Vec<_> = texts
            .iter()
            .map(|text| {
                let (pair, attributes) = text.split_once("; ").unwrap();
                (pair.split_once('=').unwrap().0, attributes)
            })
            .collect();
        assert_eq!(
            rest,
            [
                ("explorer_auth", "HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=1800"),
                (
                    "explorer_refresh",
                    "HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=604800"
                ),
            ]
        );
        assert_eq!(
            self::texts(&Cookies::clear_session()),
            [
                "explorer_auth=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0",
                "explorer_refresh=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0",
                "explorer_view_as=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0",
            ]
        );
    }

    #[test]
    fn step_7_a_browser_never_holds_a_token_in_clear() {
        let entropy = SeededEntropy::default();
        let set = cookies().session(&tokens(), NOW, &entropy).unwrap();
        for text in texts(&set) {
            let value = text.split(['=', ';']).nth(1).unwrap();
            let bytes = URL_SAFE_NO_PAD.decode(value).unwrap();
            assert!(!bytes.windows(5).any(|part| part == b"token"), "{text}");
        }
        let again = cookies().session(&tokens(), NOW, &entropy).unwrap();
        assert_ne!(texts(&set), texts(&again), "every cookie has its own nonce");
    }

    #[test]
    fn step_7_a_session_is_read_back() {
        let set = cookies().session(&tokens(), NOW, &SeededEntropy::default()).unwrap();
        let headers = sent_back(&set);
        assert_eq!(cookies().access(&headers), Some(tokens().access));
        assert_eq!(cookies().refresh(&headers, NOW), Some(tokens().refresh));
        let week = NOW.plus(REFRESH_LIFE);
        assert_eq!(
            cookies().refresh(&headers, week),
            None,
            "a cookie kept longer than a week"
        );
        let other = Cookies::new(&Secret::new("another secret"), true).unwrap();
        assert_eq!(other.access(&headers), None);
    }

    #[test]
    fn step_7_a_cookie_counts_only_under_its_own_name_and_unaltered() {
        let set = cookies().session(&tokens(), NOW, &SeededEntropy::default()).unwrap();
        let values: Vec<_> = texts(&set)
            .iter()
            .map(|text| text.split(['=', ';']).nth(1).unwrap())
            .collect();
        let access = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, text.parse().unwrap());
            cookies().access(&headers)
        };
        assert!(access(&format!("explorer_auth={}", values[0])).is_some());
        assert!(
            access(&format!("explorer_auth={}", values[1])).is_none(),
            "the refresh token's"
        );
        let mut altered = values[0].to_owned();
        let other = if altered.as_bytes()[20] == b'A' { "B" } else { "A" };
        altered.replace_range(20..21, other);
        for text in [&*altered, "", "x", "access.token.text"] {
            assert!(access(&format!("explorer_auth={text}")).is_none(), "{text}");
        }
        let tossed = format!("explorer_auth={}; explorer_auth={}", values[0], values[1]);
        assert!(access(&tossed).is_none(), "a sibling host set a second one");
    }

    fn pending(state: &str, begun: Timestamp) -> PendingSignIn {
        PendingSignIn {
            state: state.to_owned(),
            verifier: Secret::new("verifier"),
            return_url: ReturnUrl::parse("/tx/1").unwrap(),
            begun,
        }
    }

    #[test]
    fn step_1_a_sign_in_has_an_encrypted_cookie_of_its_own() {
        let (first, entropy) = (pending("0123456789abcdefXYZ", NOW), SeededEntropy::default());
        let set = cookies().begin_sign_in(&first, &HeaderMap::new(), &entropy).unwrap();
        let (pair, attributes) = texts(&set)[0].split_once("; ").unwrap();
        let (name, value) = pair.split_once('=').unwrap();
        assert_eq!(name, "__Host-explorer_state_0123456789abcdef");
        assert_eq!(attributes, "HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=600");
        let bytes = URL_SAFE_NO_PAD.decode(value).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"verifier"), "{value}");

        let headers = sent_back(&set);
        assert_eq!(cookies().pending_sign_in(&headers, &first.state), Some(first.clone()));
        // Another state with the same beginning, and the cookie of one state under the name of another.
        assert_eq!(cookies().pending_sign_in(&headers, "0123456789abcdefXYy"), None);
        let mut renamed = HeaderMap::new();
        let text = format!("__Host-explorer_state_1123456789abcdef={value}");
        renamed.insert(header::COOKIE, text.parse().unwrap());
        assert_eq!(cookies().pending_sign_in(&renamed, "1123456789abcdefXYZ"), None);
        assert_eq!(cookies().pending_sign_in(&headers, "x=y; Domain=evil"), None);
        let other = Cookies::new(&Secret::new("another secret"), true).unwrap();
        assert_eq!(other.pending_sign_in(&headers, &first.state), None);
        let local = other_scheme().clear_state("0123456789abcdefXYZ");
        assert_eq!(
            texts(&local),
            ["explorer_state_0123456789abcdef=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0"]
        );
    }

    fn other_scheme() -> Cookies {
        Cookies::new(&Secret::new("client secret"), false).unwrap()
    }

    /// The cookies of one browser must fit into the headers of a request.
    #[test]
    fn step_1_a_browser_has_at_most_four_sign_ins() {
        let entropy = SeededEntropy::default();
        let mut request = HeaderMap::new();
        request.append(
            header::COOKIE,
            "__Host-explorer_state_=forged; other=1".parse().unwrap(),
        );
        let mut cleared = Vec::new();
        for n in 0..6 {
            let started = pending(&format!("{n}123456789abcdefXYZ"), NOW.plus(Seconds(n)));
            let set = cookies().begin_sign_in(&started, &request, &entropy).unwrap();
            for text in texts(&set) {
                if text.contains("Max-Age=0") {
                    cleared.push(text.split('=').next().unwrap().to_owned());
                } else {
                    request.append(header::COOKIE, text.split(';').next().unwrap().parse().unwrap());
                }
            }
        }
        // The browser of this test keeps what it shall remove, so the last sign-in removes all of it.
        assert_eq!(
            cleared[cleared.len() - 3..],
            [
                "__Host-explorer_state_",
                "__Host-explorer_state_0123456789abcdef",
                "__Host-explorer_state_1123456789abcdef"
            ]
        );
    }
}
