//! The Merkle tree of RFC 6962 over a chain's entries.
//!
//! A proof is a list of subtree hashes. The ranges of leaves of these subtrees are computed separately
//! ([`inclusion_ranges`], [`consistency_ranges`]), so that a store can use the subtree hashes it holds.

use crate::hash::Hash;
use core::ops::Range;
use sha2::{Digest, Sha256};

/// The hash of an entry: both the leaf of the tree and the link of the chain (spec/70 rule 6).
pub fn leaf(entry: &[u8]) -> Hash {
    Hash::new(Sha256::new().chain_update([0]).chain_update(entry).finalize().into())
}

/// The hash of an inner node.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    Hash::new(
        Sha256::new()
            .chain_update([1])
            .chain_update(left)
            .chain_update(right)
            .finalize()
            .into(),
    )
}

/// The root of the tree without leaves.
pub fn empty_root() -> Hash {
    Hash::new(Sha256::digest([]).into())
}

/// The root of the tree over these leaf hashes.
pub fn root(leaves: &[Hash]) -> Hash {
    leaves.iter().copied().collect::<Frontier>().root()
}

/// The right edge of a growing tree: enough to append leaves and to compute the root. Its memory is logarithmic in the
/// size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The roots of the full subtrees the tree consists of, largest first.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// A frontier from its stored size and peaks; `None` if the number of peaks does not fit the size.
    pub fn resume(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        (u64::from(size.count_ones()) == peaks.len() as u64).then_some(Self { size, peaks })
    }

    /// The number of leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the full subtrees the tree consists of, largest first.
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// Appends a leaf hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut right = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                right = node(&left, &right);
            }
        }
        self.peaks.push(right);
        self.size += 1;
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return empty_root() };
        peaks.fold(*last, |right, left| node(left, &right))
    }
}

impl Extend<Hash> for Frontier {
    fn extend<I: IntoIterator<Item = Hash>>(&mut self, leaves: I) {
        leaves.into_iter().for_each(|leaf| self.push(leaf));
    }
}

impl FromIterator<Hash> for Frontier {
    fn from_iter<I: IntoIterator<Item = Hash>>(leaves: I) -> Self {
        let mut frontier = Self::default();
        frontier.extend(leaves);
        frontier
    }
}

/// The subtrees whose roots prove that leaf `index` is in a tree of `size` leaves; empty if `index` is not below
/// `size`.
pub fn inclusion_ranges(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut tree = 0..size;
    while tree.contains(&index) && tree.end - tree.start > 1 {
        let middle = split(&tree);
        if index < middle {
            ranges.push(middle..tree.end);
            tree.end = middle;
        } else {
            ranges.push(tree.start..middle);
            tree.start = middle;
        }
    }
    ranges.reverse();
    ranges
}

