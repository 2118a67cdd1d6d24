//! The journal as the rest of the service sees it.

use crate::cursor::RecordEnd;
use crate::error::{JournalError, OpenError, ReadError, at};
use crate::flush::{self, Signal};
use crate::header::{Header, Reached};
use crate::lock::DirLock;
use crate::open;
use crate::reader::{Kept, Reader, Unsealed};
use crate::writer::{Catalog, Durable, Writer};
use gw_audit::{ChainId, Draft, Head, Record, SendIntent, ShardId, Stream};
use gw_types::{Clock, Entropy, Seconds, Timestamp};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// How a journal is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory; made if missing, held exclusively.
    pub dir: PathBuf,
    /// Whom a second process is told about.
    pub holder: String,
    /// The cluster's name, for the first entry of each chain.
    pub cluster: String,
    /// The public checkpoint key, for the first entry of each chain.
    pub checkpoint_key: [u8; 32],
    /// The most unsealed bytes (`AUDIT_BUFFER_MAX_BYTES`).
    pub max_bytes: u64,
    /// How large one segment file is.
    pub segment_bytes: u64,
    /// The most bytes of sealed segments that are kept.
    pub retain_bytes: u64,
    /// How long sealed segments are kept.
    pub retain_for: Seconds,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The record's stream.
    pub stream: Stream,
    /// Its number in its chain.
    pub seq: u64,
    /// Its number in the journal, over all streams.
    pub lsn: u64,
}

/// What opening found.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Sends forwarded or not, nobody knows: to be resolved by hash.
    pub open_intents: Vec<SendIntent>,
    /// Records behind a torn place that were saved.
    pub salvaged: u64,
    /// Records lost at the torn end (`journal_torn`).
    pub torn: u64,
}

/// How full the journal is, and how it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Records not sealed yet.
    pub records: u64,
    /// Bytes from the first unsealed record of any stream on.
    pub bytes: u64,
    /// The most bytes there may be.
    pub max_bytes: u64,
    /// Bytes promised to reservations.
    pub reserved: u64,
    /// The time of the oldest unsealed record; at most some seconds too early, never too late.
    pub oldest: Option<Timestamp>,
    /// The same for each stream that has records here.
    pub streams: Vec<StreamBacklog>,
    /// Whether the disk refuses what is written. Nothing is admitted until it does not.
    pub failing: bool,
}

/// One stream's part of a [`Backlog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamBacklog {
    /// The stream.
    pub stream: Stream,
    /// Entries not sealed yet.
    pub records: u64,
    /// Entries the store is known to have.
    pub sealed: u64,
    /// The time of the oldest unsealed entry; at most some seconds too early, never too late.
    pub oldest: Option<Timestamp>,
}

/// Room for records that must be written whatever happens, taken before an effect (HD22). What is not used is
/// given back when this is dropped.
#[derive(Debug)]
#[must_use = "the room is given back when this is dropped"]
pub struct Reservation {
    shared: Arc<Shared>,
    records: u64,
}

/// The room reserved for one record; what a longer one takes beyond it must be free.
const RECORD_ROOM: u64 = 8 * 1024;
/// The records of a send: the call, the intent and the outcome.
const SEND_RECORDS: u64 = 3;

/// The journal of one instance.
#[derive(Debug)]
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
    pub(crate) flusher: Option<JoinHandle<()>>,
    pub(crate) lock: Arc<DirLock>,
    pub(crate) options: Options,
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
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Shared {
    /// A writer left in the middle of something writes no more.
    pub(crate) fn writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        self.writer.lock().map_err(|_| JournalError::Unavailable)
    }

    pub(crate) fn reader(&self) -> Result<MutexGuard<'_, Reader>, ReadError> {
        self.reader.lock().map_err(|_| ReadError::Stopped)
    }

    pub(crate) fn header(&self) -> MutexGuard<'_, Header> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> Vec<Kept> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn durable_lsn(&self) -> u64 {
        self.durable.borrow().end.lsn()
    }

    /// What is durable, and the segments in which all of it is: asked for in this order, since a segment is in the
    /// catalog before anything in it is durable.
    pub(crate) fn readable(&self) -> (Durable, Vec<Kept>) {
        let durable = *self.durable.borrow();
        (durable, self.kept())
    }

    fn append(&self, record: &Record, promised: u64) -> Result<Position, JournalError> {
        if record.stream() == Stream::Admin {
            return Err(JournalError::NotJournaled);
        }
        let draft = Draft::new(record, &*self.entropy);
        let now = self.clock.now();
        let mut writer = self.writer()?;
        writer.reserved = writer.reserved.saturating_sub(promised);
        let placed = writer.append(&draft, now, promised);
        drop(writer);
        // After an error, too: the flusher looks for a file that takes what this one did not.
        self.signal.dirty();
        placed
    }
}

