//! What can go wrong.

use gw_audit::Stream;
use std::path::{Path, PathBuf};

/// Why a record was not taken. Callers answer 503 `audit unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The disk refuses what is written; it is tried again, and until then nothing is taken.
    #[error("the audit journal is unavailable")]
    Unavailable,
    /// The size bound is reached, or the disk is full.
    #[error("the audit journal is full")]
    Full,
    /// The record is larger than any record may be.
    #[error("the record is too long for the audit journal")]
    TooLong,
    /// The record belongs to a stream that does not go through the journal.
    #[error("the record's stream is not journaled")]
    NotJournaled,
}

/// Why a journal could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds the directory (exit code 78).
    #[error("`{dir}` is held by {holder}")]
    Held {
        /// The directory.
        dir: PathBuf,
        /// What the holder wrote about itself.
        holder: String,
    },
    /// The directory cannot be used.
    #[error("cannot use `{path}`")]
    Io {
        /// The path that failed.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What was once durable is damaged or gone: the shard stops here.
    #[error("`{path}` is damaged at byte {offset}: {what}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

impl OpenError {
    pub(crate) fn corrupt(path: &Path, offset: u64, what: &'static str) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

/// Names the path an input or output error happened at.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    |source| OpenError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The same for a file that a journal must have: its absence is damage.
pub(crate) fn missing(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> OpenError {
    move |error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            OpenError::corrupt(path, 0, what)
        } else {
            at(path)(error)
        }
    }
}

/// Why records could not be read back, or sealed segments not be cleared away.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file could not be used.
    #[error("cannot use `{path}`")]
    Io {
        /// The path that failed.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What was once durable is damaged.
    #[error("`{path}` is damaged at byte {offset}")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Where.
        offset: u64,
    },
    /// More is said to be sealed than was ever written here.
    #[error("chain {stream} is said to hold {size} entries, more than this journal wrote")]
    NotWritten {
        /// The stream.
        stream: Stream,
        /// The entries it is said to hold.
        size: u64,
    },
    /// The journal stopped after a fault.
    #[error("the journal stopped after a fault")]
    Stopped,
}
