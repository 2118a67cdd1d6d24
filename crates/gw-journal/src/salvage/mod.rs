//! What can be kept of a journal that refuses to open (HD25): nothing is deleted, and nothing whole is given up.
//!
//! [`Salvage::inspect`] reads and says what is there. [`Salvage::confirm`] makes a new shard of the whole records that
//! are not sealed, notes in it what is lost, and sets the damaged files aside.

mod scan;

use crate::disk;
use crate::error::{JournalError, OpenError, at};
use crate::given_up;
use crate::header::{Header, Sizes};
use crate::heads::{Base, OpenIntents};
use crate::journal::{Journal, Options};
use crate::lock::DirLock;
use crate::{open, replay};
use gw_audit::{ChainId, Draft, Kind, Record, SecurityEvent, SecurityKind, ShardId, Stream};
use gw_types::{Clock, Entropy, Timestamp};
use scan::Scan;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In a shard's directory: it was given up, under this name it is to be set aside.
const MARKER: &str = "damaged";
/// At most so many ranges of one stream get a record of their own; the last one then spans the rest.
const MOST_NOTES: usize = 64;

/// A journal directory, held by this process and read through.
#[derive(Debug)]
pub struct Salvage {
    dir: PathBuf,
    lock: Arc<DirLock>,
    refusal: Option<OpenError>,
    findings: Findings,
    scan: Scan,
    /// Sends whose intent is sealed and whose outcome is not recorded.
    intents: OpenIntents,
    /// The entries known to be in the store.
    sealed: Sizes,
}

/// What is in a journal directory.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The shard, if there is one.
    pub shard: Option<ShardId>,
    /// Whether the header can be read. Without it nobody knows here what is sealed.
    pub header: bool,
    /// Whether the state before the oldest segment can be read. Without it sends opened before are forgotten.
    pub base: bool,
    /// The segments that hold something, oldest first.
    pub segments: Vec<SegmentState>,
    /// The streams that have records.
    pub streams: Vec<StreamState>,
    /// Sends without a recorded outcome.
    pub open_intents: usize,
}

/// One segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// The file.
    pub path: PathBuf,
    /// Whole records in it.
    pub records: u64,
    /// Where its first damage is.
    pub damaged_at: Option<u64>,
}

/// One stream's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// The stream.
    pub stream: Stream,
    /// Whole entries, the genesis included.
    pub records: u64,
    /// Entries the store is known to have.
    pub sealed: u64,
    /// Whole entries that are not sealed, without the genesis: these are kept.
    pub unsealed: u64,
    /// Numbers that are not here.
    pub missing: Vec<Range<u64>>,
    /// Those of them that are not sealed either: lost.
    pub lost: Vec<Range<u64>>,
    /// Whole entries that do not name the hash of the one before: somebody changed one of the two.
    pub broken: Vec<u64>,
}

/// What became of a damaged journal.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The new shard.
    pub shard: ShardId,
    /// Records that go on in it.
    pub records: u64,
    /// Where the damaged files are now.
    pub aside: Vec<PathBuf>,
}

