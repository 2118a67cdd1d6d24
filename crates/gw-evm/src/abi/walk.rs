//! Decodes ABI-encoded bytes: every head, offset, length and element (R22), in time linear in the size of the data.

use super::{
    clean_address, possible_address,
    types::{Shape, Type, WORD, WordKind, heads},
};
use alloy_primitives::{Address, B256, U256};
use std::ops::Range;

/// The addresses and opaque contents of decoded data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedAbi {
    /// Words of type `address` (or `function`), in order.
    pub addresses: Vec<AbiWord>,
    /// Words of other types whose value has the form of an address (R22, HD31).
    pub perhaps: Vec<AbiWord>,
    /// Contents of `bytes` and `string` (K5).
    pub opaque: Vec<Opaque>,
}

/// An address in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AbiWord {
    /// Offset of its word in bytes.
    pub offset: usize,
    /// The address.
    pub address: Address,
}

/// The content of a `bytes` or `string` field, which no type describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opaque {
    /// Offset of the content in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

/// Why data does not match its types; no part of such data can be interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// A word, element or content lies outside the data.
    #[error("data is too short")]
    Short,
    /// The upper 12 bytes of an address word are not zero.
    #[error("an address word is not clean")]
    DirtyAddress,
    /// Bytes to which no offset leads are not zero.
    #[error("data holds more than its type")]
    Unexplained,
    /// Too many offsets lead to the same bytes.
    #[error("offsets overlap")]
    Tangled,
    /// Not the canonical encoding of its value.
    #[error("encoding is not canonical")]
    NotCanonical,
}

/// The encodings that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The canonical encoding only: tails in order, no gaps, correct padding (F3).
    Canonical,
    /// Every encoding that a decoder can read, if all bytes are accounted for (R22).
    Any,
}

/// Zeroes the word at `offset`; the length of the data does not change.
pub fn zero_word(data: &mut [u8], offset: usize) {
    if let Some(word) = data.get_mut(offset..offset.saturating_add(WORD)) {
        word.fill(0);
    }
}

/// Zeroes an opaque content; its length does not change.
pub fn zero_opaque(data: &mut [u8], opaque: Opaque) {
    if let Some(content) = data.get_mut(opaque.offset..opaque.offset.saturating_add(opaque.len)) {
        content.fill(0);
    }
}

pub(super) fn walk(types: &[Type], data: &[u8], layout: Layout) -> Result<DecodedAbi, WalkError> {
    let words = data.len() / WORD;
    let mut walker = Walker {
        data,
        layout,
        decoded: DecodedAbi::default(),
        next_tail: 0,
        covered: Covered::default(),
        // An ordinary encoding needs one read for each word. The double budget allows encoders that share tails.
        budget: 2 * words + 2,
    };
    walker.sequence(types.iter(), heads(types).ok_or(WalkError::Short)?, 0)?;
    walker.finish()
}

struct Walker<'d> {
    data: &'d [u8],
    layout: Layout,
    decoded: DecodedAbi,
    /// Offset at which the next tail of a canonical encoding must begin.
    next_tail: usize,
    covered: Covered,
    budget: usize,
}

type WalkResult = Result<(), WalkError>;

