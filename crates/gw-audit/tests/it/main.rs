//! Entries as bytes, and what verification finds when they are tampered with.

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
