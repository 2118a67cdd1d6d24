//! The newest start of a process on this journal. The audit store has a copy: a directory that was put back to an older
//! state, or that is a copy of another one, does not have the newest start (HD24).
//!
//! The file is in the shard's directory, one line `<number> <id>`.

use crate::disk;
use crate::error::{OpenError, at};
use crate::journal::Journal;
use crate::open::shard_dir;
use gw_audit::JournalStart;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const FILE: &str = "start";

/// Reads the newest start in a shard's directory; `None` if there is none.
pub(crate) fn read(shard_dir: &Path) -> Result<Option<JournalStart>, OpenError> {
    let path = shard_dir.join(FILE);
    // Opening a pipe would wait for a writer without end.
    if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(OpenError::corrupt(&path, 0, "it is not a regular file"));
    }
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&path)(error)),
    };
    let text = std::str::from_utf8(&bytes).ok();
    let parts = text.and_then(|text| text.trim().split_once(' '));
    let start = parts.and_then(|(number, id)| {
        Some(JournalStart {
            number: number.parse().ok()?,
            id: Uuid::parse_str(id).ok()?,
        })
    });
    start
        .map(Some)
        .ok_or_else(|| OpenError::corrupt(&path, 0, "the number of the newest start cannot be read"))
}

impl Journal {
    /// The newest start that the directory knows; `None` if it knows none. Reads a file: not for an async thread.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the file cannot be read, [`OpenError::Corrupt`] if its content is not a start.
    pub fn newest_start(&self) -> Result<Option<JournalStart>, OpenError> {
        read(&shard_dir(&self.config.dir, self.shard()))
    }

    /// Records the start after the newest known one, with a random id, durably. Writes a file: not for an async thread.
    ///
    /// # Errors
    /// [`OpenError`] if the file cannot be read or written.
    pub fn note_start(&self) -> Result<JournalStart, OpenError> {
        let newest = self.newest_start()?.map_or(0, |start| start.number);
        let start = JournalStart {
            number: newest.saturating_add(1),
            id: self.shared.entropy.uuid(),
        };
        let path = self.start_path();
        let text = format!("{} {}\n", start.number, start.id.as_hyphenated());
        match disk::replace(&path, text.as_bytes()) {
            // A full disk has no room for a new file, but the old one keeps its block, which holds any start.
            Err(error) if disk::is_full(&error) => disk::overwrite(&path, text.as_bytes()).map_err(at(&path))?,
            result => result.map_err(at(&path))?,
        }
        Ok(start)
    }

    fn start_path(&self) -> PathBuf {
        shard_dir(&self.config.dir, self.shard()).join(FILE)
    }
}
