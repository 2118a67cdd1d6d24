//! The audit store: a database of its own into which the sealer writes entries, in order and once; and the outbox in
//! which entries of mutations wait for it.
//!
//! Start with [`AuditStore`]; [`Store::outbox`](crate::Store::outbox) is the other end.

mod columns;
mod erase;
mod integrity;
mod list;
mod outbox;
mod prune;
mod store;

pub use erase::ErasurePlan;
pub use integrity::{LogRow, TamperedRow};
pub use list::{AccessFilter, AccessLog, AuditFilter, AuditLog, StatusFilter};
pub use outbox::OutboxEntry;
pub use prune::{MIN_AGE, PruneBatch, Pruned, Remaining, StopReason, StoredAnchor};
pub use store::{AuditStore, Claim, SealedRow, ToSeal};
