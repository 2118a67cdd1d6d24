//! The thread that makes records durable: one fsync covers everything written before it started.
//!
//! If a caller waits, the fsync starts immediately; callers that arrive while it runs share the next one. If no caller
//! waits, it starts early enough that a power cut loses at most 20 ms of records (decision 10).

use crate::disk;
use crate::journal::Shared;
use crate::reserve;
use crate::segment::Segment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time until the fsync of records that no caller waits for.
const IDLE: Duration = Duration::from_millis(15);

/// The pause between two attempts to write to a failing disk.
const RETRY: Duration = Duration::from_millis(200);

/// Signals to the flush thread.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    /// There are records without fsync.
    dirty: AtomicBool,
    /// A caller waits for an fsync.
    urgent: AtomicBool,
    stop: AtomicBool,
    asleep: Mutex<()>,
    wake: Condvar,
}

impl Signal {
    pub(crate) fn dirty(&self) {
        self.raise(&self.dirty);
    }

    pub(crate) fn urgent(&self) {
        self.raise(&self.urgent);
    }

    pub(crate) fn stop(&self) {
        self.raise(&self.stop);
    }

    fn raise(&self, flag: &AtomicBool) {
        if !flag.swap(true, Ordering::AcqRel) {
            // Invariant: the flag is set before the lock is taken, and the thread checks it while it holds the lock.
            drop(self.lock());
            self.wake.notify_one();
        }
    }

    fn is(&self, flag: &AtomicBool) -> bool {
        flag.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for `duration`; returns false if the journal is being closed.
    fn pause(&self, duration: Duration) -> bool {
        drop(
            self.wake
                .wait_timeout_while(self.lock(), duration, |()| !self.is(&self.stop)),
        );
        !self.is(&self.stop)
    }

    /// Sleeps until an fsync is due, but at most for `limit`; returns false if the journal is being closed and nothing
    /// is to be synced.
    fn next(&self, limit: Option<Duration>) -> bool {
        let asleep = self.lock();
        let is_idle = |_: &mut ()| !self.is(&self.dirty) && !self.is(&self.stop);
        let asleep = match limit {
            Some(limit) => {
                let woken = self.wake.wait_timeout_while(asleep, limit, is_idle);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self
                .wake
                .wait_while(asleep, is_idle)
                .unwrap_or_else(PoisonError::into_inner),
        };
        let may_wait = |_: &mut ()| !self.is(&self.urgent) && !self.is(&self.stop);
        drop(self.wake.wait_timeout_while(asleep, IDLE, may_wait));
        self.urgent.store(false, Ordering::Release);
        let dirty = self.dirty.swap(false, Ordering::AcqRel);
        dirty || !self.is(&self.stop)
    }
}

/// Runs the flush thread until the journal is closed.
pub(crate) fn run(shared: &Shared) {
    // A journal that was opened on a full disk waits for room from the start.
    while !heal(shared) {
        if !shared.signal.pause(RETRY) {
            return;
        }
    }
    let mut refused_at = refused_spare(shared);
    while shared.signal.next(refused_at.map(|_| RETRY)) {
        sync(shared);
        while !heal(shared) {
            if !shared.signal.pause(RETRY) {
                return;
            }
        }
        // Not with every fsync: each attempt is work for a disk that has no room.
        if refused_at.is_none_or(|refused_at| refused_at.elapsed() >= RETRY) {
            refused_at = refused_spare(shared);
        }
    }
}

/// Provides the next segment; returns the time if the disk refuses it.
fn refused_spare(shared: &Shared) -> Option<Instant> {
    if provide_spare(shared) {
        None
    } else {
        Some(Instant::now())
    }
}

/// Makes everything written so far durable with one fsync.
pub(crate) fn sync(shared: &Shared) {
    // Only one sync at a time: each removes the frames it covered from the front of the unsynced ones.
    let _syncing = shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(job) = shared.writer().map(|writer| writer.sync_job()) else {
        return;
    };
    let Some(job) = job else { return };
    let result = job
        .files
        .iter()
        .try_for_each(|(file, path)| disk::sync_data(file, path));
    let Ok(mut writer) = shared.writer() else { return };
    let is_durable = writer.finish_sync(&job, result);
    drop(writer);
    if is_durable {
        // An error is ignored: the header may lag behind, it must only never be ahead.
        let _ = shared.header().note_durable(job.ends.end.reached);
    }
}

/// If the writer is failing, tries to write the unsynced frames to a new file (RL12). Returns whether the writer is not
/// failing any more.
pub(crate) fn heal(shared: &Shared) -> bool {
    let _syncing = shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut writer) = shared.writer() else { return true };
    if !writer.failing {
        remove_leftover(&mut writer.leftover);
        return true;
    }
    let mut rescue = writer.start_rescue();
    // The lock is released, because a failing disk may be slow and other callers must get their error at once.
    drop(writer);
    let segment = if rescue.remove_leftover() {
        rescue.move_to_new()
    } else {
        None
    };
    let (reached, is_disk_full) = (rescue.ends.end.reached, rescue.is_disk_full);
    let Ok(mut writer) = shared.writer() else { return true };
    writer.finish_rescue(rescue, segment);
    let is_healed = !writer.failing;
    let dir = writer.dir.clone();
    drop(writer);
    if is_healed {
        // The disk may have been too full for it before.
        reserve::keep(&dir);
        let _ = shared.header().note_durable(reached);
        // Records may have been appended in the meantime.
        shared.signal.dirty();
    } else if is_disk_full {
        shared.release_sealed();
    }
    is_healed
}

fn remove_leftover(leftover: &mut Vec<std::path::PathBuf>) {
    leftover.retain(|path| disk::remove(path).is_err());
}

/// Creates the next segment before it is needed. On a full disk, sealed segments give way to it, the oldest first.
/// Returns false if the disk refuses it.
pub(crate) fn provide_spare(shared: &Shared) -> bool {
    loop {
        let Ok(mut writer) = shared.writer() else { return true };
        let Some(number) = writer.spare_number() else {
            return true;
        };
        let (dir, capacity) = (writer.dir.clone(), writer.segment_bytes);
        drop(writer);
        let error = match Segment::create(&dir, number, capacity) {
            Ok(spare) => {
                if let Ok(mut writer) = shared.writer()
                    && let Some(unwanted) = writer.offer_spare(spare)
                {
                    let _ = disk::remove(&unwanted.path);
                }
                return true;
            }
            Err(error) => error,
        };
        let is_disk_full = disk::is_full(&error);
        if let Ok(mut writer) = shared.writer() {
            writer.is_disk_full = is_disk_full;
        }
        if !is_disk_full || !shared.release_sealed() {
            return false;
        }
    }
}
