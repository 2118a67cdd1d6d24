//! Effects that calldata shows if there is no run.

use crate::support::{
    ALICE, BOB, COIN, SENDER, Sent,
    calldata::{Arg, call, transfer, transfer_from},
    units,
};
use gw_transfer_rules::effects::{Effects, Transaction};
use gw_types::Address;

/// The text of the effects of calldata, sent to the coin.
fn effects_of(input: Vec<u8>) -> Vec<String> {
    Sent::call(COIN, 0, input).effect_lines()
}

/// CO-22: every function of the table moves what its arguments say.
#[test]
fn co22_each_function_of_the_table_is_decoded() {
    let (alice, bob) = (|| Arg::from(ALICE), || Arg::from(BOB));
    let bytes = || Arg::Bytes(b"data".to_vec());
    let words = |values: &[u64]| Arg::Words(values.iter().map(|value| units(*value)).collect());
    let authorization = || {
        let mut arguments = vec![alice(), bob(), 5.into()];
        arguments.extend((0..6).map(Arg::from));
        arguments
    };
    let erc3009 = "(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
    let rows: Vec<(String, Vec<Arg>, Vec<&str>)> = vec![
        (
            "transfer(address,uint256)".into(),
            vec![bob(), 5.into()],
            vec!["Erc20 coin sender>bob 5 Calldata"],
        ),
        (
            "transferFrom(address,address,uint256)".into(),
            vec![alice(), bob(), 5.into()],
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            "safeTransferFrom(address,address,uint256)".into(),
            vec![alice(), bob(), 5.into()],
            vec!["Erc721 coin#5 alice>bob 1 Calldata"],
        ),
        (
            "safeTransferFrom(address,address,uint256,bytes)".into(),
            vec![alice(), bob(), 5.into(), bytes()],
            vec!["Erc721 coin#5 alice>bob 1 Calldata"],
        ),
        (
            "safeTransferFrom(address,address,uint256,uint256,bytes)".into(),
            vec![alice(), bob(), 5.into(), 6.into(), bytes()],
            vec!["Erc1155 coin#5 alice>bob 6 Calldata"],
        ),
        (
            "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)".into(),
            vec![alice(), bob(), words(&[5, 7]), words(&[6, 8]), bytes()],
            vec![
                "Erc1155 coin#5 alice>bob 6 Calldata",
                "Erc1155 coin#7 alice>bob 8 Calldata",
            ],
        ),
        (
            "send(address,uint256,bytes)".into(),
            vec![bob(), 5.into(), bytes()],
            vec!["Erc20 coin sender>bob 5 Calldata"],
        ),
        (
            "operatorSend(address,address,uint256,bytes,bytes)".into(),
            vec![alice(), bob(), 5.into(), bytes(), bytes()],
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            "transferAndCall(address,uint256,bytes)".into(),
            vec![bob(), 5.into(), bytes()],
            vec!["Erc20 coin sender>bob 5 Calldata"],
        ),
        (
            "transferAndCall(address,uint256)".into(),
            vec![bob(), 5.into()],
            vec!["Erc20 coin sender>bob 5 Calldata"],
        ),
        (
            "transferFromAndCall(address,address,uint256,bytes)".into(),
            vec![alice(), bob(), 5.into(), bytes()],
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            "transferFromAndCall(address,address,uint256)".into(),
            vec![alice(), bob(), 5.into()],
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            format!("transferWithAuthorization{erc3009}"),
            authorization(),
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            format!("receiveWithAuthorization{erc3009}"),
            authorization(),
            vec!["Erc20 coin alice>bob 5 Calldata"],
        ),
        (
            "approve(address,uint256)".into(),
            vec![bob(), 0.into()],
            vec!["Approval coin sender>bob ? Calldata"],
        ),
        (
            "increaseAllowance(address,uint256)".into(),
            vec![bob(), 5.into()],
            vec!["Approval coin sender>bob ? Calldata"],
        ),
        (
            "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)".into(),
            vec![alice(), bob(), 5.into(), 0.into(), 0.into(), 0.into(), 0.into()],
            vec!["Approval coin alice>bob ? Calldata"],
        ),
        (
            "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)".into(),
            vec![
                alice(),
                bob(),
                0.into(),
                0.into(),
                1.into(),
                0.into(),
                0.into(),
                0.into(),
            ],
            vec!["Approval coin alice>bob ? Calldata"],
        ),
        (
            "setApprovalForAll(address,bool)".into(),
            vec![bob(), 1.into()],
            vec!["Approval coin sender>bob ? Calldata"],
        ),
    ];
    for (signature, arguments, expected) in rows {
        let input = call(&signature, &arguments);
        assert_eq!(effects_of(input.clone()), expected, "{signature}");
        // Without the last word of the heads, nothing is decoded.
        let heads = 4 + 32 * arguments.len();
        assert!(
            effects_of(input[..heads - 1].to_vec()).is_empty(),
            "truncated {signature}"
        );
    }
}

