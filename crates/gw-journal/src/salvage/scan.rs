//! Every whole record of a shard's files, whatever lies between them.

use super::{SegmentState, StreamState};
use crate::error::{OpenError, at};
use crate::frame::{self, Found, Frame};
use crate::header::Sizes;
use crate::segment::{self, FIRST_FRAME};
use gw_audit::{Hash, Header, ShardId, Stream, tree};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What cannot be read of a file is left out in pieces of this size.
const PIECE: usize = 64 * 1024;

/// A shard's segments.
#[derive(Debug, Default)]
pub(super) struct Scan {
    shard: Option<ShardId>,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    head: bool,
    /// The first record of the segments after this one: what stands here from there on was written again.
    superseded_from: Option<u64>,
}

/// A record that is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<'a> {
    pub(super) header: Header,
    pub(super) entry: &'a [u8],
    pub(super) openings: &'a [u8],
}

/// What base and header say of the chains.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedProgress {
    /// The entries before the oldest segment.
    pub(super) low: Option<Sizes>,
    pub(super) sealed: Sizes,
    /// The entries that were once durable.
    pub(super) high: Sizes,
    /// Whether the header could be read.
    pub(super) header: bool,
}

impl Scan {
    /// Lists the segments in `dir`.
    pub(super) fn of(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(at(dir))? {
            let path = entry.map_err(at(dir))?.path();
            let number = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .and_then(|stem| stem.parse::<u64>().ok());
            paths.extend(
                number
                    .filter(|_| path.extension().is_some_and(|suffix| suffix == "segment"))
                    .zip(Some(path)),
            );
        }
        paths.sort();
        let (mut parts, mut superseded_from) = (Vec::new(), None::<u64>);
        for (_, path) in paths.into_iter().rev() {
            let bytes = read(&path);
            let head = segment::read_head(&bytes).filter(|head| head.shard == shard);
            // Where the head is damaged its first whole record stands for it.
            let first = head
                .map(|head| head.first_lsn)
                .or_else(|| entries(&bytes).map(|(lsn, ..)| lsn).next());
            parts.push(Part {
                path,
                head: head.is_some(),
                superseded_from,
            });
            superseded_from = superseded_from.into_iter().chain(first).min();
        }
        parts.reverse();
        Ok(Self {
            shard: Some(shard),
            parts,
        })
    }

    /// All whole records that count, in the order they were written.
    pub(super) fn each(&self, mut visit: impl FnMut(&Whole<'_>) -> Result<(), OpenError>) -> Result<(), OpenError> {
        let mut next = Sizes::default();
        self.parts.iter().try_for_each(|part| {
            let bytes = read(&part.path);
            self.of_part(part, &bytes, &mut next)
                .try_for_each(|whole| visit(&whole))
        })
    }

    /// No number of a chain comes twice.
    fn of_part<'a>(&self, part: &Part, bytes: &'a [u8], next: &mut Sizes) -> impl Iterator<Item = Whole<'a>> {
        let until = part.superseded_from.unwrap_or(u64::MAX);
        entries(bytes).filter_map(move |(lsn, entry, openings)| {
            let header = Header::read(entry).ok()?.0;
            let stream = header.chain.stream;
            if lsn >= until || Some(header.chain.shard) != self.shard || header.seq < next.of(stream) {
                return None;
            }
            next.set(stream, header.seq + 1);
            Some(Whole {
                header,
                entry,
                openings,
            })
        })
    }

    /// What there is, segment by segment and stream by stream.
    pub(super) fn tally(
        &self,
        known: &RecordedProgress,
        mut visit: impl FnMut(&Whole<'_>),
    ) -> (Vec<SegmentState>, Vec<StreamState>) {
        let (mut segments, mut next) = (Vec::new(), Sizes::default());
        let mut streams: BTreeMap<Stream, Tally> = BTreeMap::new();
        for stream in Stream::ALL.iter().copied().filter(|stream| known.high.of(*stream) > 0) {
            streams.insert(stream, Tally::new(stream, known));
        }
        for part in &self.parts {
            let bytes = read(&part.path);
            let blank = bytes.iter().all(|byte| *byte == 0);
            let mut records = 0;
            for whole in self.of_part(part, &bytes, &mut next) {
                records += 1;
                visit(&whole);
                let stream = whole.header.chain.stream;
                streams
                    .entry(stream)
                    .or_insert_with(|| Tally::new(stream, known))
                    .take(&whole, known);
            }
            let damaged_at = if part.head { damage(&bytes) } else { Some(0) };
            if !blank || bytes.is_empty() {
                segments.push(SegmentState {
                    path: part.path.clone(),
                    records,
                    damaged_at,
                });
            }
        }
        (segments, streams.into_values().map(|tally| tally.end(known)).collect())
    }
}

