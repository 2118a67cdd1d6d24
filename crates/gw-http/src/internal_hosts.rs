//! The hosts under which internal routes answer, and the pages that may call them (HD16).
//!
//! A browser in the private network runs pages of everybody. Such a page must not read internal routes: neither by a
//! host name that its author points to a private address (DNS rebinding), nor by a request from another origin.

use crate::{
    error::ApiError,
    origin::{AllowedOrigins, Origin, origin_header},
};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, Uri, header, uri::Authority};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// The hosts under which internal routes answer: the local machine, the address of the listener, and INTERNAL_HOSTS.
#[derive(Clone, Debug)]
pub struct InternalHosts {
    listener: IpAddr,
    /// In lower case.
    names: Vec<String>,
    /// The pages that may call across origins.
    pages: Option<Arc<AllowedOrigins>>,
}

impl InternalHosts {
    /// Creates the hosts of a listener at this address. An unspecified address stands for every IP address, because
    /// nobody else controls what an IP address in a URL stands for.
    pub fn new(listener: IpAddr, names: impl IntoIterator<Item = String>) -> Self {
        Self {
            listener: listener.to_canonical(),
            names: names.into_iter().map(|name| canonical(&name)).collect(),
            pages: None,
        }
    }

    /// Lets the gateway's own and listed pages call across origins.
    #[must_use]
    pub fn with_pages(self, pages: Arc<AllowedOrigins>) -> Self {
        Self {
            pages: Some(pages),
            ..self
        }
    }

    /// Checks that a request names an internal host, and that no foreign page sent it.
    ///
    /// # Errors
    /// 400 for a request without a host, with several, or with a malformed one; 403 for another host, and for a request
    /// of a foreign page.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = requested_host(uri, headers).ok_or_else(|| ApiError::bad_request("one Host is required"))?;
        if !self.contains(&host) {
            return Err(ApiError::forbidden("this host is not in INTERNAL_HOSTS"));
        }
        if self.is_sent_by_foreign_page(&host, headers) {
            return Err(ApiError::forbidden("not available to pages of other origins"));
        }
        Ok(())
    }

    fn contains(&self, host: &Authority) -> bool {
        let name = canonical(host.host().trim_start_matches('[').trim_end_matches(']'));
        if name == "localhost" || self.names.contains(&name) {
            return true;
        }
        name.parse::<IpAddr>().is_ok_and(|address| {
            let address = address.to_canonical();
            address.is_loopback() || address == self.listener || self.listener.is_unspecified()
        })
    }

    fn is_sent_by_foreign_page(&self, host: &Authority, headers: &HeaderMap) -> bool {
        if headers.contains_key(header::ORIGIN) {
            let is_own = |origin: &Origin| {
                let same = |scheme| Origin::from_url(&format!("{scheme}://{host}")).as_ref() == Ok(origin);
                same("http") || same("https")
            };
            let may_call = |origin: &Origin| self.pages.as_ref().is_some_and(|pages| pages.may_read(origin));
            return !origin_header(headers).is_some_and(|origin| is_own(&origin) || may_call(&origin));
        }
        let mut sites = headers.get_all("sec-fetch-site").iter();
        sites.any(|site| site != "same-origin" && site != "none")
    }
}

impl Default for InternalHosts {
    /// The local machine alone.
    fn default() -> Self {
        Self::new(Ipv4Addr::LOCALHOST.into(), [])
    }
}

/// In lower case, without the dot of the root.
fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The one host that the request names, in its `Host` header or its target; `None` if there is none, there are several
/// different ones, or it cannot be read.
fn requested_host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut listed = headers.get_all(header::HOST).iter();
    let listed_host = listed.next();
    if listed.next().is_some() {
        return None;
    }
    let host = match (listed_host, uri.authority()) {
        (Some(listed), target) => {
            let host: Authority = listed.to_str().ok()?.parse().ok()?;
            if target.is_some_and(|target| !target.as_str().eq_ignore_ascii_case(host.as_str())) {
                return None;
            }
            host
        }
        (None, target) => target?.clone(),
    };
    (!host.host().is_empty() && !host.as_str().contains('@')).then_some(host)
}

