//! Secrets of a development machine: generated once, kept in the data directory, readable by their owner only
//! (decision 36).
//!
//! Not for production: there the configuration refuses to be without them, so nothing here is ever asked.

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
    /// The file or its directory cannot be made, read or written.
    #[error("`{}` cannot be used", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others than the owner could read it, or could have.
    #[error("`{}` must be readable by its owner only (mode 0600)", path.display())]
    Open {
        /// Which.
        path: PathBuf,
    },
    /// Somebody emptied or cut it.
    #[error("`{}` holds no secret; remove it to have a new one made", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
    },
}

/// Where they lie in the data directory.
const DIRECTORY: &str = "secrets";
/// 32 random bytes as hex digits.
const DIGITS: usize = 64;

/// Makes an unguessable secret that lives as long as the process.
pub fn fresh(entropy: &dyn Entropy) -> Secret {
    let mut bytes = Zeroizing::new([0u8; DIGITS / 2]);
    entropy.fill(bytes.as_mut_slice());
    Secret::new(hex::encode(bytes.as_slice()))
}

/// The secrets kept in one data directory.
#[derive(Debug)]
pub struct KeptSecrets<'a> {
    directory: PathBuf,
    entropy: &'a dyn Entropy,
}

impl<'a> KeptSecrets<'a> {
    /// Those of a data directory.
    pub fn new(data_dir: &Path, entropy: &'a dyn Entropy) -> Self {
        Self {
            directory: data_dir.join(DIRECTORY),
            entropy,
        }
    }

    /// What was configured, else what is kept under `name`, made now if there is none.
    pub fn or_kept(&self, configured: Option<Secret>, name: &str) -> Result<Secret, SecretError> {
        configured.map_or_else(|| self.kept(name), Ok)
    }

    fn kept(&self, name: &str) -> Result<Secret, SecretError> {
        let path = self.directory.join(name);
        let failed = |source| SecretError::Io {
            path: path.clone(),
            source,
        };
        if !self.directory.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.directory)
                .map_err(failed)?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                let secret = fresh(self.entropy);
                file.write_all(secret.expose().as_bytes())
                    .and_then(|()| file.sync_all())
                    .map_err(failed)?;
                Ok(secret)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The secret kept under `name`, if one was made; makes none.
pub fn find_kept(data_dir: &Path, name: &str) -> Result<Option<Secret>, SecretError> {
    let path = data_dir.join(DIRECTORY).join(name);
    if path.exists() { read(&path).map(Some) } else { Ok(None) }
}

fn read(path: &Path) -> Result<Secret, SecretError> {
    let failed = |source| SecretError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned() });
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(failed)?;
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SecretError::Malformed { path: path.to_owned() });
    }
    Ok(Secret::new(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;

    /// Decision 36.
    #[test]
    fn a_generated_secret_stays_the_same_and_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let kept = KeptSecrets::new(&data, &SystemEntropy);
        let first = kept.or_kept(None, "access").expect("made");
        assert_eq!(first.expose().len(), DIGITS);
        assert_eq!(kept.or_kept(None, "access").expect("kept"), first);
        assert_ne!(kept.or_kept(None, "refresh").expect("made"), first);
        let mode = |path: &str| fs::metadata(data.join(path)).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("secrets"), mode("secrets/access")), (0o700, 0o600));
    }

    #[test]
    fn a_configured_secret_is_not_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let kept = KeptSecrets::new(dir.path(), &SystemEntropy);
        let configured = kept.or_kept(Some(Secret::new("mine")), "access").expect("given");
        assert!(configured.matches("mine") && !dir.path().join("secrets").exists());
    }

    #[test]
    fn an_open_or_cut_file_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let kept = KeptSecrets::new(dir.path(), &SystemEntropy);
        kept.or_kept(None, "access").expect("made");
        let path = dir.path().join("secrets/access");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened");
        assert!(matches!(kept.or_kept(None, "access"), Err(SecretError::Open { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(&path, "").expect("emptied");
        assert!(matches!(
            kept.or_kept(None, "access"),
            Err(SecretError::Malformed { .. })
        ));
    }
}
