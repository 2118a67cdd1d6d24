//! The log and the shutdown.

use crate::config::{
    kind::{span, words},
    variable::{Kind, Section::Operation, Variable},
};
use std::time::Duration;

registry! {
    /// Least severe level that is logged.
    LOG_LEVEL: LogLevel = Variable::new(Operation, &LOG_LEVEL_KIND).default("info");
    /// Format of log lines.
    LOG_FORMAT: LogFormat = Variable::new(Operation, &LOG_FORMAT_KIND).default_by_environment("json", "text");
    /// Time between reporting "not ready" and closing the listener.
    SHUTDOWN_DELAY: Duration = Variable::new(Operation, kind!(Duration, "a span from 0s to 5m", |t| span(t, 0, 300)))
        .default_by_environment("5s", "0s");
    /// Time that running requests have to end after SHUTDOWN_DELAY.
    SHUTDOWN_TIMEOUT: Duration = Variable::new(Operation, kind!(Duration, "a span from 1s to 10m", |t| span(t, 1, 600)))
        .default("30s");
}

words! {
    /// Least severe level that is logged.
    LogLevel, LOG_LEVEL_KIND, "`error`, `warn`, `info`, `debug` or `trace`" {
        /// Failures.
        Error = "error",
        /// Also problems that may become failures.
        Warn = "warn",
        /// Also one line per request.
        Info = "info",
        /// Also details of the processing.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}
words! {
    /// Format of log lines.
    LogFormat, LOG_FORMAT_KIND, "`json` or `text`" {
        /// One JSON object per line.
        Json = "json",
        /// Text for people.
        Text = "text",
    }
}
