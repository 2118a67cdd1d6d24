//! Which routes of the gateway the backend forwards to.
//!
//! Invariant: the path of an upstream request is built from checked segments. A segment has no slash, no backslash, no
//! percent sign, and is no dot segment, so no proxy can decode a path to one outside of the tree of its route.

use http::Method;

/// The explorer's data API of the gateway.
const EXPLORER: &str = "/api/v1/explorer";
/// The disclosure routes of the signed-in user.
const DISCLOSURE: &str = "/api/v1/me/disclosure";
/// The organizations of the signed-in user.
pub(crate) const ORGANIZATIONS: &str = "/api/v1/me/orgs";
/// The linked addresses of the signed-in user.
const ETH: &str = "/api/v1/eth";

const MAX_SEGMENTS: usize = 12;
const MAX_SEGMENT: usize = 128;

/// Why a request is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    /// The path names no route of the gateway that is forwarded.
    #[error("the path is not forwarded")]
    Unknown,
    /// The path has other methods.
    #[error("the method is not forwarded")]
    Method,
}

/// A route of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamRoute {
    /// The path.
    pub(crate) path: String,
    /// Whether it is of the explorer's data API, which view-as reads as another user.
    pub(crate) is_explorer: bool,
}

/// The gateway's route for a path below `/api/`, given without that prefix and not decoded.
///
/// # Errors
/// [`RouteError`] if the gateway has no such route, or the path is not made of plain segments.
pub(crate) fn upstream_route(method: &Method, path: &str) -> Result<UpstreamRoute, RouteError> {
    let segments: Vec<&str> = path.split('/').collect();
    if segments.len() > MAX_SEGMENTS || !segments.iter().all(|segment| is_plain(segment)) {
        return Err(RouteError::Unknown);
    }
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let route = |path: String| UpstreamRoute {
        is_explorer: path.starts_with(EXPLORER),
        path,
    };
    mapped(method, &segments).map(route).ok_or_else(|| {
        let has_other = [Method::GET, Method::POST, Method::DELETE]
            .iter()
            .any(|other| mapped(other, &segments).is_some());
        if has_other {
            RouteError::Method
        } else {
            RouteError::Unknown
        }
    })
}

/// The table of the forwarded routes (spec/40 sections 4 and 7).
fn mapped(method: &Method, segments: &[&str]) -> Option<String> {
    let below = |base: &str| Some(format!("{base}/{}", segments.join("/")));
    match (method.as_str(), segments) {
        // Whom an administrator may view as is in one of these organizations.
        ("GET", ["view-as", "organizations"]) => Some(ORGANIZATIONS.to_owned()),
        // The sign-in and view-as are this service's own.
        (_, ["auth" | "view-as", ..]) => None,
        ("GET", ["privacy", rest @ ..]) => match rest {
            ["viewable-addresses"] => Some(format!("{EXPLORER}/viewable-addresses")),
            ["grant", _, ..] => Some(format!("{EXPLORER}/{}", rest.join("/"))),
            ["grants" | "requests"] | ["grants" | "requests", "all"] | ["grants", _, "events"] => {
                Some(format!("{DISCLOSURE}/{}", rest.join("/")))
            }
            _ => None,
        },
        ("POST", ["privacy", "requests", id, act @ ("approve" | "reject" | "revoke")]) => {
            Some(format!("{DISCLOSURE}/requests/{id}/{act}"))
        }
        ("POST", ["privacy", "requests", id, "preview"]) => Some(format!("{EXPLORER}/request/{id}/preview")),
        ("GET", ["eth", "addresses"]) => Some(format!("{ETH}/addresses")),
        ("DELETE", ["eth", "addresses", address]) => Some(format!("{ETH}/addresses/{address}")),
        ("POST", ["eth", "addresses", address, "refresh-ens"]) => {
            Some(format!("{ETH}/addresses/{address}/refresh-ens"))
        }
        ("POST", ["eth", "link", step @ ("challenge" | "verify")]) => Some(format!("{ETH}/link/{step}")),
        (_, ["privacy" | "eth", ..]) => None,
        ("GET", [_, ..]) | ("POST", ["addresses", _, "abi"] | ["index", "block", _]) => below(EXPLORER),
        _ => None,
    }
}

