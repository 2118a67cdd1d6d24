//! Kinds of values and their parsers. A parser returns `None` for a text that it does not understand; it never guesses.

use super::variable::Kind;
use gw_chain_store::Location;
use gw_http::Origin;
use gw_identity::ResolverConfig;
use gw_types::{Address, ExternalId, Secret};
use gw_zk::{circuit::Circuit, did::Network};
use ipnet::IpNet;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};
use url::Url;

/// An enum whose variants are written as words in the configuration.
pub trait ConfigEnum: Copy + 'static {
    /// Each word and its value.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word; `None` if the word is unknown.
    fn from_word(text: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value)
    }
}

/// Declares an enum of configuration words together with its kind.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $rule:literal {
        $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $crate::config::kind::ConfigEnum for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
        }

        #[doc = concat!("The kind of [`", stringify!($name), "`].")]
        pub static $kind: $crate::config::variable::Kind<$name> =
            $crate::config::variable::Kind {
                rule: $rule,
                parse: <$name as $crate::config::kind::ConfigEnum>::from_word,
            };
    };
}
/// Declares the words and the kind of an enum from another crate.
macro_rules! words_of {
    ($name:ident, $kind:ident, $rule:literal { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $crate::config::kind::ConfigEnum for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
        }

        #[doc = concat!("The kind of [`", stringify!($name), "`].")]
        pub static $kind: $crate::config::variable::Kind<$name> =
            $crate::config::variable::Kind {
                rule: $rule,
                parse: <$name as $crate::config::kind::ConfigEnum>::from_word,
            };
    };
}
pub(super) use {words, words_of};

/// `true` or `false` only, so that a typing error such as `ture` cannot switch a protection off.
pub static BOOL: Kind<bool> = Kind {
    rule: "`true` or `false`",
    parse: |text| text.parse().ok(),
};

/// A TCP port.
pub static PORT: Kind<u16> = Kind {
    rule: "a port from 1 to 65535",
    parse: |text| number(text, 1, u16::MAX),
};

/// A name of printable ASCII characters without blanks.
pub static NAME: Kind<String> = Kind {
    rule: "a name",
    parse: |text| (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.to_owned()),
};

/// An IP address to listen on.
pub static ADDRESS: Kind<IpAddr> = Kind {
    rule: "an IP address",
    parse: |text| text.parse().ok(),
};

/// An IP address and port to listen on.
pub static SOCKET: Kind<SocketAddr> = Kind {
    rule: "an IP address and port such as `127.0.0.1:9090`",
    parse: |text| text.parse().ok(),
};

/// IP networks; a single address is a network of one.
pub static NETWORKS: Kind<Vec<IpNet>> = Kind {
    rule: "a comma-separated list of networks such as `10.0.0.0/8` or single addresses",
    parse: networks,
};

/// Host names, without scheme and port.
pub static HOSTS: Kind<Vec<String>> = Kind {
    rule: "a comma-separated list of host names such as `gateway` or `gateway.internal`",
    parse: |text| list(text, host),
};

/// Any text without a NUL byte. (An empty text counts as unset.)
pub static PATH: Kind<PathBuf> = Kind {
    rule: "a path",
    parse: |text| (!text.contains('\0')).then(|| PathBuf::from(text)),
};

/// A secret of any form; a rule checks its strength.
pub static SECRET: Kind<Secret> = Kind {
    rule: "a text without white space at its ends",
    parse: |text| secret(text).map(Secret::new),
};

/// A secret that is sent in a header.
pub static HEADER_SECRET: Kind<Secret> = Kind {
    rule: "a text of visible ASCII characters",
    parse: |text| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic())
            .then(|| Secret::new(text))
    },
};

/// Older secrets, accepted for validation only.
pub static SECRETS: Kind<Vec<Secret>> = Kind {
    rule: "a comma-separated list of secrets",
    parse: |text| list(text, |item| secret(item).map(Secret::new)),
};

