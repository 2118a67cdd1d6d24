//! Evaluation of traces: which contracts an execution may enter and read (X2, X5, X6, X8, X11, HD6, HD20, HD27).
//! `trace_rights` tests the rights in the organization of each contract.

use super::{
    execution::{CODE, COINBASE, OK, PROBING, TraceBuilder, bank, call, evaluate, send, trace_builder},
    support::{permit, request_as},
};
use gw_evm::{
    Method,
    trace::{FrameKind, Outcome, Trace},
};
use gw_policy::{
    PolicySettings, Snapshot,
    snapshot::SystemToggle,
    testing::{FUTURE, NOW, address_of},
};
use gw_types::{Address, Bytes, DenyReason, U256};
use std::collections::BTreeMap;

#[test]
fn x6_frames_may_enter_own_organizations_and_precompiles_only() {
    let snapshot = bank().snapshot();
    let inner = |kind, name: &str, code: &'static [u8]| {
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, name)
            .account(name, code);
        builder.evaluate(&snapshot)
    };
    for kind in [
        FrameKind::Call,
        FrameKind::StaticCall,
        FrameKind::DelegateCall,
        FrameKind::CallCode,
    ] {
        assert_eq!(inner(kind, "ledger", CODE), OK, "{kind:?}");
        assert_eq!(inner(kind, "foreign", CODE), Err(DenyReason::CrossOrg), "{kind:?}");
        assert_eq!(inner(kind, "unowned", CODE), Err(DenyReason::Unregistered), "{kind:?}");
        // B24: a contract may pay out value to any wallet.
        assert_eq!(inner(kind, "anybody", &[]), OK, "{kind:?}");
    }
    // B8: the beneficiary of a SELFDESTRUCT.
    assert_eq!(
        inner(FrameKind::SelfDestruct, "foreign", CODE),
        Err(DenyReason::CrossOrg)
    );
    assert_eq!(
        inner(FrameKind::SelfDestruct, "unowned", CODE),
        Err(DenyReason::Unregistered)
    );
    assert_eq!(inner(FrameKind::SelfDestruct, "anybody", &[]), OK);
    let mut precompile = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::StaticCall, "x");
    precompile.frames[1].to = Some(Address::with_last_byte(4));
    assert_eq!(precompile.evaluate(&snapshot), OK);
}

/// RT1a, HD27: after its registration is deleted, a contract is closed to everybody, including its own organization.
#[test]
fn rt1a_hd27_nobody_runs_or_reads_a_contract_with_a_deleted_registration() {
    let world = bank().org("bank").contract("old").grant("analysts").retired();
    let snapshot = world.snapshot();
    for user in ["analyst", "victim"] {
        let target = if user == "analyst" { "bond" } else { "foreign" };
        let builder = || call(&snapshot, user, target).account(target, CODE);
        for code in [CODE, &[]] {
            let entered = builder().frame(1, FrameKind::StaticCall, "old").account("old", code);
            assert_eq!(entered.evaluate(&snapshot), Err(DenyReason::CrossOrg), "{user}");
            assert_eq!(
                builder().account("old", code).evaluate(&snapshot),
                Err(DenyReason::CrossOrg),
                "{user}"
            );
        }
        let direct = request_as(&snapshot, user).eth_call(address_of("old"), [1, 2, 3, 4]);
        assert!(
            matches!(direct, gw_policy::access::Decision::Deny(_)),
            "{user}: {direct:?}"
        );
    }
    // Its organization may create a new contract at the address if no code is left; nobody else may.
    let created = |user, code: &'static [u8]| {
        send(&snapshot, user, Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "old")
            .account("old", code)
            .evaluate(&snapshot)
    };
    assert_eq!(created("ops", &[]), Ok(vec![address_of("old")]));
    assert_eq!(created("ops", CODE), Err(DenyReason::CrossOrg));
    let rival = bank().org("rival").contract("old").retired().org("bank").snapshot();
    let builder = send(&rival, "ops", Some("bond"))
        .account("bond", CODE)
        .frame(1, FrameKind::Create2, "old");
    assert_eq!(builder.wallet("old").evaluate(&rival), Err(DenyReason::CrossOrg));
}

/// X5, B8: BALANCE, EXTCODESIZE and similar opcodes touch an account.
#[test]
fn x5_reading_code_without_access_is_denied_like_calling_it() {
    let snapshot = bank().snapshot();
    let touch = |name: &str| {
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account(name, CODE)
            .evaluate(&snapshot)
    };
    // A touch needs the same right as the direct request (HD29): see `rt5_…` in `trace_rights`.
    assert_eq!(touch("ledger"), Err(DenyReason::ContractNotPermitted));
    assert_eq!(touch("foreign"), Err(DenyReason::CrossOrg));
    assert_eq!(touch("unowned"), Err(DenyReason::Unregistered));
}

