//! The time of the oldest unsealed entry of each stream.
//!
//! Only one sample per second is kept, not the time of each entry. Therefore the reported time is at most the distance
//! of two samples too early, and never too late.

use crate::header::STREAMS;
use gw_audit::Stream;
use gw_types::Timestamp;
use std::collections::VecDeque;

/// The smallest distance of two samples, in microseconds.
const SAMPLE_INTERVAL: i64 = 1_000_000;
/// The largest number of samples of one stream. When it is reached, every other sample is dropped.
const MAX_SAMPLES: usize = 512;

/// Samples of unsealed entries: numbers and times, ascending, by stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting([VecDeque<(u64, Timestamp)>; STREAMS]);

impl Waiting {
    fn samples_mut(&mut self, stream: Stream) -> Option<&mut VecDeque<(u64, Timestamp)>> {
        self.0.get_mut(stream as usize)
    }

    /// Adds a new entry.
    pub(crate) fn note(&mut self, stream: Stream, seq: u64, time: Timestamp) {
        let Some(samples) = self.samples_mut(stream) else {
            return;
        };
        if samples
            .back()
            .is_some_and(|(_, last)| time.micros().saturating_sub(last.micros()) < SAMPLE_INTERVAL)
        {
            return;
        }
        if samples.len() >= MAX_SAMPLES {
            let mut odd = true;
            samples.retain(|_| {
                odd = !odd;
                !odd
            });
        }
        samples.push_back((seq, time));
    }

    /// Removes the entries before `size`, which are sealed. `is_complete` means that all entries of the stream are.
    pub(crate) fn remove_sealed(&mut self, stream: Stream, size: u64, is_complete: bool) {
        let Some(samples) = self.samples_mut(stream) else {
            return;
        };
        if is_complete {
            samples.clear();
        }
        while samples.get(1).is_some_and(|(seq, _)| *seq <= size) {
            samples.pop_front();
        }
    }

    /// Adds the entries from `size` on again, which are no longer sealed; `time` is the time of the first one.
    pub(crate) fn restore_unsealed(&mut self, stream: Stream, size: u64, time: Timestamp) {
        if let Some(samples) = self
            .samples_mut(stream)
            .filter(|samples| samples.front().is_none_or(|(seq, _)| *seq > size))
        {
            samples.push_front((size, time));
        }
    }

    /// The time of a stream's oldest unsealed entry.
    pub(crate) fn oldest_unsealed(&self, stream: Stream) -> Option<Timestamp> {
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
        assert_eq!(waiting.oldest_unsealed(S), None);
        for seq in 0..10_000_u64 {
            waiting.note(S, seq, at(seq.cast_signed() / 10));
        }
        assert_eq!(waiting.oldest_unsealed(S), Some(at(0)));
        for size in [11, 500, 501, 9_990] {
            waiting.remove_sealed(S, size, false);
            let since = waiting.oldest_unsealed(S).unwrap();
            let (first, distance) = (at(size.cast_signed() / 10), 4);
            assert!(
                since <= first && at(since.secs() + distance) >= first,
                "{size}: {since:?}"
            );
        }
        waiting.remove_sealed(S, 10_000, true);
        assert_eq!(waiting.oldest_unsealed(S), None);
        waiting.note(S, 10_000, at(5000));
        assert_eq!(
            waiting.oldest_unsealed(S),
            Some(at(5000)),
            "exact after any time without entries"
        );
        waiting.restore_unsealed(S, 400, at(40));
        assert_eq!(waiting.oldest_unsealed(S), Some(at(40)));
    }
}
