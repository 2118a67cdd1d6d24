//! The writer: gives records their numbers and writes them to disk. Everything here runs under one lock.
//!
//! Invariant: frames that are not known to be durable are also in memory ([`Writer::unsynced`]), so that they can be
//! written to another file after a failed write or fsync; a file that failed is never written or synced again (HD22).
//! While no file accepts the frames, the writer is *failing*: it admits no records and retries with new files (RL12).

use crate::cursor::RecordEnd;
use crate::disk;
use crate::error::JournalError;
use crate::frame::{self, MARKER, MAX_PAYLOAD};
use crate::header::ChainSizes;
use crate::heads::{Hashes, Heads};
use crate::position::Position;
use crate::reader::RetainedSegment;
use crate::rescue::Rescue;
use crate::segment::{FIRST_FRAME, Segment};
use crate::waiting::Waiting;
use gw_audit::{Chain, ChainId, EncodedRecord, Genesis, Stream};
use gw_types::Timestamp;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// How far the journal is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// The end of the last durable record.
    pub(crate) end: RecordEnd,
    /// The last hash of each chain at that end.
    pub(crate) hashes: Hashes,
    /// The disk has rejected writes for so long that callers must not wait any longer.
    pub(crate) failed: bool,
}

/// The segments that hold records, oldest first; the last one is being written.
pub(crate) type Catalog = Mutex<Vec<RetainedSegment>>;

/// The largest size of a genesis frame in bytes.
const GENESIS_BOUND: u64 = 1024;
const MAX_FRAME: u64 = MAX_PAYLOAD as u64 + 64;
/// The largest number of bytes without fsync. They are held in memory, which a disk with a hanging fsync must not
/// exhaust.
const MAX_UNSYNCED: usize = 256 << 20;
/// The number of failed attempts with a new file after which callers that wait for durability get an error.
const MAX_TRIES: u32 = 10;

/// The writing end of the journal.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    pub(crate) genesis: Genesis,
    pub(crate) segment_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) heads: Heads,
    pub(crate) segment: Segment,
    pub(crate) spare: Option<Segment>,
    pub(crate) next_number: u64,
    pub(crate) catalog: Arc<Catalog>,
    /// Full segments whose last bytes are not synced yet.
    pub(crate) retired: Vec<(Arc<File>, PathBuf)>,
    /// Abandoned files that could not be removed yet.
    pub(crate) leftover: Vec<PathBuf>,
    /// The frames behind the last durable record.
    pub(crate) unsynced: Vec<u8>,
    pub(crate) durable: watch::Sender<Durable>,
    /// Incremented when a file is abandoned, so that the result of a running sync is ignored.
    pub(crate) generation: u64,
    /// The bytes promised to reservations.
    pub(crate) reserved: u64,
    /// The bytes of all records that were retained when the journal was opened, and of all frames since.
    pub(crate) written: u64,
    /// The part of `written` before the first unsealed record of any stream.
    pub(crate) sealed: u64,
    /// The number of sealed entries of each stream.
    pub(crate) sealed_sizes: ChainSizes,
    pub(crate) waiting: Waiting,
    /// A buffer for frames.
    pub(crate) frame: Vec<u8>,
    /// Whether no file accepts the unsynced frames.
    pub(crate) failing: bool,
    /// The number of failed attempts with a new file since then.
    pub(crate) tries: u32,
    /// Whether the disk had no room for the last segment. Then only the flush thread creates segments, because each
    /// attempt takes free bytes from other users of the disk.
    pub(crate) is_disk_full: bool,
}

/// The files and frames that one fsync covers.
#[derive(Debug)]
pub(crate) struct SyncJob {
    pub(crate) files: Vec<(Arc<File>, PathBuf)>,
    pub(crate) ends: Durable,
    unsynced: usize,
    generation: u64,
}

impl Writer {
    /// The bytes from the first unsealed record on.
    pub(crate) const fn backlog(&self) -> u64 {
        self.written.saturating_sub(self.sealed)
    }

    /// The durable end once everything written is durable.
    pub(crate) fn ends(&self) -> Durable {
        let end = RecordEnd {
            reached: self.heads.reached(),
            segment: self.segment.number,
            offset: self.segment.end,
            bytes: self.written,
        };
        Durable {
            end,
            hashes: self.heads.hashes(),
            failed: false,
        }
    }

    /// Sets the sealed size of each stream, and the bytes before the first unsealed record.
    pub(crate) fn note_sealed(&mut self, sizes: ChainSizes, bytes: u64) {
        (self.sealed_sizes, self.sealed) = (sizes, bytes);
        for (stream, chain) in &self.heads.chains {
            let size = sizes.get(*stream);
            self.waiting.remove_sealed(*stream, size, size >= chain.head().size);
        }
    }

