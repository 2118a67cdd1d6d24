//! One type per kind of id, so that the compiler rejects an organization's id where a group's is expected.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Creates the fixed id whose last digits are `n` and all others zero (spec/20 A2).
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
    /// An organization's record about a person.
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
    /// A token family: a first refresh token and all its refreshes (`sid`). A login may have several families.
    SessionId;
    /// One token (`jti`).
    TokenId;
    /// A user's loss of the right to send (HD2).
    SuspensionId;
    /// An address whose state is closed to readers (HD2).
    QuarantineId;
    /// A mined transaction that violated its sender's permissions (HD28).
    ConvictionId;
    /// The change of one account by a convicted transaction (HD28).
    WithheldId;
    /// A send that is checked after it is mined (HD2).
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
    /// A legal hold on entries of the audit log.
    LegalHoldId;
    /// A personal RPC URL.
    PersonalUrlId;
    /// A grant of disclosure of a user's addresses (spec/50).
    DisclosureGrantId;
    /// A request for a grant of disclosure (spec/50).
    DisclosureRequestId;
    /// An event that waits for delivery to an organization's webhook.
    WebhookEventId;
}

/// The version of all policy: every mutation that changes policy raises it by one (design.md section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl core::fmt::Display for Epoch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}
