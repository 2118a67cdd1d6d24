//! Reconciles the journal with the store, at start and whenever a chain differs (HD24, HD25, RL4).

use crate::cursor::RecordEnd;
use crate::error::{OpenError, ReadError};
use crate::given_up;
use crate::journal::{Journal, Recovery};
use crate::open;
use crate::reader::RecordRef;
use gw_audit::{EncodedRecord, Hash, Kind, ShardId, Stream};
use gw_types::Timestamp;
use std::sync::Arc;

/// The end of one of this shard's chains in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// The stream.
    pub stream: Stream,
    /// The number of entries.
    pub size: u64,
    /// The hash of the last entry; ignored if there are no entries.
    pub hash: Hash,
}

impl StoredHead {
    /// A chain of which the store has no entries.
    pub const fn empty(stream: Stream) -> Self {
        Self {
            stream,
            size: 0,
            hash: Hash::ZERO,
        }
    }
}

/// The result of comparing journal and store for one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamComparison {
    /// The store has the entries that the journal expects, and the last hash matches.
    InStep,
    /// The store has more or fewer entries than expected; sealing of the stream continues where the store ends.
    Moved,
    /// The store ends before the oldest retained entry: entries of the stream are lost.
    Missing {
        /// The first lost entry.
        from: u64,
        /// The oldest retained entry.
        until: u64,
    },
    /// The store has entries of this shard that this journal did not write: another process writes the shard, this
    /// journal is a copy, or the entries were changed. [`Journal::into_new_shard`] resolves it.
    Foreign,
}

/// The point in a chain before a given entry.
#[derive(Clone, Copy, Debug)]
struct ChainPoint {
    /// The hash of the previous entry.
    prev: Hash,
    /// The end of a record before the entry, not before the end of the previous entry.
    end: RecordEnd,
    /// The entry's time, if the entry exists.
    time: Option<Timestamp>,
}