/// CO-22: truncated calldata is no token transfer; longer calldata is one.
#[test]
fn co22_the_length_of_plain_transfers_decides() {
    let (to, from) = (transfer(BOB, 5), transfer_from(ALICE, BOB, 5));
    assert_eq!((to.len(), from.len()), (68, 100));
    for (input, length) in [(&to, 68), (&from, 100)] {
        assert_eq!(effects_of(input[..length].to_vec()).len(), 1);
        assert_eq!(effects_of(input[..length - 1].to_vec()).len(), 0);
        assert_eq!(effects_of([input.as_slice(), &[0; 7]].concat()).len(), 1);
    }
    for input in [vec![], vec![0xa9], vec![0xa9, 0x05, 0x9c, 0xbb]] {
        assert!(effects_of(input).is_empty());
    }
}

/// CO-22: dirty upper bytes of an address are ignored, as old compilers ignore them.
#[test]
fn co22_dirty_bytes_do_not_hide_a_recipient() {
    let mut input = transfer(BOB, 5);
    input[4..16].fill(0xff);
    assert_eq!(effects_of(input), ["Erc20 coin sender>bob 5 Calldata"]);
}

/// CO-22: arrays of different lengths revert, so they move nothing.
#[test]
fn co22_unequal_arrays_of_a_batch_move_nothing() {
    let words = |values: &[u64]| Arg::Words(values.iter().map(|value| units(*value)).collect());
    let signature = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)";
    let arguments = [
        ALICE.into(),
        BOB.into(),
        words(&[5, 7]),
        words(&[6]),
        Arg::Bytes(vec![]),
    ];
    assert!(effects_of(call(signature, &arguments)).is_empty());
}

/// CO-23: a plain payment to an address without code needs no run.
#[test]
fn co23_a_plain_payment_needs_no_run() {
    let sent = Sent::call(ALICE, 3, []);
    assert_eq!(sent.effect_lines(), ["Native native sender>alice 3 Calldata"]);
    let none = Sent::call(ALICE, 0, []).effects();
    assert!(none.is_empty());
    assert_eq!(none.runs().len(), 1);
}

/// The limits of effects hold, although a short calldata can order many by pointing at the same arrays.
#[test]
fn many_transfers_in_one_transaction_are_refused() {
    let words = |count| Arg::Words(vec![units(1); count]);
    let signature = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)";
    let batch = |count| {
        let arguments = [ALICE.into(), BOB.into(), words(count), words(count), Arg::Bytes(vec![])];
        call(signature, &arguments)
    };
    let calls = |count| crate::support::calldata::multicall(vec![batch(count); 200]);
    assert_eq!(Sent::call(COIN, 0, calls(300)).effects().runs()[0].len(), 60_000);
    let error = Sent::call(COIN, 0, calls(400)).try_effects().unwrap_err();
    assert_eq!(error, gw_transfer_rules::effects::EffectsError::TooManyEffects);
}

/// CO-33: an EIP-7702 authorization names its signer and its delegate; one without a valid signature its delegate.
#[test]
fn co33_authorizations_name_authority_and_delegate() {
    use alloy_eips::eip7702::{Authorization, SignedAuthorization};
    use alloy_signer::SignerSync as _;
    let wallet = alloy_signer_local::PrivateKeySigner::from_slice(&[7; 32]).unwrap();
    let authorization = |delegate, chain: u64| Authorization {
        chain_id: units(chain),
        address: delegate,
        nonce: 0,
    };
    let valid = authorization(ALICE, 0);
    let signature = wallet.sign_hash_sync(&valid.signature_hash()).unwrap();
    let mut sent = Sent::call(COIN, 0, []);
    sent.request.authorization_list = vec![
        valid.into_signed(signature),
        SignedAuthorization::new_unchecked(authorization(BOB, 99), 0, units(1), units(1)),
    ];
    let parties: Vec<_> = roles(&sent.effects());
    assert_eq!(
        parties,
        [
            ("sender", SENDER),
            ("called contract", COIN),
            ("authority", wallet.address()),
            ("delegate", ALICE),
            ("delegate", BOB),
        ]
    );
}

fn roles(effects: &Effects) -> Vec<(&'static str, Address)> {
    effects
        .parties()
        .iter()
        .map(|party| (party.role.as_str(), party.address))
        .collect()
}

/// The builder and the type agree on what a transaction is.
#[test]
fn an_empty_list_of_runs_is_a_transaction_without_a_run() {
    let sent = Sent::call(ALICE, 1, []);
    let tokens = Default::default();
    let effects = Effects::new(&Transaction {
        sender: SENDER,
        nonce: 0,
        request: &sent.request,
        chain: crate::support::CHAIN,
        runs: &[],
        fee_recipients: &[],
        balance_tokens: &tokens,
    });
    assert_eq!(effects, Ok(sent.effects()));
}
