//! Shared infrastructure in traces: X6, HD9.

use super::execution::{CODE, OK, PROBING, bank, call};
use gw_evm::trace::FrameKind;
use gw_policy::{Snapshot, testing::World};
use gw_types::{Bytes, DenyReason};

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
