//! What a call addresses, looked up once for one caller.

use super::{
    orgs::Owner,
    permit::NamedOrg,
    target::{Member, Standing, standing},
};
use crate::{knobs::Knobs, snapshot::Snapshot};
use gw_evm::{BlockId, BlockTag, Call, CallRequest, LogFilter, Simulation, TransactionRef};
use gw_types::{Address, B256, OrgId};

/// What a call addresses, looked up for one caller; all that the checks need of the call.
pub(super) enum Subject<'s, 'c> {
    /// No address: CHAIN, TX, BLOCK, or parameters that could not be read.
    Nothing,
    /// Balance or nonce: answered for every address, so nobody may notice who owns one out of reach (HD6).
    Quantity(Address, BlockId, Standing<'s>),
    /// Code: likewise, for addresses without code (decision 37).
    Code(BlockId, Standing<'s>),
    /// A storage word.
    Storage(Slot, BlockId, Standing<'s>),
    /// A proof of an account and some of its slots.
    Proof(&'c [B256], BlockId, Standing<'s>),
    /// A run without effect on a target, or a creation.
    Simulation(&'c Simulation, Option<Standing<'s>>),
    /// A run with effect.
    Send(Signed<'c>, Option<Standing<'s>>),
    /// Logs: each emitter by itself.
    Emitters(Vec<(Address, Standing<'s>)>),
    /// A transaction named by its sender, and whether that is the caller's own address.
    SentBy(bool),
}

/// A storage slot as it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) word: B256,
    pub(super) full: bool,
}

/// A send, whoever signs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'c> {
    /// The sender named, or recovered from the signature.
    pub(super) sender: Address,
    /// What is executed.
    pub(super) request: &'c CallRequest,
    /// The nonce, where the caller chose it by signing; the node signs otherwise.
    pub(super) signed_nonce: Option<u64>,
}

impl<'c> Signed<'c> {
    /// The send a call is, if it is one.
    pub(super) fn of(call: &'c Call) -> Option<Self> {
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

impl<'s, 'c> Subject<'s, 'c> {
    pub(super) fn of(snapshot: &'s Snapshot, member: &Member, call: &'c Call, knobs: &Knobs) -> Self {
        let at = |address: Address| standing(snapshot, member, address, knobs);
        match call {
            Call::Balance(address, block) | Call::Nonce(address, block) => {
                Self::Quantity(*address, *block, at(*address))
            }
            Call::Code(address, block) => Self::Code(*block, at(*address)),
            Call::Storage { address, slot, full_word, block } => {
                Self::Storage(Slot { word: *slot, full: *full_word }, *block, at(*address))
            }
            Call::Simulate(simulation) => Self::Simulation(simulation, simulation.request.to.map(at)),
            Call::Send(_) | Call::SendRaw(_) => {
                Signed::of(call).map_or(Self::Nothing, |signed| Self::Send(signed, signed.request.to.map(at)))
            }
            Call::Logs(LogFilter { addresses, .. }) => Self::Emitters(addresses.iter().map(|a| (*a, at(*a))).collect()),
            Call::Proof { address, slots, block } => Self::Proof(slots, *block, at(*address)),
            Call::Transaction(TransactionRef::SenderAndNonce(sender, _)) => {
                Self::SentBy(member.owns(snapshot, *sender))
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
            // What it is about is judged as the read it stands for, then and at each delivery.
            | Call::Live(_)
            // Whose transaction it is, the chain tells.
            | Call::TraceTransaction(_)
            // Judged by itself (N3).
            | Call::Unexamined(_) => Self::Nothing,
        }
    }

    /// Whether the account asked about is the caller's own.
    pub(super) fn is_owned(&self) -> bool {
        matches!(self, Self::Quantity(_, _, standing) if standing.owned)
    }

    /// Whose rights must judge the call.
    pub(super) fn owner(&self, named: NamedOrg) -> Owner {
        let org = |org: Option<OrgId>, otherwise: Owner| org.map_or(otherwise, Owner::Org);
        match self {
            Self::Nothing | Self::SentBy(_) => Owner::Nobody,
            Self::Quantity(_, _, standing) | Self::Code(_, standing) => {
                org(standing.reach.as_ref().map(|reach| reach.contract.org), Owner::Nobody)
            }
            Self::Simulation(simulation, Some(standing)) if simulation.is_payment() && standing.reach.is_none() => {
                org(reserving(standing, named), Owner::Nobody)
            }
            Self::Storage(_, _, standing) | Self::Proof(_, _, standing) | Self::Simulation(_, Some(standing)) => {
                org(owning(standing, named), Owner::Nobody)
            }
            Self::Send(signed, Some(standing)) if signed.request.input.is_empty() && standing.reach.is_none() => {
                org(reserving(standing, named), Owner::OneOfMine)
            }
            Self::Send(_, Some(standing)) => org(owning(standing, named), Owner::OneOfMine),
            Self::Simulation(_, None) | Self::Send(_, None) => Owner::OneOfMine,
            Self::Emitters(emitters) => org(one_owner(emitters), Owner::Nobody),
        }
    }
}

/// The owner of the target.
fn owning(standing: &Standing<'_>, named: NamedOrg) -> Option<OrgId> {
    match (standing.contract, named) {
        // Registered elsewhere, but everybody's: not a matter of its owner (X6).
        (Some(_), _) if standing.shared.is_some() && standing.reach.is_none() => None,
        (Some(contract), _) => Some(contract.org),
        (None, _) => reserving(standing, named),
    }
}

/// The organization of the caller's that the address is reserved for; of several the named one.
fn reserving(standing: &Standing<'_>, named: NamedOrg) -> Option<OrgId> {
    match named {
        NamedOrg::Org(org) => standing.reserved_in.contains(&org).then_some(org),
        NamedOrg::Unnamed | NamedOrg::Unreadable => standing.reserved_in.first().copied(),
    }
}

/// The owner of all emitters, if the caller reaches them all and one organization owns them.
fn one_owner(emitters: &[(Address, Standing<'_>)]) -> Option<OrgId> {
    let mut owners = emitters
        .iter()
        .map(|(_, standing)| standing.reach.as_ref().map(|reach| reach.contract.org));
    let first = owners.next()??;
    owners.all(|owner| owner == Some(first)).then_some(first)
}

/// The call as it may be carried out: `pending` means `latest` in a run (HD11), and on state but for the caller's own
/// addresses (§9).
pub(super) fn effective(call: &Call, owned: bool) -> Call {
    let settle = |block: &mut BlockId, keep: bool| {
        if *block == BlockId::Tag(BlockTag::Pending) && !keep {
            *block = BlockId::LATEST;
        }
    };
    let mut call = call.clone();
    match &mut call {
        Call::Balance(_, block) | Call::Nonce(_, block) => settle(block, owned),
        Call::Code(_, block) | Call::Storage { block, .. } | Call::Proof { block, .. } => settle(block, false),
        Call::Simulate(simulation) => settle(&mut simulation.block, false),
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
        | Call::Live(_)
        | Call::Unexamined(_) => {}
    }
    call
}

/// How far below the head a numeric block still counts as the present (H1).
const RECENT_BLOCKS: u64 = 64;

/// How old the state is that a call reads (H1): every block but the head is history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateAge {
    /// The head.
    Present,
    /// At most [`RECENT_BLOCKS`] below the head: for everybody, as far as its present owner owned it then.
    Recent,
    /// Older, or named by its hash: for administrators of the organization whose contract it is.
    Old,
    /// A tag for a block below the head. Only the node knows which: [`Self::at`].
    Tagged,
}

impl StateAge {
    /// Of what a call names, while the head is at this number.
    pub(super) fn of(block: BlockId, head: u64) -> Self {
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

    /// The same once the number of the block is known.
    pub(super) fn at(self, number: u64, head: u64) -> Self {
        match self {
            Self::Tagged => Self::of_number(number, head),
            Self::Present | Self::Recent | Self::Old => self,
        }
    }
}
