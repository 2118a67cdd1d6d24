//! The guarantees of the cache, for every implementation.

// `cfg(test)` although this is a test crate: clippy applies its test exemptions only to items with this attribute.
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod outage;
