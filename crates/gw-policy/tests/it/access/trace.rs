//! The judgement of traces: X5-X8, HD4, HD6, HD14, HD15, U2. Rights of the organizations in one are `trace_rights`.

use super::{
    execution::{CODE, COINBASE, OK, PROBING, TOKEN_ABI, Told, bank, call, judge, send, told},
    support::{ask, permit, signed},
};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::keccak256;
use gw_evm::{
    Method,
    code::{DIAMOND_CUT, DIAMOND_SLOT, IMPLEMENTATION_SLOT},
    trace::{Frame, FrameKind, Outcome, Trace},
};
use gw_policy::{
    Knobs, Snapshot,
    knobs::Deployments,
    snapshot::{MustBe, SystemToggle},
    testing::{FUTURE, NOW, World, address_of, calldata, function},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, U256};
use std::collections::BTreeMap;

#[test]
fn x6_calls_reach_own_organizations_and_precompiles_and_nothing_else() {
    let snapshot = bank().snapshot();
    let inner = |kind, name: &str, code: &'static [u8]| {
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, name)
            .account(name, code);
        told.judge(&snapshot)
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
        // B24: coin may be paid out to any wallet.
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
    assert_eq!(precompile.judge(&snapshot), OK);
}

/// RT1a, HD27: a deleted registration opens the contract to nobody, its own organization included.
#[test]
fn rt1a_hd27_a_contract_whose_registration_was_deleted_is_nobodys_to_run_or_look_at() {
    let world = bank().org("bank").contract("old").grant("analysts").retired();
    let snapshot = world.snapshot();
    for user in ["analyst", "victim"] {
        let target = if user == "analyst" { "bond" } else { "foreign" };
        let told = || call(&snapshot, user, target).account(target, CODE);
        for code in [CODE, &[]] {
            let entered = told().frame(1, FrameKind::StaticCall, "old").account("old", code);
            assert_eq!(entered.judge(&snapshot), Err(DenyReason::CrossOrg), "{user}");
            assert_eq!(
                told().account("old", code).judge(&snapshot),
                Err(DenyReason::CrossOrg),
                "{user}"
            );
        }
        let direct = ask(&snapshot, user).eth_call(address_of("old"), [1, 2, 3, 4]);
        assert!(
            matches!(direct, gw_policy::access::Decision::Deny(_)),
            "{user}: {direct:?}"
        );
    }
    // Its organization may build anew where nothing is left; nobody else may.
    let built = |user, code: &'static [u8]| {
        send(&snapshot, user, Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "old")
            .account("old", code)
            .judge(&snapshot)
    };
    assert_eq!(built("ops", &[]), Ok(vec![address_of("old")]));
    assert_eq!(built("ops", CODE), Err(DenyReason::CrossOrg));
    let rival = bank().org("rival").contract("old").retired().org("bank").snapshot();
    let told = send(&rival, "ops", Some("bond"))
        .account("bond", CODE)
        .frame(1, FrameKind::Create2, "old");
    assert_eq!(told.wallet("old").judge(&rival), Err(DenyReason::CrossOrg));
}

/// X5, B8: BALANCE, EXTCODESIZE and their kin are touches.
#[test]
fn x5_looking_at_code_out_of_reach_is_denied_like_calling_it() {
    let snapshot = bank().snapshot();
    let touch = |name: &str| {
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account(name, CODE)
            .judge(&snapshot)
    };
    // A touch needs what the direct question needs (HD29): `rt5_…` in `trace_rights`.
    assert_eq!(touch("ledger"), Err(DenyReason::ContractNotPermitted));
    assert_eq!(touch("foreign"), Err(DenyReason::CrossOrg));
    assert_eq!(touch("unowned"), Err(DenyReason::Unregistered));
}

#[test]
fn x5_frames_and_failed_frames_count_alike() {
    let snapshot = bank().snapshot();
    let told = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "foreign")
        .failed();
    assert_eq!(told.judge(&snapshot), Err(DenyReason::CrossOrg));
}

#[test]
fn x6_another_of_the_callers_organizations_needs_a_grant() {
    let world = bank()
        .user("analyst")
        .member("rival/members")
        .org("rival")
        .contract("closed")
        .org("bank");
    let snapshot = world.snapshot();
    let inner = |name: &str| {
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        told.account(name, CODE).judge(&snapshot)
    };
    assert_eq!(inner("foreign"), OK, "granted there");
    assert_eq!(inner("closed"), Err(DenyReason::ContractNotPermitted));
}

