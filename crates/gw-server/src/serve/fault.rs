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
    /// Something outside is not as it must be.
    Other(anyhow::Error),
}

impl Fault {
    /// The code the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::Held(_) => EXIT_CONFIG,
            Self::Other(_) => 1,
        }
    }
}

/// One line per finding.
impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Configuration(report) => report.fmt(f),
            Self::Held(what) => f.write_str(what),
            Self::Other(error) => write!(f, "{error:#}"),
        }
    }
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