impl Journal {
    /// Opens or makes the journal in a directory and replays it.
    pub fn open(
        options: Options,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<(Self, Recovery), OpenError> {
        let lock = DirLock::acquire(&options.dir, &options.holder)?;
        open::journal(options, Arc::new(lock), clock, entropy)
    }

    pub(crate) fn start(shared: Shared, lock: Arc<DirLock>, options: Options) -> Result<Self, OpenError> {
        let shared = Arc::new(shared);
        let flusher = std::thread::Builder::new().name("journal".to_owned());
        let runs = Arc::clone(&shared);
        let flusher = flusher.spawn(move || flush::run(&runs)).map_err(at(&options.dir))?;
        Ok(Self {
            shared,
            flusher: Some(flusher),
            lock,
            options,
        })
    }

    /// Writes a record; on return it survives the death of the process.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] while the disk refuses; the record that met the error comes to disk with the
    /// others once it does not.
    pub fn append(&self, record: impl Into<Record>) -> Result<Position, JournalError> {
        self.shared.append(&record.into(), 0)
    }

    /// Whether a send would be admitted: the disk takes what is written, and there is room for its records. Where no
    /// segment is ready one is made, so that a disk that was full is found to have room again.
    pub fn can_admit(&self) -> bool {
        self.shared
            .writer()
            .is_ok_and(|mut writer| writer.admit(SEND_RECORDS * RECORD_ROOM).is_ok())
    }

    /// Reserves room for `records` records, so that they can be written after an effect that cannot be undone.
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

    /// Writes a record into reserved room, or like any other once the reservation is used up.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] while the disk refuses; the record is kept in memory and comes to disk once it
    /// does not, since what it tells of cannot be undone.
    pub fn append_reserved(
        &self,
        reservation: &mut Reservation,
        record: impl Into<Record>,
    ) -> Result<Position, JournalError> {
        let promised = if reservation.records > 0 { RECORD_ROOM } else { 0 };
        reservation.records = reservation.records.saturating_sub(1);
        self.shared.append(&record.into(), promised)
    }

    /// Resolves once an fsync covers the position. The fsync is asked for at once, not at the first poll.
    ///
    /// # Errors
    /// [`JournalError::Unavailable`] when the disk has refused for some seconds. The record is kept in memory and may
    /// still become durable.
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

    /// Makes all that is written durable before it returns.
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

    /// A stream's oldest records that are durable and not sealed, at most `most`, in the order they were written. The
    /// same ones come again until [`Journal::mark_sealed`] is told otherwise. Reads files: not for an async thread.
    pub fn unsealed(&self, stream: Stream, most: usize) -> Result<Vec<Unsealed>, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, kept) = self.shared.readable();
        reader.batch(stream, most, &durable.end, &kept)
    }

    /// Notes that the store holds `size` entries of a stream's chain, read back from it, and clears away segments kept
    /// long enough (HD25). A size below the one known changes nothing: [`Journal::reconcile`] is for that. Writes
    /// files: not for an async thread.
    ///
    /// # Errors
    /// [`ReadError::NotWritten`] if the chain never was so long; then nothing changed. After [`ReadError::Io`] the
    /// size is noted in memory, and only what a restart would know, or the clearing away, is behind.
    pub fn mark_sealed(&self, stream: Stream, size: u64) -> Result<(), ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, kept) = self.shared.readable();
        if size > durable.end.size(stream) {
            return Err(ReadError::NotWritten { stream, size });
        }
        let moved = reader.cursors.advance(stream, size);
        let slowest = reader.slowest(&durable.end);
        if moved {
            self.shared.note_sealed(&reader, slowest)?;
        }
        let expired = reader.expired(&slowest, &kept, self.shared.clock.now());
        let Some(segments) = kept.get(..expired).filter(|segments| !segments.is_empty()) else {
            return Ok(());
        };
        reader.delete(segments, &kept)?;
        let mut catalog = self.shared.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.retain(|kept| !segments.contains(kept));
        Ok(())
    }

    /// The writer instance's id, kept in the directory: the shard of all its chains.
    pub fn shard(&self) -> ShardId {
        self.shared.shard
    }

    /// The end of each chain: what has been numbered so far, durable or not.
    pub fn heads(&self) -> Result<Vec<(ChainId, Head)>, JournalError> {
        let writer = self.shared.writer()?;
        Ok(writer
            .heads
            .chains
            .values()
            .map(|chain| (chain.id(), chain.head()))
            .collect())
    }

    /// How full the journal is.
    pub fn backlog(&self) -> Backlog {
        // Figures are told even of a journal that stopped.
        let stopped = self.shared.writer.is_poisoned();
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let chains = writer
            .heads
            .chains
            .iter()
            .map(|(stream, chain)| (*stream, chain.head().size));
        let streams: Vec<_> = chains
            .map(|(stream, size)| {
                let sealed = writer.sealed_sizes.of(stream);
                let records = size.saturating_sub(sealed);
                let oldest = writer.waiting.since(stream).filter(|_| records > 0);
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
    /// Tells writer and header how far each stream is sealed.
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
            .note_sealed(Reached {
                lsn: slowest.lsn(),
                sizes,
            })
            .map_err(io)
    }
}

impl Drop for Journal {
    /// Everything written is durable when the journal is closed, if the disk still takes it.
    fn drop(&mut self) {
        self.shared.signal.stop();
        if let Some(flusher) = self.flusher.take() {
            // A flusher that panicked left the writer poisoned or the last sync undone; the next line tries.
            let _ = flusher.join();
            flush::sync(&self.shared);
            flush::heal(&self.shared);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Ok(mut writer) = self.shared.writer() {
            writer.reserved = writer.reserved.saturating_sub(self.records * RECORD_ROOM);
        }
    }
}