/// A8, B16: the organizations of the trace are those of this moment.
#[test]
fn x6_an_expired_membership_opens_no_frame() {
    let snapshot = bank().user("analyst").member_until("rival/members", NOW).snapshot();
    let told = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "foreign");
    assert_eq!(told.judge(&snapshot), Err(DenyReason::CrossOrg));
}

#[test]
fn hd6_wallets_and_probing_code_do_not_go_together() {
    let snapshot = bank().snapshot();
    let run = |name: &str, code: &'static [u8]| {
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .frame(1, FrameKind::Call, name);
        told.wallet(name).judge(&snapshot)
    };
    // No verdict depends on whether the wallet is linked.
    for name in ["victim-wallet", "nobody"] {
        assert_eq!(run(name, CODE), OK, "{name}");
        assert_eq!(run(name, PROBING), Err(DenyReason::Unregistered), "{name}");
        let touched = call(&snapshot, "analyst", "bond").account("bond", PROBING).wallet(name);
        assert_eq!(touched.judge(&snapshot), Err(DenyReason::Unregistered), "{name}");
    }
    // What is Full is no secret.
    assert_eq!(run("analyst-wallet", PROBING), OK);
    assert_eq!(run("bond", PROBING), OK);
    // HD29: that nodes list the block's beneficiary says nothing; who pays it, asks for it by its opcode or names it, in
    // code that looks at accounts, reads a wallet like any other.
    assert_eq!(run(COINBASE, CODE), OK);
    assert_eq!(run(COINBASE, PROBING), Err(DenyReason::Unregistered));
    let listed = |code: Vec<u8>, input: Vec<u8>| {
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .frame(1, FrameKind::Call, "bond");
        told.input(input).wallet(COINBASE).judge(&snapshot)
    };
    let address = address_of(COINBASE).to_vec();
    assert_eq!(listed(PROBING.to_vec(), vec![9]), OK);
    assert_eq!(
        listed([PROBING, &[0x41]].concat(), vec![9]),
        Err(DenyReason::Unregistered)
    );
    assert_eq!(listed(PROBING.to_vec(), address.clone()), Err(DenyReason::Unregistered));
    assert_eq!(
        listed([PROBING, &[0x73], &address].concat(), vec![9]),
        Err(DenyReason::Unregistered)
    );
}

#[test]
fn hd6_init_code_and_inner_code_count_too() {
    let snapshot = bank().snapshot();
    let deployed = |init: &'static [u8], runtime: &'static [u8]| {
        let told = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new")
            .input(init);
        told.edit(|frame| frame.output = Bytes::from_static(runtime))
            .wallet("nobody")
            .judge(&snapshot)
    };
    assert_eq!(deployed(CODE, CODE), Ok(vec![address_of("new")]));
    assert_eq!(deployed(PROBING, CODE), Err(DenyReason::Unregistered));
    assert_eq!(deployed(CODE, PROBING), Err(DenyReason::Unregistered));
    let delegated =
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::DelegateCall, "ledger");
    assert_eq!(
        delegated.account("ledger", PROBING).wallet("nobody").judge(&snapshot),
        Err(DenyReason::Unregistered)
    );
    // A registered contract whose code the node does not show.
    let unknown = call(&snapshot, "analyst", "bond").wallet("nobody");
    assert_eq!(unknown.judge(&snapshot), Err(DenyReason::Unregistered));
}

/// HD15: a 7702 wallet is a wallet, and its delegate is judged as what runs there.
#[test]
fn hd15_a_delegating_wallet_is_judged_by_its_delegate() {
    let delegating = |to: &str| [&[0xef, 0x01, 0x00][..], address_of(to).as_slice()].concat();
    let run_in = |snapshot: &Snapshot, delegate: &str, code: &'static [u8]| {
        let told = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "smart-wallet");
        told.account("smart-wallet", delegating(delegate))
            .account(delegate, code)
            .judge(snapshot)
    };
    // HD6, HD29: in somebody else's wallet the code would answer with what that wallet holds.
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
    // Looked at only: nothing runs there.
    let touched = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .account("smart-wallet", delegating("foreign"));
    assert_eq!(touched.judge(&snapshot), OK);
}

/// W1, X8: a wallet that the transaction itself delegates runs code its account does not show yet.
#[test]
fn w1_a_delegation_of_this_very_transaction_is_judged_like_one_before_it() {
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
        let permit = permit(ask(&snapshot, "ops").call(Method::SendRawTransaction, &call));
        let told = told(permit, address_of("ops-wallet"), FrameKind::Call, Some("bond")).account("bond", CODE);
        let told = told
            .frame(1, FrameKind::Call, "ops-wallet")
            .edit(|frame| frame.to = Some(authority));
        told.frame(2, FrameKind::Call, inner)
            .account(inner, CODE)
            .account("forwarder", code)
            .judge(&snapshot)
    };
    assert_eq!(run("public", CODE), OK);
    assert_eq!(run("ledger", CODE), Err(DenyReason::ContractNotPermitted));
}

