//! Links between addresses and users (spec/10 section 7).

use gw_policy::snapshot::LinkKind;
use gw_types::{Address, B256, ExternalId, LinkId, OrgId, Timestamp, UserId};

/// A link row; one per user and address, kept after it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Row id.
    pub id: LinkId,
    /// The owner.
    pub user: UserId,
    /// The address.
    pub address: Address,
    /// How it came about.
    pub kind: LinkKind,
    /// Proved by a contract wallet's answer: never makes a participant, and is asked again daily (HD10).
    pub contract_wallet: bool,
    /// When it was proved or inferred.
    pub verified_at: Timestamp,
    /// The resolved ENS name.
    pub ens_name: Option<String>,
    /// When ENS was last asked.
    pub ens_resolved_at: Option<Timestamp>,
    /// When it ended.
    pub revoked_at: Option<Timestamp>,
    /// Whether an administrator ended it (LK-2), rather than its owner (LK-5).
    pub revoked_by_admin: bool,
    /// When the row was made.
    pub created_at: Timestamp,
}

/// How the caller knows that the address is the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkProof {
    /// A signed challenge.
    Challenge,
    /// A contract wallet said yes to a signature (ERC-1271).
    ContractWallet {
        /// What it said yes to.
        proof: WalletProof,
        /// The organization whose registered contract it is, as it was judged; `None` for one that nobody registered.
        owner: Option<OrgId>,
    },
}

/// What a contract wallet said yes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletProof {
    /// The hash of what was signed.
    pub hash: B256,
    /// The signature, whatever its form.
    pub signature: Vec<u8>,
}

/// A link whose contract wallet is to be asked again (HD10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletLink {
    /// The owner.
    pub user: UserId,
    /// The owner's name.
    pub external_id: ExternalId,
    /// The wallet.
    pub address: Address,
    /// What it said yes to.
    pub proof: WalletProof,
}

/// A link that stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct Linked {
    /// The link.
    pub link: Link,
    /// How many other users hold a live link on the address: a collision if any (LK-6).
    pub others: u64,
}

/// What became of inferring a link from a sent transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum SenderLink {
    /// The link stands now, and did not before.
    Linked(Linked),
    /// So many other users proved the address: nothing was written, the caller reports the collision (LK-6).
    Contested {
        /// How many.
        others: u64,
    },
    /// It stood before, or was ended and stays so.
    Unchanged,
}

/// An address that several users hold (LK-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The address.
    pub address: Address,
    /// Its holders, by name, with the kind of their link.
    pub holders: Vec<(UserId, ExternalId, LinkKind)>,
}
