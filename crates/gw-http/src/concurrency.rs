//! Limits of the concurrent calls of a caller. They are counted in this process.

use crate::limit::AddressKey;
use gw_types::{PersonalUrlId, UserId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The key under which the calls of a caller are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKey {
    /// A user.
    User(UserId),
    /// A personal URL, counted separately from its owner because web pages use it (HD17).
    Url(PersonalUrlId),
    /// The anonymous callers of one address (decision 54).
    Address(AddressKey),
}

/// Limits the concurrent calls of each key. Keys without calls take no memory.
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    users: usize,
    addresses: usize,
    counts: Mutex<HashMap<LimitKey, usize>>,
}

impl ConcurrencyLimiter {
    /// `users` concurrent calls of one user or personal URL, `addresses` of one anonymous address.
    pub fn new(users: usize, addresses: usize) -> Arc<Self> {
        Arc::new(Self {
            users,
            addresses,
            counts: Mutex::default(),
        })
    }

    /// A permit, which is returned when it is dropped; `None` if all permits of the key are in use.
    pub fn try_acquire(self: &Arc<Self>, key: LimitKey) -> Option<ConcurrencyPermit> {
        let max = match key {
            LimitKey::User(_) | LimitKey::Url(_) => self.users,
            LimitKey::Address(_) => self.addresses,
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = counts.get(&key).copied().unwrap_or(0);
        if taken >= max {
            return None;
        }
        counts.insert(key, taken + 1);
        drop(counts);
        Some(ConcurrencyPermit {
            limiter: Arc::clone(self),
            key,
        })
    }
}

/// The permit of one concurrent call.
#[derive(Debug)]
#[must_use]
pub struct ConcurrencyPermit {
    limiter: Arc<ConcurrencyLimiter>,
    key: LimitKey,
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j8_permits_are_counted_per_key_and_returned() {
        let limits = ConcurrencyLimiter::new(2, 1);
        let (first, second) = (LimitKey::User(UserId::fixed(1)), LimitKey::User(UserId::fixed(2)));
        let permits = (limits.try_acquire(first).unwrap(), limits.try_acquire(first).unwrap());
        assert!(limits.try_acquire(first).is_none() && limits.try_acquire(second).is_some());
        drop(permits.0);
        assert!(limits.try_acquire(first).is_some());
        drop(permits.1);
        assert!(limits.counts.lock().unwrap().is_empty());
    }
}
