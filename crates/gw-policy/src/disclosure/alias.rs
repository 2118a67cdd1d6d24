//! Names of addresses under a grant (spec/50 section 6, rules 29 and 30): pseudonyms, names of other sides, ids.
//!
//! All are HMAC-SHA256 under the grant's secret, so nobody without the secret can compare a name with a candidate
//! address, and names of two grants have nothing in common.

use gw_types::{Address, Level};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Digits of Crockford's base32: no I, L, O and U.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of a name: 60 bits.
const DIGITS: u32 = 12;

/// The names of addresses under one grant.
#[derive(Clone)]
pub struct GrantAliases {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for GrantAliases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GrantAliases(…)")
    }
}

/// The id of a disclosed address under a grant: 128 bits, written as 32 hex digits. Comparisons take the same time
/// for all values.
#[derive(Clone, Copy, Debug)]
pub struct AddressId([u8; 16]);

impl AddressId {
    /// The id with this text: 32 hex digits of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
        Some(Self(value.to_be_bytes()))
    }
}

impl PartialEq for AddressId {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for AddressId {}

impl std::fmt::Display for AddressId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// How one side of a row is named to the grantee (the table of spec/50 section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartyName {
    /// The address itself.
    Real(Address),
    /// `Address-…` for a disclosed address.
    Disclosed(String),
    /// `External-…` for another side.
    External(String),
    /// `Mine`: the viewer's own address.
    Mine,
    /// `[PRIVATE]`.
    Private,
}

impl PartyName {
    /// The label of the name in `address_labels`.
    pub const fn label(&self) -> Option<&'static str> {
        match self {
            Self::Disclosed(_) => Some("disclosed"),
            Self::External(_) => Some("external"),
            Self::Mine => Some("mine"),
            Self::Real(_) | Self::Private => None,
        }
    }
}

/// What an address in a row is to the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// An address that the grant discloses.
    Disclosed,
    /// The viewer's own address.
    Own,
    /// Any other address.
    Other,
}

impl GrantAliases {
    /// The names under a grant with this secret; `None` never occurs, as HMAC accepts keys of any length.
    pub fn new(secret: &[u8; 32]) -> Option<Self> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret).ok()?;
        Some(Self { mac })
    }

    /// The pseudonym of a disclosed address.
    pub fn pseudonym(&self, address: Address) -> String {
        format!("Address-{}", base32(&self.digest(b"addr", address)))
    }

    /// The name of an address that is not disclosed.
    pub fn external(&self, address: Address) -> String {
        format!("External-{}", base32(&self.digest(b"ext", address)))
    }

    /// The id of a disclosed address.
    pub fn address_id(&self, address: Address) -> AddressId {
        let digest = self.digest(b"id", address);
        let mut id = [0u8; 16];
        for (byte, from) in id.iter_mut().zip(digest) {
            *byte = from;
        }
        AddressId(id)
    }

    /// The disclosed address with this id. Compares all of them, so the time does not depend on which one matches.
    pub fn resolve(&self, addresses: &[Address], id: AddressId) -> Option<Address> {
        let mut matching = None;
        for address in addresses {
            if self.address_id(*address) == id {
                matching = Some(*address);
            }
        }
        matching
    }

    /// The name of one side of a row at the grant's level.
    pub fn party(&self, level: Level, side: Side, address: Address) -> PartyName {
        match (level, side) {
            (Level::Full, _) => PartyName::Real(address),
            (Level::Pseudonymous, Side::Disclosed) => PartyName::Disclosed(self.pseudonym(address)),
            (Level::Pseudonymous, Side::Own) => PartyName::Mine,
            (Level::Pseudonymous, Side::Other) => PartyName::External(self.external(address)),
            (Level::Redacted | Level::Hidden, _) => PartyName::Private,
        }
    }

    fn digest(&self, label: &[u8], address: Address) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(label);
        mac.update(address.as_slice());
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Display for PartyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Real(address) => write!(f, "{address:#x}"),
            Self::Disclosed(name) | Self::External(name) => f.write_str(name),
            Self::Mine => f.write_str("Mine"),
            Self::Private => f.write_str("[PRIVATE]"),
        }
    }
}

