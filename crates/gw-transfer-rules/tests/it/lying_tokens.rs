//! Tokens whose events, calls and storage contradict each other: no lie lowers an amount.

use crate::support::{
    ALICE, BOB, COIN, NFT, ROUTER, SENDER, Sent,
    calldata::{transfer, transfer_from},
    run::{Run, mapping_slot, nested_slot, vyper_slot},
    units,
};
use alloy_primitives::{B256, b256, keccak256};
use gw_transfer_rules::{Token, flow::gains};
use gw_types::{Address, U256};

/// A call of a priced token that pays Alice.
fn paying(amount: u64) -> (Sent, Run) {
    let input = transfer(ALICE, amount);
    (
        Sent::call(COIN, 0, input.clone()).priced(COIN),
        Run::call(COIN, 0, input),
    )
}

/// What Alice gains of the coin.
fn gain(sent: &Sent, address: Address) -> U256 {
    let gains = gains(sent.effects().runs());
    let amounts = gains.get(&address).map(|gains| &gains.amounts);
    amounts
        .and_then(|amounts| amounts.get(&Token::Contract(COIN)))
        .copied()
        .unwrap_or_default()
}

/// The amount that Alice gains if the top-level call orders `ordered` and the run has this evidence.
fn alice_gains(ordered: u64, run: impl FnOnce(Run) -> Run) -> U256 {
    let (sent, start) = paying(ordered);
    gain(&sent.run(run(start)), ALICE)
}

/// CO-25: an honest transfer counts once, however many pieces of evidence show it.
#[test]
fn co25_order_log_and_storage_of_one_transfer_count_once() {
    let honest = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 100)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 100)
    };
    assert_eq!(alice_gains(100, honest), units(100));
    assert_eq!(
        alice_gains(100, |run| run.transfer(COIN, SENDER, ALICE, 100)),
        units(100)
    );
    assert_eq!(alice_gains(100, |run| run), units(100), "movement without events");
}

/// CO-25: a token that keeps a fee moves what its storage and logs show, not what was ordered.
#[test]
fn co25_a_fee_on_transfer_is_not_received() {
    let run = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 98)
            .transfer(COIN, SENDER, BOB, 2)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 98)
            .holding(COIN, 0, BOB, 0, 2)
    };
    assert_eq!(alice_gains(100, run), units(98));
    // If the storage is not readable, what was ordered counts.
    let unreadable = |run: Run| run.transfer(COIN, SENDER, ALICE, 98).transfer(COIN, SENDER, BOB, 2);
    assert_eq!(alice_gains(100, unreadable), units(100));
}

/// CO-25: events that say less than the storage do not lower the amount, in the layouts of the known compilers.
#[test]
fn co25_storage_that_shows_more_than_the_logs_counts() {
    let solady = |holder: Address| {
        let seed = [0, 0, 0, 0, 0, 0, 0, 0, 0x87, 0xa2, 0x11, 0xa2];
        keccak256([holder.as_slice(), &seed].concat())
    };
    let erc7201 = b256!("52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00");
    type Slot<'a> = Box<dyn Fn(Address) -> B256 + 'a>;
    let mut layouts: Vec<Slot<'_>> = vec![Box::new(solady), Box::new(move |holder| nested_slot(erc7201, holder))];
    for position in [0, 2, 9, 31, 51, 101, 251] {
        layouts.push(Box::new(move |holder| mapping_slot(position, holder)));
    }
    for position in [0, 1, 31] {
        layouts.push(Box::new(move |holder| vyper_slot(position, holder)));
    }
    for (index, slot) in layouts.iter().enumerate() {
        let lie = |run: Run| {
            run.transfer(COIN, SENDER, ALICE, 1)
                .slot(COIN, slot(SENDER), 500, 400)
                .slot(COIN, slot(ALICE), 7, 107)
        };
        assert_eq!(alice_gains(1, lie), units(100), "layout {index}");
    }
    // A position that nobody uses is not tried.
    let unknown = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 1)
            .holding(COIN, 40, SENDER, 500, 400)
            .holding(COIN, 40, ALICE, 7, 107)
    };
    assert_eq!(alice_gains(1, unknown), units(1));
}