#[test]
fn x7_creations_need_the_claim_and_take_nothing_of_others() {
    let snapshot = bank().snapshot();
    let create = |user: &str, kind, address: &str| {
        let told = call(&snapshot, user, "bond")
            .account("bond", CODE)
            .frame(1, kind, address);
        told.judge(&snapshot)
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

/// K8, HD29: what somebody paid to an address before a simulation creates code there is nobody's to read: it looks new. What the
/// organization has reserved is its own.
#[test]
fn k8_a_simulated_creation_reads_no_balance_that_was_there() {
    let told = |snapshot: &Snapshot, balance: u64| {
        let told = call(snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        let mut told = told.frame(1, FrameKind::Call, "new").wallet("new");
        told.touched.get_mut(&address_of("new")).unwrap().balance = U256::from(balance);
        let verdict = told.verdict(snapshot, &Knobs::default()).unwrap();
        verdict.tells_existence_of().to_vec()
    };
    assert_eq!(told(&bank().snapshot(), 5), [address_of("new")]);
    assert!(told(&bank().snapshot(), 0).is_empty());
    assert!(told(&bank().user("ops").reservation("new", FUTURE).snapshot(), 5).is_empty());
}

#[test]
fn x7_what_the_run_creates_may_be_called_in_it_unless_it_was_there_before() {
    let snapshot = bank().snapshot();
    let run = |before: &'static [u8]| {
        let told = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        told.frame(1, FrameKind::Call, "new")
            .account("new", before)
            .judge(&snapshot)
    };
    assert_eq!(run(&[]), Ok(vec![address_of("new")]));
    assert_eq!(
        run(CODE),
        Err(DenyReason::Unregistered),
        "a failed creation over somebody's contract"
    );
}

/// HD2: with `DEPLOYMENTS=approved` a send creates contracts of approved code only, whatever arguments follow the code, at the
/// top or below, kept or not. Simulations are free.
#[test]
fn hd2_a_send_creates_contracts_of_approved_code() {
    let (approved, longer) = ([0x60, 0x80, 0x60], [0x60, 0x80, 0x61, 0x62]);
    let snapshot = bank().approved_code(&approved).approved_code(&longer).snapshot();
    let knobs = &Knobs {
        deployments: Deployments::Approved,
        ..Knobs::default()
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
    let inside = |init: &[u8], edit: fn(&mut Frame)| {
        let told = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create2, "new");
        told.input(init.to_vec()).edit(edit)
    };
    let kept: fn(&mut Frame) = |_| ();
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
        for edit in [kept, undone] {
            let said = inside(init, edit).verdict(&snapshot, knobs).map(drop);
            assert_eq!(
                said,
                if is_approved {
                    Ok(())
                } else {
                    Err(DenyReason::CodehashMismatch)
                },
                "{init:02x?}"
            );
        }
        assert!(inside(init, kept).verdict(&snapshot, &Knobs::default()).is_ok());
    }
    // At the top, of `01020304`.
    let top = |snapshot: &Snapshot| send(snapshot, "ops", None).verdict(snapshot, knobs).map(drop);
    assert_eq!(top(&snapshot), Err(DenyReason::CodehashMismatch));
    assert_eq!(top(&bank().approved_code(&[1, 2, 3]).snapshot()), Ok(()));
    let simulated = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create, "new");
    assert!(simulated.verdict(&snapshot, knobs).is_ok());
}

/// HD38: whether a run may do otherwise in another block on the same state: its code, what it creates and what a wallet
/// delegates to ask for the block. Shared code is a super admin's word.
#[test]
fn hd38_a_run_may_vary_if_its_code_reads_the_block() {
    const NUMBER: &[u8] = &[0x43, 0x50, 0x00];
    let snapshot = bank().shared_pinned("utility", NUMBER, None).snapshot();
    let entered = |name: &str, code: &'static [u8]| {
        let told = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        told.account(name, code)
            .verdict(&snapshot, &Knobs::default())
            .unwrap()
            .reads_block()
    };
    assert!(!entered("ledger", CODE) && entered("ledger", NUMBER) && !entered("utility", NUMBER));
    for opcode in [0x3a, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x48, 0x4a] {
        assert!(gw_evm::code::reads_block(&[opcode]), "{opcode:x}");
    }
    for opcode in [0x30, 0x31, 0x33, 0x3f, 0x46, 0x47, 0x5a] {
        assert!(!gw_evm::code::reads_block(&[opcode]), "{opcode:x}");
    }
    let created = |init: &'static [u8], runtime: &'static [u8]| {
        let told = send(&snapshot, "ops", Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Create, "new");
        let told = told
            .input(init)
            .edit(|frame| frame.output = Bytes::from_static(runtime));
        told.verdict(&snapshot, &Knobs::default()).unwrap().reads_block()
    };
    assert!(!created(CODE, CODE) && created(NUMBER, CODE) && created(CODE, NUMBER));
}

