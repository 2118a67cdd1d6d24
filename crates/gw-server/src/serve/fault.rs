//! Why the process does not start, and with which code it ends.

use crate::config::{EXIT_CONFIG, Report};
use gw_store::LockError;

/// A refused configuration, a place held by another process, or anything else in the way.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Everything that is wrong with the configuration.
    Configuration(Report),
    /// Another process holds a directory (HD24).
    Held(String),
    /// A command found the place held by a running process; it may try again later.
    Busy(String),
    /// What a command was to read cannot be read.
    Unreadable(anyhow::Error),
    /// Something outside is not as it must be.
    Other(anyhow::Error),
}

/// `EX_IOERR`: what a command was to read cannot be read, which is no finding.
const EXIT_UNREADABLE: u8 = 74;
/// `EX_TEMPFAIL`: another process holds it, try again.
const EXIT_BUSY: u8 = 75;

impl Fault {
    /// The code the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::Held(_) => EXIT_CONFIG,
            Self::Busy(_) => EXIT_BUSY,
            Self::Unreadable(_) => EXIT_UNREADABLE,
            Self::Other(_) => 1,
        }
    }

    /// For commands that write once and end: a held directory is no wrong configuration (HD24 is about `serve`).
    pub(crate) fn into_busy(self) -> Self {
        match self {
            Self::Held(what) => Self::Busy(format!(
                "{what}; stop it first, or let it migrate by itself (MIGRATE=auto)"
            )),
            other => other,
        }
    }
}

/// One line per finding.
impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Configuration(report) => report.fmt(f),
            Self::Held(what) | Self::Busy(what) => f.write_str(what),
            Self::Unreadable(error) | Self::Other(error) => f.write_str(&causes(error)),
        }
    }
}

/// The causes of an error on one line. A cause that the text before it ends with already is not said twice: some libraries
/// repeat their sources in their own text.
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

impl From<Report> for Fault {
    fn from(report: Report) -> Self {
        Self::Configuration(report)
    }
}

impl From<LockError> for Fault {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::Held(error.to_string()),
            LockError::Io { .. } => Self::Other(error.into()),
        }
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}
