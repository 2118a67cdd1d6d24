//! Evaluation of traces: X5-X8, HD4, HD6, HD14, HD15, U2. `trace_rights` tests the rights in the organization of each
//! contract.

use super::{
    execution::{CODE, COINBASE, OK, PROBING, TOKEN_ABI, TraceBuilder, bank, call, evaluate, send, trace_builder},
    support::{permit, request_as, signed},
};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::keccak256;
use gw_evm::{
    Method,
    code::{DIAMOND_CUT, DIAMOND_SLOT, IMPLEMENTATION_SLOT},
    trace::{Frame, FrameKind, Outcome, Trace},
};
use gw_policy::{
    PolicySettings, Snapshot,
    settings::Deployments,
    snapshot::{Constraint, SystemToggle},
    testing::{FUTURE, NOW, World, address_of, calldata, function},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, U256};
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

/// HD15: an EIP-7702 wallet counts as a wallet, and the code of its delegate is evaluated as the code that runs
/// there.
#[test]
fn hd15_a_delegating_wallet_is_evaluated_with_its_delegate() {
    let delegating = |to: &str| [&[0xef, 0x01, 0x00][..], address_of(to).as_slice()].concat();
    let run_in = |snapshot: &Snapshot, delegate: &str, code: &'static [u8]| {
        let builder = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "smart-wallet");
        builder
            .account("smart-wallet", delegating(delegate))
            .account(delegate, code)
            .evaluate(snapshot)
    };
    // HD6, HD29: in a foreign wallet, the code would reveal what that wallet holds.
    let snapshot = bank().snapshot();
    for delegate in ["ledger", "foreign", "unowned"] {
        assert_eq!(
            run_in(&snapshot, delegate, CODE),
            Err(DenyReason::ContractNotPermitted),
            "{delegate}"
        );
    }
    let own = bank().user("analyst").link("smart-wallet").snapshot();
    let run = |delegate: &str, code: &'static [u8]| run_in(&own, delegate, code);
    assert_eq!(run("ledger", CODE), OK);
    assert_eq!(run("foreign", CODE), Err(DenyReason::CrossOrg));
    assert_eq!(run("unowned", CODE), Err(DenyReason::Unregistered));
    // The wallet is only touched; no code runs there.
    let touched = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .account("smart-wallet", delegating("foreign"));
    assert_eq!(touched.evaluate(&snapshot), OK);
}

/// W1, X8: a wallet that the transaction itself delegates runs code that its account does not have before the
/// transaction.
#[test]
fn w1_a_delegation_in_the_same_transaction_is_evaluated_like_an_earlier_one() {
    let authorization = Authorization {
        chain_id: U256::from(1),
        address: address_of("forwarder"),
        nonce: 0,
    };
    let authorization = SignedAuthorization::new_unchecked(authorization, 0, U256::from(1), U256::from(9));
    let authority = authorization.recover_authority().unwrap();
    let snapshot = bank()
        .contract("forwarder")
        .deployed_by("ops")
        .contract("public")
        .grant("deployers")
        .user("ops")
        .link_address(authority)
        .snapshot();
    let run = |inner: &str, code: &'static [u8]| {
        let mut call = signed(address_of("ops-wallet"), 0, Some(address_of("bond")), [1, 2, 3, 4]);
        if let gw_evm::Call::SendRaw(signed) = &mut call {
            signed.request.authorization_list = vec![authorization.clone()];
        }
        let permit = permit(request_as(&snapshot, "ops").call(Method::SendRawTransaction, &call));
        let builder =
            trace_builder(permit, address_of("ops-wallet"), FrameKind::Call, Some("bond")).account("bond", CODE);
        let builder = builder
            .frame(1, FrameKind::Call, "ops-wallet")
            .edit(|frame| frame.to = Some(authority));
        builder
            .frame(2, FrameKind::Call, inner)
            .account(inner, CODE)
            .account("forwarder", code)
            .evaluate(&snapshot)
    };
    assert_eq!(run("public", CODE), OK);
    assert_eq!(run("ledger", CODE), Err(DenyReason::ContractNotPermitted));
}