#[test]
fn r1_only_creations_that_last_are_reserved() {
    let snapshot = bank().snapshot();
    let told = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create, "failed")
        .failed()
        .frame(1, FrameKind::Call, "ledger")
        .failed()
        .account("ledger", CODE)
        .frame(2, FrameKind::Create, "reverted-with-it")
        .frame(1, FrameKind::Create, "kept");
    assert_eq!(told.judge(&snapshot), Ok(vec![address_of("kept")]));
    // The top frame of a deployment is not below itself.
    assert_eq!(send(&snapshot, "ops", None).judge(&snapshot), OK);
}

/// B1: init code reads like any other code.
#[test]
fn b1_init_code_is_judged_by_what_it_calls() {
    let snapshot = bank().snapshot();
    let told = send(&snapshot, "ops", None)
        .frame(1, FrameKind::StaticCall, "foreign")
        .account("foreign", CODE);
    assert_eq!(told.judge(&snapshot), Err(DenyReason::CrossOrg));
}

/// X8: code the caller brought along reaches only what the caller was granted.
#[test]
fn x8_below_own_code_every_frame_needs_its_grant() {
    let snapshot = bank()
        .contract("forwarder")
        .deployed_by("ops")
        .contract("plain")
        .grant("deployers")
        .snapshot();
    let through = |name: &str, inner: &str| {
        let told = call(&snapshot, "ops", name)
            .account(name, CODE)
            .frame(1, FrameKind::Call, inner);
        told.account(inner, CODE).judge(&snapshot)
    };
    assert_eq!(through("plain", "ledger"), OK, "the organization's own code may");
    assert_eq!(through("forwarder", "bond"), OK, "granted anyway");
    assert_eq!(through("forwarder", "ledger"), Err(DenyReason::ContractNotPermitted));
    // However deep below, and in init code.
    let told = call(&snapshot, "ops", "forwarder")
        .account("forwarder", CODE)
        .frame(1, FrameKind::Call, "bond");
    let told = told
        .account("bond", CODE)
        .frame(2, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(told.judge(&snapshot), Err(DenyReason::ContractNotPermitted));
    let told = send(&snapshot, "ops", None)
        .frame(1, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(told.judge(&snapshot), Err(DenyReason::ContractNotPermitted));
}

/// HD4, F5: a caller limited to `balanceOf(self)` goes through a forwarder of the own organization.
#[test]
fn hd4_a_frame_into_a_restricted_contract_is_judged_with_its_own_input() {
    let snapshot = bank()
        .contract("router")
        .grant("analysts")
        .contract("token")
        .abi(TOKEN_ABI)
        .grant("analysts")
        .functions([function("balanceOf(address)", [(0, MustBe::Own)])])
        .snapshot();
    let ask_for = |input: Bytes| {
        let told =
            call(&snapshot, "analyst", "router")
                .account("router", CODE)
                .frame(1, FrameKind::StaticCall, "token");
        told.input(input).account("token", CODE).judge(&snapshot)
    };
    let balance = |name: &str| calldata("balanceOf(address)", [address_of(name).into_word()]);
    assert_eq!(ask_for(balance("analyst-wallet")), OK);
    assert_eq!(ask_for(balance("victim-wallet")), Err(DenyReason::ParamRule));
    assert_eq!(
        ask_for(calldata("totalSupply()", [])),
        Err(DenyReason::FunctionNotPermitted)
    );
}

/// F5: a proxy's delegatecall with unchanged input inherits the verdict; with another one it does not.
#[test]
fn f5_a_proxy_that_passes_its_input_on_is_judged_once() {
    let snapshot = bank()
        .contract("code")
        .grant("analysts")
        .functions([function("own()", [])])
        .snapshot();
    let through = |kind, input: &'static [u8]| {
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "code")
            .input(input);
        told.account("code", CODE).judge(&snapshot)
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

/// F5, HD4: what a proxy's own code runs on the proxy's state with other input than the proxy was given is a call of the proxy;
/// a library's code is not.
#[test]
fn f5_a_proxys_code_entered_once_more_is_judged_as_a_call_of_the_proxy() {
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
        let told = super::execution::told(
            permit(ask(&snapshot, "analyst").eth_call(address_of("proxy"), data.clone())),
            Address::ZERO,
            FrameKind::Call,
            Some("proxy"),
        );
        let told = told.input(data.clone()).account("proxy", CODE);
        let told = told
            .frame(1, FrameKind::DelegateCall, "code")
            .input(data)
            .account("code", CODE);
        // The code runs as the proxy.
        let told = told.frame(2, kind, target).input(input.clone());
        told.edit(|frame| frame.from = address_of("proxy"))
            .account(target, CODE)
            .judge(&snapshot)
    };
    let denied = Err(DenyReason::FunctionNotPermitted);
    assert_eq!(inner(FrameKind::DelegateCall, "code", &secret), denied);
    assert_eq!(inner(FrameKind::CallCode, "code", &secret), denied);
    assert_eq!(inner(FrameKind::DelegateCall, "proxy", &secret), denied);
    assert_eq!(inner(FrameKind::DelegateCall, "code", &multi), OK);
    assert_eq!(inner(FrameKind::DelegateCall, "library", &secret), OK);
}

/// U2: the state diff decides, whichever function wrote.
#[test]
fn u2_writing_a_proxy_slot_needs_the_upgrade_claim() {
    let told = |snapshot: &Snapshot, slot| {
        let told = send(snapshot, "analyst", Some("bond")).account("bond", CODE);
        told.writes_word("bond", slot, address_of("ledger").into_word())
            .judge(snapshot)
    };
    let without = bank().snapshot();
    let with = bank()
        .contract("bond")
        .grant("analysts")
        .grant_claim(Claim::Upgrade)
        .snapshot();
    assert_eq!(
        told(&without, IMPLEMENTATION_SLOT),
        Err(DenyReason::UpgradeClaimRequired)
    );
    assert_eq!(told(&with, IMPLEMENTATION_SLOT), OK);
    assert_eq!(told(&without, DIAMOND_SLOT), OK, "not a slot of an upgrade");
    // An inner contract without any grant is no way round.
    let inner = send(&with, "analyst", Some("bond"))
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "ledger");
    let inner = inner.account("ledger", CODE).writes("ledger", IMPLEMENTATION_SLOT);
    assert_eq!(inner.judge(&with), Err(DenyReason::UpgradeClaimRequired));
}

