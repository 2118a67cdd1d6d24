//! Web origins, and which of them are allowed pages.

use http::{HeaderMap, Uri, header, uri::Scheme};

/// A web origin: scheme, host and port, in one canonical text (`https://host`, `http://host:8080`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin(String);

/// A text that is not an http or https origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no http or https origin")]
pub struct OriginError(String);

impl Origin {
    /// The origin of a URL. A path is allowed and dropped; user information is rejected.
    ///
    /// # Errors
    /// If the URL is not `http` or `https`, or has no host or user information.
    pub fn from_url(url: &str) -> Result<Self, OriginError> {
        let invalid = || OriginError(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(invalid());
        };
        let default_port = match scheme {
            s if *s == Scheme::HTTPS => 443,
            s if *s == Scheme::HTTP => 80,
            _ => return Err(invalid()),
        };
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(invalid());
        }
        match authority.port_u16() {
            Some(port) if port != default_port => Ok(Self(format!("{scheme}://{host}:{port}"))),
            // An unreadable port must not be taken for the scheme's default port.
            None if authority.as_str().len() != host.len() => Err(invalid()),
            Some(_) | None => Ok(Self(format!("{scheme}://{host}"))),
        }
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, and the port if it is not the scheme's default.
    pub fn host(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, host)| host)
    }

    /// The port, unless it is the scheme's default.
    pub fn port(&self) -> Option<u16> {
        self.host().rsplit_once(':').and_then(|(_, port)| port.parse().ok())
    }

    /// The origin without its port; `None` if it has none.
    pub fn without_port(&self) -> Option<&str> {
        self.port().and_then(|_| self.0.rsplit_once(':')).map(|(rest, _)| rest)
    }

    /// The host without its port, an IPv6 address without brackets.
    pub fn name(&self) -> &str {
        let name = self.without_port().unwrap_or(&self.0);
        name.split_once("://")
            .map_or("", |(_, name)| name)
            .trim_matches(['[', ']'])
    }

    /// Whether the host is the local machine.
    pub fn is_loopback(&self) -> bool {
        let name = self.name();
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// The origins whose pages may use the cookie and read answers across origins.
#[derive(Clone, Debug)]
pub struct AllowedOrigins {
    /// The origin of BASE_URL.
    pub base: Origin,
    /// The origin of FRONTEND_URL.
    pub frontend: Option<Origin>,
    /// CORS_ALLOWED_ORIGINS.
    pub listed: Vec<Origin>,
    /// Development: any page on a loopback host may read across origins (85 §2). It never may use the cookie.
    pub any_localhost: bool,
}

impl AllowedOrigins {
    /// Whether pages of `origin` are the gateway's own or listed (decision 4).
    pub fn is_own(&self, origin: &Origin) -> bool {
        self.base == *origin || self.frontend.as_ref() == Some(origin) || self.listed.contains(origin)
    }

    /// Whether pages of `origin` may read answers (85 §5).
    pub fn may_read(&self, origin: &Origin) -> bool {
        self.is_own(origin) || (self.any_localhost && origin.is_loopback())
    }

    /// Whether the headers show that an own or listed page sent the request (decision 4).
    pub fn sent_by_own_page(&self, headers: &HeaderMap) -> bool {
        if headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin") {
            return true;
        }
        origin_header(headers).is_some_and(|origin| self.is_own(&origin))
    }

    /// Whether the headers show that a foreign page sent the request. Such a page must not even cause cookies to be
    /// set: it could log its visitor in as itself.
    pub fn sent_by_foreign_page(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(header::ORIGIN) {
            return !origin_header(headers).is_some_and(|origin| self.may_read(&origin));
        }
        headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
    }

    /// Whether the browser navigates here, for example by a link from a foreign page: the browser shows the answer, and
    /// the page cannot read it. A frame does not count (Sec-Fetch, HD34).
    pub fn is_navigation(headers: &HeaderMap) -> bool {
        let is = |name: &str, wanted: &str| headers.get(name).is_none_or(|value| value == wanted);
        !headers.contains_key(header::ORIGIN)
            && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
            && is("sec-fetch-dest", "document")
    }

    /// Whether a page of another site sent the browser here without a click of the user (Sec-Fetch, HD34).
    pub fn sent_by_foreign_script(headers: &HeaderMap) -> bool {
        headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
            && !headers.contains_key("sec-fetch-user")
    }

    /// Whether a browser sent the request: it has headers that only browsers send (HD34).
    pub fn sent_by_browser(headers: &HeaderMap) -> bool {
        headers
            .keys()
            .any(|name| *name == header::ORIGIN || name.as_str().starts_with("sec-fetch-"))
    }

    /// Whether the gateway is served over https.
    pub fn is_https(&self) -> bool {
        self.base.0.starts_with("https://")
    }

    /// Whether the frontend is on another site, so that cookies work there only as third-party cookies (HD19).
    pub fn frontend_is_foreign(&self) -> bool {
        self.frontend
            .as_ref()
            .is_some_and(|frontend| !same_site(frontend, &self.base))
    }
}

