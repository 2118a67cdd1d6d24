//! Rights inside a trace: a touch needs what the direct question needs (HD29, root of RT5 and RT15), and every contract is
//! judged by the caller's rights in its own organization (RT7, RT8, RT30).

use super::{
    execution::{CODE, OK, PROBING, Told, bank, call, send, told},
    support::{HEAD, ask, permit, simulate},
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
/// PUSH0, EXTCODESIZE: what compilers put before every call.
const SIZING: &[u8] = &[0x5f, 0x3b];

fn delegating(to: &str) -> Vec<u8> {
    [&[0xef, 0x01, 0x00][..], address_of(to).as_slice()].concat()
}

/// The bank with an administrator, a colleague granted everything, and a guest: somebody of the rival with one grant here.
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

/// HD29: BALANCE, EXTCODE* and the beneficiary of a SELFDESTRUCT are reads of an account: without a grant on it the
/// direct question is denied or zero, and so is this one.
#[test]
fn rt5_touching_an_own_contract_needs_the_right_to_ask_for_it() {
    let snapshot = staffed().snapshot();
    let touch = |user: &str| {
        call(&snapshot, user, "bond")
            .account("bond", CODE)
            .account("ledger", CODE)
            .judge(&snapshot)
    };
    let heir = |user: &str| {
        let told = call(&snapshot, user, "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::SelfDestruct, "ledger");
        told.account("ledger", CODE).judge(&snapshot)
    };
    for refused in ["analyst", "guest"] {
        assert_eq!(touch(refused), Err(DENIED), "{refused}");
        assert_eq!(heir(refused), Err(DENIED), "{refused}");
    }
    for allowed in ["admin", "holder"] {
        assert_eq!(touch(allowed), OK, "{allowed}");
        assert_eq!(heir(allowed), OK, "{allowed}");
    }
    // Another organization the caller is in: the same rule, by the rights there.
    let told = |name: &str| {
        call(&snapshot, "guest", "bond")
            .account("bond", CODE)
            .account(name, CODE)
    };
    assert_eq!(told("foreign").judge(&snapshot), OK, "granted there");
    let closed = staffed().org("rival").contract("closed").snapshot();
    let told = call(&closed, "guest", "bond")
        .account("bond", CODE)
        .account("closed", CODE);
    assert_eq!(told.judge(&closed), Err(DENIED));
}

/// HD29: who enters a contract without a grant (X6) does not get to look at it besides.
#[test]
fn rt5_an_entered_contract_out_of_reach_and_probing_code_do_not_go_together() {
    let snapshot = staffed().snapshot();
    let run = |user: &str, code: &'static [u8], inner: &'static [u8]| {
        let told = call(&snapshot, user, "bond")
            .account("bond", code)
            .frame(1, FrameKind::StaticCall, "ledger");
        told.account("ledger", inner).judge(&snapshot)
    };
    for probing in [PROBING, COPYING, &[0x5f, 0x3f]] {
        assert_eq!(run("analyst", probing, CODE), Err(DENIED), "{probing:?}");
        assert_eq!(run("analyst", CODE, probing), Err(DENIED), "{probing:?}");
        assert_eq!(run("holder", probing, CODE), OK, "{probing:?}");
    }
    assert_eq!(run("analyst", SIZING, CODE), OK, "what stands before every call");
    // In init code and in what it leaves behind, too.
    let created = |init: &'static [u8], runtime: &'static [u8]| {
        let told = call(&snapshot, "ops", "bond")
            .account("bond", CODE)
            .frame(1, FrameKind::Call, "ledger");
        let told = told
            .account("ledger", CODE)
            .frame(1, FrameKind::Create2, "new")
            .input(init);
        told.edit(|frame| frame.output = Bytes::from_static(runtime))
            .judge(&snapshot)
    };
    assert_eq!(created(CODE, CODE), Ok(vec![address_of("new")]));
    assert_eq!(created(COPYING, CODE), Err(DENIED));
    assert_eq!(created(CODE, PROBING), Err(DENIED));
}

/// HD29: a creation says whether its address is taken.
#[test]
fn rt5_creating_over_a_contract_needs_the_right_to_ask_for_it() {
    let snapshot = bank().snapshot();
    let told = call(&snapshot, "ops", "bond")
        .account("bond", CODE)
        .frame(1, FrameKind::Create2, "ledger")
        .failed();
    assert_eq!(told.account("ledger", CODE).judge(&snapshot), Err(DENIED));
}

/// HD29: EXTCODECOPY of a wallet names its EIP-7702 delegate; a plain wallet and a delegated one give one answer.
#[test]
fn rt15_the_delegate_of_a_wallet_is_not_read() {
    let snapshot = bank().snapshot();
    let run = |code: &'static [u8], wallet: Vec<u8>| {
        call(&snapshot, "analyst", "bond")
            .account("bond", code)
            .account("somebody", wallet)
            .judge(&snapshot)
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
    assert_eq!(own.judge(&snapshot), OK, "one's own");
}

fn at(snapshot: &Snapshot, user: &str, to: &str, block: BlockId) -> Told {
    let mut call = simulate(SimulationKind::Call, address_of(to), [1, 2, 3, 4]);
    if let gw_evm::Call::Simulate(simulation) = &mut call {
        simulation.block = block;
    }
    let permit = permit(ask(snapshot, user).call(Method::Call, &call));
    told(permit, Address::ZERO, FrameKind::Call, Some(to)).account(to, CODE)
}

/// HD29, H1: whoever administers one organization reads the past of its contracts, not that of another organization's,
/// where they hold a plain grant.
#[test]
fn rt7_history_in_a_trace_is_by_the_rights_in_each_contracts_organization() {
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
        let told = at(&snapshot, "chief", "entry", block)
            .frame(1, FrameKind::Call, name)
            .account(name, CODE);
        told.judge_at(&snapshot, number, time)
    };
    let touch = |block, number, time, name: &str| {
        at(&snapshot, "chief", "entry", block)
            .account(name, CODE)
            .judge_at(&snapshot, number, time)
    };
    let (old, recent) = (BlockId::Number(1), BlockId::Number(HEAD - 1));
    let hash = BlockId::Hash {
        hash: B256::repeat_byte(1),
        require_canonical: false,
    };
    let before = since.minus(Seconds(1));
    let refused = Err(DenyReason::HistoryNotPermitted);
    for look in [&run as &dyn Fn(_, _, _, &str) -> _, &touch] {
        for (block, number) in [(old, 1), (hash, 1), (BlockId::Tag(BlockTag::Earliest), 0)] {
            assert_eq!(look(block, number, NOW, "bond"), refused, "{block:?}");
            assert_eq!(look(block, number, NOW, "foreign"), OK, "{block:?}");
        }
        assert_eq!(
            look(recent, HEAD - 1, before, "bought"),
            refused,
            "somebody else's then"
        );
        assert_eq!(look(recent, HEAD - 1, since, "bought"), OK);
        assert_eq!(look(BlockId::LATEST, HEAD, before, "bought"), OK, "the present");
    }
}

/// HD29: `safe` and `finalized` are blocks of the past: judged like their numbers.
#[test]
fn rt8_safe_and_finalized_are_history() {
    let since = NOW.minus(Seconds(100));
    let snapshot = bank().contract("bought").since(since).grant("analysts").snapshot();
    let run =
        |tag, number, time| at(&snapshot, "analyst", "bought", BlockId::Tag(tag)).judge_at(&snapshot, number, time);
    let before = since.minus(Seconds(1));
    let refused = Err(DenyReason::HistoryNotPermitted);
    for tag in [BlockTag::Safe, BlockTag::Finalized] {
        assert_eq!(run(tag, HEAD - 1, before), refused, "{tag:?}: somebody else's then");
        assert_eq!(
            run(tag, HEAD - 65, since),
            refused,
            "{tag:?}: too old for all but administrators"
        );
        assert_eq!(run(tag, HEAD - 64, since), OK, "{tag:?}");
        assert_eq!(run(tag, HEAD, before), OK, "{tag:?}: chains that finalize at once");
    }
    assert_eq!(run(BlockTag::Pending, HEAD, before), OK, "means the head (HD11)");
}

/// HD29, H1: the past of a wallet that somebody else had proved is not its present owner's, in a trace either, and nobody
/// administers a wallet.
#[test]
fn rt8_the_past_of_a_second_hand_wallet_is_its_former_owners() {
    let snapshot = staffed()
        .user("seller")
        .unlinked("second-hand")
        .user("admin")
        .link("second-hand")
        .snapshot();
    let linked = gw_policy::testing::PAST;
    let run = |time| {
        let told = at(&snapshot, "admin", "bond", BlockId::Number(HEAD - 1)).wallet("second-hand");
        told.account("bond", PROBING).judge_at(&snapshot, HEAD - 1, time)
    };
    assert_eq!(run(linked), OK);
    assert_eq!(run(linked.minus(Seconds(1))), Err(DenyReason::HistoryNotPermitted));
}

/// HD29, X7: a factory of another organization creates for those who may deploy there.
#[test]
fn rt7_the_deploy_claim_is_one_of_the_factorys_organization() {
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
        let told = call(&snapshot, "maker", "entry")
            .account("entry", CODE)
            .frame(1, FrameKind::Call, "factory");
        told.account("factory", CODE)
            .frame(2, FrameKind::Create, "new")
            .judge(&snapshot)
    };
    assert_eq!(run(world.clone()), Err(DenyReason::DeployClaimRequired));
    assert_eq!(
        run(world.user("maker").member("bank/deployers")),
        Ok(vec![address_of("new")])
    );
}

