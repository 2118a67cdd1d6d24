//! The gateway as a process: configuration, wiring, workers, telemetry and the command line.
//!
//! Nothing is decided here about who may do or see what: that is `gw-policy`. Start reading at [`cli`].

pub mod ambient;
pub mod cli;
pub mod config;
#[cfg(feature = "mock-login")]
pub mod demo;
mod mount;
pub mod secrets;
mod serve;
pub mod signal;
pub mod telemetry;
mod trust;
mod verification;
mod web;
mod webhook;
mod workers;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