#[test]
fn x5_failed_frames_are_evaluated_like_others() {
    let snapshot = bank().snapshot();
    let builder = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "foreign")
        .failed();
    assert_eq!(builder.evaluate(&snapshot), Err(DenyReason::CrossOrg));
}

#[test]
fn x6_a_contract_of_another_own_organization_needs_a_grant() {
    let world = bank()
        .user("analyst")
        .member("rival/members")
        .org("rival")
        .contract("closed")
        .org("bank");
    let snapshot = world.snapshot();
    let inner = |name: &str| {
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        builder.account(name, CODE).evaluate(&snapshot)
    };
    assert_eq!(inner("foreign"), OK, "granted in the other organization");
    assert_eq!(inner("closed"), Err(DenyReason::ContractNotPermitted));
}

/// A8, B16: a trace is evaluated with the memberships at the time of evaluation.
#[test]
fn x6_an_expired_membership_allows_no_frame() {
    let snapshot = bank().user("analyst").member_until("rival/members", NOW).snapshot();
    let builder = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "foreign");
    assert_eq!(builder.evaluate(&snapshot), Err(DenyReason::CrossOrg));
}

#[test]
fn hd6_probing_code_must_not_touch_foreign_wallets() {
    let snapshot = bank().snapshot();
    let run = |name: &str, code: &'static [u8]| {
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .frame(1, FrameKind::Call, name);
        builder.wallet(name).evaluate(&snapshot)
    };
    // The verdict does not depend on whether the wallet is linked.
    for name in ["victim-wallet", "nobody"] {
        assert_eq!(run(name, CODE), OK, "{name}");
        assert_eq!(run(name, PROBING), Err(DenyReason::Unregistered), "{name}");
        let touched = call(&snapshot, "analyst", "bond").account("bond", PROBING).wallet(name);
        assert_eq!(touched.evaluate(&snapshot), Err(DenyReason::Unregistered), "{name}");
    }
    // Addresses with level Full may be probed.
    assert_eq!(run("analyst-wallet", PROBING), OK);
    assert_eq!(run("bond", PROBING), OK);
    // HD29: nodes list the beneficiary of the block in every trace, so a touch alone proves nothing. It counts as any
    // other wallet if probing code pays it, reads COINBASE, or contains its address in code or input.
    assert_eq!(run(COINBASE, CODE), OK);
    assert_eq!(run(COINBASE, PROBING), Err(DenyReason::Unregistered));
    let with_beneficiary = |code: Vec<u8>, input: Vec<u8>| {
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .frame(1, FrameKind::Call, "bond");
        builder.input(input).wallet(COINBASE).evaluate(&snapshot)
    };
    let address = address_of(COINBASE).to_vec();
    assert_eq!(with_beneficiary(PROBING.to_vec(), vec![9]), OK);
    assert_eq!(
        with_beneficiary([PROBING, &[0x41]].concat(), vec![9]),
        Err(DenyReason::Unregistered)
    );
    assert_eq!(
        with_beneficiary(PROBING.to_vec(), address.clone()),
        Err(DenyReason::Unregistered)
    );
    assert_eq!(
        with_beneficiary([PROBING, &[0x73], &address].concat(), vec![9]),
        Err(DenyReason::Unregistered)
    );
}

#[test]
fn hd6_init_code_and_inner_code_are_checked_for_probing() {
    let snapshot = bank().snapshot();
    let deployed = |init: &'static [u8], runtime: &'static [u8]| {
        let builder = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new")
            .input(init);
        builder
            .edit(|frame| frame.output = Bytes::from_static(runtime))
            .wallet("nobody")
            .evaluate(&snapshot)
    };
    assert_eq!(deployed(CODE, CODE), Ok(vec![address_of("new")]));
    assert_eq!(deployed(PROBING, CODE), Err(DenyReason::Unregistered));
    assert_eq!(deployed(CODE, PROBING), Err(DenyReason::Unregistered));
    let delegated =
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::DelegateCall, "ledger");
    assert_eq!(
        delegated
            .account("ledger", PROBING)
            .wallet("nobody")
            .evaluate(&snapshot),
        Err(DenyReason::Unregistered)
    );
    // A registered contract whose code is missing in the trace.
    let without_code = call(&snapshot, "analyst", "bond").wallet("nobody");
    assert_eq!(without_code.evaluate(&snapshot), Err(DenyReason::Unregistered));
}

