//! The newest start of a process on this journal. The audit store has a copy: a directory that was put back to an older
//! state, or that is a copy of another one, does not have the newest start (HD24).

use crate::disk;
use crate::error::{OpenError, at};
use crate::journal::Journal;
use crate::open::shard_dir;
use crate::start_file;
use gw_audit::JournalStart;
use std::path::PathBuf;

impl Journal {
    /// The newest start that the directory knows; `None` if it knows none. Reads a file: not for an async thread.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the file cannot be read, [`OpenError::Corrupt`] if its content is not a start.
    pub fn newest_start(&self) -> Result<Option<JournalStart>, OpenError> {
        start_file::read(&shard_dir(&self.config.dir, self.shard()))
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
        start_file::path(&shard_dir(&self.config.dir, self.shard()))
    }
}
