//! Grants of disclosure, as their grantees see them. The disclosure feature provides them.

use gw_policy::Snapshot;
use gw_types::{Address, DisclosureGrantId, Level, Timestamp, UserId};
use std::ops::Range;

/// Grants of disclosure (spec/40 section 4, spec/50).
pub trait Grants: Send + Sync + std::fmt::Debug {
    /// A grant to this user by the policy of this snapshot, whether it is in force or not. `None` if there is no such
    /// grant, or if another user is its grantee: both get the same answer.
    fn find(&self, snapshot: &Snapshot, grantee: UserId, grant: DisclosureGrantId) -> Option<Grant>;
}

/// No grants: there is no disclosure.
#[derive(Clone, Copy, Debug)]
pub struct NoGrants;

impl Grants for NoGrants {
    fn find(&self, _: &Snapshot, _: UserId, _: DisclosureGrantId) -> Option<Grant> {
        None
    }
}

/// A grant of disclosure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: DisclosureGrantId,
    /// Whether it is in force. Only the grantee is told.
    pub status: GrantStatus,
    /// The level at which rows are shown.
    pub level: Level,
    /// The classes of data (`scope.methods`), such as `transactions`, `activity_logs` and `full_disclosure`.
    pub methods: Vec<String>,
    /// The disclosed addresses.
    pub addresses: Vec<GrantedAddress>,
    /// The other sides to which rows are limited (`scope.addresses`); `None` for all.
    pub counterparties: Option<Vec<Address>>,
    /// The times of the rows that are disclosed (`scope.date_range`); `None` for all.
    pub row_times: Option<Range<Timestamp>>,
    /// From when until when the grant is valid.
    pub validity: Range<Timestamp>,
}

/// An address that a grant discloses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedAddress {
    /// Its id under the grant, which tells nothing of the address.
    pub id: String,
    /// The address.
    pub address: Address,
    /// Its alias under the grant.
    pub pseudonym: Option<String>,
}

/// Whether a grant is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantStatus {
    /// It is.
    Active,
    /// It was revoked.
    Revoked,
    /// It has expired.
    Expired,
}

impl Grant {
    /// Whether the grant discloses this class of data.
    pub(crate) fn discloses(&self, class: &str) -> bool {
        self.methods
            .iter()
            .any(|method| method == class || method == "full_disclosure")
    }
}