/// U2: a diamond's selectors are its implementation: whoever changes them needs the claim, through `diamondCut` or past it.
#[test]
fn u2_changing_a_diamonds_selectors_needs_the_upgrade_claim() {
    let without = bank().snapshot();
    let with = bank()
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
        let told = send(snapshot, "analyst", Some("bond")).account("bond", code.to_vec());
        let told = told.frame(1, FrameKind::Call, "bond").input(input);
        told.writes("bond", slot).judge(snapshot)
    };
    let denied = Err(DenyReason::UpgradeClaimRequired);
    // By its own function, whatever is written.
    let empty = [
        &DIAMOND_CUT[..],
        B256::with_last_byte(0x20).as_slice(),
        B256::ZERO.as_slice(),
    ]
    .concat();
    assert_eq!(cut(&without, empty.clone(), CODE, B256::ZERO), denied);
    assert_eq!(cut(&with, empty, CODE, B256::ZERO), OK);
    assert_eq!(
        cut(&with, DIAMOND_CUT.to_vec(), CODE, B256::ZERO),
        denied,
        "nobody knows which facets (RT30)"
    );
    // By another: the entry of a selector that the calldata, or the code, mentions.
    let mentioned = [&[1, 2, 3, 4][..], &word].concat();
    assert_eq!(cut(&without, mentioned.clone(), &diamond, entry), denied);
    assert_eq!(cut(&with, mentioned.clone(), &diamond, entry), OK);
    let constant = [&diamond[..], &[0x63], &selector].concat();
    assert_eq!(cut(&without, vec![1, 2, 3, 4], &constant, entry), denied);
    // The number of facets.
    let count = B256::from(U256::from_be_bytes(DIAMOND_SLOT.0) + U256::from(2));
    assert_eq!(cut(&without, vec![1, 2, 3, 4], &diamond, count), denied);
    // Other writes of a diamond, and code that is none.
    assert_eq!(cut(&without, mentioned.clone(), &diamond, B256::ZERO), OK);
    assert_eq!(cut(&without, mentioned, CODE, entry), OK);
}

