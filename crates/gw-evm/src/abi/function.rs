//! Decodes the arguments of calls (F3).

use super::{
    ContractAbi,
    types::{Type, WordKind},
    walk::{DecodedAbi, Layout, walk},
};
use alloy_json_abi::Function;
use alloy_primitives::{Address, B256};

/// One static argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its type.
    pub kind: WordKind,
    /// Its canonical encoding.
    pub word: B256,
}

impl Word {
    /// The address, if the type is `address`.
    pub fn address(&self) -> Option<Address> {
        (self.kind == WordKind::Address)
            .then(|| super::clean_address(&self.word))
            .flatten()
    }
}

/// The arguments of a call with canonically encoded calldata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    words: Vec<Option<Word>>,
}

impl Arguments {
    /// The argument at `index`; `None` if its type is not a single word.
    pub fn word(&self, index: usize) -> Option<Word> {
        self.words.get(index).copied().flatten()
    }

    /// How many inputs the function has.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the function has no inputs.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Why calldata cannot be decoded; a rule that depends on it denies the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallDataError {
    /// Shorter than a selector.
    #[error("calldata has no selector")]
    NoSelector,
    /// The ABI has no such function.
    #[error("function is not in the abi")]
    UnknownFunction,
    /// Not the canonical encoding of its values: padding that is not zero, trailing or missing bytes.
    #[error("calldata is not canonical")]
    NotCanonical,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionShape {
    inputs: Vec<Type>,
}

impl FunctionShape {
    /// Resolves the input types; `None` if a type has no ABI encoding, such as the storage pointers of library
    /// functions.
    pub(super) fn new(function: &Function) -> Option<Self> {
        function
            .inputs
            .iter()
            .map(Type::of_param)
            .collect::<Option<_>>()
            .map(|inputs| Self { inputs })
    }
}

impl ContractAbi {
    /// Decodes the arguments of a call.
    ///
    /// # Errors
    ///
    /// A [`CallDataError`] if the calldata has no known selector or is not canonical.
    pub fn arguments(&self, input: &[u8]) -> Result<Arguments, CallDataError> {
        let (selector, data) = input.split_first_chunk::<4>().ok_or(CallDataError::NoSelector)?;
        let function = self.functions.get(selector).ok_or(CallDataError::UnknownFunction)?;
        walk(&function.inputs, data, Layout::Canonical).map_err(|_| CallDataError::NotCanonical)?;
        let mut head = 0;
        let words = function.inputs.iter().map(|ty| {
            let bytes = data.get(head..).and_then(<[u8]>::first_chunk::<32>);
            head += ty.head;
            Some(Word {
                kind: ty.word_kind()?,
                word: B256::from(bytes?),
            })
        });
        Ok(Arguments { words: words.collect() })
    }

    /// Decodes the calldata of a call with all arrays and tuples.
    ///
    /// # Errors
    ///
    /// A [`CallDataError`] if the calldata has no known selector, or bytes that its types do not account for.
    pub fn decode_call(&self, input: &[u8]) -> Result<DecodedAbi, CallDataError> {
        let (selector, data) = input.split_first_chunk::<4>().ok_or(CallDataError::NoSelector)?;
        let function = self.functions.get(selector).ok_or(CallDataError::UnknownFunction)?;
        walk(&function.inputs, data, Layout::Any).map_err(|_| CallDataError::NotCanonical)
    }

    /// Whether the arguments of a function with this selector can be decoded.
    pub fn has_function(&self, selector: [u8; 4]) -> bool {
        self.functions.contains_key(&selector)
    }

    /// The type of a function input; `None` if it is not a single word. Parameter rules apply to single words only.
    pub fn function_input(&self, selector: [u8; 4], index: usize) -> Option<WordKind> {
        self.functions.get(&selector)?.inputs.get(index)?.word_kind()
    }
}
