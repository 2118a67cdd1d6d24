//! Contract ABIs: arguments of calls (F3) and address slots of logs (R19-R22).
//!
//! Not for deciding who sees which slot. Invariant: what a [`ContractAbi`] reports about bytes it proved by walking
//! all of them; bytes it cannot explain are an error, never silence.

mod builtin;
mod event;
mod function;
mod types;
mod walk;
mod well_known;

pub use builtin::builtin;
pub use event::{EventShape, Held};
pub use function::{Arguments, CallDataError, Word};
pub use types::WordKind;
pub use walk::{Opaque, Slot, Walk, WalkError, zero_opaque, zero_word};
pub use well_known::well_known;

use alloy_json_abi::JsonAbi;
use alloy_primitives::{Address, B256};
use function::FunctionShape;
use std::collections::BTreeMap;

/// The most array suffixes of a type. Type parsers recurse once for each suffix, and a long type overflows the stack (HD36).
pub const MAX_ARRAYS: usize = 16;

/// Whether any text of an ABI has more array suffixes. The depth of the JSON itself is bounded by its parser.
fn nests_arrays_deeper_than(value: &serde_json::Value, most: usize) -> bool {
    match value {
        serde_json::Value::String(text) => text.bytes().filter(|byte| *byte == b'[').count() > most,
        serde_json::Value::Array(values) => values.iter().any(|value| nests_arrays_deeper_than(value, most)),
        serde_json::Value::Object(members) => members.values().any(|value| nests_arrays_deeper_than(value, most)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => false,
    }
}

/// An ABI with its selectors and types resolved once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractAbi {
    json: JsonAbi,
    functions: BTreeMap<[u8; 4], FunctionShape>,
    events: BTreeMap<B256, Vec<EventShape>>,
    anonymous: Vec<EventShape>,
}

/// Why a text is not an ABI.
#[derive(Debug, thiserror::Error)]
pub enum AbiTextError {
    /// Not an array, as compilers write it.
    #[error("an abi is a json array")]
    NotAnArray,
    /// Not an ABI.
    #[error("malformed abi")]
    Malformed(#[source] serde_json::Error),
    /// A type has more array suffixes than [`MAX_ARRAYS`].
    #[error("a type has more than {MAX_ARRAYS} array suffixes")]
    TooDeep,
    /// An event has an input of a type that is none.
    #[error("event `{0}` has an unknown type")]
    UnknownType(String),
}

impl ContractAbi {
    /// Reads the JSON text of an ABI.
    pub fn parse(text: &str) -> Result<Self, AbiTextError> {
        if !text.trim_start().starts_with('[') {
            return Err(AbiTextError::NotAnArray);
        }
        let value: serde_json::Value = serde_json::from_str(text).map_err(AbiTextError::Malformed)?;
        if nests_arrays_deeper_than(&value, MAX_ARRAYS) {
            return Err(AbiTextError::TooDeep);
        }
        Self::new(serde_json::from_str(text).map_err(AbiTextError::Malformed)?)
    }

    /// Resolves an ABI. A function that cannot be resolved is left out, so that calling it cannot be judged; an event
    /// that cannot be resolved is an error, for leaving it out would show its data.
    pub fn new(json: JsonAbi) -> Result<Self, AbiTextError> {
        let functions = json
            .functions()
            .filter_map(|f| Some((f.selector().0, FunctionShape::new(f)?)))
            .collect();
        let (mut events, mut anonymous) = (BTreeMap::<B256, Vec<EventShape>>::new(), Vec::new());
        for event in json.events() {
            let shape = EventShape::new(event).ok_or_else(|| AbiTextError::UnknownType(event.name.clone()))?;
            if shape.is_anonymous() {
                anonymous.push(shape);
            } else {
                events.entry(event.selector()).or_default().push(shape);
            }
        }
        Ok(Self {
            json,
            functions,
            events,
            anonymous,
        })
    }

    /// The ABI as its author wrote it.
    pub fn json(&self) -> &JsonAbi {
        &self.json
    }
}

/// The address in an ABI word, if its upper 12 bytes are zero.
pub fn clean_address(word: &B256) -> Option<Address> {
    let (high, low) = word.split_first_chunk::<12>()?;
    (high == &[0; 12]).then(|| Address::from_slice(low))
}

/// The address a word may hold, whatever its declared type: the upper 12 bytes are zero and the value is above 2^64.
/// Smaller values are numbers: no key and no deployment gives such an address (HD31).
pub fn possible_address(word: &B256) -> Option<Address> {
    clean_address(word).filter(|address| address.iter().take(12).any(|byte| *byte != 0))
}

/// The address-shaped words of log data, by their offsets, whatever their declared types. Data that is no list of words
/// has none.
pub fn possible_addresses(data: &[u8]) -> impl Iterator<Item = Slot> {
    let (words, _) = data.as_chunks::<32>();
    let slot = |(index, word): (usize, &[u8; 32])| {
        let address = possible_address(&B256::from(word))?;
        Some(Slot {
            offset: index * types::WORD,
            address,
        })
    };
    words.iter().enumerate().filter_map(slot)
}
