//! Effects of a run: frames, logs, and the state diff of native balances.

use crate::support::{
    ALICE, BOB, COIN, NFT, ROUTER, SENDER, Sent,
    calldata::transfer,
    run::{Run, TRANSFER, words},
    units,
};
use alloy_primitives::{B256, b256};
use gw_evm::trace::FrameKind::{self, Call, CallCode, Create, Create2, DelegateCall, SelfDestruct, StaticCall};
use gw_types::Address;

const TRANSFER_SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
const TRANSFER_BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");
const APPROVAL: B256 = b256!("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925");
const APPROVAL_FOR_ALL: B256 = b256!("17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31");

/// The effects of a call of the router whose run continues like this.
fn effects_of(run: impl FnOnce(Run) -> Run) -> Vec<String> {
    Sent::call(ROUTER, 0, [])
        .run(run(Run::call(ROUTER, 0, [])))
        .effect_lines()
}

/// CO-22: value and token calldata together yield both effects.
#[test]
fn co22_value_and_token_calldata_are_both_effects() {
    let input = transfer(ALICE, 5);
    let run = Run::call(COIN, 9, input.clone()).transfer(COIN, SENDER, ALICE, 5);
    let effects = ["Native native sender>coin 9 Frame", "Erc20 coin sender>alice 5 Log"];
    assert_eq!(Sent::call(COIN, 9, input.clone()).run(run).effect_lines(), effects);
    // Without a run, and at a payable contract that ignores the calldata.
    let effects = [
        "Native native sender>coin 9 Calldata",
        "Erc20 coin sender>alice 5 Calldata",
    ];
    assert_eq!(Sent::call(COIN, 9, input.clone()).effect_lines(), effects);
    let effects = [
        "Native native sender>coin 9 Frame",
        "Erc20 coin sender>alice 5 Calldata",
    ];
    let run = Run::call(COIN, 9, input.clone());
    assert_eq!(Sent::call(COIN, 9, input).run(run).effect_lines(), effects);
}

/// CO-22: every instruction that moves value is an effect.
#[test]
fn co22_every_frame_with_value_is_a_native_effect() {
    let kinds: [(FrameKind, &[&str]); 7] = [
        (Call, &["Native native router>alice 3 Frame"]),
        (Create, &["Native native router>alice 3 Frame"]),
        (Create2, &["Native native router>alice 3 Frame"]),
        (SelfDestruct, &["Native native router>alice 3 Frame"]),
        // The parser of traces reports no value for these.
        (StaticCall, &[]),
        (DelegateCall, &[]),
        (CallCode, &[]),
    ];
    for (kind, expected) in kinds {
        let value = if expected.is_empty() { 0 } else { 3 };
        assert_eq!(
            effects_of(|run| run.frame(kind, ROUTER, ALICE, value)),
            expected,
            "{kind:?}"
        );
    }
}

/// CO-22: the value of the transaction counts even if the node does not report it in the top frame.
#[test]
fn co22_the_value_of_the_transaction_counts_without_the_node() {
    let sent = Sent::call(ALICE, 4, []).run(Run::call(ALICE, 0, []));
    assert_eq!(sent.effect_lines(), ["Native native sender>alice 4 Frame"]);
}

/// CO-23: frames that were undone have no effect, whether they failed or a frame above them did.
#[test]
fn co23_undone_frames_have_no_effect() {
    let effects = effects_of(|run| {
        run.pay(ROUTER, ALICE, 3)
            .transfer(COIN, ROUTER, ALICE, 1)
            .fails()
            .pay(ROUTER, BOB, 2)
            .transfer(COIN, ROUTER, BOB, 1)
    });
    let expected = ["Native native router>bob 2 Frame", "Erc20 coin router>bob 1 Log"];
    assert_eq!(effects, expected);
}

/// CO-23: a run that fails as a whole does not tell what the transaction will do, so its calldata counts.
#[test]
fn co23_a_failed_run_does_not_hide_what_the_calldata_orders() {
    let input = transfer(ALICE, 5);
    let run = Run::call(COIN, 2, input.clone()).fails();
    let expected = [
        "Native native sender>coin 2 Calldata",
        "Erc20 coin sender>alice 5 Calldata",
    ];
    assert_eq!(Sent::call(COIN, 2, input).run(run).effect_lines(), expected);
}