impl Walker<'_> {
    /// Decodes consecutive heads at `base` and their tails; `size` is the total size of the heads.
    fn sequence<'t>(&mut self, types: impl Iterator<Item = &'t Type>, size: usize, base: usize) -> WalkResult {
        let end = self.cover(base, size)?;
        if self.layout == Layout::Canonical {
            if base != self.next_tail {
                return Err(WalkError::NotCanonical);
            }
            self.next_tail = end;
        }
        let mut position = base;
        for ty in types {
            if ty.dynamic {
                let offset = self.read_usize(position)?;
                self.tail(ty, base.checked_add(offset).ok_or(WalkError::Short)?)?;
            } else {
                self.inline(ty, position)?;
            }
            position += ty.head;
        }
        Ok(())
    }

    /// Decodes a dynamic value to which an offset leads.
    fn tail(&mut self, ty: &Type, offset: usize) -> WalkResult {
        match &ty.shape {
            Shape::Bytes | Shape::String => self.content(offset),
            Shape::Tuple(members) => self.sequence(members.iter(), heads(members).ok_or(WalkError::Short)?, offset),
            Shape::Fixed(element, count) => self.elements(element, *count, offset),
            Shape::Array(element) => {
                self.enter_tail(offset)?;
                let count = self.read_usize(offset)?;
                self.elements(element, count, offset + WORD)
            }
            Shape::Word(_) => self.inline(ty, offset),
        }
    }

    fn elements(&mut self, element: &Type, count: usize, offset: usize) -> WalkResult {
        // Elements of size zero contain nothing, so an encoded count must not cause work.
        let count = if element.head == 0 { 0 } else { count };
        let size = element.head.checked_mul(count).ok_or(WalkError::Short)?;
        self.sequence(std::iter::repeat_n(element, count), size, offset)
    }

    /// Decodes a static value, which lies in the head.
    fn inline(&mut self, ty: &Type, offset: usize) -> WalkResult {
        match &ty.shape {
            Shape::Word(kind) => self.word(*kind, offset),
            Shape::Tuple(members) => {
                let mut position = offset;
                for member in members {
                    self.inline(member, position)?;
                    position += member.head;
                }
                Ok(())
            }
            Shape::Fixed(element, count) if element.head > 0 => {
                (0..*count).try_for_each(|index| self.inline(element, offset + index * element.head))
            }
            Shape::Fixed(..) => Ok(()),
            Shape::Bytes | Shape::String | Shape::Array(_) => Err(WalkError::NotCanonical),
        }
    }

    fn word(&mut self, kind: WordKind, offset: usize) -> WalkResult {
        let word = self.read_word(offset)?;
        match kind {
            WordKind::Address => {
                let address = clean_address(&word).ok_or(WalkError::DirtyAddress)?;
                self.decoded.addresses.push(AbiWord { offset, address });
            }
            WordKind::Function => {
                let address = word.first_chunk::<20>().ok_or(WalkError::Short)?;
                self.decoded.addresses.push(AbiWord {
                    offset,
                    address: Address::from(address),
                });
            }
            WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_) => {
                if let Some(address) = possible_address(&word) {
                    self.decoded.perhaps.push(AbiWord { offset, address });
                }
            }
        }
        if self.layout == Layout::Canonical && !kind.is_clean(&word) {
            return Err(WalkError::NotCanonical);
        }
        Ok(())
    }

    /// Decodes `bytes` or `string` from its length word.
    fn content(&mut self, offset: usize) -> WalkResult {
        self.enter_tail(offset)?;
        let len = self.read_usize(offset)?;
        let start = offset + WORD;
        let end = start
            .checked_add(len)
            .filter(|end| *end <= self.data.len())
            .ok_or(WalkError::Short)?;
        // The last content may lack its padding, because some emitters omit it.
        let padded = end.next_multiple_of(WORD).min(self.data.len());
        let padding = padded - end;
        self.covered.add(start..padded);
        if self.layout == Layout::Canonical {
            let clean = self
                .data
                .get(end..padded)
                .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
            if !clean || (len + padding) % WORD != 0 {
                return Err(WalkError::NotCanonical);
            }
            self.next_tail = padded;
        }
        self.decoded.opaque.push(Opaque { offset: start, len });
        Ok(())
    }

    /// Accounts for the length word at the start of a tail.
    fn enter_tail(&mut self, offset: usize) -> WalkResult {
        let end = self.cover(offset, WORD)?;
        if self.layout == Layout::Canonical {
            if offset != self.next_tail {
                return Err(WalkError::NotCanonical);
            }
            self.next_tail = end;
        }
        Ok(())
    }

    /// Accounts for `size` bytes at `offset` and returns the offset of their end.
    fn cover(&mut self, offset: usize, size: usize) -> Result<usize, WalkError> {
        let end = offset
            .checked_add(size)
            .filter(|end| *end <= self.data.len())
            .ok_or(WalkError::Short)?;
        self.covered.add(offset..end);
        Ok(end)
    }

    fn read_word(&mut self, offset: usize) -> Result<B256, WalkError> {
        self.budget = self.budget.checked_sub(1).ok_or(WalkError::Tangled)?;
        let word = self
            .data
            .get(offset..)
            .and_then(<[u8]>::first_chunk::<WORD>)
            .ok_or(WalkError::Short)?;
        Ok(B256::from(word))
    }

    /// Reads an offset or length. A value that exceeds `usize` is outside the data.
    fn read_usize(&mut self, offset: usize) -> Result<usize, WalkError> {
        usize::try_from(U256::from_be_bytes(self.read_word(offset)?.0)).map_err(|_| WalkError::Short)
    }

    fn finish(mut self) -> Result<DecodedAbi, WalkError> {
        match self.layout {
            Layout::Canonical if self.next_tail != self.data.len() => return Err(WalkError::NotCanonical),
            Layout::Canonical => {}
            Layout::Any => {
                let zero = |gap: Range<usize>| self.data.get(gap).is_some_and(|bytes| bytes.iter().all(|b| *b == 0));
                if !self.covered.gaps(self.data.len()).all(zero) {
                    return Err(WalkError::Unexplained);
                }
                // Shared tails report their slots once.
                self.decoded.addresses.sort_unstable();
                self.decoded.addresses.dedup();
                self.decoded.perhaps.sort_unstable();
                self.decoded.perhaps.dedup();
                self.decoded.opaque.sort_unstable();
                self.decoded.opaque.dedup();
            }
        }
        Ok(self.decoded)
    }
}

/// The byte ranges that types account for.
#[derive(Default)]
struct Covered(Vec<Range<usize>>);

impl Covered {
    fn add(&mut self, range: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    fn gaps(&mut self, len: usize) -> impl Iterator<Item = Range<usize>> {
        self.0.sort_unstable_by_key(|range| range.start);
        let mut reached = 0;
        let ends = self.0.iter().cloned().chain(std::iter::once(len..len));
        ends.filter_map(move |range| {
            let gap = reached..range.start;
            reached = usize::max(reached, range.end);
            (gap.start < gap.end).then_some(gap)
        })
    }
}
