//! The resource that a call addresses, looked up once for one caller.

use super::{orgs::OrgRequirement, permit::NamedOrg};
use crate::{
    principal::{Principal, TargetStatus, target_status},
    settings::PolicySettings,
    snapshot::Snapshot,
};
use gw_evm::{BlockId, BlockTag, Call, CallRequest, LogFilter, Simulation, TransactionRef};
use gw_types::{Address, B256, OrgId};

/// The resource that a call addresses, with the status of its target for one caller: everything that the checks need of
/// the call.
pub(super) enum Resource<'s, 'c> {
    /// No address: CHAIN, TX, BLOCK, or parameters that could not be parsed.
    Nothing,
    /// Balance or nonce. Answered for every address, so the result must not depend on the owner of an address that the
    /// caller has no access to (HD6).
    Quantity(Address, BlockId, TargetStatus<'s>),
    /// Code. Answered for every address without code, like [`Resource::Quantity`] (decision 37).
    Code(BlockId, TargetStatus<'s>),
    /// A storage word.
    Storage(StorageSlot, BlockId, TargetStatus<'s>),
    /// A proof of an account and some of its slots.
    Proof(&'c [B256], BlockId, TargetStatus<'s>),
    /// A simulated execution on a target, or a simulated creation (`None`).
    Simulation(&'c Simulation, Option<TargetStatus<'s>>),
    /// A send to a target, or a creation (`None`).
    Send(Signed<'c>, Option<TargetStatus<'s>>),
    /// The emitters of a log filter.
    Emitters(Vec<(Address, TargetStatus<'s>)>),
    /// A transaction named by its sender, and whether the sender is the caller's own address.
    SentBy(bool),
}

/// A storage slot as the request wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StorageSlot {
    pub(super) word: B256,
    /// Whether the request wrote all 32 bytes.
    pub(super) full: bool,
}

/// A send, signed by the caller or by the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'c> {
    /// The sender named, or recovered from the signature.
    pub(super) sender: Address,
    /// The execution.
    pub(super) request: &'c CallRequest,
    /// The nonce of a transaction that the caller signed; `None` if the node signs.
    pub(super) signed_nonce: Option<u64>,
}

impl<'c> Signed<'c> {
    /// The send, if the call is one.
    pub(super) fn from_call(call: &'c Call) -> Option<Self> {
        if let Call::SendRaw(signed) = call {
            Some(Self {
                sender: signed.sender,
                request: &signed.request,
                signed_nonce: Some(signed.nonce),
            })
        } else if let Call::Send(send) = call {
            Some(Self {
                sender: send.from,
                request: &send.request,
                signed_nonce: None,
            })
        } else {
            None
        }
    }
}

impl<'s, 'c> Resource<'s, 'c> {
    pub(super) fn for_call(
        snapshot: &'s Snapshot,
        principal: &Principal,
        call: &'c Call,
        policy_settings: &PolicySettings,
    ) -> Self {
        let status = |address: Address| target_status(snapshot, principal, address, policy_settings);
        match call {
            Call::Balance(address, block) | Call::Nonce(address, block) => {
                Self::Quantity(*address, *block, status(*address))
            }
            Call::Code(address, block) => Self::Code(*block, status(*address)),
            Call::Storage { address, slot, full_word, block } => {
                Self::Storage(StorageSlot { word: *slot, full: *full_word }, *block, status(*address))
            }
            Call::Simulate(simulation) => Self::Simulation(simulation, simulation.request.to.map(status)),
            Call::Send(_) | Call::SendRaw(_) => {
                Signed::from_call(call).map_or(Self::Nothing, |send| Self::Send(send, send.request.to.map(status)))
            }
            Call::Logs(LogFilter { addresses, .. }) => {
                Self::Emitters(addresses.iter().map(|a| (*a, status(*a))).collect())
            }
            Call::Proof { address, slots, block } => Self::Proof(slots, *block, status(*address)),
            Call::Transaction(TransactionRef::SenderAndNonce(sender, _)) => {
                Self::SentBy(principal.owns(snapshot, *sender))
            }
            Call::Plain(_)
            | Call::FeeHistory { .. }
            | Call::Sha3(_)
            | Call::Transaction(_)
            | Call::Receipt(_)
            | Call::Block { .. }
            | Call::BlockTransactionCount(_)
            | Call::BlockReceipts(_)
            | Call::UncleCount
            | Call::Uncle
            // The read that the subscription repeats is decided by itself, at creation and at each delivery.
            | Call::Subscription(_)
            // The parties of the transaction are known only after it is read from the chain.
            | Call::TraceTransaction(_)
            // Decided in `passthrough` (N3).
            | Call::Passthrough(_) => Self::Nothing,
        }
    }

    /// Whether the call reads balance or nonce of the caller's own account.
    pub(super) fn is_owned(&self) -> bool {
        matches!(self, Self::Quantity(_, _, status) if status.owned)
    }

    /// The organization whose rights the call requires.
    pub(super) fn owner(&self, named: NamedOrg) -> OrgRequirement {
        let org = |org: Option<OrgId>, otherwise: OrgRequirement| org.map_or(otherwise, OrgRequirement::Org);
        match self {
            Self::Nothing | Self::SentBy(_) => OrgRequirement::Nobody,
            Self::Quantity(_, _, status) | Self::Code(_, status) => org(
                status.access.as_ref().map(|access| access.contract.org),
                OrgRequirement::Nobody,
            ),
            Self::Simulation(simulation, Some(status)) if simulation.is_payment() && status.access.is_none() => {
                org(reserving(status, named), OrgRequirement::Nobody)
            }
            Self::Storage(_, _, status) | Self::Proof(_, _, status) | Self::Simulation(_, Some(status)) => {
                org(owning(status, named), OrgRequirement::Nobody)
            }
            Self::Send(signed, Some(status)) if signed.request.input.is_empty() && status.access.is_none() => {
                org(reserving(status, named), OrgRequirement::OneOfMine)
            }
            Self::Send(_, Some(status)) => org(owning(status, named), OrgRequirement::OneOfMine),
            Self::Simulation(_, None) | Self::Send(_, None) => OrgRequirement::OneOfMine,
            Self::Emitters(emitters) => org(one_owner(emitters), OrgRequirement::Nobody),
        }
    }
}

/// The organization that owns the target.
fn owning(status: &TargetStatus<'_>, named: NamedOrg) -> Option<OrgId> {
    match (status.contract, named) {
        // Shared infrastructure of another organization is open to all users and needs no right of its owner (X6).
        (Some(_), _) if status.shared.is_some() && status.access.is_none() => None,
        (Some(contract), _) => Some(contract.org),
        (None, _) => reserving(status, named),
    }
}

/// The caller's organization that has a reservation of the address: the named one, or the first if none is named.
fn reserving(status: &TargetStatus<'_>, named: NamedOrg) -> Option<OrgId> {
    match named {
        NamedOrg::Org(org) => status.reserved_in.contains(&org).then_some(org),
        NamedOrg::Unnamed | NamedOrg::Unreadable => status.reserved_in.first().copied(),
    }
}

/// The organization that owns all emitters, if the caller has access to all of them and one organization owns them.
fn one_owner(emitters: &[(Address, TargetStatus<'_>)]) -> Option<OrgId> {
    let mut owners = emitters
        .iter()
        .map(|(_, status)| status.access.as_ref().map(|access| access.contract.org));
    let first = owners.next()??;
    owners.all(|owner| owner == Some(first)).then_some(first)
}

/// Replaces the block `pending` by `latest` in simulations (HD11), and in state reads except those of the caller's own
/// balance and nonce (§9).
pub(super) fn normalize_block(call: &Call, owned: bool) -> Call {
    let normalize = |block: &mut BlockId, keeps_pending: bool| {
        if *block == BlockId::Tag(BlockTag::Pending) && !keeps_pending {
            *block = BlockId::LATEST;
        }
    };
    let mut call = call.clone();
    match &mut call {
        Call::Balance(_, block) | Call::Nonce(_, block) => normalize(block, owned),
        Call::Code(_, block) | Call::Storage { block, .. } | Call::Proof { block, .. } => normalize(block, false),
        Call::Simulate(simulation) => normalize(&mut simulation.block, false),
        Call::Plain(_)
        | Call::FeeHistory { .. }
        | Call::Sha3(_)
        | Call::Logs(_)
        | Call::Transaction(_)
        | Call::Receipt(_)
        | Call::Block { .. }
        | Call::BlockTransactionCount(_)
        | Call::BlockReceipts(_)
        | Call::UncleCount
        | Call::Uncle
        | Call::SendRaw(_)
        | Call::Send(_)
        | Call::TraceTransaction(_)
        | Call::Subscription(_)
        | Call::Passthrough(_) => {}
    }
    call
}

/// How many blocks below the head a numeric block still counts as recent (H1).
const RECENT_BLOCKS: u64 = 64;

/// The age of the state that a call reads (H1). Every block but the head is history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateAge {
    /// The head.
    Present,
    /// At most [`RECENT_BLOCKS`] below the head: readable for every caller with access, if the current owner owned the
    /// target then.
    Recent,
    /// Older, or named by its hash: readable for administrators of the organization that owns the contract.
    Old,
    /// A tag for a block below the head. Only the node knows its number; [`Self::at`] resolves the age.
    Tagged,
}

impl StateAge {
    /// The age of the block that a call names, while the head has this number.
    pub(super) fn for_block(block: BlockId, head: u64) -> Self {
        match block {
            BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => Self::Present,
            BlockId::Tag(BlockTag::Safe | BlockTag::Finalized) => Self::Tagged,
            BlockId::Tag(BlockTag::Earliest) | BlockId::Hash { .. } => Self::Old,
            BlockId::Number(number) => Self::of_number(number, head),
        }
    }

    fn of_number(number: u64, head: u64) -> Self {
        if number >= head {
            Self::Present
        } else if number >= head.saturating_sub(RECENT_BLOCKS) {
            Self::Recent
        } else {
            Self::Old
        }
    }

    /// The age after the number of the block is known.
    pub(super) fn at(self, number: u64, head: u64) -> Self {
        match self {
            Self::Tagged => Self::of_number(number, head),
            Self::Present | Self::Recent | Self::Old => self,
        }
    }
}
