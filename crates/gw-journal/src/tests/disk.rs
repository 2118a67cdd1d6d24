//! Fault injection: a disk that fails, or a process that dies, at any operation of the thread under test.

use crate::disk::Op;
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The fault that starts at some operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This number of operations fails; then the disk works again.
    DiskError(u64),
    /// The process dies: no further operation is carried out. If the first one is a write, half of it is carried out.
    Crash,
}

#[derive(Debug, Default)]
struct Plan {
    /// The number of operations so far.
    operations: u64,
    fault: Option<(u64, Fault)>,
    /// Path, offset and previous bytes of each write since the last fsync of its file.
    undo: Vec<(PathBuf, u64, Vec<u8>)>,
    /// Segments with a failed write or fsync.
    failed: Vec<PathBuf>,
    /// Operations on failed segments, which HD22 forbids.
    forbidden: Vec<String>,
    /// The free bytes of the disk, if it is limited.
    room: Option<u64>,
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// Starts to count the operations of this thread; the fault happens at its operation.
pub(crate) fn start(fault: Option<(u64, Fault)>) {
    PLAN.set(Some(Plan {
        fault,
        ..Plan::default()
    }));
}

/// Limits the disk for this thread: new files may use `bytes` bytes and the bytes of removed files.
pub(crate) fn start_with_room(bytes: u64) {
    PLAN.set(Some(Plan {
        room: Some(bytes),
        ..Plan::default()
    }));
}

/// Stops the fault injection; returns the number of operations and those that HD22 forbids.
pub(crate) fn stop() -> (u64, Vec<String>) {
    PLAN.take()
        .map_or((0, Vec::new()), |plan| (plan.operations, plan.forbidden))
}

/// Simulates a power cut: undoes the writes that no fsync covers, except every `keep`-th one.
pub(crate) fn cut_power(keep: usize) {
    let Some(plan) = PLAN.take() else { return };
    for (n, (path, offset, previous)) in plan.undo.iter().enumerate().rev() {
        if (n + 1) % keep != 0
            && let Ok(file) = OpenOptions::new().write(true).open(path)
        {
            file.write_all_at(previous, *offset).unwrap();
        }
    }
}

pub(crate) fn permit(op: Op<'_>) -> io::Result<()> {
    PLAN.with_borrow_mut(|plan| plan.as_mut().map_or(Ok(()), |plan| plan.next(op)))
}

impl Plan {
    fn next(&mut self, op: Op<'_>) -> io::Result<()> {
        self.operations += 1;
        let fault = self.fault.filter(|(first, _)| self.operations >= *first);
        let fails = match fault {
            Some((first, Fault::DiskError(times))) => self.operations < first + times,
            Some((_, Fault::Crash)) => true,
            None => false,
        };
        self.record(op, fails);
        if !fails {
            return self.take_room(op);
        }
        if fault == Some((self.operations, Fault::Crash))
            && let Op::Write {
                file,
                path,
                bytes,
                offset,
            } = op
        {
            self.save_undo(file, path, &bytes[..bytes.len() / 2], offset);
            file.write_all_at(&bytes[..bytes.len() / 2], offset)?;
        }
        Err(io::Error::other("the disk rejects writes"))
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

    fn record(&mut self, op: Op<'_>, fails: bool) {
        let is_segment = |path: &Path| path.extension().is_some_and(|suffix| suffix == "segment");
        let written = match op {
            Op::Write { path, .. } | Op::Sync(path) => Some(path),
            Op::Create(_) | Op::Allocate { .. } | Op::SyncDir(_) | Op::Rename(_) | Op::Remove(_) => None,
        };
        if let Some(path) = written.filter(|path| is_segment(path)) {
            if self.failed.iter().any(|failed| failed == path) {
                self.forbidden.push(format!("{op:?}"));
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
            self.save_undo(file, path, bytes, offset);
        } else if let Op::Sync(path) = op {
            self.undo.retain(|(written, ..)| written != path);
        }
    }

    fn save_undo(&mut self, file: &std::fs::File, path: &Path, bytes: &[u8], offset: u64) {
        let mut previous = vec![0; bytes.len()];
        // Bytes behind the end of the file count as zeros.
        let mut filled = 0;
        while let Ok(count) = file.read_at(&mut previous[filled..], offset + filled as u64) {
            filled += count;
            if count == 0 || filled == previous.len() {
                break;
            }
        }
        self.undo.push((path.to_owned(), offset, previous));
    }
}
