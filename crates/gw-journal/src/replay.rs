//! Reading a journal back after a stop of any kind (HD25).
//!
//! Damage before something known to be durable stops the shard. Damage after it costs what was damaged: whole
//! records behind it are salvaged and placed anew, since nobody was told that they are durable and none of them
//! was sealed.

use crate::cursor::RecordEnd;
use crate::error::{OpenError, at};
use crate::frame::{self, Found, Frame};
use crate::header::{Header, Sizes};
use crate::heads::{Base, Heads, OpenIntents};
use crate::reader::Kept;
use crate::segment::{self, FIRST_FRAME, SegmentHead};
use crate::waiting::Waiting;
use gw_audit::{Draft, Kind};
use gw_types::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// What was read back.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Where the chains stand.
    pub(crate) heads: Heads,
    pub(crate) intents: OpenIntents,
    /// How many entries of each stream are sealed, and a place before which all are.
    pub(crate) sizes: Sizes,
    pub(crate) sealed: RecordEnd,
    pub(crate) waiting: Waiting,
    /// The bytes of all records that are kept.
    pub(crate) bytes: u64,
    /// The last record known to be on disk, by header or marker.
    pub(crate) known: u64,
    /// The frames behind it. They were read, but from where, disk or memory, nobody knows: an fsync of their file may
    /// have failed, and to repeat it would prove nothing (HD22). They are to be written again.
    pub(crate) tail: Vec<u8>,
    /// The segments that hold something, oldest first.
    pub(crate) kept: Vec<Kept>,
    /// Files that hold nothing that counts.
    pub(crate) useless: Vec<PathBuf>,
    /// Files without a single byte: segments made in advance.
    pub(crate) blank: Vec<PathBuf>,
    /// Records to be placed anew, with the time they had.
    pub(crate) salvaged: Vec<(Draft, Timestamp)>,
    /// Records that were lost.
    pub(crate) torn: u64,
    /// The highest segment number in use.
    pub(crate) last_number: u64,
}

struct Candidate {
    number: u64,
    path: PathBuf,
    head: Option<SegmentHead>,
    /// The first record of the segments after this one: what stands here from there on was written again.
    superseded_from: Option<u64>,
}

/// Reads the journal in `dir`.
pub(crate) fn replay(dir: &Path, header: &Header, base: &Base) -> Result<Replay, OpenError> {
    let candidates = candidates(dir, base)?;
    let start = base.heads.reached();
    let mut walk = Walk {
        heads: base.heads.clone(),
        intents: base.intents.clone(),
        sealed: RecordEnd::start(start, 0),
        sealed_lsn: header.sealed().lsn,
        sizes: header.sealed().sizes.max(&start.sizes),
        waiting: Waiting::default(),
        known: header.durable().lsn.max(header.sealed().lsn).max(base.heads.lsn),
        tail: VecDeque::new(),
        bytes: 0,
        kept: Vec::new(),
        useless: Vec::new(),
        blank: Vec::new(),
        damage: None,
        behind: BTreeMap::new(),
        last_seen: 0,
    };
    for candidate in &candidates {
        walk.segment(candidate)?;
    }
    let durable = header.durable();
    let known = durable.lsn.max(header.sealed().lsn);
    if walk.heads.lsn < known || walk.sizes.beyond(&walk.heads.reached().sizes).is_some() {
        let (path, offset) = walk.damage.unwrap_or((dir.to_owned(), 0));
        return Err(OpenError::corrupt(
            &path,
            offset,
            "records known to be durable are not there",
        ));
    }
    Ok(walk.end(candidates.last().map_or(0, |last| last.number)))
}

