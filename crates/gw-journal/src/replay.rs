//! Replays a journal after any kind of stop (HD25).
//!
//! Damage before a record that is known to be durable makes the replay fail. Damage behind the last such record loses
//! only the damaged records: intact records behind the damage are salvaged and appended again with new numbers. This is
//! safe because no caller was told that they are durable, and none of them was sealed.

use crate::cursor::RecordEnd;
use crate::error::{OpenError, at};
use crate::frame::{self, Frame, FrameRead};
use crate::header::{ChainSizes, Header};
use crate::heads::{BaseState, Heads, OpenIntents};
use crate::reader::RetainedSegment;
use crate::segment::{self, FIRST_FRAME, SegmentHead};
use crate::waiting::Waiting;
use gw_audit::{EncodedRecord, Kind};
use gw_types::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// The result of a replay.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The ends of the chains.
    pub(crate) heads: Heads,
    pub(crate) intents: OpenIntents,
    /// The number of sealed entries of each stream.
    pub(crate) sizes: ChainSizes,
    /// An end before which all entries of all streams are sealed.
    pub(crate) sealed: RecordEnd,
    pub(crate) waiting: Waiting,
    /// The bytes of all retained records.
    pub(crate) bytes: u64,
    /// The last record known to be on disk, by the header or a marker.
    pub(crate) known_lsn: u64,
    /// The frames behind `known_lsn`. They may have been read from the page cache instead of the disk: an fsync of
    /// their file may have failed, and repeating it would prove nothing (HD22). Therefore they must be written again.
    pub(crate) tail: Vec<u8>,
    /// The segments with records, oldest first.
    pub(crate) segments: Vec<RetainedSegment>,
    /// Segment files without a record that is still needed.
    pub(crate) obsolete: Vec<PathBuf>,
    /// Segment files with only zeros: segments created in advance.
    pub(crate) blank: Vec<PathBuf>,
    /// Records that must be appended again, with their original time.
    pub(crate) salvaged: Vec<(EncodedRecord, Timestamp)>,
    /// The number of lost records.
    pub(crate) torn: u64,
    /// The highest segment number in use.
    pub(crate) last_number: u64,
}

struct Candidate {
    number: u64,
    path: PathBuf,
    head: Option<SegmentHead>,
    /// The first record of the later segments: records in this segment from this number on were written again there.
    superseded_from: Option<u64>,
}

/// Replays the journal in `dir`.
pub(crate) fn replay(dir: &Path, header: &Header, base: &BaseState) -> Result<Replay, OpenError> {
    let candidates = candidates(dir, base)?;
    let start = base.heads.reached();
    let mut chain_replay = ChainReplay {
        heads: base.heads.clone(),
        intents: base.intents.clone(),
        sealed: RecordEnd::start(start, 0),
        sealed_lsn: header.sealed().lsn,
        sizes: header.sealed().sizes.max(&start.sizes),
        waiting: Waiting::default(),
        known_lsn: header.durable().lsn.max(header.sealed().lsn).max(base.heads.lsn),
        tail: VecDeque::new(),
        bytes: 0,
        segments: Vec::new(),
        obsolete: Vec::new(),
        blank: Vec::new(),
        damage: None,
        behind_damage: BTreeMap::new(),
        last_seen: 0,
    };
    for candidate in &candidates {
        chain_replay.segment(candidate)?;
    }
    let durable = header.durable();
    let known_lsn = durable.lsn.max(header.sealed().lsn);
    let replayed_sizes = chain_replay.heads.reached().sizes;
    if chain_replay.heads.lsn < known_lsn || chain_replay.sizes.beyond(&replayed_sizes).is_some() {
        if chain_replay.damage.is_none() && header.sealed().lsn >= known_lsn {
            return Err(OpenError::SealedMissing {
                dir: dir.to_owned(),
                last: known_lsn,
            });
        }
        let (path, offset) = chain_replay.damage.unwrap_or((dir.to_owned(), 0));
        return Err(OpenError::corrupt(
            &path,
            offset,
            "records known to be durable are missing",
        ));
    }
    Ok(chain_replay.end(candidates.last().map_or(0, |last| last.number)))
}

