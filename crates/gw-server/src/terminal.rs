//! Writes to standard output and standard error.

use std::io::Write as _;

/// Writes a line to standard error. A closed pipe is ignored.
pub(crate) fn eprint_line(line: impl core::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a text to standard output. A closed pipe is ignored.
pub(crate) fn say(text: impl core::fmt::Display) {
    let mut out = std::io::stdout();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}