/// CO-22: the logs of the token standards.
#[test]
fn co22_logs_of_token_standards_are_effects() {
    let [sender, alice, router] = [SENDER, ALICE, ROUTER].map(|address| address.into_word());
    assert_eq!(
        effects_of(|run| run.transfer(COIN, SENDER, ALICE, 5)),
        ["Erc20 coin sender>alice 5 Log"]
    );
    assert_eq!(
        effects_of(|run| run.collectible(NFT, SENDER, ALICE, 77)),
        ["Erc721 nft#77 sender>alice 1 Log"]
    );
    let single = [TRANSFER_SINGLE, router, sender, alice];
    assert_eq!(
        effects_of(|run| run.log(NFT, &single, words(&[77, 5]))),
        ["Erc1155 nft#77 sender>alice 5 Log"]
    );
    let batch = [TRANSFER_BATCH, router, sender, alice];
    assert_eq!(
        effects_of(|run| run.log(NFT, &batch, words(&[64, 160, 2, 77, 78, 2, 5, 6]))),
        ["Erc1155 nft#77 sender>alice 5 Log", "Erc1155 nft#78 sender>alice 6 Log"]
    );
}

/// CO-22: allowances are effects without an amount; the same one by call and log counts once.
#[test]
fn co22_allowances_of_logs_and_inner_calls_are_effects() {
    let [sender, alice] = [SENDER, ALICE].map(|address| address.into_word());
    let approval = ["Approval coin sender>alice ? Log"];
    assert_eq!(
        effects_of(|run| run.log(COIN, &[APPROVAL, sender, alice], words(&[9]))),
        approval
    );
    assert_eq!(
        effects_of(|run| run.log(COIN, &[APPROVAL, sender, alice, alice], [])),
        approval
    );
    assert_eq!(
        effects_of(|run| run.log(COIN, &[APPROVAL_FOR_ALL, sender, alice], words(&[1]))),
        approval
    );
    let approve = crate::support::calldata::call("approve(address,uint256)", &[ALICE.into(), 9.into()]);
    assert_eq!(
        effects_of(|run| run.pay(ROUTER, COIN, 0).input(approve.clone())),
        ["Approval coin router>alice ? Calldata"]
    );
    let both = |run: Run| {
        let topics = [APPROVAL, ROUTER.into_word(), alice];
        run.pay(ROUTER, COIN, 0)
            .input(approve.clone())
            .log(COIN, &topics, words(&[9]))
    };
    assert_eq!(effects_of(both), ["Approval coin router>alice ? Log"]);
    // An ERC-721 contract clears an approval by approving the zero address.
    assert!(effects_of(|run| run.log(NFT, &[APPROVAL, sender, B256::ZERO, alice], [])).is_empty());
}

/// CO-22: a malformed log has parties and no amount. It neither panics nor lowers what others show.
#[test]
fn co22_a_malformed_log_has_no_amount() {
    let [sender, alice, router] = [SENDER, ALICE, ROUTER].map(|address| address.into_word());
    let unknown = ["Erc20 coin sender>alice ? Log"];
    for data in [vec![], vec![1; 31], vec![1; 33], words(&[5, 6])] {
        let topics = [TRANSFER, sender, alice];
        assert_eq!(
            effects_of(|run| run.log(COIN, &topics, data.clone())),
            unknown,
            "{data:?}"
        );
    }
    let mut dirty = alice;
    dirty.0[0] = 1;
    assert_eq!(
        effects_of(|run| run.log(COIN, &[TRANSFER, sender, dirty], words(&[5]))),
        unknown
    );
    let collectible = [TRANSFER, sender, alice, units(7).into()];
    assert_eq!(
        effects_of(|run| run.log(NFT, &collectible, words(&[1]))),
        ["Erc721 nft#7 sender>alice ? Log"]
    );
    let unknown = ["Erc1155 nft sender>alice ? Log"];
    let single = [TRANSFER_SINGLE, router, sender, alice];
    assert_eq!(effects_of(|run| run.log(NFT, &single, words(&[77]))), unknown);
    let batch = [TRANSFER_BATCH, router, sender, alice];
    for data in [
        words(&[64, 128, 1, 77, 2, 5, 6]),
        words(&[64, 1 << 40, 1, 77]),
        words(&[u64::MAX, 0]),
        vec![7; 5],
    ] {
        assert_eq!(
            effects_of(|run| run.log(NFT, &batch, data.clone())),
            unknown,
            "{data:?}"
        );
    }
    // Not a transfer by its topics.
    for topics in [
        vec![],
        vec![TRANSFER],
        vec![TRANSFER_SINGLE, sender],
        vec![TRANSFER_BATCH],
    ] {
        assert!(effects_of(|run| run.log(COIN, &topics, words(&[1, 2, 3]))).is_empty());
    }
}