fn candidates(dir: &Path, base: &Base) -> Result<Vec<Candidate>, OpenError> {
    let mut candidates = Vec::new();
    let mut superseded_from = None;
    for number in segment::list(dir)?.into_iter().rev() {
        let path = segment::path(dir, number);
        let head = segment::read_head(&first_bytes(&path)?);
        if head.is_some_and(|head| head.number != number || head.shard != base.heads.shard) {
            return Err(OpenError::corrupt(&path, 0, "the segment of another journal"));
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

struct Walk {
    heads: Heads,
    intents: OpenIntents,
    /// A place before which nothing is unsealed, and how far it may go.
    sealed: RecordEnd,
    sealed_lsn: u64,
    /// Sealed entries.
    sizes: Sizes,
    waiting: Waiting,
    known: u64,
    /// The frames behind `known`, by number.
    tail: VecDeque<(u64, Vec<u8>)>,
    bytes: u64,
    kept: Vec<Kept>,
    useless: Vec<PathBuf>,
    blank: Vec<PathBuf>,
    /// Where the unbroken sequence of records ended, unless at the end.
    damage: Option<(PathBuf, u64)>,
    /// Whole records behind the damage.
    behind: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    last_seen: u64,
}

impl Walk {
    fn segment(&mut self, candidate: &Candidate) -> Result<(), OpenError> {
        let due = self.heads.lsn + 1;
        if candidate.superseded_from.is_some_and(|first| first <= due) {
            self.useless.push(candidate.path.clone());
            return Ok(());
        }
        let bytes = std::fs::read(&candidate.path).map_err(at(&candidate.path))?;
        let follows = candidate.head.is_some_and(|head| head.first_lsn <= due);
        if follows && self.damage.is_none() {
            return self.frames(candidate, &bytes);
        }
        // A spare segment, or one whose place is behind the damage.
        if bytes.iter().all(|byte| *byte == 0) {
            self.blank.push(candidate.path.clone());
            return Ok(());
        }
        self.useless.push(candidate.path.clone());
        self.damaged(candidate, &bytes, 0)
    }

    fn frames(&mut self, candidate: &Candidate, bytes: &[u8]) -> Result<(), OpenError> {
        let first_lsn = self.heads.lsn + 1;
        let mut offset = FIRST_FRAME;
        let damaged = loop {
            if candidate.superseded_from == Some(self.heads.lsn + 1) {
                break false;
            }
            let rest = usize::try_from(offset)
                .ok()
                .and_then(|offset| bytes.get(offset..))
                .unwrap_or_default();
            match frame::read(rest) {
                Found::Frame(Frame::Entry { lsn, .. }, len) if lsn <= self.heads.lsn => offset += len as u64,
                Found::Frame(Frame::Entry { lsn, entry, openings }, len) if lsn == self.heads.lsn + 1 => {
                    let taken = self.heads.accept(entry);
                    let (header, _) = taken.map_err(|_| {
                        OpenError::corrupt(&candidate.path, offset, "an entry does not continue its chain")
                    })?;
                    let folded = self.intents.fold(header.kind, entry, openings);
                    folded.map_err(|_| OpenError::corrupt(&candidate.path, offset, "an entry cannot be read"))?;
                    offset += len as u64;
                    self.bytes += len as u64;
                    if lsn > self.known {
                        self.tail.push_back((lsn, rest.get(..len).unwrap_or_default().to_vec()));
                    }
                    let stream = header.chain.stream;
                    if header.seq >= self.sizes.of(stream) {
                        self.waiting.note(stream, header.seq, header.time);
                    }
                    if lsn <= self.sealed_lsn {
                        self.sealed.reached.lsn = lsn;
                        self.sealed.reached.sizes.set(stream, header.seq + 1);
                        (self.sealed.segment, self.sealed.offset) = (candidate.number, offset);
                        self.sealed.bytes = self.bytes;
                    }
                }
                Found::Frame(Frame::Marker { lsn }, len) if lsn <= self.heads.lsn => {
                    offset += len as u64;
                    self.known = self.known.max(lsn);
                    while self.tail.pop_front_if(|(lsn, _)| *lsn <= self.known).is_some() {}
                }
                Found::Frame(..) | Found::Damage => break true,
                Found::End | Found::Short => break rest.iter().any(|byte| *byte != 0),
            }
        };
        if self.heads.lsn >= first_lsn {
            let last_time = self.heads.time();
            self.kept.push(Kept {
                number: candidate.number,
                first_lsn,
                end: offset,
                last_time,
            });
        } else {
            self.useless.push(candidate.path.clone());
        }
        if damaged {
            self.damaged(candidate, bytes, offset)
        } else {
            Ok(())
        }
    }

    /// Collects what is whole behind the damage. A marker there says that the damage was durable once.
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
                    self.behind.insert(lsn, (entry.to_vec(), openings.to_vec()));
                }
                Frame::Entry { .. } => {}
            }
        }
        Ok(())
    }

    fn end(mut self, last_number: u64) -> Replay {
        let behind = std::mem::take(&mut self.behind);
        let torn = match (&self.damage, self.last_seen.checked_sub(self.heads.lsn)) {
            (None, _) => 0,
            // Something was being written, and nothing came after it.
            (Some(_), None | Some(0)) => 1,
            (Some(_), Some(missing)) => missing - behind.len() as u64,
        };
        let salvaged = behind
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
            known: self.known,
            tail: self.tail.into_iter().flat_map(|(_, frame)| frame).collect(),
            kept: self.kept,
            useless: self.useless,
            blank: self.blank,
            salvaged,
            torn,
            last_number,
        }
    }

    /// A genesis is not placed anew: the chain gets one of its own.
    fn salvage(&mut self, entry: &[u8], openings: Vec<u8>) -> Option<(Draft, Timestamp)> {
        let header = gw_audit::Header::read(entry).ok()?.0;
        self.intents.fold(header.kind, entry, &openings).ok()?;
        let draft = Draft::again(entry, openings).ok()?;
        (header.kind != Kind::Genesis).then_some((draft, header.time))
    }
}
