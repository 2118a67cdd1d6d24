//! Background workers: watchers of reserved addresses, contract wallets, privileges, the cache and the journals'
//! numbers; the sealer, the verifier and the retention of the audit log; the sweeper of grants of disclosure; the
//! deliverer of webhook events; and the deletion of expired rows.
//!
//! A worker ends after its current step when its token is cancelled. Ending it at any time loses no data.

mod cache;
mod contract_wallets;
mod disclosure;
mod journal_heads;
mod privileges;
mod purge;
mod reservations;
mod retention;
mod sealer;
mod verify;
mod webhooks;

pub(crate) use cache::watch as watch_cache;
pub(crate) use contract_wallets::ContractWallets;
pub(crate) use disclosure::DisclosureSweeper;
pub(crate) use journal_heads::watch as watch_journal_heads;
pub(crate) use privileges::watch as watch_privileges;
pub(crate) use purge::purge_expired;
pub(crate) use reservations::watch as watch_reservations;
pub(crate) use retention::Retention;
pub(crate) use sealer::{ADMIN_CHAIN, Alarm as OutboxAlarm, Sealing, SealingHealth, raise_outbox_ids, seal};
#[cfg(test)]
pub(crate) use verify::Outcome;
pub(crate) use verify::{Verification, index_faults, is_changed, is_index_faulty, verify};
pub(crate) use webhooks::WebhookDeliverer;
