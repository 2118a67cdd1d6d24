//! Declares every variable that the gateway reads: name, type, default, requirements and meaning. Each section of the
//! reference has its own module.
//!
//! The reference `docs/configuration.md` is generated from this list. The gateway reads no variable outside it.

use super::variable::Entry;

/// Declares the statics and `ENTRIES` of a section from one list, so that they cannot differ.
macro_rules! registry {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $variable:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub static $name: Variable<$type> = $variable.declared(stringify!($name), concat!($($doc),*));
        )*

        /// The variables of this section, in the order of the reference.
        pub(super) static ENTRIES: &[&dyn crate::config::variable::Entry] = &[$(&$name),*];
    };
}

/// A kind for a single variable, written inline.
macro_rules! kind {
    ($type:ty, $rule:literal, $parse:expr) => {{
        static KIND: Kind<$type> = Kind {
            rule: $rule,
            parse: $parse,
        };
        &KIND
    }};
}

mod admin;
mod audit;
mod deployment;
mod disclosure;
mod edge;
mod explorer;
mod explorer_backend;
mod identity;
mod limits;
mod node;
mod operation;
mod policy;
mod store;

pub use {
    admin::*, audit::*, deployment::*, disclosure::*, edge::*, explorer::*, explorer_backend::*, identity::*,
    limits::*, node::*, operation::*, policy::*, store::*,
};

/// Seconds in an hour.
const HOUR: u64 = 3600;
/// Seconds in a day.
const DAY: u64 = 24 * HOUR;

/// Requirements on every secret in production, older secrets included (RTS7).
const STRONG: &str =
    "in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included";
const STRONG_EACH: &str = "in production each at least 32 bytes, 8 of them distinct, and different from every other \
                           secret, older ones included";

/// Limits on networks whose peers are trusted (RTS7).
const NARROW: &str = "in production no network wider than /8 (IPv6: /7): list only your own machines";

/// The entries of all sections, in the order of the reference.
static SECTIONS: &[&[&dyn Entry]] = &[
    deployment::ENTRIES,
    edge::ENTRIES,
    limits::ENTRIES,
    identity::ENTRIES,
    admin::ENTRIES,
    node::ENTRIES,
    policy::ENTRIES,
    disclosure::ENTRIES,
    store::ENTRIES,
    explorer::ENTRIES,
    audit::ENTRIES,
    operation::ENTRIES,
];

/// All variables, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static dyn Entry> {
    SECTIONS.iter().copied().flatten().copied()
}

/// The variables that only `ledger-gateway explorer` reads.
pub fn explorer_backend_only() -> impl Iterator<Item = &'static dyn Entry> {
    explorer_backend::ENTRIES.iter().copied()
}

/// Whether a command reads this variable, or the file that contains its value if it is a secret.
pub fn is_declared(name: &str) -> bool {
    let variable = name.strip_suffix("_FILE").unwrap_or(name);
    all()
        .chain(explorer_backend_only())
        .any(|entry| entry.name() == name || entry.name() == variable)
}

/// The variables of the commands that need the chain and the explorer's database alone: `ledger-gateway indexer`,
/// `explorer reindex` and `explorer status`.
pub fn indexer_all() -> impl Iterator<Item = &'static dyn Entry> {
    let shared: [&'static dyn Entry; 23] = [
        &ENVIRONMENT,
        &PORT,
        &INTERNAL_BIND_ADDR,
        &INTERNAL_HOSTS,
        &TRUSTED_INTERNAL_CIDRS,
        &MAX_INTERNAL_CONNECTIONS,
        &ANSWER_BYTES_MAX,
        &NODE_URL,
        &EXPECTED_CHAIN_ID,
        &NODE_HTTP_MAX_IDLE_CONNS,
        &NODE_HTTP_MAX_IDLE_CONNS_PER_HOST,
        &NODE_HTTP_MAX_CONNS_PER_HOST,
        &NODE_HTTP_IDLE_CONN_TIMEOUT,
        &RPC_API_KEY,
        &RPC_API_KEY_HEADER,
        &DB_MAX_OPEN_CONNS,
        &EXPLORER_DATABASE_URL,
        &FORCE_REINDEX,
        &ENABLE_TRACING,
        &EXPLORER_CONFIRMATIONS,
        &EXPLORER_CONCURRENT_READS,
        &LOG_LEVEL,
        &LOG_FORMAT,
    ];
    let times: [&'static dyn Entry; 4] = [
        &TRACE_TIMEOUT,
        &ETH_CALL_TRACE_TIMEOUT,
        &SHUTDOWN_DELAY,
        &SHUTDOWN_TIMEOUT,
    ];
    shared.into_iter().chain(times)
}

/// All variables of `ledger-gateway explorer`: its own and those that it shares with the gateway.
pub fn explorer_backend_all() -> impl Iterator<Item = &'static dyn Entry> {
    let shared: [&'static dyn Entry; 14] = [
        &ENVIRONMENT,
        &EXPLORER_BACKEND_KEY,
        &PORT,
        &BIND_ADDRESS,
        &FRONTEND_URL,
        &CORS_ALLOWED_ORIGINS,
        &TRUSTED_PROXIES,
        &MAX_CONNECTIONS,
        &MAX_CONNECTIONS_PER_ADDRESS,
        &REDIS_URL,
        &LOG_LEVEL,
        &LOG_FORMAT,
        &SHUTDOWN_DELAY,
        &SHUTDOWN_TIMEOUT,
    ];
    shared.into_iter().chain(explorer_backend_only())
}