/// Middleware: rejects requests that name a host that is not internal, and requests of foreign pages.
///
/// # Errors
/// As [`InternalHosts::check`].
pub async fn internal_hosts_only(
    State(hosts): State<Arc<InternalHosts>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    hosts.check(request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(listener: &str, headers: &[(&'static str, &str)]) -> u16 {
        let pages = AllowedOrigins {
            base: Origin::from_url("https://gateway.example").unwrap(),
            frontend: None,
            listed: vec![Origin::from_url("https://app.example").unwrap()],
            any_localhost: false,
        };
        let hosts = InternalHosts::new(listener.parse().unwrap(), ["Metrics.internal".to_owned()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let checked = hosts
            .with_pages(Arc::new(pages))
            .check(&Uri::from_static("/metrics"), &map);
        checked.map_or_else(|error| error.code().status().as_u16(), |()| 200)
    }

    /// DNS rebinding: the page's own host name leads to a private address, so the request is of the same origin.
    #[test]
    fn hd16_a_host_that_is_not_internal_is_refused() {
        let at = |host: &str| status("10.0.0.7", &[("host", host), ("sec-fetch-site", "same-origin")]);
        for inside in [
            "localhost",
            "LOCALHOST:9090",
            "localhost.",
            "127.0.0.1:9090",
            "127.8.8.8",
            "[::1]:9090",
            "10.0.0.7",
            "10.0.0.7:9090",
            "[::ffff:10.0.0.7]",
            "metrics.internal:9090",
            "METRICS.INTERNAL.",
        ] {
            assert_eq!(at(inside), 200, "{inside}");
        }
        for outside in [
            "attacker.example",
            "attacker.example:9090",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "10.0.0.8",
            "2130706433",
            "0x7f.1",
            "gateway.example",
        ] {
            assert_eq!(at(outside), 403, "{outside}");
        }
        for malformed in ["", "a@localhost", "localhost:x:y", "local host"] {
            assert_eq!(at(malformed), 400, "{malformed}");
        }
        assert_eq!(
            status("0.0.0.0", &[("host", "10.0.0.8")]),
            200,
            "any address of the machine"
        );
        assert_eq!(status("0.0.0.0", &[("host", "attacker.example")]), 403);
    }

    #[test]
    fn hd16_exactly_one_host_is_accepted() {
        assert_eq!(status("10.0.0.7", &[]), 400);
        assert_eq!(status("10.0.0.7", &[("host", "localhost"), ("host", "localhost")]), 400);
        let hosts = InternalHosts::default();
        let target = |uri: &'static str, host: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.append("host", host.parse().unwrap());
            }
            hosts.check(&Uri::from_static(uri), &headers).is_ok()
        };
        assert!(target("http://localhost:9090/metrics", None), "HTTP/2 has no Host");
        assert!(target("http://localhost:9090/metrics", Some("localhost:9090")));
        assert!(!target("http://attacker.example/metrics", Some("localhost")));
        assert!(!target("http://localhost/metrics", Some("attacker.example")));
    }

    #[test]
    fn hd16_requests_of_foreign_pages_are_refused() {
        let with = |headers: &[(&'static str, &str)]| {
            let host = [("host", "localhost:9090")];
            status("10.0.0.7", &[host.as_slice(), headers].concat())
        };
        for allowed in [
            &[("origin", "http://localhost:9090")][..],
            &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin")],
            &[],
        ] {
            assert_eq!(with(allowed), 200, "{allowed:?}");
        }
        for foreign in [
            &[("origin", "http://localhost:3000")][..],
            &[
                ("origin", "https://attacker.example"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("origin", "null")],
            &[
                ("origin", "https://app.example"),
                ("origin", "https://attacker.example"),
            ],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(with(foreign), 403, "{foreign:?}");
        }
    }
}
