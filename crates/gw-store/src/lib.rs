//! The policy store: schema, mutations and queries on SQLite and PostgreSQL, rows to [`Snapshot`], the change
//! feed between instances, and the audit store that the sealer writes into.
//!
//! Start with [`Store`] (open, migrate), then [`Tx`] (every mutation) and [`Reads`] (every query); [`Feed`] keeps
//! the newest [`Snapshot`] and says whether it is fresh. What the two engines do differently stands in `dialect`
//! and nowhere else. No policy is judged here.
//!
//! Invariants (HD23, C6): a mutation, its audit entry, the change rows its triggers write and the epoch are one
//! transaction; epochs are contiguous and in commit order, because every mutating transaction first locks the one
//! epoch row and raises it as its last statement.
//!
//! [`Snapshot`]: gw_policy::Snapshot

pub mod audit;
mod config;
mod dialect;
mod entity;
mod error;
mod feed;
mod lease;
mod lock;
mod migration;
pub mod read;
pub mod record;
mod row;
mod seed;
mod snapshot;
mod store;
mod tidy;
mod tx;

pub use audit::AuditStore;
pub use config::{Actor, Location, OutboxGuard, OutboxWitness, StoreConfig};
pub use error::{Conflict, Missing, StoreError};
pub use feed::rules as feed_rules;
pub use feed::{BootClock, ClockJump, Feed, FeedClock, FeedTiming, Pinned, Uptime};
pub use lease::InstanceLease;
pub use lock::{DirectoryLock, LockError};
pub use read::Reads;
pub use store::Store;
pub use tx::Tx;