/// 32 bytes as hex digits.
pub static KEY_256: Kind<Secret> = Kind {
    rule: "64 hexadecimal digits (32 bytes)",
    parse: |text| (text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| Secret::new(text)),
};

/// An Ed25519 private key: PKCS#8 PEM or its 32-byte seed as hex digits.
pub static SIGNING_KEY: Kind<Secret> = Kind {
    rule: "an Ed25519 private key: PKCS#8 PEM, or its seed as 64 hexadecimal digits",
    parse: |text| signing_key(text).map(|_| Secret::new(text)),
};

/// A store's address with its credentials. An embedded store has no address: it is a file in the data directory.
pub static DATABASE: Kind<Secret> = Kind {
    rule: "a `postgres://` address that names a database",
    parse: |text| {
        let url = Url::parse(text).ok()?;
        let named = matches!(url.scheme(), "postgres" | "postgresql") && url.has_host() && url.path().len() > 1;
        named.then(|| Secret::new(text))
    },
};

/// The database of the explorer: an address with its credentials, or a file. Unlike the other stores it has no default
/// file, because without this variable the explorer is off.
pub static CHAIN_DATABASE: Kind<Location> = Kind {
    rule: "a `postgres://` address that names a database, or `sqlite://` and the path of a file",
    parse: |text| match text.strip_prefix("sqlite:") {
        Some(path) => {
            let path = path.strip_prefix("//").unwrap_or(path);
            let is_file = !path.is_empty() && !path.ends_with('/') && !path.contains([':', '?', '#', '\0']);
            is_file.then(|| Location::Sqlite { file: path.into() })
        }
        None => (DATABASE.parse)(text).map(|url| Location::Postgres { url }),
    },
};

/// The shared cache's address with its credentials.
pub static CACHE: Kind<Secret> = Kind {
    rule: "a `redis://` or `rediss://` address (`-cluster` and `-sentinel` likewise, `valkey` as well as `redis`)",
    parse: |text| {
        let url = Url::parse(text).ok()?;
        let scheme = url.scheme();
        let server = scheme
            .strip_suffix("-cluster")
            .or(scheme.strip_suffix("-sentinel"))
            .unwrap_or(scheme);
        let known = matches!(server, "redis" | "rediss" | "valkey" | "valkeys") && url.has_host();
        known.then(|| Secret::new(text))
    },
};

/// A web address without credentials, query or fragment.
pub static WEB: Kind<Url> = Kind {
    rule: "an `http://` or `https://` address without credentials, query or fragment",
    parse: web,
};

/// Public halves of older checkpoint keys.
pub static PUBLIC_KEYS: Kind<Vec<[u8; 32]>> = Kind {
    rule: "Ed25519 public keys of 64 hexadecimal digits each, separated by commas",
    parse: |text| list(text, bytes_32),
};

/// Address of an upstream service. It has no credentials; the key of the node is in RPC_API_KEY.
pub static UPSTREAM: Kind<Url> = Kind {
    rule: "an `http://` or `https://` address without credentials",
    parse: |text| Url::parse(text).ok().filter(is_web),
};

/// Nodes of one chain, the preferred one first.
pub static UPSTREAMS: Kind<Vec<Url>> = Kind {
    rule: "an `http://` or `https://` address without credentials, or a comma-separated list of them",
    parse: |text| list(text, |item| (UPSTREAM.parse)(item)),
};

/// Browser origins, or `*`.
pub static ORIGINS: Kind<Vec<ListedOrigin>> = Kind {
    rule: "a comma-separated list of origins such as `https://app.example`, or `*`",
    parse: |text| list(text, ListedOrigin::parse),
};

/// A decentralized identifier (DID).
pub static DID: Kind<ExternalId> = Kind {
    rule: "a DID",
    parse: |text| ExternalId::new(text).ok().filter(ExternalId::is_did),
};

/// A value that appears in a token, such as a client id, an audience or a role.
pub static TOKEN_WORD: Kind<String> = Kind {
    rule: "a text of visible characters without commas",
    parse: |text| token_word(text).map(str::to_owned),
};

