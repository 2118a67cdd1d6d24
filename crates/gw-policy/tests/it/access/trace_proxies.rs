//! Code that runs for another account: delegations, delegate calls, proxies and routers (F5, U2, HD4, HD15, W1).

use super::{
    execution::{CODE, OK, TOKEN_ABI, bank, call, send, trace_builder},
    support::{permit, request_as, signed},
};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::keccak256;
use gw_evm::{
    Method,
    code::{DIAMOND_CUT, DIAMOND_SLOT, IMPLEMENTATION_SLOT},
    trace::FrameKind,
};
use gw_policy::{
    Snapshot,
    snapshot::Constraint,
    testing::{address_of, calldata, function},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, U256};

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
