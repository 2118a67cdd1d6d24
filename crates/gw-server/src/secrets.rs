//! Secrets of a development machine: generated once, stored in the data directory, readable by their owner only
//! (decision 36).
//!
//! Production does not use them: its configuration must name every secret.

use gw_types::{Entropy, Secret};
use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// Why a generated secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file or its directory cannot be created, read or written.
    #[error("the secret file `{}` cannot be read or created", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The mode of the file grants access to users other than its owner.
    #[error("`{}` must be readable by its owner only (mode 0600)", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file does not hold 64 hex digits: it was emptied, truncated or edited.
    #[error("`{}` holds no valid secret; remove it, and the next start generates a new one", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

/// The subdirectory of the data directory that holds the secrets.
const DIRECTORY: &str = "secrets";
/// Hex digits of a secret: 32 random bytes.
const DIGITS: usize = 64;

/// Generates a random secret of 32 bytes, as hex. It is not stored.
pub fn fresh(entropy: &dyn Entropy) -> Secret {
    let mut bytes = Zeroizing::new([0u8; DIGITS / 2]);
    entropy.fill(bytes.as_mut_slice());
    Secret::new(hex::encode(bytes.as_slice()))
}

/// The secrets stored in one data directory.
#[derive(Debug)]
pub struct KeptSecrets<'a> {
    directory: PathBuf,
    entropy: &'a dyn Entropy,
}

impl<'a> KeptSecrets<'a> {
    /// The secrets of `data_dir`. Nothing is read or created yet.
    pub fn new(data_dir: &Path, entropy: &'a dyn Entropy) -> Self {
        Self {
            directory: data_dir.join(DIRECTORY),
            entropy,
        }
    }

    /// Returns the configured secret, or the one stored under `name`, which is generated if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or created, has too open a mode, or holds no valid secret.
    pub fn or_generated(&self, configured: Option<Secret>, name: &str) -> Result<Secret, SecretError> {
        configured.map_or_else(|| self.read_or_generate(name), Ok)
    }

    fn read_or_generate(&self, name: &str) -> Result<Secret, SecretError> {
        let path = self.directory.join(name);
        let io_error = |source| SecretError::Io {
            path: path.clone(),
            source,
        };
        if !self.directory.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.directory)
                .map_err(io_error)?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                let secret = fresh(self.entropy);
                file.write_all(secret.expose().as_bytes())
                    .and_then(|()| file.sync_all())
                    .map_err(io_error)?;
                Ok(secret)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path),
            Err(error) => Err(io_error(error)),
        }
    }
}

/// Reads the secret stored under `name`. Returns `None` if there is none, and generates none.
///
/// # Errors
/// If the file cannot be read, has too open a mode, or holds no valid secret.
pub fn find_kept(data_dir: &Path, name: &str) -> Result<Option<Secret>, SecretError> {
    let path = data_dir.join(DIRECTORY).join(name);
    if path.exists() { read(&path).map(Some) } else { Ok(None) }
}

fn read(path: &Path) -> Result<Secret, SecretError> {
    let io_error = |source| SecretError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = fs::File::open(path).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.permissions().mode() & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned() });
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(io_error)?;
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SecretError::Malformed { path: path.to_owned() });
    }
    Ok(Secret::new(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SystemEntropy;

    /// Decision 36.
    #[test]
    fn a_generated_secret_stays_stable_and_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let secrets = KeptSecrets::new(&data, &SystemEntropy);
        let first = secrets.or_generated(None, "access").expect("made");
        assert_eq!(first.expose().len(), DIGITS);
        assert_eq!(secrets.or_generated(None, "access").expect("kept"), first);
        assert_ne!(secrets.or_generated(None, "refresh").expect("made"), first);
        let mode = |path: &str| fs::metadata(data.join(path)).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("secrets"), mode("secrets/access")), (0o700, 0o600));
    }

    #[test]
    fn a_configured_secret_is_not_stored() {
        let dir = tempfile::tempdir().expect("a directory");
        let secrets = KeptSecrets::new(dir.path(), &SystemEntropy);
        let configured = secrets
            .or_generated(Some(Secret::new("mine")), "access")
            .expect("given");
        assert!(configured.matches("mine") && !dir.path().join("secrets").exists());
    }

    #[test]
    fn a_file_with_an_open_mode_or_without_a_secret_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let secrets = KeptSecrets::new(dir.path(), &SystemEntropy);
        secrets.or_generated(None, "access").expect("made");
        let path = dir.path().join("secrets/access");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened");
        assert!(matches!(
            secrets.or_generated(None, "access"),
            Err(SecretError::Open { .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(&path, "").expect("emptied");
        assert!(matches!(
            secrets.or_generated(None, "access"),
            Err(SecretError::Malformed { .. })
        ));
    }
}
