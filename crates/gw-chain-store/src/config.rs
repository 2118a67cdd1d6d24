//! Configuration of a chain store.

use gw_types::{Clock, Entropy, Secret};
use std::{path::PathBuf, sync::Arc};

/// Location of a database. Only `dialect` distinguishes the engines besides.
#[derive(Clone, Debug)]
pub enum Location {
    /// A file; it is created if it is missing. Its directory must exist.
    Sqlite {
        /// The file.
        file: PathBuf,
    },
    /// A PostgreSQL primary.
    Postgres {
        /// The URL.
        url: Secret,
    },
}

/// What to do with the blocks of another chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherChain {
    /// Refuse to open.
    Refuse,
    /// Remove all rows, unless a writer is active (`FORCE_REINDEX`).
    Wipe,
}

/// Configuration of a chain store.
#[derive(Clone, Debug)]
pub struct ChainStoreConfig {
    /// Where the database lives.
    pub location: Location,
    /// Maximum connections for queries. The writer has a connection of its own.
    pub connections: u32,
    /// The id of the chain.
    pub chain_id: u64,
    /// What to do if the database contains another chain.
    pub other_chain: OtherChain,
    /// Clock for leases on SQLite and for the queue of work.
    pub clock: Arc<dyn Clock>,
    /// Entropy for the ids of leases.
    pub entropy: Arc<dyn Entropy>,
}
