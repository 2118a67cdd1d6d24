//! The file of the newest start: in the shard's directory, one line `<number> <id>`.

use crate::error::{OpenError, at};
use gw_audit::JournalStart;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const FILE: &str = "start";

/// The path of the file in a shard's directory.
pub(crate) fn path(shard_dir: &Path) -> PathBuf {
    shard_dir.join(FILE)
}

/// Reads the newest start in a shard's directory; `None` if there is none.
pub(crate) fn read(shard_dir: &Path) -> Result<Option<JournalStart>, OpenError> {
    let path = path(shard_dir);
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
