//! The grants of disclosure on which an answer rests, for the record of reads under grants (spec/50 rule 39).

use crate::snapshot::DisclosureGrant;
use gw_types::{Address, DisclosureGrantId, UserId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A grant of disclosure without which less would be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantUse {
    /// The grant.
    pub grant: Arc<DisclosureGrant>,
    /// The user who looks.
    pub viewer: UserId,
    /// The owner's addresses for which the grant was needed.
    pub addresses: BTreeSet<Address>,
}

/// Collects the grants of disclosure that the viewers of one request need. Clones share one collection.
///
/// A grant may also be in it if its row is not shown in the end, because it is on another page: a look is rather
/// recorded twice than not at all.
#[derive(Clone, Debug, Default)]
pub struct GrantUses(Arc<Mutex<BTreeMap<DisclosureGrantId, GrantUse>>>);

impl GrantUses {
    pub(super) fn add(&self, grant: &Arc<DisclosureGrant>, viewer: UserId, address: Address) {
        let mut uses = self.lock();
        let entry = uses.entry(grant.id).or_insert_with(|| GrantUse {
            grant: Arc::clone(grant),
            viewer,
            addresses: BTreeSet::new(),
        });
        entry.addresses.insert(address);
    }

    /// Takes the collected uses out, in the order of the grants' ids.
    #[must_use]
    pub fn take(&self) -> Vec<GrantUse> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<DisclosureGrantId, GrantUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
