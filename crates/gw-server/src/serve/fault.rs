//! Errors that end the process, and their exit codes.

use crate::config::{EXIT_CONFIG, Report};
use gw_store::LockError;
use std::path::Path;

/// An error that ends the service or a command.
#[derive(Debug)]
pub(crate) enum ServeError {
    /// The configuration is invalid; the report lists all errors.
    Configuration(Report),
    /// Another process holds a directory (HD24).
    Held(String),
    /// A command found a directory held by a running process; it may be tried again later.
    Busy(String),
    /// An input of a command cannot be read.
    Unreadable(anyhow::Error),
    /// Any other error, mostly of a dependency.
    Other(anyhow::Error),
}

/// `EX_IOERR`: an input of a command cannot be read, which is not a finding.
const EXIT_UNREADABLE: u8 = 74;
/// `EX_TEMPFAIL`: another process holds the directory; try again.
const EXIT_BUSY: u8 = 75;

/// With fewer free bytes a disk counts as full: the embedded stores and the journal write files of this size at a
/// start.
const FULL_DISK_BYTES: u64 = 256 * 1024;

impl ServeError {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::Held(_) => EXIT_CONFIG,
            Self::Busy(_) => EXIT_BUSY,
            Self::Unreadable(_) => EXIT_UNREADABLE,
            Self::Other(_) => 1,
        }
    }

    /// Adds the disks of these directories that are full: the error of a database or a file on such a disk does not
    /// name it.
    pub(crate) fn with_full_disks<'a>(self, directories: impl Iterator<Item = &'a Path>) -> Self {
        let Self::Other(mut error) = self else { return self };
        for directory in directories {
            // A directory that could not be created is on the disk of its parent.
            let existing = directory.ancestors().find(|path| path.is_dir());
            let Some(free) = existing.and_then(|path| gw_journal::free_bytes(path).ok()) else {
                continue;
            };
            if free < FULL_DISK_BYTES {
                error = error.context(format!(
                    "the disk of `{}` is full ({free} bytes are free): free disk space, then start again; everything \
                     that was acknowledged is kept",
                    directory.display()
                ));
            }
        }
        Self::Other(error)
    }

    /// Turns [`Self::Held`] into [`Self::Busy`], for commands that write once and end: for them a held directory is not
    /// a wrong configuration (HD24 is about `serve`).
    pub(crate) fn into_busy(self) -> Self {
        match self {
            Self::Held(message) => Self::Busy(format!(
                "{message}; stop it first, or let it migrate by itself (MIGRATE=auto)"
            )),
            error => error,
        }
    }
}

/// One line per configuration error; other errors are one line.
impl core::fmt::Display for ServeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Configuration(report) => report.fmt(f),
            Self::Held(message) | Self::Busy(message) => f.write_str(message),
            Self::Unreadable(error) | Self::Other(error) => f.write_str(&causes(error)),
        }
    }
}

/// Formats the chain of causes of an error on one line. A cause is skipped if the text before it already ends with it,
/// because some libraries repeat their sources in their own text.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

impl From<Report> for ServeError {
    fn from(report: Report) -> Self {
        Self::Configuration(report)
    }
}

impl From<LockError> for ServeError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::Held(error.to_string()),
            LockError::Io { .. } => Self::Other(error.into()),
        }
    }
}

impl From<anyhow::Error> for ServeError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}