impl Journal {
    /// Compares the journal with heads of this shard in the store, and moves the cursor of each stream whose store ends
    /// elsewhere. Streams that are not in `stored` are unchanged. May run while other threads append and read. Reads
    /// files: not for an async thread.
    ///
    /// # Errors
    /// [`ReadError`] if a file cannot be used or is damaged.
    pub fn reconcile(&self, stored: &[StoredHead]) -> Result<Vec<(Stream, StreamComparison)>, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, segments) = self.shared.readable();
        let (start, end) = (reader.start(), durable.end);
        let mut points: Vec<(StoredHead, Option<ChainPoint>)> = stored
            .iter()
            .map(|head| {
                let chain_end = ChainPoint {
                    prev: durable.hashes.get(head.stream),
                    end,
                    time: None,
                };
                (*head, (head.size == end.size(head.stream)).then_some(chain_end))
            })
            .collect();
        // For the other streams, the journal is searched for the entry behind the stored ones: it links to the hash of
        // the last stored entry.
        let is_pending = |(head, point): &(StoredHead, Option<ChainPoint>)| {
            point.is_none() && (start.size(head.stream)..end.size(head.stream)).contains(&head.size)
        };
        let starts = points.iter().filter(|point| is_pending(point));
        let starts = starts.map(|(head, _)| reader.cursors.end_before(head.stream, head.size, start, &end));
        if let Some(from) = starts.min_by_key(RecordEnd::lsn) {
            let mut previous_end = from;
            reader.each(from, end.lsn(), &segments, |record| {
                let header = &record.header;
                for (_, point) in points
                    .iter_mut()
                    .filter(|(head, _)| head.stream == record.stream && head.size == header.seq)
                {
                    *point = Some(ChainPoint {
                        prev: header.prev,
                        end: previous_end,
                        time: Some(header.time),
                    });
                }
                previous_end = record.end;
                Ok(points.iter().any(is_pending))
            })?;
        }
        let mut standings = Vec::new();
        let mut moved = Vec::new();
        for (StoredHead { stream, size, hash }, point) in points {
            let until = start.size(stream);
            let standing = match point {
                Some(point) if size > 0 && point.prev != hash => StreamComparison::Foreign,
                Some(_) if reader.cursors.size(stream) == size => StreamComparison::InStep,
                Some(point) => {
                    reader.cursors.move_to(stream, size, point.end);
                    moved.extend(point.time.map(|time| (stream, size, time)));
                    StreamComparison::Moved
                }
                None if size < until => {
                    // The store has none of the retained entries, so they count as unsealed. They are moved when the
                    // caller moves to a new shard.
                    reader.cursors.move_to(stream, until, start);
                    StreamComparison::Missing { from: size, until }
                }
                None => StreamComparison::Foreign,
            };
            standings.push((stream, standing));
        }
        if standings
            .iter()
            .any(|(_, standing)| matches!(standing, StreamComparison::Moved | StreamComparison::Missing { .. }))
        {
            let mut writer = self.shared.writer().map_err(|_| ReadError::Stopped)?;
            moved
                .into_iter()
                .for_each(|(stream, size, time)| writer.waiting.restore_unsealed(stream, size, time));
            drop(writer);
            let slowest = reader.slowest(&end);
            self.shared.note_sealed(&reader, slowest)?;
        }
        Ok(standings)
    }

    /// Calls `visit` with number and bytes of each sealed entry of a stream from number `from` on, in ascending order.
    /// Reads files: not for an async thread.
    ///
    /// Returns false without calling `visit`, if the journal does not retain the entries back to `from`.
    ///
    /// # Errors
    /// [`ReadError`] if a file cannot be used or is damaged.
    pub fn each_sealed(&self, stream: Stream, from: u64, mut visit: impl FnMut(u64, &[u8])) -> Result<bool, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, segments) = self.shared.readable();
        let (start, sealed) = (reader.start(), reader.cursors.size(stream));
        if from < start.size(stream) {
            return Ok(false);
        }
        if from < sealed {
            reader.each(start, durable.end.lsn(), &segments, |record| {
                let seq = record.header.seq;
                if record.stream == stream && (from..sealed).contains(&seq) {
                    visit(seq, record.entry);
                }
                Ok(record.end.size(stream) < sealed)
            })?;
        }
        Ok(true)
    }

    /// Gives this shard up and moves its unsealed records to a new one. Open sends stay open.
    ///
    /// The new shard is complete on disk before the directory names it, so after a crash the journal is the old or the
    /// new shard.
    ///
    /// # Errors
    /// [`OpenError`] if the old shard cannot be read, or the new one cannot be created.
    pub fn into_new_shard(self) -> Result<(Self, Recovery), OpenError> {
        let stopped = || OpenError::corrupt(&self.config.dir, 0, "the journal stopped after a fault");
        self.sync().map_err(|_| stopped())?;
        let (clock, entropy) = (Arc::clone(&self.shared.clock), Arc::clone(&self.shared.entropy));
        let (config, lock) = (self.config.clone(), Arc::clone(&self.lock));
        let shard = ShardId(entropy.uuid());
        let open_error = |error: ReadError| match error {
            ReadError::Io { path, source } => OpenError::Io { path, source },
            ReadError::Damaged { path, offset } => OpenError::corrupt(&path, offset, "a record cannot be read"),
            ReadError::NotWritten { .. } | ReadError::Stopped => stopped(),
        };
        let mut reader = self.shared.reader().map_err(open_error)?;
        let (durable, segments) = self.shared.readable();
        let (start, sizes) = (reader.start(), reader.cursors.sizes());
        let is_sealed = |record: &RecordRef<'_>| record.header.seq < sizes.get(record.stream);
        let mut intents = reader.base.intents.clone();
        let fold = |record: &RecordRef<'_>| {
            if is_sealed(record) {
                record.fold(&mut intents).map(|()| true)
            } else {
                Ok(true)
            }
        };
        reader
            .each(start, durable.end.lsn(), &segments, fold)
            .map_err(open_error)?;
        open::create_shard(&config.dir, shard, intents)?;
        let (next, _) = open::open_shard(config.clone(), shard, Arc::clone(&lock), clock.clone(), entropy.clone())?;
        let mut failed = false;
        let copy = |record: &RecordRef<'_>| {
            // The new chains have their own genesis.
            if record.header.kind != Kind::Genesis && !is_sealed(record) {
                let encoded =
                    EncodedRecord::reencode(record.entry, record.openings.to_vec()).map_err(|_| record.damaged())?;
                failed |= next.import(&encoded, record.header.time).is_err();
            }
            Ok(!failed)
        };
        let slowest = reader.slowest(&durable.end);
        reader
            .each(slowest, durable.end.lsn(), &segments, copy)
            .map_err(open_error)?;
        if failed || next.sync().is_err() {
            return Err(stopped());
        }
        drop(next);
        drop(reader);
        let chains = self.heads().map_err(|_| stopped())?.into_iter().map(|(chain, _)| chain);
        given_up::append(&config.dir, chains)?;
        open::write_shard_id(&config.dir, shard)?;
        drop(self);
        open::journal(config, lock, clock, entropy)
    }
}
