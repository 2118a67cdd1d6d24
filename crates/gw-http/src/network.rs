//! Gate 1 of the admin API and of `/metrics`: private networks only (80 §1, HD16).
//!
//! Behind a TLS proxy, a private TCP peer alone proves nothing. A trusted proxy must therefore name the client that it
//! forwards, and a forwarding header from any other peer marks the request as external.

use crate::client::TrustedProxies;
use http::HeaderMap;
use ipnet::IpNet;
use std::net::IpAddr;

/// The addresses that count as internal.
#[derive(Clone, Debug, Default)]
pub struct PrivateNetwork {
    extra: Vec<IpNet>,
}

impl PrivateNetwork {
    /// Creates the network of the private ranges and TRUSTED_INTERNAL_CIDRS.
    pub fn new(extra: Vec<IpNet>) -> Self {
        Self { extra }
    }

    /// Whether `address` is loopback, RFC 1918, RFC 6598, unique local, or listed.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let private = match address {
            IpAddr::V4(v4) => {
                let [a, b, ..] = v4.octets();
                v4.is_loopback() || v4.is_private() || (a == 100 && (64..128).contains(&b))
            }
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
        };
        private || self.extra.iter().any(|network| network.contains(&address))
    }

    /// Whether a request comes from an internal address. A request from a trusted proxy that names no client is
    /// external.
    pub fn admits(&self, proxies: &TrustedProxies, peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
        let Some(peer) = peer else { return false };
        if proxies.contains(peer) {
            return proxies
                .forwarded(peer, headers)
                .is_some_and(|client| self.contains(client));
        }
        !carries_forwarding(headers) && self.contains(peer)
    }
}

/// Whether a header says that a proxy forwarded the request.
fn carries_forwarding(headers: &HeaderMap) -> bool {
    const PREFIXES: [&str; 2] = ["x-forwarded", "x-original-"];
    const OTHERS: [&str; 11] = [
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-rewrite-url",
        "true-client-ip",
        "cf-connecting-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "cdn-loop",
    ];
    let is_forwarding = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || OTHERS.contains(&name);
    headers.keys().any(|name| is_forwarding(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(peer: Option<&str>, headers: &[(&'static str, &'static str)]) -> bool {
        let proxies = TrustedProxies::new(vec!["10.9.0.0/16".parse().unwrap()]);
        let network = PrivateNetwork::new(vec!["203.0.113.0/24".parse().unwrap()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        network.admits(&proxies, peer.map(|text| text.parse().unwrap()), &map)
    }

    #[test]
    fn admin_gate_1_private_peers_only() {
        for inside in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd12::1",
            "203.0.113.7",
        ] {
            assert!(admits(Some(inside), &[]), "{inside}");
        }
        for outside in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(!admits(Some(outside), &[]), "{outside}");
        }
        assert!(!admits(None, &[]), "no peer known");
    }

    #[test]
    fn hd16_a_forwarding_header_from_anybody_else_is_external() {
        for name in [
            "x-forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded-server",
            "x-original-forwarded-for",
            "x-original-host",
            "x-original-url",
            "x-rewrite-url",
            "x-cluster-client-ip",
            "fastly-client-ip",
            "fly-client-ip",
            "cdn-loop",
            "forwarded",
            "x-real-ip",
            "via",
        ] {
            assert!(!admits(Some("127.0.0.1"), &[(name, "127.0.0.1")]), "{name}");
        }
    }

    #[test]
    fn hd16_behind_a_trusted_proxy_the_client_is_judged() {
        assert!(admits(Some("10.9.0.1"), &[("x-forwarded-for", "192.168.1.5")]));
        assert!(!admits(Some("10.9.0.1"), &[("x-forwarded-for", "8.8.8.8")]));
        assert!(!admits(
            Some("10.9.0.1"),
            &[("x-forwarded-for", "192.168.1.5, 8.8.8.8")]
        ));
        assert!(!admits(Some("10.9.0.1"), &[]), "a proxy that forwards nobody");
    }
}
