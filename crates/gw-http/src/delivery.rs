//! Where webhooks may deliver to: the addresses of hosts, and the URLs that administrators of organizations set.
//!
//! An administrator of an organization chooses the URL, and the gateway connects to it from inside of its network: an
//! address that only that network reaches is refused (server-side request forgery). A name can resolve to another
//! address each time, so the connector asks [`DeliveryNetworks::admits`] about every address before it connects.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Maximum characters of the URL of a webhook.
const MAX_URL: usize = 2048;

/// The networks that webhooks deliver to, apart from public addresses.
#[derive(Clone, Debug, Default)]
pub struct DeliveryNetworks {
    listed: Vec<IpNet>,
    is_production: bool,
}

/// Why a URL cannot be the URL of a webhook. The text is the text of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryUrlError {
    /// It is no absolute URL.
    #[error("url must be an absolute URL such as https://bank.example/hook")]
    Malformed,
    /// It is too long.
    #[error("url must have at most 2048 characters")]
    TooLong,
    /// Its scheme is not supported, or is http in production.
    #[error("url must begin with https://")]
    Scheme,
    /// It contains a user name or a password.
    #[error("url must contain no user name and no password")]
    Credentials,
    /// It contains a fragment.
    #[error("url must contain no fragment")]
    Fragment,
    /// Its host is an IP address that is not admitted.
    #[error("url must not name a private address")]
    Address,
}

impl DeliveryNetworks {
    /// Admits public addresses and the `listed` networks (`WEBHOOK_ALLOWED_NETWORKS`); outside of production, loopback
    /// addresses and plain http, too.
    pub fn new(listed: Vec<IpNet>, is_production: bool) -> Self {
        Self { listed, is_production }
    }

    /// Whether a delivery may go to this address.
    pub fn admits(&self, address: IpAddr) -> bool {
        let address = reached(address);
        let is_public = match address {
            IpAddr::V4(v4) => is_public_v4(v4),
            IpAddr::V6(v6) => is_public_v6(v6),
        };
        let is_development = !self.is_production && address.is_loopback();
        is_public || is_development || self.listed.iter().any(|network| network.contains(&address))
    }

    /// Whether deliveries need TLS.
    pub const fn requires_https(&self) -> bool {
        self.is_production
    }

    /// Parses the URL of a webhook. A host name is not resolved.
    ///
    /// # Errors
    /// [`DeliveryUrlError`] if it cannot be the URL of a webhook.
    pub fn parse_url(&self, text: &str) -> Result<Url, DeliveryUrlError> {
        if text.chars().count() > MAX_URL {
            return Err(DeliveryUrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| DeliveryUrlError::Malformed)?;
        // Percent encoding makes it longer.
        if url.as_str().len() > MAX_URL {
            return Err(DeliveryUrlError::TooLong);
        }
        match url.scheme() {
            "https" => {}
            "http" if !self.is_production => {}
            _ => return Err(DeliveryUrlError::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(DeliveryUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(DeliveryUrlError::Fragment);
        }
        let address = match url.host() {
            None => return Err(DeliveryUrlError::Malformed),
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(v4)) => Some(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => Some(IpAddr::V6(v6)),
        };
        match address {
            Some(address) if !self.admits(address) => Err(DeliveryUrlError::Address),
            _ => Ok(url),
        }
    }
}

/// The address that a connection to `address` reaches: of IPv4-mapped addresses and of those of the well-known prefix
/// of NAT64 (RFC 6052), the IPv4 address in them.
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                Ipv4Addr::new(a, b, c, d).into()
            }
            _ => v6.into(),
        },
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Whether the IANA registry of special-purpose addresses leaves it to the public network.
const fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, RFC 1918, RFC 6598 (CGNAT), loopback, link-local.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [169, 254, ..]
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] | [198, 18 | 19, ..]
        // Multicast, reserved, broadcast.
        | [224..=255, ..]
    )
}