/// HD38: an execution may differ in another block on the same state if its code, a created contract or the delegate
/// of a wallet reads the block. Shared code is excepted, because a super admin vouches for it.
#[test]
fn hd38_an_execution_may_vary_if_its_code_reads_the_block() {
    const NUMBER: &[u8] = &[0x43, 0x50, 0x00];
    let snapshot = bank().shared_pinned("utility", NUMBER, None).snapshot();
    let call_reads_block = |name: &str, code: &'static [u8]| {
        let builder = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        builder
            .account(name, code)
            .verdict(&snapshot, &PolicySettings::default())
            .unwrap()
            .reads_block()
    };
    assert!(
        !call_reads_block("ledger", CODE) && call_reads_block("ledger", NUMBER) && !call_reads_block("utility", NUMBER)
    );
    for opcode in [0x3a, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x48, 0x4a] {
        assert!(gw_evm::code::reads_block(&[opcode]), "{opcode:x}");
    }
    for opcode in [0x30, 0x31, 0x33, 0x3f, 0x46, 0x47, 0x5a] {
        assert!(!gw_evm::code::reads_block(&[opcode]), "{opcode:x}");
    }
    let creation_reads_block = |init: &'static [u8], runtime: &'static [u8]| {
        let builder = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create, "new");
        let builder = builder
            .input(init)
            .edit(|frame| frame.output = Bytes::from_static(runtime));
        builder
            .verdict(&snapshot, &PolicySettings::default())
            .unwrap()
            .reads_block()
    };
    assert!(
        !creation_reads_block(CODE, CODE) && creation_reads_block(NUMBER, CODE) && creation_reads_block(CODE, NUMBER)
    );
}

/// X8: code that the caller deployed may enter only contracts that the caller has a grant on.
#[test]
fn x8_every_frame_below_code_of_the_caller_needs_a_grant() {
    let snapshot = bank()
        .contract("forwarder")
        .deployed_by("ops")
        .contract("plain")
        .grant("deployers")
        .snapshot();
    let through = |name: &str, inner: &str| {
        let builder = call(&snapshot, "ops", name)
            .account(name, CODE)
            .frame(1, FrameKind::Call, inner);
        builder.account(inner, CODE).evaluate(&snapshot)
    };
    assert_eq!(through("plain", "ledger"), OK, "code of the organization");
    assert_eq!(through("forwarder", "bond"), OK, "granted");
    assert_eq!(through("forwarder", "ledger"), Err(DenyReason::ContractNotPermitted));
    // At every depth, and in init code.
    let builder = call(&snapshot, "ops", "forwarder")
        .account("forwarder", CODE)
        .frame(1, FrameKind::Call, "bond");
    let builder = builder
        .account("bond", CODE)
        .frame(2, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(builder.evaluate(&snapshot), Err(DenyReason::ContractNotPermitted));
    let builder = send(&snapshot, "ops", None)
        .frame(1, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(builder.evaluate(&snapshot), Err(DenyReason::ContractNotPermitted));
}

/// §10: only the trace shows whether the receiver of a plain payment has code.
#[test]
fn a_payment_to_unregistered_code_is_denied_by_its_trace() {
    let snapshot = bank().snapshot();
    let pay = |code: &'static [u8]| {
        let call = super::support::payment(address_of("analyst-wallet"), address_of("receiver"));
        let permit = permit(request_as(&snapshot, "analyst").call(Method::SendRawTransaction, &call));
        let sender = address_of("analyst-wallet");
        let builder = trace_builder(permit, sender, FrameKind::Call, Some("receiver")).input(Bytes::new());
        let builder = builder.edit(|top| top.value = U256::from(1)).account("receiver", code);
        builder.evaluate(&snapshot)
    };
    assert_eq!(pay(&[]), OK);
    assert_eq!(pay(CODE), Err(DenyReason::Unregistered));
}

/// X2: a trace is valid only for the call that it belongs to.
#[test]
fn x2_the_trace_of_another_call_is_rejected() {
    let snapshot = bank().snapshot();
    let builder = || call(&snapshot, "analyst", "bond").account("bond", CODE);
    assert_eq!(builder().evaluate(&snapshot), OK);
    let mismatches: [(&str, TraceBuilder); 6] = [
        ("input", builder().input(vec![9])),
        ("sender", builder().edit(|top| top.from = address_of("nobody"))),
        ("target", builder().edit(|top| top.to = Some(address_of("ledger")))),
        ("value", builder().edit(|top| top.value = U256::from(1))),
        ("kind", builder().edit(|top| top.kind = FrameKind::StaticCall)),
        (
            "empty",
            TraceBuilder {
                frames: Vec::new(),
                ..builder()
            },
        ),
    ];
    for (difference, builder) in mismatches {
        assert_eq!(
            builder.evaluate(&snapshot),
            Err(DenyReason::TraceMismatch),
            "{difference}"
        );
    }
    // A permit whose plan needs no trace accepts none.
    let local = permit(request_as(&snapshot, "analyst").rpc("eth_chainId", serde_json::json!([])));
    let trace = Trace {
        frames: Vec::new(),
        touched: BTreeMap::new(),
        changes: None,
        top: Outcome::default(),
    };
    assert_eq!(evaluate(&snapshot, &local, trace), Err(DenyReason::TraceMismatch));
}

/// HD15: the state changes of a send are evaluated, too.
#[test]
fn x11_a_send_without_its_state_diff_is_not_forwarded() {
    let snapshot = bank().snapshot();
    let TraceBuilder {
        permit,
        frames,
        touched,
        ..
    } = send(&snapshot, "analyst", Some("bond")).account("bond", CODE);
    let trace = Trace {
        frames,
        touched,
        changes: None,
        top: Outcome::default(),
    };
    assert_eq!(evaluate(&snapshot, &permit, trace), Err(DenyReason::TracingUnavailable));
}

/// HD20: policy changes between the decision and the trace take effect.
#[test]
fn hd20_a_trace_is_evaluated_with_the_current_policy() {
    let snapshot = bank().snapshot();
    let builder = || {
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "ledger")
            .account("ledger", CODE)
    };
    assert_eq!(builder().evaluate(&snapshot), OK);
    assert_eq!(
        builder().evaluate(&bank().user("analyst").banned().snapshot()),
        Err(DenyReason::Banned)
    );
    let revoked = bank().user("analyst").member_until("analysts", NOW).snapshot();
    assert_eq!(builder().evaluate(&revoked), Err(DenyReason::CrossOrg));
}

