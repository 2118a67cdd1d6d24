//! Values that live for a while and are shared by all instances: login sessions, nonces, codes, counters.
//!
//! In the process by default, in Redis or Valkey when `REDIS_URL` is set; both keep the same promises, held by one
//! suite (`tests/it/conformance.rs`). Not here: what the bytes mean, and whether they need sealing.
//!
//! # How to use it
//!
//! A value stands in a [`Space`], which says how long values of its kind live and how many there may be. A new kind of
//! value is a new line in `space.rs`. Keys are the caller's: a hash or a random id, never a token in the clear.
//!
//! ```
//! # use gw_cache::{Cache, Change, Entry, Group, PutError, Space, Window, Rate, Unavailable};
//! # async fn example(cache: &Cache) -> Result<(), Box<dyn std::error::Error>> {
//! // Keep something for its space's life, among at most 20 of one address and 200 of its network.
//! let groups = [Group::new("198.51.100.1", 20), Group::new("198.51.100.0/24", 200)];
//! cache.put(Entry::new(Space::OauthSession, "key", b"value").with_group_limits(&groups)).await?;
//!
//! // Used once: of any number of parallel takes one gets it.
//! let code = cache.take(Space::OauthCode, "hash").await?;
//!
//! // Seen before? `false` if the key was there already.
//! let first = cache.put_new(Entry::new(Space::AcceptedMessage, "hash", b"")).await?;
//!
//! // Read, decide and write as one step; the closure may run again when another writer came in between.
//! let won = cache
//!     .update(Space::OauthSession, "key", |current| match current {
//!         b"open" => (Change::Set(b"done".to_vec()), true),
//!         _ => (Change::Keep, false),
//!     })
//!     .await?; // `None`: there is no such value
//!
//! // Count failures in a window; ask how often somebody may come.
//! let failures = cache.hit(Window::ClientFailures, "client").await?.count;
//! cache.pace(Rate::per_minute("links", 10.try_into()?), "did:test:alice").await.map_err(|wait| format!("{wait:?}"))?;
//! # Ok(()) }
//! ```
//!
//! # Invariants
//!
//! - A value ends exactly on time: at its end nothing finds it any more.
//! - A group never holds more than it may: it refuses, and says when it will have room ([`PutError`]).
//! - A full space refuses values without a group. A value with groups takes the place of the oldest value of the fullest
//!   network (the last group of each value): who takes most places yields first, and nobody closes a space for all.
//! - [`Cache::take`], [`Cache::put_new`], [`Cache::update`], [`Cache::hit`] and [`Cache::pace`] are atomic among all
//!   instances.
//! - When the shared cache is away every call says so within a second ([`Unavailable`]), and works again by itself once
//!   it is back. [`Cache::pace`] alone then counts in the process: a limit must not open because of an outage, nor stop
//!   everybody.
#![warn(missing_docs)]

mod memory;
mod pace;
mod redis;
mod space;

pub use bytes::Bytes;
pub use pace::Rate;
pub use redis::ConnectError;
pub use space::{Space, Window};

use gw_types::{Clock, Seconds, Secret};
use memory::Memory;
use redis::Redis;
use std::{sync::Arc, time::Duration};

/// The cache of this instance, or all instances' one; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cache(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    /// Everything, or what is counted while the shared cache is away.
    memory: Memory,
    shared: Option<Redis>,
}

/// A value to keep.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    space: Space,
    key: &'a str,
    value: &'a [u8],
    life: Duration,
    groups: &'a [Group<'a>],
}

/// Whose values are counted together: one address, or one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    name: &'a str,
    most: u32,
}

/// What [`Cache::update`] does with the value it showed.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Keep,
    /// Puts this in its place; its end stays.
    Set(Vec<u8>),
    /// Removes it.
    Remove,
}

/// How often a key was counted in the window that is open for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// How often, this time included.
    pub count: u64,
    /// When counting starts anew.
    pub ends_in: Duration,
}

impl Hits {
    /// When counting starts anew, as a client is told: whole seconds, one at least.
    pub fn wait(&self) -> Seconds {
        pace::wait(u64::try_from(self.ends_in.as_micros()).unwrap_or(u64::MAX))
    }
}

/// One page of a space, oldest end first.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Keys and values.
    pub entries: Vec<(String, Bytes)>,
    /// How many there are in all.
    pub total: usize,
}

/// The shared cache cannot be reached, or takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache is unavailable")]
pub struct Unavailable;

/// Why a value is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Its space holds all it may.
    #[error("no room for another entry")]
    Full {
        /// By then there is room.
        wait: Seconds,
    },
    /// A group of it holds all it may.
    #[error("no room for another entry of the group")]
    GroupFull {
        /// By then there is room.
        wait: Seconds,
    },
    /// The shared cache cannot be reached.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl<'a> Group<'a> {
    /// At most `most` live values of `name`.
    pub const fn new(name: &'a str, most: u32) -> Self {
        Self { name, most }
    }

    /// All live values of `name`, without a limit of their own.
    pub const fn unlimited(name: &'a str) -> Self {
        Self { name, most: u32::MAX }
    }
}