/// CO-25: events without movement count, because they may be all that is readable.
#[test]
fn co25_events_without_movement_count() {
    assert_eq!(alice_gains(0, |run| run.transfer(COIN, SENDER, ALICE, 100)), units(100));
}

/// CO-25: a false event that takes tokens away does not lower what the storage shows.
#[test]
fn co25_a_false_outflow_does_not_hide_an_inflow() {
    let lie = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 100)
            .transfer(COIN, ALICE, SENDER, 100)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 100)
    };
    assert_eq!(alice_gains(100, lie), units(100));
}

/// CO-25: an event that names another recipient does not hide the real one.
#[test]
fn co25_a_false_recipient_does_not_hide_the_real_one() {
    let input = [0x12, 0x34, 0x56, 0x78];
    let run = Run::call(COIN, 0, input)
        .transfer(COIN, SENDER, SENDER, 100)
        .holding(COIN, 3, SENDER, 500, 400)
        .holding(COIN, 3, BOB, 0, 100)
        .frame(gw_evm::trace::FrameKind::StaticCall, COIN, BOB, 0);
    let sent = Sent::call(COIN, 0, input).priced(COIN).run(run);
    assert_eq!(gain(&sent, BOB), units(100));
}

/// CO-25: what holders lose and no known holder gains counts for the token contract.
#[test]
fn co25_a_hidden_recipient_is_counted_as_the_token_contract() {
    let input = [0x12, 0x34, 0x56, 0x78];
    let run = || Run::call(COIN, 0, input).holding(COIN, 0, SENDER, 500, 400);
    let effects = |run: Run| Sent::call(COIN, 0, input).priced(COIN).run(run);
    assert_eq!(gain(&effects(run()), COIN), units(100));
    // A burn that the token logs explains the loss.
    let zero = Address::ZERO;
    assert_eq!(
        gain(&effects(run().transfer(COIN, SENDER, zero, 100)), COIN),
        U256::ZERO
    );
    assert_eq!(gain(&effects(run().transfer(COIN, SENDER, zero, 60)), COIN), units(40));
    // Nor does a balance of the zero address, to which burned tokens go, explain a loss twice.
    let credited = run().transfer(COIN, SENDER, zero, 60).holding(COIN, 0, zero, 0, 60);
    assert_eq!(gain(&effects(credited), COIN), units(40));
    // A mint elsewhere does not explain more.
    let minted = run().transfer(COIN, SENDER, zero, 60).transfer(COIN, zero, SENDER, 10);
    assert_eq!(gain(&effects(minted), COIN), units(50));
}

/// CO-25: numbers of holders that only rise are no balances: times, counters and checkpoints.
#[test]
fn co25_counters_and_times_are_no_balances() {
    let counted = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 100)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 100)
            .holding(COIN, 5, SENDER, 0, 1_700_000_000)
            .holding(COIN, 5, ALICE, 1, 1_700_000_000)
    };
    assert_eq!(alice_gains(100, counted), units(100));
}

/// CO-25: if two mappings look like balances, the one that shows more counts, not their sum.
#[test]
fn co25_the_larger_of_two_mappings_counts() {
    let both = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 10)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 100)
            .holding(COIN, 8, SENDER, 500, 300)
            .holding(COIN, 8, ALICE, 0, 200)
    };
    assert_eq!(alice_gains(10, both), units(200));
}

/// CO-25: a rebasing token that counts in shares is logged in tokens; the larger number counts.
#[test]
fn co25_shares_below_the_amount_do_not_lower_it() {
    let shares = |run: Run| {
        run.transfer(COIN, SENDER, ALICE, 100)
            .holding(COIN, 0, SENDER, 500, 440)
            .holding(COIN, 0, ALICE, 0, 60)
    };
    assert_eq!(alice_gains(100, shares), units(100));
}

