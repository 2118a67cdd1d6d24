//! ABI types with their resolved layout.

use alloy_dyn_abi::{DynSolType, Specifier};
use alloy_json_abi::{EventParam, Param};
use alloy_primitives::B256;

/// Size of one ABI word in bytes.
pub(super) const WORD: usize = 32;

/// Maximum nesting of a type; deeper types are rejected. No compiler emits them.
const MAX_NESTING: usize = 32;

/// A type and its layout in the head of an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) shape: Shape,
    /// Whether the head holds an offset to the value.
    pub(super) dynamic: bool,
    /// Size in the head in bytes.
    pub(super) head: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One word.
    Word(WordKind),
    /// `bytes`
    Bytes,
    /// `string`
    String,
    /// A tuple.
    Tuple(Vec<Type>),
    /// `T[n]`
    Fixed(Box<Type>, usize),
    /// `T[]`
    Array(Box<Type>),
}

/// The type of a value that takes one ABI word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// `address`
    Address,
    /// `uintN`
    Uint(usize),
    /// `intN`
    Int(usize),
    /// `bool`
    Bool,
    /// `bytesN`
    FixedBytes(usize),
    /// An external function: an address and a selector, left aligned.
    Function,
}

impl WordKind {
    /// Whether `word` is the canonical encoding of its value, so that the padding is correct (F3).
    pub fn is_clean(self, word: &B256) -> bool {
        let size = self.bits() / 8;
        let padding = WORD.saturating_sub(size);
        let left_padding_is = |filler: u8| word.iter().take(padding).all(|byte| *byte == filler);
        match self {
            Self::Address | Self::Uint(_) => left_padding_is(0),
            Self::Bool => left_padding_is(0) && word.last().is_some_and(|byte| *byte <= 1),
            Self::Int(_) => {
                let negative = word.get(padding).is_some_and(|byte| byte & 0x80 != 0);
                left_padding_is(if negative { 0xff } else { 0 })
            }
            Self::FixedBytes(_) | Self::Function => word.iter().skip(size).all(|byte| *byte == 0),
        }
    }

    fn bits(self) -> usize {
        match self {
            Self::Address => 160,
            Self::Uint(bits) | Self::Int(bits) => bits,
            Self::Bool => 8,
            Self::FixedBytes(size) => size * 8,
            Self::Function => 24 * 8,
        }
    }

    /// Encodes a hex literal as a word of this kind (F4). `None` unless the literal has exactly the size of the kind,
    /// or is a whole canonical word.
    pub fn literal(self, literal: &[u8]) -> Option<B256> {
        let word = match self {
            _ if literal.len() == WORD => B256::from_slice(literal),
            _ if literal.len() * 8 != self.bits() => return None,
            Self::FixedBytes(_) | Self::Function => B256::right_padding_from(literal),
            Self::Address | Self::Uint(_) | Self::Bool => B256::left_padding_from(literal),
            Self::Int(_) => {
                let negative = literal.first().is_some_and(|byte| byte & 0x80 != 0);
                let mut word = if negative { B256::repeat_byte(0xff) } else { B256::ZERO };
                word.iter_mut()
                    .rev()
                    .zip(literal.iter().rev())
                    .for_each(|(target, byte)| *target = *byte);
                word
            }
        };
        self.is_clean(&word).then_some(word)
    }
}

impl Type {
    pub(super) fn of_param(param: &Param) -> Option<Self> {
        Self::new(&param.resolve().ok()?, 0)
    }

    pub(super) fn of_event_param(param: &EventParam) -> Option<Self> {
        Self::new(&param.resolve().ok()?, 0)
    }

    fn new(ty: &DynSolType, nesting: usize) -> Option<Self> {
        if nesting > MAX_NESTING {
            return None;
        }
        let inner = |ty| Self::new(ty, nesting + 1);
        Some(match ty {
            DynSolType::Address => Self::word(WordKind::Address),
            DynSolType::Bool => Self::word(WordKind::Bool),
            DynSolType::Int(bits) => Self::word(WordKind::Int(*bits)),
            DynSolType::Uint(bits) => Self::word(WordKind::Uint(*bits)),
            DynSolType::FixedBytes(size) => Self::word(WordKind::FixedBytes(*size)),
            DynSolType::Function => Self::word(WordKind::Function),
            DynSolType::Bytes => Self::dynamic(Shape::Bytes),
            DynSolType::String => Self::dynamic(Shape::String),
            DynSolType::Array(element) => Self::dynamic(Shape::Array(Box::new(inner(element)?))),
            DynSolType::FixedArray(element, count) => {
                let element = inner(element)?;
                let (dynamic, size) = (element.dynamic, element.head.checked_mul(*count)?);
                Self::composite(Shape::Fixed(Box::new(element), *count), dynamic, size)
            }
            DynSolType::Tuple(members) => {
                let members: Vec<_> = members.iter().map(inner).collect::<Option<_>>()?;
                let dynamic = members.iter().any(|member| member.dynamic);
                let size = heads(&members)?;
                Self::composite(Shape::Tuple(members), dynamic, size)
            }
        })
    }

    const fn word(kind: WordKind) -> Self {
        Self {
            shape: Shape::Word(kind),
            dynamic: false,
            head: WORD,
        }
    }

    const fn dynamic(shape: Shape) -> Self {
        Self {
            shape,
            dynamic: true,
            head: WORD,
        }
    }

    const fn composite(shape: Shape, dynamic: bool, size: usize) -> Self {
        Self {
            shape,
            dynamic,
            head: if dynamic { WORD } else { size },
        }
    }

    /// Whether the type contains `bytes` or `string`.
    pub(super) fn is_opaque(&self) -> bool {
        match &self.shape {
            Shape::Word(_) => false,
            Shape::Bytes | Shape::String => true,
            Shape::Tuple(members) => members.iter().any(Self::is_opaque),
            Shape::Fixed(element, _) | Shape::Array(element) => element.is_opaque(),
        }
    }

    /// The kind of the type; `None` if it is not a single word.
    pub(super) fn word_kind(&self) -> Option<WordKind> {
        match self.shape {
            Shape::Word(kind) => Some(kind),
            Shape::Bytes | Shape::String | Shape::Tuple(_) | Shape::Fixed(..) | Shape::Array(_) => None,
        }
    }
}

/// Total size of the heads in bytes.
pub(super) fn heads(types: &[Type]) -> Option<usize> {
    types.iter().try_fold(0_usize, |sum, ty| sum.checked_add(ty.head))
}
