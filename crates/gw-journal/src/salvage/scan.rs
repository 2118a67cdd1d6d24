//! Finds all intact records in a shard's files, regardless of damage between them.

use super::{SegmentState, StreamState};
use crate::error::{OpenError, at};
use crate::frame::{self, Frame, FrameRead};
use crate::header::ChainSizes;
use crate::segment::{self, FIRST_FRAME};
use gw_audit::{Hash, Header, ShardId, Stream, tree};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The size of the pieces in which a file is read; a piece that cannot be read is skipped.
const PIECE: usize = 64 * 1024;

/// The segment files of a shard.
#[derive(Debug, Default)]
pub(super) struct Scan {
    shard: Option<ShardId>,
    files: Vec<SegmentFile>,
}

#[derive(Debug)]
struct SegmentFile {
    path: PathBuf,
    /// Whether the head is valid.
    head: bool,
    /// The first record of the later segments: records in this segment from this number on were written again there.
    superseded_from: Option<u64>,
}

/// An intact record.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntactRecord<'a> {
    pub(super) header: Header,
    pub(super) entry: &'a [u8],
    pub(super) openings: &'a [u8],
}

/// The sizes of the chains according to base and header.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedProgress {
    /// The sizes before the oldest segment, if the base could be read.
    pub(super) low: Option<ChainSizes>,
    pub(super) sealed: ChainSizes,
    /// The sizes that were once durable.
    pub(super) high: ChainSizes,
    /// Whether the header could be read.
    pub(super) header: bool,
}

impl Scan {
    /// Lists the segments in `dir`.
    pub(super) fn new(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
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
        let (mut files, mut superseded_from) = (Vec::new(), None::<u64>);
        for (_, path) in paths.into_iter().rev() {
            let bytes = read(&path);
            let head = segment::read_head(&bytes).filter(|head| head.shard == shard);
            // If the head is damaged, the number of the first intact record is used.
            let first = head
                .map(|head| head.first_lsn)
                .or_else(|| entries(&bytes).map(|(lsn, ..)| lsn).next());
            files.push(SegmentFile {
                path,
                head: head.is_some(),
                superseded_from,
            });
            superseded_from = superseded_from.into_iter().chain(first).min();
        }
        files.reverse();
        Ok(Self {
            shard: Some(shard),
            files,
        })
    }

    /// Calls `visit` for all intact records that were not superseded, in the order they were written.
    pub(super) fn each(
        &self,
        mut visit: impl FnMut(&IntactRecord<'_>) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let mut next = ChainSizes::default();
        self.files.iter().try_for_each(|file| {
            let bytes = read(&file.path);
            self.records(file, &bytes, &mut next)
                .try_for_each(|record| visit(&record))
        })
    }

    /// The intact records of one file. `next` holds the next number of each chain, so that no number occurs twice.
    fn records<'a>(
        &self,
        file: &SegmentFile,
        bytes: &'a [u8],
        next: &mut ChainSizes,
    ) -> impl Iterator<Item = IntactRecord<'a>> {
        let until = file.superseded_from.unwrap_or(u64::MAX);
        entries(bytes).filter_map(move |(lsn, entry, openings)| {
            let header = Header::read(entry).ok()?.0;
            let stream = header.chain.stream;
            if lsn >= until || Some(header.chain.shard) != self.shard || header.seq < next.get(stream) {
                return None;
            }
            next.set(stream, header.seq + 1);
            Some(IntactRecord {
                header,
                entry,
                openings,
            })
        })
    }

    /// The state of each segment and each stream. Calls `visit` for each intact record.
    pub(super) fn tally(
        &self,
        progress: &RecordedProgress,
        mut visit: impl FnMut(&IntactRecord<'_>),
    ) -> (Vec<SegmentState>, Vec<StreamState>) {
        let (mut segments, mut next) = (Vec::new(), ChainSizes::default());
        let mut streams: BTreeMap<Stream, Tally> = BTreeMap::new();
        let known_streams = Stream::ALL.iter().copied();
        for stream in known_streams.filter(|stream| progress.high.get(*stream) > 0) {
            streams.insert(stream, Tally::new(stream, progress));
        }
        for file in &self.files {
            let bytes = read(&file.path);
            let is_blank = bytes.iter().all(|byte| *byte == 0);
            let mut records = 0;
            for record in self.records(file, &bytes, &mut next) {
                records += 1;
                visit(&record);
                let stream = record.header.chain.stream;
                streams
                    .entry(stream)
                    .or_insert_with(|| Tally::new(stream, progress))
                    .add(&record, progress);
            }
            let damaged_at = if file.head { damage(&bytes) } else { Some(0) };
            if !is_blank || bytes.is_empty() {
                segments.push(SegmentState {
                    path: file.path.clone(),
                    records,
                    damaged_at,
                });
            }
        }
        (
            segments,
            streams.into_values().map(|tally| tally.end(progress)).collect(),
        )
    }
}

/// Counts the records of one stream.
struct Tally {
    state: StreamState,
    /// The next expected number, if it is known.
    next: Option<u64>,
    last: Option<(u64, Hash)>,
}

impl Tally {
    fn new(stream: Stream, progress: &RecordedProgress) -> Self {
        let state = StreamState {
            stream,
            records: 0,
            sealed: progress.sealed.get(stream),
            unsealed: 0,
            missing: Vec::new(),
            lost: Vec::new(),
            broken: Vec::new(),
        };
        Self {
            state,
            next: progress.low.map(|low| low.get(stream)),
            last: None,
        }
    }

    fn add(&mut self, record: &IntactRecord<'_>, progress: &RecordedProgress) {
        let seq = record.header.seq;
        // Sealed entries before the first intact one may have been deleted regularly, so without the base only unsealed
        // ones count as missing. Without the header it is unknown which are sealed, so none does.
        let first = if progress.header {
            seq.min(self.state.sealed)
        } else {
            seq
        };
        self.add_gap(self.next.unwrap_or(first)..seq);
        self.next = Some(seq + 1);
        if self
            .last
            .is_some_and(|(last, hash)| last + 1 == seq && hash != record.header.prev)
        {
            self.state.broken.push(seq);
        }
        self.last = Some((seq, tree::leaf(record.entry)));
        self.state.records += 1;
        self.state.unsealed += u64::from(seq >= self.state.sealed && seq > 0);
    }

    fn add_gap(&mut self, missing: Range<u64>) {
        if missing.is_empty() {
            return;
        }
        let lost = missing.start.max(self.state.sealed)..missing.end;
        if !lost.is_empty() {
            self.state.lost.push(lost);
        }
        self.state.missing.push(missing);
    }

    fn end(mut self, progress: &RecordedProgress) -> StreamState {
        let next = self.next.unwrap_or(self.state.sealed);
        self.add_gap(next..progress.high.get(self.state.stream));
        self.state
    }
}

/// The intact entries in a segment's bytes: number, entry and openings.
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

/// The offset of the first bytes that are neither a valid frame nor the unused end of the segment.
fn damage(bytes: &[u8]) -> Option<u64> {
    let mut offset = FIRST_FRAME;
    loop {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..))
            .unwrap_or_default();
        match frame::read(rest) {
            FrameRead::Frame(_, len) => offset += len as u64,
            FrameRead::Damage => return Some(offset),
            FrameRead::End | FrameRead::Short => return rest.iter().any(|byte| *byte != 0).then_some(offset),
        }
    }
}

/// Reads a file; pieces that cannot be read are replaced by zeros.
pub(super) fn read(path: &Path) -> Vec<u8> {
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