#[test]
fn x7_creations_need_the_claim_and_a_free_address() {
    let snapshot = bank().snapshot();
    let create = |user: &str, kind, address: &str| {
        let builder = call(&snapshot, user, "bond")
            .account("bond", CODE)
            .frame(1, kind, address);
        builder.evaluate(&snapshot)
    };
    for kind in [FrameKind::Create, FrameKind::Create2] {
        assert_eq!(
            create("analyst", kind, "new"),
            Err(DenyReason::DeployClaimRequired),
            "{kind:?}"
        );
        assert_eq!(create("ops", kind, "new"), Ok(vec![address_of("new")]), "{kind:?}");
        assert_eq!(create("ops", kind, "foreign"), Err(DenyReason::CrossOrg), "{kind:?}");
    }
}

/// K8, HD29: a simulated creation must not reveal a balance that somebody paid to the address before, so the address
/// looks new. Addresses that the organization has reserved are excepted.
#[test]
fn k8_a_simulated_creation_does_not_read_an_earlier_balance() {
    let builder = |snapshot: &Snapshot, balance: u64| {
        let builder = call(snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        let mut builder = builder.frame(1, FrameKind::Call, "new").wallet("new");
        builder.touched.get_mut(&address_of("new")).unwrap().balance = U256::from(balance);
        let verdict = builder.verdict(snapshot, &PolicySettings::default()).unwrap();
        verdict.existence_revealing_addresses().to_vec()
    };
    assert_eq!(builder(&bank().snapshot(), 5), [address_of("new")]);
    assert!(builder(&bank().snapshot(), 0).is_empty());
    assert!(builder(&bank().user("ops").reservation("new", FUTURE).snapshot(), 5).is_empty());
}

#[test]
fn x7_a_contract_created_in_the_trace_may_be_called_unless_it_existed_before() {
    let snapshot = bank().snapshot();
    let run = |before: &'static [u8]| {
        let builder = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        builder
            .frame(1, FrameKind::Call, "new")
            .account("new", before)
            .evaluate(&snapshot)
    };
    assert_eq!(run(&[]), Ok(vec![address_of("new")]));
    assert_eq!(
        run(CODE),
        Err(DenyReason::Unregistered),
        "a failed creation at the address of an existing contract"
    );
}

/// HD2: with `DEPLOYMENTS=approved`, a send creates contracts of approved code only. This applies to top and inner
/// creations, with any constructor arguments, and to undone ones. Simulations are not restricted.
#[test]
fn hd2_a_send_creates_contracts_of_approved_code_only() {
    let (approved, longer) = ([0x60, 0x80, 0x60], [0x60, 0x80, 0x61, 0x62]);
    let snapshot = bank().approved_code(&approved).approved_code(&longer).snapshot();
    let settings = &PolicySettings {
        deployments: Deployments::Approved,
        ..PolicySettings::default()
    };
    let clone = [
        &[
            0x3d, 0x60, 0x2d, 0x80, 0x60, 0x0a, 0x3d, 0x39, 0x81, 0xf3, 0x36, 0x3d, 0x3d, 0x37, 0x3d, 0x3d, 0x3d, 0x36,
        ][..],
        &[0x3d, 0x73],
        address_of("bond").as_slice(),
        &[
            0x5a, 0xf4, 0x3d, 0x82, 0x80, 0x3e, 0x90, 0x3d, 0x91, 0x60, 0x2b, 0x57, 0xfd, 0x5b, 0xf3,
        ],
    ]
    .concat();
    let inner_creation = |init: &[u8], edit: fn(&mut Frame)| {
        let builder = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        builder.input(init.to_vec()).edit(edit)
    };
    let unchanged: fn(&mut Frame) = |_| ();
    let undone: fn(&mut Frame) = |frame| (frame.failed, frame.undone) = (true, true);
    for (init, is_approved) in [
        (&approved[..], true),
        (&[0x60, 0x80, 0x60, 0xff, 0xee], true),
        (&longer, true),
        (&[0x60, 0x80, 0x61, 0x62, 0x01], true),
        (&clone, true),
        (&[0x60, 0x80], false),
        (&[0x60, 0x80, 0x61], false),
        (&[0x60, 0x80, 0x61, 0x63], false),
        (&[], false),
        (&clone[..54], false),
        (&[&clone[..], &[0]].concat(), false),
    ] {
        for edit in [unchanged, undone] {
            let verdict = inner_creation(init, edit).verdict(&snapshot, settings).map(drop);
            assert_eq!(
                verdict,
                if is_approved {
                    Ok(())
                } else {
                    Err(DenyReason::CodehashMismatch)
                },
                "{init:02x?}"
            );
        }
        assert!(
            inner_creation(init, unchanged)
                .verdict(&snapshot, &PolicySettings::default())
                .is_ok()
        );
    }
    // A creation in the top frame, with the init code `01020304`.
    let top = |snapshot: &Snapshot| send(snapshot, "ops", None).verdict(snapshot, settings).map(drop);
    assert_eq!(top(&snapshot), Err(DenyReason::CodehashMismatch));
    assert_eq!(top(&bank().approved_code(&[1, 2, 3]).snapshot()), Ok(()));
    let simulated = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create, "new");
    assert!(simulated.verdict(&snapshot, settings).is_ok());
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

