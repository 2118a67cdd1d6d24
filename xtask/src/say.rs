//! Lines for people. A closed pipe is nobody's failure.

use std::io::Write as _;

/// To standard output.
pub(crate) fn line(text: impl core::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// To standard error.
pub(crate) fn complain(text: impl core::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