/// CO-24: the beneficiary of a deployment with value is the address that the transaction's own nonce yields, whatever
/// nonce the run had.
#[test]
fn co24_a_deployment_pays_the_computed_address() {
    let (computed, traced) = (SENDER.create(7), SENDER.create(3));
    let run = Run::creation(traced, 6)
        .pay(traced, ALICE, 2)
        .transfer(traced, Address::ZERO, traced, 1);
    let effects = Sent::creation(6).run(run).effects();
    let run = &effects.runs()[0];
    let ends: Vec<_> = run
        .iter()
        .map(|effect| (effect.token.contract(), effect.from, effect.to))
        .collect();
    let zero = Address::ZERO;
    assert_eq!(
        ends,
        [
            (None, SENDER, computed),
            (None, computed, ALICE),
            (Some(computed), zero, computed)
        ]
    );
    assert_eq!(effects.target(), Some(computed));
    assert!(effects.parties().iter().all(|party| party.address != traced));
    // Without a run, or if it failed.
    for sent in [
        Sent::creation(6),
        Sent::creation(6).run(Run::creation(traced, 6).fails()),
    ] {
        let effects = sent.effects();
        assert_eq!(effects.runs()[0][0].to, computed);
        assert_eq!(effects.runs()[0].len(), 1, "init code orders nothing");
    }
}

/// CO-22: an account that gained more than the frames show gained the difference, except from fees.
#[test]
fn co22_a_balance_that_rises_beyond_the_frames_counts() {
    let run = || Run::call(ROUTER, 0, []).pay(ROUTER, ALICE, 3);
    let effects_of_run = |run: Run| Sent::call(ROUTER, 0, []).run(run).effect_lines();
    let paid = "Native native router>alice 3 Frame";
    assert_eq!(
        effects_of_run(run().balance(ALICE, 10, 13).balance(ROUTER, 5, 2)),
        [paid]
    );
    assert_eq!(
        effects_of_run(run().balance(ALICE, 10, 15)),
        [paid, "Native native sender>alice 2 BalanceDiff"]
    );
    // A payout that no frame shows.
    assert_eq!(
        effects_of_run(run().balance(BOB, 0, 4)),
        [paid, "Native native sender>bob 4 BalanceDiff"]
    );
    // What the account gave does not hide what it gained.
    assert_eq!(
        effects_of_run(run().pay(ALICE, BOB, 3).balance(ALICE, 10, 12)),
        [
            paid,
            "Native native alice>bob 3 Frame",
            "Native native sender>alice 2 BalanceDiff"
        ]
    );
    // Less than the frames show: the frames count.
    assert_eq!(effects_of_run(run().balance(ALICE, 10, 11)), [paid]);
    // The sender pays the fee, and others receive it.
    let mut sent = Sent::call(ROUTER, 0, []).run(run().balance(BOB, 1, 9).balance(SENDER, 1, 9));
    sent.fee_recipients = vec![BOB];
    assert_eq!(sent.effect_lines(), [paid]);
}

/// CO-22: the effects of both runs of a send are listed; a common one is listed once.
#[test]
fn co22_all_runs_are_listed() {
    let run = |amount| Run::call(ROUTER, 0, []).pay(ROUTER, ALICE, 3).pay(ROUTER, BOB, amount);
    let sent = Sent::call(ROUTER, 0, []).run(run(1)).run(run(2).pay(ROUTER, ALICE, 3));
    let expected = [
        "Native native router>alice 3 Frame",
        "Native native router>bob 1 Frame",
        "Native native router>bob 2 Frame",
        "Native native router>alice 3 Frame",
    ];
    assert_eq!(sent.effect_lines(), expected);
}
