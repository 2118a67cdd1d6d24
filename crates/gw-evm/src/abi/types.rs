//! ABI types with their layout resolved once.

use alloy_dyn_abi::{DynSolType, Specifier};
use alloy_json_abi::{EventParam, Param};
use alloy_primitives::B256;

/// The bytes of one ABI word.
pub(super) const WORD: usize = 32;

/// Deeper types are refused; no compiler writes them.
const MAX_NESTING: usize = 32;

/// A type and its place in a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) shape: Shape,
    /// Whether the head holds an offset to the value.
    pub(super) dynamic: bool,
    /// Bytes in the head.
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

/// What one ABI word holds.
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
    /// Whether `word` is the one encoding of its value: no dirty padding (F3).
    pub fn is_clean(self, word: &B256) -> bool {
        let size = self.bits() / 8;
        let padding = WORD.saturating_sub(size);
        let left = |filler: u8| word.iter().take(padding).all(|byte| *byte == filler);
        match self {
            Self::Address | Self::Uint(_) => left(0),
            Self::Bool => left(0) && word.last().is_some_and(|byte| *byte <= 1),
            Self::Int(_) => {
                let negative = word.get(padding).is_some_and(|byte| byte & 0x80 != 0);
                left(if negative { 0xff } else { 0 })
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

    /// The word a hex literal means for this kind: its own length, or a whole clean word (F4).
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
                    .for_each(|(to, from)| *to = *from);
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

    /// Whether the type holds `bytes` or `string` anywhere.
    pub(super) fn is_opaque(&self) -> bool {
        match &self.shape {
            Shape::Word(_) => false,
            Shape::Bytes | Shape::String => true,
            Shape::Tuple(members) => members.iter().any(Self::is_opaque),
            Shape::Fixed(element, _) | Shape::Array(element) => element.is_opaque(),
        }
    }

    /// What the type holds if it is one word.
    pub(super) fn word_kind(&self) -> Option<WordKind> {
        match self.shape {
            Shape::Word(kind) => Some(kind),
            Shape::Bytes | Shape::String | Shape::Tuple(_) | Shape::Fixed(..) | Shape::Array(_) => None,
        }
    }
}

/// The bytes of all heads together.
pub(super) fn heads(types: &[Type]) -> Option<usize> {
    types.iter().try_fold(0_usize, |sum, ty| sum.checked_add(ty.head))
}
