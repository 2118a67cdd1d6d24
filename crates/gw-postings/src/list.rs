//! A posting list: the ids of the rows that mention one address in one role.

use roaring::RoaringTreemap;
use std::ops::Range;

/// The most ids that are kept as an array. Most addresses occur in few rows.
const FEW: usize = 16;

/// Ids in ascending order.
#[derive(Clone, Debug)]
pub(crate) enum PostingList {
    Few(Vec<u64>),
    Many(RoaringTreemap),
}

impl Default for PostingList {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl PostingList {
    /// Appends an id that is not smaller than any id in the list. An id that is in the list already stays once.
    pub(crate) fn push(&mut self, id: u64) {
        match self {
            Self::Few(ids) => {
                if ids.last() == Some(&id) {
                    return;
                }
                if ids.len() < FEW {
                    ids.push(id);
                    return;
                }
                let mut many: RoaringTreemap = ids.iter().copied().collect();
                many.insert(id);
                *self = Self::Many(many);
            }
            Self::Many(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Removes the ids from `end` on.
    pub(crate) fn truncate(&mut self, end: u64) {
        match self {
            Self::Few(ids) => ids.truncate(ids.partition_point(|id| *id < end)),
            Self::Many(ids) => {
                ids.remove_range(end..);
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Few(ids) => ids.len() as u64,
            Self::Many(ids) => ids.len(),
        }
    }
}

/// The union of posting lists, each limited to a range of ids.
#[derive(Debug, Default)]
pub(crate) struct Union<'a> {
    few: Vec<u64>,
    whole: Vec<&'a RoaringTreemap>,
    parts: Vec<RoaringTreemap>,
}

impl<'a> Union<'a> {
    /// Adds the ids of `list` that are in `range`.
    pub(crate) fn add(&mut self, list: &'a PostingList, range: &Range<u64>) {
        match list {
            PostingList::Few(ids) => self.few.extend(ids.iter().filter(|id| range.contains(id))),
            PostingList::Many(ids) => {
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
        self.few.sort_unstable();
        self.few.dedup();
        let mut union = self.whole.into_iter().union();
        for part in self.parts {
            union |= part;
        }
        union |= self.few.into_iter().collect::<RoaringTreemap>();
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
    fn a_list_keeps_each_id_once_and_turns_into_a_bitmap() {
        let mut list = PostingList::default();
        for id in [1, 1, 5, 5, 9] {
            list.push(id);
        }
        assert_eq!(list.len(), 3);
        for id in 10..100 {
            list.push(id);
            list.push(id);
        }
        assert!(matches!(list, PostingList::Many(_)));
        assert_eq!(list.len(), 93);
        list.truncate(50);
        assert_eq!(list.len(), 43);
        list.truncate(0);
        assert_eq!(list.len(), 0);
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
