//! The one place where records get their numbers and reach the disk. Everything here runs under one lock.
//!
//! Invariant: what is not known to be durable is also in memory ([`Writer::unsynced`]), so that after the first
//! failed write or fsync it can go to another file; a file that failed is never written or synced again (HD22).
//! While no file takes it the writer is *failing*: it admits nothing, and a fresh file is tried again and again
//! (RL12).

use crate::cursor::RecordEnd;
use crate::error::JournalError;
use crate::frame::{self, MARKER, MAX_PAYLOAD};
use crate::header::Sizes;
use crate::heads::{Hashes, Heads};
use crate::journal::Position;
use crate::reader::Kept;
use crate::rescue::Rescue;
use crate::segment::{FIRST_FRAME, Segment};
use crate::waiting::Waiting;
use gw_audit::{Chain, ChainId, Draft, Genesis, Stream};
use gw_types::Timestamp;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// How far the journal is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// The place behind the last durable record.
    pub(crate) end: RecordEnd,
    /// The last hash of each chain there.
    pub(crate) hashes: Hashes,
    /// The disk has refused for so long that nobody shall wait for it.
    pub(crate) failed: bool,
}

/// The segments that hold records, oldest first; the last one is being written.
pub(crate) type Catalog = Mutex<Vec<Kept>>;

/// No genesis takes more bytes.
const GENESIS_BOUND: u64 = 1024;
const MAX_FRAME: u64 = MAX_PAYLOAD as u64 + 64;
/// The most bytes without fsync: they are in memory. A disk whose fsync takes for ever must not use it up.
const MAX_UNSYNCED: usize = 256 << 20;
/// Whoever waits for durability is told that it will not come after this many tries to find a file for it.
const PATIENCE: u32 = 10;

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
    /// Files left behind full whose last bytes are not synced yet.
    pub(crate) retired: Vec<(Arc<File>, PathBuf)>,
    /// Files given up that could not be removed yet.
    pub(crate) leftover: Vec<PathBuf>,
    /// The frames behind the last durable record.
    pub(crate) unsynced: Vec<u8>,
    pub(crate) durable: watch::Sender<Durable>,
    /// Rises whenever a file is given up, so that a sync under way is not believed.
    pub(crate) generation: u64,
    /// Bytes promised to reservations.
    pub(crate) reserved: u64,
    /// Bytes of all frames since the journal was opened, and of the backlog found then.
    pub(crate) written: u64,
    /// Of those, the bytes before the first unsealed record of any stream.
    pub(crate) sealed: u64,
    /// The sealed entries of each stream.
    pub(crate) sealed_sizes: Sizes,
    pub(crate) waiting: Waiting,
    pub(crate) frame: Vec<u8>,
    /// No file takes what is not durable.
    pub(crate) failing: bool,
    /// How often one was tried since.
    pub(crate) tries: u32,
}

/// What one fsync will cover.
#[derive(Debug)]
pub(crate) struct SyncJob {
    pub(crate) files: Vec<(Arc<File>, PathBuf)>,
    pub(crate) ends: Durable,
    unsynced: usize,
    generation: u64,
}

impl Writer {
    /// Bytes from the first unsealed record on.
    pub(crate) const fn backlog(&self) -> u64 {
        self.written.saturating_sub(self.sealed)
    }

    /// What is durable once all that is written is.
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

    /// Notes how far each stream is sealed, and the bytes before the first record that is not.
    pub(crate) fn note_sealed(&mut self, sizes: Sizes, bytes: u64) {
        (self.sealed_sizes, self.sealed) = (sizes, bytes);
        for (stream, chain) in &self.heads.chains {
            let size = sizes.of(*stream);
            self.waiting.sealed(*stream, size, size >= chain.head().size);
        }
    }

