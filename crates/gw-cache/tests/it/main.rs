//! What the cache promises, wherever it keeps things.

// `cfg(test)` although this is a test already: clippy grants its exemptions to what is marked so.
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod outage;
