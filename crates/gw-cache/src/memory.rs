//! The cache of one process.
//!
//! Time comes from the caller's clock, so that ends are exact and testable. Each namespace has one lock, held for a
//! look-up and a change; expired values are removed by the next call on their namespace.

use crate::{
    Change, CounterKind, Entry, Hits, Listed, Namespace, PutError, Rate, Unavailable,
    rate_limit::{self, Verdict},
};
use bytes::Bytes;
use gw_types::{Clock, Seconds, Timestamp};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Maximum busy keys of one rate; beyond that, a new key must wait.
const PACED: usize = 1_000_000;
/// Number of checks after which idle keys are removed.
const SWEEP_EVERY: usize = 4096;

#[derive(Debug)]
pub(crate) struct Memory {
    clock: Arc<dyn Clock>,
    shelves: Vec<(Namespace, Mutex<Shelf>)>,
    windows: Vec<(CounterKind, Mutex<Shelf>)>,
    paces: Mutex<HashMap<&'static str, Paced>>,
}

/// The values of one namespace.
#[derive(Default)]
struct Shelf {
    entries: HashMap<Arc<str>, Held>,
    /// The keys ordered by end.
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    /// The keys of each group, ordered by end.
    groups: HashMap<Arc<str>, BTreeSet<(Timestamp, Arc<str>)>>,
    /// Number of values per network, which is the last group of each value.
    networks: BTreeSet<(usize, Arc<str>)>,
}

struct Held {
    until: Timestamp,
    value: Bytes,
    groups: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
struct Paced {
    due: HashMap<Box<str>, u64>,
    checks: usize,
}

impl Memory {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            shelves: Namespace::ALL
                .iter()
                .map(|namespace| (*namespace, Mutex::default()))
                .collect(),
            windows: CounterKind::ALL.iter().map(|kind| (*kind, Mutex::default())).collect(),
            paces: Mutex::default(),
        }
    }

    pub(crate) fn put(&self, entry: &Entry<'_>, only_new: bool) -> Result<bool, PutError> {
        let (mut shelf, now) = self.shelf(entry.namespace)?;
        let old = shelf.entries.get(entry.key);
        if only_new && old.is_some() {
            return Ok(false);
        }
        // A value that replaces one of the same group needs no additional room in it.
        let held = |name: &str| old.is_some_and(|old| old.groups.iter().any(|group| &**group == name));
        let full = entry
            .groups
            .iter()
            .filter(|group| !held(group.name))
            .filter_map(|group| {
                let members = shelf.groups.get(group.name)?;
                (members.len() >= usize::try_from(group.limit).unwrap_or(usize::MAX)).then(|| wait(now, members))
            });
        if let Some(wait) = full.max() {
            return Err(PutError::GroupFull { wait });
        }
        if old.is_none() && shelf.entries.len() >= entry.namespace.capacity() {
            let yields = if entry.groups.is_empty() {
                None
            } else {
                shelf.oldest_of_fullest()
            };
            match yields {
                Some(key) => drop(shelf.remove(&key)),
                None => {
                    return Err(PutError::Full {
                        wait: wait(now, &shelf.ends),
                    });
                }
            }
        }
        shelf.remove(entry.key);
        shelf.insert(entry, end(now, entry.ttl));
        Ok(true)
    }

    pub(crate) fn get(&self, namespace: Namespace, key: &str) -> Option<Bytes> {
        let (shelf, _) = self.shelf(namespace).ok()?;
        shelf.entries.get(key).map(|held| held.value.clone())
    }

    pub(crate) fn take(&self, namespace: Namespace, key: &str) -> Option<Bytes> {
        let (mut shelf, _) = self.shelf(namespace).ok()?;
        shelf.remove(key).map(|held| held.value)
    }

    pub(crate) fn update<R>(
        &self,
        namespace: Namespace,
        key: &str,
        mut work: impl FnMut(&[u8]) -> (Change, R),
    ) -> Option<R> {
        let (mut shelf, _) = self.shelf(namespace).ok()?;
        let held = shelf.entries.get_mut(key)?;
        let (change, result) = work(&held.value);
        match change {
            Change::Keep => {}
            Change::Set(value) => held.value = value.into(),
            Change::Remove => {
                shelf.remove(key);
            }
        }
        Some(result)
    }

    pub(crate) fn list(&self, namespace: Namespace, offset: usize, limit: usize) -> Listed {
        let Ok((shelf, _)) = self.shelf(namespace) else {
            return Listed::default();
        };
        let page = shelf.ends.iter().skip(offset).take(limit);
        let entries = page
            .filter_map(|(_, key)| Some((key.to_string(), shelf.entries.get(key)?.value.clone())))
            .collect();
        Listed {
            entries,
            total: shelf.entries.len(),
        }
    }

    pub(crate) fn hit(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        let (mut shelf, now) = self.counter(kind)?;
        let full = shelf.entries.len() >= kind.capacity();
        let (count, until) = match shelf.entries.get_mut(key) {
            Some(held) => {
                let count = counted(&held.value).saturating_add(1);
                held.value = Bytes::copy_from_slice(&count.to_be_bytes());
                (count, held.until)
            }
            // An event that cannot be counted must not be allowed.
            None if full => return Err(Unavailable),
            None => {
                let until = end(now, kind.ttl());
                let value = Bytes::copy_from_slice(&1u64.to_be_bytes());
                shelf.hold(
                    key,
                    Held {
                        until,
                        value,
                        groups: Vec::new(),
                    },
                );
                (1, until)
            }
        };
        Ok(Hits {
            count,
            ends_in: between(now, until),
        })
    }

    pub(crate) fn hits(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        let (shelf, now) = self.counter(kind)?;
        let none = Hits {
            count: 0,
            ends_in: Duration::ZERO,
        };
        let hits = |held: &Held| Hits {
            count: counted(&held.value),
            ends_in: between(now, held.until),
        };
        Ok(shelf.entries.get(key).map_or(none, hits))
    }

    pub(crate) fn check_rate(&self, rate: Rate, key: &str) -> Result<(), Seconds> {
        let now = u64::try_from(self.clock.now().micros()).unwrap_or(0);
        let mut paces = lock(&self.paces);
        let paced = paces.entry(rate.name).or_default();
        paced.checks += 1;
        if paced.checks.is_multiple_of(SWEEP_EVERY) || paced.due.len() >= PACED {
            paced.due.retain(|_, due| *due > now);
        }
        let full = paced.due.len() >= PACED;
        match paced.due.get_mut(key) {
            Some(due) => match rate.judge(*due, now) {
                Verdict::Allowed(next) => *due = next,
                Verdict::Wait(micros) => return Err(rate_limit::wait(micros)),
            },
            None if full => return Err(Seconds(1)),
            None => {
                if let Verdict::Allowed(next) = rate.judge(now, now) {
                    paced.due.insert(key.into(), next);
                }
            }
        }
        Ok(())
    }

    fn shelf(&self, namespace: Namespace) -> Result<(MutexGuard<'_, Shelf>, Timestamp), Unavailable> {
        let shelf = self.shelves.iter().find(|(other, _)| *other == namespace);
        shelf.map(|(_, shelf)| self.tidied(shelf)).ok_or(Unavailable)
    }

    fn counter(&self, kind: CounterKind) -> Result<(MutexGuard<'_, Shelf>, Timestamp), Unavailable> {
        let counter = self.windows.iter().find(|(other, _)| *other == kind);
        counter.map(|(_, shelf)| self.tidied(shelf)).ok_or(Unavailable)
    }

    /// Locks a shelf and removes its expired values.
    fn tidied<'a>(&self, shelf: &'a Mutex<Shelf>) -> (MutexGuard<'a, Shelf>, Timestamp) {
        let mut shelf = lock(shelf);
        let now = self.clock.now();
        while let Some((until, key)) = shelf.ends.first().cloned() {
            if until > now {
                break;
            }
            shelf.remove(&key);
        }
        (shelf, now)
    }
}

