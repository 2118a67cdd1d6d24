//! Addresses from public sanctions lists (CO-36): the SDN list of OFAC ("advanced" XML) and the consolidated list of
//! the European Union.
//!
//! A list is read as a stream, with limits on its size, its depth and each of its tags and texts. Its result is
//! complete: malformed input is an error and never a part of a list.
//!
//! Not here: downloading lists, and applying them to the stored addresses.

mod eu;
mod input;
mod ofac;
mod scan;
mod xml;

use gw_types::{Address, B256};
use std::{collections::BTreeMap, io::Read};
use time::Date;

pub use xml::{ListError, ListLimits};

/// A public list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublicList {
    /// The SDN list of the Office of Foreign Assets Control, in its advanced XML form.
    OfacSdn,
    /// The consolidated list of the European Union of persons, groups and entities under financial sanctions.
    EuConsolidated,
}

/// The addresses of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanctionsList {
    /// Which list it is.
    pub list: PublicList,
    /// The day of issue, as the list says.
    pub date: Date,
    /// The SHA-256 of the file.
    pub sha256: B256,
    /// The number of listed persons and entities, with addresses or without.
    pub entries: usize,
    /// The listed addresses, each with a reason that names the list and its entries.
    pub addresses: BTreeMap<Address, String>,
    /// Texts that seem to be addresses of this kind and are not: nothing can be screened against them.
    pub unreadable: Vec<UnreadableAddress>,
}

/// A text of a list that starts like an address and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableAddress {
    /// The id of the entry.
    pub entry: String,
    /// The start of the text.
    pub text: String,
}

impl PublicList {
    /// The name, as in the source of a sanctioned address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OfacSdn => "OFAC SDN list",
            Self::EuConsolidated => "EU consolidated list",
        }
    }

    /// Reads the list to its end.
    ///
    /// # Errors
    /// [`ListError`] if the input exceeds a limit, is no well-formed XML, or is not this list.
    pub fn parse(self, input: &mut dyn Read, limits: &ListLimits) -> Result<SanctionsList, ListError> {
        match self {
            Self::OfacSdn => ofac::parse(input, limits),
            Self::EuConsolidated => eu::parse(input, limits),
        }
    }
}

/// The longest reason of a sanctioned address, in bytes (spec/60 section 9).
const MAX_REASON: usize = 1000;
/// Follows a reason that has no room for more entries.
const MORE: &str = "; and others";
/// The longest kept text of an unreadable address, in characters.
const MAX_UNREADABLE_TEXT: usize = 100;

/// What is collected while a list is read.
#[derive(Debug, Default)]
struct Collector {
    entries: usize,
    addresses: BTreeMap<Address, String>,
    unreadable: Vec<UnreadableAddress>,
}

impl Collector {
    fn add(&mut self, address: Address, reason: String, limits: &ListLimits) -> Result<(), ListError> {
        if let Some(known) = self.addresses.get_mut(&address) {
            let has_room = known.len().saturating_add(reason.len()).saturating_add(MORE.len() + 2) <= MAX_REASON;
            if known.ends_with(MORE) || known.split("; ").any(|part| part == reason) {
                return Ok(());
            }
            if has_room {
                known.push_str("; ");
                known.push_str(&reason);
            } else {
                known.push_str(MORE);
            }
            return Ok(());
        }
        if self.addresses.len() >= limits.max_addresses {
            return Err(ListError::TooManyAddresses(limits.max_addresses));
        }
        self.addresses.insert(address, reason);
        Ok(())
    }

    fn add_unreadable(&mut self, entry: &str, text: &str, limits: &ListLimits) -> Result<(), ListError> {
        if self.unreadable.len() >= limits.max_addresses {
            return Err(ListError::TooManyAddresses(limits.max_addresses));
        }
        self.unreadable.push(UnreadableAddress {
            entry: entry.to_owned(),
            text: text.chars().take(MAX_UNREADABLE_TEXT).collect(),
        });
        Ok(())
    }

    fn finish(self, list: PublicList, date: Date, sha256: B256) -> SanctionsList {
        SanctionsList {
            list,
            date,
            sha256,
            entries: self.entries,
            addresses: self.addresses,
            unreadable: self.unreadable,
        }
    }
}

/// Whether a text can be the id of an entry. Ids stand in reasons, which people read.
fn is_entry_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ListLimits = ListLimits {
        max_addresses: 2,
        ..ListLimits::DEFAULT
    };

    /// CO-36: an address of several entries is one row with one reason.
    #[test]
    fn co36_reasons_of_one_address_are_joined_up_to_their_limit() {
        let mut collector = Collector::default();
        let address = Address::repeat_byte(1);
        for reason in ["a", "b", "a"] {
            collector.add(address, reason.to_owned(), &LIMITS).unwrap();
        }
        assert_eq!(collector.addresses[&address], "a; b");
        for number in 0..200 {
            collector.add(address, format!("entry {number}"), &LIMITS).unwrap();
        }
        let reason = &collector.addresses[&address];
        assert!(reason.len() <= MAX_REASON && reason.ends_with(MORE), "{reason}");
        assert_eq!(reason.matches(MORE).count(), 1);
    }

    #[test]
    fn too_many_addresses_are_an_error() {
        let mut collector = Collector::default();
        for number in 0..2 {
            collector
                .add(Address::repeat_byte(number), "a".to_owned(), &LIMITS)
                .unwrap();
            collector.add_unreadable("1", "0x12", &LIMITS).unwrap();
        }
        collector.add(Address::repeat_byte(0), "b".to_owned(), &LIMITS).unwrap();
        let third = collector.add(Address::repeat_byte(2), "a".to_owned(), &LIMITS);
        assert!(matches!(third, Err(ListError::TooManyAddresses(2))));
        assert!(collector.add_unreadable("1", "0x12", &LIMITS).is_err());
    }

    #[test]
    fn ids_of_entries_are_short_and_plain() {
        for id in ["25308", "EU.27.28", "EU.4-1/2"] {
            assert!(is_entry_id(id), "{id}");
        }
        for id in ["", "a b", "a\n", "é", &"1".repeat(65)] {
            assert!(!is_entry_id(id), "{id}");
        }
    }
}
