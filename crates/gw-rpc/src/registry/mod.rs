//! The state of filters, subscriptions and connections that this instance keeps (decision 51, HD18): which ones exist,
//! whose they are, and their positions in the chain. `subscriptions` reads their updates, `websocket` delivers them.
//!
//! Invariant: a filter keeps its topic, its position, and only as much of the delivered rows as it needs to report that
//! a block has left the chain (WS-4).

mod connection_limiter;
mod cursor;
mod filters;
mod membership_basis;
mod subscriptions;

pub(crate) use connection_limiter::{ConnectionLimiter, ConnectionPermit};
pub(crate) use cursor::{LogCursor, Updates};
pub(crate) use filters::{Filters, Owner};
pub(crate) use membership_basis::MembershipBasis;
pub(crate) use subscriptions::{Message, Subscription, Subscriptions};