    /// Checks that `bytes` may be written without using reserved room.
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), JournalError> {
        if self.failing || self.unsynced.len() > MAX_UNSYNCED {
            return Err(JournalError::Unavailable);
        }
        if self.backlog() + self.reserved + bytes > self.max_bytes {
            return Err(JournalError::Full);
        }
        if !self.has_room(bytes) && self.spare.is_none() && !self.is_disk_full {
            match self.create(self.segment_bytes) {
                Ok(spare) => self.spare = Some(spare),
                Err(error) => {
                    self.is_disk_full = disk::is_full(&error);
                    return Err(JournalError::Full);
                }
            }
        }
        if self.has_room(bytes) {
            Ok(())
        } else {
            Err(JournalError::Full)
        }
    }

    /// Whether segment and spare segment have room for `bytes` and the reserved bytes, even if the end of a segment is
    /// wasted.
    fn has_room(&self, bytes: u64) -> bool {
        let room = self.segment.room() + self.spare.as_ref().map_or(0, Segment::room);
        room >= self.reserved + bytes + MAX_FRAME
    }

    /// Links a record into its chain and writes it. `promised` bytes were reserved for it.
    ///
    /// `Unavailable` means that the record is not on disk. A record with reserved room, and the record whose write
    /// failed, are nevertheless kept in memory and written when a file accepts them.
    pub(crate) fn append(
        &mut self,
        record: &EncodedRecord,
        now: Timestamp,
        promised: u64,
    ) -> Result<Position, JournalError> {
        let (stream, size) = (record.stream(), record.size_bound() + frame::OVERHEAD);
        if size > MAX_PAYLOAD {
            return Err(JournalError::TooLong);
        }
        let mut bound = size as u64;
        if !self.heads.chains.contains_key(&stream) {
            bound += GENESIS_BOUND;
        }
        let is_kept_in_memory = self.failing && promised > 0;
        let unreserved = bound.checked_sub(promised);
        if let Some(unreserved) = unreserved.filter(|bytes| *bytes > 0 && !is_kept_in_memory) {
            self.admit(unreserved)?;
        }
        if !self.failing && self.segment.room() < bound {
            self.rotate();
        }
        self.frame.clear();
        let seq = self.link(stream, record, now);
        self.written += self.frame.len() as u64;
        self.unsynced.extend_from_slice(&self.frame);
        if !self.failing && self.segment.write(&self.frame).is_err() {
            self.fail_over();
        }
        if self.failing {
            Err(JournalError::Unavailable)
        } else {
            Ok(Position {
                stream,
                seq,
                lsn: self.heads.lsn,
            })
        }
    }

    fn link(&mut self, stream: Stream, record: &EncodedRecord, now: Timestamp) -> u64 {
        let Heads { chains, lsn, shard } = &mut self.heads;
        let (genesis, frame, waiting) = (&self.genesis, &mut self.frame, &mut self.waiting);
        let chain = chains.entry(stream).or_insert_with(|| {
            *lsn += 1;
            frame::start_entry(frame, *lsn);
            let (chain, _) = Chain::begin(ChainId { stream, shard: *shard }, genesis, now, frame);
            frame::end_entry(frame, 0, &[]);
            waiting.note(stream, 0, chain.head().time);
            chain
        });
        *lsn += 1;
        let start = frame.len();
        frame::start_entry(frame, *lsn);
        let chained = chain.link(record, now, frame);
        frame::end_entry(frame, start, record.openings());
        waiting.note(stream, chained.seq, chain.head().time);
        chained.seq
    }

    /// Continues in the spare segment, or in a new one if there is no spare.
    fn rotate(&mut self) {
        let first_lsn = self.heads.lsn + 1;
        let next = match self.spare.take() {
            Some(spare) => Some(spare),
            None => self.create(self.segment_bytes).ok(),
        };
        match next {
            Some(next) if next.begin(self.heads.shard, first_lsn).is_ok() => {
                self.retired
                    .push((Arc::clone(&self.segment.file), self.segment.path.clone()));
                self.switch_to(next, first_lsn);
            }
            Some(failed) => {
                self.leftover.push(failed.path);
                self.fail_over();
            }
            None => self.fail_over(),
        }
    }

    fn switch_to(&mut self, next: Segment, first_lsn: u64) {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = catalog.last_mut().filter(|last| last.number == self.segment.number) {
            (last.end, last.last_time) = (self.segment.end, self.heads.time());
        }
        catalog.push(RetainedSegment {
            number: next.number,
            first_lsn,
            end: FIRST_FRAME,
            last_time: None,
        });
        self.segment = next;
    }

    fn create(&mut self, capacity: u64) -> std::io::Result<Segment> {
        let number = self.next_number;
        self.next_number += 1;
        Segment::create(&self.dir, number, capacity)
    }

    /// A number for a spare segment that is created outside the lock, if one is needed.
    pub(crate) fn spare_number(&mut self) -> Option<u64> {
        if self.spare.is_some() || self.failing {
            return None;
        }
        self.next_number += 1;
        Some(self.next_number - 1)
    }

    /// Stores a spare segment, or returns it if it is no longer needed.
    pub(crate) fn offer_spare(&mut self, spare: Segment) -> Option<Segment> {
        if self.spare.is_some() || self.failing || spare.number < self.segment.number {
            return Some(spare);
        }
        self.spare = Some(spare);
        self.is_disk_full = false;
        None
    }

    /// The files and frames to be synced, if there are any.
    pub(crate) fn sync_job(&self) -> Option<SyncJob> {
        if self.failing || self.heads.lsn == self.durable.borrow().end.lsn() {
            return None;
        }
        let mut files = self.retired.clone();
        files.push((Arc::clone(&self.segment.file), self.segment.path.clone()));
        Some(SyncJob {
            files,
            ends: self.ends(),
            unsynced: self.unsynced.len(),
            generation: self.generation,
        })
    }

    /// Ends a sync; returns whether it made records durable.
    pub(crate) fn finish_sync(&mut self, job: &SyncJob, result: std::io::Result<()>) -> bool {
        if job.generation != self.generation {
            return false;
        }
        if result.is_err() {
            self.fail_over();
            return !self.failing;
        }
        self.unsynced.drain(..job.unsynced);
        self.retired.drain(..job.files.len() - 1);
        self.durable.send_replace(job.ends);
        // A marker must not use room that is reserved for records.
        if self.segment.room() >= MARKER as u64 && self.has_room(MARKER as u64) {
            self.frame.clear();
            frame::put_marker(&mut self.frame, job.ends.end.lsn());
            if self.segment.write(&self.frame).is_err() {
                self.fail_over();
            }
        }
        true
    }

    /// Abandons the current file after a failed write or fsync: the unsynced frames are written to another file and
    /// synced there at once, or stay in memory until a file accepts them.
    fn fail_over(&mut self) {
        self.generation += 1;
        self.failing = true;
        let spare = self.spare.take();
        let mut rescue = self.start_rescue();
        let segment = spare
            .and_then(|spare| rescue.move_to(spare))
            .or_else(|| rescue.move_to_new());
        self.finish_rescue(rescue, segment);
    }

    /// Takes the unsynced frames out of the writer; [`Writer::finish_rescue`] must follow.
    pub(crate) fn start_rescue(&mut self) -> Rescue {
        let frames = std::mem::take(&mut self.unsynced);
        let min_capacity = FIRST_FRAME + frames.len() as u64 + self.reserved + 2 * MAX_FRAME;
        let number = self.next_number;
        self.next_number += 1;
        Rescue {
            dir: self.dir.clone(),
            shard: self.heads.shard,
            number,
            capacity: self.segment_bytes.max(min_capacity),
            min_capacity,
            first_lsn: self.durable.borrow().end.lsn() + 1,
            frames,
            ends: self.ends(),
            leftover: std::mem::take(&mut self.leftover),
            is_disk_full: false,
        }
    }

    /// Continues in the segment that now holds the rescued frames; without a segment, the frames stay in memory.
    pub(crate) fn finish_rescue(&mut self, rescue: Rescue, segment: Option<Segment>) {
        let Rescue {
            mut frames,
            mut ends,
            first_lsn,
            leftover,
            ..
        } = rescue;
        self.leftover.extend(leftover);
        // Records with reserved room that were appended in the meantime.
        let appended = std::mem::take(&mut self.unsynced);
        let Some(segment) = segment else {
            frames.extend_from_slice(&appended);
            self.unsynced = frames;
            self.tries = self.tries.saturating_add(1);
            if self.tries >= MAX_TRIES {
                self.durable.send_modify(|durable| durable.failed = true);
            }
            return;
        };
        // All records of a segment without a durable record are also in the new segment.
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        for obsolete in catalog.extract_if(.., |segment| segment.first_lsn >= first_lsn) {
            self.leftover.push(crate::segment::path(&self.dir, obsolete.number));
        }
        drop(catalog);
        self.switch_to(segment, first_lsn);
        self.retired.clear();
        (self.failing, self.tries) = (false, 0);
        (ends.end.segment, ends.end.offset) = (self.segment.number, self.segment.end);
        self.durable.send_replace(ends);
        self.unsynced = appended;
        let is_full = self.segment.room() < self.unsynced.len() as u64;
        if is_full || (!self.unsynced.is_empty() && self.segment.write(&self.unsynced).is_err()) {
            self.fail_over();
        }
    }
}
