//! Reads the durable records of each stream in the order they were written, for the sealer, and deletes expired
//! segments.

use crate::cursor::{Cursors, RecordEnd};
use crate::disk;
use crate::error::ReadError;
use crate::frame::{self, Frame, FrameRead};
use crate::heads::{BaseState, OpenIntents};
use crate::segment::{self, FIRST_FRAME};
use gw_audit::{Header, Stream};
use gw_types::{Seconds, Timestamp};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The number of bytes read at once.
const CHUNK: usize = 1 << 20;

/// A durable record that is not sealed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsealed {
    /// The record's stream.
    pub stream: Stream,
    /// The record's number in its chain.
    pub seq: u64,
    /// The record's number in the journal, over all streams.
    pub lsn: u64,
    /// The bytes of the entry.
    pub bytes: Vec<u8>,
    /// Salts and personal values.
    pub openings: Vec<u8>,
}

/// A segment that holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetainedSegment {
    pub(crate) number: u64,
    pub(crate) first_lsn: u64,
    /// The offset of the end of its frames; for the segment that is being written, an earlier end.
    pub(crate) end: u64,
    pub(crate) last_time: Option<Timestamp>,
}

/// The limits up to which sealed segments are retained: a segment is deleted when it exceeds one of them.
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
    pub(crate) base: BaseState,
    /// The value of [`RecordEnd::bytes`] at the base.
    pub(crate) base_bytes: u64,
    pub(crate) retention: Retention,
    pub(crate) open: Option<(u64, File)>,
}

impl Reader {
    /// The end before the oldest retained record.
    pub(crate) fn start(&self) -> RecordEnd {
        RecordEnd::start(self.base.heads.reached(), self.base_bytes)
    }

    /// An end before which all durable records of all streams are sealed.
    pub(crate) fn slowest(&self, durable: &RecordEnd) -> RecordEnd {
        self.cursors.slowest(self.start(), durable)
    }

    /// The next durable records of a stream behind the sealed ones, at most `limit`. Reads no file if there are none,
    /// and stops reading behind the last one.
    pub(crate) fn batch(
        &mut self,
        stream: Stream,
        limit: usize,
        durable: &RecordEnd,
        segments: &[RetainedSegment],
    ) -> Result<Vec<Unsealed>, ReadError> {
        let (first, total) = (self.cursors.size(stream), durable.size(stream));
        let (mut batch, mut ends, mut sealed_to) = (Vec::new(), Vec::new(), None);
        if limit > 0 && first < total {
            let from = self.cursors.end_before(stream, first, self.start(), durable);
            sealed_to = Some(from);
            self.each(from, durable.lsn(), segments, |record| {
                let RecordRef {
                    lsn,
                    entry,
                    openings,
                    end,
                    ..
                } = *record;
                if record.stream != stream || record.header.seq < first {
                    sealed_to = sealed_to.filter(|_| !batch.is_empty()).or(Some(end));
                    return Ok(true);
                }
                if record.header.seq != first + batch.len() as u64 {
                    return Err(record.damaged());
                }
                batch.push(Unsealed {
                    stream,
                    seq: record.header.seq,
                    lsn,
                    bytes: entry.to_vec(),
                    openings: openings.to_vec(),
                });
                ends.push(end);
                Ok(batch.len() < limit && record.header.seq + 1 < total)
            })?;
        }
        self.cursors.hand_out(stream, sealed_to, ends);
        Ok(batch)
    }

