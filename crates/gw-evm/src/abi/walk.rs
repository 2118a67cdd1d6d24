//! The walk over ABI-encoded bytes: every head, offset, length and element (R22), in time linear in the data.

use super::{
    clean_address, possible_address,
    types::{Shape, Type, WORD, WordKind, heads},
};
use alloy_primitives::{Address, B256, U256};
use std::ops::Range;

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Words of type `address` (or `function`), in order.
    pub addresses: Vec<Slot>,
    /// Words of other types that are shaped like an address (R22, HD31).
    pub perhaps: Vec<Slot>,
    /// Contents of `bytes` and `string` (K5).
    pub opaque: Vec<Opaque>,
}

/// An address in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Where its word begins.
    pub offset: usize,
    /// The address.
    pub address: Address,
}

/// A field whose content no type explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opaque {
    /// Where the content begins.
    pub offset: usize,
    /// Its length.
    pub len: usize,
}

/// Why data is not what its type says; nothing in it can be trusted to be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// A word, element or content lies outside the data.
    #[error("data is too short")]
    Short,
    /// The upper 12 bytes of an address word are not zero.
    #[error("an address word is not clean")]
    DirtyAddress,
    /// Bytes that no offset leads to are not zero.
    #[error("data holds more than its type")]
    Unexplained,
    /// Offsets lead to the same bytes again and again.
    #[error("offsets overlap")]
    Tangled,
    /// Not the one canonical encoding of its value.
    #[error("encoding is not canonical")]
    NotCanonical,
}

/// Which encodings are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Only what an encoder writes: tails in order, no gaps, clean padding (F3).
    Canonical,
    /// Whatever a decoder can read, as long as every byte is accounted for (R22).
    Any,
}

/// Zeroes the word at `offset`; the length stays.
pub fn zero_word(data: &mut [u8], offset: usize) {
    if let Some(word) = data.get_mut(offset..offset.saturating_add(WORD)) {
        word.fill(0);
    }
}

/// Zeroes an opaque content; the length stays.
pub fn zero_opaque(data: &mut [u8], opaque: Opaque) {
    if let Some(content) = data.get_mut(opaque.offset..opaque.offset.saturating_add(opaque.len)) {
        content.fill(0);
    }
}

pub(super) fn walk(types: &[Type], data: &[u8], layout: Layout) -> Result<Walk, WalkError> {
    let words = data.len() / WORD;
    let mut walker = Walker {
        data,
        layout,
        found: Walk::default(),
        next_tail: 0,
        covered: Covered::default(),
        // An honest encoding reads each word once; twice leaves room for encoders that share tails.
        budget: 2 * words + 2,
    };
    walker.sequence(types.iter(), heads(types).ok_or(WalkError::Short)?, 0)?;
    walker.finish()
}

struct Walker<'d> {
    data: &'d [u8],
    layout: Layout,
    found: Walk,
    /// Where the next tail of a canonical encoding begins.
    next_tail: usize,
    covered: Covered,
    budget: usize,
}

type Done = Result<(), WalkError>;

