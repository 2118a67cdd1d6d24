//! How far each stream is sealed. Streams go into the store independently of each other (RL4), so each has a
//! cursor of its own; what lies before all of them may be deleted.

use crate::header::{Reached, Sizes};
use crate::segment::FIRST_FRAME;
use gw_audit::Stream;
use std::iter::once;

/// The place behind a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordEnd {
    /// The record, and the chains up to it.
    pub(crate) reached: Reached,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    /// Bytes of the records up to here, counted from where the journal began when it was opened.
    pub(crate) bytes: u64,
}

impl RecordEnd {
    /// A place known by its number only.
    pub(crate) const fn start(reached: Reached, bytes: u64) -> Self {
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

    /// The size of a chain up to here.
    pub(crate) fn size(&self, stream: Stream) -> u64 {
        self.reached.sizes.of(stream)
    }
}

#[derive(Debug)]
struct Cursor {
    stream: Stream,
    /// Sealed entries.
    size: u64,
    /// A place before which all entries of the stream are sealed; others may lie behind it.
    place: RecordEnd,
    /// The places behind the entries handed out last.
    out: Vec<RecordEnd>,
}

/// The cursors of all streams.
#[derive(Debug)]
pub(crate) struct Cursors(Vec<Cursor>);

impl Cursors {
    /// Cursors at these sizes. No entry before `place` is unsealed.
    pub(crate) fn new(sizes: &Sizes, place: RecordEnd) -> Self {
        let cursor = |stream: Stream| Cursor {
            stream,
            size: sizes.of(stream),
            place,
            out: Vec::new(),
        };
        Self(Stream::ALL.iter().copied().map(cursor).collect())
    }

    fn of(&mut self, stream: Stream) -> Option<&mut Cursor> {
        self.0.iter_mut().find(|cursor| cursor.stream == stream)
    }

    /// How many entries of a stream are sealed.
    pub(crate) fn size(&self, stream: Stream) -> u64 {
        self.0
            .iter()
            .find(|cursor| cursor.stream == stream)
            .map_or(0, |cursor| cursor.size)
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        self.0.iter().for_each(|cursor| sizes.set(cursor.stream, cursor.size));
        sizes
    }

    /// Notes what was handed out, and a place up to which nothing of the stream is unsealed.
    pub(crate) fn hand_out(&mut self, stream: Stream, before: Option<RecordEnd>, out: Vec<RecordEnd>) {
        if let Some(cursor) = self.of(stream) {
            if let Some(before) = before.filter(|before| before.lsn() > cursor.place.lsn()) {
                cursor.place = before;
            }
            cursor.out = out;
        }
    }

    /// Moves a cursor forward; false if it was there.
    pub(crate) fn advance(&mut self, stream: Stream, size: u64) -> bool {
        let Some(cursor) = self.of(stream).filter(|cursor| cursor.size < size) else {
            return false;
        };
        cursor.size = size;
        let passed = cursor.out.partition_point(|mark| mark.size(stream) <= size);
        if let Some(place) = cursor.out.drain(..passed).next_back() {
            cursor.place = place;
        }
        true
    }

    /// Moves a cursor forward or back.
    pub(crate) fn move_to(&mut self, stream: Stream, size: u64, place: RecordEnd) {
        if let Some(cursor) = self.of(stream) {
            (cursor.size, cursor.place) = (size, place);
            cursor.out.clear();
        }
    }

    /// The furthest known place that lies before entry `size` of a stream. A stream that is level profits from what
    /// was read for another one, so that nothing is read once for each stream.
    pub(crate) fn before(&self, stream: Stream, size: u64, start: RecordEnd, durable: &RecordEnd) -> RecordEnd {
        let known = self.0.iter().map(|cursor| cursor.place).chain(once(*durable));
        known.filter(|mark| mark.size(stream) <= size).fold(
            start,
            |best, mark| {
                if mark.lsn() > best.lsn() { mark } else { best }
            },
        )
    }

    /// A place before which nothing durable is unsealed.
    pub(crate) fn slowest(&self, start: RecordEnd, durable: &RecordEnd) -> RecordEnd {
        self.0
            .iter()
            .map(|cursor| self.before(cursor.stream, cursor.size, start, durable))
            .fold(
                *durable,
                |least, mark| {
                    if mark.lsn() < least.lsn() { mark } else { least }
                },
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(lsn: u64, access: u64, security: u64) -> RecordEnd {
        let mut sizes = Sizes::default();
        sizes.set(Stream::Access, access);
        sizes.set(Stream::Security, security);
        RecordEnd::start(Reached { lsn, sizes }, lsn * 100)
    }

    #[test]
    fn rl4_a_level_stream_holds_up_nothing() {
        let (start, durable) = (mark(0, 0, 0), mark(100, 90, 10));
        let mut cursors = Cursors::new(&Sizes::default(), start);
        assert_eq!(cursors.slowest(start, &durable), start);
        cursors.hand_out(Stream::Security, None, vec![mark(50, 41, 9), durable]);
        assert!(cursors.advance(Stream::Security, 10));
        assert_eq!(
            cursors.slowest(start, &durable),
            start,
            "the other one is at the beginning"
        );
        cursors.hand_out(Stream::Access, None, vec![mark(20, 15, 5), mark(99, 90, 9)]);
        assert!(cursors.advance(Stream::Access, 89));
        assert_eq!(cursors.slowest(start, &durable), mark(20, 15, 5));
        assert!(cursors.advance(Stream::Access, 90));
        assert!(!cursors.advance(Stream::Access, 90));
        assert_eq!(cursors.slowest(start, &durable), durable, "both are level");
        let more = mark(105, 90, 15);
        assert_eq!(
            cursors.slowest(start, &more),
            mark(100, 90, 10),
            "access is level, security goes on from there"
        );
    }
}