/// Whether it is a global unicast address that contains no IPv4 address of a tunnel: loopback, unique local,
/// link-local, multicast and IPv4-compatible addresses are outside of `2000::/3`.
const fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments with Teredo and benchmarks; documentation; 6to4.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: [&str; 33] = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::7f00:1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:192.168.1.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::a00:1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:a00:1::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ];
    const LOOPBACK: [&str; 5] = ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"];
    const PUBLIC: [&str; 8] = [
        "8.8.8.8",
        "100.63.255.255",
        "172.32.0.1",
        "192.1.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2606:4700:4700::1111",
        "2a00:1450::1",
    ];

    fn admits(networks: &DeliveryNetworks, text: &str) -> bool {
        networks.admits(text.parse().unwrap())
    }

    #[test]
    fn a_delivery_goes_to_public_addresses_only() {
        let production = DeliveryNetworks::new(Vec::new(), true);
        for address in INSIDE.iter().chain(&LOOPBACK) {
            assert!(!admits(&production, address), "{address}");
        }
        for address in PUBLIC {
            assert!(admits(&production, address), "{address}");
        }
    }

    #[test]
    fn loopback_is_admitted_outside_of_production_only() {
        let development = DeliveryNetworks::new(Vec::new(), false);
        for address in LOOPBACK {
            assert!(admits(&development, address), "{address}");
        }
        for address in INSIDE {
            assert!(!admits(&development, address), "{address}");
        }
    }

    #[test]
    fn listed_networks_are_admitted() {
        let networks = vec!["10.1.0.0/16".parse().unwrap(), "fd00:1::/32".parse().unwrap()];
        let networks = DeliveryNetworks::new(networks, true);
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00:1::7"] {
            assert!(admits(&networks, address), "{address}");
        }
        for address in ["10.2.0.1", "127.0.0.1", "fd00:2::7"] {
            assert!(!admits(&networks, address), "{address}");
        }
    }

    #[test]
    fn the_url_of_a_webhook_is_https_without_credentials_and_fragment() {
        let production = DeliveryNetworks::new(Vec::new(), true);
        let longest = format!("https://bank.example/{}", "a".repeat(MAX_URL - 21));
        for good in ["https://bank.example/hook?x=1", "https://8.8.8.8:8443/", &longest] {
            assert!(production.parse_url(good).is_ok(), "{good}");
        }
        for (bad, error) in [
            ("bank.example/hook", DeliveryUrlError::Malformed),
            ("https://", DeliveryUrlError::Malformed),
            (&*format!("{longest}a"), DeliveryUrlError::TooLong),
            (
                &*format!("https://bank.example/{}", "ä".repeat(1000)),
                DeliveryUrlError::TooLong,
            ),
            ("http://bank.example/hook", DeliveryUrlError::Scheme),
            ("ftp://bank.example/hook", DeliveryUrlError::Scheme),
            ("file:///etc/passwd", DeliveryUrlError::Scheme),
            ("https://user@bank.example/", DeliveryUrlError::Credentials),
            ("https://:secret@bank.example/", DeliveryUrlError::Credentials),
            ("https://bank.example/#part", DeliveryUrlError::Fragment),
            ("https://10.0.0.1/", DeliveryUrlError::Address),
            // Other spellings of 127.0.0.1 and 169.254.169.254.
            ("https://2130706433/", DeliveryUrlError::Address),
            ("https://0x7f.1/", DeliveryUrlError::Address),
            ("https://0251.0376.169.254/", DeliveryUrlError::Address),
            ("https://[::1]/", DeliveryUrlError::Address),
            ("https://[::ffff:127.0.0.1]/", DeliveryUrlError::Address),
        ] {
            assert_eq!(production.parse_url(bad), Err(error), "{bad}");
        }
        let development = DeliveryNetworks::new(Vec::new(), false);
        assert!(development.parse_url("http://127.0.0.1:9000/hook").is_ok());
        assert_eq!(
            development.parse_url("http://10.0.0.1/"),
            Err(DeliveryUrlError::Address)
        );
    }
}
