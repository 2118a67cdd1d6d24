//! The page that a browser returns to after the sign-in (spec/40 section 7, step 1).
//!
//! Invariant: a [`ReturnUrl`] is a path of the explorer. It cannot name another host, whatever a browser makes of it.

use url::Url;

/// Several sign-ins of a browser fit into the headers of one request.
const MAX_LEN: usize = 1024;
/// A host that no text can name: what resolves to it is relative.
const BASE: &str = "https://explorer.invalid";

/// A path, with a query if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReturnUrl(String);

/// The text is not a relative path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("return_url must be a path such as /tx/0x…")]
pub(crate) struct ReturnUrlError;

impl ReturnUrl {
    /// The home page.
    pub(crate) fn home() -> Self {
        Self("/".to_owned())
    }

    /// Parses a path such as `/x?y`. Rejects `//x` and `/\x`, which browsers read as hosts, blanks, control characters
    /// and characters beyond ASCII.
    ///
    /// # Errors
    /// [`ReturnUrlError`] for every other text.
    pub(crate) fn parse(text: &str) -> Result<Self, ReturnUrlError> {
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let is_path = path.starts_with('/') && !path.contains("//") && !text.contains('\\');
        let is_printable = text.len() <= MAX_LEN && text.bytes().all(|byte| byte.is_ascii_graphic());
        let stays = || {
            let base = Url::parse(BASE).ok()?;
            let joined = base.join(text).ok()?;
            (joined.origin() == base.origin()).then_some(())
        };
        (is_path && is_printable && stays().is_some())
            .then(|| Self(text.to_owned()))
            .ok_or(ReturnUrlError)
    }

    /// The path, as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The address to send the browser to: below `frontend`, or relative to this service.
    pub(crate) fn location(&self, frontend: Option<&Url>) -> String {
        let base = frontend.map_or("", |url| url.as_str().trim_end_matches('/'));
        format!("{base}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_1_a_return_url_is_a_relative_path() {
        for good in [
            "/",
            "/x",
            "/tx/0xab?tab=logs#1",
            "/a/b?next=https://x.example//",
            "/%2f%2fx",
        ] {
            assert_eq!(ReturnUrl::parse(good).unwrap().location(None), good);
        }
        for bad in [
            "",
            "x",
            "?x",
            "//x",
            "///x",
            "/\\x",
            "\\\\x",
            "/x\\..",
            "/a//b",
            "/\tx",
            "/\t/x",
            "/\n/x",
            "/x y",
            "/\u{0}",
            "/\u{7f}",
            "/\u{e4}",
            "https://evil.example",
            "http:/x",
            "javascript:alert(1)",
            " /x",
            "/..//evil.example",
        ] {
            assert_eq!(ReturnUrl::parse(bad), Err(ReturnUrlError), "{bad:?}");
        }
        assert!(ReturnUrl::parse(&format!("/{}", "x".repeat(MAX_LEN))).is_err());
    }

    #[test]
    fn step_1_the_browser_returns_below_the_front_end() {
        let path = ReturnUrl::parse("/tx/1").unwrap();
        for frontend in ["https://app.example", "https://app.example/"] {
            let frontend = Url::parse(frontend).unwrap();
            assert_eq!(path.location(Some(&frontend)), "https://app.example/tx/1");
        }
        let below = Url::parse("https://app.example/explorer/").unwrap();
        assert_eq!(
            ReturnUrl::home().location(Some(&below)),
            "https://app.example/explorer/"
        );
    }
}
