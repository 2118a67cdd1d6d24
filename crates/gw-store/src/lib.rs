//! The policy store: schema, mutations and queries on SQLite and PostgreSQL, conversion of rows to a [`Snapshot`], the
//! change feed between instances, and the audit store that the sealer writes into.
//!
//! Start with [`Store`] (open, migrate), then [`Tx`] (every mutation) and [`Queries`] (every query); [`Feed`] keeps the
//! newest [`Snapshot`] and says whether it is fresh. Only `dialect` contains the differences between the engines. This
//! crate makes no policy decisions.
//!
//! Invariants (HD23, C6): a mutation, its audit entry, the change rows of its triggers and the epoch are one
//! transaction; epochs are contiguous and in commit order, because every mutating transaction first locks the one epoch
//! row and raises it as its last statement.
//!
//! [`Snapshot`]: gw_policy::Snapshot

#![warn(clippy::missing_errors_doc)]

pub mod audit;
mod config;
mod dialect;
mod entity;
mod error;
mod feed;
mod lease;
mod lock;
mod migration;
mod purge;
pub mod read;
pub mod record;
mod row;
mod seed;
mod snapshot;
mod store;
mod tx;
mod webhook;

pub use audit::AuditStore;
pub use config::{Actor, Location, OutboxGuard, OutboxWitness, StoreConfig};
pub use dialect::schema::IndexCheck;
pub use error::{Conflict, Missing, StoreError};
pub use feed::rules as feed_rules;
pub use feed::{BootClock, CallSnapshot, ClockJump, Feed, FeedClock, FeedTiming, Uptime};
pub use lease::InstanceLease;
pub use lock::{DirectoryLock, LockError};
pub use read::Queries;
pub use store::Store;
pub use tx::{DisclosureError, GrantTerms, Tx};