impl Walker<'_> {
    /// Consecutive heads at `base` with their tails; `size` is the length of the heads.
    fn sequence<'t>(&mut self, types: impl Iterator<Item = &'t Type>, size: usize, base: usize) -> Done {
        let end = self.place(base, size)?;
        if self.layout == Layout::Canonical {
            if base != self.next_tail {
                return Err(WalkError::NotCanonical);
            }
            self.next_tail = end;
        }
        let mut position = base;
        for ty in types {
            if ty.dynamic {
                let offset = self.length(position)?;
                self.tail(ty, base.checked_add(offset).ok_or(WalkError::Short)?)?;
            } else {
                self.inline(ty, position)?;
            }
            position += ty.head;
        }
        Ok(())
    }

    /// A dynamic value at the end of its offset.
    fn tail(&mut self, ty: &Type, at: usize) -> Done {
        match &ty.shape {
            Shape::Bytes | Shape::String => self.content(at),
            Shape::Tuple(members) => self.sequence(members.iter(), heads(members).ok_or(WalkError::Short)?, at),
            Shape::Fixed(element, count) => self.elements(element, *count, at),
            Shape::Array(element) => {
                self.begin(at)?;
                let count = self.length(at)?;
                self.elements(element, count, at + WORD)
            }
            Shape::Word(_) => self.inline(ty, at),
        }
    }

    fn elements(&mut self, element: &Type, count: usize, at: usize) -> Done {
        // Elements without bytes hold nothing, however many there are said to be.
        let count = if element.head == 0 { 0 } else { count };
        let size = element.head.checked_mul(count).ok_or(WalkError::Short)?;
        self.sequence(std::iter::repeat_n(element, count), size, at)
    }

    /// A value that lies in the head itself.
    fn inline(&mut self, ty: &Type, at: usize) -> Done {
        match &ty.shape {
            Shape::Word(kind) => self.word(*kind, at),
            Shape::Tuple(members) => {
                let mut position = at;
                for member in members {
                    self.inline(member, position)?;
                    position += member.head;
                }
                Ok(())
            }
            Shape::Fixed(element, count) if element.head > 0 => {
                (0..*count).try_for_each(|index| self.inline(element, at + index * element.head))
            }
            Shape::Fixed(..) => Ok(()),
            Shape::Bytes | Shape::String | Shape::Array(_) => Err(WalkError::NotCanonical),
        }
    }

    fn word(&mut self, kind: WordKind, at: usize) -> Done {
        let word = self.read(at)?;
        match kind {
            WordKind::Address => {
                let address = clean_address(&word).ok_or(WalkError::DirtyAddress)?;
                self.found.addresses.push(Slot { offset: at, address });
            }
            WordKind::Function => {
                let address = word.first_chunk::<20>().ok_or(WalkError::Short)?;
                self.found.addresses.push(Slot {
                    offset: at,
                    address: Address::from(address),
                });
            }
            WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_) => {
                if let Some(address) = possible_address(&word) {
                    self.found.perhaps.push(Slot { offset: at, address });
                }
            }
        }
        if self.layout == Layout::Canonical && !kind.is_clean(&word) {
            return Err(WalkError::NotCanonical);
        }
        Ok(())
    }

    /// `bytes` or `string` at its length word.
    fn content(&mut self, at: usize) -> Done {
        self.begin(at)?;
        let len = self.length(at)?;
        let start = at + WORD;
        let end = start
            .checked_add(len)
            .filter(|end| *end <= self.data.len())
            .ok_or(WalkError::Short)?;
        // A last content may lack its padding: some emitters cut it off.
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
        self.found.opaque.push(Opaque { offset: start, len });
        Ok(())
    }

    /// Enters a tail that begins with a length word.
    fn begin(&mut self, at: usize) -> Done {
        let end = self.place(at, WORD)?;
        if self.layout == Layout::Canonical {
            if at != self.next_tail {
                return Err(WalkError::NotCanonical);
            }
            self.next_tail = end;
        }
        Ok(())
    }

    /// Accounts for `size` bytes at `at`; their end.
    fn place(&mut self, at: usize, size: usize) -> Result<usize, WalkError> {
        let end = at
            .checked_add(size)
            .filter(|end| *end <= self.data.len())
            .ok_or(WalkError::Short)?;
        self.covered.add(at..end);
        Ok(end)
    }

    fn read(&mut self, at: usize) -> Result<B256, WalkError> {
        self.budget = self.budget.checked_sub(1).ok_or(WalkError::Tangled)?;
        let word = self
            .data
            .get(at..)
            .and_then(<[u8]>::first_chunk::<WORD>)
            .ok_or(WalkError::Short)?;
        Ok(B256::from(word))
    }

    /// An offset or length; one beyond memory is beyond the data.
    fn length(&mut self, at: usize) -> Result<usize, WalkError> {
        usize::try_from(U256::from_be_bytes(self.read(at)?.0)).map_err(|_| WalkError::Short)
    }

    fn finish(mut self) -> Result<Walk, WalkError> {
        match self.layout {
            Layout::Canonical if self.next_tail != self.data.len() => return Err(WalkError::NotCanonical),
            Layout::Canonical => {}
            Layout::Any => {
                let zero = |gap: Range<usize>| self.data.get(gap).is_some_and(|bytes| bytes.iter().all(|b| *b == 0));
                if !self.covered.gaps(self.data.len()).all(zero) {
                    return Err(WalkError::Unexplained);
                }
                // Shared tails report their slots once.
                self.found.addresses.sort_unstable();
                self.found.addresses.dedup();
                self.found.perhaps.sort_unstable();
                self.found.perhaps.dedup();
                self.found.opaque.sort_unstable();
                self.found.opaque.dedup();
            }
        }
        Ok(self.found)
    }
}

/// The bytes some type explained.
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
