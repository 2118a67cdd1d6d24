//! Integration tests of the policy crate, in one binary.

// clippy applies its exemptions for tests only to modules with `cfg(test)`.
#[cfg(test)]
mod access;
#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod explorer;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod view;
