//! Calls that contain calls.

use crate::support::{
    ALICE, BOB, COIN, ROUTER, SENDER, Sent,
    calldata::{Arg, aggregate3_value, call, multicall, packed, safe, transfer},
    run::Run,
    units,
};
use gw_transfer_rules::effects::{EffectsError, MAX_CONTAINED_CALLS, MAX_CONTAINER_DEPTH};
use gw_types::Address;

/// A contract account.
const WALLET: Address = Address::repeat_byte(0x3a);

/// The text of the effects of calldata, sent to the router.
fn effects_of(input: Vec<u8>) -> Vec<String> {
    Sent::call(ROUTER, 0, input).effect_lines()
}

fn tuple(members: Vec<Arg>) -> Arg {
    Arg::Array(vec![Arg::Tuple(members)])
}

/// CO-22: every container of the table is unpacked, and the account that runs it is the caller of its calls.
#[test]
fn co22_each_container_of_the_table_is_unpacked() {
    let pays = || Arg::Bytes(transfer(ALICE, 5));
    let coin = || Arg::from(COIN);
    let paid = "Erc20 coin router>alice 5 Calldata";
    let valued = "Native native router>coin 9 Calldata";
    let packed_calls = [packed(0, COIN, 9, &transfer(ALICE, 5)), packed(0, BOB, 1, &[])].concat();
    let execution = |mode: u8, content: Vec<u8>| {
        let mode: gw_types::U256 = units(mode.into()) << 248;
        call("execute(bytes32,bytes)", &[mode.into(), Arg::Bytes(content)])
    };
    let mut single = packed(0, COIN, 9, &[])[1..53].to_vec();
    single.extend(transfer(ALICE, 5));
    let batch = crate::support::calldata::encode(&[tuple(vec![coin(), 9.into(), pays()])]);
    let rows: Vec<(&str, Vec<u8>, Vec<&str>)> = vec![
        (
            "multicall",
            multicall(vec![transfer(ALICE, 5), transfer(BOB, 6)]),
            vec![
                "Erc20 router sender>alice 5 Calldata",
                "Erc20 router sender>bob 6 Calldata",
            ],
        ),
        (
            "multicall with deadline",
            call("multicall(uint256,bytes[])", &[1.into(), Arg::Array(vec![pays()])]),
            vec!["Erc20 router sender>alice 5 Calldata"],
        ),
        (
            "aggregate",
            call("aggregate((address,bytes)[])", &[tuple(vec![coin(), pays()])]),
            vec![paid],
        ),
        (
            "aggregate3",
            call(
                "aggregate3((address,bool,bytes)[])",
                &[tuple(vec![coin(), 1.into(), pays()])],
            ),
            vec![paid],
        ),
        (
            "aggregate3Value",
            aggregate3_value(vec![(COIN, 9, transfer(ALICE, 5))]),
            vec![valued, paid],
        ),
        (
            "Safe",
            safe(COIN, 9, transfer(ALICE, 5), 0, Address::ZERO),
            vec![valued, paid],
        ),
        (
            "Safe with multiSend",
            safe(
                BOB,
                0,
                call("multiSend(bytes)", &[Arg::Bytes(packed_calls)]),
                1,
                Address::ZERO,
            ),
            vec![valued, paid, "Native native router>bob 1 Calldata"],
        ),
        ("ERC-7579 single", execution(0, single), vec![valued, paid]),
        ("ERC-7579 batch", execution(1, batch), vec![valued, paid]),
        (
            "execute",
            call("execute(address,uint256,bytes)", &[coin(), 9.into(), pays()]),
            vec![valued, paid],
        ),
        (
            "executeBatch",
            call(
                "executeBatch((address,uint256,bytes)[])",
                &[tuple(vec![coin(), 9.into(), pays()])],
            ),
            vec![valued, paid],
        ),
        (
            "executeBatch of arrays",
            call(
                "executeBatch(address[],uint256[],bytes[])",
                &[
                    Arg::Words(vec![COIN.into_word().into()]),
                    Arg::Words(vec![units(9)]),
                    Arg::Array(vec![pays()]),
                ],
            ),
            vec![valued, paid],
        ),
    ];
    for (name, input, expected) in rows {
        assert_eq!(effects_of(input.clone()), expected, "{name}");
        // Without its last bytes the calldata is malformed, so its contract reverts. Those of a Safe are signatures.
        let cut = if name.starts_with("Safe") { 192 } else { 64 };
        let truncated = input[..input.len() - cut].to_vec();
        assert!(effects_of(truncated).is_empty(), "truncated {name}");
    }
}