impl Shelf {
    fn insert(&mut self, entry: &Entry<'_>, until: Timestamp) {
        let groups = entry.groups.iter().map(|group| Arc::from(group.name)).collect();
        self.hold(
            entry.key,
            Held {
                until,
                value: Bytes::copy_from_slice(entry.value),
                groups,
            },
        );
    }

    fn hold(&mut self, key: &str, held: Held) {
        let key: Arc<str> = key.into();
        for group in &held.groups {
            self.groups
                .entry(Arc::clone(group))
                .or_default()
                .insert((held.until, Arc::clone(&key)));
        }
        if let Some(network) = held.groups.last() {
            let count = self.groups.get(network).map_or(0, BTreeSet::len);
            self.networks.remove(&(count.saturating_sub(1), Arc::clone(network)));
            self.networks.insert((count, Arc::clone(network)));
        }
        self.ends.insert((held.until, Arc::clone(&key)));
        self.entries.insert(key, held);
    }

    fn remove(&mut self, key: &str) -> Option<Held> {
        let (key, held) = self.entries.remove_entry(key)?;
        let place = (held.until, key);
        for group in &held.groups {
            if let Some(members) = self.groups.get_mut(group) {
                members.remove(&place);
                if members.is_empty() {
                    self.groups.remove(group);
                }
            }
        }
        if let Some(network) = held.groups.last() {
            let left = self.groups.get(network).map_or(0, BTreeSet::len);
            self.networks.remove(&(left.saturating_add(1), Arc::clone(network)));
            if left > 0 {
                self.networks.insert((left, Arc::clone(network)));
            }
        }
        self.ends.remove(&place);
        Some(held)
    }

    /// Returns the key to evict from a full namespace: the oldest value of the network with the most values.
    fn oldest_of_fullest(&self) -> Option<Arc<str>> {
        let (_, network) = self.networks.last()?;
        self.groups.get(network)?.first().map(|(_, key)| Arc::clone(key))
    }
}

/// Returns the time until the first value ends.
fn wait(now: Timestamp, ends: &BTreeSet<(Timestamp, Arc<str>)>) -> Seconds {
    let micros = ends
        .first()
        .map_or(0, |(until, _)| until.micros().saturating_sub(now.micros()));
    rate_limit::wait(u64::try_from(micros).unwrap_or(0))
}

impl core::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shelf")
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(now: Timestamp, ttl: Duration) -> Timestamp {
    let ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.micros().saturating_add(ttl))
}

fn between(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(until.micros().saturating_sub(now.micros())).unwrap_or(0))
}

fn counted(value: &[u8]) -> u64 {
    <[u8; 8]>::try_from(value).map_or(0, u64::from_be_bytes)
}
