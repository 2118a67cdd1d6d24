//! Bringing journal and store into step at start (HD24, HD25).

use crate::error::{OpenError, ReadError};
use crate::journal::{Journal, Recovery};
use crate::open;
use crate::reader::Visited;
use gw_audit::{Draft, Hash, Kind, ShardId, Stream, tree};
use std::sync::Arc;

/// The end of one of this shard's chains as the store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// The stream.
    pub stream: Stream,
    /// The number of entries.
    pub size: u64,
    /// The hash of the last one.
    pub hash: Hash,
}

/// How journal and store stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The store has what the journal thinks it has.
    InStep,
    /// It had more or less; sealing goes on where the store ends. What it has already comes again only where
    /// streams differ, so an entry below its head is to be passed over.
    Moved,
    /// The store ends before the oldest entry that is kept: entries of the stream from here on are lost.
    Missing {
        /// The stream.
        stream: Stream,
        /// The first lost entry.
        from: u64,
        /// The first entry that is kept.
        until: u64,
    },
    /// The store has entries of this shard that this journal never wrote: somebody else writes it, or this is a
    /// copy. [`Journal::into_new_shard`] is the way out.
    Foreign {
        /// The stream.
        stream: Stream,
    },
}

impl Journal {
    /// Compares the journal with the heads of this shard in the store; a stream not named has no entry there.
    /// Reads files: not for an async thread.
    pub fn reconcile(&self, stored: &[StoredHead]) -> Result<Standing, ReadError> {
        let head = |stream| stored.iter().find(|head| head.stream == stream);
        let size = |stream| head(stream).map_or(0, |head| head.size);
        let mut reader = self.shared.reader()?;
        let sealed = reader.sealed.sizes();
        if Stream::ALL.iter().all(|stream| size(*stream) == sealed.of(*stream)) {
            return Ok(Standing::InStep);
        }
        let start = reader.start();
        for stream in Stream::ALL.iter().copied() {
            let (from, until) = (size(stream), start.sizes().of(stream));
            if from < until {
                return Ok(Standing::Missing { stream, from, until });
            }
        }
        let (mut last, mut sealed_until, mut foreign) = (start, None, None);
        let (durable, kept) = self.shared.readable();
        reader.each(start, durable, &kept, |visited| {
            let seq = visited.header.seq;
            match head(visited.stream) {
                Some(head) if seq + 1 == head.size && tree::leaf(visited.entry) != head.hash => {
                    foreign = foreign.or(Some(visited.stream));
                }
                Some(head) if seq < head.size => {}
                Some(_) | None => sealed_until = sealed_until.or(Some(last)),
            }
            last = visited.mark;
            Ok(true)
        })?;
        let beyond = Stream::ALL.iter().copied().find(|stream| size(*stream) > last.sizes().of(*stream));
        if let Some(stream) = foreign.or(beyond) {
            return Ok(Standing::Foreign { stream });
        }
        let before = reader.sealed;
        reader.sealed = sealed_until.unwrap_or(last);
        reader.out.clear();
        if reader.sealed.lsn() == before.lsn() {
            return Ok(Standing::InStep);
        }
        self.shared.note_sealed(&reader)?;
        Ok(Standing::Moved)
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
            ReadError::Stopped => stopped(),
        };
        let mut reader = self.shared.reader().map_err(read)?;
        let (durable, kept) = self.shared.readable();
        let (sealed, start) = (reader.sealed, reader.start());
        let mut intents = reader.base.intents.clone();
        let fold = |visited: &Visited<'_>| visited.fold(&mut intents).map(|()| true);
        reader.each(start, sealed.lsn(), &kept, fold).map_err(read)?;
        open::make(&options.dir, shard, intents)?;
        let (next, _) = open::shard_in(options.clone(), shard, Arc::clone(&lock), clock.clone(), entropy.clone())?;
        let mut failed = false;
        let copy = |visited: &Visited<'_>| {
            // The new chains have a genesis of their own.
            if visited.header.kind != Kind::Genesis {
                let draft = Draft::again(visited.entry, visited.openings.to_vec()).map_err(|_| visited.damaged())?;
                let mut writer = next.shared.writer().map_err(|_| ReadError::Stopped)?;
                failed |= writer.append(&draft, visited.header.time, u64::MAX).is_err();
            }
            Ok(!failed)
        };
        reader.each(sealed, durable, &kept, copy).map_err(read)?;
        if failed || next.sync().is_err() {
            return Err(stopped());
        }
        drop(next);
        drop(reader);
        open::name_shard(&options.dir, shard)?;
        drop(self);
        open::journal(options, lock, clock, entropy)
    }
}
