//! Bringing journal and store into step, at start and whenever a chain is out of step (HD24, HD25, RL4).

use crate::cursor::RecordEnd;
use crate::error::{OpenError, ReadError};
use crate::given_up;
use crate::journal::{Journal, Recovery};
use crate::open;
use crate::reader::Visited;
use gw_audit::{Draft, Hash, Kind, ShardId, Stream};
use gw_types::Timestamp;
use std::sync::Arc;

/// The end of one of this shard's chains as the store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// The stream.
    pub stream: Stream,
    /// The number of entries.
    pub size: u64,
    /// The hash of the last one; without entries it does not matter.
    pub hash: Hash,
}

impl StoredHead {
    /// A chain of which the store has nothing.
    pub const fn empty(stream: Stream) -> Self {
        Self {
            stream,
            size: 0,
            hash: Hash::ZERO,
        }
    }
}

/// How journal and store stand to each other in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The store has what the journal thinks it has, to the last hash.
    InStep,
    /// It had more or less; sealing of this stream goes on where the store ends.
    Moved,
    /// The store ends before the oldest entry that is kept: entries of the stream are lost.
    Missing {
        /// The first lost entry.
        from: u64,
        /// The first entry that is kept.
        until: u64,
    },
    /// The store has entries of this shard that this journal never wrote, or not so: somebody else writes it, this is
    /// a copy, or they were changed. [`Journal::into_new_shard`] is the way out.
    Foreign,
}

/// What the journal says of an entry number of a chain.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// The hash of the entry before.
    hash: Hash,
    /// A place before the entry, behind the one before.
    place: RecordEnd,
    /// The entry's time, if there is one.
    time: Option<Timestamp>,
}

