//! The public interface of the journal.

use crate::cursor::RecordEnd;
use crate::disk;
use crate::error::{JournalError, OpenError, ReadError, at};
use crate::flush::{self, Signal};
use crate::header::{Header, Progress};
use crate::lock::DirLock;
use crate::open;
use crate::position::Position;
use crate::reader::{Reader, RetainedSegment, Unsealed};
use crate::reserve;
use crate::unrecorded::Unrecorded;
use crate::writer::{Catalog, Durable, Writer};
use gw_audit::{ChainId, EncodedRecord, Head, Record, SecurityEvent, SendIntent, ShardId, Stream};
use gw_types::{Clock, Entropy, Seconds, Timestamp};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The configuration of a journal.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// The directory; created if it is missing, locked exclusively.
    pub dir: PathBuf,
    /// The description of this process that a second process reports.
    pub holder: String,
    /// The cluster's name, for the first entry of each chain.
    pub cluster: String,
    /// The public checkpoint key, for the first entry of each chain.
    pub checkpoint_key: [u8; 32],
    /// The largest number of unsealed bytes (`AUDIT_BUFFER_MAX_BYTES`).
    pub max_bytes: u64,
    /// The size of a segment file in bytes.
    pub segment_bytes: u64,
    /// The largest number of bytes of sealed segments that are retained.
    pub retain_bytes: u64,
    /// How long sealed segments are retained.
    pub retain_for: Seconds,
}

/// The state found when the journal was opened.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Sends without a recorded outcome, which may have been forwarded: they must be resolved by hash.
    pub open_intents: Vec<SendIntent>,
    /// The number of records saved from behind damage.
    pub salvaged: u64,
    /// The number of records lost at the torn end (`journal_torn`).
    pub torn: u64,
}

/// The fill level and health of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The number of records that are not sealed.
    pub records: u64,
    /// The bytes from the first unsealed record of any stream on.
    pub bytes: u64,
    /// The largest allowed number of unsealed bytes.
    pub max_bytes: u64,
    /// The bytes promised to reservations.
    pub reserved: u64,
    /// The time of the oldest unsealed record; at most a few seconds too early, never too late.
    pub oldest: Option<Timestamp>,
    /// The backlog of each stream that has records in the journal.
    pub streams: Vec<StreamBacklog>,
    /// Whether the disk rejects writes. While it does, no records are admitted.
    pub failing: bool,
}

/// One stream's part of a [`Backlog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamBacklog {
    /// The stream.
    pub stream: Stream,
    /// The number of entries that are not sealed.
    pub records: u64,
    /// The number of entries that the store is known to have.
    pub sealed: u64,
    /// The time of the oldest unsealed entry; at most a few seconds too early, never too late.
    pub oldest: Option<Timestamp>,
}

/// Reserved room for records that must be written after an effect, taken before the effect (HD22). Dropping the
/// reservation releases the unused room.
#[derive(Debug)]
#[must_use = "the room is released when the reservation is dropped"]
pub struct Reservation {
    shared: Arc<Shared>,
    records: u64,
}

/// The room reserved for one record in bytes. A longer record needs free room in addition.
const RECORD_ROOM: u64 = 8 * 1024;
/// The records of a send: the call, the intent and the outcome.
const SEND_RECORDS: u64 = 3;