/// A list of [`TOKEN_WORD`] values.
pub static TOKEN_WORDS: Kind<Vec<String>> = Kind {
    rule: "a comma-separated list of texts of visible characters",
    parse: |text| list(text, |item| token_word(item).map(str::to_owned)),
};

/// The address of a contract.
pub static CONTRACT: Kind<Address> = Kind {
    rule: "`0x` and 40 hexadecimal digits",
    parse: contract,
};

/// Identity networks without variables of their own. Node addresses may contain keys.
pub static RESOLVERS: Kind<Vec<ResolverConfig>> = Kind {
    rule: "a comma-separated list of `<blockchain>:<network>=<contract>@<url>`, further nodes after `;`",
    parse: |text| list(text, resolver),
};

/// A list of DIDs.
pub static DIDS: Kind<Vec<ExternalId>> = Kind {
    rule: "a comma-separated list of DIDs",
    parse: |text| list(text, |item| (DID.parse)(item)),
};

/// Circuits of login proofs.
pub static AUTH_CIRCUITS: Kind<Vec<Circuit>> = Kind {
    rule: "a comma-separated list of `authV2`, `authV3`, `authV3-8-32`",
    parse: |text| list(text, |item| Circuit::from_id(item).filter(|circuit| circuit.is_auth())),
};

/// A positive decimal number of at most 76 digits, which fits into a field element of the circuits.
pub(super) fn digits(text: &str) -> Option<String> {
    let is_number = !text.starts_with('0') && text.len() <= 76 && text.bytes().all(|b| b.is_ascii_digit());
    (is_number && !text.is_empty()).then(|| text.to_owned())
}

/// The name of a request header.
pub static HEADER: Kind<http::HeaderName> = Kind {
    rule: "a header name of letters, digits and `-`",
    parse: |text| {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        http::HeaderName::from_str(text).ok().filter(|_| plain)
    },
};

/// A number of events per minute, or no limit.
pub static RATE: Kind<Rate> = Kind {
    rule: "`off`, or a number per minute such as `10/min`",
    parse: Rate::parse,
};

/// The address of a document: `https://` or `ipfs://`, without white space.
pub fn document(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("ipfs://"));
    rest.filter(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
        .map(|_| text.to_owned())
}

/// 32 bytes as hex digits.
pub fn bytes_32(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

/// An entry of CORS_ALLOWED_ORIGINS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedOrigin {
    /// `*`: every origin of this machine.
    Any,
    /// A single origin.
    One(Origin),
}

impl ListedOrigin {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        // An origin has no path, and `Origin::from_url` would drop a path silently.
        let bare = web(text).is_some_and(|url| url.path() == "/");
        Origin::from_url(text).ok().filter(|_| bare).map(Self::One)
    }
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// No limit.
    Off,
    /// At most this many events per minute.
    PerMinute(NonZeroU32),
}

impl Rate {
    fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(Self::Off);
        }
        let events = text.strip_suffix("/min")?;
        number(events, 1, 1_000_000)
            .and_then(NonZeroU32::new)
            .map(Self::PerMinute)
    }

    /// Events per minute; `None` means no limit.
    pub fn per_minute(self) -> Option<NonZeroU32> {
        match self {
            Self::Off => None,
            Self::PerMinute(events) => Some(events),
        }
    }
}

/// A whole number from `min` to `max`, without sign or separators.
pub fn number<T: FromStr + PartialOrd>(text: &str, min: T, max: T) -> Option<T> {
    let only_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse::<T>()
        .ok()
        .filter(|value| only_digits && *value >= min && *value <= max)
}

/// A time span such as `300` (seconds), `90s`, `5m`, `1h30m` or `7d`, from `min` to `max` seconds.
pub fn span(text: &str, min: u64, max: u64) -> Option<Duration> {
    let seconds = number(text, 0, u64::MAX).map(Duration::from_secs);
    let total = seconds.or_else(|| parse_units(text))?;
    (total >= Duration::from_secs(min) && total <= Duration::from_secs(max)).then_some(total)
}

