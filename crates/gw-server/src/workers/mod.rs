//! What runs beside the requests: the watchers of reserved addresses, of contract wallets and of the cache, the sealer and the
//! verifier of the audit log, tidying up.
//!
//! A worker ends when it is told to, after the step it is at; nothing is lost by ending it at any time.

mod cache;
mod contract_wallets;
mod reservations;
mod sealer;
mod tidy;
mod verify;

pub(crate) use cache::watch as watch_cache;
pub(crate) use contract_wallets::ContractWallets;
pub(crate) use reservations::watch as watch_reservations;
pub(crate) use sealer::{Sealing, seal};
pub(crate) use tidy::tidy;
pub(crate) use verify::{Verification, verify};
