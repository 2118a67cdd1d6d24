//! Salvages a journal that does not open (HD25): no file is deleted, and no intact record is given up.
//!
//! [`Salvage::inspect`] reads the files and reports their state. [`Salvage::confirm`] creates a new shard with the
//! intact unsealed records and with records of the losses, and sets the damaged files aside.

mod scan;
mod shard;

use crate::disk;
use crate::error::{JournalError, OpenError, at};
use crate::given_up;
use crate::heads::OpenIntents;
use crate::journal::{Journal, JournalConfig};
use crate::lock::DirLock;
use crate::open;
use gw_audit::{ChainId, EncodedRecord, Kind, Record, SecurityEvent, SecurityKind, ShardId, Stream};
use gw_types::{Clock, Entropy, Timestamp};
use shard::DamagedShard;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file in the directory of a given-up shard; it holds the name under which the directory is to be set aside.
const MARKER: &str = "damaged";
/// The largest number of loss records for one stream; the last one spans all remaining ranges.
const MAX_LOSS_EVENTS: usize = 64;

/// A journal directory that this process has locked and inspected.
#[derive(Debug)]
pub struct Salvage {
    dir: PathBuf,
    lock: Arc<DirLock>,
    refusal: Option<OpenError>,
    shards: Vec<DamagedShard>,
    /// The directories of shards that an interrupted move to another shard left behind.
    leftovers: Vec<PathBuf>,
}

/// The state of one shard.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The shard to which the files belong.
    pub shard: ShardId,
    /// The directory of the files.
    pub dir: PathBuf,
    /// Whether the header can be read. Without it, the journal does not know which records are sealed.
    pub header: bool,
    /// Whether the state before the oldest segment can be read. Without it, earlier open sends are unknown.
    pub base: bool,
    /// The segments that are not blank, oldest first.
    pub segments: Vec<SegmentState>,
    /// The streams that have records.
    pub streams: Vec<StreamState>,
    /// Sends without a recorded outcome.
    pub open_intents: usize,
}

/// The state of one segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// The file.
    pub path: PathBuf,
    /// The number of intact records.
    pub records: u64,
    /// The offset of the first damage in bytes.
    pub damaged_at: Option<u64>,
}

/// The state of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// The stream.
    pub stream: Stream,
    /// The number of intact entries, including the genesis.
    pub records: u64,
    /// The number of entries that the store is known to have.
    pub sealed: u64,
    /// The number of intact entries that are not sealed, without the genesis. A salvage keeps them.
    pub unsealed: u64,
    /// The numbers that are missing in the journal.
    pub missing: Vec<Range<u64>>,
    /// The missing numbers that are not sealed either: these entries are lost.
    pub lost: Vec<Range<u64>>,
    /// The numbers of intact entries that do not link to the previous entry: one of the two was changed.
    pub broken: Vec<u64>,
}

/// The result of a salvage.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The new shard.
    pub shard: ShardId,
    /// The number of records that were moved to the new shard.
    pub records: u64,
    /// The directories of the damaged files, after they were set aside.
    pub aside: Vec<PathBuf>,
}