impl Findings {
    /// How many records are lost.
    pub fn lost(&self) -> u64 {
        self.streams
            .iter()
            .flat_map(|stream| &stream.lost)
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl Salvage {
    /// Takes the directory and reads what is in it; changes nothing.
    ///
    /// # Errors
    /// [`OpenError::Held`] while a process uses the directory, [`OpenError::Io`] if there is none.
    pub fn inspect(dir: &Path, holder: &str) -> Result<Self, OpenError> {
        std::fs::read_dir(dir).map_err(at(dir))?;
        let lock = Arc::new(DirLock::acquire(dir, holder)?);
        let (shard, mut refusal) = match open::named_shard(dir) {
            Ok(named) => (named, None),
            Err(error) => (fullest(dir)?, Some(error)),
        };
        let Some(shard) = shard else {
            let (findings, scan) = (Findings::default(), Scan::default());
            let (intents, sealed) = (OpenIntents::default(), Sizes::default());
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
                "the directory of the shard is missing; there is nothing to keep",
            ));
        }
        let (header, base) = (Header::open(&files, shard), Base::load(&files, shard));
        let replayed = match (&header, &base) {
            (Ok(header), Ok(base)) => replay::replay(&files, header, base).err(),
            (Err(_), _) | (_, Err(_)) => None,
        };
        let (header, base) = (keep(header, &mut refusal), keep(base, &mut refusal));
        refusal = refusal.or(replayed);
        let base_sizes = base.as_ref().map(|base| base.heads.reached().sizes);
        let sealed = header.as_ref().map(|header| header.sealed().sizes).unwrap_or_default();
        let sealed = sealed.max(&base_sizes.unwrap_or_default());
        let scan = Scan::of(&files, shard)?;
        let known = scan::RecordedProgress {
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
        let mut all = intents.clone();
        let (segments, streams) = scan.tally(&known, |whole| {
            // What cannot be read as an intent is none.
            let _ = all.fold(whole.header.kind, whole.entry, whole.openings);
            if whole.header.seq < sealed.of(whole.header.chain.stream) {
                let _ = intents.fold(whole.header.kind, whole.entry, whole.openings);
            }
        });
        let (header, base) = (header.is_some(), base.is_some());
        let findings = Findings {
            shard: Some(shard),
            header,
            base,
            segments,
            streams,
            open_intents: all.len(),
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

    /// Why the journal does not open; `None` if it does, and nothing is to be salvaged.
    pub const fn refusal(&self) -> Option<&OpenError> {
        self.refusal.as_ref()
    }

    /// What was found.
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Makes a new shard of the whole records that are not sealed, followed by a `journal_lost` record for each range
    /// that is lost, and sets the damaged files aside as `<shard>.damaged-<time>`. `options.dir` does not matter.
    ///
    /// The damaged shard is the directory's until the new one is whole on disk, so a crash leaves one or the other.
    pub fn confirm(
        self,
        options: Options,
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
        let old: Vec<PathBuf> = open::shard_dirs(&dir)?;
        let shard = ShardId(entropy.uuid());
        let options = Options {
            dir: dir.clone(),
            ..options
        };
        open::make(&dir, shard, intents)?;
        let (next, _) = open::shard_in(
            options,
            shard,
            Arc::clone(&lock),
            Arc::clone(&clock),
            Arc::clone(&entropy),
        )?;
        let refused = |error: JournalError| at(&dir)(std::io::Error::other(error));
        let mut records = 0;
        scan.each(|whole| {
            let header = &whole.header;
            // The new chains have a genesis of their own.
            if header.kind == Kind::Genesis || header.seq < sealed.of(header.chain.stream) {
                return Ok(());
            }
            let Ok(draft) = Draft::again(whole.entry, whole.openings.to_vec()) else {
                return Ok(());
            };
            records += 1;
            next.place(&draft, header.time).map_err(refused)
        })?;
        for event in findings.streams.iter().flat_map(notes) {
            next.place(&Draft::new(&Record::Security(event), &*entropy), clock.now())
                .map_err(refused)?;
        }
        next.sync().map_err(refused)?;
        drop(next);
        let time = clock.now();
        for old in &old {
            let name = aside_name(old, time);
            disk::replace(&old.join(MARKER), name.as_bytes()).map_err(at(old))?;
        }
        if let Some(old) = findings.shard.filter(|_| findings.header) {
            let whole = findings.streams.iter().filter(|found| found.lost.is_empty());
            given_up::append(
                &dir,
                whole.map(|found| ChainId {
                    stream: found.stream,
                    shard: old,
                }),
            )?;
        }
        open::name_shard(&dir, shard)?;
        let mut aside = Vec::new();
        for old in old {
            let target = old.with_file_name(aside_name(&old, time));
            disk::rename(&old, &target).map_err(at(&old))?;
            aside.push(target);
        }
        drop(lock);
        Ok(Salvaged { shard, records, aside })
    }
}

/// Keeps the first error as the reason why the journal does not open.
fn keep<T>(result: Result<T, OpenError>, refusal: &mut Option<OpenError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            refusal.get_or_insert(error);
            None
        }
    }
}

/// Without a name, the shard with the most files in it.
fn fullest(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    let mut best = None;
    for path in open::shard_dirs(dir)? {
        let id = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| uuid::Uuid::parse_str(name).ok());
        let files = std::fs::read_dir(&path).map_err(at(&path))?.count();
        best = best.max(id.map(|id| (files, id)));
    }
    Ok(best.map(|(_, id)| ShardId(id)))
}

/// The records that tell of a stream's losses.
fn notes(state: &StreamState) -> Vec<SecurityEvent> {
    let note = |kind, count, reason: String| {
        let mut event = SecurityEvent::new(kind);
        (event.count, event.reason) = (Some(count), Some(reason.into()));
        event
    };
    let lost = |ranges: &[Range<u64>]| {
        let (first, last) = (ranges.first()?, ranges.last()?);
        let count = ranges.iter().map(|range| range.end - range.start).sum();
        Some(note(
            SecurityKind::JournalLost,
            count,
            format!("{}:{}..{}", state.stream, first.start, last.end),
        ))
    };
    let (single, rest) = state.lost.split_at(state.lost.len().min(MOST_NOTES - 1));
    let broken = state.broken.iter().take(MOST_NOTES);
    let broken = broken.map(|seq| note(SecurityKind::TamperDetected, 1, format!("{}:{seq}", state.stream)));
    single
        .iter()
        .map(std::slice::from_ref)
        .chain([rest])
        .filter_map(lost)
        .chain(broken)
        .collect()
}

/// `<shard>.damaged-20260131T235959Z`.
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

/// Finishes what a salvage that ended too early began; whether the directory was given up by one.
pub(crate) fn set_aside_if_damaged(shard: &Path) -> Result<bool, OpenError> {
    match std::fs::read_to_string(shard.join(MARKER)) {
        Ok(name) => {
            let fits = Path::new(&name).file_name().is_some_and(|file| file == name.as_str());
            let target = if fits {
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
    /// Places a record of another shard here, without asking whether there is room. What is placed goes to disk in
    /// parts, so that memory stays small however much it is.
    pub(crate) fn place(&self, draft: &Draft, time: Timestamp) -> Result<(), JournalError> {
        let mut writer = self.shared.writer()?;
        writer.append(draft, time, u64::MAX)?;
        let much = writer.unsynced.len() > 16 << 20;
        drop(writer);
        if much { self.sync() } else { Ok(()) }
    }
}
