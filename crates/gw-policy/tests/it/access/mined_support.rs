//! Mined sends of the tests: a bank, its rival, and executions that enter contracts of both.

use gw_evm::trace::{Account, Change, Frame, FrameKind, FrameLog, Outcome, Trace};
use gw_policy::{
    PolicySettings, Sealed, Snapshot,
    access::{MinedSend, PostExecutionViolation, evaluate_mined},
    testing::{NOW, World, address_of, did, org_id, world},
};
use gw_types::{Address, B256, Bytes, Claim, ExternalId, OrgId, U256};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn bank() -> World {
    world()
        .org("bank")
        .group("traders")
        .every_method()
        .claim(Claim::Deploy)
        .contract("latch")
        .grant("traders")
        .contract("vault")
        .grant("traders")
        .user("thief")
        .member("traders")
        .link("thief-wallet")
        .user("friend")
        .member("traders")
        .link("friend-wallet")
        .org("rival")
        .contract("theirs")
        .org("third")
        .contract("drop-box")
        .org("bank")
}

/// A call thief → latch → `others`, in which the accounts of `writing` write a slot and those of `emitting` emit an
/// event.
pub(super) fn run(others: &[&str], writing: &[&str], emitting: &[&str]) -> Sealed<Trace> {
    run_with(
        others,
        emitting,
        writing.iter().map(|name| (address_of(name), slot_write())).collect(),
    )
}

pub(super) fn run_with(others: &[&str], emitting: &[&str], changes: BTreeMap<Address, Change>) -> Sealed<Trace> {
    Sealed::new(raw_run(others, emitting, changes))
}

pub(super) fn raw_run(others: &[&str], emitting: &[&str], changes: BTreeMap<Address, Change>) -> Trace {
    let frame = |depth, from: &str, to: &str| Frame {
        kind: FrameKind::Call,
        from: address_of(from),
        to: Some(address_of(to)),
        input: Bytes::new(),
        output: Bytes::new(),
        value: U256::ZERO,
        gas: None,
        gas_used: None,
        error: None,
        depth,
        parent: (depth > 0).then_some(0),
        failed: false,
        undone: false,
        logs: emitting
            .iter()
            .filter(|name| **name == to)
            .map(|name| FrameLog {
                address: address_of(name),
                topics: Vec::new(),
                data: Bytes::new(),
            })
            .collect(),
    };
    let mut frames = vec![frame(0, "thief-wallet", "latch")];
    frames.extend(others.iter().map(|other| frame(1, "latch", other)));
    let code = |name: &&str| {
        (
            address_of(name),
            Account {
                code: Bytes::from_static(&[0]),
                ..Account::default()
            },
        )
    };
    let touched = others.iter().chain(&["latch"]).map(code).collect();
    Trace {
        frames,
        touched,
        changes: Some(changes),
        top: Outcome::default(),
    }
}

/// Evaluates a send of the thief for the bank.
pub(super) fn evaluate_with(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
    came: &HashSet<Address>,
) -> Option<PostExecutionViolation> {
    let external_id = did("thief");
    evaluate_mined(
        snapshot,
        &mined_send(&external_id, lately, came),
        trace,
        NOW,
        &PolicySettings::default(),
    )
}

pub(super) fn mined_send<'a>(
    external_id: &'a ExternalId,
    lately: &'a HashMap<Address, OrgId>,
    came: &'a HashSet<Address>,
) -> MinedSend<'a> {
    MinedSend {
        external_id,
        org: org_id("bank"),
        orgs: &[],
        is_named: false,
        sender: address_of("thief-wallet"),
        coinbase: address_of("validator"),
        delegations: Vec::new(),
        lately,
        at: (100, 1),
        came,
        recent_sends: &[],
        authorized_runs: None,
    }
}

pub(super) fn evaluate(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
) -> Option<PostExecutionViolation> {
    evaluate_with(snapshot, trace, lately, &HashSet::new())
}

pub(super) fn orgs(names: &[&str]) -> Vec<OrgId> {
    let mut orgs: Vec<OrgId> = names.iter().map(|name| org_id(name)).collect();
    orgs.sort_unstable();
    orgs
}

pub(super) fn addresses(names: &[&str]) -> Vec<Address> {
    let mut addresses: Vec<Address> = names.iter().map(|name| address_of(name)).collect();
    addresses.sort_unstable();
    addresses
}

pub(super) fn slot_write() -> Change {
    Change {
        storage: BTreeMap::from([(B256::ZERO, B256::with_last_byte(1))]),
        ..Change::default()
    }
}
