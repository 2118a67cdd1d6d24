//! The one place where records get their numbers and reach the disk. Everything here runs under one lock.
//!
//! Invariant: what is not known to be durable is also in memory ([`Writer::unsynced`]), so that after the first
//! failed write or fsync it can go to another file; a file that failed is never written or synced again (HD22).

use crate::error::JournalError;
use crate::frame::{self, MARKER, MAX_PAYLOAD};
use crate::header::Reached;
use crate::heads::Heads;
use crate::journal::Position;
use crate::reader::Kept;
use crate::segment::{FIRST_FRAME, Segment};
use gw_audit::{Chain, ChainId, Draft, Genesis, Stream};
use gw_types::Timestamp;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// How far the journal is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Durable {
    pub(crate) lsn: u64,
    /// Nothing more will become durable.
    pub(crate) failed: bool,
}

/// The segments that hold records, oldest first; the last one is being written.
pub(crate) type Catalog = Mutex<Vec<Kept>>;

/// No genesis takes more bytes.
const GENESIS_BOUND: u64 = 1024;
const MAX_FRAME: u64 = MAX_PAYLOAD as u64 + 64;

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
    pub(crate) retired: Vec<Arc<File>>,
    /// The frames behind the last durable record.
    pub(crate) unsynced: Vec<u8>,
    pub(crate) durable: watch::Sender<Durable>,
    /// Rises whenever a file is given up, so that a sync under way is not believed.
    pub(crate) generation: u64,
    /// Bytes promised to reservations.
    pub(crate) reserved: u64,
    /// Bytes of all frames since the journal was opened, and of the backlog found then.
    pub(crate) written: u64,
    /// Of those, the bytes of what is sealed.
    pub(crate) sealed: u64,
    pub(crate) frame: Vec<u8>,
    pub(crate) dead: bool,
}

/// What one fsync will cover.
#[derive(Debug)]
pub(crate) struct SyncJob {
    pub(crate) files: Vec<Arc<File>>,
    pub(crate) reached: Reached,
    unsynced: usize,
    generation: u64,
}

impl Writer {
    /// Bytes written and not sealed.
    pub(crate) const fn backlog(&self) -> u64 {
        self.written.saturating_sub(self.sealed)
    }