/// The segments of the directory with the start of each, oldest first.
fn candidates(dir: &Path, base: &BaseState) -> Result<Vec<Candidate>, OpenError> {
    let mut candidates = Vec::new();
    let mut superseded_from = None;
    for number in segment::list(dir)?.into_iter().rev() {
        let path = segment::path(dir, number);
        let head = segment::read_head(&first_bytes(&path)?);
        if head.is_some_and(|head| head.number != number || head.shard != base.heads.shard) {
            return Err(OpenError::corrupt(&path, 0, "the segment belongs to another journal"));
        }
        candidates.push(Candidate {
            number,
            path,
            head,
            superseded_from,
        });
        let first = head.map(|head| head.first_lsn);
        superseded_from = superseded_from.into_iter().chain(first).min();
    }
    candidates.reverse();
    Ok(candidates)
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, OpenError> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FIRST_FRAME).read_to_end(&mut bytes))
        .map_err(at(path))?;
    Ok(bytes)
}

struct ChainReplay {
    heads: Heads,
    intents: OpenIntents,
    /// An end before which all entries of all streams are sealed.
    sealed: RecordEnd,
    /// The last record up to which `sealed` may advance.
    sealed_lsn: u64,
    /// The number of sealed entries of each stream.
    sizes: ChainSizes,
    waiting: Waiting,
    known_lsn: u64,
    /// The frames behind `known_lsn`, with their numbers.
    tail: VecDeque<(u64, Vec<u8>)>,
    bytes: u64,
    segments: Vec<RetainedSegment>,
    obsolete: Vec<PathBuf>,
    blank: Vec<PathBuf>,
    /// The file and offset of the first damage, if there is any.
    damage: Option<(PathBuf, u64)>,
    /// Intact records behind the damage: entry and openings by number.
    behind_damage: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// The highest record number behind the damage.
    last_seen: u64,
}

impl ChainReplay {
    fn segment(&mut self, candidate: &Candidate) -> Result<(), OpenError> {
        let next_lsn = self.heads.lsn + 1;
        if candidate.superseded_from.is_some_and(|first| first <= next_lsn) {
            self.obsolete.push(candidate.path.clone());
            return Ok(());
        }
        if let Some(last) = candidate.head.and_then(|head| head.first_lsn.checked_sub(1))
            && self.damage.is_none()
            && (next_lsn..=self.sealed_lsn).contains(&last)
        {
            return Err(OpenError::SealedMissing {
                dir: candidate.path.parent().unwrap_or(&candidate.path).to_owned(),
                last,
            });
        }
        let bytes = std::fs::read(&candidate.path).map_err(at(&candidate.path))?;
        let is_next = candidate.head.is_some_and(|head| head.first_lsn <= next_lsn);
        if is_next && self.damage.is_none() {
            return self.frames(candidate, &bytes);
        }
        // A spare segment, or a segment behind the damage.
        if bytes.iter().all(|byte| *byte == 0) {
            self.blank.push(candidate.path.clone());
            return Ok(());
        }
        self.obsolete.push(candidate.path.clone());
        self.damaged(candidate, &bytes, 0)
    }

