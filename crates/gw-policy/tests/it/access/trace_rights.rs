//! Rights inside a trace: a touch needs the same right as the direct request (HD29, the cause of RT5 and RT15), and
//! for every contract the caller's rights in its own organization apply (RT7, RT8, RT30).

use super::{
    execution::{CODE, OK, PROBING, TraceBuilder, bank, call, send, trace_builder},
    support::{HEAD, permit, request_as, simulate},
};
use alloy_primitives::keccak256;
use gw_evm::{
    BlockId, BlockTag, Method, SimulationKind,
    code::{ADMIN_SLOT, BEACON_SLOT, DIAMOND_CUT, IMPLEMENTATION_SLOT},
    trace::FrameKind,
};
use gw_policy::{
    Snapshot,
    snapshot::SystemToggle,
    testing::{FUTURE, NOW, World, address_of, calldata},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, Seconds, U256};

const DENIED: DenyReason = DenyReason::ContractNotPermitted;
/// PUSH0 four times, EXTCODECOPY
const COPYING: &[u8] = &[0x5f, 0x5f, 0x5f, 0x5f, 0x3c];
/// PUSH0, EXTCODESIZE, which compilers emit before every call.
const SIZING: &[u8] = &[0x5f, 0x3b];

fn delegating(to: &str) -> Vec<u8> {
    [&[0xef, 0x01, 0x00][..], address_of(to).as_slice()].concat()
}

/// The bank with an administrator, a holder of all grants, and a guest: a member of the rival with one grant in the
/// bank.
fn staffed() -> World {
    bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .link("admin-wallet")
        .contract("bond")
        .grant("admins")
        .user("holder")
        .member("analysts")
        .member("others")
        .user("guest")
        .member("bank/analysts")
        .member("rival/members")
}

/// HD29: BALANCE, EXTCODE* and the beneficiary of a SELFDESTRUCT read an account. Without a grant, the direct request
/// is denied or zero, so the touch is denied.
#[test]
fn rt5_touching_an_own_contract_needs_the_right_to_read_it() {
    let snapshot = staffed().snapshot();
    let touch = |user: &str| {
        call(&snapshot, user, "bond")
            .account("bond", CODE)
            .account("ledger", CODE)
            .evaluate(&snapshot)
    };
    let self_destruct = |user: &str| {
        let builder = call(&snapshot, user, "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::SelfDestruct, "ledger");
        builder.account("ledger", CODE).evaluate(&snapshot)
    };
    for denied in ["analyst", "guest"] {
        assert_eq!(touch(denied), Err(DENIED), "{denied}");
        assert_eq!(self_destruct(denied), Err(DENIED), "{denied}");
    }
    for allowed in ["admin", "holder"] {
        assert_eq!(touch(allowed), OK, "{allowed}");
        assert_eq!(self_destruct(allowed), OK, "{allowed}");
    }
    // In another organization of the caller, the rights there apply.
    let builder = |name: &str| {
        call(&snapshot, "guest", "bond")
            .account("bond", CODE)
            .account(name, CODE)
    };
    assert_eq!(
        builder("foreign").evaluate(&snapshot),
        OK,
        "granted in the other organization"
    );
    let closed = staffed().org("rival").contract("closed").snapshot();
    let builder = call(&closed, "guest", "bond")
        .account("bond", CODE)
        .account("closed", CODE);
    assert_eq!(builder.evaluate(&closed), Err(DENIED));
}

/// HD29: a caller may enter a contract of the own organization without a grant (X6), but not read it.
#[test]
fn rt5_probing_code_must_not_enter_contracts_without_grant() {
    let snapshot = staffed().snapshot();
    let run = |user: &str, code: &'static [u8], inner: &'static [u8]| {
        let builder = call(&snapshot, user, "bond")
            .account("bond", code)
            .frame(1, FrameKind::StaticCall, "ledger");
        builder.account("ledger", inner).evaluate(&snapshot)
    };
    for probing in [PROBING, COPYING, &[0x5f, 0x3f]] {
        assert_eq!(run("analyst", probing, CODE), Err(DENIED), "{probing:?}");
        assert_eq!(run("analyst", CODE, probing), Err(DENIED), "{probing:?}");
        assert_eq!(run("holder", probing, CODE), OK, "{probing:?}");
    }
    assert_eq!(
        run("analyst", SIZING, CODE),
        OK,
        "compilers emit EXTCODESIZE before every call"
    );
    // The rule also applies to init code and to the deployed code.
    let created = |init: &'static [u8], runtime: &'static [u8]| {
        let builder = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "ledger");
        let builder = builder
            .account("ledger", CODE)
            .frame(1, FrameKind::Create2, "new")
            .input(init);
        builder
            .edit(|frame| frame.output = Bytes::from_static(runtime))
            .evaluate(&snapshot)
    };
    assert_eq!(created(CODE, CODE), Ok(vec![address_of("new")]));
    assert_eq!(created(COPYING, CODE), Err(DENIED));
    assert_eq!(created(CODE, PROBING), Err(DENIED));
}