    /// Checks that `bytes` may be written without touching what is reserved.
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), JournalError> {
        if self.failing || self.unsynced.len() > MAX_UNSYNCED {
            return Err(JournalError::Unavailable);
        }
        if self.backlog() + self.reserved + bytes > self.max_bytes {
            return Err(JournalError::Full);
        }
        if !self.has_room(bytes) && self.spare.is_none() {
            self.spare = Some(self.create(self.segment_bytes).map_err(|_| JournalError::Full)?);
        }
        if self.has_room(bytes) {
            Ok(())
        } else {
            Err(JournalError::Full)
        }
    }

    /// Whether segment and spare hold `bytes` beside what is reserved, whatever is wasted at a segment's end.
    fn has_room(&self, bytes: u64) -> bool {
        let room = self.segment.room() + self.spare.as_ref().map_or(0, Segment::room);
        room >= self.reserved + bytes + MAX_FRAME
    }

    /// Gives a draft its place and writes it. `promised` bytes of it were reserved; such a record is kept in memory
    /// even while no file takes it, and so is the one that met the error: `Unavailable` says that they are not on
    /// disk, and they come there when the disk takes them.
    pub(crate) fn append(&mut self, draft: &Draft, now: Timestamp, promised: u64) -> Result<Position, JournalError> {
        let (stream, size) = (draft.stream(), draft.size_bound() + frame::OVERHEAD);
        if size > MAX_PAYLOAD {
            return Err(JournalError::TooLong);
        }
        let mut bound = size as u64;
        if !self.heads.chains.contains_key(&stream) {
            bound += GENESIS_BOUND;
        }
        let kept_anyway = self.failing && promised > 0;
        if let Some(beyond) = bound.checked_sub(promised).filter(|beyond| *beyond > 0 && !kept_anyway) {
            self.admit(beyond)?;
        }
        if !self.failing && self.segment.room() < bound {
            self.rotate();
        }
        self.frame.clear();
        let seq = self.link(stream, draft, now);
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

    fn link(&mut self, stream: Stream, draft: &Draft, now: Timestamp) -> u64 {
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
        let placed = chain.link(draft, now, frame);
        frame::end_entry(frame, start, draft.openings());
        waiting.note(stream, placed.seq, chain.head().time);
        placed.seq
    }

    /// Goes on in the spare segment, if one can be had.
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
                self.enter(next, first_lsn);
            }
            Some(failed) => {
                self.leftover.push(failed.path);
                self.fail_over();
            }
            None => self.fail_over(),
        }
    }

    fn enter(&mut self, next: Segment, first_lsn: u64) {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = catalog.last_mut().filter(|last| last.number == self.segment.number) {
            (last.end, last.last_time) = (self.segment.end, self.heads.time());
        }
        catalog.push(Kept {
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

    /// A number for a spare segment made outside the lock, if one is wanted.
    pub(crate) fn wants_spare(&mut self) -> Option<u64> {
        if self.spare.is_some() || self.failing {
            return None;
        }
        self.next_number += 1;
        Some(self.next_number - 1)
    }

    /// Takes a spare segment, or gives it back if the journal has moved on since.
    pub(crate) fn offer_spare(&mut self, spare: Segment) -> Option<Segment> {
        if self.spare.is_some() || self.failing || spare.number < self.segment.number {
            return Some(spare);
        }
        self.spare = Some(spare);
        None
    }

    /// What is to be synced, if anything is.
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

    /// Takes note of a finished sync; true if it made anything durable.
    pub(crate) fn synced(&mut self, job: &SyncJob, result: std::io::Result<()>) -> bool {
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
        // A marker is worth nothing that is promised to a record.
        if self.segment.room() >= MARKER as u64 && self.has_room(MARKER as u64) {
            self.frame.clear();
            frame::put_marker(&mut self.frame, job.ends.end.lsn());
            if self.segment.write(&self.frame).is_err() {
                self.fail_over();
            }
        }
        true
    }

    /// After the first failed write or fsync: what is not durable goes to another file and is synced there at once,
    /// or stays in memory until one takes it.
    fn fail_over(&mut self) {
        self.generation += 1;
        self.failing = true;
        let spare = self.spare.take();
        let mut rescue = self.rescue();
        let segment = spare
            .and_then(|spare| rescue.move_to(spare))
            .or_else(|| rescue.move_to_fresh());
        self.rescued(rescue, segment);
    }

    /// Takes out what is not durable; [`Writer::rescued`] brings it back.
    pub(crate) fn rescue(&mut self) -> Rescue {
        let frames = std::mem::take(&mut self.unsynced);
        let least = FIRST_FRAME + frames.len() as u64 + self.reserved + 2 * MAX_FRAME;
        let number = self.next_number;
        self.next_number += 1;
        Rescue {
            dir: self.dir.clone(),
            shard: self.heads.shard,
            number,
            capacity: self.segment_bytes.max(least),
            least,
            first_lsn: self.durable.borrow().end.lsn() + 1,
            frames,
            ends: self.ends(),
            leftover: std::mem::take(&mut self.leftover),
        }
    }

    /// Goes on in the segment that holds what was not durable, or keeps that in memory.
    pub(crate) fn rescued(&mut self, rescue: Rescue, segment: Option<Segment>) {
        let Rescue {
            mut frames,
            mut ends,
            first_lsn,
            leftover,
            ..
        } = rescue;
        self.leftover.extend(leftover);
        // Records with reserved room that came meanwhile.
        let since = std::mem::take(&mut self.unsynced);
        let Some(segment) = segment else {
            frames.extend_from_slice(&since);
            self.unsynced = frames;
            self.tries = self.tries.saturating_add(1);
            if self.tries >= PATIENCE {
                self.durable.send_modify(|durable| durable.failed = true);
            }
            return;
        };
        // A segment without a single durable record holds nothing that is not in the new one.
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        for useless in catalog.extract_if(.., |kept| kept.first_lsn >= first_lsn) {
            self.leftover.push(crate::segment::path(&self.dir, useless.number));
        }
        drop(catalog);
        self.enter(segment, first_lsn);
        self.retired.clear();
        (self.failing, self.tries) = (false, 0);
        (ends.end.segment, ends.end.offset) = (self.segment.number, self.segment.end);
        self.durable.send_replace(ends);
        self.unsynced = since;
        let full = self.segment.room() < self.unsynced.len() as u64;
        if full || (!self.unsynced.is_empty() && self.segment.write(&self.unsynced).is_err()) {
            self.fail_over();
        }
    }
}