    fn frames(&mut self, candidate: &Candidate, bytes: &[u8]) -> Result<(), OpenError> {
        let first_lsn = self.heads.lsn + 1;
        let mut offset = FIRST_FRAME;
        let is_damaged = loop {
            if candidate.superseded_from == Some(self.heads.lsn + 1) {
                break false;
            }
            let rest = usize::try_from(offset)
                .ok()
                .and_then(|offset| bytes.get(offset..))
                .unwrap_or_default();
            match frame::read(rest) {
                FrameRead::Frame(Frame::Entry { lsn, .. }, len) if lsn <= self.heads.lsn => offset += len as u64,
                FrameRead::Frame(Frame::Entry { lsn, entry, openings }, len) if lsn == self.heads.lsn + 1 => {
                    let accepted = self.heads.accept(entry);
                    let (header, _) = accepted.map_err(|_| {
                        OpenError::corrupt(&candidate.path, offset, "an entry does not continue its chain")
                    })?;
                    let folded = self.intents.fold(header.kind, entry, openings);
                    folded.map_err(|_| OpenError::corrupt(&candidate.path, offset, "an entry cannot be read"))?;
                    offset += len as u64;
                    self.bytes += len as u64;
                    if lsn > self.known_lsn {
                        self.tail.push_back((lsn, rest.get(..len).unwrap_or_default().to_vec()));
                    }
                    let stream = header.chain.stream;
                    if header.seq >= self.sizes.get(stream) {
                        self.waiting.note(stream, header.seq, header.time);
                    }
                    if lsn <= self.sealed_lsn {
                        self.sealed.reached.lsn = lsn;
                        self.sealed.reached.sizes.set(stream, header.seq + 1);
                        (self.sealed.segment, self.sealed.offset) = (candidate.number, offset);
                        self.sealed.bytes = self.bytes;
                    }
                }
                FrameRead::Frame(Frame::Marker { lsn }, len) if lsn <= self.heads.lsn => {
                    offset += len as u64;
                    self.known_lsn = self.known_lsn.max(lsn);
                    while self.tail.pop_front_if(|(lsn, _)| *lsn <= self.known_lsn).is_some() {}
                }
                FrameRead::Frame(..) | FrameRead::Damage => break true,
                FrameRead::End | FrameRead::Short => break rest.iter().any(|byte| *byte != 0),
            }
        };
        if self.heads.lsn >= first_lsn {
            let last_time = self.heads.time();
            self.segments.push(RetainedSegment {
                number: candidate.number,
                first_lsn,
                end: offset,
                last_time,
            });
        } else {
            self.obsolete.push(candidate.path.clone());
        }
        if is_damaged {
            self.damaged(candidate, bytes, offset)
        } else {
            Ok(())
        }
    }

    /// Collects the intact records behind the damage. A marker there means that the damaged records were durable.
    fn damaged(&mut self, candidate: &Candidate, bytes: &[u8], offset: u64) -> Result<(), OpenError> {
        let (path, at) = self.damage.get_or_insert((candidate.path.clone(), offset)).clone();
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..))
            .unwrap_or_default();
        for frame in frame::scan(rest) {
            match frame {
                Frame::Marker { lsn } if lsn > self.heads.lsn => {
                    return Err(OpenError::corrupt(&path, at, "a record known to be durable is damaged"));
                }
                Frame::Marker { .. } => {}
                Frame::Entry { lsn, entry, openings } if lsn > self.heads.lsn => {
                    self.last_seen = self.last_seen.max(lsn);
                    self.behind_damage.insert(lsn, (entry.to_vec(), openings.to_vec()));
                }
                Frame::Entry { .. } => {}
            }
        }
        Ok(())
    }

    fn end(mut self, last_number: u64) -> Replay {
        let behind_damage = std::mem::take(&mut self.behind_damage);
        let torn = match (&self.damage, self.last_seen.checked_sub(self.heads.lsn)) {
            (None, _) => 0,
            // The last record was being written and is lost.
            (Some(_), None | Some(0)) => 1,
            (Some(_), Some(missing)) => missing - behind_damage.len() as u64,
        };
        let salvaged = behind_damage
            .into_values()
            .filter_map(|(entry, openings)| self.salvage(&entry, openings))
            .collect();
        Replay {
            heads: self.heads,
            intents: self.intents,
            sizes: self.sizes,
            sealed: self.sealed,
            waiting: self.waiting,
            bytes: self.bytes,
            known_lsn: self.known_lsn,
            tail: self.tail.into_iter().flat_map(|(_, frame)| frame).collect(),
            segments: self.segments,
            obsolete: self.obsolete,
            blank: self.blank,
            salvaged,
            torn,
            last_number,
        }
    }

    /// Prepares a record behind the damage to be appended again; `None` for a genesis, because a new chain gets a new
    /// one.
    fn salvage(&mut self, entry: &[u8], openings: Vec<u8>) -> Option<(EncodedRecord, Timestamp)> {
        let header = gw_audit::Header::read(entry).ok()?.0;
        self.intents.fold(header.kind, entry, &openings).ok()?;
        let record = EncodedRecord::reencode(entry, openings).ok()?;
        (header.kind != Kind::Genesis).then_some((record, header.time))
    }
}
