//! Creations in traces: X7, HD2, HD14, R1, B1.

use super::execution::{CODE, OK, bank, call, send};
use gw_evm::trace::{Frame, FrameKind};
use gw_policy::{
    PolicySettings, Snapshot,
    settings::Deployments,
    testing::{FUTURE, address_of},
};
use gw_types::{DenyReason, U256};

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
