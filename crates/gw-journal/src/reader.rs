//! The sealer's end: durable records of each stream in the order they were written, and what becomes of sealed
//! segments.

use crate::cursor::{Cursors, RecordEnd};
use crate::disk;
use crate::error::ReadError;
use crate::frame::{self, Found, Frame};
use crate::heads::{Base, OpenIntents};
use crate::segment::{self, FIRST_FRAME};
use gw_audit::{Header, Stream};
use gw_types::{Seconds, Timestamp};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// How much is read at once.
const CHUNK: usize = 1 << 20;

/// A record on its way into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsealed {
    /// Its stream.
    pub stream: Stream,
    /// Its number in its chain.
    pub seq: u64,
    /// Its number in the journal, over all streams.
    pub lsn: u64,
    /// The entry.
    pub bytes: Vec<u8>,
    /// Salts and personal values.
    pub openings: Vec<u8>,
}

/// A segment that holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) number: u64,
    pub(crate) first_lsn: u64,
    /// Where its frames end; for the segment being written, where they did at some time.
    pub(crate) end: u64,
    pub(crate) last_time: Option<Timestamp>,
}

/// How long sealed segments are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub(crate) bytes: u64,
    pub(crate) age: Seconds,
}

/// The reading end of the journal.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) dir: PathBuf,
    pub(crate) cursors: Cursors,
    pub(crate) base: Base,
    /// The bytes counted when the base was reached.
    pub(crate) base_bytes: u64,
    pub(crate) retention: Retention,
    pub(crate) open: Option<(u64, File)>,
}

impl Reader {
    /// The place before the oldest record that is kept.
    pub(crate) fn start(&self) -> RecordEnd {
        RecordEnd::start(self.base.heads.reached(), self.base_bytes)
    }

    /// A place before which nothing durable is unsealed.
    pub(crate) fn slowest(&self, durable: &RecordEnd) -> RecordEnd {
        self.cursors.slowest(self.start(), durable)
    }

    /// The next durable records of a stream behind the sealed ones, at most `most`. Nothing is read of a stream
    /// without such records, and nothing behind the last of them.
    pub(crate) fn batch(
        &mut self,
        stream: Stream,
        most: usize,
        durable: &RecordEnd,
        kept: &[Kept],
    ) -> Result<Vec<Unsealed>, ReadError> {
        let (first, total) = (self.cursors.size(stream), durable.size(stream));
        let (mut batch, mut out, mut before) = (Vec::new(), Vec::new(), None);
        if most > 0 && first < total {
            let from = self.cursors.before(stream, first, self.start(), durable);
            before = Some(from);
            self.each(from, durable.lsn(), kept, |visited| {
                let Visited {
                    lsn,
                    entry,
                    openings,
                    mark,
                    ..
                } = *visited;
                if visited.stream != stream || visited.header.seq < first {
                    before = before.filter(|_| !batch.is_empty()).or(Some(mark));
                    return Ok(true);
                }
                if visited.header.seq != first + batch.len() as u64 {
                    return Err(visited.damaged());
                }
                batch.push(Unsealed {
                    stream,
                    seq: visited.header.seq,
                    lsn,
                    bytes: entry.to_vec(),
                    openings: openings.to_vec(),
                });
                out.push(mark);
                Ok(batch.len() < most && visited.header.seq + 1 < total)
            })?;
        }
        self.cursors.hand_out(stream, before, out);
        Ok(batch)
    }