/// The request's Origin, if there is exactly one and it is not `null`.
pub(crate) fn origin_header(headers: &HeaderMap) -> Option<Origin> {
    let mut values = headers.get_all(header::ORIGIN).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    Origin::from_url(value.to_str().ok()?).ok()
}

/// Whether scheme and host are the same. Browsers compare registrable domains; comparing hosts errs on the side of
/// "another site".
fn same_site(a: &Origin, b: &Origin) -> bool {
    let site = |origin: &Origin| origin.without_port().unwrap_or(&origin.0).to_owned();
    site(a) == site(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_origin_has_one_text() {
        for (url, text) in [
            ("https://Gate.Example/", "https://gate.example"),
            ("https://gate.example:443/x?y", "https://gate.example"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(Origin::from_url(url).unwrap().as_str(), text);
        }
        for bad in [
            "null",
            "",
            "gate.example",
            "ftp://x",
            "https://user@gate.example",
            "*",
            "https://gate.example:99999",
        ] {
            assert!(Origin::from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_is_this_machine_only() {
        for (url, expected) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:9", true),
            ("http://localhost.evil.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Origin::from_url(url).unwrap().is_loopback(), expected, "{url}");
        }
    }

    fn own() -> AllowedOrigins {
        AllowedOrigins {
            base: Origin::from_url("https://gate.example").unwrap(),
            frontend: Some(Origin::from_url("https://app.example").unwrap()),
            listed: vec![Origin::from_url("https://explorer.example").unwrap()],
            any_localhost: true,
        }
    }

    #[test]
    fn decision_4_own_pages_are_told_by_fetch_site_or_origin() {
        let sent = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            own().sent_by_own_page(&headers)
        };
        assert!(sent(&[("sec-fetch-site", "same-origin")]));
        assert!(sent(&[("origin", "https://gate.example")]));
        assert!(sent(&[("origin", "https://app.example")]));
        assert!(sent(&[("origin", "https://explorer.example:443")]));
        assert!(!sent(&[]));
        assert!(!sent(&[("origin", "null")]));
        assert!(
            !sent(&[("origin", "http://localhost:3000")]),
            "development reads, but never with the cookie"
        );
        assert!(!sent(&[("sec-fetch-site", "same-site")]));
        assert!(!sent(&[
            ("origin", "https://gate.example"),
            ("origin", "https://evil.example")
        ]));
    }

    #[test]
    fn rts8_hd34_only_a_whole_window_navigates() {
        let is = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            AllowedOrigins::is_navigation(&headers.collect::<HeaderMap>())
        };
        assert!(is(&[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document")
        ]));
        assert!(is(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
        assert!(!is(&[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe")
        ]));
        assert!(!is(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]));
        assert!(!is(&[
            ("sec-fetch-mode", "navigate"),
            ("origin", "https://evil.example")
        ]));
        assert!(!is(&[]));
    }

    #[test]
    fn hd19_a_frontend_on_another_host_is_another_site() {
        assert!(own().frontend_is_foreign());
        let near = AllowedOrigins {
            frontend: Some(Origin::from_url("https://gate.example:8443").unwrap()),
            ..own()
        };
        assert!(!near.frontend_is_foreign());
        assert!(
            !AllowedOrigins {
                frontend: None,
                ..own()
            }
            .frontend_is_foreign()
        );
    }
}