#[test]
fn r1_only_successful_creations_are_reserved() {
    let snapshot = bank().snapshot();
    let builder = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create, "failed")
        .failed()
        .frame(1, FrameKind::Call, "ledger")
        .failed()
        .account("ledger", CODE)
        .frame(2, FrameKind::Create, "reverted-with-it")
        .frame(1, FrameKind::Create, "kept");
    assert_eq!(builder.evaluate(&snapshot), Ok(vec![address_of("kept")]));
    // The top frame of a deployment is not an inner creation.
    assert_eq!(send(&snapshot, "ops", None).evaluate(&snapshot), OK);
}

/// B1: init code is evaluated like any other code.
#[test]
fn b1_calls_of_init_code_are_evaluated() {
    let snapshot = bank().snapshot();
    let builder = send(&snapshot, "ops", None)
        .frame(1, FrameKind::StaticCall, "foreign")
        .account("foreign", CODE);
    assert_eq!(builder.evaluate(&snapshot), Err(DenyReason::CrossOrg));
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

/// HD4, F5: a caller who is limited to `balanceOf(self)` uses a forwarder of the own organization.
#[test]
fn hd4_a_frame_into_a_restricted_contract_is_evaluated_with_its_own_input() {
    let snapshot = bank()
        .contract("router")
        .grant("analysts")
        .contract("token")
        .abi(TOKEN_ABI)
        .grant("analysts")
        .functions([function("balanceOf(address)", [(0, Constraint::Own)])])
        .snapshot();
    let call_token = |input: Bytes| {
        let builder =
            call(&snapshot, "analyst", "router")
                .account("router", CODE)
                .frame(1, FrameKind::StaticCall, "token");
        builder.input(input).account("token", CODE).evaluate(&snapshot)
    };
    let balance = |name: &str| calldata("balanceOf(address)", [address_of(name).into_word()]);
    assert_eq!(call_token(balance("analyst-wallet")), OK);
    assert_eq!(call_token(balance("victim-wallet")), Err(DenyReason::ParamRule));
    assert_eq!(
        call_token(calldata("totalSupply()", [])),
        Err(DenyReason::FunctionNotPermitted)
    );
}

/// F5: a delegatecall of a proxy with unchanged input inherits the verdict on the proxy; with other input it does
/// not.
#[test]
fn f5_a_delegatecall_with_unchanged_input_inherits_the_verdict() {
    let snapshot = bank()
        .contract("code")
        .grant("analysts")
        .functions([function("own()", [])])
        .snapshot();
    let through = |kind, input: &'static [u8]| {
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "code")
            .input(input);
        builder.account("code", CODE).evaluate(&snapshot)
    };
    assert_eq!(through(FrameKind::DelegateCall, &[1, 2, 3, 4]), OK);
    assert_eq!(
        through(FrameKind::DelegateCall, &[4, 3, 2, 1]),
        Err(DenyReason::FunctionNotPermitted)
    );
    assert_eq!(
        through(FrameKind::Call, &[1, 2, 3, 4]),
        Err(DenyReason::FunctionNotPermitted)
    );
}

