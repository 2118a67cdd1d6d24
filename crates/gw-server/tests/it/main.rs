//! Tests of the process from outside.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

mod audit;
mod audit_policy;
mod audit_tamper;
mod audit_verify;
mod commands;
mod config;
#[cfg(feature = "mock-login")]
mod demo;
mod deployment;
mod documents;
mod full_disk;
#[cfg(test)]
mod indexer;
mod privileges;
mod process;
mod restore;
mod retention;
#[cfg(test)]
mod salvage;
mod serve;
