//! Redirect URIs: where a code may be sent, and the URL that delivers it (OA-3, OA-6).
//!
//! Invariant: URLs are parsed and built by the URL library, as browsers do it; no text is ever concatenated into one.

use gw_http::{AllowedOrigins, Origin};
use serde::{Deserialize, Serialize};
use url::Url;

const MAX_LEN: usize = 2048;
/// Parameters of the answer. A redirect URI that already contains one would give the application two of them.
const OURS: [&str; 5] = ["code", "state", "iss", "error", "error_description"];

/// A well-formed redirect URI. [`RedirectUri::is_allowed`] decides whether a client may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RedirectUri {
    text: String,
    url: Url,
}

/// Why a text is not a redirect URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// Longer than 2048 characters.
    #[error("is longer than 2048 characters")]
    TooLong,
    /// Not printable ASCII.
    #[error("holds a blank, a control character or one beyond ASCII")]
    Characters,
    /// Browsers turn a backslash into a slash.
    #[error("holds a backslash")]
    Backslash,
    /// The parameters of the answer would follow the fragment.
    #[error("holds a fragment")]
    Fragment,
    /// User information can be mistaken for the host.
    #[error("holds user information")]
    UserInfo,
    /// Not an http or https URL.
    #[error("is no http or https address")]
    NoWebAddress,
    /// The application would get the parameter twice.
    #[error("holds a parameter that the answer will hold")]
    OurParameter,
}

impl RedirectUri {
    /// Parses a redirect URI.
    ///
    /// # Errors
    /// [`RedirectError`] for the first rule that the URI violates.
    pub fn parse(text: &str) -> Result<Self, RedirectError> {
        if text.len() > MAX_LEN {
            return Err(RedirectError::TooLong);
        }
        // The library, like browsers, drops tabs and turns backslashes into slashes: the URL that is checked would
        // differ from the text that is compared.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RedirectError::Characters);
        }
        if text.contains('\\') {
            return Err(RedirectError::Backslash);
        }
        let url = Url::parse(text).map_err(|_| RedirectError::NoWebAddress)?;
        if !matches!(url.scheme(), "http" | "https") || !text.contains("://") || !url.has_host() {
            return Err(RedirectError::NoWebAddress);
        }
        if url.fragment().is_some() {
            return Err(RedirectError::Fragment);
        }
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
            return Err(RedirectError::UserInfo);
        }
        if url.query_pairs().any(|(name, _)| OURS.contains(&name.as_ref())) {
            return Err(RedirectError::OurParameter);
        }
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }

    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is an https address.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether a client may be answered there. A list of the client's own redirect URIs replaces the gateway's allowed
    /// origins.
    pub fn is_allowed(&self, listed: Option<&[Self]>, own: &AllowedOrigins, production: bool) -> bool {
        if production && !self.is_https() {
            return false;
        }
        if let Some(listed) = listed {
            return listed.iter().any(|one| one.text == self.text);
        }
        let Ok(origin) = Origin::from_url(&self.url.origin().ascii_serialization()) else {
            return false;
        };
        own.base == origin || own.listed.contains(&origin) || (!production && origin.is_loopback())
    }

    /// The URL with the answer in its query (RFC 6749 §4.1.2, RFC 9207).
    pub fn with_code(&self, code: &str, state: &str, issuer: &str) -> String {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("code", code)
            .append_pair("state", state)
            .append_pair("iss", issuer);
        url.into()
    }
}

impl TryFrom<String> for RedirectUri {
    type Error = RedirectError;

    fn try_from(text: String) -> Result<Self, RedirectError> {
        Self::parse(&text)
    }
}