/// HD14: a reservation gives reach only while the address has no code.
#[test]
fn hd14_a_reservation_ends_with_the_first_code() {
    let snapshot = bank().user("ops").reservation("pending", FUTURE).snapshot();
    let run = |code: &'static [u8]| {
        call(&snapshot, "ops", "pending")
            .account("pending", code)
            .judge(&snapshot)
    };
    assert_eq!(run(&[]), OK);
    assert_eq!(run(CODE), Err(DenyReason::Unregistered));
}

/// §10: that the receiver of a plain payment has code shows in the trace only.
#[test]
fn a_payment_to_unregistered_code_is_denied_by_its_trace() {
    let snapshot = bank().snapshot();
    let paid = |code: &'static [u8]| {
        let call = super::support::payment(address_of("analyst-wallet"), address_of("receiver"));
        let permit = permit(ask(&snapshot, "analyst").call(Method::SendRawTransaction, &call));
        let sender = address_of("analyst-wallet");
        let told = told(permit, sender, FrameKind::Call, Some("receiver")).input(Bytes::new());
        let told = told.edit(|top| top.value = U256::from(1)).account("receiver", code);
        told.judge(&snapshot)
    };
    assert_eq!(paid(&[]), OK);
    assert_eq!(paid(CODE), Err(DenyReason::Unregistered));
}

/// X2: the trace of another call proves nothing about this one.
#[test]
fn x2_a_trace_that_is_not_of_this_call_is_refused() {
    let snapshot = bank().snapshot();
    let told = || call(&snapshot, "analyst", "bond").account("bond", CODE);
    assert_eq!(told().judge(&snapshot), OK);
    let wrong: [(&str, Told); 6] = [
        ("input", told().input(vec![9])),
        ("sender", told().edit(|top| top.from = address_of("nobody"))),
        ("target", told().edit(|top| top.to = Some(address_of("ledger")))),
        ("value", told().edit(|top| top.value = U256::from(1))),
        ("kind", told().edit(|top| top.kind = FrameKind::StaticCall)),
        (
            "empty",
            Told {
                frames: Vec::new(),
                ..told()
            },
        ),
    ];
    for (what, told) in wrong {
        assert_eq!(told.judge(&snapshot), Err(DenyReason::TraceMismatch), "{what}");
    }
    // A permit that needs no trace has none.
    let local = permit(ask(&snapshot, "analyst").rpc("eth_chainId", serde_json::json!([])));
    let trace = Trace {
        frames: Vec::new(),
        touched: BTreeMap::new(),
        changes: None,
        top: Outcome::default(),
    };
    assert_eq!(judge(&snapshot, &local, trace), Err(DenyReason::TraceMismatch));
}

/// HD15: a send is judged by what it changes too.
#[test]
fn x11_a_send_without_its_state_diff_is_not_forwarded() {
    let snapshot = bank().snapshot();
    let Told {
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
    assert_eq!(judge(&snapshot, &permit, trace), Err(DenyReason::TracingUnavailable));
}

/// HD20: what changed between the decision and the trace counts.
#[test]
fn hd20_the_trace_is_judged_by_the_policy_of_its_moment() {
    let snapshot = bank().snapshot();
    let told = || {
        call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "ledger")
            .account("ledger", CODE)
    };
    assert_eq!(told().judge(&snapshot), OK);
    assert_eq!(
        told().judge(&bank().user("analyst").banned().snapshot()),
        Err(DenyReason::Banned)
    );
    let revoked = bank().user("analyst").member_until("analysts", NOW).snapshot();
    assert_eq!(told().judge(&revoked), Err(DenyReason::CrossOrg));
}

/// H1: an execution at a block of the recent past reads nothing that was somebody else's then, at any depth.
#[test]
fn h1_a_past_run_reads_only_what_was_the_organizations_by_then() {
    let since = NOW.minus(gw_types::Seconds(100));
    let snapshot = bank().contract("bought").since(since).grant("analysts").snapshot();
    let run = |at: gw_evm::BlockId, time| {
        let mut call = super::support::simulate(gw_evm::SimulationKind::Call, address_of("bond"), [1, 2, 3, 4]);
        if let gw_evm::Call::Simulate(simulation) = &mut call {
            simulation.block = at;
        }
        let permit = permit(ask(&snapshot, "analyst").call(Method::Call, &call));
        let told = told(permit, Address::ZERO, FrameKind::Call, Some("bond"))
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "bought")
            .account("bought", CODE);
        told.judge_at(&snapshot, super::support::HEAD - 1, time)
    };
    let recent = gw_evm::BlockId::Number(super::support::HEAD - 1);
    let before = since.minus(gw_types::Seconds(1));
    assert_eq!(run(recent, before), Err(DenyReason::HistoryNotPermitted));
    assert_eq!(run(recent, since), OK);
    assert_eq!(run(gw_evm::BlockId::LATEST, before), OK, "the present is nobody's past");
}

