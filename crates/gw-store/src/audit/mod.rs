//! The audit store: a separate database into which the sealer writes entries, in order and exactly once; and the outbox
//! in which entries of mutations wait for the sealer.
//!
//! Start with [`AuditStore`]; [`Store::outbox`](crate::Store::outbox) reads the waiting entries.

mod anchors;
mod chain_rows;
mod checkpoints;
mod columns;
mod cursor;
mod disclosure_events;
mod erase;
mod heads;
mod ids;
mod integrity;
mod list;
mod logged_holds;
pub(crate) mod outbox;
pub(crate) mod outbox_key;
mod prune;
mod readable;
mod sealed_outbox;
mod sealed_rows;
mod sealing;
mod starts;
mod store;
mod verification;
mod watch;

pub use anchors::{AnchorRow, StoredAnchor};
pub use cursor::{AccessPosition, AuditPosition, LogPage};
pub use disclosure_events::DisclosureEvent;
pub use erase::ErasurePlan;
pub use heads::JournalHead;
pub use integrity::{LogRow, TamperedRow};
pub use list::{AccessFilter, AccessLog, AuditFilter, AuditLog, CallCount, CallFilter, StatusFilter};
pub use logged_holds::KnownHolds;
pub use outbox::{OutboxAlarm, OutboxEntry, OutboxMark, OutboxSalts};
pub(crate) use outbox::{OutboxAlarms, UnsealedRows};
pub use outbox_key::OutboxKey;
pub use prune::{MIN_AGE, PruneBatch, Pruned, Remaining, StopReason};
pub use readable::MalformedChain;
pub use sealed_outbox::{NewestMutation, SealedAdminEntry};
pub use sealed_rows::SealedRow;
pub use sealing::{Claim, ToSeal};
pub use store::AuditStore;
pub use verification::{ChainState, SignedNote, SignedNotes};
pub use watch::TamperedRead;
