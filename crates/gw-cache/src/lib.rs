//! Values with a limited lifetime, shared by all instances: login sessions, nonces, codes, counters.
//!
//! Stored in the process by default, in Redis or Valkey if `REDIS_URL` is set; both give the same guarantees, tested by
//! one suite (`tests/it/conformance.rs`). The content of values, and whether it needs sealing, is up to the caller.
//!
//! # How to use it
//!
//! A value belongs to a [`Namespace`], which defines how long values of its kind live and how many there may be. A new
//! kind of value is a new line in `namespace.rs`. The caller chooses keys: a hash or a random id, never a token in the
//! clear.
//!
//! ```
//! # use gw_cache::{Cache, Change, Entry, Group, PutError, Namespace, CounterKind, Rate, Unavailable};
//! # async fn example(cache: &Cache) -> Result<(), Box<dyn std::error::Error>> {
//! // Keep something for its namespace's ttl, among at most 20 of one address and 200 of its network.
//! let groups = [Group::new("198.51.100.1", 20), Group::new("198.51.100.0/24", 200)];
//! cache.put(Entry::new(Namespace::OauthSession, "key", b"value").with_group_limits(&groups)).await?;
//!
//! // Used once: of any number of parallel takes one gets it.
//! let code = cache.take(Namespace::OauthCode, "hash").await?;
//!
//! // Seen before? `false` if the key was there already.
//! let first = cache.put_new(Entry::new(Namespace::AcceptedMessage, "hash", b"")).await?;
//!
//! // Read, decide and write as one step; the closure may run again when another writer came in between.
//! let won = cache
//!     .update(Namespace::OauthSession, "key", |current| match current {
//!         b"open" => (Change::Set(b"done".to_vec()), true),
//!         _ => (Change::Keep, false),
//!     })
//!     .await?; // `None`: there is no such value
//!
//! // Count failures in a window; check a rate limit.
//! let failures = cache.hit(CounterKind::ClientFailures, "client").await?.count;
//! let rate = Rate::per_minute("links", 10.try_into()?);
//! cache.check_rate(rate, "did:test:alice").await.map_err(|wait| format!("{wait:?}"))?;
//! # Ok(()) }
//! ```
//!
//! # Invariants
//!
//! - A value ends exactly on time: from its end on no call finds it.
//! - A group never exceeds its limit: it rejects values, and says when it will have room ([`PutError`]).
//! - A full namespace rejects values without a group. A value with groups replaces the oldest value of the network with
//!   the most values (the last group of each value): the largest user yields first, and no client can block a namespace
//!   for all.
//! - [`Cache::take`], [`Cache::put_new`], [`Cache::update`], [`Cache::hit`] and [`Cache::check_rate`] are atomic across
//!   all instances.
//! - While the shared cache is unreachable every call fails within a second ([`Unavailable`]), and works again by
//!   itself afterwards. Only [`Cache::check_rate`] then counts in the process: an outage must neither disable a limit
//!   nor block all clients.
#![warn(missing_docs)]

mod memory;
mod namespace;
mod rate_limit;
mod redis;

pub use bytes::Bytes;
pub use namespace::{CounterKind, Namespace};
pub use rate_limit::Rate;
pub use redis::ConnectError;

use gw_types::{Clock, Seconds, Secret};
use memory::Memory;
use redis::Redis;
use std::{sync::Arc, time::Duration};

/// The cache of this instance, or the one shared by all instances; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cache(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    /// All values, or the rate limits while the shared cache is unreachable.
    memory: Memory,
    shared: Option<Redis>,
}

/// A value to store.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    namespace: Namespace,
    key: &'a str,
    value: &'a [u8],
    ttl: Duration,
    groups: &'a [Group<'a>],
}

/// A group of values that are counted together: of one address, or one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    name: &'a str,
    limit: u32,
}

/// The change that [`Cache::update`] makes to the value.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Leaves the value unchanged.
    Keep,
    /// Replaces the value; its end stays.
    Set(Vec<u8>),
    /// Removes the value.
    Remove,
}

/// The count of a key in its open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// The count, including this time.
    pub count: u64,
    /// Time until the window ends.
    pub ends_in: Duration,
}

impl Hits {
    /// Returns the time until the window ends for clients: whole seconds, at least one.
    pub fn wait(&self) -> Seconds {
        rate_limit::wait(u64::try_from(self.ends_in.as_micros()).unwrap_or(u64::MAX))
    }
}

/// One page of a namespace, ordered by end.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Keys and values.
    pub entries: Vec<(String, Bytes)>,
    /// Number of values in the namespace.
    pub total: usize,
}

/// Error: the shared cache cannot be reached, or accepts no writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache is unavailable")]
pub struct Unavailable;

/// Why a value is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Its namespace is full.
    #[error("no room for another entry")]
    Full {
        /// Time until there is room.
        wait: Seconds,
    },
    /// One of its groups is full.
    #[error("no room for another entry of the group")]
    GroupFull {
        /// Time until there is room.
        wait: Seconds,
    },
    /// The shared cache cannot be reached.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl<'a> Group<'a> {
    /// Creates a group with at most `limit` live values.
    pub const fn new(name: &'a str, limit: u32) -> Self {
        Self { name, limit }
    }

    /// Creates a group without a limit.
    pub const fn unlimited(name: &'a str) -> Self {
        Self { name, limit: u32::MAX }
    }
}

impl<'a> Entry<'a> {
    /// Creates a value of `namespace` with the lifetime of that namespace.
    pub const fn new(namespace: Namespace, key: &'a str, value: &'a [u8]) -> Self {
        Self {
            namespace,
            key,
            value,
            ttl: namespace.ttl(),
            groups: &[],
        }
    }

