//! For tests only: real nodes and databases, builders, a fixed clock, a scripted node.
//!
//! Everything here fails loudly: a test that cannot start its part has not passed.
#![expect(clippy::panic, reason = "a test part that cannot do its work must end the test")]

pub mod anvil;
pub mod clock;
pub mod directory;
pub mod disk;
pub mod fake_node;
pub mod faults;
pub mod hardhat;
pub mod jwt;
pub mod postgres;
pub mod redis;
pub mod relay;
#[cfg(feature = "wallet")]
pub mod wallet;

pub use anvil::Anvil;
pub use clock::{Jump, ManualClock};
pub use disk::FullDisk;
pub use fake_node::FakeNode;
pub use faults::Scenario;
pub use hardhat::Hardhat;
pub use redis::RedisServer;
pub use relay::{Flow, Relay};
#[cfg(feature = "wallet")]
pub use wallet::Wallet;