    /// Checks that `bytes` may be written without touching what is reserved.
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), JournalError> {
        if self.dead {
            return Err(JournalError::Unavailable);
        }
        if self.backlog() + self.reserved + bytes > self.max_bytes {
            return Err(JournalError::Full);
        }
        if !self.has_room(bytes) && self.spare.is_none() {
            self.spare = Some(self.create(self.segment_bytes).map_err(|_| JournalError::Full)?);
        }
        if self.has_room(bytes) { Ok(()) } else { Err(JournalError::Full) }
    }

    /// Whether segment and spare hold `bytes` beside what is reserved, whatever is wasted at a segment's end.
    fn has_room(&self, bytes: u64) -> bool {
        let room = self.segment.room() + self.spare.as_ref().map_or(0, Segment::room);
        room >= self.reserved + bytes + MAX_FRAME
    }

    /// Gives a draft its place and writes it. `promised` bytes of it were reserved.
    pub(crate) fn append(&mut self, draft: &Draft, now: Timestamp, promised: u64) -> Result<Position, JournalError> {
        let (stream, size) = (draft.stream(), draft.size_bound() + frame::OVERHEAD);
        if size > MAX_PAYLOAD {
            return Err(JournalError::TooLong);
        }
        let mut bound = size as u64;
        if !self.heads.chains.contains_key(&stream) {
            bound += GENESIS_BOUND;
        }
        if self.dead {
            return Err(JournalError::Unavailable);
        }
        if let Some(beyond) = bound.checked_sub(promised).filter(|beyond| *beyond > 0) {
            self.admit(beyond)?;
        }
        if self.segment.room() < bound {
            self.rotate()?;
        }
        self.frame.clear();
        let seq = self.link(stream, draft, now);
        self.written += self.frame.len() as u64;
        self.unsynced.extend_from_slice(&self.frame);
        if self.segment.write(&self.frame).is_err() {
            self.fail_over()?;
        }
        Ok(Position { stream, seq, lsn: self.heads.lsn })
    }

    fn link(&mut self, stream: Stream, draft: &Draft, now: Timestamp) -> u64 {
        let Heads { chains, lsn, shard } = &mut self.heads;
        let (genesis, frame) = (&self.genesis, &mut self.frame);
        let chain = chains.entry(stream).or_insert_with(|| {
            *lsn += 1;
            frame::start_entry(frame, *lsn);
            let (chain, _) = Chain::begin(ChainId { stream, shard: *shard }, genesis, now, frame);
            frame::end_entry(frame, 0, &[]);
            chain
        });
        *lsn += 1;
        let start = frame.len();
        frame::start_entry(frame, *lsn);
        let placed = chain.link(draft, now, frame);
        frame::end_entry(frame, start, draft.openings());
        placed.seq
    }

    /// Goes on in the spare segment.
    fn rotate(&mut self) -> Result<(), JournalError> {
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => self.create(self.segment_bytes).map_err(|_| JournalError::Full)?,
        };
        let first_lsn = self.heads.lsn + 1;
        if next.begin(self.heads.shard, first_lsn).is_err() {
            return self.fail_over();
        }
        self.retired.push(Arc::clone(&self.segment.file));
        self.enter(next, first_lsn);
        Ok(())
    }

    fn enter(&mut self, next: Segment, first_lsn: u64) {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = catalog.last_mut().filter(|last| last.number == self.segment.number) {
            (last.end, last.last_time) = (self.segment.end, self.heads.time());
        }
        catalog.push(Kept { number: next.number, first_lsn, end: FIRST_FRAME, last_time: None });
        self.segment = next;
    }

    fn create(&mut self, capacity: u64) -> std::io::Result<Segment> {
        let number = self.next_number;
        self.next_number += 1;
        Segment::create(&self.dir, number, capacity)
    }

    /// A number for a spare segment made outside the lock, if one is wanted.
    pub(crate) fn wants_spare(&mut self) -> Option<u64> {
        if self.spare.is_some() || self.dead {
            return None;
        }
        self.next_number += 1;
        Some(self.next_number - 1)
    }

    /// Takes a spare segment, or gives it back if the journal has moved on since.
    pub(crate) fn offer_spare(&mut self, spare: Segment) -> Option<Segment> {
        if self.spare.is_some() || self.dead || spare.number < self.segment.number {
            return Some(spare);
        }
        self.spare = Some(spare);
        None
    }

    /// What is to be synced, if anything is.
    pub(crate) fn sync_job(&self) -> Option<SyncJob> {
        if self.dead || self.heads.lsn == self.durable.borrow().lsn {
            return None;
        }
        let mut files = self.retired.clone();
        files.push(Arc::clone(&self.segment.file));
        let (unsynced, generation) = (self.unsynced.len(), self.generation);
        Some(SyncJob { files, reached: self.heads.reached(), unsynced, generation })
    }

    /// Takes note of a finished sync; true if it made anything durable.
    pub(crate) fn synced(&mut self, job: &SyncJob, result: std::io::Result<()>) -> bool {
        if job.generation != self.generation {
            return false;
        }
        if result.is_err() {
            return self.fail_over().is_ok();
        }
        self.unsynced.drain(..job.unsynced);
        self.retired.drain(..job.files.len() - 1);
        let lsn = job.reached.lsn;
        self.durable.send_replace(Durable { lsn, failed: false });
        // A marker is worth nothing that is promised to a record.
        if self.segment.room() >= MARKER as u64 && self.has_room(MARKER as u64) {
            self.frame.clear();
            frame::put_marker(&mut self.frame, lsn);
            if self.segment.write(&self.frame).is_err() {
                return self.fail_over().is_ok();
            }
        }
        true
    }

    /// After the first failed write or fsync: what is not durable goes to another file and is synced there at
    /// once, or the journal takes nothing more.
    fn fail_over(&mut self) -> Result<(), JournalError> {
        self.generation += 1;
        self.dead = true;
        let durable = self.durable.borrow().lsn;
        let spare = self.spare.take().filter(|spare| spare.room() >= self.unsynced.len() as u64 + MAX_FRAME);
        let rescued = match spare {
            Some(spare) => self.rescue(spare, durable),
            None => None,
        };
        let rescued = rescued.or_else(|| {
            let least = FIRST_FRAME + self.unsynced.len() as u64 + MAX_FRAME;
            let fresh = self.create(self.segment_bytes.max(least)).ok()?;
            self.rescue(fresh, durable)
        });
        let Some(segment) = rescued else {
            self.durable.send_modify(|durable| durable.failed = true);
            return Err(JournalError::Unavailable);
        };
        // A segment without a single durable record holds nothing that is not in the new one.
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.retain(|kept| kept.first_lsn <= durable);
        drop(catalog);
        self.enter(segment, durable + 1);
        self.retired.clear();
        self.unsynced.clear();
        self.dead = false;
        self.durable.send_replace(Durable { lsn: self.heads.lsn, failed: false });
        Ok(())
    }

    /// Writes what is not durable to `segment`; the head comes last, so that half of it never counts.
    fn rescue(&self, mut segment: Segment, durable: u64) -> Option<Segment> {
        segment.write(&self.unsynced).ok()?;
        segment.file.sync_all().ok()?;
        segment.begin(self.heads.shard, durable + 1).ok()?;
        segment.file.sync_all().ok()?;
        Some(segment)
    }
}