impl<'a> Entry<'a> {
    /// A value of `space`, for as long as values of its kind live.
    pub const fn new(space: Space, key: &'a str, value: &'a [u8]) -> Self {
        Self {
            space,
            key,
            value,
            life: space.life(),
            groups: &[],
        }
    }

    /// For so long instead; nothing is kept for no time.
    #[must_use]
    pub const fn living(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }

    /// As one of the values of these groups, the widest last. Groups are counted within the space.
    #[must_use]
    pub const fn with_group_limits(mut self, groups: &'a [Group<'a>]) -> Self {
        self.groups = groups;
        self
    }
}

impl Cache {
    /// A cache of this process alone.
    pub fn in_process(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inside {
            memory: Memory::new(clock),
            shared: None,
        }))
    }

    /// The cache at `url`, shared with every instance that uses the same: `redis://`, `rediss://` (TLS), or either with
    /// `-cluster` or `-sentinel`; `valkey` serves as well as `redis`. Tries once; from then on it reconnects by itself.
    pub async fn connect(url: &Secret, clock: Arc<dyn Clock>) -> Result<Self, ConnectError> {
        let shared = Redis::connect(url, Arc::clone(&clock)).await?;
        Ok(Self(Arc::new(Inside {
            memory: Memory::new(clock),
            shared: Some(shared),
        })))
    }

    /// Whether other instances see what is kept here.
    pub fn is_shared(&self) -> bool {
        self.0.shared.is_some()
    }

    /// Whether it answered when it was last asked, and takes writes; does not ask.
    pub fn is_up(&self) -> bool {
        self.0.shared.as_ref().is_none_or(Redis::is_up)
    }

    /// The `maxmemory-policy` by which the shared cache throws values away to make room; `None` if it never does. What
    /// lives here is not there to be forgotten: sessions, single-use marks, limits.
    ///
    /// # Errors
    /// The cache is away, or does not say.
    pub async fn eviction_policy(&self) -> Result<Option<String>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.eviction_policy().await,
            None => Ok(None),
        }
    }

    /// Asks whether it answers.
    pub async fn check(&self) -> Result<(), Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.ping().await,
            None => Ok(()),
        }
    }

    /// Keeps a value, in place of one of the same key.
    pub async fn put(&self, entry: Entry<'_>) -> Result<(), PutError> {
        self.put_if(&entry, false).await.map(|_| ())
    }

    /// Keeps a value unless there is one of the same key; says whether it did.
    pub async fn put_new(&self, entry: Entry<'_>) -> Result<bool, PutError> {
        self.put_if(&entry, true).await
    }

    async fn put_if(&self, entry: &Entry<'_>, only_new: bool) -> Result<bool, PutError> {
        match &self.0.shared {
            Some(shared) => shared.put(entry, only_new).await,
            None => self.0.memory.put(entry, only_new),
        }
    }

    /// A live value.
    pub async fn get(&self, space: Space, key: &str) -> Result<Option<Bytes>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.get(space, key).await,
            None => Ok(self.0.memory.get(space, key)),
        }
    }

    /// Gets and removes a value in one step: one caller gets it, ever.
    pub async fn take(&self, space: Space, key: &str) -> Result<Option<Bytes>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.take(space, key).await,
            None => Ok(self.0.memory.take(space, key)),
        }
    }

    /// Shows a live value to `work` and does what it says, as one step: between the look and the change nobody else
    /// changes it. In the shared cache that means `work` may run again, so it must only compute.
    ///
    /// `None` if there is no such value.
    pub async fn update<R: Send>(
        &self,
        space: Space,
        key: &str,
        work: impl FnMut(&[u8]) -> (Change, R) + Send,
    ) -> Result<Option<R>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.update(space, key, work).await,
            None => Ok(self.0.memory.update(space, key, work)),
        }
    }

    /// A page of a space: `limit` live values after the first `offset`. A key of more than 200 bytes may come back as
    /// its digest.
    pub async fn list(&self, space: Space, offset: usize, limit: usize) -> Result<Listed, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.list(space, offset, limit).await,
            None => Ok(self.0.memory.list(space, offset, limit)),
        }
    }

    /// Counts `key` in its window, which opens with the first count.
    pub async fn hit(&self, window: Window, key: &str) -> Result<Hits, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.hit(window, key).await,
            None => self.0.memory.hit(window, key),
        }
    }

    /// How often `key` was counted in its window, without counting it.
    pub async fn hits(&self, window: Window, key: &str) -> Result<Hits, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.hits(window, key).await,
            None => self.0.memory.hits(window, key),
        }
    }

    /// Counts one request of `key`; refused, it says how long to wait. Counted in this process while the shared cache
    /// is away.
    pub async fn pace(&self, rate: Rate, key: &str) -> Result<(), Seconds> {
        match &self.0.shared {
            Some(shared) => match shared.pace(rate, key).await {
                Ok(verdict) => verdict,
                Err(Unavailable) => self.0.memory.pace(rate, key),
            },
            None => self.0.memory.pace(rate, key),
        }
    }
}

impl core::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Entry")
            .field("space", &self.space)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Change {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Set(_) => "Set",
            Self::Remove => "Remove",
        })
    }
}
