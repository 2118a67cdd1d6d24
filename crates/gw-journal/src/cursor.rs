//! Cursors: how far each stream is sealed. The streams are sealed independently of each other (RL4), so each has its
//! own cursor. Records before all cursors may be deleted.

use crate::header::{ChainSizes, Progress};
use crate::segment::FIRST_FRAME;
use gw_audit::Stream;
use std::iter::once;

/// The end of a record in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordEnd {
    /// The record, and the sizes of the chains up to it.
    pub(crate) reached: Progress,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    /// The bytes of all records up to this end, counted from the oldest record when the journal was opened.
    pub(crate) bytes: u64,
}

impl RecordEnd {
    /// An end whose position in the files is unknown; reading from it starts at the next segment's first frame.
    pub(crate) const fn start(reached: Progress, bytes: u64) -> Self {
        Self {
            reached,
            segment: 0,
            offset: FIRST_FRAME,
            bytes,
        }
    }

    /// The record's number in the journal.
    pub(crate) const fn lsn(&self) -> u64 {
        self.reached.lsn
    }

    /// The size of a chain up to this end.
    pub(crate) fn size(&self, stream: Stream) -> u64 {
        self.reached.sizes.get(stream)
    }
}

#[derive(Debug)]
struct Cursor {
    stream: Stream,
    /// The number of sealed entries.
    size: u64,
    /// An end before which all entries of the stream are sealed; there may be further sealed entries behind it.
    sealed_to: RecordEnd,
    /// The ends of the entries that were handed out last.
    handed_out: Vec<RecordEnd>,
}

/// The cursors of all streams.
#[derive(Debug)]
pub(crate) struct Cursors(Vec<Cursor>);

impl Cursors {
    /// Cursors at these sizes. All entries before `sealed_to` must be sealed.
    pub(crate) fn new(sizes: &ChainSizes, sealed_to: RecordEnd) -> Self {
        let cursor = |stream: Stream| Cursor {
            stream,
            size: sizes.get(stream),
            sealed_to,
            handed_out: Vec::new(),
        };
        Self(Stream::ALL.iter().copied().map(cursor).collect())
    }

    fn cursor_mut(&mut self, stream: Stream) -> Option<&mut Cursor> {
        self.0.iter_mut().find(|cursor| cursor.stream == stream)
    }

    /// The number of sealed entries of a stream.
    pub(crate) fn size(&self, stream: Stream) -> u64 {
        self.0
            .iter()
            .find(|cursor| cursor.stream == stream)
            .map_or(0, |cursor| cursor.size)
    }

    pub(crate) fn sizes(&self) -> ChainSizes {
        let mut sizes = ChainSizes::default();
        self.0.iter().for_each(|cursor| sizes.set(cursor.stream, cursor.size));
        sizes
    }

    /// Sets the ends of the entries that were handed out, and an end before which all entries of the stream are sealed.
    pub(crate) fn hand_out(&mut self, stream: Stream, sealed_to: Option<RecordEnd>, handed_out: Vec<RecordEnd>) {
        if let Some(cursor) = self.cursor_mut(stream) {
            if let Some(sealed_to) = sealed_to.filter(|end| end.lsn() > cursor.sealed_to.lsn()) {
                cursor.sealed_to = sealed_to;
            }
            cursor.handed_out = handed_out;
        }
    }

    /// Moves a cursor forward; returns false if it already was at `size` or behind it.
    pub(crate) fn advance(&mut self, stream: Stream, size: u64) -> bool {
        let Some(cursor) = self.cursor_mut(stream).filter(|cursor| cursor.size < size) else {
            return false;
        };
        cursor.size = size;
        let passed = cursor.handed_out.partition_point(|end| end.size(stream) <= size);
        if let Some(end) = cursor.handed_out.drain(..passed).next_back() {
            cursor.sealed_to = end;
        }
        true
    }

    /// Moves a cursor forward or back.
    pub(crate) fn move_to(&mut self, stream: Stream, size: u64, sealed_to: RecordEnd) {
        if let Some(cursor) = self.cursor_mut(stream) {
            (cursor.size, cursor.sealed_to) = (size, sealed_to);
            cursor.handed_out.clear();
        }
    }

    /// The last known end before entry `size` of a stream. The ends of all cursors are considered, so that records are
    /// not read again for each stream: a fully sealed stream uses the end of another stream's cursor.
    pub(crate) fn end_before(&self, stream: Stream, size: u64, start: RecordEnd, durable: &RecordEnd) -> RecordEnd {
        let ends = self.0.iter().map(|cursor| cursor.sealed_to).chain(once(*durable));
        ends.filter(|end| end.size(stream) <= size)
            .fold(start, |last, end| if end.lsn() > last.lsn() { end } else { last })
    }

    /// An end before which all durable records of all streams are sealed.
    pub(crate) fn slowest(&self, start: RecordEnd, durable: &RecordEnd) -> RecordEnd {
        self.0
            .iter()
            .map(|cursor| self.end_before(cursor.stream, cursor.size, start, durable))
            .fold(*durable, |first, end| if end.lsn() < first.lsn() { end } else { first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(lsn: u64, access: u64, security: u64) -> RecordEnd {
        let mut sizes = ChainSizes::default();
        sizes.set(Stream::Access, access);
        sizes.set(Stream::Security, security);
        RecordEnd::start(Progress { lsn, sizes }, lsn * 100)
    }

    #[test]
    fn rl4_a_fully_sealed_stream_does_not_hold_back_the_others() {
        let (start, durable) = (end(0, 0, 0), end(100, 90, 10));
        let mut cursors = Cursors::new(&ChainSizes::default(), start);
        assert_eq!(cursors.slowest(start, &durable), start);
        cursors.hand_out(Stream::Security, None, vec![end(50, 41, 9), durable]);
        assert!(cursors.advance(Stream::Security, 10));
        assert_eq!(
            cursors.slowest(start, &durable),
            start,
            "the access stream is still at the beginning"
        );
        cursors.hand_out(Stream::Access, None, vec![end(20, 15, 5), end(99, 90, 9)]);
        assert!(cursors.advance(Stream::Access, 89));
        assert_eq!(cursors.slowest(start, &durable), end(20, 15, 5));
        assert!(cursors.advance(Stream::Access, 90));
        assert!(!cursors.advance(Stream::Access, 90));
        assert_eq!(
            cursors.slowest(start, &durable),
            durable,
            "both streams are fully sealed"
        );
        let later = end(105, 90, 15);
        assert_eq!(
            cursors.slowest(start, &later),
            end(100, 90, 10),
            "access is fully sealed, security continues from there"
        );
    }
}
