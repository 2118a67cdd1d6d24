//! For tests only: real nodes, databases, a directory and a wallet, connections and disks that fail, a manual clock, a
//! scripted node.
//!
//! Most of it panics on failure, because a test without its fixture must not pass.
#![expect(clippy::panic, reason = "a test fixture that fails must end the test")]

pub mod anvil;
pub mod directory;
pub mod disk;
pub mod fake_node;
pub mod faults;
#[cfg(feature = "fixture")]
pub mod fixture;
pub mod geth;
pub mod hardhat;
pub mod jwt;
pub mod port;
pub mod postgres;
pub mod redis;
pub mod relay;
#[cfg(feature = "scenario")]
pub mod scenario;
#[cfg(feature = "wallet")]
pub mod wallet;

pub use anvil::Anvil;
pub use disk::FullDisk;
pub use fake_node::FakeNode;
pub use faults::Scenario;
#[cfg(feature = "fixture")]
pub use fixture::{Fixture, FixtureConfig, TestUser};
pub use geth::Geth;
pub use gw_types::testing::{Jump, ManualClock, SeededEntropy};
pub use hardhat::Hardhat;
pub use redis::RedisServer;
pub use relay::{Flow, Last, Relay};
#[cfg(feature = "wallet")]
pub use wallet::Wallet;
