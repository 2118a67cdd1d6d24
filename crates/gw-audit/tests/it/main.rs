//! The encoding of entries, and the findings of a verification after tampering.

#[cfg(test)]
mod anchor;
#[cfg(test)]
mod record;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod world;
