//! The exclusive lock on a data directory (HD24): two processes never share one.
//!
//! Invariant: the lock is the kernel's, so it ends with the process, whatever the file contains; the file's text only
//! names the holder.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

/// A directory locked by this process until the value is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    directory: PathBuf,
    /// Kept open: closing it releases the lock.
    _file: File,
}

/// Why a directory could not be locked. The process exits with code 78.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("`{}` is held by {holder}", directory.display())]
    Held {
        /// The directory.
        directory: PathBuf,
        /// Text of the lock file, for instance `process 4711`.
        holder: String,
    },
    /// The directory or its lock file cannot be created or written.
    #[error("cannot hold `{}`", directory.display())]
    Io {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl DirectoryLock {
    /// Exit code of a process whose directory is locked by another one (`EX_CONFIG`).
    pub const EXIT_CODE: u8 = 78;

    /// Name of the lock file in the directory.
    pub const FILE: &str = "lock";

    /// Creates the directory if needed and locks it.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process holds the lock; [`LockError::Io`] if the directory or its lock file
    /// cannot be created or written.
    pub fn acquire(directory: impl AsRef<Path>) -> Result<Self, LockError> {
        let directory = directory.as_ref().to_owned();
        match hold(&directory) {
            Ok(Ok(file)) => Ok(Self { directory, _file: file }),
            Ok(Err(holder)) => Err(LockError::Held { directory, holder }),
            Err(source) => Err(LockError::Io { directory, source }),
        }
    }

    /// Returns the locked directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Returns the locked file, or the text that names its holder.
fn hold(directory: &Path) -> io::Result<Result<File, String>> {
    std::fs::create_dir_all(directory)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(DirectoryLock::FILE))?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            file.rewind()?;
            write!(file, "process {}", std::process::id())?;
            file.sync_data()?;
            Ok(Ok(file))
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            Ok(Err(if holder.is_empty() {
                "a process that is starting".to_owned()
            } else {
                holder
            }))
        }
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd24_a_held_directory_is_refused_and_names_its_holder() {
        let place = tempfile::tempdir().unwrap();
        let held = DirectoryLock::acquire(place.path()).unwrap();
        match DirectoryLock::acquire(place.path()) {
            Err(LockError::Held { holder, .. }) => assert_eq!(holder, format!("process {}", std::process::id())),
            other => panic!("a held directory was given away: {other:?}"),
        }
        drop(held);
        DirectoryLock::acquire(place.path()).expect("the lock ends with its holder");
    }
}