/// HD29: a creation reveals whether its address is in use.
#[test]
fn rt5_creating_at_the_address_of_a_contract_needs_the_right_to_read_it() {
    let snapshot = bank().snapshot();
    let builder = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create2, "ledger")
        .failed();
    assert_eq!(builder.account("ledger", CODE).evaluate(&snapshot), Err(DENIED));
}

/// HD29: EXTCODECOPY of a wallet would reveal its EIP-7702 delegate, so the verdict is the same for plain and
/// delegated wallets.
#[test]
fn rt15_the_delegate_of_a_foreign_wallet_is_not_revealed() {
    let snapshot = bank().snapshot();
    let run = |code: &'static [u8], wallet: Vec<u8>| {
        call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .account("somebody", wallet)
            .evaluate(&snapshot)
    };
    for wallet in [
        Vec::new(),
        delegating("foreign"),
        delegating("ledger"),
        delegating("nobodys"),
    ] {
        assert_eq!(run(COPYING, wallet.clone()), Err(DenyReason::Unregistered));
        assert_eq!(run(SIZING, wallet), OK);
    }
    let own = call(&snapshot, "analyst", "bond")
        .account("bond", COPYING)
        .wallet("analyst-wallet");
    assert_eq!(own.evaluate(&snapshot), OK, "a wallet of the caller");
}

fn call_at(snapshot: &Snapshot, user: &str, to: &str, block: BlockId) -> TraceBuilder {
    let mut call = simulate(SimulationKind::Call, address_of(to), [1, 2, 3, 4]);
    if let gw_evm::Call::Simulate(simulation) = &mut call {
        simulation.block = block;
    }
    let permit = permit(request_as(snapshot, user).call(Method::Call, &call));
    trace_builder(permit, Address::ZERO, FrameKind::Call, Some(to)).account(to, CODE)
}

/// HD29, H1: an org admin reads the history of contracts of the own organization, but not of another one where the
/// admin only has a grant.
#[test]
fn rt7_history_in_a_trace_depends_on_the_rights_in_the_organization_of_each_contract() {
    let since = NOW.minus(Seconds(100));
    let world = bank()
        .contract("bought")
        .since(since)
        .grant("analysts")
        .org("rival")
        .group("chiefs")
        .org_admin()
        .every_method()
        .contract("entry")
        .grant("chiefs")
        .user("chief")
        .member("rival/chiefs")
        .member("bank/analysts");
    let snapshot = world.snapshot();
    let run = |block, number, time, name: &str| {
        let builder = call_at(&snapshot, "chief", "entry", block)
            .frame(1, FrameKind::Call, name)
            .account(name, CODE);
        builder.evaluate_at(&snapshot, number, time)
    };
    let touch = |block, number, time, name: &str| {
        call_at(&snapshot, "chief", "entry", block)
            .account(name, CODE)
            .evaluate_at(&snapshot, number, time)
    };
    let (old, recent) = (BlockId::Number(1), BlockId::Number(HEAD - 1));
    let hash = BlockId::Hash {
        hash: B256::repeat_byte(1),
        require_canonical: false,
    };
    let before = since.minus(Seconds(1));
    let denied = Err(DenyReason::HistoryNotPermitted);
    for evaluate in [&run as &dyn Fn(_, _, _, &str) -> _, &touch] {
        for (block, number) in [(old, 1), (hash, 1), (BlockId::Tag(BlockTag::Earliest), 0)] {
            assert_eq!(evaluate(block, number, NOW, "bond"), denied, "{block:?}");
            assert_eq!(evaluate(block, number, NOW, "foreign"), OK, "{block:?}");
        }
        assert_eq!(
            evaluate(recent, HEAD - 1, before, "bought"),
            denied,
            "owned by somebody else at that block"
        );
        assert_eq!(evaluate(recent, HEAD - 1, since, "bought"), OK);
        assert_eq!(evaluate(BlockId::LATEST, HEAD, before, "bought"), OK, "the head");
    }
}