/// The bank's world with a utility tagged as everybody's.
fn utility(tag: impl FnOnce(World) -> World) -> Snapshot {
    tag(bank()).snapshot()
}

/// X6, D3: the row of shared infrastructure, in each column and by the state of its pin. Without the tag it is unowned
/// code, and denied.
#[test]
fn x6_shared_infrastructure_may_be_called_while_its_code_is_the_pinned_one() {
    let with = |snapshot: &Snapshot, kind| {
        let told = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "utility");
        told.account("utility", CODE).judge(snapshot)
    };
    let touch = |snapshot: &Snapshot| {
        call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account("utility", CODE)
            .judge(snapshot)
    };
    let untagged = utility(|w| w);
    assert_eq!(with(&untagged, FrameKind::Call), Err(DenyReason::Unregistered));
    assert_eq!(touch(&untagged), Err(DenyReason::Unregistered));
    for good in [
        utility(|w| w.shared("utility")),
        utility(|w| w.shared_pinned("utility", CODE, None)),
    ] {
        for kind in [FrameKind::Call, FrameKind::StaticCall] {
            assert_eq!(with(&good, kind), OK, "{kind:?}");
        }
        for kind in [FrameKind::DelegateCall, FrameKind::CallCode] {
            assert_eq!(with(&good, kind), Err(DenyReason::DelegateSharedInfra), "{kind:?}");
        }
        assert_eq!(touch(&good), OK);
    }
    for bad in [
        utility(|w| w.shared_pinned("utility", PROBING, None)),
        utility(|w| w.shared_broken("utility")),
    ] {
        for kind in [FrameKind::Call, FrameKind::StaticCall, FrameKind::DelegateCall] {
            assert_eq!(with(&bad, kind), Err(DenyReason::CodehashMismatch), "{kind:?}");
        }
        assert_eq!(touch(&bad), Err(DenyReason::CodehashMismatch));
    }
    // Treated as untagged: the rows of ownership go on, so an own contract is an own contract all the same.
    let own = utility(|w| w.shared_pinned("ledger", PROBING, None));
    let told = call(&own, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "ledger");
    assert_eq!(told.account("ledger", CODE).judge(&own), OK);
}

/// HD9: the skip concerns that address alone; what it calls is judged.
#[test]
fn hd9_frames_below_shared_infrastructure_are_judged() {
    let snapshot = utility(|w| w.shared("utility"));
    let below = |user: &str, name: &str| {
        let told = call(&snapshot, user, "utility")
            .account("utility", CODE)
            .frame(1, FrameKind::Call, name);
        told.account(name, CODE).judge(&snapshot)
    };
    assert_eq!(below("analyst", "bond"), OK, "granted");
    assert_eq!(below("analyst", "foreign"), Err(DenyReason::CrossOrg));
    assert_eq!(below("analyst", "unowned"), Err(DenyReason::Unregistered));
    // T1: what a utility at the top calls, the caller chose; ownership alone is no ground.
    assert_eq!(below("analyst", "ledger"), Err(DenyReason::ContractNotPermitted));
    // Below a contract of the organization, that contract chose.
    let chosen = call(&snapshot, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "utility");
    let chosen = chosen
        .account("utility", CODE)
        .frame(2, FrameKind::Call, "ledger")
        .account("ledger", CODE);
    assert_eq!(chosen.judge(&snapshot), OK);
}

/// HD9: for a proxy the pin is the pair; a new implementation voids it, whoever put it there.
#[test]
fn hd9_a_shared_proxy_runs_its_pinned_implementation_only() {
    let run = |snapshot: &Snapshot, implementation: &'static [u8]| {
        let told = call(snapshot, "analyst", "proxy").account("proxy", CODE);
        told.frame(1, FrameKind::DelegateCall, "logic")
            .account("logic", implementation)
            .judge(snapshot)
    };
    let pair = utility(|w| w.shared_pinned("proxy", CODE, Some(&[0x60, 0x01])));
    assert_eq!(run(&pair, &[0x60, 0x01]), OK);
    assert_eq!(run(&pair, &[0x60, 0x02]), Err(DenyReason::Unregistered));
    // A pin without its second half admits no implementation.
    let half = utility(|w| w.shared_pinned("proxy", CODE, None));
    assert_eq!(run(&half, &[0x60, 0x01]), Err(DenyReason::Unregistered));
    // The implementation is the proxy's alone: nobody else may run it.
    let direct = call(&pair, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::DelegateCall, "logic");
    assert_eq!(
        direct.account("logic", Bytes::from_static(&[0x60, 0x01])).judge(&pair),
        Err(DenyReason::Unregistered)
    );
    // Nor may a contract borrow the proxy's code and let it run its own logic in another name.
    let borrowed = call(&pair, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::DelegateCall, "proxy");
    let borrowed = borrowed
        .account("proxy", CODE)
        .frame(2, FrameKind::DelegateCall, "logic");
    assert_eq!(
        borrowed
            .account("logic", Bytes::from_static(&[0x60, 0x01]))
            .judge(&pair),
        Err(DenyReason::DelegateSharedInfra)
    );
}