/// The journal of one instance.
#[derive(Debug)]
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
    pub(crate) flusher: Option<JoinHandle<()>>,
    pub(crate) lock: Arc<DirLock>,
    pub(crate) config: JournalConfig,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) shard: ShardId,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) reader: Mutex<Reader>,
    pub(crate) header: Mutex<Header>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) durable: watch::Receiver<Durable>,
    pub(crate) signal: Signal,
    pub(crate) syncing: Mutex<()>,
    pub(crate) unrecorded: Unrecorded,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Shared {
    /// # Errors
    /// [`JournalError::Unavailable`] if a thread panicked while it used the writer: its state may be inconsistent.
    pub(crate) fn writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        self.writer.lock().map_err(|_| JournalError::Unavailable)
    }

    pub(crate) fn reader(&self) -> Result<MutexGuard<'_, Reader>, ReadError> {
        self.reader.lock().map_err(|_| ReadError::Stopped)
    }

    pub(crate) fn header(&self) -> MutexGuard<'_, Header> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments(&self) -> Vec<RetainedSegment> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn durable_lsn(&self) -> u64 {
        self.durable.borrow().end.lsn()
    }

    /// The durable end, and segments that hold all durable records. The durable end is read first, because a segment is
    /// in the catalog before anything in it is durable.
    pub(crate) fn readable(&self) -> (Durable, Vec<RetainedSegment>) {
        let durable = *self.durable.borrow();
        (durable, self.segments())
    }

    fn append(&self, record: &Record, promised: u64) -> Result<Position, JournalError> {
        if record.stream() == Stream::Admin {
            return Err(JournalError::NotJournaled);
        }
        let encoded = EncodedRecord::new(record, &*self.entropy);
        let now = self.clock.now();
        let mut writer = self.writer()?;
        writer.reserved = writer.reserved.saturating_sub(promised);
        let result = writer.append(&encoded, now, promised);
        drop(writer);
        // After an error, too: the flush thread then tries another file.
        self.signal.dirty();
        result
    }
}

