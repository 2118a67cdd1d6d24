//! One type per kind of id, so that an organization's id can never be passed for a group's.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The fixed id whose last digits are `n` and all others zero (spec/20 A2).
            pub const fn fixed(n: u128) -> Self {
                Self(Uuid::from_u128(n))
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0.as_hyphenated(), f)
            }
        }

        impl core::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )*};
}

ids! {
    /// A user row.
    UserId;
    /// An organization.
    OrgId;
    /// A group of an organization.
    GroupId;
    /// A user's membership in a group.
    MembershipId;
    /// What an organization noted and decided about a person.
    OrgUserRecordId;
    /// A registered contract.
    ContractId;
    /// A group's grant on a contract.
    GrantId;
    /// A link between an address and a user.
    LinkId;
    /// An address reserved for a deployment that is not mined yet.
    ReservationId;
    /// A per-transaction visibility row (`visibleTo`).
    VisibilityId;
    /// A token family: one login and all its refreshes (`sid`).
    SessionId;
    /// One token (`jti`).
    TokenId;
    /// A user's lost right to send (HD2).
    SuspensionId;
    /// An address whose state nobody reads (HD2).
    QuarantineId;
    /// A transaction that did, once mined, what its sender may not (HD28).
    ConvictionId;
    /// What a convicted transaction changed of one account (HD28).
    WithheldId;
    /// A send whose mined trace is looked at (HD2).
    WatchId;
    /// A tenant of the enterprise directory (`tid`).
    TenantId;
    /// The row that allows a directory tenant.
    AllowedTenantId;
    /// A contract tagged as shared infrastructure.
    SharedInfraId;
    /// Creation code that a super admin approved.
    ApprovedCodeId;
    /// The override of a system toggle.
    ToggleId;
    /// A hold on entries of the audit log.
    LegalHoldId;
    /// A personal RPC URL.
    PersonalUrlId;
}

/// The version of all policy: every mutation raises it by one (design.md section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl core::fmt::Display for Epoch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}
