//! What goes on after its answer: filters and subscriptions (decision 51, HD18).
//!
//! `stream` is where one stands and what comes next, `filters` those that are polled, `subscriptions` those a connection
//! delivers by itself; `socket` opens a connection, `connection` keeps it while its owner may have it, `outbox` is what
//! waits to be written.
//!
//! Invariant: there is no judging here. Whatever is delivered is the answer of `eth_getLogs` or of the block getter to
//! the same caller, asked through the same pipeline at the moment of delivery (WS-3); a filter keeps criteria and a
//! position, and of what it delivered only as much as it takes to say that a block left the chain (WS-4).

mod connection;
pub(crate) mod filters;
mod membership_basis;
mod outbox;
pub(crate) mod socket;
mod stream;
mod subscriptions;

pub(crate) use filters::Filters;
pub(crate) use socket::Sockets;
pub(crate) use subscriptions::Message;
