//! What every part of the start needs.

use super::{
    fault::ServeError,
    stores::{Platform, Secrets},
};
use crate::{config::Config, terminal::eprint_line};

/// The configuration, the clocks, random source and data directory of this process, and its secrets.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) platform: Platform,
    pub(super) secrets: Secrets,
}

impl Setup {
    /// Locks the data directory and completes the secrets. Prints the token of the administrator if it is generated.
    ///
    /// # Errors
    /// If the data directory cannot be used, another process holds it, or a stored secret cannot be read or written.
    pub(super) fn complete(config: Config) -> Result<Self, ServeError> {
        let platform = Platform::hold(&config)?;
        let secrets = Secrets::complete(&config, &*platform.entropy)?;
        if secrets.admin_is_fresh {
            // Printed once, and not logged: logs are stored and shipped (spec/80 rule 1.1).
            eprint_line(format_args!(
                "ADMIN_API_TOKEN is not set; for this run it is {}",
                secrets.admin.expose()
            ));
        }
        Ok(Self {
            config,
            platform,
            secrets,
        })
    }
}