impl Journal {
    /// Opens or creates the journal in a directory and replays it.
    ///
    /// # Errors
    /// [`OpenError::Held`] while another process uses the directory, [`OpenError::Corrupt`] if durable records are
    /// damaged or missing, [`OpenError::SealedMissing`] if the missing ones are all sealed, [`OpenError::Io`] for other
    /// failures.
    pub fn open(
        config: JournalConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<(Self, Recovery), OpenError> {
        let lock = DirLock::acquire(&config.dir, &config.holder)?;
        open::journal(config, Arc::new(lock), clock, entropy)
    }

    pub(crate) fn start(shared: Shared, lock: Arc<DirLock>, config: JournalConfig) -> Result<Self, OpenError> {
        let shared = Arc::new(shared);
        let flusher = std::thread::Builder::new().name("journal".to_owned());
        let flusher_shared = Arc::clone(&shared);
        let flusher = flusher
            .spawn(move || flush::run(&flusher_shared))
            .map_err(at(&config.dir))?;
        Ok(Self {
            shared,
            flusher: Some(flusher),
            lock,
            config,
        })
    }

    /// Writes a security event now, or as soon as another record can be written: an event that was found at the start
    /// on a full disk does not stop the start. Returns whether it was written now.
    ///
    /// # Errors
    /// [`JournalError::TooLong`] and [`JournalError::NotJournaled`].
    pub fn append_or_keep(&self, event: SecurityEvent) -> Result<bool, JournalError> {
        match self.append(event.clone()) {
            Ok(_) => Ok(true),
            Err(JournalError::Full | JournalError::Unavailable) => {
                self.shared.unrecorded.add_event(event);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what could not be recorded before, after a record was written.
    pub(crate) fn write_unrecorded(&self) {
        self.shared.unrecorded.write(|event| self.append(event));
    }

    /// Writes a record. When this returns `Ok`, the record survives the death of the process.
    ///
    /// # Errors
    /// [`JournalError::Full`] if there is no room, [`JournalError::Unavailable`] while the disk rejects writes. The
    /// record whose write failed is kept in memory and written when the disk works again; later records are not
    /// accepted.
    pub fn append(&self, record: impl Into<Record>) -> Result<Position, JournalError> {
        self.shared.append(&record.into(), 0)
    }

    /// Whether a send would be admitted: the disk accepts writes, and there is room for the records of a send. On a
    /// full disk the flush thread tries five times a second to create the next segment, and deletes sealed segments to
    /// make room for it.
    pub fn can_admit(&self) -> bool {
        self.shared
            .writer()
            .is_ok_and(|mut writer| writer.admit(SEND_RECORDS * RECORD_ROOM).is_ok())
    }

    /// Reserves room for `records` records, so that they can be written after an effect that cannot be undone.
    ///
    /// # Errors
    /// [`JournalError::Full`] if there is no room, [`JournalError::Unavailable`] while the disk rejects writes.
    pub fn reserve(&self, records: usize) -> Result<Reservation, JournalError> {
        let records = records as u64;
        let mut writer = self.shared.writer()?;
        writer.admit(records * RECORD_ROOM)?;
        writer.reserved += records * RECORD_ROOM;
        Ok(Reservation {
            shared: Arc::clone(&self.shared),
            records,
        })
    }

    /// Resolves once an fsync covers the position. The fsync is requested by this call, not by the first poll.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] when the disk has rejected writes for a few seconds. The record is kept in memory
    /// and may still become durable.
    pub fn durable(&self, position: Position) -> impl Future<Output = Result<(), JournalError>> + Send + 'static {
        let mut durable = self.shared.durable.clone();
        if durable.borrow().end.lsn() < position.lsn {
            self.shared.signal.urgent();
        }
        async move {
            let reached = durable
                .wait_for(|durable| durable.end.lsn() >= position.lsn || durable.failed)
                .await;
            match reached {
                Ok(durable) if durable.end.lsn() >= position.lsn => Ok(()),
                Ok(_) | Err(_) => Err(JournalError::Unavailable),
            }
        }
    }

    /// Makes all appended records durable before it returns.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] if the disk rejects the fsync.
    pub fn sync(&self) -> Result<(), JournalError> {
        let written = self.shared.writer()?.heads.lsn;
        flush::sync(&self.shared);
        flush::heal(&self.shared);
        if self.shared.durable_lsn() >= written {
            Ok(())
        } else {
            Err(JournalError::Unavailable)
        }
    }

    /// The oldest durable records of a stream that are not sealed, at most `limit`, in the order they were written. The
    /// result stays the same until [`Journal::mark_sealed`] is called. Reads files: not for an async thread.
    ///
    /// # Errors
    /// [`ReadError`] if a file cannot be read or is damaged.
    pub fn unsealed(&self, stream: Stream, limit: usize) -> Result<Vec<Unsealed>, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, segments) = self.shared.readable();
        reader.batch(stream, limit, &durable.end, &segments)
    }

    /// Records that the store holds `size` entries of a stream's chain, as read back from the store, and deletes
    /// expired segments (HD25). A size below the known one changes nothing; use [`Journal::reconcile`] for that. Writes
    /// files: not for an async thread.
    ///
    /// # Errors
    /// [`ReadError::NotWritten`] if the chain never was so long; then nothing changes. After [`ReadError::Io`] the size
    /// is set in memory, but the header file may be outdated, or expired segments are still there.
    pub fn mark_sealed(&self, stream: Stream, size: u64) -> Result<(), ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, segments) = self.shared.readable();
        if size > durable.end.size(stream) {
            return Err(ReadError::NotWritten { stream, size });
        }
        let has_moved = reader.cursors.advance(stream, size);
        let slowest = reader.slowest(&durable.end);
        if has_moved {
            self.shared.note_sealed(&reader, slowest)?;
        }
        let expired = reader.expired(&slowest, &segments, self.shared.clock.now());
        self.shared.delete_segments(&mut reader, expired, &segments)
    }

    /// The shard of all chains of this journal; its id is stored in the directory.
    pub fn shard(&self) -> ShardId {
        self.shared.shard
    }

    /// The end of each chain, including entries that are not durable yet.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] if the journal stopped after a fault.
    pub fn heads(&self) -> Result<Vec<(ChainId, Head)>, JournalError> {
        let writer = self.shared.writer()?;
        Ok(writer
            .heads
            .chains
            .values()
            .map(|chain| (chain.id(), chain.head()))
            .collect())
    }

    /// The fill level and health of the journal.
    pub fn backlog(&self) -> Backlog {
        // The figures are available even if the journal stopped.
        let stopped = self.shared.writer.is_poisoned();
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let chains = writer
            .heads
            .chains
            .iter()
            .map(|(stream, chain)| (*stream, chain.head().size));
        let streams: Vec<_> = chains
            .map(|(stream, size)| {
                let sealed = writer.sealed_sizes.get(stream);
                let records = size.saturating_sub(sealed);
                let oldest = writer.waiting.oldest_unsealed(stream).filter(|_| records > 0);
                StreamBacklog {
                    stream,
                    records,
                    sealed,
                    oldest,
                }
            })
            .collect();
        Backlog {
            records: streams.iter().map(|stream| stream.records).sum(),
            bytes: if streams.iter().all(|stream| stream.records == 0) {
                0
            } else {
                writer.backlog()
            },
            max_bytes: writer.max_bytes,
            reserved: writer.reserved,
            oldest: streams.iter().filter_map(|stream| stream.oldest).min(),
            streams,
            failing: writer.failing || stopped,
        }
    }
}

