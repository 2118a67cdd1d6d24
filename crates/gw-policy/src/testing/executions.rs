//! What follows from transactions in a test world: shares and disclosures, suspensions, quarantines, convictions and
//! withheld changes.

use super::{FUTURE, NOW, World, address_of, did, hash_of, names::uuid, org_id};
use crate::snapshot::{
    AccountChange, ClosedTo, Conviction, DisclosureGrant, DisclosureScope, Quarantine, Suspension, SystemToggle,
    ToggleState, TxVisibility, WithheldState,
};
use gw_types::{
    Address, B256, ConvictionId, DisclosureGrantId, Level, QuarantineId, SealedGrantSecret, SuspensionId, Timestamp,
    VisibilityId, WithheldId,
};

impl World {
    /// Adds a share of an accepted transaction by the user.
    #[must_use]
    pub fn share(mut self, transaction: &str, with: &[&str]) -> Self {
        let sender = self.current_user();
        let id = VisibilityId(uuid("visibility", transaction));
        let recipients = with.iter().map(|name| did(name)).collect();
        let row = TxVisibility {
            id,
            tx_hash: hash_of(transaction),
            sender,
            recipients,
            active: true,
        };
        self.visibility.insert(id, row);
        self
    }

    /// Adds a grant of disclosure of all current addresses of the user, for the current organization, from [`NOW`] to
    /// [`FUTURE`].
    #[must_use]
    pub fn disclosed_to(self, grantee: &str, level: Level) -> Self {
        let scope = DisclosureScope {
            level,
            dates: None,
            addresses: None,
            methods: None,
        };
        self.disclosed_within(grantee, scope)
    }

    /// As [`Self::disclosed_to`], with this scope.
    #[must_use]
    pub fn disclosed_within(mut self, grantee: &str, scope: DisclosureScope) -> Self {
        let owner = self.current_user();
        let id = DisclosureGrantId(uuid("disclosure", &format!("{owner}{grantee}{scope:?}")));
        let new_row = DisclosureGrant {
            id,
            owner,
            grantee: did(grantee),
            org: org_id(&self.org),
            granted_at: NOW,
            expires_at: FUTURE,
            revoked_at: None,
            include_future_addresses: false,
            scope,
            secret: SealedGrantSecret([0; SealedGrantSecret::SIZE]),
        };
        self.disclosures.insert(id, new_row);
        self
    }

    /// Changes every grant of disclosure.
    #[must_use]
    pub fn with_disclosures(mut self, change: impl Fn(&mut DisclosureGrant)) -> Self {
        self.disclosures.values_mut().for_each(change);
        self
    }

    /// Suspends the user's right to send (HD2).
    #[must_use]
    pub fn suspended(mut self) -> Self {
        let user = self.current_user();
        let id = SuspensionId(uuid("suspension", &user.to_string()));
        if let Some(user) = self.users.get(&user) {
            self.suspensions.insert(
                id,
                Suspension {
                    id,
                    external_id: user.external_id.clone(),
                },
            );
        }
        self
    }

    /// Quarantines the address of this name for everybody (HD28).
    #[must_use]
    pub fn quarantined(self, name: &str) -> Self {
        self.quarantined_at(address_of(name))
    }

    /// Quarantines this address for everybody (HD28).
    #[must_use]
    pub fn quarantined_at(mut self, address: Address) -> Self {
        let id = QuarantineId(uuid("quarantine", &address.to_string()));
        self.quarantines.insert(
            id,
            Quarantine {
                id,
                address,
                closed_to: ClosedTo::Everybody,
            },
        );
        self
    }

    /// Closes the address to a sender and the members of these organizations (HD28).
    #[must_use]
    pub fn closed_to_side(mut self, address: Address, sender: &str, orgs: &[&str]) -> Self {
        let id = QuarantineId(uuid("quarantine", &address.to_string()));
        let closed_to = ClosedTo::SenderSide(did(sender), orgs.iter().map(|org| org_id(org)).collect());
        self.quarantines.insert(id, Quarantine { id, address, closed_to });
        self
    }

    /// Adds a conviction of a transaction of this sender (HD28).
    #[must_use]
    pub fn convicted(mut self, tx_hash: B256, sender: &str) -> Self {
        let id = ConvictionId(uuid("conviction", &format!("{tx_hash}{sender}")));
        let (block_hash, place, logs) = (B256::ZERO, 0, 0);
        self.convictions.insert(
            id,
            Conviction {
                id,
                tx_hash,
                external_id: did(sender),
                block_hash,
                place,
                logs,
            },
        );
        self
    }

    /// Adds a conviction of a transaction of this sender that is at this block hash and index and emitted `logs` logs.
    #[must_use]
    pub fn convicted_at(mut self, tx_hash: B256, sender: &str, at: (B256, u64), logs: u64) -> Self {
        let id = ConvictionId(uuid("conviction", &format!("{tx_hash}{sender}")));
        let (block_hash, place) = at;
        self.convictions.insert(
            id,
            Conviction {
                id,
                tx_hash,
                external_id: did(sender),
                block_hash,
                place,
                logs,
            },
        );
        self
    }

    /// Adds a withheld change to another account by the last withheld transaction.
    #[must_use]
    pub fn withheld_with_last(mut self, address: Address, change: AccountChange) -> Self {
        let last = self.withheld.values().max_by_key(|row| row.place).cloned();
        let id = WithheldId(uuid("withheld with last", &address.to_string()));
        self.withheld.extend(last.map(|row| {
            (
                id,
                WithheldState {
                    id,
                    address,
                    change,
                    ..row
                },
            )
        }));
        self
    }

    /// Adds a withheld change to an account, by a transaction in this block whose sender's side is the organization
    /// `bank` (HD28).
    #[must_use]
    pub fn withheld(mut self, address: Address, block: u64, change: AccountChange) -> Self {
        let place = self.withheld.len() as u64;
        let id = WithheldId(uuid("withheld", &format!("{address}{place}")));
        let side = vec![org_id("bank")];
        self.withheld.insert(
            id,
            WithheldState {
                id,
                address,
                block,
                place,
                side,
                change,
            },
        );
        self
    }

    /// Overrides a toggle until a time.
    #[must_use]
    pub fn toggle(mut self, toggle: SystemToggle, enabled: bool, until: Timestamp) -> Self {
        self.toggles.insert(
            toggle.id(),
            ToggleState {
                id: toggle.id(),
                enabled,
                until,
            },
        );
        self
    }
}