/// A retention time: a span from a day to a century; `0` means forever (`None`).
pub static RETENTION: Kind<Option<Duration>> = Kind {
    rule: "`0` (for ever) or a span from 24h to 876000h",
    parse: |text| match text {
        "0" => Some(None),
        span_text => span(span_text, 86_400, 876_000 * 3600).map(Some),
    },
};

/// A span whose amounts all have units.
fn parse_units(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let (amount, tail) = rest.split_at_checked(rest.bytes().take_while(u8::is_ascii_digit).count())?;
        let (unit, tail) = tail.split_at_checked(tail.bytes().take_while(u8::is_ascii_lowercase).count())?;
        let amount: u64 = number(amount, 0, u64::MAX)?;
        let part = match unit {
            "ms" => Duration::from_millis(amount),
            "s" => Duration::from_secs(amount),
            "m" => Duration::from_secs(amount.checked_mul(60)?),
            "h" => Duration::from_secs(amount.checked_mul(3600)?),
            "d" => Duration::from_secs(amount.checked_mul(86_400)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// A size in bytes such as `1048576`, `512MiB` or `8GiB`, at least `min` bytes.
pub fn size(text: &str, min: u64) -> Option<u64> {
    let (digits, unit) = text.split_at_checked(text.bytes().take_while(u8::is_ascii_digit).count())?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number(digits, 0, u64::MAX)?
        .checked_mul(factor)
        .filter(|bytes| *bytes >= min)
}

/// An Ed25519 private key from PKCS#8 PEM or from its seed in hexadecimal digits.
pub fn signing_key(text: &str) -> Option<ed25519_dalek::SigningKey> {
    use ed25519_dalek::{SigningKey, pkcs8::DecodePrivateKey};
    if text.starts_with("-----BEGIN") {
        return SigningKey::from_pkcs8_pem(text).ok();
    }
    let mut seed = zeroize::Zeroizing::new([0u8; 32]);
    hex::decode_to_slice(text, seed.as_mut_slice()).ok()?;
    Some(SigningKey::from_bytes(&seed))
}

/// A secret without white space at its ends. Rejects U+FFFD, which replaces bytes of the environment that are not
/// UTF-8.
fn secret(text: &str) -> Option<&str> {
    (!text.is_empty() && text.trim() == text && !text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)
}

fn token_word(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b',')).then_some(text)
}

/// A tenant as written in the directory's addresses, in lower case.
pub fn tenant(text: &str) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
    let named = !text.is_empty() && text.bytes().all(plain) && !text.starts_with('.');
    // `consumers` means personal accounts, which belong to no organization.
    (named && text != "consumers").then(|| text.to_ascii_lowercase())
}

fn list<T>(text: &str, parse_item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|item| parse_item(item.trim())).collect()
}

fn contract(text: &str) -> Option<Address> {
    text.strip_prefix("0x")
        .filter(|digits| digits.len() == 40)
        .and_then(|digits| digits.parse().ok())
}

/// An identity network, such as `polygon:amoy=0x…@https://node.example/key;https://other.example`.
fn resolver(text: &str) -> Option<ResolverConfig> {
    let (key, rest) = text.split_once('=')?;
    let (address, nodes) = rest.split_once('@')?;
    let node = |text: &str| (UPSTREAM.parse)(text).and_then(|url| url.as_str().parse().ok());
    Some(ResolverConfig {
        name: key.to_owned(),
        network: Network::from_key(key)?,
        contract: contract(address)?,
        nodes: nodes.split(';').map(node).collect::<Option<_>>()?,
    })
}

fn networks(text: &str) -> Option<Vec<IpNet>> {
    list(text, |item| {
        item.parse::<IpNet>()
            .ok()
            .or_else(|| item.parse::<IpAddr>().ok().map(IpNet::from))
    })
}