/// A forwarder that the caller was granted, a beacon and implementations, and whether the caller may upgrade the beacon.
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

/// HD29, U1: the functions that replace an implementation, in any frame that stays in force.
#[test]
fn rt30_an_upgrade_in_an_inner_frame_needs_the_claim_and_an_own_implementation() {
    let (without, with) = (upgrades(false), upgrades(true));
    let run = |snapshot: &Snapshot, signature: &str, new: &str, undone: bool| {
        let input = calldata(signature, [implementation(new), B256::ZERO, B256::ZERO]);
        let told = send(snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let told = told
            .frame(1, FrameKind::Call, "beacon")
            .input(input)
            .account("beacon", CODE);
        let told = if undone {
            told.failed()
        } else {
            told.writes("beacon", B256::with_last_byte(1))
        };
        told.judge(snapshot)
    };
    let refused = Err(DenyReason::UpgradeClaimRequired);
    for signature in [
        "upgradeTo(address)",
        "upgradeToAndCall(address,bytes)",
        "setImplementation(address)",
        "upgradeBeaconToAndCall(address,bytes,bool)",
        "upgradeBeaconTo(address)",
    ] {
        assert_eq!(run(&without, signature, "better", false), refused, "{signature}");
        assert_eq!(run(&with, signature, "better", false), OK, "{signature}");
        for foreign in ["foreign", "nobodys"] {
            assert_eq!(run(&with, signature, foreign, false), refused, "{signature} {foreign}");
        }
        assert_eq!(
            run(&without, signature, "better", true),
            OK,
            "{signature}: without effect"
        );
    }
    // By a library in the contract's own name.
    let told = send(&without, "analyst", Some("forwarder")).account("forwarder", CODE);
    let told =
        told.frame(1, FrameKind::Call, "beacon")
            .account("beacon", CODE)
            .frame(2, FrameKind::DelegateCall, "better");
    let told = told
        .input(calldata("upgradeTo(address)", [implementation("better")]))
        .account("better", CODE);
    assert_eq!(told.judge(&without), refused);
}

/// U2: what is written where an implementation stands is an own contract too.
#[test]
fn rt30_a_proxy_slot_takes_own_implementations_only() {
    let snapshot = upgrades(true);
    let run = |slot, value: B256| {
        let told = send(&snapshot, "analyst", Some("beacon")).account("beacon", CODE);
        told.writes_word("beacon", slot, value).judge(&snapshot)
    };
    let refused = Err(DenyReason::UpgradeClaimRequired);
    for slot in [IMPLEMENTATION_SLOT, BEACON_SLOT] {
        assert_eq!(run(slot, implementation("better")), OK);
        for wrong in ["foreign", "nobodys", "analyst-wallet"] {
            assert_eq!(run(slot, implementation(wrong)), refused, "{wrong}");
        }
    }
    // Who administers a proxy may be a wallet; the claim is what counts.
    assert_eq!(run(ADMIN_SLOT, implementation("analyst-wallet")), OK);
}

/// U2: a beacon keeps its implementation where it likes. What answers `implementation()` and delegates nothing is one, or
/// administers one.
#[test]
fn rt30_a_beacon_is_upgraded_by_any_function_that_writes_an_address() {
    let (without, with) = (upgrades(false), upgrades(true));
    // PUSH4 implementation(), EQ
    let beacon: &[u8] = &[0x63, 0x5c, 0x60, 0xda, 0x1b, 0x14];
    let proxy = [beacon, &[0x5f, 0xf4]].concat();
    let run = |snapshot: &Snapshot, code: &[u8], value: B256| {
        let told = send(snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let told = told
            .frame(1, FrameKind::Call, "beacon")
            .account("beacon", code.to_vec());
        told.writes_word("beacon", B256::with_last_byte(1), value)
            .judge(snapshot)
    };
    assert_eq!(
        run(&without, beacon, implementation("better")),
        Err(DenyReason::UpgradeClaimRequired)
    );
    assert_eq!(run(&with, beacon, implementation("better")), OK);
    assert_eq!(run(&without, beacon, B256::from(U256::from(7))), OK, "no address");
    assert_eq!(run(&without, CODE, implementation("better")), OK, "no beacon");
    assert_eq!(
        run(&without, &proxy, implementation("better")),
        OK,
        "a proxy's storage is its logic's"
    );
}

/// U2: the facets that a diamond is given are own contracts.
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
        let told = send(&snapshot, "analyst", Some("forwarder")).account("forwarder", CODE);
        let told = told
            .frame(1, FrameKind::Call, "beacon")
            .input(input)
            .account("beacon", CODE);
        told.writes("beacon", keccak256("anything")).judge(&snapshot)
    };
    assert_eq!(cut("better"), OK);
    for wrong in ["foreign", "nobodys"] {
        assert_eq!(cut(wrong), Err(DenyReason::UpgradeClaimRequired), "{wrong}");
    }
}

