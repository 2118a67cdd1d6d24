//! Salvages a journal that does not open (HD25): no file is deleted, and no intact record is given up.
//!
//! [`Salvage::inspect`] reads the files and reports their state. [`Salvage::confirm`] creates a new shard with the
//! intact unsealed records and with records of the losses, and sets the damaged files aside.

mod scan;

use crate::disk;
use crate::error::{JournalError, OpenError, at};
use crate::given_up;
use crate::header::{ChainSizes, Header};
use crate::heads::{BaseState, OpenIntents};
use crate::journal::{Journal, JournalConfig};
use crate::lock::DirLock;
use crate::{open, replay};
use gw_audit::{ChainId, EncodedRecord, Kind, Record, SecurityEvent, SecurityKind, ShardId, Stream};
use gw_types::{Clock, Entropy, Timestamp};
use scan::Scan;
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
    findings: Findings,
    scan: Scan,
    /// Sends whose intent is sealed and whose outcome is not sealed.
    intents: OpenIntents,
    /// The number of entries of each stream that are known to be in the store.
    sealed: ChainSizes,
}

/// The state of a journal directory.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The shard, if there is one.
    pub shard: Option<ShardId>,
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
    /// # Errors
    /// [`OpenError::Held`] while a process uses the directory, [`OpenError::Io`] if the directory cannot be read,
    /// [`OpenError::Corrupt`] if the shard's files are missing.
    pub fn inspect(dir: &Path, holder: &str) -> Result<Self, OpenError> {
        std::fs::read_dir(dir).map_err(at(dir))?;
        let lock = Arc::new(DirLock::acquire(dir, holder)?);
        let (shard, mut refusal) = match open::read_shard_id(dir) {
            Ok(shard) => (shard, None),
            Err(error) => (largest_shard(dir)?, Some(error)),
        };
        let Some(shard) = shard else {
            let (findings, scan) = (Findings::default(), Scan::default());
            let (intents, sealed) = (OpenIntents::default(), ChainSizes::default());
            return Ok(Self {
                dir: dir.to_owned(),
                lock,
                refusal,
                findings,
                scan,
                intents,
                sealed,
            });
        };
        let files = open::shard_dir(dir, shard);
        if !files.is_dir() {
            return Err(OpenError::corrupt(
                &files,
                0,
                "the directory of the shard is missing; there is nothing to salvage",
            ));
        }
        let (header, base) = (Header::open(&files, shard), BaseState::load(&files, shard));
        let replayed = match (&header, &base) {
            (Ok(header), Ok(base)) => replay::replay(&files, header, base).err(),
            (Err(_), _) | (_, Err(_)) => None,
        };
        let (header, base) = (or_refusal(header, &mut refusal), or_refusal(base, &mut refusal));
        refusal = refusal.or(replayed);
        let base_sizes = base.as_ref().map(|base| base.heads.reached().sizes);
        let sealed = header.as_ref().map(|header| header.sealed().sizes).unwrap_or_default();
        let sealed = sealed.max(&base_sizes.unwrap_or_default());
        let scan = Scan::new(&files, shard)?;
        let progress = scan::RecordedProgress {
            low: base_sizes,
            sealed,
            high: header
                .as_ref()
                .map(|header| header.durable().sizes)
                .unwrap_or_default()
                .max(&sealed),
            header: header.is_some(),
        };
        let mut intents = base.as_ref().map(|base| base.intents.clone()).unwrap_or_default();
        let mut all_intents = intents.clone();
        let (segments, streams) = scan.tally(&progress, |record| {
            // Errors are ignored: an entry that cannot be decoded changes no open send.
            let _ = all_intents.fold(record.header.kind, record.entry, record.openings);
            if record.header.seq < sealed.get(record.header.chain.stream) {
                let _ = intents.fold(record.header.kind, record.entry, record.openings);
            }
        });
        let (header, base) = (header.is_some(), base.is_some());
        let findings = Findings {
            shard: Some(shard),
            header,
            base,
            segments,
            streams,
            open_intents: all_intents.len(),
        };
        Ok(Self {
            dir: dir.to_owned(),
            lock,
            refusal,
            findings,
            scan,
            intents,
            sealed,
        })
    }

    /// Why the journal does not open; `None` if it opens and needs no salvage.
    pub const fn refusal(&self) -> Option<&OpenError> {
        self.refusal.as_ref()
    }

    /// The state of the directory.
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Calls `visit` with number and bytes of each intact sealed entry of a stream from number `from` on, in ascending
    /// order. Some entries may be missing.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the files cannot be read.
    pub fn each_sealed(&self, stream: Stream, from: u64, mut visit: impl FnMut(u64, &[u8])) -> Result<(), OpenError> {
        let sealed = self.sealed.get(stream);
        self.scan.each(|record| {
            let seq = record.header.seq;
            if record.header.chain.stream == stream && (from..sealed).contains(&seq) {
                visit(seq, record.entry);
            }
            Ok(())
        })
    }

    /// Creates a new shard of the intact unsealed records, followed by a `journal_lost` record for each lost range, and
    /// sets the damaged files aside as `<shard>.damaged-<time>`. `config.dir` is ignored.
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
        let Self {
            dir,
            lock,
            findings,
            scan,
            intents,
            sealed,
            ..
        } = self;
        let old_dirs: Vec<PathBuf> = open::shard_dirs(&dir)?;
        let shard = ShardId(entropy.uuid());
        let config = JournalConfig {
            dir: dir.clone(),
            ..config
        };
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
        scan.each(|record| {
            let header = &record.header;
            // The new chains have their own genesis.
            if header.kind == Kind::Genesis || header.seq < sealed.get(header.chain.stream) {
                return Ok(());
            }
            let Ok(encoded) = EncodedRecord::reencode(record.entry, record.openings.to_vec()) else {
                return Ok(());
            };
            records += 1;
            next.import(&encoded, header.time).map_err(write_error)
        })?;
        for event in findings.streams.iter().flat_map(loss_events) {
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
        if let Some(old_shard) = findings.shard.filter(|_| findings.header) {
            let without_loss = findings.streams.iter().filter(|stream| stream.lost.is_empty());
            given_up::append(
                &dir,
                without_loss.map(|state| ChainId {
                    stream: state.stream,
                    shard: old_shard,
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

/// The shard with the most files, for a directory that does not name its shard.
fn largest_shard(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    let mut largest = None;
    for path in open::shard_dirs(dir)? {
        let id = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| uuid::Uuid::parse_str(name).ok());
        let files = std::fs::read_dir(&path).map_err(at(&path))?.count();
        largest = largest.max(id.map(|id| (files, id)));
    }
    Ok(largest.map(|(_, id)| ShardId(id)))
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
