//! The cache of one process.
//!
//! Time is the caller's clock, so that ends are exact and testable. Each space has one lock, held for a look-up and a
//! change; what has ended leaves with the next call on its space.

use crate::{
    Change, Entry, Hits, Listed, PutError, Rate, Space, Unavailable, Window,
    pace::{self, Verdict},
};
use bytes::Bytes;
use gw_types::{Clock, Seconds, Timestamp};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Keys of one rate; when so many are busy at once, a new one waits.
const PACED: usize = 1_000_000;
/// After so many checks the keys that are idle again are forgotten.
const SWEEP_EVERY: usize = 4096;

#[derive(Debug)]
pub(crate) struct Memory {
    clock: Arc<dyn Clock>,
    shelves: Vec<(Space, Mutex<Shelf>)>,
    windows: Vec<(Window, Mutex<Shelf>)>,
    paces: Mutex<HashMap<&'static str, Paced>>,
}

/// The values of one space.
#[derive(Default)]
struct Shelf {
    entries: HashMap<Arc<str>, Held>,
    /// The same keys by their end.
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    groups: HashMap<Arc<str>, u32>,
}

struct Held {
    until: Timestamp,
    value: Bytes,
    group: Option<Arc<str>>,
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
            shelves: Space::ALL.iter().map(|space| (*space, Mutex::default())).collect(),
            windows: Window::ALL.iter().map(|window| (*window, Mutex::default())).collect(),
            paces: Mutex::default(),
        }
    }

    pub(crate) fn put(&self, entry: &Entry<'_>, only_new: bool) -> Result<bool, PutError> {
        let (mut shelf, now) = self.shelf(entry.space)?;
        let old = shelf.entries.get(entry.key);
        if only_new && old.is_some() {
            return Ok(false);
        }
        if old.is_none() && shelf.entries.len() >= entry.space.most() {
            return Err(PutError::Full);
        }
        if let Some(group) = entry.group {
            // A value in the place of one of the same group needs no further room.
            let same = old.and_then(|held| held.group.as_deref()) == Some(group.name);
            if !same && shelf.groups.get(group.name).is_some_and(|count| *count >= group.most) {
                return Err(PutError::GroupFull);
            }
        }
        shelf.remove(entry.key);
        shelf.insert(entry.key, entry.value, entry.group.map(|group| group.name), end(now, entry.life));
        Ok(true)
    }

    pub(crate) fn get(&self, space: Space, key: &str) -> Option<Bytes> {
        let (shelf, _) = self.shelf(space).ok()?;
        shelf.entries.get(key).map(|held| held.value.clone())
    }

    pub(crate) fn take(&self, space: Space, key: &str) -> Option<Bytes> {
        let (mut shelf, _) = self.shelf(space).ok()?;
        shelf.remove(key).map(|held| held.value)
    }

    pub(crate) fn update<R>(&self, space: Space, key: &str, mut work: impl FnMut(&[u8]) -> (Change, R)) -> Option<R> {
        let (mut shelf, _) = self.shelf(space).ok()?;
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

    pub(crate) fn list(&self, space: Space, offset: usize, limit: usize) -> Listed {
        let Ok((shelf, _)) = self.shelf(space) else { return Listed::default() };
        let page = shelf.ends.iter().skip(offset).take(limit);
        let entries =
            page.filter_map(|(_, key)| Some((key.to_string(), shelf.entries.get(key)?.value.clone()))).collect();
        Listed { entries, total: shelf.entries.len() }
    }

    pub(crate) fn hit(&self, window: Window, key: &str) -> Result<Hits, Unavailable> {
        let (mut shelf, now) = self.window(window)?;
        let full = shelf.entries.len() >= window.most();
        let (count, until) = match shelf.entries.get_mut(key) {
            Some(held) => {
                let count = counted(&held.value).saturating_add(1);
                held.value = Bytes::copy_from_slice(&count.to_be_bytes());
                (count, held.until)
            }
            // What cannot be counted cannot be let through.
            None if full => return Err(Unavailable),
            None => {
                let until = end(now, window.life());
                shelf.insert(key, &1u64.to_be_bytes(), None, until);
                (1, until)
            }
        };
        Ok(Hits { count, ends_in: between(now, until) })
    }

    pub(crate) fn hits(&self, window: Window, key: &str) -> u64 {
        let Ok((shelf, _)) = self.window(window) else { return u64::MAX };
        shelf.entries.get(key).map_or(0, |held| counted(&held.value))
    }

    pub(crate) fn pace(&self, rate: Rate, key: &str) -> Result<(), Seconds> {
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
                Verdict::Wait(micros) => return Err(pace::wait(micros)),
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

    fn shelf(&self, space: Space) -> Result<(MutexGuard<'_, Shelf>, Timestamp), Unavailable> {
        let found = self.shelves.iter().find(|(of, _)| *of == space);
        found.map(|(_, shelf)| self.tidied(shelf)).ok_or(Unavailable)
    }

    fn window(&self, window: Window) -> Result<(MutexGuard<'_, Shelf>, Timestamp), Unavailable> {
        let found = self.windows.iter().find(|(of, _)| *of == window);
        found.map(|(_, shelf)| self.tidied(shelf)).ok_or(Unavailable)
    }

    /// The shelf without what has ended.
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
    fn insert(&mut self, key: &str, value: &[u8], group: Option<&str>, until: Timestamp) {
        let key: Arc<str> = key.into();
        let group: Option<Arc<str>> = group.map(Arc::from);
        if let Some(group) = &group {
            *self.groups.entry(Arc::clone(group)).or_default() += 1;
        }
        self.ends.insert((until, Arc::clone(&key)));
        self.entries.insert(key, Held { until, value: Bytes::copy_from_slice(value), group });
    }

    fn remove(&mut self, key: &str) -> Option<Held> {
        let (key, held) = self.entries.remove_entry(key)?;
        if let Some(group) = &held.group
            && let Some(count) = self.groups.get_mut(group)
        {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(group);
            }
        }
        self.ends.remove(&(held.until, key));
        Some(held)
    }
}

impl core::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shelf").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(now: Timestamp, life: Duration) -> Timestamp {
    let life = i64::try_from(life.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.micros().saturating_add(life))
}

fn between(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(until.micros().saturating_sub(now.micros())).unwrap_or(0))
}

fn counted(value: &[u8]) -> u64 {
    <[u8; 8]>::try_from(value).map_or(0, u64::from_be_bytes)
}
