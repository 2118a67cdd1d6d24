//! Visibility of the frames of an execution (spec/20 §9, class TRACE; spec/30 §5, decision 6). Call trees and lists of
//! internal transactions are written from it.
//!
//! A frame that runs code to which the viewer has no access is left out with everything below it. A wallet that is not
//! Full is not named, and the payload of frames from or to it is left out.

use super::{SingleViewer, TransactionAccess, TransactionRow, Viewer};
use crate::{settings::AdminTx, snapshot::Moment};
use gw_evm::{
    code::delegation,
    trace::{Frame, Trace},
};
use gw_types::Address;
use std::collections::HashSet;

/// The facts about a whole execution that the visibility of its frames depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionRow {
    /// Sender and receiver of the top frame; `None` for an empty trace. The receiver of a deployment is the created
    /// contract.
    pub sides: Option<(Address, Option<Address>)>,
    /// Addresses that its frames create.
    pub created: HashSet<Address>,
}

impl ExecutionRow {
    /// The facts about the execution of a trace.
    #[must_use]
    pub fn from_trace(trace: &Trace) -> Self {
        let creations = trace.frames.iter().filter(|frame| frame.is_creation());
        Self {
            sides: trace.frames.first().map(|top| (top.from, top.to)),
            created: creations.filter_map(|frame| frame.to).collect(),
        }
    }
}

/// The facts about one frame that its visibility depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The caller.
    pub from: Address,
    /// The account whose code runs, or the created contract; `None` if a creation failed before it had an address.
    pub to: Option<Address>,
    /// The code of `to` before the execution.
    pub code: TargetCode,
}

/// The code of an account, as far as visibility depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetCode {
    /// None.
    Empty,
    /// The code of a contract.
    Contract,
    /// An EIP-7702 delegation.
    Delegation {
        /// The account whose code runs.
        delegate: Address,
        /// Whether that account has code.
        has_code: bool,
    },
}

impl FrameRow {
    /// The facts about a frame of a trace.
    #[must_use]
    pub fn from_frame(trace: &Trace, frame: &Frame) -> Self {
        let code = |address| trace.touched.get(&address).map_or(&[][..], |account| &account.code);
        let code = match frame.to.map_or(&[][..], code) {
            [] => TargetCode::Empty,
            bytes => delegation(bytes).map_or(TargetCode::Contract, |delegate| TargetCode::Delegation {
                delegate,
                has_code: !code(delegate).is_empty(),
            }),
        };
        Self {
            from: frame.from,
            to: frame.to,
            code,
        }
    }
}

/// How much of a frame is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameVisibility {
    /// Nothing, and nothing of the frames below it.
    Cut,
    /// That the frame was entered, but nothing that it did.
    Entry,
    /// Everything.
    Open,
}

/// What is shown of the content of a frame, besides its sides and its gas.
///
/// Call trees and lists of internal transactions show the content of a frame by this evaluation only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameContent {
    /// Whether `value` is shown.
    pub value: bool,
    /// Whether `input`, `output`, `error` and the reason of a revert are shown.
    pub payload: bool,
}

impl FrameContent {
    /// `names_sides`: both sides of the frame are shown unmasked. `shows_transaction`: the viewer sees the payload of
    /// the transaction itself.
    ///
    /// The value goes by the sides of the frame. Its payload needs more: contracts pass on what they were called with,
    /// so each frame of a transaction can name the sides and amounts of the transaction.
    pub(super) const fn evaluate(names_sides: bool, shows_transaction: bool) -> Self {
        Self {
            value: names_sides,
            payload: names_sides && shows_transaction,
        }
    }

    /// What both viewers may see.
    const fn intersect(self, other: Self) -> Self {
        Self {
            value: self.value && other.value,
            payload: self.payload && other.payload,
        }
    }
}

/// Evaluates the visibility of the frames of one execution for one viewer.
#[derive(Debug)]
pub struct FrameViewer<'a, 's> {
    user: SingleFrameViewer<'a, 's>,
    impersonator: Option<SingleFrameViewer<'a, 's>>,
}

#[derive(Debug)]
struct SingleFrameViewer<'a, 's> {
    viewer: &'a SingleViewer<'s>,
    execution: &'a ExecutionRow,
    role: ExecutionRole,
}

/// The role of a viewer in the execution.
#[derive(Clone, Copy, Debug)]
struct ExecutionRole {
    /// Whether the viewer knows both sides of the top frame.
    is_party: bool,
    /// Whether calldata, output and values are left out in all frames (K7).
    hides_payload: bool,
    /// When the execution took place. Contracts are visible by their owner at that moment (HD41).
    moment: Moment,
}

impl Viewer<'_> {
    /// Whether the viewer may see the execution of a transaction: as a party, or as administrator of the contract it
    /// was sent to.
    #[must_use]
    pub fn may_trace(&self, row: &TransactionRow) -> bool {
        self.all(|viewer| match viewer.transaction_access(row) {
            TransactionAccess::Participant | TransactionAccess::OrgAdmin => true,
            TransactionAccess::Shared | TransactionAccess::Granted | TransactionAccess::None => false,
        })
    }
}

impl<'a, 's> FrameViewer<'a, 's> {
    /// The visibility of a simulated execution of the user.
    #[must_use]
    pub fn for_run(viewer: &'a Viewer<'s>, execution: &'a ExecutionRow) -> Self {
        let sender = execution.sides.map(|(from, _)| from);
        let user = ExecutionRole {
            is_party: true,
            hides_payload: false,
            moment: Moment::Now,
        };
        Self::new(viewer, execution, user, |impersonator| {
            // K7: the payload of another user's execution may name the sender.
            let is_party = sender.is_none_or(|sender| impersonator.sees(sender));
            let hides_payload = !is_party && impersonator.policy_settings.admin_tx == AdminTx::Masked;
            ExecutionRole {
                is_party,
                hides_payload,
                moment: Moment::Now,
            }
        })
    }

