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

/// Evaluates the visibility of the frames of one execution for one viewer.
#[derive(Debug)]
pub struct FrameViewer<'a, 's> {
    user: SingleFrameViewer<'a, 's>,
    impersonator: Option<SingleFrameViewer<'a, 's>>,
}

#[derive(Debug)]
struct SingleFrameViewer<'a, 's> {
    viewer: &'a SingleViewer<'s>,
    trace: &'a Trace,
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
            TransactionAccess::Shared | TransactionAccess::None => false,
        })
    }
}

impl<'a, 's> FrameViewer<'a, 's> {
    /// The visibility of a simulated execution of the user.
    #[must_use]
    pub fn for_run(viewer: &'a Viewer<'s>, trace: &'a Trace) -> Self {
        let sender = trace.frames.first().map(|top| top.from);
        let user = ExecutionRole {
            is_party: true,
            hides_payload: false,
            moment: Moment::Now,
        };
        Self::new(viewer, trace, user, |impersonator| {
            // K7: the payload of another user's execution may name the sender.
            let is_party = sender.is_none_or(|sender| impersonator.sees(sender));
            let hides_payload = !is_party && impersonator.knobs.admin_tx == AdminTx::Masked;
            ExecutionRole {
                is_party,
                hides_payload,
                moment: Moment::Now,
            }
        })
    }

    /// The visibility of the execution of a mined transaction that the viewer [may trace](Viewer::may_trace).
    #[must_use]
    pub fn for_transaction(viewer: &'a Viewer<'s>, trace: &'a Trace, row: &TransactionRow) -> Self {
        let role = |single: &SingleViewer<'_>| {
            let is_party = single.transaction_access(row) == TransactionAccess::Participant;
            // K7: the payload may name the sender.
            let hides_payload = !is_party && single.knobs.admin_tx == AdminTx::Masked;
            ExecutionRole {
                is_party,
                hides_payload,
                moment: row.moment,
            }
        };
        Self::new(viewer, trace, role(viewer.user()), role)
    }

    fn new(
        viewer: &'a Viewer<'s>,
        trace: &'a Trace,
        user: ExecutionRole,
        impersonator: impl Fn(&SingleViewer<'s>) -> ExecutionRole,
    ) -> Self {
        Self {
            user: SingleFrameViewer {
                viewer: viewer.user(),
                trace,
                role: user,
            },
            impersonator: viewer.impersonator().map(|viewer| {
                let role = impersonator(viewer);
                SingleFrameViewer { viewer, trace, role }
            }),
        }
    }

    fn all(&self, holds: impl Fn(&SingleFrameViewer<'a, 's>) -> bool) -> bool {
        holds(&self.user) && self.impersonator.as_ref().is_none_or(holds)
    }

    /// How much of a frame is shown.
    #[must_use]
    pub fn frame(&self, frame: &Frame) -> FrameVisibility {
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

    /// Whether the value, calldata and output of a frame are shown.
    #[must_use]
    pub fn shows_payload(&self, frame: &Frame) -> bool {
        self.all(|viewer| viewer.shows_payload(frame))
    }
}

impl SingleFrameViewer<'_, '_> {
    fn code(&self, address: Address) -> &[u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    fn is_registered(&self, address: Address) -> bool {
        self.viewer.snapshot.owner(address).is_some()
    }

    fn is_side_of_top(&self, address: Address) -> bool {
        let sides = self.trace.frames.first().map(|top| [Some(top.from), top.to]);
        self.role.is_party && sides.is_some_and(|sides| sides.contains(&Some(address)))
    }

    fn names(&self, address: Address) -> bool {
        let is_known = self.viewer.sees(address) || self.viewer.sees_at(address, self.role.moment);
        is_known || self.is_side_of_top(address) || self.is_new(address)
    }

    fn shows_payload(&self, frame: &Frame) -> bool {
        self.names(frame.from) && frame.to.is_none_or(|to| self.names(to)) && !self.role.hides_payload
    }

    /// Whether the address is an unregistered contract that the viewer's own execution creates.
    fn is_new(&self, address: Address) -> bool {
        let creates = |frame: &Frame| frame.is_creation() && frame.to == Some(address);
        self.role.is_party && !self.is_registered(address) && self.trace.frames.iter().any(creates)
    }

    fn frame(&self, frame: &Frame) -> FrameVisibility {
        let Some(to) = frame.to else {
            return FrameVisibility::Open;
        };
        let delegate = delegation(self.code(to));
        let has_access = |address| {
            // RT18: a reservation gives no access to code that exists already.
            let by_reservation_only = !self.code(address).is_empty() && self.viewer.only_reserves(address);
            (self.viewer.sees_at(address, self.role.moment) && !by_reservation_only) || self.is_new(address)
        };
        if has_access(to) {
            // A delegated wallet runs its delegate's code.
            return if delegate.is_none_or(has_access) {
                FrameVisibility::Open
            } else {
                FrameVisibility::Entry
            };
        }
        let is_wallet = !self.is_registered(to) && (self.code(to).is_empty() || delegate.is_some());
        if is_wallet {
            FrameVisibility::Entry
        } else {
            FrameVisibility::Cut
        }
    }
}