impl Shared {
    /// Records in the writer and the header how far each stream is sealed.
    pub(crate) fn note_sealed(&self, reader: &Reader, slowest: RecordEnd) -> Result<(), ReadError> {
        let sizes = reader.cursors.sizes();
        self.writer()
            .map_err(|_| ReadError::Stopped)?
            .note_sealed(sizes, slowest.bytes);
        let io = |source| ReadError::Io {
            path: reader.dir.clone(),
            source,
        };
        self.header()
            .note_sealed(Progress {
                lsn: slowest.lsn(),
                sizes,
            })
            .map_err(io)
    }
}

impl Shared {
    /// Deletes the `count` oldest of these segments.
    fn delete_segments(
        &self,
        reader: &mut Reader,
        count: usize,
        segments: &[RetainedSegment],
    ) -> Result<(), ReadError> {
        let Some(deleted) = segments.get(..count).filter(|deleted| !deleted.is_empty()) else {
            return Ok(());
        };
        reader.delete(deleted, segments)?;
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.retain(|segment| !deleted.contains(segment));
        Ok(())
    }

    /// Deletes the oldest segment although it would still be retained (HD25), because the disk has no room for new
    /// records. Only a segment whose records are all sealed is deleted. Returns whether one was.
    pub(crate) fn release_sealed(&self) -> bool {
        let Ok(mut reader) = self.reader() else { return false };
        let (durable, segments) = self.readable();
        let slowest = reader.slowest(&durable.end);
        if Reader::sealed(&slowest, &segments) == 0 {
            return false;
        }
        let mut deleted = self.delete_segments(&mut reader, 1, &segments);
        if matches!(&deleted, Err(ReadError::Io { source, .. }) if disk::is_full(source)) {
            deleted = match reserve::release(&reader.dir) {
                Ok(()) => self.delete_segments(&mut reader, 1, &segments),
                Err(_) => deleted,
            };
            reserve::keep(&reader.dir);
        }
        match deleted {
            Ok(()) => {
                tracing::warn!(
                    "the disk of the journal is full: the oldest sealed segment was deleted before its time"
                );
                true
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    "the disk of the journal is full, and a sealed segment could not be deleted"
                );
                false
            }
        }
    }
}

impl Drop for Journal {
    /// Makes everything written durable, if the disk still accepts writes.
    fn drop(&mut self) {
        self.shared.signal.stop();
        if let Some(flusher) = self.flusher.take() {
            // If the flush thread panicked, the writer is poisoned or the last sync did not happen; the next line tries
            // again.
            let _ = flusher.join();
            flush::sync(&self.shared);
            flush::heal(&self.shared);
        }
    }
}

impl Reservation {
    /// Writes a record into the reserved room. Once the reservation is used up, it is like [`Journal::append`].
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] while the disk rejects writes. The record is kept in memory and written when the
    /// disk works again, because the effect it records cannot be undone.
    pub fn append(&mut self, record: impl Into<Record>) -> Result<Position, JournalError> {
        let promised = if self.records > 0 { RECORD_ROOM } else { 0 };
        self.records = self.records.saturating_sub(1);
        self.shared.append(&record.into(), promised)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Ok(mut writer) = self.shared.writer() {
            writer.reserved = writer.reserved.saturating_sub(self.records * RECORD_ROOM);
        }
    }
}