/// CO-22: a contract that calls its own functions moves its value once.
#[test]
fn co22_the_value_of_a_multicall_counts_once() {
    let input = multicall(vec![transfer(ALICE, 5), transfer(BOB, 6)]);
    let expected = [
        "Native native sender>router 9 Calldata",
        "Erc20 router sender>alice 5 Calldata",
        "Erc20 router sender>bob 6 Calldata",
    ];
    assert_eq!(Sent::call(ROUTER, 9, input).effect_lines(), expected);
}

/// CO-22: the operations of `handleOps` are calls by the entry point to the accounts, in both versions; accounts pay.
#[test]
fn co22_user_operations_are_unpacked() {
    let execute = call(
        "execute(address,uint256,bytes)",
        &[COIN.into(), 9.into(), Arg::Bytes(transfer(ALICE, 5))],
    );
    let (factory, paymaster, collector) = (
        Address::repeat_byte(0xfa),
        Address::repeat_byte(0x9a),
        Address::repeat_byte(0xbe),
    );
    let contract = |address: Address| Arg::Bytes([address.as_slice(), &[1, 2, 3]].concat());
    let old = vec![
        WALLET.into(),
        0.into(),
        contract(factory),
        Arg::Bytes(execute.clone()),
        0.into(),
        0.into(),
        0.into(),
        0.into(),
        0.into(),
        contract(paymaster),
        Arg::Bytes(vec![]),
    ];
    let packed = vec![
        WALLET.into(),
        0.into(),
        contract(factory),
        Arg::Bytes(execute),
        0.into(),
        0.into(),
        0.into(),
        contract(paymaster),
        Arg::Bytes(vec![]),
    ];
    let old_type = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)";
    let packed_type = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)";
    for (operation_type, operation) in [(old_type, old), (packed_type, packed)] {
        let signature = format!("handleOps({operation_type}[],address)");
        let sent = Sent::call(ROUTER, 0, call(&signature, &[tuple(operation), collector.into()]));
        let expected = ["Native native 3a>coin 9 Calldata", "Erc20 coin 3a>alice 5 Calldata"];
        assert_eq!(sent.effect_lines(), expected);
        let effects = sent.effects();
        let has = |address, role| {
            let party = effects.parties().iter().find(|party| party.address == address);
            party.is_some_and(|party| party.role.as_str() == role)
        };
        assert!(has(collector, "recipient") && has(factory, "code") && has(paymaster, "code"));
    }
}

/// CO-33: a delegatecall moves no tokens of its target, whose code is screened; so is the refund receiver of a Safe.
#[test]
fn co33_a_delegatecall_names_the_code_that_runs() {
    let refund = Address::repeat_byte(0x4e);
    let sent = Sent::call(ROUTER, 0, safe(COIN, 9, transfer(ALICE, 5), 1, refund));
    assert!(sent.effect_lines().is_empty());
    let parties: Vec<_> = sent.effects().parties().iter().map(|party| party.address).collect();
    assert_eq!(parties, [SENDER, refund, ROUTER, COIN]);
}

/// CO-22: in a successful run the calls of a container are frames. They are valued once, and parties of calls that
/// were undone are screened.
#[test]
fn co22_a_container_is_not_counted_beside_its_run() {
    let input = aggregate3_value(vec![(ALICE, 3, vec![]), (BOB, 4, vec![])]);
    let run = Run::call(ROUTER, 7, input.clone())
        .pay(ROUTER, ALICE, 3)
        .pay(ROUTER, BOB, 4)
        .fails();
    let sent = Sent::call(ROUTER, 7, input).run(run);
    let expected = [
        "Native native sender>router 7 Frame",
        "Native native router>alice 3 Frame",
    ];
    assert_eq!(sent.effect_lines(), expected);
    let parties: Vec<_> = sent.effects().parties().iter().map(|party| party.address).collect();
    assert_eq!(parties, [SENDER, ROUTER, ALICE, BOB]);
}