    /// Calls `visit` for the records behind `from` up to number `durable`, until it returns false.
    pub(crate) fn each(
        &mut self,
        from: RecordEnd,
        durable: u64,
        segments: &[RetainedSegment],
        mut visit: impl FnMut(&RecordRef<'_>) -> Result<bool, ReadError>,
    ) -> Result<(), ReadError> {
        let mut end = from;
        let mut chunk = Vec::new();
        while end.lsn() < durable {
            let next = segments.iter().rev().find(|segment| segment.first_lsn == end.lsn() + 1);
            if let Some(next) = next.filter(|next| next.number > end.segment) {
                (end.segment, end.offset) = (next.number, FIRST_FRAME);
            }
            // The last records of a segment may have been written again to the next segment.
            let until = segments
                .iter()
                .find(|segment| segment.number > end.segment)
                .map_or(durable, |segment| segment.first_lsn - 1);
            let path = segment::path(&self.dir, end.segment);
            self.read(end.segment, end.offset, &path, &mut chunk)?;
            let (chunk_start, mut rest) = (end, chunk.as_slice());
            while end.lsn() < until.min(durable) {
                let FrameRead::Frame(frame, len) = frame::read(rest) else {
                    break;
                };
                rest = rest.get(len..).unwrap_or_default();
                end.offset += len as u64;
                if let Frame::Entry { lsn, entry, openings } = frame {
                    let damaged = || ReadError::Damaged {
                        path: path.clone(),
                        offset: end.offset,
                    };
                    let header = Header::read(entry).map_err(|_| damaged())?.0;
                    if lsn != end.lsn() + 1 {
                        return Err(damaged());
                    }
                    let stream = header.chain.stream;
                    end.reached.lsn = lsn;
                    end.reached.sizes.set(stream, header.seq + 1);
                    end.bytes += len as u64;
                    let record = RecordRef {
                        stream,
                        lsn,
                        header,
                        entry,
                        openings,
                        end,
                        path: &path,
                    };
                    if !visit(&record)? {
                        return Ok(());
                    }
                }
            }
            if end == chunk_start {
                return Err(ReadError::Damaged {
                    path,
                    offset: end.offset,
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
            Some((open_number, file)) if open_number == number => file,
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

    /// The number of oldest segments that are completely sealed. The last segment is being written and does not count.
    pub(crate) fn sealed(sealed: &RecordEnd, segments: &[RetainedSegment]) -> usize {
        let is_sealed = |next: &RetainedSegment| next.first_lsn <= sealed.lsn() + 1;
        segments.iter().skip(1).take_while(|next| is_sealed(next)).count()
    }

    /// The number of oldest segments that may be deleted: completely sealed, and beyond the retention.
    pub(crate) fn expired(&self, sealed: &RecordEnd, segments: &[RetainedSegment], now: Timestamp) -> usize {
        let sealed = Self::sealed(sealed, segments);
        let mut bytes: u64 = segments.iter().take(sealed).map(|segment| segment.end).sum();
        let mut expired = 0;
        for segment in segments.iter().take(sealed) {
            let is_old = segment
                .last_time
                .is_some_and(|time| time.plus(self.retention.age) < now);
            if !is_old && bytes <= self.retention.bytes {
                break;
            }
            bytes -= segment.end;
            expired += 1;
        }
        expired
    }

    /// Deletes the `expired` segments, which are the oldest of `segments`, after the state behind them was saved.
    pub(crate) fn delete(
        &mut self,
        expired: &[RetainedSegment],
        segments: &[RetainedSegment],
    ) -> Result<(), ReadError> {
        let Some(end) = segments.get(expired.len()).map(|next| next.first_lsn - 1) else {
            return Ok(());
        };
        let (mut base, mut bytes) = (self.base.clone(), self.base_bytes);
        self.each(self.start(), end, segments, |record| {
            bytes = record.end.bytes;
            base.heads.accept(record.entry).map_err(|_| record.damaged())?;
            record.fold(&mut base.intents)?;
            Ok(true)
        })?;
        let io = |source| ReadError::Io {
            path: self.dir.clone(),
            source,
        };
        base.save(&self.dir).map_err(io)?;
        (self.base, self.base_bytes) = (base, bytes);
        // A deleted file that is still open keeps its disk space.
        self.open = None;
        for segment in expired {
            let path = segment::path(&self.dir, segment.number);
            disk::remove(&path).map_err(|source| ReadError::Io { path, source })?;
        }
        Ok(())
    }
}

/// A record that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRef<'a> {
    pub(crate) stream: Stream,
    pub(crate) lsn: u64,
    pub(crate) header: Header,
    pub(crate) entry: &'a [u8],
    pub(crate) openings: &'a [u8],
    /// The end of the record.
    pub(crate) end: RecordEnd,
    path: &'a Path,
}

impl RecordRef<'_> {
    pub(crate) fn damaged(&self) -> ReadError {
        ReadError::Damaged {
            path: self.path.to_owned(),
            offset: self.end.offset,
        }
    }

    /// Updates the open sends, if the record is an intent or an outcome.
    pub(crate) fn fold(&self, intents: &mut OpenIntents) -> Result<(), ReadError> {
        intents
            .fold(self.header.kind, self.entry, self.openings)
            .map_err(|_| self.damaged())
    }
}
