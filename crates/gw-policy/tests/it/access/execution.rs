//! A builder for traces, frame by frame, and their evaluation.

use super::support::{HEAD, permit, request_as, signed};
use gw_evm::{
    Method,
    trace::{Account, Change, Frame, FrameKind, Outcome, Trace},
};
use gw_policy::{
    PolicySettings, Sealed, Snapshot,
    access::{Permit, TraceFacts, TraceVerdict, evaluate_trace},
    testing::{NOW, World, address_of, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, Timestamp};
use std::collections::BTreeMap;

pub(super) const CODE: &[u8] = &[0x60, 0x00, 0x54];
/// PUSH0, BALANCE
pub(super) const PROBING: &[u8] = &[0x5f, 0x31];
pub(super) const COINBASE: &str = "validator";

pub(super) const TOKEN_ABI: &str = r#"[{"type":"function","name":"balanceOf","stateMutability":"view",
    "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]}]"#;

/// Builds the trace of one permitted call.
pub(super) struct TraceBuilder {
    pub(super) permit: Permit,
    pub(super) frames: Vec<Frame>,
    pub(super) touched: BTreeMap<Address, Account>,
    pub(super) changes: BTreeMap<Address, Change>,
}

/// Starts the trace of an `eth_call` by `user` to `to`.
pub(super) fn call(snapshot: &Snapshot, user: &str, to: &str) -> TraceBuilder {
    trace_builder(
        permit(request_as(snapshot, user).eth_call(address_of(to), [1, 2, 3, 4])),
        Address::ZERO,
        FrameKind::Call,
        Some(to),
    )
}

/// Starts the trace of a send by `user` from the wallet `<user>-wallet`.
pub(super) fn send(snapshot: &Snapshot, user: &str, to: Option<&str>) -> TraceBuilder {
    let sender = address_of(&format!("{user}-wallet"));
    let call = signed(sender, 0, to.map(address_of), [1, 2, 3, 4]);
    let kind = if to.is_some() {
        FrameKind::Call
    } else {
        FrameKind::Create
    };
    trace_builder(
        permit(request_as(snapshot, user).call(Method::SendRawTransaction, &call)),
        sender,
        kind,
        to,
    )
}

pub(super) fn trace_builder(permit: Permit, from: Address, kind: FrameKind, to: Option<&str>) -> TraceBuilder {
    let trace_builder = TraceBuilder {
        permit,
        frames: Vec::new(),
        touched: BTreeMap::new(),
        changes: BTreeMap::new(),
    };
    trace_builder
        .frame(0, kind, to.unwrap_or("new"))
        .edit(|top| top.from = from)
}

impl TraceBuilder {
    /// Adds a frame at this depth, below the last frame of the depth above.
    pub(super) fn frame(mut self, depth: u32, kind: FrameKind, to: &str) -> Self {
        let parent = self.frames.iter().rposition(|frame| frame.depth + 1 == depth);
        let from = parent.and_then(|parent| self.frames[parent].to).unwrap_or_default();
        self.frames.push(Frame {
            kind,
            from,
            to: Some(address_of(to)),
            input: Bytes::from_static(&[1, 2, 3, 4]),
            output: Bytes::new(),
            value: Default::default(),
            gas: None,
            gas_used: None,
            error: None,
            depth,
            parent,
            failed: false,
            undone: parent.is_some_and(|parent| self.frames[parent].undone),
            logs: Vec::new(),
        });
        self
    }

    pub(super) fn edit(mut self, change: impl FnOnce(&mut Frame)) -> Self {
        change(self.frames.last_mut().unwrap());
        self
    }

    pub(super) fn input(self, input: impl Into<Bytes>) -> Self {
        let input = input.into();
        self.edit(|frame| frame.input = input)
    }

    pub(super) fn failed(self) -> Self {
        self.edit(|frame| (frame.failed, frame.undone) = (true, true))
    }

    /// Adds a touched account with this code.
    pub(super) fn account(mut self, name: &str, code: impl Into<Bytes>) -> Self {
        self.touched.insert(
            address_of(name),
            Account {
                code: code.into(),
                ..Account::default()
            },
        );
        self
    }

    pub(super) fn wallet(self, name: &str) -> Self {
        self.account(name, Bytes::new())
    }

    pub(super) fn writes(self, name: &str, slot: B256) -> Self {
        self.writes_word(name, slot, B256::with_last_byte(1))
    }

    pub(super) fn writes_word(mut self, name: &str, slot: B256, value: B256) -> Self {
        let change = self.changes.entry(address_of(name)).or_default();
        change.storage.insert(slot, value);
        self
    }

    pub(super) fn evaluate(self, snapshot: &Snapshot) -> Result<Vec<Address>, DenyReason> {
        self.evaluate_at(snapshot, HEAD, NOW)
    }

    /// Evaluates the trace with these settings.
    pub(super) fn verdict(self, snapshot: &Snapshot, settings: &PolicySettings) -> Result<TraceVerdict, DenyReason> {
        let changes = (self.permit.plan() == gw_policy::access::Plan::Send).then_some(self.changes);
        let trace = Trace {
            frames: self.frames,
            touched: self.touched,
            changes,
            top: Outcome::default(),
        };
        let facts = TraceFacts {
            coinbase: address_of(COINBASE),
            number: HEAD,
            time: NOW,
        };
        evaluate_trace(snapshot, &self.permit, Sealed::new(trace), &facts, NOW, settings)
    }

    /// Evaluates the trace as an execution at a block of this number and time.
    pub(super) fn evaluate_at(
        self,
        snapshot: &Snapshot,
        number: u64,
        time: Timestamp,
    ) -> Result<Vec<Address>, DenyReason> {
        let is_send = self.permit.plan() == gw_policy::access::Plan::Send;
        let changes = is_send.then_some(self.changes);
        let trace = Trace {
            frames: self.frames,
            touched: self.touched,
            changes,
            top: Outcome::default(),
        };
        evaluate_run(snapshot, &self.permit, trace, number, time)
    }
}

pub(super) fn evaluate(snapshot: &Snapshot, permit: &Permit, trace: Trace) -> Result<Vec<Address>, DenyReason> {
    evaluate_run(snapshot, permit, trace, HEAD, NOW)
}

fn evaluate_run(
    snapshot: &Snapshot,
    permit: &Permit,
    trace: Trace,
    number: u64,
    time: Timestamp,
) -> Result<Vec<Address>, DenyReason> {
    let facts = TraceFacts {
        coinbase: address_of(COINBASE),
        number,
        time,
    };
    evaluate_trace(
        snapshot,
        permit,
        Sealed::new(trace),
        &facts,
        NOW,
        &PolicySettings::default(),
    )
    .map(|verdict| verdict.created_inside().to_vec())
}

pub(super) fn bank() -> World {
    world()
        .org("bank")
        .group("analysts")
        .every_method()
        .group("deployers")
        .every_method()
        .claim(Claim::Deploy)
        .group("others")
        .contract("bond")
        .grant("analysts")
        .grant("deployers")
        .contract("ledger")
        .grant("others")
        .user("analyst")
        .member("analysts")
        .link("analyst-wallet")
        .user("ops")
        .member("deployers")
        .link("ops-wallet")
        .org("rival")
        .group("members")
        .every_method()
        .contract("foreign")
        .grant("members")
        .user("victim")
        .member("members")
        .link("victim-wallet")
        .org("bank")
}

pub(super) const OK: Result<Vec<Address>, DenyReason> = Ok(Vec::new());
