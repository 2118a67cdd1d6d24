//! Filters and subscriptions, over HTTP and WebSocket (decision 51, HD18).
//!
//! `cursor` is the position of a filter or a subscription in the chain, `filters` holds the filters that clients poll,
//! `delivery` delivers the subscriptions of a connection; `socket` opens a connection, `connection` keeps it while its
//! owner has the right to it, `send_queue` is the queue of outgoing messages.
//!
//! Invariant: nothing is authorized here. Every delivery is the answer to an `eth_getLogs` or a block read of the same
//! caller, through the same pipeline, at the moment of delivery (WS-3). A filter keeps its topic, its position, and
//! only as much of the delivered rows as it needs to report that a block has left the chain (WS-4).

mod connection;
mod cursor;
mod delivery;
pub(crate) mod filters;
mod membership_basis;
mod send_queue;
pub(crate) mod socket;

pub(crate) use delivery::Message;
pub(crate) use filters::Filters;
pub(crate) use socket::ConnectionLimiter;