/// The subtrees whose roots prove that a tree of `old` leaves is the beginning of a tree of `size` leaves.
pub fn consistency_ranges(old: u64, size: u64) -> Vec<Range<u64>> {
    if old == 0 || old >= size {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    let mut tree = 0..size;
    while tree.end != old {
        let middle = split(&tree);
        if old <= middle {
            ranges.push(middle..tree.end);
            tree.end = middle;
        } else {
            ranges.push(tree.start..middle);
            tree.start = middle;
        }
    }
    if tree.start != 0 {
        ranges.push(tree);
    }
    ranges.reverse();
    ranges
}

/// The proof that leaf `index` is in the tree over `leaves`.
pub fn inclusion(leaves: &[Hash], index: u64) -> Vec<Hash> {
    roots(leaves, inclusion_ranges(index, leaves.len() as u64))
}

/// The proof that the tree over the first `old` leaves is the beginning of the tree over all `leaves`.
pub fn consistency(leaves: &[Hash], old: u64) -> Vec<Hash> {
    roots(leaves, consistency_ranges(old, leaves.len() as u64))
}

fn roots(leaves: &[Hash], ranges: Vec<Range<u64>>) -> Vec<Hash> {
    let slice = |range: Range<u64>| {
        let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        leaves.get(start..end)
    };
    ranges.into_iter().filter_map(slice).map(root).collect()
}

/// Whether `proof` shows that `leaf` is at `index` in the tree of `size` leaves with this root (RFC 9162, 2.1.3.2).
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = node(sibling, &hash);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            hash = node(&hash, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && hash == *root
}

/// Whether `proof` shows that the tree of `old` leaves is the beginning of the tree of `size` leaves (RFC 9162,
/// 2.1.4.2).
pub fn verify_consistency(old: u64, old_root: &Hash, size: u64, root: &Hash, proof: &[Hash]) -> bool {
    if old == size {
        return proof.is_empty() && old_root == root;
    }
    if old == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    if old > size {
        return false;
    }
    let mut path = proof.iter();
    let first = if old.is_power_of_two() {
        Some(old_root)
    } else {
        path.next()
    };
    let Some(first) = first else { return false };
    let (mut at, mut last) = (old - 1, size - 1);
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let (mut old_hash, mut hash) = (*first, *first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            old_hash = node(sibling, &old_hash);
            hash = node(sibling, &hash);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            hash = node(&hash, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && old_hash == *old_root && hash == *root
}

/// The leaf at which RFC 6962 splits a tree of more than one leaf: after the largest power of two below its size.
const fn split(tree: &Range<u64>) -> u64 {
    let size = tree.end - tree.start;
    tree.start + (1 << (size - 1).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The leaves of the test vectors of the RFC 6962 reference implementation.
    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn vector_leaves() -> Vec<Hash> {
        LEAVES.iter().map(|text| leaf(&hex::decode(text).unwrap())).collect()
    }

    fn many(count: usize) -> Vec<Hash> {
        (0..count).map(|n| leaf(&n.to_be_bytes())).collect()
    }

    #[test]
    fn rule_6_roots_are_those_of_rfc_6962() {
        assert_eq!(
            hex::encode(empty_root()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        let leaves = vector_leaves();
        for (n, expected) in ROOTS.iter().enumerate() {
            assert_eq!(hex::encode(root(&leaves[..=n])), *expected, "{} leaves", n + 1);
        }
    }

    #[test]
    fn rule_6_proofs_are_those_of_rfc_6962() {
        let leaves = vector_leaves();
        let hashes = |proof: Vec<Hash>| proof.iter().map(hex::encode).collect::<Vec<_>>();
        assert_eq!(
            hashes(inclusion(&leaves, 0)),
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ]
        );
        assert_eq!(
            hashes(consistency(&leaves, 6)),
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        );
    }

    #[test]
    fn rule_10_every_leaf_of_every_small_tree_is_proved() {
        let leaves = many(33);
        for size in 1..=33 {
            let tree = &leaves[..size];
            let root = root(tree);
            for (index, leaf) in tree.iter().enumerate() {
                let proof = inclusion(tree, index as u64);
                let holds = |index, proof: &[Hash]| verify_inclusion(leaf, index, size as u64, proof, &root);
                assert!(holds(index as u64, &proof), "{index} of {size}");
                assert!(!holds(index as u64 + 1, &proof));
                let longer = [&proof[..], &[*leaf]].concat();
                assert!(!holds(index as u64, &longer));
                assert!(proof.is_empty() || !holds(index as u64, &proof[1..]));
            }
        }
    }

    #[test]
    fn rule_18_every_beginning_of_every_small_tree_is_proved() {
        let leaves = many(33);
        for size in 1..=33 {
            let tree = &leaves[..size];
            for old in 0..=size {
                let proof = consistency(tree, old as u64);
                let holds = |old_root: &Hash, new_root: &Hash| {
                    verify_consistency(old as u64, old_root, size as u64, new_root, &proof)
                };
                let (old_root, new_root) = (root(&tree[..old]), root(tree));
                assert!(holds(&old_root, &new_root), "{old} of {size}");
                assert!(!holds(&leaves[0], &new_root) || (old == 1), "{old} of {size}");
                assert!(old == 0 || !holds(&old_root, &empty_root()), "{old} of {size}");
            }
        }
    }

    proptest! {
        /// Rule 18: a rewritten beginning is not consistent with the root signed before.
        #[test]
        fn rule_18_a_rewritten_history_has_no_consistency_proof(size in 2_usize..200, old in 1_usize..200,
            at in 0_usize..200) {
            let (old, at) = (1 + old % (size - 1), at % size);
            let honest = many(size);
            let mut forged = honest.clone();
            forged[at] = leaf(b"another entry");
            let (signed, proof) = (root(&honest[..old]), consistency(&forged, old as u64));
            let holds = verify_consistency(old as u64, &signed, size as u64, &root(&forged), &proof);
            prop_assert_eq!(holds, at >= old, "only later leaves may differ");
        }

        #[test]
        fn a_resumed_frontier_continues_the_tree(size in 0_usize..300, more in 0_usize..50) {
            let leaves = many(size + more);
            let frontier: Frontier = leaves[..size].iter().copied().collect();
            let mut resumed = Frontier::resume(frontier.size(), frontier.peaks().to_vec()).unwrap();
            resumed.extend(leaves[size..].iter().copied());
            prop_assert_eq!(resumed.root(), root(&leaves));
            let peak_too_many = [frontier.peaks(), &[Hash::ZERO]].concat();
            prop_assert!(Frontier::resume(frontier.size(), peak_too_many).is_none());
        }
    }
}