fn host(text: &str) -> Option<String> {
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.split('.').all(is_label).then(|| text.to_ascii_lowercase())
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none()
}

fn web(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| is_web(url) && url.query().is_none() && url.fragment().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units_and_bounds() {
        for (text, seconds) in [
            ("300", 300),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5400),
            ("7d", 604_800),
            ("0", 0),
        ] {
            assert_eq!(span(text, 0, u64::MAX), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "5",
            "m",
            "5x",
            "-5s",
            "5 m",
            "1.5h",
            "s5",
            "99999999999999999999s",
            "300000000000000000d",
        ] {
            assert_eq!(span(text, 10, 1_000_000), None, "{text}");
        }
        assert_eq!(span("500ms", 0, 1), Some(Duration::from_millis(500)));
    }

    #[test]
    fn sizes_have_units_and_a_floor() {
        assert_eq!(size("8GiB", 1), Some(8 << 30));
        assert_eq!(size("4096", 1), Some(4096));
        for text in ["", "GiB", "8GB", "8 GiB", "-1", "99999999999TiB"] {
            assert_eq!(size(text, 1), None, "{text}");
        }
        assert_eq!(size("1KiB", 4096), None);
    }

    #[test]
    fn addresses_carry_no_credentials() {
        assert!(web("https://gateway.example/base").is_some());
        for text in [
            "https://u:p@gateway.example",
            "ftp://x",
            "localhost:8080",
            "https://x/?q",
            "https://x/#f",
            "https://",
        ] {
            assert!(web(text).is_none(), "{text}");
        }
        assert!((UPSTREAM.parse)("https://node.example/v3/key?x=1").is_some());
        assert!((UPSTREAM.parse)("https://user@node.example").is_none());
    }

    #[test]
    fn origins_have_no_path() {
        let single = ListedOrigin::One(Origin::from_url("https://a.example").unwrap());
        assert_eq!(
            (ORIGINS.parse)("https://a.example, *"),
            Some(vec![single, ListedOrigin::Any])
        );
        assert_eq!((ORIGINS.parse)("https://a.example/x"), None);
        assert_eq!((ORIGINS.parse)("null"), None);
    }

    #[test]
    fn di5_further_networks_have_a_contract_and_nodes() {
        let contract = "0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896";
        let row = resolver(&format!(
            "polygon:amoy={contract}@https://node.example/k=1;http://127.0.0.1:1"
        ))
        .unwrap();
        assert_eq!(
            (row.name.as_str(), row.network.chain_id, row.nodes.len()),
            ("polygon:amoy", 80002, 2)
        );
        assert_eq!(row.contract.to_string(), contract);
        for text in [
            String::new(),
            "polygon:amoy".to_owned(),
            format!("polygon:unknown={contract}@https://node.example"),
            format!("polygon:amoy={contract}"),
            format!("polygon:amoy={contract}@"),
            format!("polygon:amoy={contract}@https://node.example;"),
            "polygon:amoy=0x12@https://node.example".to_owned(),
        ] {
            assert!(resolver(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn rates_are_per_minute() {
        assert_eq!(Rate::parse("off"), Some(Rate::Off));
        assert_eq!(Rate::parse("10/min").and_then(Rate::per_minute), NonZeroU32::new(10));
        for text in ["10", "0/min", "10/day", "/min", "-1/min", "10/minute"] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }

    #[test]
    fn single_addresses_are_networks_of_one() {
        let parsed = networks("10.0.0.0/8, ::1").map(|nets| nets.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(parsed, Some(vec!["10.0.0.0/8".to_owned(), "::1/128".to_owned()]));
        assert_eq!(networks("10.0.0.0/33"), None);
        assert_eq!(networks("10.0.0.0/8,,"), None);
    }

    #[test]
    fn signing_keys_are_pem_or_hex() {
        assert!(signing_key(&"07".repeat(32)).is_some());
        assert!(signing_key("07").is_none());
        assert!(signing_key("-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----").is_none());
    }
}