    /// Walks over the records behind `from` up to `durable`, as long as `visit` says so.
    pub(crate) fn each(
        &mut self,
        from: RecordEnd,
        durable: u64,
        kept: &[Kept],
        mut visit: impl FnMut(&Visited<'_>) -> Result<bool, ReadError>,
    ) -> Result<(), ReadError> {
        let mut mark = from;
        let mut chunk = Vec::new();
        while mark.lsn() < durable {
            let next = kept.iter().rev().find(|kept| kept.first_lsn == mark.lsn() + 1);
            if let Some(next) = next.filter(|next| next.number > mark.segment) {
                (mark.segment, mark.offset) = (next.number, FIRST_FRAME);
            }
            // The rest of a segment may have been written again into the one after it.
            let until = kept
                .iter()
                .find(|kept| kept.number > mark.segment)
                .map_or(durable, |kept| kept.first_lsn - 1);
            let path = segment::path(&self.dir, mark.segment);
            self.read(mark.segment, mark.offset, &path, &mut chunk)?;
            let (before, mut rest) = (mark, chunk.as_slice());
            while mark.lsn() < until.min(durable) {
                let Found::Frame(frame, len) = frame::read(rest) else {
                    break;
                };
                rest = rest.get(len..).unwrap_or_default();
                mark.offset += len as u64;
                if let Frame::Entry { lsn, entry, openings } = frame {
                    let damaged = || ReadError::Damaged {
                        path: path.clone(),
                        offset: mark.offset,
                    };
                    let header = Header::read(entry).map_err(|_| damaged())?.0;
                    if lsn != mark.lsn() + 1 {
                        return Err(damaged());
                    }
                    let stream = header.chain.stream;
                    mark.reached.lsn = lsn;
                    mark.reached.sizes.set(stream, header.seq + 1);
                    mark.bytes += len as u64;
                    let visited = Visited {
                        stream,
                        lsn,
                        header,
                        entry,
                        openings,
                        mark,
                        path: &path,
                    };
                    if !visit(&visited)? {
                        return Ok(());
                    }
                }
            }
            if mark == before {
                return Err(ReadError::Damaged {
                    path,
                    offset: mark.offset,
                });
            }
        }
        Ok(())
    }

    fn read(&mut self, number: u64, offset: u64, path: &Path, chunk: &mut Vec<u8>) -> Result<(), ReadError> {
        let io = |source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let file = match self.open.take() {
            Some((open, file)) if open == number => file,
            Some(_) | None => File::open(path).map_err(io)?,
        };
        chunk.resize(CHUNK, 0);
        let mut filled = 0;
        while let Some(space) = chunk.get_mut(filled..).filter(|space| !space.is_empty()) {
            match file.read_at(space, offset + filled as u64).map_err(io)? {
                0 => break,
                read => filled += read,
            }
        }
        chunk.truncate(filled);
        self.open = Some((number, file));
        Ok(())
    }

    /// Which segments may go: wholly sealed, and beyond what retention keeps.
    pub(crate) fn expired(&self, sealed: &RecordEnd, kept: &[Kept], now: Timestamp) -> usize {
        let is_sealed = |next: &Kept| next.first_lsn <= sealed.lsn() + 1;
        let sealed = kept.iter().skip(1).take_while(|next| is_sealed(next)).count();
        let mut bytes: u64 = kept.iter().take(sealed).map(|kept| kept.end).sum();
        let mut expired = 0;
        for segment in kept.iter().take(sealed) {
            let old = segment
                .last_time
                .is_some_and(|time| time.plus(self.retention.age) < now);
            if !old && bytes <= self.retention.bytes {
                break;
            }
            bytes -= segment.end;
            expired += 1;
        }
        expired
    }

    /// Deletes the oldest segments after the state behind them has been written down.
    pub(crate) fn delete(&mut self, segments: &[Kept], kept: &[Kept]) -> Result<(), ReadError> {
        let Some(end) = kept.get(segments.len()).map(|next| next.first_lsn - 1) else {
            return Ok(());
        };
        let (mut base, mut bytes) = (self.base.clone(), self.base_bytes);
        self.each(self.start(), end, kept, |visited| {
            bytes = visited.mark.bytes;
            base.heads.accept(visited.entry).map_err(|_| visited.damaged())?;
            visited.fold(&mut base.intents)?;
            Ok(true)
        })?;
        let io = |source| ReadError::Io {
            path: self.dir.clone(),
            source,
        };
        base.save(&self.dir).map_err(io)?;
        (self.base, self.base_bytes) = (base, bytes);
        for segment in segments {
            let path = segment::path(&self.dir, segment.number);
            disk::remove(&path).map_err(|source| ReadError::Io { path, source })?;
        }
        Ok(())
    }
}

/// A record on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visited<'a> {
    pub(crate) stream: Stream,
    pub(crate) lsn: u64,
    pub(crate) header: Header,
    pub(crate) entry: &'a [u8],
    pub(crate) openings: &'a [u8],
    /// The place behind it.
    pub(crate) mark: RecordEnd,
    path: &'a Path,
}

impl Visited<'_> {
    pub(crate) fn damaged(&self) -> ReadError {
        ReadError::Damaged {
            path: self.path.to_owned(),
            offset: self.mark.offset,
        }
    }

    /// Takes note of it, if it is an intent or an outcome.
    pub(crate) fn fold(&self, intents: &mut OpenIntents) -> Result<(), ReadError> {
        intents
            .fold(self.header.kind, self.entry, self.openings)
            .map_err(|_| self.damaged())
    }
}
