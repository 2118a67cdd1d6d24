//! Encodes calldata. Arguments are written by hand, so that the tests do not share code with the decoder.

use alloy_primitives::{hex, keccak256};
use gw_types::{Address, U256};

/// Selectors of the table.
pub(crate) const KNOWN: [[u8; 4]; 18] = [
    hex!("a9059cbb"),
    hex!("23b872dd"),
    hex!("f242432a"),
    hex!("2eb2c2d6"),
    hex!("ac9650d8"),
    hex!("5ae401dc"),
    hex!("252dba42"),
    hex!("82ad56cb"),
    hex!("174dea71"),
    hex!("6a761202"),
    hex!("8d80ff0a"),
    hex!("e9ae5c53"),
    hex!("1fad948c"),
    hex!("765e827f"),
    hex!("b61d27f6"),
    hex!("34fcd5be"),
    hex!("47e1da2a"),
    hex!("d505accf"),
];

/// One argument.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// A static word.
    Word(U256),
    /// `bytes`
    Bytes(Vec<u8>),
    /// An array of static words.
    Words(Vec<U256>),
    /// An array of dynamic elements.
    Array(Vec<Arg>),
    /// A dynamic tuple.
    Tuple(Vec<Arg>),
}

impl From<u64> for Arg {
    fn from(number: u64) -> Self {
        Self::Word(U256::from(number))
    }
}

impl From<U256> for Arg {
    fn from(number: U256) -> Self {
        Self::Word(number)
    }
}

impl From<Address> for Arg {
    fn from(address: Address) -> Self {
        Self::Word(address.into_word().into())
    }
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// `selector(signature) ++ arguments`
pub(crate) fn call(signature: &str, arguments: &[Arg]) -> Vec<u8> {
    let mut data = keccak256(signature)[..4].to_vec();
    data.extend(encode(arguments));
    data
}

/// Heads and tails.
pub(crate) fn encode(arguments: &[Arg]) -> Vec<u8> {
    let mut heads = Vec::new();
    let mut tails: Vec<u8> = Vec::new();
    for argument in arguments {
        match argument {
            Arg::Word(word) => heads.extend(word.to_be_bytes::<32>()),
            Arg::Bytes(_) | Arg::Words(_) | Arg::Array(_) | Arg::Tuple(_) => {
                let offset = arguments.len() * 32 + tails.len();
                heads.extend(U256::from(offset).to_be_bytes::<32>());
                tails.extend(tail(argument));
            }
        }
    }
    heads.extend(tails);
    heads
}

fn tail(argument: &Arg) -> Vec<u8> {
    let length = |length: usize| U256::from(length).to_be_bytes::<32>().to_vec();
    match argument {
        Arg::Word(word) => word.to_be_bytes::<32>().to_vec(),
        Arg::Bytes(bytes) => {
            let mut data = length(bytes.len());
            data.extend(bytes);
            data.resize(data.len().next_multiple_of(32), 0);
            data
        }
        Arg::Words(words) => {
            let mut data = length(words.len());
            data.extend(words.iter().flat_map(|word| word.to_be_bytes::<32>()));
            data
        }
        Arg::Array(elements) => {
            let mut data = length(elements.len());
            data.extend(encode(elements));
            data
        }
        Arg::Tuple(members) => encode(members),
    }
}

pub(crate) fn transfer(to: Address, amount: u64) -> Vec<u8> {
    call("transfer(address,uint256)", &[to.into(), amount.into()])
}

pub(crate) fn transfer_from(from: Address, to: Address, amount: u64) -> Vec<u8> {
    call(
        "transferFrom(address,address,uint256)",
        &[from.into(), to.into(), amount.into()],
    )
}

/// `multicall(bytes[])`
pub(crate) fn multicall(calls: Vec<Vec<u8>>) -> Vec<u8> {
    let calls = calls.into_iter().map(Arg::Bytes).collect();
    call("multicall(bytes[])", &[Arg::Array(calls)])
}

/// `aggregate3Value`, with the calls (target, value, calldata).
pub(crate) fn aggregate3_value(calls: Vec<(Address, u64, Vec<u8>)>) -> Vec<u8> {
    let tuple = |(target, value, input): (Address, u64, Vec<u8>)| {
        Arg::Tuple(vec![target.into(), 1.into(), value.into(), Arg::Bytes(input)])
    };
    let calls = calls.into_iter().map(tuple).collect();
    call("aggregate3Value((address,bool,uint256,bytes)[])", &[Arg::Array(calls)])
}

/// One packed transaction of `multiSend`.
pub(crate) fn packed(operation: u8, target: Address, value: u64, input: &[u8]) -> Vec<u8> {
    let mut data = vec![operation];
    data.extend(target);
    data.extend(U256::from(value).to_be_bytes::<32>());
    data.extend(U256::from(input.len()).to_be_bytes::<32>());
    data.extend(input);
    data
}

/// `execTransaction` of a Safe.
pub(crate) fn safe(to: Address, value: u64, input: Vec<u8>, operation: u64, refund: Address) -> Vec<u8> {
    let signature = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)";
    let zero = || Arg::from(0);
    let arguments = [
        to.into(),
        value.into(),
        Arg::Bytes(input),
        operation.into(),
        zero(),
        zero(),
        zero(),
        zero(),
        refund.into(),
        Arg::Bytes(vec![1; 65]),
    ];
    call(signature, &arguments)
}
