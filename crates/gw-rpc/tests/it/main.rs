//! `/rpc` from bytes to bytes: against a scripted node where every upstream byte counts, and against a real one.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test without its world is over"
)]

mod answer_bytes;
mod assault;
mod batch;
mod blocks;
mod consent;
mod consistency;
mod corpus;
mod denials;
mod edge;
mod extras;
mod fees;
mod filters;
mod hidden;
mod keys;
mod live;
mod logs;
mod mined;
mod moved;
mod order;
mod personal;
mod reads;
mod real_attacks;
mod real_methods;
mod real_reads;
mod real_sends;
mod rights;
mod sends;
mod shared;
mod sockets;
mod told;
mod withheld;
mod world;
