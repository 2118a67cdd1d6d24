//! What runs beside the requests: the watchers of reserved addresses, of contract wallets, of the cache and of the journals'
//! numbers, the sealer and the verifier of the audit log and what prunes it, tidying up.
//!
//! A worker ends when it is told to, after the step it is at; nothing is lost by ending it at any time.

mod cache;
mod contract_wallets;
mod journal_heads;
mod reservations;
mod retention;
mod sealer;
mod tidy;
mod verify;

pub(crate) use cache::watch as watch_cache;
pub(crate) use contract_wallets::ContractWallets;
pub(crate) use journal_heads::watch as watch_journal_heads;
pub(crate) use reservations::watch as watch_reservations;
pub(crate) use retention::Retention;
pub(crate) use sealer::{ADMIN_CHAIN, Sealing, SealingHealth, raise_alarm, raise_outbox_ids, seal};
pub(crate) use tidy::tidy;
pub(crate) use verify::{Verification, verify};
