//! Limits on connections, memory, requests and rates.

use crate::config::{
    kind::{self, Rate, number, size},
    variable::{Kind, Section::Limits, Variable},
};

registry! {
    /// Connections to the public listener. At the limit, a new connection replaces the longest idle connection of the
    /// network with the most connections.
    MAX_CONNECTIONS: u32 =
        Variable::new(Limits, kind!(u32, "a whole number from 16 to 1000000", |t| number(t, 16, 1_000_000)))
            .default("16384")
            .rule("lowered at start, with a warning, if the limit of open files is too low");
    /// Connections of one IPv4 address or IPv6 /64. An IPv4 /24 may have ten times as many, an IPv6 /56 three times and
    /// an IPv6 /48 nine times as many. Does not apply to TRUSTED_PROXIES.
    MAX_CONNECTIONS_PER_ADDRESS: u32 =
        Variable::new(Limits, kind!(u32, "a whole number from 1 to 1000000", |t| number(t, 1, 1_000_000)))
            .default("512");
    /// Connections to the internal listener; the public listener cannot use them.
    MAX_INTERNAL_CONNECTIONS: u32 =
        Variable::new(Limits, kind!(u32, "a whole number from 4 to 100000", |t| number(t, 4, 100_000)))
            .default("256");
    /// Bytes of large responses (over 64 KiB) held in memory at once, from the node's first byte until the client has
    /// the last.
    ANSWER_BYTES_MAX: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20)))
        .default("512MiB");
    /// Bytes of large responses held in memory at once for one caller; a single response may be larger.
    ANSWER_BYTES_PER_CALLER: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20)))
        .derived("a quarter of ANSWER_BYTES_MAX");
    /// Requests in flight per caller.
    MAX_CONCURRENT_REQUESTS: u32 =
        Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000)))
            .default("50");
    /// Requests in flight per anonymous address.
    MAX_CONCURRENT_ANONYMOUS_REQUESTS: u32 =
        Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000)))
            .derived("MAX_CONCURRENT_REQUESTS");
    /// Login attempts per address.
    RATE_LIMIT_AUTH: Rate = Variable::new(Limits, &kind::RATE).default_by_environment("10/min", "1000/min");
    /// JSON-RPC requests per caller.
    RATE_LIMIT_RPC: Rate = Variable::new(Limits, &kind::RATE).default("off");
    /// JSON-RPC requests per anonymous address.
    RATE_LIMIT_ANON: Rate = Variable::new(Limits, &kind::RATE).default("60/min");
    /// Elements of a JSON-RPC batch; 0 switches batches off.
    RPC_BATCH_MAX: u16 = Variable::new(Limits, kind!(u16, "a whole number from 0 to 200", |t| number(t, 0, 200)))
        .default("100");
}
