//! Tests of `/rpc` from the request bytes to the response bytes: against a scripted node that records every upstream
//! byte, and against a real node.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends when its setup fails"
)]

mod answer_bytes;
mod batch;
mod blocks;
mod consent;
mod consistency;
mod corpus;
mod custom_methods;
mod denials;
mod disclosure;
mod fees;
mod filters;
mod fuzz_pipeline;
mod keys;
mod kills;
mod live;
mod logs;
mod mined;
mod moved;
mod noninterference;
mod order;
mod parties;
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
mod store_fixture;
mod unparsed;
mod withheld;
mod world;
