//! Every operation that changes what is on disk, so that tests can let each of them fail, or be the last one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// One operation, before it is carried out.
#[derive(Clone, Copy, Debug)]
#[expect(
    dead_code,
    reason = "only a test looks at what is about to happen, and at some of it only to print it"
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

/// Whether the operation may happen; outside tests every one may.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "the one for tests refuses")]
const fn permit(_: Op<'_>) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use crate::tests::disk::permit;

/// A new file of this process's user alone.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    permit(Op::Create(path))?;
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Reserves a file's bytes on disk.
pub(crate) fn allocate(file: &File, path: &Path, capacity: u64) -> io::Result<()> {
    permit(Op::Allocate { path, capacity })?;
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

/// Whether an error says that the disk has no room, or the process no more of it.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes a file durable, its length included.
pub(crate) fn sync(file: &File, path: &Path) -> io::Result<()> {
    permit(Op::Sync(path))?;
    file.sync_all()
}

/// Makes a file's bytes durable; its length was before.
pub(crate) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    permit(Op::Sync(path))?;
    file.sync_data()?;
    // Bytes in a file that no directory names any more are gone with the process.
    if file.metadata()?.nlink() == 0 {
        Err(io::ErrorKind::NotFound.into())
    } else {
        Ok(())
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    permit(Op::SyncDir(dir))?;
    File::open(dir)?.sync_all()
}

/// Removes a file; one that is gone already is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    permit(Op::Remove(path))?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Gives a file or directory another name; both names are in the same directory.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    permit(Op::Rename(from))?;
    std::fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_dir)
}

/// Replaces a file as a whole: after a crash it is the old one or the new one. The new one is a fresh file each
/// time, since an fsync that failed once says nothing when it is repeated (HD22).
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    remove(&new)?;
    let file = create(&new)?;
    write(&file, &new, bytes, 0)?;
    sync(&file, &new)?;
    rename(&new, path)
}