/// The first 60 bits, five per digit, most significant first.
fn base32(digest: &[u8; 32]) -> String {
    let bits = digest
        .iter()
        .take(8)
        .fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
    let digit = |index: u32| CROCKFORD.get(((bits >> (59 - 5 * index)) & 31) as usize);
    (0..DIGITS).filter_map(digit).map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::address;
    use std::collections::HashSet;

    const CANDIDATE: Address = address!("00112233445566778899aabbccddeeff00112233");

    fn aliases(byte: u8) -> GrantAliases {
        GrantAliases::new(&[byte; 32]).unwrap()
    }

    fn nth(n: u64) -> Address {
        Address::left_padding_from(&n.to_be_bytes())
    }

    #[test]
    fn ds29_names_are_those_that_another_implementation_computes() {
        // Computed with Python's hmac, hashlib and int.
        let names = aliases(7);
        assert_eq!(names.pseudonym(CANDIDATE), "Address-DF433AXAXGVF");
        assert_eq!(names.external(CANDIDATE), "External-77DZ82VJ0NKX");
        assert_eq!(
            names.address_id(CANDIDATE).to_string(),
            "1395c9c102ce63b6707daa53ae6aab6c"
        );
        // The spec's words for one digit at a time: HMAC over `addr`, 60 bits, Crockford's alphabet.
        let counting = GrantAliases::new(&core::array::from_fn(|i| u8::try_from(i).unwrap())).unwrap();
        assert_eq!(counting.pseudonym(Address::ZERO), "Address-7NN4MA5Y18HS");
    }

    #[test]
    fn ds29_names_are_stable_within_a_grant_and_differ_between_grants() {
        let mut seen = HashSet::new();
        for grant in 0..=255 {
            let names = aliases(grant);
            assert_eq!(names.pseudonym(CANDIDATE), aliases(grant).pseudonym(CANDIDATE));
            assert!(seen.insert(names.pseudonym(CANDIDATE)));
            assert!(seen.insert(names.external(CANDIDATE)));
            assert!(seen.insert(names.address_id(CANDIDATE).to_string()));
        }
        // No digit at a place tells of the same address under another grant: each occurs about as often as any other.
        let mut counts = std::collections::HashMap::new();
        for n in 0..6400u32 {
            let mut secret = [0u8; 32];
            secret[..4].copy_from_slice(&n.to_be_bytes());
            let name = GrantAliases::new(&secret).unwrap().pseudonym(CANDIDATE);
            for (place, digit) in name.trim_start_matches("Address-").chars().enumerate() {
                *counts.entry((place, digit)).or_insert(0u32) += 1;
            }
        }
        assert_eq!(counts.len(), 12 * 32);
        // Expected 200 with a deviation of 14.
        assert!(counts.values().all(|count| (115..=285).contains(count)), "{counts:?}");
    }

    #[test]
    fn ds30_a_hundred_thousand_addresses_have_as_many_names() {
        let names = aliases(3);
        let all: HashSet<String> = (0..100_000).map(|n| names.pseudonym(nth(n))).collect();
        assert_eq!(all.len(), 100_000);
        // n² / 2 / 2^60 at a million addresses is 4.3e-7; 16 bits reach one half at 301.
        let chance = |n: f64, bits: i32| 1.0 - (-(n * (n - 1.0)) / 2.0 / 2f64.powi(bits)).exp();
        assert!(chance(1e6, 60) < 1e-6);
        assert!(chance(302.0, 16) > 0.5);
    }

    #[test]
    fn ds30_ids_are_resolved_among_the_disclosed_addresses_only() {
        let names = aliases(9);
        let disclosed: Vec<Address> = (1..20).map(nth).collect();
        for address in &disclosed {
            let id = AddressId::parse(&names.address_id(*address).to_string()).unwrap();
            assert_eq!(names.resolve(&disclosed, id), Some(*address));
            assert_eq!(aliases(10).resolve(&disclosed, id), None);
        }
        assert_eq!(names.resolve(&disclosed, names.address_id(nth(99))), None);
        for text in [
            "",
            "0",
            &"g".repeat(32),
            &"+".repeat(32),
            &format!("+{}", "0".repeat(31)),
            &"0".repeat(33),
        ] {
            assert_eq!(AddressId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ds22_only_a_full_grant_names_a_real_address() {
        let names = aliases(1);
        for side in [Side::Disclosed, Side::Own, Side::Other] {
            assert_eq!(names.party(Level::Full, side, CANDIDATE), PartyName::Real(CANDIDATE));
            for level in [Level::Pseudonymous, Level::Redacted, Level::Hidden] {
                let name = names.party(level, side, CANDIDATE).to_string().to_lowercase();
                assert!(!name.contains("00112233"), "{name}");
                if level < Level::Pseudonymous {
                    assert_eq!(name, "[private]");
                }
            }
        }
        assert_eq!(
            names.party(Level::Pseudonymous, Side::Own, CANDIDATE).to_string(),
            "Mine"
        );
        let labels = [Side::Disclosed, Side::Other, Side::Own]
            .map(|side| names.party(Level::Pseudonymous, side, CANDIDATE).label());
        assert_eq!(labels, [Some("disclosed"), Some("external"), Some("mine")]);
        assert_eq!(names.party(Level::Full, Side::Own, CANDIDATE).label(), None);
        assert_eq!(format!("{names:?}"), "GrantAliases(…)");
    }
}
