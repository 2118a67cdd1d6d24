//! Output lines for people. Errors of writing, such as a closed pipe, are ignored.

use std::io::Write as _;

/// Writes a line to standard output.
pub(crate) fn line(text: impl core::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a line to standard error.
pub(crate) fn error_line(text: impl core::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
