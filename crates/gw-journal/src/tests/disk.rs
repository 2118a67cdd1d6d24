//! A disk that refuses, or a process that dies, at any operation of the thread under test.

use crate::disk::Op;
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What happens from some operation on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// So many operations fail, then the disk is well again.
    Refuses(u64),
    /// The process dies: nothing happens any more. The last write is carried out to its half.
    Dies,
}

#[derive(Debug, Default)]
struct Plan {
    /// Operations so far.
    done: u64,
    fault: Option<(u64, Fault)>,
    /// What stood where something was written since the last fsync of its file.
    undo: Vec<(PathBuf, u64, Vec<u8>)>,
    /// Files given up after a failed write or fsync, and what was done to one of them afterwards.
    failed: Vec<PathBuf>,
    misused: Vec<String>,
    /// Bytes that files may still take, if the disk has an end.
    room: Option<u64>,
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// From here on operations of this thread are counted, and one of them meets the fault.
pub(crate) fn start(fault: Option<(u64, Fault)>) {
    PLAN.set(Some(Plan {
        fault,
        ..Plan::default()
    }));
}

/// From here on new files of this thread find so many bytes, and those of files that are removed.
pub(crate) fn start_with_room(bytes: u64) {
    PLAN.set(Some(Plan {
        room: Some(bytes),
        ..Plan::default()
    }));
}

/// How many operations there were, and which of them HD22 forbids.
pub(crate) fn stop() -> (u64, Vec<String>) {
    PLAN.take().map_or((0, Vec::new()), |plan| (plan.done, plan.misused))
}

/// The power fails: what no fsync covers is as it was before, but for every `keep`-th write.
pub(crate) fn cut_power(keep: usize) {
    let Some(plan) = PLAN.take() else { return };
    for (n, (path, offset, before)) in plan.undo.iter().enumerate().rev() {
        if (n + 1) % keep != 0
            && let Ok(file) = OpenOptions::new().write(true).open(path)
        {
            file.write_all_at(before, *offset).unwrap();
        }
    }
}

pub(crate) fn permit(op: Op<'_>) -> io::Result<()> {
    PLAN.with_borrow_mut(|plan| plan.as_mut().map_or(Ok(()), |plan| plan.next(op)))
}

impl Plan {
    fn next(&mut self, op: Op<'_>) -> io::Result<()> {
        self.done += 1;
        let fault = self.fault.filter(|(first, _)| self.done >= *first);
        let meets = match fault {
            Some((first, Fault::Refuses(times))) => self.done < first + times,
            Some((_, Fault::Dies)) => true,
            None => false,
        };
        self.note(op, meets);
        if !meets {
            return self.take_room(op);
        }
        if fault == Some((self.done, Fault::Dies))
            && let Op::Write {
                file,
                path,
                bytes,
                offset,
            } = op
        {
            self.remember(file, path, &bytes[..bytes.len() / 2], offset);
            file.write_all_at(&bytes[..bytes.len() / 2], offset)?;
        }
        Err(io::Error::other("the disk refuses"))
    }

    fn take_room(&mut self, op: Op<'_>) -> io::Result<()> {
        let Some(room) = &mut self.room else { return Ok(()) };
        match op {
            Op::Allocate { capacity, .. } => *room = room.checked_sub(capacity).ok_or(io::ErrorKind::StorageFull)?,
            Op::Remove(path) => *room += std::fs::metadata(path).map_or(0, |file| file.len()),
            Op::Create(_) | Op::Write { .. } | Op::Sync(_) | Op::SyncDir(_) | Op::Rename(_) => {}
        }
        Ok(())
    }

    fn note(&mut self, op: Op<'_>, fails: bool) {
        let is_segment = |path: &Path| path.extension().is_some_and(|suffix| suffix == "segment");
        let written = match op {
            Op::Write { path, .. } | Op::Sync(path) => Some(path),
            Op::Create(_) | Op::Allocate { .. } | Op::SyncDir(_) | Op::Rename(_) | Op::Remove(_) => None,
        };
        if let Some(path) = written.filter(|path| is_segment(path)) {
            if self.failed.iter().any(|failed| failed == path) {
                self.misused.push(format!("{op:?}"));
            }
            if fails {
                self.failed.push(path.to_owned());
            }
        }
        if fails {
            return;
        }
        if let Op::Write {
            file,
            path,
            bytes,
            offset,
        } = op
        {
            self.remember(file, path, bytes, offset);
        } else if let Op::Sync(path) = op {
            self.undo.retain(|(written, ..)| written != path);
        }
    }

    fn remember(&mut self, file: &std::fs::File, path: &Path, bytes: &[u8], offset: u64) {
        let mut before = vec![0; bytes.len()];
        // Behind its end a file reads as zeros.
        let mut read = 0;
        while let Ok(more) = file.read_at(&mut before[read..], offset + read as u64) {
            read += more;
            if more == 0 || read == before.len() {
                break;
            }
        }
        self.undo.push((path.to_owned(), offset, before));
    }
}