    /// Sets another lifetime; a value with lifetime zero is not stored.
    #[must_use]
    pub const fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Adds the value to these groups, the widest last. Groups are counted within the namespace.
    #[must_use]
    pub const fn with_group_limits(mut self, groups: &'a [Group<'a>]) -> Self {
        self.groups = groups;
        self
    }
}

impl Cache {
    /// Creates a cache for this process alone.
    pub fn in_process(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inside {
            memory: Memory::new(clock),
            shared: None,
        }))
    }

    /// Connects to the cache at `url`, which is shared with every instance that uses the same URL: `redis://`,
    /// `rediss://` (TLS), or either with `-cluster` or `-sentinel`; `valkey` works like `redis`. Tries once; later it
    /// reconnects by itself.
    ///
    /// # Errors
    /// [`ConnectError`] if the URL is invalid or the cache cannot be used.
    pub async fn connect(url: &Secret, clock: Arc<dyn Clock>) -> Result<Self, ConnectError> {
        let shared = Redis::connect(url, Arc::clone(&clock)).await?;
        Ok(Self(Arc::new(Inside {
            memory: Memory::new(clock),
            shared: Some(shared),
        })))
    }

    /// Whether other instances see the values stored here.
    pub fn is_shared(&self) -> bool {
        self.0.shared.is_some()
    }

    /// Whether the shared cache is connected, its circuit breaker is closed and it accepts writes, as far as known;
    /// does not query the server.
    pub fn is_up(&self) -> bool {
        self.0.shared.as_ref().is_none_or(Redis::is_up)
    }

    /// Returns the `maxmemory-policy` by which the shared cache evicts values; `None` if it never does. The values here
    /// must not be evicted: sessions, single-use marks, limits.
    ///
    /// # Errors
    /// If the cache is unreachable or does not return the setting.
    pub async fn eviction_policy(&self) -> Result<Option<String>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.eviction_policy().await,
            None => Ok(None),
        }
    }

    /// Checks that the cache answers.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn check(&self) -> Result<(), Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.ping().await,
            None => Ok(()),
        }
    }

    /// Stores a value; replaces one with the same key.
    ///
    /// # Errors
    /// [`PutError`] if the namespace is full or the shared cache does not answer.
    pub async fn put(&self, entry: Entry<'_>) -> Result<(), PutError> {
        self.put_if(&entry, false).await.map(|_| ())
    }

    /// Stores a value unless one with the same key exists; returns whether it did.
    ///
    /// # Errors
    /// [`PutError`] if the namespace is full or the shared cache does not answer.
    pub async fn put_new(&self, entry: Entry<'_>) -> Result<bool, PutError> {
        self.put_if(&entry, true).await
    }

    async fn put_if(&self, entry: &Entry<'_>, only_new: bool) -> Result<bool, PutError> {
        match &self.0.shared {
            Some(shared) => shared.put(entry, only_new).await,
            None => self.0.memory.put(entry, only_new),
        }
    }

    /// Returns a live value.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn get(&self, namespace: Namespace, key: &str) -> Result<Option<Bytes>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.get(namespace, key).await,
            None => Ok(self.0.memory.get(namespace, key)),
        }
    }

    /// Returns and removes a value in one step: only one caller ever gets it.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn take(&self, namespace: Namespace, key: &str) -> Result<Option<Bytes>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.take(namespace, key).await,
            None => Ok(self.0.memory.take(namespace, key)),
        }
    }

    /// Calls `work` with a live value and applies the returned change in one step: no other caller changes the value in
    /// between. In the shared cache `work` may run again, so it must only compute.
    ///
    /// `None` if there is no such value.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn update<R: Send>(
        &self,
        namespace: Namespace,
        key: &str,
        work: impl FnMut(&[u8]) -> (Change, R) + Send,
    ) -> Result<Option<R>, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.update(namespace, key, work).await,
            None => Ok(self.0.memory.update(namespace, key, work)),
        }
    }

    /// Returns a page of a namespace: `limit` live values after the first `offset`. A key longer than 200 bytes may be
    /// returned as its digest.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn list(&self, namespace: Namespace, offset: usize, limit: usize) -> Result<Listed, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.list(namespace, offset, limit).await,
            None => Ok(self.0.memory.list(namespace, offset, limit)),
        }
    }

    /// Increments the count of `key` in its window, which opens with the first count.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer, or if the process counts as many keys as it may.
    pub async fn hit(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.hit(kind, key).await,
            None => self.0.memory.hit(kind, key),
        }
    }

    /// Returns the count of `key` in its window, without incrementing it.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn hits(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        match &self.0.shared {
            Some(shared) => shared.hits(kind, key).await,
            None => self.0.memory.hits(kind, key),
        }
    }

    /// Counts one request of `key`; if rejected, returns how long to wait. Counts in this process while the shared
    /// cache is unreachable.
    ///
    /// # Errors
    /// The time to wait, if the request is over the limit.
    pub async fn check_rate(&self, rate: Rate, key: &str) -> Result<(), Seconds> {
        match &self.0.shared {
            Some(shared) => match shared.check_rate(rate, key).await {
                Ok(verdict) => verdict,
                Err(Unavailable) => self.0.memory.check_rate(rate, key),
            },
            None => self.0.memory.check_rate(rate, key),
        }
    }
}

impl core::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Entry")
            .field("namespace", &self.namespace)
            .field("ttl", &self.ttl)
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
