//! The conformance suite of the chain store: every rule on SQLite and on PostgreSQL.

// `cfg(test)` although this is a test crate: clippy applies its test exemptions only to items with this attribute.
#[cfg(test)]
mod append;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod open;
#[cfg(test)]
mod queries;
#[cfg(test)]
mod readings;
#[cfg(test)]
mod reorganization;
#[cfg(test)]
mod replace;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod status;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod world;
