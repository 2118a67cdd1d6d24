//! A file that holds a little disk space, so that a full disk can still be relieved: the state behind a sealed segment
//! must be saved before the segment is deleted.

use crate::disk;
use std::io;
use std::path::{Path, PathBuf};

/// Enough for the state before the oldest segment with thousands of open sends.
const BYTES: u64 = 1 << 20;

fn path(dir: &Path) -> PathBuf {
    dir.join("reserve")
}

/// Creates the file if it is missing. Without room for it, the journal works without it.
pub(crate) fn keep(dir: &Path) {
    let path = path(dir);
    if path.exists() {
        return;
    }
    let Ok(file) = disk::create(&path) else { return };
    if disk::allocate(&file, &path, BYTES, 0).is_err() {
        let _ = disk::remove(&path);
    }
}

/// Gives the space to the journal.
pub(crate) fn release(dir: &Path) -> io::Result<()> {
    disk::remove(&path(dir))
}