/// One stream while it is counted.
struct Tally {
    state: StreamState,
    /// The number that comes next, if it is known.
    next: Option<u64>,
    last: Option<(u64, Hash)>,
}

impl Tally {
    fn new(stream: Stream, known: &RecordedProgress) -> Self {
        let state = StreamState {
            stream,
            records: 0,
            sealed: known.sealed.of(stream),
            unsealed: 0,
            missing: Vec::new(),
            lost: Vec::new(),
            broken: Vec::new(),
        };
        Self {
            state,
            next: known.low.map(|low| low.of(stream)),
            last: None,
        }
    }

    fn take(&mut self, whole: &Whole<'_>, known: &RecordedProgress) {
        let seq = whole.header.seq;
        // Without the base, what is sealed may have been cleared away, and without the header anything may.
        let first = if known.header { seq.min(self.state.sealed) } else { seq };
        self.gap(self.next.unwrap_or(first)..seq);
        self.next = Some(seq + 1);
        if self
            .last
            .is_some_and(|(last, hash)| last + 1 == seq && hash != whole.header.prev)
        {
            self.state.broken.push(seq);
        }
        self.last = Some((seq, tree::leaf(whole.entry)));
        self.state.records += 1;
        self.state.unsealed += u64::from(seq >= self.state.sealed && seq > 0);
    }

    fn gap(&mut self, missing: Range<u64>) {
        if missing.is_empty() {
            return;
        }
        let lost = missing.start.max(self.state.sealed)..missing.end;
        if !lost.is_empty() {
            self.state.lost.push(lost);
        }
        self.state.missing.push(missing);
    }

    fn end(mut self, known: &RecordedProgress) -> StreamState {
        let next = self.next.unwrap_or(self.state.sealed);
        self.gap(next..known.high.of(self.state.stream));
        self.state
    }
}

/// The entries in a segment's bytes that are whole.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8], &[u8])> {
    let frames = usize::try_from(FIRST_FRAME)
        .ok()
        .and_then(|first| bytes.get(first..))
        .unwrap_or_default();
    frame::scan(frames).filter_map(|frame| match frame {
        Frame::Entry { lsn, entry, openings } => Some((lsn, entry, openings)),
        Frame::Marker { .. } => None,
    })
}

/// Where the frames stop making sense before they end.
fn damage(bytes: &[u8]) -> Option<u64> {
    let mut offset = FIRST_FRAME;
    loop {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..))
            .unwrap_or_default();
        match frame::read(rest) {
            Found::Frame(_, len) => offset += len as u64,
            Found::Damage => return Some(offset),
            Found::End | Found::Short => return rest.iter().any(|byte| *byte != 0).then_some(offset),
        }
    }
}

/// A file's bytes; pieces that the disk does not give read as zeros.
fn read(path: &Path) -> Vec<u8> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let len = file
        .metadata()
        .ok()
        .and_then(|meta| usize::try_from(meta.len()).ok())
        .unwrap_or(0);
    let mut bytes = vec![0; len];
    for (piece, offset) in bytes.chunks_mut(PIECE).zip((0..).step_by(PIECE)) {
        if file.read_exact_at(piece, offset).is_err() {
            piece.fill(0);
        }
    }
    bytes
}
