//! The audit store: a database of its own into which the sealer writes entries, in order and once; and the outbox in
//! which entries of mutations wait for it.
//!
//! Start with [`AuditStore`]; [`Store::outbox`](crate::Store::outbox) is the other end.

mod columns;
mod list;
mod outbox;
mod store;
mod verification;

pub use list::{AccessFilter, AccessLog, AuditFilter, AuditLog, StatusFilter};
pub use outbox::OutboxEntry;
pub use store::{AuditStore, Claim, SealedRow, ToSeal};
pub use verification::{ChainState, SignedNote};