/// CO-22: containers are unpacked to depth 8; beyond, the transaction is refused, also with a run.
#[test]
fn co22_containers_beyond_depth_8_are_refused() {
    let nested = |depth| (0..depth).fold(transfer(ALICE, 5), |inner, _| multicall(vec![inner]));
    let paid = ["Erc20 router sender>alice 5 Calldata"];
    assert_eq!(MAX_CONTAINER_DEPTH, 8);
    assert_eq!(effects_of(nested(8)), paid);
    let sent = Sent::call(ROUTER, 0, nested(9));
    assert_eq!(sent.try_effects(), Err(EffectsError::ContainersTooDeep));
    let sent = sent.run(Run::call(ROUTER, 0, nested(9)));
    assert_eq!(sent.try_effects(), Err(EffectsError::ContainersTooDeep));
}

/// CO-22: containers hold 256 calls in all; beyond, the transaction is refused.
#[test]
fn co22_more_than_256_contained_calls_are_refused() {
    let many = |count| multicall(vec![transfer(ALICE, 5); count]);
    assert_eq!(MAX_CONTAINED_CALLS, 256);
    assert_eq!(effects_of(many(256)).len(), 256);
    let refused = Err(EffectsError::TooManyContainedCalls);
    assert_eq!(Sent::call(ROUTER, 0, many(257)).try_effects(), refused);
    // Containers count, and so do the calls in them.
    let halves = |count| multicall(vec![many(128), many(count)]);
    assert_eq!(effects_of(halves(126)).len(), 254);
    assert_eq!(Sent::call(ROUTER, 0, halves(127)).try_effects(), refused);
    let packed_calls: Vec<u8> = (0..300).flat_map(|_| packed(0, BOB, 1, &[])).collect();
    let input = call("multiSend(bytes)", &[Arg::Bytes(packed_calls)]);
    assert_eq!(Sent::call(ROUTER, 0, input).try_effects(), refused);
}

/// CO-22: calls that share their bytes are counted one by one, so that a short calldata cannot cause much work.
#[test]
fn co22_shared_bytes_do_not_multiply_work() {
    // `multicall(bytes[])` of 4,000 elements that all lead to the same bytes: a `multicall` again.
    let inner = multicall(vec![transfer(ALICE, 5)]);
    let count = 4_000_u64;
    let mut input = alloy_primitives::keccak256("multicall(bytes[])")[..4].to_vec();
    let words = [32, count].into_iter().chain((0..count).map(|_| count * 32));
    input.extend(words.flat_map(|word| units(word).to_be_bytes::<32>()));
    input.extend(units(inner.len() as u64).to_be_bytes::<32>());
    input.extend(inner);
    let refused = Err(EffectsError::TooManyContainedCalls);
    assert_eq!(Sent::call(ROUTER, 0, input).try_effects(), refused);
}

/// CO-22: a container that reverts, because its encoding is wrong, holds nothing.
#[test]
fn co22_malformed_containers_hold_nothing() {
    let good = multicall(vec![transfer(ALICE, 5)]);
    for (position, value) in [(4, 1 << 40), (36, 2), (36, u64::MAX), (68, 1 << 30), (100, 1 << 20)] {
        let mut input = good.clone();
        input[position..position + 32].copy_from_slice(&units(value).to_be_bytes::<32>());
        assert!(effects_of(input).is_empty(), "{value} at {position}");
    }
    // The last transaction of a packed list is cut off.
    let cut = [packed(0, BOB, 1, &[]), packed(0, BOB, 1, &[])[..80].to_vec()].concat();
    assert!(effects_of(call("multiSend(bytes)", &[Arg::Bytes(cut)])).is_empty());
}
