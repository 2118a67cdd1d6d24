//! What the cache promises, wherever it keeps things.

mod conformance;
mod ends;