/// F5, HD4: if the implementation of a proxy is entered again on the state of the proxy with other input, this counts
/// as a call of the proxy. Library code does not.
#[test]
fn f5_reentered_code_of_a_proxy_is_evaluated_as_a_call_of_the_proxy() {
    let snapshot = bank()
        .contract("proxy")
        .grant("analysts")
        .functions([function("multi()", [])])
        .contract("code")
        .grant("analysts")
        .contract("library")
        .grant("analysts")
        .snapshot();
    let (multi, secret) = (calldata("multi()", []), calldata("secret()", []));
    let inner = |kind, target: &str, input: &Bytes| {
        let data = multi.clone();
        let builder = super::execution::trace_builder(
            permit(request_as(&snapshot, "analyst").eth_call(address_of("proxy"), data.clone())),
            Address::ZERO,
            FrameKind::Call,
            Some("proxy"),
        );
        let builder = builder.input(data.clone()).account("proxy", CODE);
        let builder = builder
            .frame(1, FrameKind::DelegateCall, "code")
            .input(data)
            .account("code", CODE);
        // The code runs in the context of the proxy.
        let builder = builder.frame(2, kind, target).input(input.clone());
        builder
            .edit(|frame| frame.from = address_of("proxy"))
            .account(target, CODE)
            .evaluate(&snapshot)
    };
    let denied = Err(DenyReason::FunctionNotPermitted);
    assert_eq!(inner(FrameKind::DelegateCall, "code", &secret), denied);
    assert_eq!(inner(FrameKind::CallCode, "code", &secret), denied);
    assert_eq!(inner(FrameKind::DelegateCall, "proxy", &secret), denied);
    assert_eq!(inner(FrameKind::DelegateCall, "code", &multi), OK);
    assert_eq!(inner(FrameKind::DelegateCall, "library", &secret), OK);
}

/// U2: the state diff decides, regardless of the function that writes.
#[test]
fn u2_writing_a_proxy_slot_needs_the_upgrade_claim() {
    let builder = |snapshot: &Snapshot, slot| {
        let builder = send(snapshot, "analyst", Some("bond")).account("bond", CODE);
        builder
            .writes_word("bond", slot, address_of("ledger").into_word())
            .evaluate(snapshot)
    };
    let without_claim = bank().snapshot();
    let with_claim = bank()
        .contract("bond")
        .grant("analysts")
        .grant_claim(Claim::Upgrade)
        .snapshot();
    assert_eq!(
        builder(&without_claim, IMPLEMENTATION_SLOT),
        Err(DenyReason::UpgradeClaimRequired)
    );
    assert_eq!(builder(&with_claim, IMPLEMENTATION_SLOT), OK);
    assert_eq!(builder(&without_claim, DIAMOND_SLOT), OK, "not a slot of an upgrade");
    // An inner contract without grant does not circumvent the rule.
    let inner = send(&with_claim, "analyst", Some("bond"))
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "ledger");
    let inner = inner.account("ledger", CODE).writes("ledger", IMPLEMENTATION_SLOT);
    assert_eq!(inner.evaluate(&with_claim), Err(DenyReason::UpgradeClaimRequired));
}

/// U2: the selectors of a diamond are its implementation. Changing them needs the claim, with `diamondCut` or any
/// other function.
#[test]
fn u2_changing_a_diamonds_selectors_needs_the_upgrade_claim() {
    let without_claim = bank().snapshot();
    let with_claim = bank()
        .contract("bond")
        .grant("analysts")
        .grant_claim(Claim::Upgrade)
        .snapshot();
    let selector = [0xa9, 0x05, 0x9c, 0xbb];
    let mut word = [0; 32];
    word[..4].copy_from_slice(&selector);
    let entry = keccak256([word, DIAMOND_SLOT.0].concat());
    let diamond = [&[0x7f][..], DIAMOND_SLOT.as_slice()].concat();
    let cut = |snapshot: &Snapshot, input: Vec<u8>, code: &[u8], slot| {
        let builder = send(snapshot, "analyst", Some("bond")).account("bond", code.to_vec());
        let builder = builder.frame(1, FrameKind::Call, "bond").input(input);
        builder.writes("bond", slot).evaluate(snapshot)
    };
    let denied = Err(DenyReason::UpgradeClaimRequired);
    // With `diamondCut`, regardless of the written slots.
    let empty = [
        &DIAMOND_CUT[..],
        B256::with_last_byte(0x20).as_slice(),
        B256::ZERO.as_slice(),
    ]
    .concat();
    assert_eq!(cut(&without_claim, empty.clone(), CODE, B256::ZERO), denied);
    assert_eq!(cut(&with_claim, empty, CODE, B256::ZERO), OK);
    assert_eq!(
        cut(&with_claim, DIAMOND_CUT.to_vec(), CODE, B256::ZERO),
        denied,
        "the facets cannot be read (RT30)"
    );
    // With another function: the mapping entry of a selector in the calldata or in the code.
    let with_selector = [&[1, 2, 3, 4][..], &word].concat();
    assert_eq!(cut(&without_claim, with_selector.clone(), &diamond, entry), denied);
    assert_eq!(cut(&with_claim, with_selector.clone(), &diamond, entry), OK);
    let constant = [&diamond[..], &[0x63], &selector].concat();
    assert_eq!(cut(&without_claim, vec![1, 2, 3, 4], &constant, entry), denied);
    // The number of facets.
    let count = B256::from(U256::from_be_bytes(DIAMOND_SLOT.0) + U256::from(2));
    assert_eq!(cut(&without_claim, vec![1, 2, 3, 4], &diamond, count), denied);
    // Other writes of a diamond, and code that is not a diamond.
    assert_eq!(cut(&without_claim, with_selector.clone(), &diamond, B256::ZERO), OK);
    assert_eq!(cut(&without_claim, with_selector, CODE, entry), OK);
}

