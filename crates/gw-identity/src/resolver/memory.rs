//! A cache of contract answers.

use super::Fact;
use gw_types::{Seconds, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Maximum number of cached facts. Beyond it, facts are not cached: an answer costs one call.
const MAX: usize = 4096;

/// Facts by key, each with the time until which it is valid.
#[derive(Debug)]
pub(super) struct Memory<K, T>(Mutex<BTreeMap<K, (Fact<T>, Timestamp)>>);

impl<K, T> Default for Memory<K, T> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord, T: Copy> Memory<K, T> {
    pub(super) fn get(&self, key: &K, now: Timestamp) -> Option<Fact<T>> {
        let facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        facts.get(key).filter(|(_, until)| now < *until).map(|(fact, _)| *fact)
    }

    /// Caches the answer to a question that was asked at `read`.
    pub(super) fn put(&self, key: K, value: T, read: Timestamp, life: Seconds) -> Fact<T> {
        let fact = Fact { value, read };
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.len() >= MAX {
            facts.retain(|_, (_, until)| read < *until);
        }
        if facts.len() < MAX {
            facts.insert(key, (fact, read.plus(life)));
        }
        fact
    }
}