/// HD29: `safe` and `finalized` are past blocks, which are evaluated like their numbers.
#[test]
fn rt8_safe_and_finalized_are_history() {
    let since = NOW.minus(Seconds(100));
    let snapshot = bank().contract("bought").since(since).grant("analysts").snapshot();
    let run = |tag, number, time| {
        call_at(&snapshot, "analyst", "bought", BlockId::Tag(tag)).evaluate_at(&snapshot, number, time)
    };
    let before = since.minus(Seconds(1));
    let denied = Err(DenyReason::HistoryNotPermitted);
    for tag in [BlockTag::Safe, BlockTag::Finalized] {
        assert_eq!(
            run(tag, HEAD - 1, before),
            denied,
            "{tag:?}: owned by somebody else at that block"
        );
        assert_eq!(
            run(tag, HEAD - 65, since),
            denied,
            "{tag:?}: too old for everybody except administrators"
        );
        assert_eq!(run(tag, HEAD - 64, since), OK, "{tag:?}");
        assert_eq!(run(tag, HEAD, before), OK, "{tag:?}: a chain with instant finality");
    }
    assert_eq!(run(BlockTag::Pending, HEAD, before), OK, "means the head (HD11)");
}

/// HD29, H1: the present owner of a wallet that somebody else had proved does not read its history before that, in
/// traces either. Org admin rights do not apply to wallets.
#[test]
fn rt8_the_history_of_a_second_hand_wallet_is_closed_to_its_new_owner() {
    let snapshot = staffed()
        .user("seller")
        .unlinked("second-hand")
        .user("admin")
        .link("second-hand")
        .snapshot();
    let linked = gw_policy::testing::PAST;
    let run = |time| {
        let builder = call_at(&snapshot, "admin", "bond", BlockId::Number(HEAD - 1)).wallet("second-hand");
        builder.account("bond", PROBING).evaluate_at(&snapshot, HEAD - 1, time)
    };
    assert_eq!(run(linked), OK);
    assert_eq!(run(linked.minus(Seconds(1))), Err(DenyReason::HistoryNotPermitted));
}

/// HD29, X7: a creation by a factory needs the deploy claim in the organization of the factory.
#[test]
fn rt7_the_deploy_claim_must_be_of_the_organization_of_the_factory() {
    let world = bank()
        .contract("factory")
        .grant("analysts")
        .org("rival")
        .group("makers")
        .every_method()
        .claim(Claim::Deploy)
        .contract("entry")
        .grant("makers")
        .user("maker")
        .member("rival/makers")
        .member("bank/analysts");
    let run = |world: World| {
        let snapshot = world.snapshot();
        let builder = call(&snapshot, "maker", "entry")
            .account("entry", CODE)
            .frame(1, FrameKind::Call, "factory");
        builder
            .account("factory", CODE)
            .frame(2, FrameKind::Create, "new")
            .evaluate(&snapshot)
    };
    assert_eq!(run(world.clone()), Err(DenyReason::DeployClaimRequired));
    assert_eq!(
        run(world.user("maker").member("bank/deployers")),
        Ok(vec![address_of("new")])
    );
}