/// HD14: a reservation gives access only while the address has no code.
#[test]
fn hd14_a_reservation_ends_with_the_first_code() {
    let snapshot = bank().user("ops").reservation("pending", FUTURE).snapshot();
    let run = |code: &'static [u8]| {
        call(&snapshot, "ops", "pending")
            .account("pending", code)
            .evaluate(&snapshot)
    };
    assert_eq!(run(&[]), OK);
    assert_eq!(run(CODE), Err(DenyReason::Unregistered));
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

/// The world of the bank, changed by `tag`, which tags a utility as shared infrastructure.
fn utility(tag: impl FnOnce(World) -> World) -> Snapshot {
    tag(bank()).snapshot()
}

/// X6, D3: shared infrastructure, for each kind of frame and each state of its pin. Without the tag it is
/// unregistered code, which is denied.
#[test]
fn x6_shared_infrastructure_may_be_called_while_its_code_matches_the_pin() {
    let run = |snapshot: &Snapshot, kind| {
        let builder = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "utility");
        builder.account("utility", CODE).evaluate(snapshot)
    };
    let touch = |snapshot: &Snapshot| {
        call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account("utility", CODE)
            .evaluate(snapshot)
    };
    let untagged = utility(|w| w);
    assert_eq!(run(&untagged, FrameKind::Call), Err(DenyReason::Unregistered));
    assert_eq!(touch(&untagged), Err(DenyReason::Unregistered));
    for good in [
        utility(|w| w.shared("utility")),
        utility(|w| w.shared_pinned("utility", CODE, None)),
    ] {
        for kind in [FrameKind::Call, FrameKind::StaticCall] {
            assert_eq!(run(&good, kind), OK, "{kind:?}");
        }
        for kind in [FrameKind::DelegateCall, FrameKind::CallCode] {
            assert_eq!(run(&good, kind), Err(DenyReason::DelegateSharedInfra), "{kind:?}");
        }
        assert_eq!(touch(&good), OK);
    }
    for bad in [
        utility(|w| w.shared_pinned("utility", PROBING, None)),
        utility(|w| w.shared_broken("utility")),
    ] {
        for kind in [FrameKind::Call, FrameKind::StaticCall, FrameKind::DelegateCall] {
            assert_eq!(run(&bad, kind), Err(DenyReason::CodehashMismatch), "{kind:?}");
        }
        assert_eq!(touch(&bad), Err(DenyReason::CodehashMismatch));
    }
    // A contract with a wrong pin counts as untagged, so the rules of ownership apply: an own contract may be
    // entered.
    let own = utility(|w| w.shared_pinned("ledger", PROBING, None));
    let builder = call(&own, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "ledger");
    assert_eq!(builder.account("ledger", CODE).evaluate(&own), OK);
}

/// HD9: only the shared address itself is exempt; the calls that it makes are evaluated.
#[test]
fn hd9_frames_below_shared_infrastructure_are_evaluated() {
    let snapshot = utility(|w| w.shared("utility"));
    let run_below = |user: &str, name: &str| {
        let builder = call(&snapshot, user, "utility")
            .account("utility", CODE)
            .frame(1, FrameKind::Call, name);
        builder.account(name, CODE).evaluate(&snapshot)
    };
    assert_eq!(run_below("analyst", "bond"), OK, "granted");
    assert_eq!(run_below("analyst", "foreign"), Err(DenyReason::CrossOrg));
    assert_eq!(run_below("analyst", "unowned"), Err(DenyReason::Unregistered));
    // T1: the caller chooses what a utility in the top frame calls, so ownership by the organization is not
    // sufficient.
    assert_eq!(run_below("analyst", "ledger"), Err(DenyReason::ContractNotPermitted));
    // Below a contract of the organization, that contract chooses what the utility calls.
    let builder = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "utility");
    let builder = builder
        .account("utility", CODE)
        .frame(2, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(builder.evaluate(&snapshot), OK);
}

