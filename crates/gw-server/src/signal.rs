//! Shutdown signals.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listener for SIGTERM (sent by a process supervisor) and SIGINT (Ctrl-C in a terminal).
#[derive(Debug)]
pub struct Interrupt {
    terminate: Signal,
    interrupt: Signal,
}

impl Interrupt {
    /// Starts listening. From now on neither signal ends the process by itself.
    ///
    /// # Errors
    /// If a signal handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of the two signals.
    pub async fn heard(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
