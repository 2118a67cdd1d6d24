//! WebSocket connections: `socket` opens a connection, `connection` keeps it while its owner has the right to it,
//! `delivery` delivers its subscriptions, `send_queue` is the queue of outgoing messages.
//!
//! Invariant: nothing is authorized here. Every message and every delivery goes through the pipeline of all calls
//! (WS-3).

mod connection;
mod delivery;
mod send_queue;
mod socket;

pub(crate) use socket::open;