/// H1: an execution at a recent past block must not read contracts that belonged to somebody else at that block, at
/// any depth.
#[test]
fn h1_a_past_execution_reads_only_contracts_of_the_organization_at_that_block() {
    let since = NOW.minus(gw_types::Seconds(100));
    let snapshot = bank().contract("bought").since(since).grant("analysts").snapshot();
    let run = |block: gw_evm::BlockId, time| {
        let mut call = super::support::simulate(gw_evm::SimulationKind::Call, address_of("bond"), [1, 2, 3, 4]);
        if let gw_evm::Call::Simulate(simulation) = &mut call {
            simulation.block = block;
        }
        let permit = permit(request_as(&snapshot, "analyst").call(Method::Call, &call));
        let builder = trace_builder(permit, Address::ZERO, FrameKind::Call, Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "bought")
            .account("bought", CODE);
        builder.evaluate_at(&snapshot, super::support::HEAD - 1, time)
    };
    let recent = gw_evm::BlockId::Number(super::support::HEAD - 1);
    let before = since.minus(gw_types::Seconds(1));
    assert_eq!(run(recent, before), Err(DenyReason::HistoryNotPermitted));
    assert_eq!(run(recent, since), OK);
    assert_eq!(run(gw_evm::BlockId::LATEST, before), OK, "the head is not history");
}

/// X8, X9: with the toggle on, frames into own contracts need a grant, except that a delegatecall with unchanged
/// input inherits the verdict.
#[test]
fn x8_intra_org_tracing_requires_a_grant_in_every_frame() {
    let run = |snapshot: &Snapshot, name: &str| {
        let builder = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        builder.account(name, CODE).evaluate(snapshot)
    };
    let untoggled = bank().snapshot();
    assert_eq!(run(&untoggled, "ledger"), OK);
    let toggled = bank()
        .toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE)
        .snapshot();
    assert_eq!(run(&toggled, "ledger"), Err(DenyReason::ContractNotPermitted));
    let ended = bank().toggle(SystemToggle::IntraOrgGrantTracing, true, NOW).snapshot();
    assert_eq!(run(&ended, "ledger"), OK, "the toggle has expired");
    let proxied = call(&toggled, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::DelegateCall, "ledger");
    assert_eq!(
        proxied.account("ledger", CODE).evaluate(&toggled),
        OK,
        "unchanged input inherits the verdict on the proxy"
    );
    // Users with the deploy claim may enter reserved addresses, because they have no contract yet.
    let reserved =
        bank()
            .user("ops")
            .reservation("soon", FUTURE)
            .toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE);
    let reserved = reserved.snapshot();
    let builder = call(&reserved, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "soon")
        .wallet("soon");
    assert_eq!(builder.evaluate(&reserved), OK);
    // With the toggle off, frames below a contract that the caller deployed still need a grant.
    let deployed = bank().contract("mine").deployed_by("analyst").snapshot();
    let builder = call(&deployed, "analyst", "mine")
        .account("mine", CODE)
        .frame(1, FrameKind::Call, "ledger");
    assert_eq!(
        builder.account("ledger", CODE).evaluate(&deployed),
        Err(DenyReason::ContractNotPermitted)
    );
}
