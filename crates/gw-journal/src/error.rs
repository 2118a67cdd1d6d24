//! Errors of the journal.

use gw_audit::Stream;
use std::path::{Path, PathBuf};

/// Why a record was not accepted. Callers answer 503 `audit unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The disk rejects writes. The journal retries and accepts no records until a retry succeeds.
    #[error("the audit journal is unavailable")]
    Unavailable,
    /// The size limit is reached, or the disk is full.
    #[error("the audit journal is full")]
    Full,
    /// The record exceeds the largest record size.
    #[error("the record is too long for the audit journal")]
    TooLong,
    /// The record belongs to a stream that is not written to the journal.
    #[error("the record's stream is not journaled")]
    NotJournaled,
}

/// Why a journal could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory (exit code 78).
    #[error("`{dir}` is held by {holder}")]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The holder's description of itself.
        holder: String,
    },
    /// The directory cannot be used.
    #[error("cannot use `{path}`")]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Records that were durable are damaged or missing, so the shard cannot be opened.
    #[error("`{path}` is damaged at byte {offset}: {what}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The offset of the damage in bytes.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// Records are missing, all of which are sealed: nothing is lost, but the chains cannot be continued without them.
    #[error("`{dir}` lacks records up to number {last}, which are all sealed")]
    SealedMissing {
        /// The directory of the shard.
        dir: PathBuf,
        /// The number of the last missing record.
        last: u64,
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

/// Adds the path to an I/O error.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    |source| OpenError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Adds the path to an I/O error about a file that a journal must have: a missing file is damage.
pub(crate) fn missing(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> OpenError {
    move |error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            OpenError::corrupt(path, 0, what)
        } else {
            at(path)(error)
        }
    }
}

/// Why records could not be read, or sealed segments could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file could not be used.
    #[error("cannot use `{path}`")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A record that was durable is damaged.
    #[error("`{path}` is damaged at byte {offset}")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// The offset of the damage in bytes.
        offset: u64,
    },
    /// The caller reported more sealed entries than this journal wrote.
    #[error("{size} entries of stream {stream} were reported as sealed, more than this journal wrote")]
    NotWritten {
        /// The stream.
        stream: Stream,
        /// The reported number of sealed entries.
        size: u64,
    },
    /// The journal stopped after a panic in one of its threads.
    #[error("the journal stopped after a fault")]
    Stopped,
}