/// Whether a segment consists of characters that mean nothing but themselves in a path.
fn is_plain(segment: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:~".contains(&byte);
    (1..=MAX_SEGMENT).contains(&segment.len())
        && segment.bytes().all(is_allowed)
        && !segment.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(method: &str, path: &str) -> Result<String, RouteError> {
        upstream_route(&method.parse().unwrap(), path).map(|route| route.path)
    }

    /// E11: only routes of the data API are in the impersonated tree.
    #[test]
    fn e11_the_data_api_is_told_apart() {
        let is_explorer = |path: &str| upstream_route(&Method::GET, path).unwrap().is_explorer;
        for path in ["blocks", "privacy/viewable-addresses", "privacy/grant/g1/activity"] {
            assert!(is_explorer(path), "{path}");
        }
        for path in ["privacy/grants", "eth/addresses", "view-as/organizations"] {
            assert!(!is_explorer(path), "{path}");
        }
    }

    #[test]
    fn section_7_every_route_has_its_gateway_route() {
        let table = [
            ("GET", "blocks", "/api/v1/explorer/blocks"),
            ("HEAD", "blocks", "/api/v1/explorer/blocks"),
            ("GET", "blocks/latest/number", "/api/v1/explorer/blocks/latest/number"),
            ("GET", "chain-id", "/api/v1/explorer/chain-id"),
            ("POST", "addresses/0xab/abi", "/api/v1/explorer/addresses/0xab/abi"),
            ("POST", "index/block/7", "/api/v1/explorer/index/block/7"),
            ("GET", "grant/g1/resolve/a1", "/api/v1/explorer/grant/g1/resolve/a1"),
            (
                "GET",
                "privacy/viewable-addresses",
                "/api/v1/explorer/viewable-addresses",
            ),
            ("GET", "privacy/grant/g1/activity", "/api/v1/explorer/grant/g1/activity"),
            ("GET", "privacy/grants", "/api/v1/me/disclosure/grants"),
            ("GET", "privacy/grants/all", "/api/v1/me/disclosure/grants/all"),
            (
                "GET",
                "privacy/grants/g1/events",
                "/api/v1/me/disclosure/grants/g1/events",
            ),
            ("GET", "privacy/requests", "/api/v1/me/disclosure/requests"),
            (
                "POST",
                "privacy/requests/r1/approve",
                "/api/v1/me/disclosure/requests/r1/approve",
            ),
            ("GET", "eth/addresses", "/api/v1/eth/addresses"),
            ("GET", "view-as/organizations", "/api/v1/me/orgs"),
            ("DELETE", "eth/addresses/0xab", "/api/v1/eth/addresses/0xab"),
            (
                "POST",
                "eth/addresses/0xab/refresh-ens",
                "/api/v1/eth/addresses/0xab/refresh-ens",
            ),
            ("POST", "eth/link/challenge", "/api/v1/eth/link/challenge"),
            ("POST", "eth/link/verify", "/api/v1/eth/link/verify"),
        ];
        for (method, ours, theirs) in table {
            assert_eq!(path(method, ours).as_deref(), Ok(theirs), "{method} {ours}");
        }
    }

    #[test]
    fn section_7_other_methods_and_routes_are_not_forwarded() {
        for (method, ours) in [
            ("POST", "blocks"),
            ("DELETE", "blocks"),
            ("PUT", "addresses/0xab/abi"),
            ("POST", "eth/addresses"),
            ("GET", "eth/link/verify"),
            ("DELETE", "privacy/grants"),
            ("POST", "privacy/grants/g1/events"),
        ] {
            assert_eq!(path(method, ours), Err(RouteError::Method), "{method} {ours}");
        }
        for ours in [
            "auth/login",
            "auth/unknown",
            "view-as",
            "view-as/unknown",
            "eth",
            "eth/unknown",
            "privacy",
            "privacy/unknown",
            "privacy/grant",
        ] {
            assert_eq!(path("GET", ours), Err(RouteError::Unknown), "{ours}");
        }
    }

    #[test]
    fn section_7_a_path_cannot_leave_the_data_api() {
        for ours in [
            "",
            "/",
            "blocks/",
            "/blocks",
            "//evil.example",
            "../admin/users",
            "blocks/../../admin",
            "./blocks",
            "blocks/.",
            "blocks/...",
            "blocks/%2e%2e/admin",
            "blocks/..%2fadmin",
            "%2e%2e/admin",
            "blocks%2f..%2fadmin",
            "blocks/a\\b",
            "blocks/a;b",
            "blocks/a@b",
            "blocks/a b",
            "blocks/\u{e4}",
        ] {
            assert_eq!(path("GET", ours), Err(RouteError::Unknown), "{ours}");
        }
        assert!(path("GET", &"x/".repeat(MAX_SEGMENTS)).is_err());
        assert!(path("GET", &"x".repeat(MAX_SEGMENT + 1)).is_err());
    }
}
