//! An administrator who looks over a user's shoulder: dry-run and view-as (HD7).
//!
//! Decisions are made for the user, on what holds for both: groups of other organizations count only if they count for
//! the administrator too, and an address is the user's own only as far as the administrator sees it. So no verdict tells
//! of a wallet, or of another organization, that the administrator does not know of anyway. What of an answer shows is
//! the [`Viewer`](crate::visibility::Viewer)'s, by the same rule.

//!
//! What runs, runs from an address that the administrator knows of as their own, or from [`Beside::NOBODY`]: the code that
//! is called sees who calls it and what the caller holds, and may print both wherever it likes.

use super::permissions::permissions;
use crate::{
    snapshot::{Group, Snapshot},
    visibility::knows,
};
use gw_evm::{Call, CallRequest};
use gw_types::{Address, OrgId, Timestamp, UserId, address};

/// Who looks over a user's shoulder, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    operator: UserId,
    org: OrgId,
    sender: Option<Address>,
}

impl Beside {
    /// Nobody's address, the same for every user: the last twenty bytes of the Keccak-256 hash of
    /// `ledger-gateway: an address that is nobody's`. Nobody has the key to it.
    pub const NOBODY: Address = address!("c842c300e4eccf6219055929ce476956e7e8f5c7");

    /// The administrator `operator`, in the organization `org`.
    pub const fn new(operator: UserId, org: OrgId) -> Self {
        Self {
            operator,
            org,
            sender: None,
        }
    }

    /// The same for a transaction of this sender, which counts as the user's own whoever it belongs to: what comes of it
    /// must not tell. Of a signed transaction it is the signer; otherwise the gateway chose it.
    #[must_use]
    pub const fn sending_from(self, sender: Address) -> Self {
        Self {
            sender: Some(sender),
            ..self
        }
    }

    /// Makes a signed transaction one of nobody's, unless the signer is the administrator's own: with the next nonce, and at
    /// no price. Whether it did.
    pub fn hide_signer(&self, snapshot: &Snapshot, call: &mut Call) -> bool {
        let Call::SendRaw(signed) = call else { return false };
        if knows(snapshot, self.operator, signed.sender) {
            return false;
        }
        (signed.sender, signed.nonce) = (Self::NOBODY, 0);
        let request = std::mem::take(&mut signed.request);
        signed.request = CallRequest {
            from: Some(Self::NOBODY),
            nonce: Some(0),
            gas_price: None,
            max_fee_per_gas: None,
            max_priority_fee_per_gas: None,
            ..request
        };
        true
    }

    /// The administrator.
    pub const fn operator(&self) -> UserId {
        self.operator
    }

    /// The organization.
    pub const fn org(&self) -> OrgId {
        self.org
    }

    /// The sender taken to be the user's.
    pub const fn sender(&self) -> Option<Address> {
        self.sender
    }

    /// Whether it is an administrator of the organization still; what a read-only one may ask is the routes' matter.
    pub(super) fn administers(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        snapshot
            .user(self.operator)
            .is_some_and(|operator| !snapshot.shuts_out(operator))
            && {
                let permissions = permissions(snapshot, self.operator, self.org, now);
                permissions.is_org_admin || permissions.is_readonly_admin
            }
    }

    /// Whether a group of the user counts: of this organization, or the administrator is in it or administers its
    /// organization.
    pub(super) fn counts(&self, snapshot: &Snapshot, group: &Group, now: Timestamp) -> bool {
        let held = || {
            snapshot
                .active_memberships(self.operator, now)
                .any(|(_, held)| held.id == group.id)
        };
        group.org == self.org || held() || permissions(snapshot, self.operator, group.org, now).is_org_admin
    }

    /// Whether the administrator knows the address for what it is to its owner, or need not be told.
    pub(super) fn knows(&self, snapshot: &Snapshot, address: Address) -> bool {
        self.sender == Some(address) || knows(snapshot, self.operator, address)
    }
}
