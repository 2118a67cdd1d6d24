//! The thread that makes records durable: one fsync covers all that was written before it began.
//!
//! When somebody waits it begins at once, and whoever comes while it runs shares the next one; when nobody
//! waits it begins so early that a power cut costs at most 20 ms of records (decision 10).

use crate::disk;
use crate::journal::Shared;
use crate::segment::Segment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long records nobody waits for stay in the page cache before their fsync begins.
const IDLE: Duration = Duration::from_millis(15);

/// Rest between two tries to find a file on a disk that refuses.
const RETRY: Duration = Duration::from_millis(200);

/// What the thread is told.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    /// There are records without fsync.
    dirty: AtomicBool,
    /// Somebody waits for one.
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
            // Invariant: the flag is up before the lock is taken, and the sleeper looks under the lock.
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

    /// Sleeps for so long; false when the journal is closed.
    fn pause(&self, rest: Duration) -> bool {
        drop(
            self.wake
                .wait_timeout_while(self.lock(), rest, |()| !self.is(&self.stop)),
        );
        !self.is(&self.stop)
    }

    /// Sleeps until a sync is due; false when the journal is closed.
    fn next(&self) -> bool {
        let asleep = self.lock();
        let asleep = self
            .wake
            .wait_while(asleep, |()| !self.is(&self.dirty) && !self.is(&self.stop));
        let asleep = asleep.unwrap_or_else(PoisonError::into_inner);
        let hurry = |_: &mut ()| !self.is(&self.urgent) && !self.is(&self.stop);
        drop(self.wake.wait_timeout_while(asleep, IDLE, hurry));
        self.urgent.store(false, Ordering::Release);
        let dirty = self.dirty.swap(false, Ordering::AcqRel);
        dirty || !self.is(&self.stop)
    }
}

/// The thread's whole life.
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

/// One fsync of all that is written.
pub(crate) fn sync(shared: &Shared) {
    // One at a time: each takes what it covered off the front of what is not durable yet.
    let _one = shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(job) = shared.writer().map(|writer| writer.sync_job()) else {
        return;
    };
    let Some(job) = job else { return };
    let result = job
        .files
        .iter()
        .try_for_each(|(file, path)| disk::sync_data(file, path));
    let Ok(mut writer) = shared.writer() else { return };
    let durable = writer.synced(&job, result);
    drop(writer);
    if durable {
        // The header may lag behind; only what it says must be true.
        let _ = shared.header().note_durable(job.ends.end.reached);
    }
}

/// Tries a fresh file for what no file took; true if there is nothing like that, or not any more (RL12).
pub(crate) fn heal(shared: &Shared) -> bool {
    let _one = shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut writer) = shared.writer() else { return true };
    if !writer.failing {
        remove_leftover(&mut writer.leftover);
        return true;
    }
    let mut rescue = writer.rescue();
    // Without the lock: the disk may take its time to refuse, and callers are to be told at once.
    drop(writer);
    let segment = if rescue.clear_away() {
        rescue.move_to_fresh()
    } else {
        None
    };
    let reached = rescue.ends.end.reached;
    let Ok(mut writer) = shared.writer() else { return true };
    writer.rescued(rescue, segment);
    let healed = !writer.failing;
    drop(writer);
    if healed {
        let _ = shared.header().note_durable(reached);
        // Some may have come meanwhile.
        shared.signal.dirty();
    }
    healed
}

fn remove_leftover(leftover: &mut Vec<std::path::PathBuf>) {
    leftover.retain(|path| disk::remove(path).is_err());
}

/// Makes the next segment before it is needed.
fn provide_spare(shared: &Shared) {
    let Ok(mut writer) = shared.writer() else { return };
    let Some(number) = writer.wants_spare() else { return };
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
