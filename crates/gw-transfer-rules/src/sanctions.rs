//! Lists of sanctioned addresses and their screening (spec/60 section 9).

use crate::effects::ScreenedParty;
use alloy_primitives::map::AddressSet;
use gw_types::Address;

/// Whose list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SanctionScope {
    /// The list of the platform.
    Global,
    /// The list of an organization.
    Org,
}

/// The sanctioned addresses of one scope. Addresses are bytes: the case of their text does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanctionList {
    version: u64,
    addresses: AddressSet,
}

/// The versions of the lists that a decision used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListVersions {
    /// Of the platform.
    pub global: u64,
    /// Of the organization.
    pub org: u64,
}

/// The result of screening the parties of a transaction with one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screening {
    /// The list.
    pub scope: SanctionScope,
    /// Its version.
    pub version: u64,
    /// The number of parties.
    pub parties: usize,
    /// The first party on the list.
    pub hit: Option<ScreenedParty>,
}

impl SanctionList {
    /// A list. Every change of the list raises its version.
    pub fn new(version: u64, addresses: impl IntoIterator<Item = Address>) -> Self {
        Self {
            version,
            addresses: addresses.into_iter().collect(),
        }
    }

    /// The version.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Whether an address is on the list.
    pub fn contains(&self, address: Address) -> bool {
        self.addresses.contains(&address)
    }

    /// Screens parties in their order: the first one on the list is the hit.
    pub fn screen(&self, scope: SanctionScope, parties: &[ScreenedParty]) -> Screening {
        Screening {
            scope,
            version: self.version,
            parties: parties.len(),
            hit: parties.iter().find(|party| self.contains(party.address)).copied(),
        }
    }
}
