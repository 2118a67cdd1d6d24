//! The gateway as a process: configuration, wiring, workers, telemetry and the command line.
//!
//! Access decisions are made in `gw-policy`, not here. Start reading at [`cli`].

pub mod cli;
pub mod config;
#[cfg(feature = "mock-login")]
pub mod demo;
mod explorer_backend;
mod filesystem;
mod indexer;
mod listener;
pub mod secrets;
mod serve;
pub mod signal;
pub mod system;
pub mod telemetry;
mod terminal;
mod trust;
mod verification;
mod web;
mod webhook;
mod workers;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
