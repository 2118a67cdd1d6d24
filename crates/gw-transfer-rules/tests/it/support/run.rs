//! Builds runs frame by frame, as a tracer reports them.

use super::{SENDER, units};
use alloy_primitives::{b256, keccak256};
use gw_evm::trace::{Account, Change, Frame, FrameKind, FrameLog, Outcome, Trace};
use gw_types::{Address, B256, Bytes, U256};
use std::collections::BTreeMap;

pub(crate) const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// The events of the table.
pub(crate) const EVENTS: [B256; 5] = [
    TRANSFER,
    b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"),
    b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"),
    b256!("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"),
    b256!("17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31"),
];

/// A run. The first frame is the top frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    frames: Vec<Frame>,
    changes: BTreeMap<Address, Change>,
    touched: BTreeMap<Address, Account>,
}

impl Run {
    /// A run whose top frame is this call by the sender.
    pub(crate) fn call(to: Address, value: u64, input: impl Into<Bytes>) -> Self {
        Self::default().frame(FrameKind::Call, SENDER, to, value).input(input)
    }

    /// A run that creates a contract.
    pub(crate) fn creation(contract: Address, value: u64) -> Self {
        Self::default().frame(FrameKind::Create, SENDER, contract, value)
    }

    /// Adds a frame, below the top frame.
    pub(crate) fn frame(mut self, kind: FrameKind, from: Address, to: Address, value: u64) -> Self {
        let is_top = self.frames.is_empty();
        self.frames.push(Frame {
            kind,
            from,
            to: Some(to),
            input: Bytes::new(),
            output: Bytes::new(),
            value: units(value),
            gas: None,
            gas_used: None,
            error: None,
            depth: u32::from(!is_top),
            parent: (!is_top).then_some(0),
            failed: false,
            undone: false,
            logs: Vec::new(),
        });
        self
    }

    /// Adds a call with value.
    pub(crate) fn pay(self, from: Address, to: Address, value: u64) -> Self {
        self.frame(FrameKind::Call, from, to, value)
    }

    /// Sets the input of the last frame.
    pub(crate) fn input(mut self, input: impl Into<Bytes>) -> Self {
        self.last().input = input.into();
        self
    }

    /// The last frame fails. Its logs go, as the parser drops them.
    pub(crate) fn fails(mut self) -> Self {
        let frame = self.last();
        (frame.failed, frame.undone) = (true, true);
        frame.logs.clear();
        self
    }

    /// Adds a log to the last frame.
    pub(crate) fn log(mut self, emitter: Address, topics: &[B256], data: impl Into<Bytes>) -> Self {
        self.last().logs.push(FrameLog {
            address: emitter,
            topics: topics.to_vec(),
            data: data.into(),
        });
        self
    }

    /// Adds an ERC-20 `Transfer`.
    pub(crate) fn transfer(self, token: Address, from: Address, to: Address, amount: u64) -> Self {
        let topics = [TRANSFER, from.into_word(), to.into_word()];
        self.log(token, &topics, units(amount).to_be_bytes_vec())
    }

    /// Adds an ERC-721 `Transfer`.
    pub(crate) fn collectible(self, token: Address, from: Address, to: Address, id: u64) -> Self {
        let topics = [TRANSFER, from.into_word(), to.into_word(), units(id).into()];
        self.log(token, &topics, Bytes::new())
    }

    /// A native balance changes.
    pub(crate) fn balance(mut self, address: Address, before: u64, after: u64) -> Self {
        let change = self.changes.entry(address).or_default();
        change.before.balance = units(before);
        change.balance = Some(units(after));
        self
    }

    /// A slot of a contract changes.
    pub(crate) fn slot(mut self, contract: Address, slot: B256, before: u64, after: u64) -> Self {
        let change = self.changes.entry(contract).or_default();
        change.before.storage.insert(slot, units(before).into());
        change.storage.insert(slot, units(after).into());
        self
    }

    /// The token balance of a holder changes, in the Solidity mapping at `position`.
    pub(crate) fn holding(self, token: Address, position: u64, holder: Address, before: u64, after: u64) -> Self {
        self.slot(token, mapping_slot(position, holder), before, after)
    }

    /// An account has this code.
    pub(crate) fn code(mut self, address: Address, code: impl Into<Bytes>) -> Self {
        self.touched.entry(address).or_default().code = code.into();
        self
    }

    pub(crate) fn trace(self) -> Trace {
        Trace {
            frames: self.frames,
            touched: self.touched,
            changes: Some(self.changes),
            top: Outcome::default(),
        }
    }

    fn last(&mut self) -> &mut Frame {
        self.frames.last_mut().unwrap()
    }
}

/// The slot of a key in the Solidity mapping at `position`.
pub(crate) fn mapping_slot(position: u64, key: Address) -> B256 {
    nested_slot(units(position).into(), key)
}

/// The slot of a key in the Solidity mapping at a slot.
pub(crate) fn nested_slot(slot: B256, key: Address) -> B256 {
    keccak256([key.into_word().0, slot.0].concat())
}

/// The slot of a key in a Vyper mapping.
pub(crate) fn vyper_slot(position: u64, key: Address) -> B256 {
    keccak256([units(position).to_be_bytes::<32>(), key.into_word().0].concat())
}

/// The data of an event: words.
pub(crate) fn words(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| U256::from(*value).to_be_bytes::<32>())
        .collect()
}
