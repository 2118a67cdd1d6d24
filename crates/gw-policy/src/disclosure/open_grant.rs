//! A grant as its grantee uses it.

use super::{AddressId, GrantAliases};
use crate::snapshot::{DisclosureGrant, User};
use gw_types::Address;
use std::sync::Arc;

/// A grant that its grantee may use now.
#[derive(Clone, Debug)]
pub struct OpenGrant {
    /// The grant.
    pub grant: Arc<DisclosureGrant>,
    /// The owner.
    pub owner: Arc<User>,
    /// The names of addresses under it.
    pub names: GrantAliases,
    /// The addresses that it discloses now.
    pub addresses: Vec<Address>,
}

impl OpenGrant {
    /// The disclosed address with this id.
    pub fn address(&self, id: AddressId) -> Option<Address> {
        self.names.resolve(&self.addresses, id)
    }
}