/// A forwarder and a beacon that the caller has grants on, and an implementation. `claim`: whether the caller may
/// upgrade the beacon.
fn upgrades(claim: bool) -> Snapshot {
    let world = bank()
        .contract("forwarder")
        .grant("analysts")
        .contract("beacon")
        .grant("analysts");
    let world = if claim {
        world.grant_claim(Claim::Upgrade)
    } else {
        world
    };
    world.contract("better").snapshot()
}

fn implementation(name: &str) -> B256 {
    address_of(name).into_word()
}

/// HD29, U1: upgrade functions, in every frame that is not undone.
#[test]
fn rt30_an_upgrade_in_an_inner_frame_needs_the_claim_and_an_own_implementation() {
    let (without_claim, with_claim) = (upgrades(false), upgrades(true));
    let run = |snapshot: &Snapshot, signature: &str, new: &str, undone: bool| {
        let input = calldata(signature, [implementation(new), B256::ZERO, B256::ZERO]);
        let builder = send(snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let builder = builder
            .frame(1, FrameKind::Call, "beacon")
            .input(input)
            .account("beacon", CODE);
        let builder = if undone {
            builder.failed()
        } else {
            builder.writes("beacon", B256::with_last_byte(1))
        };
        builder.evaluate(snapshot)
    };
    let denied = Err(DenyReason::UpgradeClaimRequired);
    for signature in [
        "upgradeTo(address)",
        "upgradeToAndCall(address,bytes)",
        "setImplementation(address)",
        "upgradeBeaconToAndCall(address,bytes,bool)",
        "upgradeBeaconTo(address)",
    ] {
        assert_eq!(run(&without_claim, signature, "better", false), denied, "{signature}");
        assert_eq!(run(&with_claim, signature, "better", false), OK, "{signature}");
        for foreign in ["foreign", "nobodys"] {
            assert_eq!(
                run(&with_claim, signature, foreign, false),
                denied,
                "{signature} {foreign}"
            );
        }
        assert_eq!(
            run(&without_claim, signature, "better", true),
            OK,
            "{signature}: undone"
        );
    }
    // By a library in the context of the contract.
    let builder = send(&without_claim, "analyst", Some("forwarder")).account("forwarder", CODE);
    let builder = builder
        .frame(1, FrameKind::Call, "beacon")
        .account("beacon", CODE)
        .frame(2, FrameKind::DelegateCall, "better");
    let builder = builder
        .input(calldata("upgradeTo(address)", [implementation("better")]))
        .account("better", CODE);
    assert_eq!(builder.evaluate(&without_claim), denied);
}

/// U2: an address that is written to an implementation slot must also be an own contract.
#[test]
fn rt30_a_proxy_slot_takes_own_implementations_only() {
    let snapshot = upgrades(true);
    let run = |slot, value: B256| {
        let builder = send(&snapshot, "analyst", Some("beacon")).account("beacon", CODE);
        builder.writes_word("beacon", slot, value).evaluate(&snapshot)
    };
    let denied = Err(DenyReason::UpgradeClaimRequired);
    for slot in [IMPLEMENTATION_SLOT, BEACON_SLOT] {
        assert_eq!(run(slot, implementation("better")), OK);
        for foreign in ["foreign", "nobodys", "analyst-wallet"] {
            assert_eq!(run(slot, implementation(foreign)), denied, "{foreign}");
        }
    }
    // The admin of a proxy may be a wallet; only the claim is required.
    assert_eq!(run(ADMIN_SLOT, implementation("analyst-wallet")), OK);
}

/// U2: a beacon may store its implementation in any slot. Code with the selector of `implementation()` and without
/// delegation counts as a beacon or as the administrator of one.
#[test]
fn rt30_a_beacon_is_upgraded_by_any_function_that_writes_an_address() {
    let (without_claim, with_claim) = (upgrades(false), upgrades(true));
    // PUSH4 implementation(), EQ
    let beacon: &[u8] = &[0x63, 0x5c, 0x60, 0xda, 0x1b, 0x14];
    let proxy = [beacon, &[0x5f, 0xf4]].concat();
    let run = |snapshot: &Snapshot, code: &[u8], value: B256| {
        let builder = send(snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let builder = builder
            .frame(1, FrameKind::Call, "beacon")
            .account("beacon", code.to_vec());
        builder
            .writes_word("beacon", B256::with_last_byte(1), value)
            .evaluate(snapshot)
    };
    assert_eq!(
        run(&without_claim, beacon, implementation("better")),
        Err(DenyReason::UpgradeClaimRequired)
    );
    assert_eq!(run(&with_claim, beacon, implementation("better")), OK);
    assert_eq!(
        run(&without_claim, beacon, B256::from(U256::from(7))),
        OK,
        "not an address"
    );
    assert_eq!(run(&without_claim, CODE, implementation("better")), OK, "not a beacon");
    assert_eq!(
        run(&without_claim, &proxy, implementation("better")),
        OK,
        "the storage of a proxy belongs to its implementation"
    );
}

/// U2: the facets of a diamond must be own contracts.
#[test]
fn rt30_a_diamond_takes_own_facets_only() {
    let snapshot = upgrades(true);
    let cut = |facet: &str| {
        let number = |n: u64| B256::from(U256::from(n));
        let words = [
            number(0x60),
            B256::ZERO,
            number(0x140),
            number(1),
            number(0x20),
            implementation(facet),
            B256::ZERO,
            number(0x60),
            number(1),
            B256::right_padding_from(&[0xa9, 0x05, 0x9c, 0xbb]),
            B256::ZERO,
        ];
        let input = [&DIAMOND_CUT[..], words.concat().as_slice()].concat();
        let builder = send(&snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let builder = builder
            .frame(1, FrameKind::Call, "beacon")
            .input(input)
            .account("beacon", CODE);
        builder.writes("beacon", keccak256("anything")).evaluate(&snapshot)
    };
    assert_eq!(cut("better"), OK);
    for foreign in ["foreign", "nobodys"] {
        assert_eq!(cut(foreign), Err(DenyReason::UpgradeClaimRequired), "{foreign}");
    }
}

/// HD39: if the request names an organization, rights in other organizations allow no frame and no touch.
#[test]
fn rt28_a_trace_with_a_named_organization_has_the_rights_of_that_organization_only() {
    let snapshot = bank().user("ops").member("rival/members").snapshot();
    let creation = |org: &str| {
        let request = gw_evm::CallRequest {
            input: Bytes::from_static(&[1, 2, 3, 4]),
            ..Default::default()
        };
        let kind = SimulationKind::Call;
        let call = gw_evm::Call::Simulate(Box::new(gw_evm::Simulation {
            kind,
            request,
            block: BlockId::LATEST,
        }));
        let permit = permit(request_as(&snapshot, "ops").in_org(org).call(Method::Call, &call));
        trace_builder(permit, Address::ZERO, FrameKind::Create, None)
    };
    let bond = creation("bank")
        .frame(1, FrameKind::StaticCall, "bond")
        .account("bond", CODE);
    assert_eq!(bond.evaluate(&snapshot), OK);
    let run = creation("bank")
        .frame(1, FrameKind::StaticCall, "foreign")
        .account("foreign", CODE);
    assert_eq!(run.evaluate(&snapshot), Err(DenyReason::CrossOrg));
    assert_eq!(
        creation("bank").account("foreign", CODE).evaluate(&snapshot),
        Err(DenyReason::CrossOrg)
    );
}

/// X8: the toggle decides whether frames need grants. Touches always need them.
#[test]
fn rt5_a_touch_needs_a_grant_with_and_without_the_toggle() {
    for world in [
        staffed(),
        staffed().toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE),
    ] {
        let snapshot = world.snapshot();
        let builder = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account("ledger", CODE);
        assert_eq!(builder.evaluate(&snapshot), Err(DENIED));
    }
}
