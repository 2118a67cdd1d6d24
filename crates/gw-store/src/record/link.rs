//! Links between addresses and users (spec/10 section 7).

use gw_policy::snapshot::LinkKind;
use gw_types::{Address, B256, ExternalId, LinkId, OrgId, Timestamp, UserId};

/// A link row; one per user and address, kept after the link ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Row id.
    pub id: LinkId,
    /// The owner.
    pub user: UserId,
    /// The address.
    pub address: Address,
    /// How the link came about.
    pub kind: LinkKind,
    /// Whether a contract wallet's answer proved it: such a link never makes a participant, and is checked again daily
    /// (HD10).
    pub contract_wallet: bool,
    /// When it was proved or inferred.
    pub verified_at: Timestamp,
    /// The resolved ENS name.
    pub ens_name: Option<String>,
    /// When ENS was last queried.
    pub ens_resolved_at: Option<Timestamp>,
    /// When the link ended.
    pub revoked_at: Option<Timestamp>,
    /// Whether an administrator ended it (LK-2), rather than its owner (LK-5).
    pub revoked_by_admin: bool,
    /// When the row was created.
    pub created_at: Timestamp,
}

/// How the link was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkProof {
    /// A signed challenge.
    Challenge,
    /// A contract wallet confirmed a signature (ERC-1271).
    ContractWallet {
        /// The confirmed hash and signature.
        proof: WalletProof,
        /// The organization that registered the wallet contract at the time of the check; `None` if it is unregistered.
        owner: Option<OrgId>,
    },
}

/// A hash and signature that a contract wallet confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletProof {
    /// The hash of the signed message.
    pub hash: B256,
    /// The signature, in any format.
    pub signature: Vec<u8>,
}

/// A link whose contract wallet is to be queried again (HD10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletLink {
    /// The owner.
    pub user: UserId,
    /// The owner's external id.
    pub external_id: ExternalId,
    /// The wallet.
    pub address: Address,
    /// The hash and signature that it confirmed.
    pub proof: WalletProof,
}

/// Result of linking: a live link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkResult {
    /// The link.
    pub link: Link,
    /// Number of other users with a live link to the address; any is a collision (LK-6).
    pub others: u64,
}

/// Result of inferring a link from a sent transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum SenderLink {
    /// The link is live now, and was not before.
    Linked(LinkResult),
    /// Other users proved the address: nothing was written, and the caller reports the collision (LK-6).
    Contested {
        /// Number of those users.
        others: u64,
    },
    /// The link was live before, or was revoked and stays so.
    Unchanged,
}

/// An address linked to several users (LK-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The address.
    pub address: Address,
    /// The users with their external ids and the kinds of their links.
    pub holders: Vec<(UserId, ExternalId, LinkKind)>,
}
