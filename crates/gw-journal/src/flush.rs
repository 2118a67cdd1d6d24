//! The thread that makes records durable: one fsync covers everything written before it started.
//!
//! If a caller waits, the fsync starts immediately; callers that arrive while it runs share the next one. If no caller
//! waits, it starts early enough that a power cut loses at most 20 ms of records (decision 10).

use crate::disk;
use crate::journal::Shared;
use crate::segment::Segment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

    /// Sleeps until an fsync is due; returns false if the journal is being closed and nothing is to be synced.
    fn next(&self) -> bool {
        let asleep = self.lock();
        let asleep = self
            .wake
            .wait_while(asleep, |()| !self.is(&self.dirty) && !self.is(&self.stop));
        let asleep = asleep.unwrap_or_else(PoisonError::into_inner);
        let may_wait = |_: &mut ()| !self.is(&self.urgent) && !self.is(&self.stop);
        drop(self.wake.wait_timeout_while(asleep, IDLE, may_wait));
        self.urgent.store(false, Ordering::Release);
        let dirty = self.dirty.swap(false, Ordering::AcqRel);
        dirty || !self.is(&self.stop)
    }
}

/// Runs the flush thread until the journal is closed.
pub(crate) fn run(shared: &Shared) {
    provide_spare(shared);
    while shared.signal.next() {
        sync(shared);
        while !heal(shared) {
            if !shared.signal.pause(RETRY) {
                return;
            }
        }
        provide_spare(shared);
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
    let reached = rescue.ends.end.reached;
    let Ok(mut writer) = shared.writer() else { return true };
    writer.finish_rescue(rescue, segment);
    let is_healed = !writer.failing;
    drop(writer);
    if is_healed {
        let _ = shared.header().note_durable(reached);
        // Records may have been appended in the meantime.
        shared.signal.dirty();
    }
    is_healed
}

fn remove_leftover(leftover: &mut Vec<std::path::PathBuf>) {
    leftover.retain(|path| disk::remove(path).is_err());
}

/// Creates the next segment before it is needed.
fn provide_spare(shared: &Shared) {
    let Ok(mut writer) = shared.writer() else { return };
    let Some(number) = writer.spare_number() else { return };
    let (dir, capacity) = (writer.dir.clone(), writer.segment_bytes);
    drop(writer);
    let Ok(spare) = Segment::create(&dir, number, capacity) else {
        return;
    };
    if let Ok(mut writer) = shared.writer()
        && let Some(unwanted) = writer.offer_spare(spare)
    {
        let _ = disk::remove(&unwanted.path);
    }
}
