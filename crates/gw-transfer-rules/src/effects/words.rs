//! Reads the words of ABI-encoded bytes the way a contract would.
//!
//! Compiled decoders accept more than the canonical encoding: tails in any order, shared tails, and offsets that wrap
//! around and so point backwards. This reader accepts at least what they accept. Dirty upper bytes of an address are
//! ignored, as old compilers ignore them.

use gw_types::{Address, U256};

const WORD: usize = 32;

/// A sequence of words in `data`, from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    data: &'a [u8],
    base: usize,
}

impl<'a> Words<'a> {
    /// The words of `data` from its start.
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self { data, base: 0 }
    }

    /// The arguments of a call; `None` if fewer than `heads` words follow the selector.
    pub(super) fn arguments(input: &'a [u8], heads: usize) -> Option<Self> {
        let words = Self { data: input, base: 4 };
        (input.len() >= heads.checked_mul(WORD)?.checked_add(4)?).then_some(words)
    }

    pub(super) fn word(&self, index: usize) -> Option<[u8; WORD]> {
        let start = index.checked_mul(WORD)?.checked_add(self.base)?;
        self.data.get(start..)?.first_chunk().copied()
    }

    pub(super) fn uint(&self, index: usize) -> Option<U256> {
        self.word(index).map(U256::from_be_bytes)
    }

    /// The low 20 bytes of a word.
    pub(super) fn address(&self, index: usize) -> Option<Address> {
        self.word(index)?.last_chunk().map(Address::from)
    }

    /// What the offset in this word leads to. It is relative to the first word.
    pub(super) fn pointer(&self, index: usize) -> Option<Self> {
        let target = U256::from(self.base).wrapping_add(self.uint(index)?);
        let base = usize::try_from(target).ok().filter(|base| *base <= self.data.len())?;
        Some(Self { base, ..*self })
    }

    /// The `bytes` value to which the offset in this word leads.
    pub(super) fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        let tail = self.pointer(index)?;
        let start = tail.base.checked_add(WORD)?;
        let end = start.checked_add(tail.length()?)?;
        self.data.get(start..end)
    }

    /// The array to which the offset in this word leads: the number of its elements, and their heads. Every element
    /// has a head of at least one word, so the number is bounded by the data.
    pub(super) fn array(&self, index: usize) -> Option<(usize, Self)> {
        let tail = self.pointer(index)?;
        let count = tail.length()?;
        let base = tail.base.checked_add(WORD)?;
        let end = count.checked_mul(WORD)?.checked_add(base)?;
        (end <= self.data.len()).then_some((count, Self { base, ..*self }))
    }

    fn length(&self) -> Option<usize> {
        usize::try_from(self.uint(0)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| U256::from(*value).to_be_bytes::<32>())
            .collect()
    }

    #[test]
    fn offsets_may_point_backwards_as_contracts_accept() {
        // The second word is an offset of -32 from the first word, which wraps to the word before it.
        let mut data = words(&[3]);
        data.extend(U256::MAX.wrapping_sub(U256::from(31)).to_be_bytes::<32>());
        let heads = Words { data: &data, base: 32 };
        assert_eq!(heads.pointer(0).and_then(|tail| tail.uint(0)), Some(U256::from(3)));
    }

    #[test]
    fn contents_outside_of_the_data_are_not_read() {
        let data = words(&[32, 33]);
        assert_eq!(Words::new(&data).bytes(0), None);
        assert_eq!(Words::new(&words(&[32, 0])).bytes(0), Some(&[][..]));
        assert!(Words::new(&words(&[32, u64::MAX])).array(0).is_none());
        assert!(Words::new(&words(&[32, 1])).array(0).is_none());
        assert!(Words::new(&words(&[65])).pointer(0).is_none());
        assert!(Words::arguments(&[0; 67], 2).is_none());
        assert!(Words::arguments(&[0; 68], 2).is_some());
    }
}
