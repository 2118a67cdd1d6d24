//! Being told to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM from whoever runs the process, SIGINT from a terminal.
#[derive(Debug)]
pub struct Interrupt {
    terminate: Signal,
    interrupt: Signal,
}

impl Interrupt {
    /// Starts listening; from now on neither signal ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Resolves at the next of either.
    pub async fn heard(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
