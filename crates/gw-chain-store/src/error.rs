//! Errors, by the distinctions that callers need.

use gw_postings::Space;
use gw_types::B256;
use sea_orm::{DbErr, RuntimeErr, sqlx};

/// A failed operation of the chain store. Contains no row id.
#[derive(Debug, thiserror::Error)]
pub enum ChainStoreError {
    /// The schema is newer than this build.
    #[error("the schema of the explorer's database is {0}")]
    Schema(&'static str),
    /// The database contains another chain.
    #[error(
        "the explorer's database contains chain `{stored}`, the node serves chain `{configured}`; to index the node's \
         chain, use another database, or FORCE_REINDEX=true to remove the stored blocks"
    )]
    OtherChain {
        /// The id of the stored chain.
        stored: u64,
        /// The id of the configured chain.
        configured: u64,
    },
    /// Another instance holds the lease of the writer.
    #[error("`{name}` already writes to the explorer's database")]
    OtherWriter {
        /// The name that the other instance gave.
        name: String,
    },
    /// Another instance took the lease over. This instance must not write any more.
    #[error("another instance took over writing to the explorer's database")]
    LeaseLost,
    /// The block does not follow the newest block.
    #[error("block `{block}` does not follow block `{newest}`")]
    NotNext {
        /// The newest stored block.
        newest: u64,
        /// The block that was to be appended.
        block: u64,
    },
    /// The block belongs to another branch of the chain: a reorganization removed the newest stored block.
    #[error("the parent of block `{block}` is `{found}`, the newest stored block is `{expected}`")]
    OtherParent {
        /// The block that was to be appended.
        block: u64,
        /// The hash of the newest stored block.
        expected: B256,
        /// The parent hash of the block.
        found: B256,
    },
    /// The rows of a block contradict each other.
    #[error("the rows of block `{block}` are invalid: {reason}")]
    InvalidBlock {
        /// The block.
        block: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// No stored block has this number and hash: a reorganization removed it.
    #[error("no stored block `{block}` has the given hash")]
    UnknownBlock {
        /// The number of the block.
        block: u64,
    },
    /// The frames of the block are stored already.
    #[error("the frames of block `{block}` are stored already")]
    FramesComplete {
        /// The block.
        block: u64,
    },
    /// Ids of another generation: a reorganization or a completed trace renumbered rows.
    #[error("row ids of generation `{requested}` were used in generation `{stored}`")]
    OtherGeneration {
        /// The generation in which the caller took the ids.
        requested: u64,
        /// The generation of the database.
        stored: u64,
    },
    /// No row has an id that the caller took from the posting index.
    #[error("a row of {0:?} is missing, so the index is ahead of the database")]
    MissingRow(Space),
    /// A stored row breaks an invariant: it was not written by this crate.
    #[error("table `{table}`: a row has a malformed column `{column}`")]
    Row {
        /// Table name.
        table: &'static str,
        /// Column name.
        column: &'static str,
    },
    /// The database returned an error or could not be reached.
    #[error("the explorer's database failed")]
    Database(#[source] DbErr),
}

impl From<DbErr> for ChainStoreError {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

impl ChainStoreError {
    /// Whether the database could not be reached, is busy, is shutting down or has no room: a retry may help.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Database(DbErr::ConnectionAcquire(_) | DbErr::Conn(_)) => true,
            Self::Database(DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) => {
                is_state_of_database(cause)
            }
            _ => false,
        }
    }
}

/// Whether an error concerns the database's own state rather than the statement.
fn is_state_of_database(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            // PostgreSQL codes have five characters: connection, rollback because of others, resources, shutdown and
            // timeouts, system, a lock that was not available in time, a standby. SQLite codes are numbers whose lowest
            // byte is the class: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL.
            if code.len() == 5 {
                let classes = ["08", "40", "53", "57", "58"];
                return classes.iter().any(|class| code.starts_with(class))
                    || ["55P03", "25006", "25P03"].contains(&&*code);
            }
            code.parse::<u32>()
                .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14 | 15))
        }),
        _ => false,
    }
}
