//! Since when the oldest unsealed entry of each stream waits.
//!
//! A sample a second is kept, not the time of each entry; what is said is therefore at most the distance of two
//! samples too early, and never too late.

use crate::header::STREAMS;
use gw_audit::Stream;
use gw_types::Timestamp;
use std::collections::VecDeque;

/// The least distance of two samples, in microseconds.
const EVERY: i64 = 1_000_000;
/// With so many samples of one stream every other one goes.
const MOST: usize = 512;

/// Numbers and times of entries that are not sealed, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting([VecDeque<(u64, Timestamp)>; STREAMS]);

impl Waiting {
    fn of(&mut self, stream: Stream) -> Option<&mut VecDeque<(u64, Timestamp)>> {
        self.0.get_mut(stream as usize)
    }

    /// Notes a new entry.
    pub(crate) fn note(&mut self, stream: Stream, seq: u64, time: Timestamp) {
        let Some(samples) = self.of(stream) else { return };
        if samples
            .back()
            .is_some_and(|(_, last)| time.micros().saturating_sub(last.micros()) < EVERY)
        {
            return;
        }
        if samples.len() >= MOST {
            let mut odd = true;
            samples.retain(|_| {
                odd = !odd;
                !odd
            });
        }
        samples.push_back((seq, time));
    }

    /// The entries before `size` are sealed; `level` if that is all.
    pub(crate) fn sealed(&mut self, stream: Stream, size: u64, level: bool) {
        let Some(samples) = self.of(stream) else { return };
        if level {
            samples.clear();
        }
        while samples.get(1).is_some_and(|(seq, _)| *seq <= size) {
            samples.pop_front();
        }
    }

    /// The entries from `size` on, the first of them of this time, are not sealed any more.
    pub(crate) fn returned(&mut self, stream: Stream, size: u64, time: Timestamp) {
        if let Some(samples) = self
            .of(stream)
            .filter(|samples| samples.front().is_none_or(|(seq, _)| *seq > size))
        {
            samples.push_front((size, time));
        }
    }

    /// The time of a stream's oldest unsealed entry.
    pub(crate) fn since(&self, stream: Stream) -> Option<Timestamp> {
        self.0.get(stream as usize)?.front().map(|(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Stream = Stream::Access;

    #[test]
    fn rl4_the_oldest_entry_is_known_to_the_second() {
        let at = |seconds: i64| Timestamp::from_secs(seconds);
        let mut waiting = Waiting::default();
        assert_eq!(waiting.since(S), None);
        for seq in 0..10_000_u64 {
            waiting.note(S, seq, at(seq.cast_signed() / 10));
        }
        assert_eq!(waiting.since(S), Some(at(0)));
        for size in [11, 500, 501, 9_990] {
            waiting.sealed(S, size, false);
            let since = waiting.since(S).unwrap();
            let (first, distance) = (at(size.cast_signed() / 10), 4);
            assert!(
                since <= first && at(since.secs() + distance) >= first,
                "{size}: {since:?}"
            );
        }
        waiting.sealed(S, 10_000, true);
        assert_eq!(waiting.since(S), None);
        waiting.note(S, 10_000, at(5000));
        assert_eq!(waiting.since(S), Some(at(5000)), "exact, however long nothing came");
        waiting.returned(S, 400, at(40));
        assert_eq!(waiting.since(S), Some(at(40)));
    }
}
