//! A posting list: the ids of the rows that mention one address in one role.

use roaring::{RoaringBitmap, RoaringTreemap};
use std::ops::Range;

/// From this many ids per [`CHUNK`] on, a bitmap takes less memory than an array.
const DENSE: u64 = 32;
/// The ids of a container of the bitmap, as a power of two.
const CHUNK: u32 = 16;

/// Ids in ascending order. Most addresses occur in few rows, far from each other: for them, an array takes a tenth of
/// the memory of a bitmap, and the time to read it does not depend on the rows in between.
#[derive(Clone, Debug)]
pub(crate) enum PostingList {
    /// Ids below 2^32.
    Array(Vec<u32>),
    Bitmap(RoaringTreemap),
}

impl Default for PostingList {
    fn default() -> Self {
        Self::Array(Vec::new())
    }
}

impl PostingList {
    /// Appends an id that is not smaller than any id in the list. An id that is in the list already stays once.
    pub(crate) fn push(&mut self, id: u64) {
        match self {
            Self::Array(ids) => {
                if ids.last().is_some_and(|last| u64::from(*last) == id) {
                    return;
                }
                match u32::try_from(id) {
                    Ok(id) if ids.len() < ids.capacity() || !is_dense(ids, id) => {
                        if ids.len() == ids.capacity() {
                            // Less than doubling: there are millions of lists.
                            ids.reserve_exact(ids.len() / 4 + 2);
                        }
                        ids.push(id);
                    }
                    _ => {
                        let mut bitmap: RoaringTreemap = ids.iter().copied().map(u64::from).collect();
                        bitmap.insert(id);
                        *self = Self::Bitmap(bitmap);
                    }
                }
            }
            Self::Bitmap(ids) => {
                ids.insert(id);
            }
        }
    }

    /// About how many bytes of memory it takes besides itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Array(ids) => ids.capacity().saturating_mul(size_of::<u32>()),
            Self::Bitmap(ids) => ids.serialized_size(),
        }
    }

    /// Removes the ids from `end` on.
    pub(crate) fn truncate(&mut self, end: u64) {
        match self {
            Self::Array(ids) => ids.truncate(ids.partition_point(|id| u64::from(*id) < end)),
            Self::Bitmap(ids) => {
                ids.remove_range(end..);
            }
        }
    }

    /// The ids of the list that are in `ids`. The cost depends on the shorter of both.
    pub(crate) fn intersection(&self, ids: &RoaringTreemap) -> RoaringTreemap {
        match self {
            Self::Array(list) if (list.len() as u64) < ids.len() => {
                let both = list.iter().copied().map(u64::from);
                both.filter(|id| ids.contains(*id)).collect()
            }
            Self::Array(list) => {
                let is_listed = |id: &u64| u32::try_from(*id).is_ok_and(|id| list.binary_search(&id).is_ok());
                ids.iter().filter(is_listed).collect()
            }
            Self::Bitmap(list) => list & ids,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Array(ids) => ids.len() as u64,
            Self::Bitmap(ids) => ids.len(),
        }
    }
}

/// Whether these ids and `next` take less memory as a bitmap.
fn is_dense(ids: &[u32], next: u32) -> bool {
    let Some(first) = ids.first() else { return false };
    let chunks = u64::from((next >> CHUNK) - (first >> CHUNK)) + 1;
    ids.len() as u64 >= chunks * DENSE
}

/// The union of posting lists, each limited to a range of ids.
#[derive(Debug, Default)]
pub(crate) struct Union<'a> {
    arrays: Vec<u32>,
    whole: Vec<&'a RoaringTreemap>,
    parts: Vec<RoaringTreemap>,
}

impl<'a> Union<'a> {
    /// Adds the ids of `list` that are in `range`.
    pub(crate) fn add(&mut self, list: &'a PostingList, range: &Range<u64>) {
        match list {
            PostingList::Array(ids) => {
                let position = |bound| ids.partition_point(|id| u64::from(*id) < bound);
                let part = ids.get(position(range.start)..position(range.end));
                self.arrays.extend_from_slice(part.unwrap_or_default());
            }
            PostingList::Bitmap(ids) => {
                let (Some(first), Some(last)) = (ids.min(), ids.max()) else {
                    return;
                };
                if range.start <= first && last < range.end {
                    self.whole.push(ids);
                } else {
                    self.parts.push(within(ids, range));
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> RoaringTreemap {
        use roaring::MultiOps as _;
        let mut union = self.whole.into_iter().union();
        for part in self.parts {
            union |= part;
        }
        self.arrays.sort_unstable();
        self.arrays.dedup();
        // Never fails, because the ids ascend.
        if let Ok(ids) = RoaringBitmap::from_sorted_iter(self.arrays) {
            union |= RoaringTreemap::from_bitmaps([(0, ids)]);
        }
        union
    }
}

/// The ids of a set that are in `range`.
pub(crate) fn within(ids: &RoaringTreemap, range: &Range<u64>) -> RoaringTreemap {
    let mut part = iter_from(ids, range.start);
    let mut result = RoaringTreemap::new();
    if let Some(last) = range.end.checked_sub(1) {
        part.advance_back_to(last);
        // A range whose start is after its end selects nothing.
        if range.start < range.end {
            result.extend(part);
        }
    }
    result
}

fn iter_from(ids: &RoaringTreemap, start: u64) -> roaring::treemap::Iter<'_> {
    let mut iter = ids.iter();
    iter.advance_to(start);
    iter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_list_keeps_each_id_once_and_turns_into_a_bitmap() {
        let mut list = PostingList::default();
        for id in [1, 1, 5, 5, 9] {
            list.push(id);
        }
        assert_eq!(list.len(), 3);
        for id in 10..100 {
            list.push(id);
            list.push(id);
        }
        assert!(matches!(list, PostingList::Bitmap(_)));
        assert_eq!(list.len(), 93);
        list.truncate(50);
        assert_eq!(list.len(), 43);
        list.truncate(0);
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn a_sparse_list_stays_an_array_until_an_id_is_too_large() {
        let mut list = PostingList::default();
        (0..1000).for_each(|id| list.push(id << CHUNK));
        assert!(matches!(list, PostingList::Array(_)));
        list.push(1 << 32);
        list.push(1 << 32);
        assert!(matches!(list, PostingList::Bitmap(_)));
        assert_eq!(list.len(), 1001);
        list.truncate(1 << 32);
        assert_eq!(list.len(), 1000);
    }

    #[test]
    fn a_union_is_limited_to_the_range_of_each_list() {
        let mut many = PostingList::default();
        (0..100).for_each(|id| many.push(id));
        let mut few = PostingList::default();
        [3, 200, 300].into_iter().for_each(|id| few.push(id));
        let mut union = Union::default();
        union.add(&many, &(10..12));
        union.add(&many, &(98..1000));
        union.add(&few, &(100..300));
        union.add(&many, &(5..5));
        let ids: Vec<u64> = union.finish().iter().collect();
        assert_eq!(ids, [10, 11, 98, 99, 200]);
    }
}
