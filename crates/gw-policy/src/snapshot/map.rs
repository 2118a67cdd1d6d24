//! A persistent hash map with small overhead per entry and few misses per look-up.
//!
//! A hash trie with eight children per branch; a leaf holds up to 16 entries in one allocation. A leaf also holds one
//! byte of each entry's hash (its tag), and leaves are stored in the array of their branch, so that a look-up reads the
//! branches on its path and then one entry. A change copies the branches on its path with their leaves; all other nodes
//! are shared with the previous version. General persistent maps allocate a shared node and a shared entry for every
//! row: at a million users that alone exceeded the gigabyte that the whole policy may take (design.md section 2).

use std::{fmt, hash::BuildHasher, hash::Hash, sync::Arc};

const BITS: u32 = 3;
const WAYS: usize = 1 << BITS;
const LEAF: usize = 16;
/// Depth at which all bits of the hash are used: a leaf at this depth grows without limit.
const DEEPEST: u32 = u64::BITS / BITS - 1;

/// A persistent hash map.
#[derive(Clone)]
pub(super) struct Map<K, V> {
    root: Node<K, V>,
    len: usize,
    hasher: foldhash::fast::RandomState,
}

#[derive(Clone, Default)]
enum Node<K, V> {
    #[default]
    Empty,
    Leaf(Leaf<K, V>),
    Branch(Arc<[Node<K, V>; WAYS]>),
}

/// Entries whose hashes agree in the bits that lead to this leaf.
#[derive(Clone)]
struct Leaf<K, V> {
    /// A byte of the hash of each entry. A leaf at the deepest level may hold more entries and does not use its tags.
    tags: [u8; LEAF],
    entries: Box<[(K, V)]>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self {
            root: Node::Empty,
            len: 0,
            hasher: foldhash::fast::RandomState::default(),
        }
    }
}

impl<K, V> Map<K, V> {
    /// Every entry, in no particular order.
    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        Iter {
            nodes: vec![std::slice::from_ref(&self.root).iter()],
            entries: [].iter(),
        }
    }

    /// Every value, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Eq + Hash, V> Map<K, V> {
    /// The value at `key`.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        let mut path = Path::new(self.hasher.hash_one(key));
        let mut node = &self.root;
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(leaf) => return leaf.get(path, key),
                Node::Branch(children) => node = children.get(path.step())?,
            }
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Map<K, V> {
    /// Sets the value at `key`.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let path = Path::new(self.hasher.hash_one(&key));
        if self.root.insert(path, key, value, &self.hasher) {
            self.len += 1;
        }
    }

    /// The value at `key`, to be changed.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // As in `remove`: the way to a missing key would be copied.
        self.get(key)?;
        self.root.get_mut(Path::new(self.hasher.hash_one(key)), key)
    }

    /// Whether there is no entry.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes the value at `key`.
    pub(super) fn remove(&mut self, key: &K) {
        // The look-up comes first because `remove` on the tree copies nodes even if the key is missing.
        if self.get(key).is_some() {
            self.root.remove(Path::new(self.hasher.hash_one(key)), key);
            self.len -= 1;
        }
    }
}

impl<K: Eq + Hash, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(key, value)| (key, value)))
            .finish()
    }
}

/// The bits of a hash, lowest first.
#[derive(Clone, Copy)]
struct Path {
    hash: u64,
    depth: u32,
    tag: u8,
}

impl Path {
    const fn new(hash: u64) -> Self {
        // The highest byte: the path through the tree reads it last, so it differs within most leaves.
        let [.., tag] = hash.to_le_bytes();
        Self { hash, depth: 0, tag }
    }

    /// The index of the next child, by the next bits of the hash.
    fn step(&mut self) -> usize {
        let [low, ..] = self.hash.to_le_bytes();
        self.hash >>= BITS;
        self.depth += 1;
        usize::from(low) % WAYS
    }
}

impl<K: Eq, V> Leaf<K, V> {
    fn new(path: Path, key: K, value: V) -> Self {
        let mut leaf = Self {
            tags: [0; LEAF],
            entries: Box::default(),
        };
        leaf.push(path, key, value);
        leaf
    }

    fn position(&self, path: Path, key: &K) -> Option<usize> {
        let has_tag = |index: usize| path.depth >= DEEPEST || self.tags.get(index) == Some(&path.tag);
        self.entries
            .iter()
            .enumerate()
            .find(|(index, entry)| has_tag(*index) && entry.0 == *key)
            .map(|(index, _)| index)
    }

    fn get(&self, path: Path, key: &K) -> Option<&V> {
        self.entries.get(self.position(path, key)?).map(|(_, value)| value)
    }

    /// Adds a key that the leaf does not have yet. The other entries are moved, not cloned.
    fn push(&mut self, path: Path, key: K, value: V) {
        let mut entries = std::mem::take(&mut self.entries).into_vec();
        if let Some(tag) = self.tags.get_mut(entries.len()) {
            *tag = path.tag;
        }
        entries.reserve_exact(1);
        entries.push((key, value));
        self.entries = entries.into_boxed_slice();
    }