/// X8, X9: with the toggle on, frames into own contracts need a grant, but what a proxy passes on inherits.
#[test]
fn x8_intra_org_tracing_asks_for_a_grant_in_every_frame() {
    let run = |snapshot: &Snapshot, name: &str| {
        let told = call(snapshot, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, name);
        told.account(name, CODE).judge(snapshot)
    };
    let off = bank().snapshot();
    assert_eq!(run(&off, "ledger"), OK);
    let on = bank()
        .toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE)
        .snapshot();
    assert_eq!(run(&on, "ledger"), Err(DenyReason::ContractNotPermitted));
    let ended = bank().toggle(SystemToggle::IntraOrgGrantTracing, true, NOW).snapshot();
    assert_eq!(run(&ended, "ledger"), OK, "re-armed by itself");
    let proxied = call(&on, "analyst", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::DelegateCall, "ledger");
    assert_eq!(
        proxied.account("ledger", CODE).judge(&on),
        OK,
        "unchanged input: the verdict on the proxy holds"
    );
    // Reservations excepted for those who may deploy: the address is theirs, and nobody's contract yet.
    let reserved =
        bank()
            .user("ops")
            .reservation("soon", FUTURE)
            .toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE);
    let reserved = reserved.snapshot();
    let told = call(&reserved, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Call, "soon")
        .wallet("soon");
    assert_eq!(told.judge(&reserved), OK);
    // Even when off: frames reached through a contract the caller deployed.
    let deployed = bank().contract("mine").deployed_by("analyst").snapshot();
    let told = call(&deployed, "analyst", "mine")
        .account("mine", CODE)
        .frame(1, FrameKind::Call, "ledger");
    assert_eq!(
        told.account("ledger", CODE).judge(&deployed),
        Err(DenyReason::ContractNotPermitted)
    );
}

/// F5, HD4: a forwarder of the own organization does not lift function rules, unless its administrators vouch for it.
#[test]
fn hd4_only_a_trusted_router_passes_on_what_rules_forbid() {
    let world = |trusted: bool| {
        let world = bank().contract("router").grant("analysts");
        let world = if trusted { world.trusted_router() } else { world };
        let world = world.contract("token").abi(TOKEN_ABI).grant("analysts");
        world.functions([function("balanceOf(address)", [(0, MustBe::Own)])])
    };
    let of = |name: &str| calldata("balanceOf(address)", [address_of(name).into_word()]);
    let through = |snapshot: &Snapshot, via: &[&str], whose: &str| {
        let mut told = call(snapshot, "analyst", via[0]).account(via[0], CODE);
        for (depth, name) in via.iter().enumerate().skip(1) {
            told = told
                .frame(u32::try_from(depth).unwrap(), FrameKind::Call, name)
                .account(name, CODE);
        }
        let depth = u32::try_from(via.len()).unwrap();
        told.frame(depth, FrameKind::StaticCall, "token")
            .input(of(whose))
            .account("token", CODE)
            .judge(snapshot)
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
    // Its code on another account's storage is not the router.
    for kind in [FrameKind::DelegateCall, FrameKind::CallCode] {
        let told = call(&trusted, "analyst", "bond")
            .account("bond", CODE)
            .frame(1, kind, "router")
            .account("router", CODE);
        let told = told
            .frame(2, FrameKind::StaticCall, "token")
            .input(of("victim-wallet"))
            .account("token", CODE);
        assert_eq!(told.judge(&trusted), Err(DenyReason::ParamRule), "{kind:?}");
    }
    // Code the caller brought along, between the router and the token, is not vouched for.
    let mine = world(true).contract("mine").deployed_by("analyst").snapshot();
    assert_eq!(
        through(&mine, &["router", "mine"], "victim-wallet"),
        Err(DenyReason::ParamRule)
    );
    assert_eq!(
        through(&mine, &["mine", "router"], "victim-wallet"),
        OK,
        "the router itself decides what it passes on"
    );
}
