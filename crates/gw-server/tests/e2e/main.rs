//! End-to-end tests: the real binary in front of a real node, on SQLite and on PostgreSQL.
//! The binary is built with the mock login, because most of these tests are not about logging in.

#[cfg(test)]
mod harness;
#[cfg(test)]
mod world;

#[cfg(test)]
#[expect(clippy::string_slice, reason = "hashes cut in these tests are ASCII")]
mod administration;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "addresses and names cut in these tests are ASCII")]
mod administrators;
#[cfg(test)]
mod authorization;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod custom_methods;
#[cfg(test)]
mod diagnostics;
#[cfg(test)]
mod directory;
#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod durability;
#[cfg(test)]
mod explorer;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "status lines cut in these tests are ASCII")]
mod explorer_attacks;
#[cfg(test)]
mod explorer_backend;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod instances;
#[cfg(test)]
mod links;
#[cfg(test)]
mod members;
#[cfg(test)]
mod membership;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod mined;
#[cfg(test)]
mod nodes;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "the texts cut in these tests are ASCII")]
mod noninterference;
#[cfg(test)]
mod oauth;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod personal;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod sends;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod zk;