/// CO-25: the storage of a contract without a price is no evidence: the points of a game are no tokens.
#[test]
fn co25_mappings_of_other_contracts_are_not_read() {
    let input = [0x12, 0x34, 0x56, 0x78];
    let run = || {
        Run::call(COIN, 0, input)
            .holding(COIN, 0, SENDER, 500, 400)
            .holding(COIN, 0, ALICE, 0, 100)
            .pay(COIN, ALICE, 0)
    };
    assert!(Sent::call(COIN, 0, input).run(run()).effects().is_empty());
    assert_eq!(
        gain(&Sent::call(COIN, 0, input).priced(COIN).run(run()), ALICE),
        units(100)
    );
}

/// CO-25: the order of an inner call counts for a priced token without events, and only for one.
#[test]
fn co25_inner_calls_of_priced_tokens_are_orders() {
    let run = || {
        Run::call(ROUTER, 0, [])
            .pay(ROUTER, COIN, 0)
            .input(transfer_from(SENDER, ALICE, 100))
    };
    assert!(Sent::call(ROUTER, 0, []).run(run()).effects().is_empty());
    let sent = Sent::call(ROUTER, 0, []).priced(COIN).run(run());
    assert_eq!(sent.effect_lines(), ["Erc20 coin sender>alice 100 Calldata"]);
    // An inner call that was undone orders nothing.
    let undone = Sent::call(ROUTER, 0, []).priced(COIN).run(run().fails());
    assert!(undone.effects().is_empty());
}

/// CO-25: a token that trusts a forwarder logs another payer than the caller; order and log are still one transfer.
#[test]
fn co25_a_forwarded_transfer_counts_once() {
    let run = Run::call(ROUTER, 0, [])
        .pay(ROUTER, COIN, 0)
        .input(transfer(ALICE, 100))
        .transfer(COIN, BOB, ALICE, 100);
    let sent = Sent::call(ROUTER, 0, []).priced(COIN).run(run);
    assert_eq!(sent.effect_lines(), ["Erc20 coin bob>alice 100 Log"]);
}

/// CO-22: `transferFrom` of a collectible is an order of its id, not of that many tokens.
#[test]
fn co22_the_id_of_a_collectible_is_no_amount() {
    let input = transfer_from(SENDER, ALICE, 777);
    let run = Run::call(NFT, 0, input.clone()).collectible(NFT, SENDER, ALICE, 777);
    let sent = Sent::call(NFT, 0, input.clone()).run(run);
    assert_eq!(sent.effect_lines(), ["Erc721 nft#777 sender>alice 1 Log"]);
    // A log of another id is no answer to the order.
    let run = Run::call(NFT, 0, input.clone()).collectible(NFT, SENDER, ALICE, 778);
    let listed = Sent::call(NFT, 0, input).run(run).effect_lines();
    assert_eq!(listed.len(), 2);
}

/// The search of an ordinary transfer ends early: a call with many words costs nothing if all slots are explained.
#[test]
fn a_transfer_of_known_holders_needs_no_search() {
    let words: Vec<u8> = (0..500_u64)
        .flat_map(|index| {
            let mut word = B256::ZERO;
            word.0[12..].copy_from_slice(keccak256(index.to_be_bytes()).0[..20].as_ref());
            word.0
        })
        .collect();
    let input = [transfer_from(SENDER, ALICE, 100), words].concat();
    // The mapping of allowances does not follow that of balances.
    let allowance = nested_slot(mapping_slot(6, SENDER), SENDER);
    let run = Run::call(COIN, 0, input.clone())
        .transfer(COIN, SENDER, ALICE, 100)
        .holding(COIN, 3, SENDER, 500, 400)
        .holding(COIN, 3, ALICE, 0, 100)
        .slot(COIN, allowance, 100, 0)
        // A total supply.
        .slot(COIN, units(2).into(), 1, 2);
    assert_eq!(
        gain(&Sent::call(COIN, 0, input).priced(COIN).run(run), ALICE),
        units(100)
    );
}
