//! All operations that change files, so that tests can make each of them fail, or stop after it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// An operation that is about to be carried out.
#[derive(Clone, Copy, Debug)]
#[expect(
    dead_code,
    reason = "only tests read the fields, and some of them only in debug output"
)]
pub(crate) enum Op<'a> {
    Create(&'a Path),
    Allocate {
        path: &'a Path,
        capacity: u64,
    },
    Write {
        file: &'a File,
        path: &'a Path,
        bytes: &'a [u8],
        offset: u64,
    },
    Sync(&'a Path),
    SyncDir(&'a Path),
    Rename(&'a Path),
    Remove(&'a Path),
}

/// Decides whether an operation is carried out; outside tests always.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "the version for tests returns errors")]
const fn permit(_: Op<'_>) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use crate::tests::disk::permit;

/// The size of the disk that holds a directory, in bytes.
///
/// # Errors
/// If the file system does not tell.
pub fn disk_bytes(dir: &Path) -> io::Result<u64> {
    fs4::total_space(dir)
}

/// The free bytes of the disk that holds a directory.
///
/// # Errors
/// If the file system does not tell.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    fs4::available_space(dir)
}

/// Creates a new file that only this process's user can access.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    permit(Op::Create(path))?;
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Reserves a file's bytes on disk, and leaves `spare` bytes free. If the disk has fewer free bytes, it takes none: an
/// allocation that fails in the middle would take them all for a moment, from everybody else who writes to the disk.
pub(crate) fn allocate(file: &File, path: &Path, capacity: u64, spare: u64) -> io::Result<()> {
    permit(Op::Allocate { path, capacity })?;
    if fs4::available_space(path).is_ok_and(|free| free < capacity.saturating_add(spare)) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    match fs4::FileExt::allocate(file, capacity) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let zeros = [0; 64 * 1024];
            let mut at = 0;
            while at < capacity {
                let take = (capacity - at).min(zeros.len() as u64);
                let chunk = usize::try_from(take)
                    .ok()
                    .and_then(|take| zeros.get(..take))
                    .unwrap_or_default();
                file.write_all_at(chunk, at)?;
                at += take;
            }
            Ok(())
        }
        result => result,
    }
}

pub(crate) fn write(file: &File, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
    permit(Op::Write {
        file,
        path,
        bytes,
        offset,
    })?;
    file.write_all_at(bytes, offset)
}

/// Whether an error means that the disk is full or the quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes a file's bytes and length durable.
pub(crate) fn sync(file: &File, path: &Path) -> io::Result<()> {
    permit(Op::Sync(path))?;
    file.sync_all()?;
    is_still_named(file, path)
}

/// Makes a file's bytes durable; the length must be durable already.
pub(crate) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    permit(Op::Sync(path))?;
    file.sync_data()?;
    is_still_named(file, path)
}

/// Fails if the path does not lead to the open file. The bytes of a removed file are lost when the process ends, and a
/// later start does not find the bytes of a moved file.
fn is_still_named(file: &File, path: &Path) -> io::Result<()> {
    let (open, named) = (file.metadata()?, std::fs::metadata(path)?);
    if (open.dev(), open.ino()) == (named.dev(), named.ino()) {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    permit(Op::SyncDir(dir))?;
    File::open(dir)?.sync_all()
}

/// Removes a file; a missing file is not an error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    permit(Op::Remove(path))?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Renames a file or directory within its parent directory.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    permit(Op::Rename(from))?;
    std::fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_dir)
}

/// Replaces a file atomically: after a crash it is the old or the new one. Each call writes a new file, because
/// repeating a failed fsync on the same file proves nothing (HD22).
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    remove(&new)?;
    let file = create(&new)?;
    write(&file, &new, bytes, 0)?;
    sync(&file, &new)?;
    rename(&new, path)
}

/// Overwrites a small file in its place, durably. Unlike [`replace`], it needs no free space.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    write(&file, path, bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    sync(&file, path)
}
