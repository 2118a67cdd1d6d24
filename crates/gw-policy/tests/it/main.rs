//! Everything the policy core promises, in one binary.

// `cfg(test)` although this is a test already: clippy grants its exemptions to what is marked so.
#[cfg(test)]
mod access;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod view;
