//! Contract ABIs: decodes the arguments of calls (F3) and finds the addresses in logs (R19-R22).
//!
//! Which viewer sees which address is decided in `gw-policy`. Invariant: a [`ContractAbi`] reports results only after
//! it has accounted for all bytes; bytes that no type accounts for are an error.

mod builtin;
mod event;
mod function;
mod types;
mod walk;
mod well_known;

pub use builtin::builtin;
pub use event::{AddressCandidate, EventShape};
pub use function::{Arguments, CallDataError, Word};
pub use types::WordKind;
pub use walk::{AbiWord, DecodedAbi, Opaque, WalkError, zero_opaque, zero_word};
pub use well_known::well_known;

use alloy_json_abi::JsonAbi;
use alloy_primitives::{Address, B256};
use function::FunctionShape;
use std::collections::BTreeMap;

/// Maximum number of array suffixes of a type. Type parsers recurse once for each suffix, so a longer type could
/// overflow the stack (HD36).
pub const MAX_ARRAYS: usize = 16;

/// Whether any string of an ABI has more than `limit` array suffixes. The JSON parser limits the depth of the JSON
/// itself.
fn nests_arrays_deeper_than(value: &serde_json::Value, limit: usize) -> bool {
    match value {
        serde_json::Value::String(text) => text.bytes().filter(|byte| *byte == b'[').count() > limit,
        serde_json::Value::Array(values) => values.iter().any(|value| nests_arrays_deeper_than(value, limit)),
        serde_json::Value::Object(members) => members.values().any(|value| nests_arrays_deeper_than(value, limit)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => false,
    }
}

/// An ABI with resolved selectors and types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractAbi {
    json: JsonAbi,
    functions: BTreeMap<[u8; 4], FunctionShape>,
    events: BTreeMap<B256, Vec<EventShape>>,
    anonymous: Vec<EventShape>,
}

/// Why a text is not a valid ABI.
#[derive(Debug, thiserror::Error)]
pub enum AbiTextError {
    /// Not a JSON array.
    #[error("an abi is a json array")]
    NotAnArray,
    /// Not in the format of an ABI.
    #[error("malformed abi")]
    Malformed(#[source] serde_json::Error),
    /// A type has more array suffixes than [`MAX_ARRAYS`].
    #[error("a type has more than {MAX_ARRAYS} array suffixes")]
    TooDeep,
    /// An event has an input of an unknown type.
    #[error("event `{0}` has an unknown type")]
    UnknownType(String),
}

impl ContractAbi {
    /// Parses the JSON text of an ABI.
    ///
    /// # Errors
    ///
    /// An [`AbiTextError`] if the text is not an ABI, nests arrays too deep, or has an event with an unknown type.
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

    /// Resolves an ABI. A function that cannot be resolved is omitted, so that rules on its arguments deny the call.
    ///
    /// # Errors
    ///
    /// [`AbiTextError::UnknownType`] if an event cannot be resolved: without the event, its data would be shown.
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

    /// The ABI as its author provided it.
    pub fn json(&self) -> &JsonAbi {
        &self.json
    }
}

/// The address in an ABI word, if its upper 12 bytes are zero.
pub fn clean_address(word: &B256) -> Option<Address> {
    let (high, low) = word.split_first_chunk::<12>()?;
    (high == &[0; 12]).then(|| Address::from_slice(low))
}

/// The address that a word may contain, regardless of its declared type: the upper 12 bytes are zero and the value is
/// at least 2^64. Smaller values are numbers, because no key and no deployment yields such an address (HD31).
pub fn possible_address(word: &B256) -> Option<Address> {
    clean_address(word).filter(|address| address.iter().take(12).any(|byte| *byte != 0))
}

/// The words of log data that may contain an address, regardless of their declared types. Trailing bytes that are not
/// a whole word are ignored.
pub fn possible_addresses(data: &[u8]) -> impl Iterator<Item = AbiWord> {
    let (words, _) = data.as_chunks::<32>();
    let slot = |(index, word): (usize, &[u8; 32])| {
        let address = possible_address(&B256::from(word))?;
        Some(AbiWord {
            offset: index * types::WORD,
            address,
        })
    };
    words.iter().enumerate().filter_map(slot)
}
