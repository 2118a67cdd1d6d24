//! The client address of a request (85 §5): the TCP peer, or behind trusted proxies the rightmost hop that is not one.

use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address under which a request is counted and recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientAddress(pub IpAddr);

impl core::fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The TCP peer of a request, if the server recorded it.
pub fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|info| info.0.ip().to_canonical())
}

/// TRUSTED_PROXIES: the proxies whose forwarding headers are accepted.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    /// Whether a warning about an unlisted proxy was logged.
    warned: Arc<AtomicBool>,
}

impl TrustedProxies {
    /// Creates the list of these networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self {
            networks,
            warned: Arc::default(),
        }
    }

    /// Whether `address` is a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address.to_canonical()))
    }

    /// The client behind `peer`. Requests without a peer (no socket) share one address of their own.
    pub fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> ClientAddress {
        let Some(peer) = peer else {
            return ClientAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        };
        if self.is_first_of_unlisted(peer, headers) {
            tracing::warn!(
                peer = %peer,
                "a request was forwarded by a proxy that TRUSTED_PROXIES does not list: all clients behind it count as \
                 one address; list the proxy there, or have it send no X-Forwarded-For"
            );
        }
        ClientAddress(self.forwarded(peer, headers).unwrap_or(peer))
    }

    /// Whether this is the first request that an unlisted `peer` claims to forward (HD34).
    fn is_first_of_unlisted(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let unlisted = headers.contains_key(FORWARDED_FOR) && !self.contains(peer);
        unlisted && !self.warned.swap(true, Ordering::Relaxed)
    }

    /// The client that a trusted `peer` names: the rightmost hop that is not a trusted proxy; if all are, the leftmost.
    ///
    /// An unreadable hop ends the search, because any client could have invented the hops to the left of it.
    pub fn forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.contains(peer) {
            return None;
        }
        let mut client = None;
        for value in headers.get_all(FORWARDED_FOR).iter().rev() {
            for hop in value.to_str().ok()?.rsplit(',') {
                let Some(address) = parse_hop(hop.trim()) else {
                    return client;
                };
                client = Some(address);
                if !self.contains(address) {
                    return client;
                }
            }
        }
        client
    }
}

/// Parses an address with or without a port.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    bare.parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|at| at.ip()))
        .map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&'static str]) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        proxies.client(Some(peer.parse().unwrap()), &headers).to_string()
    }

    #[test]
    fn rts2_hd34_an_unlisted_proxy_is_warned_of_once() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        let unlisted: IpAddr = "203.0.113.9".parse().unwrap();
        assert!(!proxies.is_first_of_unlisted(unlisted, &headers), "nobody forwards");
        headers.append(FORWARDED_FOR, "198.51.100.1".parse().unwrap());
        assert!(
            !proxies.is_first_of_unlisted("10.0.0.1".parse().unwrap(), &headers),
            "it is listed"
        );
        assert!(proxies.is_first_of_unlisted(unlisted, &headers));
        assert!(!proxies.clone().is_first_of_unlisted(unlisted, &headers), "said once");
    }

    #[test]
    fn edge_forwarded_headers_count_only_from_trusted_proxies() {
        assert_eq!(client("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("::ffff:10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
    }

    #[test]
    fn edge_the_rightmost_untrusted_hop_is_the_client() {
        assert_eq!(client("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(
            client("10.0.0.1", &["1.1.1.1", "198.51.100.1:4711, 10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:80, fd00::1"]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(
            client("10.0.0.1", &["1.1.1.1, unknown, 10.0.0.2"]),
            "10.0.0.2",
            "garbage ends the walk"
        );
    }
}