impl Journal {
    /// Compares the journal with heads of this shard in the store, and moves the cursor of each stream that is found
    /// to be elsewhere. Streams not named are left alone. May be called while others append and read; reads files: not
    /// for an async thread.
    pub fn reconcile(&self, stored: &[StoredHead]) -> Result<Vec<(Stream, Standing)>, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, kept) = self.shared.readable();
        let (start, end) = (reader.start(), durable.end);
        let mut found: Vec<(StoredHead, Option<Before>)> = stored
            .iter()
            .map(|head| {
                let last = Before {
                    hash: durable.hashes.of(head.stream),
                    place: end,
                    time: None,
                };
                (*head, (head.size == end.size(head.stream)).then_some(last))
            })
            .collect();
        // Of the others the entry behind the stored ones is looked for: it names the hash of the last of them.
        let sought = |(head, before): &(StoredHead, Option<Before>)| {
            before.is_none() && (start.size(head.stream)..end.size(head.stream)).contains(&head.size)
        };
        let places = found.iter().filter(|one| sought(one));
        let places = places.map(|(head, _)| reader.cursors.before(head.stream, head.size, start, &end));
        if let Some(from) = places.min_by_key(RecordEnd::lsn) {
            let mut last = from;
            reader.each(from, end.lsn(), &kept, |visited| {
                let header = &visited.header;
                for one in found
                    .iter_mut()
                    .filter(|(head, _)| head.stream == visited.stream && head.size == header.seq)
                {
                    one.1 = Some(Before {
                        hash: header.prev,
                        place: last,
                        time: Some(header.time),
                    });
                }
                last = visited.mark;
                Ok(found.iter().any(sought))
            })?;
        }
        let mut standings = Vec::new();
        let mut moved = Vec::new();
        for (StoredHead { stream, size, hash }, before) in found {
            let until = start.size(stream);
            let standing = match before {
                Some(before) if size > 0 && before.hash != hash => Standing::Foreign,
                Some(_) if reader.cursors.size(stream) == size => Standing::InStep,
                Some(before) => {
                    reader.cursors.move_to(stream, size, before.place);
                    moved.extend(before.time.map(|time| (stream, size, time)));
                    Standing::Moved
                }
                None if size < until => {
                    // What is kept is not in the store either: it goes on with whatever becomes of the shard.
                    reader.cursors.move_to(stream, until, start);
                    Standing::Missing { from: size, until }
                }
                None => Standing::Foreign,
            };
            standings.push((stream, standing));
        }
        if standings
            .iter()
            .any(|(_, standing)| matches!(standing, Standing::Moved | Standing::Missing { .. }))
        {
            let mut writer = self.shared.writer().map_err(|_| ReadError::Stopped)?;
            moved
                .into_iter()
                .for_each(|(stream, size, time)| writer.waiting.returned(stream, size, time));
            drop(writer);
            let slowest = reader.slowest(&end);
            self.shared.note_sealed(&reader, slowest)?;
        }
        Ok(standings)
    }

    /// Hands over the entries of a stream from number `from` on that the store was seen to hold, in their order. Reads
    /// files: not for an async thread.
    ///
    /// Returns false, and hands over nothing, where they are not kept back to `from`.
    pub fn each_sealed(&self, stream: Stream, from: u64, mut take: impl FnMut(u64, &[u8])) -> Result<bool, ReadError> {
        let mut reader = self.shared.reader()?;
        let (durable, kept) = self.shared.readable();
        let (start, sealed) = (reader.start(), reader.cursors.size(stream));
        if from < start.size(stream) {
            return Ok(false);
        }
        if from < sealed {
            reader.each(start, durable.end.lsn(), &kept, |visited| {
                let seq = visited.header.seq;
                if visited.stream == stream && (from..sealed).contains(&seq) {
                    take(seq, visited.entry);
                }
                Ok(visited.mark.size(stream) < sealed)
            })?;
        }
        Ok(true)
    }

    /// Gives this shard up and goes on in a new one with what is not sealed yet. Open sends stay open.
    ///
    /// The new shard's files are whole before the directory names them, so a crash leaves one or the other.
    pub fn into_new_shard(self) -> Result<(Self, Recovery), OpenError> {
        let stopped = || OpenError::corrupt(&self.options.dir, 0, "the journal stopped after a fault");
        self.sync().map_err(|_| stopped())?;
        let (clock, entropy) = (Arc::clone(&self.shared.clock), Arc::clone(&self.shared.entropy));
        let (options, lock) = (self.options.clone(), Arc::clone(&self.lock));
        let shard = ShardId(entropy.uuid());
        let read = |error: ReadError| match error {
            ReadError::Io { path, source } => OpenError::Io { path, source },
            ReadError::Damaged { path, offset } => OpenError::corrupt(&path, offset, "a record cannot be read"),
            ReadError::NotWritten { .. } | ReadError::Stopped => stopped(),
        };
        let mut reader = self.shared.reader().map_err(read)?;
        let (durable, kept) = self.shared.readable();
        let (start, sizes) = (reader.start(), reader.cursors.sizes());
        let is_sealed = |visited: &Visited<'_>| visited.header.seq < sizes.of(visited.stream);
        let mut intents = reader.base.intents.clone();
        let fold = |visited: &Visited<'_>| {
            if is_sealed(visited) {
                visited.fold(&mut intents).map(|()| true)
            } else {
                Ok(true)
            }
        };
        reader.each(start, durable.end.lsn(), &kept, fold).map_err(read)?;
        open::make(&options.dir, shard, intents)?;
        let (next, _) = open::shard_in(
            options.clone(),
            shard,
            Arc::clone(&lock),
            clock.clone(),
            entropy.clone(),
        )?;
        let mut failed = false;
        let copy = |visited: &Visited<'_>| {
            // The new chains have a genesis of their own.
            if visited.header.kind != Kind::Genesis && !is_sealed(visited) {
                let draft = Draft::again(visited.entry, visited.openings.to_vec()).map_err(|_| visited.damaged())?;
                failed |= next.place(&draft, visited.header.time).is_err();
            }
            Ok(!failed)
        };
        let slowest = reader.slowest(&durable.end);
        reader.each(slowest, durable.end.lsn(), &kept, copy).map_err(read)?;
        if failed || next.sync().is_err() {
            return Err(stopped());
        }
        drop(next);
        drop(reader);
        let chains = self.heads().map_err(|_| stopped())?.into_iter().map(|(chain, _)| chain);
        given_up::append(&options.dir, chains)?;
        open::name_shard(&options.dir, shard)?;
        drop(self);
        open::journal(options, lock, clock, entropy)
    }
}