impl From<RedirectUri> for String {
    fn from(uri: RedirectUri) -> Self {
        uri.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> AllowedOrigins {
        AllowedOrigins {
            base: Origin::from_url("https://gate.example").unwrap(),
            frontend: Some(Origin::from_url("https://app.example").unwrap()),
            listed: vec![Origin::from_url("https://explorer.example").unwrap()],
            any_localhost: true,
        }
    }

    fn allowed(text: &str, listed: Option<&[&str]>, production: bool) -> bool {
        let listed: Option<Vec<_>> = listed.map(|all| all.iter().map(|one| RedirectUri::parse(one).unwrap()).collect());
        RedirectUri::parse(text)
            .unwrap()
            .is_allowed(listed.as_deref(), &own(), production)
    }

    #[test]
    fn oa3_what_is_refused_outright() {
        let table = [
            ("https://explorer.example/cb#x", RedirectError::Fragment),
            ("https://explorer.example/cb#", RedirectError::Fragment),
            ("https://user@explorer.example/cb", RedirectError::UserInfo),
            ("https://user:secret@explorer.example/cb", RedirectError::UserInfo),
            ("https://@explorer.example/cb", RedirectError::UserInfo),
            ("https://explorer.example\\@evil.example/cb", RedirectError::Backslash),
            ("https:\\\\explorer.example", RedirectError::Backslash),
            ("https://explorer.example/a b", RedirectError::Characters),
            ("https://explorer.example/\tcb", RedirectError::Characters),
            ("https://explorer.example/cb\n", RedirectError::Characters),
            ("https://expl\u{f6}rer.example/cb", RedirectError::Characters),
            ("javascript:alert(1)", RedirectError::NoWebAddress),
            ("data:text/html,x", RedirectError::NoWebAddress),
            ("myapp://cb", RedirectError::NoWebAddress),
            ("/cb", RedirectError::NoWebAddress),
            ("//explorer.example/cb", RedirectError::NoWebAddress),
            ("https:explorer.example/cb", RedirectError::NoWebAddress),
            ("https://", RedirectError::NoWebAddress),
            ("", RedirectError::NoWebAddress),
            ("https://explorer.example/cb?code=1", RedirectError::OurParameter),
            ("https://explorer.example/cb?x=1&st%61te=1", RedirectError::OurParameter),
        ];
        for (text, error) in table {
            assert_eq!(RedirectUri::parse(text), Err(error), "{text:?}");
        }
        let long = format!("https://explorer.example/{}", "x".repeat(MAX_LEN));
        assert_eq!(RedirectUri::parse(&long), Err(RedirectError::TooLong));
    }

    #[test]
    fn oa3_without_a_list_origins_of_ours_are_allowed() {
        for (text, production, development) in [
            ("https://gate.example/cb", true, true),
            ("https://explorer.example/cb?x=1", true, true),
            ("https://explorer.example:443/cb", true, true),
            ("https://EXPLORER.example/cb", true, true),
            ("https://app.example/cb", false, false),
            ("https://explorer.example:8443/cb", false, false),
            ("http://explorer.example/cb", false, false),
            ("https://explorer.example.evil.example/cb", false, false),
            ("https://evil.example/?https://explorer.example", false, false),
            ("http://localhost:3000/cb", false, true),
            ("http://127.0.0.1/cb", false, true),
            ("http://[::1]:9/cb", false, true),
            ("http://0x7f.1/cb", false, true),
            ("http://localhost.evil.example/cb", false, false),
        ] {
            assert_eq!(allowed(text, None, true), production, "{text}");
            assert_eq!(allowed(text, None, false), development, "{text}");
        }
    }

    #[test]
    fn oa3_a_list_replaces_origins_and_matches_exactly() {
        let listed: Option<&[&str]> = Some(&["https://one.example/cb", "http://localhost:3000/cb"]);
        for (text, production, development) in [
            ("https://one.example/cb", true, true),
            ("https://one.example/cb/", false, false),
            ("https://one.example/cb?x=1", false, false),
            ("https://ONE.example/cb", false, false),
            ("https://one.example:443/cb", false, false),
            ("https://one.example/x/../cb", false, false),
            ("https://explorer.example/cb", false, false),
            ("https://gate.example/cb", false, false),
            ("http://localhost:3000/cb", false, true),
            ("http://localhost:3001/cb", false, false),
        ] {
            assert_eq!(allowed(text, listed, true), production, "{text}");
            assert_eq!(allowed(text, listed, false), development, "{text}");
        }
        assert!(
            !allowed("https://gate.example/cb", Some(&[]), false),
            "an empty list allows nothing"
        );
    }

    #[test]
    fn oa6_answers_are_escaped_into_the_query() {
        let with = |text: &str, state: &str| {
            RedirectUri::parse(text)
                .unwrap()
                .with_code("a-b_c", state, "https://gate.example")
        };
        assert_eq!(
            with("https://one.example/cb", "s"),
            "https://one.example/cb?code=a-b_c&state=s&iss=https%3A%2F%2Fgate.example"
        );
        assert_eq!(
            with("https://one.example/cb?x=%26", "a&b=c#d e\r\n\"<"),
            "https://one.example/cb?x=%26&code=a-b_c&state=a%26b%3Dc%23d+e%0D%0A%22%3C&iss=https%3A%2F%2Fgate.example"
        );
        let back = Url::parse(&with("https://one.example", "\u{f6} +%")).unwrap();
        let pairs: Vec<_> = back
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        assert_eq!(pairs[1], ("state".to_owned(), "\u{f6} +%".to_owned()));
    }
}