    fn remove(&mut self, path: Path, key: &K) {
        let Some(index) = self.position(path, key) else { return };
        let mut entries = std::mem::take(&mut self.entries).into_vec();
        entries.remove(index);
        if let Some(tags) = self.tags.get_mut(index..) {
            tags.rotate_left(1);
        }
        self.entries = entries.into_boxed_slice();
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Node<K, V> {
    /// Returns whether the key is new.
    fn insert(&mut self, mut path: Path, key: K, value: V, hasher: &impl BuildHasher) -> bool {
        match self {
            Self::Empty => {
                *self = Self::Leaf(Leaf::new(path, key, value));
                true
            }
            Self::Branch(children) => match Arc::make_mut(children).get_mut(path.step()) {
                Some(child) => child.insert(path, key, value, hasher),
                // `step` stays below WAYS.
                None => false,
            },
            Self::Leaf(leaf) => {
                if let Some(entry) = leaf.position(path, &key).and_then(|index| leaf.entries.get_mut(index)) {
                    entry.1 = value;
                    return false;
                }
                if leaf.entries.len() < LEAF || path.depth >= DEEPEST {
                    leaf.push(path, key, value);
                    return true;
                }
                let entries = std::mem::take(&mut leaf.entries);
                *self = Self::branch(path.depth, entries, hasher);
                self.insert(path, key, value, hasher)
            }
        }
    }

    /// The branch that replaces a full leaf, with the leaf's entries.
    fn branch(depth: u32, entries: Box<[(K, V)]>, hasher: &impl BuildHasher) -> Self {
        let mut children: [Self; WAYS] = Default::default();
        for (key, value) in entries {
            let mut path = Path::new(hasher.hash_one(&key));
            (path.hash, path.depth) = (path.hash >> (depth * BITS), depth);
            if let Some(child) = children.get_mut(path.step()) {
                child.insert(path, key, value, hasher);
            }
        }
        Self::Branch(Arc::new(children))
    }

    fn get_mut(&mut self, mut path: Path, key: &K) -> Option<&mut V> {
        match self {
            Self::Empty => None,
            Self::Branch(children) => Arc::make_mut(children).get_mut(path.step())?.get_mut(path, key),
            Self::Leaf(leaf) => {
                let index = leaf.position(path, key)?;
                leaf.entries.get_mut(index).map(|(_, value)| value)
            }
        }
    }

    fn remove(&mut self, mut path: Path, key: &K) {
        match self {
            Self::Empty => {}
            Self::Leaf(leaf) => {
                leaf.remove(path, key);
                if leaf.entries.is_empty() {
                    *self = Self::Empty;
                }
            }
            Self::Branch(children) => {
                let children = Arc::make_mut(children);
                if let Some(child) = children.get_mut(path.step()) {
                    child.remove(path, key);
                }
                if children.iter().all(|child| matches!(child, Self::Empty)) {
                    *self = Self::Empty;
                }
            }
        }
    }
}

/// Entries of a [`Map`].
pub(super) struct Iter<'m, K, V> {
    nodes: Vec<std::slice::Iter<'m, Node<K, V>>>,
    entries: std::slice::Iter<'m, (K, V)>,
}

impl<'m, K, V> Iterator for Iter<'m, K, V> {
    type Item = &'m (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            match self.nodes.last_mut()?.next() {
                None => drop(self.nodes.pop()),
                Some(Node::Empty) => {}
                Some(Node::Leaf(leaf)) => self.entries = leaf.entries.iter(),
                Some(Node::Branch(children)) => self.nodes.push(children.iter()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// A key with one of four hashes only, so that many keys collide in every bit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Colliding(u16);

    impl Hash for Colliding {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u8(self.0.to_le_bytes()[0] % 4);
        }
    }

    proptest! {
        #[test]
        fn behaves_like_any_map(steps in proptest::collection::vec((any::<u16>(), any::<Option<u8>>()), 0..2000)) {
            let (mut map, mut model) = (Map::default(), HashMap::new());
            for (key, value) in steps {
                // A small key range, so that the steps hit existing keys.
                let key = key % 700;
                match value {
                    Some(value) => {
                        // An existing value is changed in place.
                        match map.get_mut(&key) {
                            Some(existing) => *existing = value,
                            None => map.insert(key, value),
                        }
                        model.insert(key, value);
                    }
                    None => {
                        map.remove(&key);
                        model.remove(&key);
                    }
                }
            }
            for key in 0..700 {
                prop_assert_eq!(map.get(&key), model.get(&key));
            }
            let mut entries: Vec<(u16, u8)> = map.iter().copied().collect();
            let mut expected: Vec<(u16, u8)> = model.into_iter().collect();
            entries.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(&entries, &expected);
            // Maps with equal content are equal, although each map has its own hash seed and insertion order.
            let mut reversed = Map::default();
            expected.into_iter().rev().for_each(|(key, value)| reversed.insert(key, value));
            prop_assert_eq!(&map, &reversed);
            reversed.insert(9999, 0);
            prop_assert_ne!(&map, &reversed);
        }
    }

    #[test]
    fn keys_with_equal_hashes_are_distinct_entries() {
        let mut map = Map::default();
        (0..1000).for_each(|n| map.insert(Colliding(n), n));
        assert!((0..1000).all(|n| map.get(&Colliding(n)) == Some(&n)));
        (0..1000).step_by(2).for_each(|n| map.remove(&Colliding(n)));
        assert!((0..1000).all(|n| map.get(&Colliding(n)).is_some() == (n % 2 == 1)));
        assert_eq!(map.iter().count(), 500);
    }

    #[test]
    fn an_older_version_keeps_its_content() {
        let mut map = Map::default();
        (0..500u32).for_each(|n| map.insert(n, n));
        let older = map.clone();
        (0..500u32).for_each(|n| {
            if n % 3 == 0 {
                map.remove(&n)
            } else {
                map.insert(n, n + 1)
            }
        });
        assert!((0..500u32).all(|n| older.get(&n) == Some(&n)));
        assert_eq!(map.get(&1), Some(&2));
        assert_eq!(map.get(&0), None);
    }
}
