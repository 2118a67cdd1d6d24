//! Impersonation of a user by an administrator: dry-run and view-as (HD7).
//!
//! Decisions use the intersection of both users' knowledge: groups of other organizations count only if they count for
//! the administrator, too, and an address is the user's own only if the administrator knows that. So no decision
//! reveals a wallet or an organization that the administrator does not know of. [`Viewer`](crate::visibility::Viewer)
//! restricts results in the same way.
//!
//! Executions run from an address of the administrator, or from [`Impersonation::NOBODY`], not from the user's: the
//! called code sees its caller and the caller's balance, and may return both.

use super::{
    ownership::{knows, owns},
    permissions::permissions,
};
use crate::snapshot::{Group, Snapshot};
use gw_evm::{Call, CallRequest};
use gw_types::{Address, OrgId, Timestamp, UserId, address};

/// The impersonating administrator, the organization, and the assumed sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impersonation {
    impersonator: UserId,
    org: OrgId,
    sender: Option<Address>,
}

impl Impersonation {
    /// An address without a known key, used for every user: the last twenty bytes of the Keccak-256 hash of
    /// `ledger-gateway: an address that is nobody's`.
    pub const NOBODY: Address = address!("c842c300e4eccf6219055929ce476956e7e8f5c7");

    /// An impersonation by the administrator `impersonator`, in the organization `org`.
    pub const fn new(impersonator: UserId, org: OrgId) -> Self {
        Self {
            impersonator,
            org,
            sender: None,
        }
    }

    /// The impersonation of a send from this address. The address counts as the user's own regardless of its owner, so
    /// that the outcome does not reveal the owner. It is the signer of a signed transaction, or otherwise chosen by the
    /// gateway.
    #[must_use]
    pub const fn sending_from(self, sender: Address) -> Self {
        Self {
            sender: Some(sender),
            ..self
        }
    }

    /// Replaces the signer of a signed transaction by [`Self::NOBODY`], with nonce 0 and without a gas price, unless
    /// the administrator owns the signer's address. Returns whether it replaced the signer. A grant of disclosure does
    /// not keep the signer: whether it is active cannot be evaluated without a time.
    pub fn hide_signer(&self, snapshot: &Snapshot, call: &mut Call) -> bool {
        let Call::SendRaw(signed) = call else { return false };
        if owns(snapshot, self.impersonator, signed.sender) {
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
    pub const fn impersonator(&self) -> UserId {
        self.impersonator
    }

    /// The organization.
    pub const fn org(&self) -> OrgId {
        self.org
    }

    /// The assumed sender, which counts as the user's own.
    pub const fn sender(&self) -> Option<Address> {
        self.sender
    }

    /// Whether the impersonator administers the organization now. The routes decide what a read-only administrator may
    /// ask.
    pub(crate) fn administers(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        snapshot
            .user(self.impersonator)
            .is_some_and(|impersonator| !snapshot.is_excluded(impersonator))
            && {
                let permissions = permissions(snapshot, self.impersonator, self.org, now);
                permissions.is_org_admin || permissions.is_readonly_admin
            }
    }

    /// Whether a group of the user counts: it belongs to this organization, or the administrator is in it or
    /// administers its organization.
    pub(super) fn counts(&self, snapshot: &Snapshot, group: &Group, now: Timestamp) -> bool {
        let is_member = || {
            snapshot
                .active_memberships(self.impersonator, now)
                .any(|(_, own_group)| own_group.id == group.id)
        };
        group.org == self.org || is_member() || permissions(snapshot, self.impersonator, group.org, now).is_org_admin
    }

    /// Whether the administrator knows the owner of the address, or it is the assumed sender.
    pub(super) fn knows(&self, snapshot: &Snapshot, address: Address, now: Timestamp) -> bool {
        self.sender == Some(address) || knows(snapshot, self.impersonator, address, now)
    }
}
