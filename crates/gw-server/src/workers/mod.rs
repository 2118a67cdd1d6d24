//! What runs beside the requests: the watcher of reserved addresses, the sealer of the audit log, tidying up.
//!
//! A worker ends when it is told to, after the step it is at; nothing is lost by ending it at any time.

mod reservations;
mod sealer;
mod tidy;

pub(crate) use reservations::watch as watch_reservations;
pub(crate) use sealer::{Sealing, seal};
pub(crate) use tidy::tidy;