/// HD9: the pin of a proxy consists of both code hashes. A new implementation voids it, regardless of who set it.
#[test]
fn hd9_a_shared_proxy_runs_its_pinned_implementation_only() {
    let run = |snapshot: &Snapshot, implementation: &'static [u8]| {
        let builder = call(snapshot, "analyst", "proxy").account("proxy", CODE);
        builder
            .frame(1, FrameKind::DelegateCall, "logic")
            .account("logic", implementation)
            .evaluate(snapshot)
    };
    let pinned_pair = utility(|w| w.shared_pinned("proxy", CODE, Some(&[0x60, 0x01])));
    assert_eq!(run(&pinned_pair, &[0x60, 0x01]), OK);
    assert_eq!(run(&pinned_pair, &[0x60, 0x02]), Err(DenyReason::Unregistered));
    // A pin without implementation hash allows no implementation.
    let pinned_proxy_only = utility(|w| w.shared_pinned("proxy", CODE, None));
    assert_eq!(run(&pinned_proxy_only, &[0x60, 0x01]), Err(DenyReason::Unregistered));
    // Only the proxy may run its implementation.
    let direct = call(&pinned_pair, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::DelegateCall, "logic");
    assert_eq!(
        direct
            .account("logic", Bytes::from_static(&[0x60, 0x01]))
            .evaluate(&pinned_pair),
        Err(DenyReason::Unregistered)
    );
    // A contract may not delegate to the code of the proxy, which would run the implementation in another context.
    let borrowed =
        call(&pinned_pair, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::DelegateCall, "proxy");
    let borrowed = borrowed
        .account("proxy", CODE)
        .frame(2, FrameKind::DelegateCall, "logic");
    assert_eq!(
        borrowed
            .account("logic", Bytes::from_static(&[0x60, 0x01]))
            .evaluate(&pinned_pair),
        Err(DenyReason::DelegateSharedInfra)
    );
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

/// F5, HD4: function rules apply below a forwarder of the own organization, unless its admins have marked it as
/// trusted.
#[test]
fn hd4_only_a_trusted_router_lifts_function_rules() {
    let world = |trusted: bool| {
        let world = bank().contract("router").grant("analysts");
        let world = if trusted { world.trusted_router() } else { world };
        let world = world.contract("token").abi(TOKEN_ABI).grant("analysts");
        world.functions([function("balanceOf(address)", [(0, Constraint::Own)])])
    };
    let balance_of = |name: &str| calldata("balanceOf(address)", [address_of(name).into_word()]);
    let through = |snapshot: &Snapshot, path: &[&str], wallet: &str| {
        let mut builder = call(snapshot, "analyst", path[0]).account(path[0], CODE);
        for (depth, name) in path.iter().enumerate().skip(1) {
            builder = builder
                .frame(u32::try_from(depth).unwrap(), FrameKind::Call, name)
                .account(name, CODE);
        }
        let depth = u32::try_from(path.len()).unwrap();
        builder
            .frame(depth, FrameKind::StaticCall, "token")
            .input(balance_of(wallet))
            .account("token", CODE)
            .evaluate(snapshot)
    };
    let plain = world(false).snapshot();
    assert_eq!(through(&plain, &["router"], "analyst-wallet"), OK);
    assert_eq!(
        through(&plain, &["router"], "victim-wallet"),
        Err(DenyReason::ParamRule)
    );
    let trusted = world(true).snapshot();
    assert_eq!(through(&trusted, &["router"], "victim-wallet"), OK);
    assert_eq!(through(&trusted, &["bond", "router"], "victim-wallet"), OK);
    // The code of the router in another context is not the trusted router.
    for kind in [FrameKind::DelegateCall, FrameKind::CallCode] {
        let builder = call(&trusted, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "router")
            .account("router", CODE);
        let builder = builder
            .frame(2, FrameKind::StaticCall, "token")
            .input(balance_of("victim-wallet"))
            .account("token", CODE);
        assert_eq!(builder.evaluate(&trusted), Err(DenyReason::ParamRule), "{kind:?}");
    }
    // Code of the caller between the router and the token is not trusted.
    let mine = world(true).contract("mine").deployed_by("analyst").snapshot();
    assert_eq!(
        through(&mine, &["router", "mine"], "victim-wallet"),
        Err(DenyReason::ParamRule)
    );
    assert_eq!(
        through(&mine, &["mine", "router"], "victim-wallet"),
        OK,
        "the trusted router makes the call itself"
    );
}
