//! The explorer: its database, its indexer and who may query its data API.

use crate::config::{
    kind::{self, number},
    variable::{Kind, Section::Explorer, Variable},
};
use gw_chain_store::Location;
use gw_types::Secret;
use std::num::NonZeroUsize;

registry! {
    /// Database of the explorer: the blocks of the chain. It can be filled again from the node. Without it the data API
    /// of the explorer answers 503.
    EXPLORER_DATABASE_URL: Location = Variable::new(Explorer, &kind::CHAIN_DATABASE)
        .secret()
        .rule("another database than DATABASE_URL and AUDIT_DATABASE_URL; in production a PostgreSQL address has a \
               password");
    /// Key that the backend of the web explorer sends in `X-Explorer-Key`. If it is set, the data API rejects requests
    /// that carry neither it nor a user's token.
    EXPLORER_BACKEND_KEY: Secret = Variable::new(Explorer, &kind::HEADER_SECRET)
        .secret()
        .rule(
            "required in production with EXPLORER_DATABASE_URL; in production at least 32 bytes, 8 of them distinct, \
             and different from every other secret, older ones included",
        );
    /// Removes all indexed blocks and indexes the chain again if the chain of the node was reset, or is another chain.
    /// Otherwise the indexer stops, the data API answers 503, and everything else is served.
    FORCE_REINDEX: bool = Variable::new(Explorer, &kind::BOOL).default("false");
    /// Indexes internal transactions. If it is `false`, new blocks are indexed without them; they are added after it
    /// was set to `true` again.
    ENABLE_TRACING: bool = Variable::new(Explorer, &kind::BOOL).default("true");
    /// Newest blocks of the chain that are not indexed yet.
    EXPLORER_CONFIRMATIONS: u64 =
        Variable::new(Explorer, kind!(u64, "a whole number from 0 to 10000", |t| number(t, 0, 10_000)))
            .default("0");
    /// Blocks that the indexer reads from the node at the same time.
    EXPLORER_CONCURRENT_READS: NonZeroUsize =
        Variable::new(Explorer, kind!(NonZeroUsize, "a whole number from 1 to 64", |t| {
            number(t, 1, 64).and_then(NonZeroUsize::new)
        }))
            .default("8");
}