impl Findings {
    /// The number of lost records in all streams.
    pub fn lost(&self) -> u64 {
        self.streams
            .iter()
            .flat_map(|stream| &stream.lost)
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl Salvage {
    /// Locks the directory and reads its files; changes no record.
    ///
    /// If the directory names its shard, that shard is read. Otherwise every shard in it is read, because each may have
    /// records that are nowhere else.
    ///
    /// # Errors
    /// [`OpenError::Held`] while a process uses the directory, [`OpenError::Io`] if the directory cannot be read,
    /// [`OpenError::Corrupt`] if it names a shard and has none.
    pub fn inspect(dir: &Path, holder: &str) -> Result<Self, OpenError> {
        std::fs::read_dir(dir).map_err(at(dir))?;
        let lock = Arc::new(DirLock::acquire(dir, holder)?);
        let (named, mut refusal) = match open::read_shard_id(dir) {
            Ok(shard) => (shard, None),
            Err(error) => (None, Some(error)),
        };
        let named_dir = named.map(|shard| open::shard_dir(dir, shard));
        let others = open::shard_dirs(dir)?;
        let others: Vec<PathBuf> = others
            .into_iter()
            .filter(|path| Some(path) != named_dir.as_ref())
            .collect();
        let (mut shards, mut leftovers) = (Vec::new(), Vec::new());
        match named.zip(named_dir) {
            Some((shard, files)) if files.is_dir() => {
                shards.push(DamagedShard::inspect(&files, shard, &mut refusal)?);
                leftovers.extend(others);
            }
            missing => {
                if let Some((_, files)) = &missing {
                    refusal.get_or_insert_with(|| open::missing_shard(files));
                }
                let (unfinished, complete): (Vec<_>, Vec<_>) =
                    others.into_iter().partition(|path| open::is_unfinished(path));
                leftovers.extend(unfinished);
                for (files, shard) in by_size(complete)? {
                    shards.push(DamagedShard::inspect(&files, shard, &mut refusal)?);
                }
                if shards.is_empty() && missing.is_some() {
                    return Err(OpenError::corrupt(
                        &dir.join(open::SHARD),
                        0,
                        "the directory of the shard that it names is missing, and there is no other shard to salvage: \
                         bring the directory back, or remove this file to begin a new journal",
                    ));
                }
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            lock,
            refusal,
            shards,
            leftovers,
        })
    }

    /// Why the journal does not open; `None` if it opens and needs no salvage.
    pub const fn refusal(&self) -> Option<&OpenError> {
        self.refusal.as_ref()
    }

    /// The state of each shard that a salvage continues with.
    pub fn findings(&self) -> impl Iterator<Item = &Findings> {
        self.shards.iter().map(|shard| &shard.findings)
    }

    /// The directories of other shards, left behind by an interrupted move: their records are in the named shard, too.
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.leftovers
    }

    /// Calls `visit` with number and bytes of each intact sealed entry of a chain from number `from` on, in ascending
    /// order. Some entries may be missing.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the files cannot be read.
    pub fn each_sealed(&self, chain: ChainId, from: u64, mut visit: impl FnMut(u64, &[u8])) -> Result<(), OpenError> {
        let shards = self.shards.iter().filter(|shard| shard.findings.shard == chain.shard);
        for shard in shards {
            let sealed = shard.sealed.get(chain.stream);
            shard.scan.each(|record| {
                let seq = record.header.seq;
                if record.header.chain.stream == chain.stream && (from..sealed).contains(&seq) {
                    visit(seq, record.entry);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Creates a new shard of the intact unsealed records of all inspected shards, followed by a `journal_lost` record
    /// for each lost range, and sets the damaged files aside as `<shard>.damaged-<time>`. `config.dir` is ignored.
    ///
    /// The directory names the damaged shard until the new one is complete on disk, so after a crash the journal is the
    /// old or the new shard.
    ///
    /// # Errors
    /// [`OpenError`] if the new shard cannot be written, or the old files cannot be set aside.
    pub fn confirm(
        self,
        config: JournalConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Salvaged, OpenError> {
        let Self { dir, lock, shards, .. } = self;
        let old_dirs: Vec<PathBuf> = open::shard_dirs(&dir)?;
        let shard = ShardId(entropy.uuid());
        let config = JournalConfig {
            dir: dir.clone(),
            ..config
        };
        let mut intents = OpenIntents::default();
        shards.iter().for_each(|old| intents.extend(&old.intents));
        open::create_shard(&dir, shard, intents)?;
        let (next, _) = open::open_shard(
            config,
            shard,
            Arc::clone(&lock),
            Arc::clone(&clock),
            Arc::clone(&entropy),
        )?;
        let write_error = |error: JournalError| at(&dir)(std::io::Error::other(error));
        let mut records = 0;
        // Two directories may have the same shard, if one is a copy.
        let mut moved: BTreeMap<ChainId, u64> = BTreeMap::new();
        for old in &shards {
            old.scan.each(|record| {
                let header = &record.header;
                let next_seq = moved.entry(header.chain).or_default();
                // The new chains have their own genesis.
                let is_sealed = header.seq < old.sealed.get(header.chain.stream);
                if header.kind == Kind::Genesis || is_sealed || header.seq < *next_seq {
                    return Ok(());
                }
                *next_seq = header.seq.saturating_add(1);
                let Ok(encoded) = EncodedRecord::reencode(record.entry, record.openings.to_vec()) else {
                    return Ok(());
                };
                records += 1;
                next.import(&encoded, header.time).map_err(write_error)
            })?;
        }
        let streams = shards.iter().flat_map(|old| &old.findings.streams);
        for event in streams.flat_map(loss_events) {
            next.import(&EncodedRecord::new(&Record::Security(event), &*entropy), clock.now())
                .map_err(write_error)?;
        }
        next.sync().map_err(write_error)?;
        drop(next);
        let time = clock.now();
        for old_dir in &old_dirs {
            let name = aside_name(old_dir, time);
            disk::replace(&old_dir.join(MARKER), name.as_bytes()).map_err(at(old_dir))?;
        }
        for old in shards.iter().filter(|old| old.findings.header) {
            let without_loss = old.findings.streams.iter().filter(|stream| stream.lost.is_empty());
            given_up::append(
                &dir,
                without_loss.map(|state| ChainId {
                    stream: state.stream,
                    shard: old.findings.shard,
                }),
            )?;
        }
        open::write_shard_id(&dir, shard)?;
        let mut aside = Vec::new();
        for old_dir in old_dirs {
            let target = old_dir.with_file_name(aside_name(&old_dir, time));
            disk::rename(&old_dir, &target).map_err(at(&old_dir))?;
            aside.push(target);
        }
        drop(lock);
        Ok(Salvaged { shard, records, aside })
    }
}

/// The value, or `None` after storing the error in `refusal`, if that has no earlier one.
fn or_refusal<T>(result: Result<T, OpenError>, refusal: &mut Option<OpenError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            refusal.get_or_insert(error);
            None
        }
    }
}

/// Shard directories with the shards that their names give, those with the most files first.
fn by_size(dirs: Vec<PathBuf>) -> Result<Vec<(PathBuf, ShardId)>, OpenError> {
    let mut shards = Vec::new();
    for path in dirs {
        let files = std::fs::read_dir(&path).map_err(at(&path))?.count();
        let name = path.file_name().and_then(|name| name.to_str());
        let id = name.and_then(|name| uuid::Uuid::parse_str(name).ok());
        shards.extend(id.map(|id| (files, path, ShardId(id))));
    }
    shards.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Ok(shards.into_iter().map(|(_, path, id)| (path, id)).collect())
}

/// The security events about a stream's lost and broken entries.
fn loss_events(state: &StreamState) -> Vec<SecurityEvent> {
    let new_event = |kind, count, reason: String| {
        let mut event = SecurityEvent::new(kind);
        (event.count, event.reason) = (Some(count), Some(reason.into()));
        event
    };
    let lost = |ranges: &[Range<u64>]| {
        let (first, last) = (ranges.first()?, ranges.last()?);
        let count = ranges.iter().map(|range| range.end - range.start).sum();
        Some(new_event(
            SecurityKind::JournalLost,
            count,
            format!("{}:{}..{}", state.stream, first.start, last.end),
        ))
    };
    let (single, rest) = state.lost.split_at(state.lost.len().min(MAX_LOSS_EVENTS - 1));
    let broken = state.broken.iter().take(MAX_LOSS_EVENTS);
    let broken = broken.map(|seq| new_event(SecurityKind::TamperDetected, 1, format!("{}:{seq}", state.stream)));
    single
        .iter()
        .map(std::slice::from_ref)
        .chain([rest])
        .filter_map(lost)
        .chain(broken)
        .collect()
}

/// The name of a directory that is set aside, such as `<shard>.damaged-20260131T235959Z`.
fn aside_name(path: &Path, time: Timestamp) -> String {
    let shard = path.file_name().unwrap_or_default().to_string_lossy();
    let time: String = time
        .to_rfc3339()
        .chars()
        .take(19)
        .filter(|char| !"-:".contains(*char))
        .collect();
    format!("{shard}.damaged-{time}Z")
}

/// Sets a shard's directory aside, if an interrupted salvage gave it up; returns whether it did.
pub(crate) fn set_aside_if_damaged(shard: &Path) -> Result<bool, OpenError> {
    match std::fs::read_to_string(shard.join(MARKER)) {
        Ok(name) => {
            let is_file_name = Path::new(&name).file_name().is_some_and(|file| file == name.as_str());
            let target = if is_file_name {
                shard.with_file_name(name)
            } else {
                shard.with_extension("damaged")
            };
            disk::rename(shard, &target).map_err(at(shard)).map(|()| true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(shard)(error)),
    }
}

impl Journal {
    /// Appends a record of another shard, without checking the size limit. The records are synced from time to time, so
    /// that memory use stays bounded.
    pub(crate) fn import(&self, record: &EncodedRecord, time: Timestamp) -> Result<(), JournalError> {
        let mut writer = self.shared.writer()?;
        writer.append(record, time, u64::MAX)?;
        let must_sync = writer.unsynced.len() > 16 << 20;
        drop(writer);
        if must_sync { self.sync() } else { Ok(()) }
    }
}
