//! The lock that allows one process per directory (HD24).

use crate::error::{OpenError, at};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Holds a directory for this process until it is dropped; the file `lock` in the directory names the holder.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Creates the directory if it is missing, and locks it. If another process holds it, the error names that process.
    pub(crate) fn acquire(dir: &Path, holder: &str) -> Result<Self, OpenError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(at(dir))?;
        let path = dir.join("lock");
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                if file.read_to_string(&mut holder).is_err() || holder.is_empty() {
                    "another process".clone_into(&mut holder);
                }
                return Err(OpenError::Held {
                    dir: dir.to_owned(),
                    holder,
                });
            }
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
        let mut write = || -> std::io::Result<()> {
            // The old text is overwritten before the file is shortened: a full disk has no room for a new block.
            file.rewind()?;
            file.write_all(holder.as_bytes())?;
            file.set_len(holder.len() as u64)
        };
        write().map_err(at(&path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd24_a_second_process_gets_the_name_of_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::acquire(dir.path(), "process 7").unwrap();
        let error = DirLock::acquire(dir.path(), "process 8").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{}` is held by process 7", dir.path().display())
        );
        drop(held);
        assert!(DirLock::acquire(dir.path(), "process 8").is_ok());
    }
}