/// HD39: where the request names an organization, the others' rights open no frame and no touch.
#[test]
fn rt28_a_run_under_a_named_organization_has_its_rights_only() {
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
        let permit = permit(ask(&snapshot, "ops").naming(org).call(Method::Call, &call));
        told(permit, Address::ZERO, FrameKind::Create, None)
    };
    let bond = creation("bank")
        .frame(1, FrameKind::StaticCall, "bond")
        .account("bond", CODE);
    assert_eq!(bond.judge(&snapshot), OK);
    let run = creation("bank")
        .frame(1, FrameKind::StaticCall, "foreign")
        .account("foreign", CODE);
    assert_eq!(run.judge(&snapshot), Err(DenyReason::CrossOrg));
    assert_eq!(
        creation("bank").account("foreign", CODE).judge(&snapshot),
        Err(DenyReason::CrossOrg)
    );
}

/// X8: the toggle asks for grants in frames; touches need them always.
#[test]
fn rt5_a_touch_needs_its_grant_whatever_the_toggle_says() {
    for world in [
        staffed(),
        staffed().toggle(SystemToggle::IntraOrgGrantTracing, true, FUTURE),
    ] {
        let snapshot = world.snapshot();
        let told = call(&snapshot, "analyst", "bond")
            .account("bond", CODE)
            .account("ledger", CODE);
        assert_eq!(told.judge(&snapshot), Err(DENIED));
    }
}