    /// The visibility of the execution of a mined transaction that the viewer [may trace](Viewer::may_trace).
    #[must_use]
    pub fn for_transaction(viewer: &'a Viewer<'s>, execution: &'a ExecutionRow, row: &TransactionRow) -> Self {
        let role = |single: &SingleViewer<'_>| {
            let is_party = single.transaction_access(row) == TransactionAccess::Participant;
            // K7: the payload may name the sender.
            let hides_payload = !is_party && single.policy_settings.admin_tx == AdminTx::Masked;
            ExecutionRole {
                is_party,
                hides_payload,
                moment: row.moment,
            }
        };
        Self::new(viewer, execution, role(viewer.user()), role)
    }

    fn new(
        viewer: &'a Viewer<'s>,
        execution: &'a ExecutionRow,
        user: ExecutionRole,
        impersonator: impl Fn(&SingleViewer<'s>) -> ExecutionRole,
    ) -> Self {
        let single = |viewer, role| SingleFrameViewer {
            viewer,
            execution,
            role,
        };
        Self {
            user: single(viewer.user(), user),
            impersonator: viewer.impersonator().map(|viewer| single(viewer, impersonator(viewer))),
        }
    }

    fn all(&self, holds: impl Fn(&SingleFrameViewer<'a, 's>) -> bool) -> bool {
        holds(&self.user) && self.impersonator.as_ref().is_none_or(holds)
    }

    /// How much of the top frame is shown. It is the transaction itself, so at least its entry is.
    #[must_use]
    pub fn top(&self, frame: &FrameRow) -> FrameVisibility {
        self.frame(frame).max(FrameVisibility::Entry)
    }

    /// How much of a frame is shown that was called by a frame of this visibility.
    #[must_use]
    pub fn frame_below(&self, parent: FrameVisibility, frame: &FrameRow) -> FrameVisibility {
        match parent {
            FrameVisibility::Open => self.frame(frame),
            FrameVisibility::Cut | FrameVisibility::Entry => FrameVisibility::Cut,
        }
    }

    fn frame(&self, frame: &FrameRow) -> FrameVisibility {
        let own = self.user.frame(frame);
        self.impersonator
            .as_ref()
            .map_or(own, |impersonator| impersonator.frame(frame).min(own))
    }

    /// Whether the address may be named.
    #[must_use]
    pub fn names(&self, address: Address) -> bool {
        self.all(|viewer| viewer.names(address))
    }

    /// What is shown of the content of a frame.
    #[must_use]
    pub fn content(&self, frame: &FrameRow) -> FrameContent {
        let own = self.user.content(frame);
        self.impersonator
            .as_ref()
            .map_or(own, |impersonator| impersonator.content(frame).intersect(own))
    }

    /// Whether the output and the error of a frame of this visibility are shown.
    #[must_use]
    pub fn shows_outcome(&self, visibility: FrameVisibility, frame: &FrameRow) -> bool {
        visibility == FrameVisibility::Open && self.content(frame).payload
    }
}

impl SingleFrameViewer<'_, '_> {
    fn is_registered(&self, address: Address) -> bool {
        self.viewer.snapshot.owner(address).is_some()
    }

    fn is_side_of_top(&self, address: Address) -> bool {
        let is_side = |(from, to): (Address, Option<Address>)| from == address || to == Some(address);
        self.role.is_party && self.execution.sides.is_some_and(is_side)
    }

    fn names(&self, address: Address) -> bool {
        let is_known = self.viewer.sees(address) || self.viewer.sees_at(address, self.role.moment);
        is_known || self.is_side_of_top(address) || self.is_new(address)
    }

    fn content(&self, frame: &FrameRow) -> FrameContent {
        let names_sides = self.names(frame.from) && frame.to.is_none_or(|to| self.names(to));
        let shown = FrameContent::evaluate(names_sides, !self.role.hides_payload);
        // K7: a masked transaction shows no value, and neither do its frames.
        FrameContent {
            value: shown.value && !self.role.hides_payload,
            ..shown
        }
    }

    /// Whether the address is an unregistered contract that the viewer's own execution creates.
    fn is_new(&self, address: Address) -> bool {
        self.role.is_party && !self.is_registered(address) && self.execution.created.contains(&address)
    }

    fn has_access(&self, address: Address, has_code: bool) -> bool {
        // RT18: a reservation gives no access to code that exists already.
        let by_reservation_only = has_code && self.viewer.only_reserves(address);
        (self.viewer.sees_at(address, self.role.moment) && !by_reservation_only) || self.is_new(address)
    }

    fn frame(&self, frame: &FrameRow) -> FrameVisibility {
        let Some(to) = frame.to else {
            return FrameVisibility::Open;
        };
        if self.has_access(to, frame.code != TargetCode::Empty) {
            // A delegated wallet runs its delegate's code.
            return match frame.code {
                TargetCode::Delegation { delegate, has_code } if !self.has_access(delegate, has_code) => {
                    FrameVisibility::Entry
                }
                TargetCode::Empty | TargetCode::Contract | TargetCode::Delegation { .. } => FrameVisibility::Open,
            };
        }
        if !self.is_registered(to) && frame.code != TargetCode::Contract {
            // A wallet.
            FrameVisibility::Entry
        } else {
            FrameVisibility::Cut
        }
    }
}
