//! The conformance suite of the store: every rule on SQLite and on PostgreSQL.

// `cfg(test)` although this is a test crate: clippy applies its test exemptions only to items with this attribute.
#[cfg(test)]
mod access;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod disclosure_random;
#[cfg(test)]
mod epochs;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod links;
#[cfg(test)]
mod log_pages;
#[cfg(test)]
mod memberships;
#[cfg(test)]
mod mined;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sends;
#[cfg(test)]
mod tampered;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod world;
