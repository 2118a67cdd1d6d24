//! Opens a journal: reads the shard of the directory, replays its records and prepares writing.
//!
//! ```text
//! lock            locked exclusively, names the holder
//! shard           the id of the shard, written last and replaced atomically
//! <shard>/        header, base, segments, reserve, the newest start
//! ```

use crate::cursor::{Cursors, RecordEnd};
use crate::disk;
use crate::error::{OpenError, at};
use crate::flush::Signal;
use crate::frame::MAX_PAYLOAD;
use crate::header::{ChainSizes, Header};
use crate::heads::{BaseState, Heads, OpenIntents};
use crate::journal::{Journal, JournalConfig, Recovery, Shared};
use crate::lock::DirLock;
use crate::reader::{Reader, RetainedSegment, Retention};
use crate::replay::{self, Replay};
use crate::reserve;
use crate::salvage;
use crate::segment::{self, FIRST_FRAME, Segment};
use crate::unrecorded::Unrecorded;
use crate::writer::{Durable, Writer};
use gw_audit::{Genesis, ShardId};
use gw_types::{Clock, Entropy};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use uuid::Uuid;

pub(crate) const SHARD: &str = "shard";
/// The file in the directory of a shard that the journal directory does not name yet. If another shard's move to it was
/// interrupted, its records are in the other shard, too.
const UNFINISHED: &str = "unfinished";

/// Opens or creates the journal in a directory that is already locked.
pub(crate) fn journal(
    config: JournalConfig,
    lock: Arc<DirLock>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Journal, Recovery), OpenError> {
    let shard = match read_shard_id(&config.dir)? {
        Some(shard) => shard,
        None => {
            let shard = ShardId(entropy.uuid());
            create_shard(&config.dir, shard, OpenIntents::default())?;
            write_shard_id(&config.dir, shard)?;
            shard
        }
    };
    remove_other_shards(&config.dir, shard)?;
    finish_shard(&config.dir, shard)?;
    open_shard(config, shard, lock, clock, entropy)
}

/// Reads the shard id of a journal directory; `None` if there is no journal. Takes no lock.
///
/// # Errors
/// [`OpenError`] if the directory cannot be read, or the file that names the shard is damaged.
pub fn shard_of(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    if dir.is_dir() { read_shard_id(dir) } else { Ok(None) }
}

/// The directory of a shard's files.
pub(crate) fn shard_dir(dir: &Path, shard: ShardId) -> PathBuf {
    dir.join(shard.to_string())
}

/// Creates the files of a shard without records.
pub(crate) fn create_shard(dir: &Path, shard: ShardId, intents: OpenIntents) -> Result<(), OpenError> {
    let files = shard_dir(dir, shard);
    std::fs::create_dir_all(&files).map_err(at(&files))?;
    disk::replace(&files.join(UNFINISHED), &[]).map_err(at(&files))?;
    BaseState {
        heads: Heads::new(shard),
        intents,
    }
    .save(&files)
    .map_err(at(&files))?;
    Header::create(&files, shard)?;
    disk::sync_dir(&files)
        .and_then(|()| disk::sync_dir(dir))
        .map_err(at(dir))
}

/// Makes `shard` the shard of the directory.
pub(crate) fn write_shard_id(dir: &Path, shard: ShardId) -> Result<(), OpenError> {
    let path = dir.join(SHARD);
    disk::replace(&path, shard.to_string().as_bytes()).map_err(at(&path))?;
    finish_shard(dir, shard)
}

/// Whether a shard was created and never named.
pub(crate) fn is_unfinished(shard_dir: &Path) -> bool {
    shard_dir.join(UNFINISHED).is_file()
}

/// Marks the named shard as complete.
fn finish_shard(dir: &Path, shard: ShardId) -> Result<(), OpenError> {
    let path = shard_dir(dir, shard).join(UNFINISHED);
    if path.is_file() {
        disk::remove(&path).map_err(at(&path))?;
    }
    Ok(())
}

pub(crate) fn missing_shard(shard_dir: &Path) -> OpenError {
    OpenError::corrupt(shard_dir, 0, "the directory of the shard is missing")
}

pub(crate) fn read_shard_id(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    let path = dir.join(SHARD);
    // Opening a pipe would wait for a writer without end.
    if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(OpenError::corrupt(&path, 0, "it is not a regular file"));
    }
    match std::fs::read_to_string(&path) {
        Ok(text) => match Uuid::parse_str(text.trim()) {
            Ok(id) => Ok(Some(ShardId(id))),
            Err(_) => Err(OpenError::corrupt(&path, 0, "the shard's id cannot be read")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // The file is written before the first record, so records without it mean that it was removed.
            for shard_dir in shard_dirs(dir)? {
                if !segment::list(&shard_dir)?.is_empty() {
                    return Err(OpenError::corrupt(
                        &path,
                        0,
                        "the file is missing, but there are records",
                    ));
                }
            }
            Ok(None)
        }
        Err(error) => Err(at(&path)(error)),
    }
}

pub(crate) fn shard_dirs(dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut dirs = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        let has_shard_name = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| Uuid::parse_str(name).is_ok());
        if has_shard_name && path.is_dir() {
            dirs.push(path);
        }
    }
    Ok(dirs)
}

/// Removes what an interrupted move to a new shard left behind: the incomplete new shard, or the complete old one. A
/// damaged shard is never removed but set aside: it was left by a salvage that ended before it could do so.
fn remove_other_shards(dir: &Path, shard: ShardId) -> Result<(), OpenError> {
    let current = shard_dir(dir, shard);
    if !current.is_dir() {
        return Err(missing_shard(&current));
    }
    for other_dir in shard_dirs(dir)?.into_iter().filter(|path| *path != current) {
        if !salvage::set_aside_if_damaged(&other_dir)? {
            std::fs::remove_dir_all(&other_dir).map_err(at(&other_dir))?;
        }
    }
    Ok(())
}

/// Opens the files of one shard.
pub(crate) fn open_shard(
    config: JournalConfig,
    shard: ShardId,
    lock: Arc<DirLock>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Journal, Recovery), OpenError> {
    let dir = shard_dir(&config.dir, shard);
    let mut header = Header::open(&dir, shard)?;
    let base = BaseState::load(&dir, shard)?;
    let mut replay = replay::replay(&dir, &header, &base)?;
    let recovery = Recovery {
        open_intents: replay.intents.to_vec(),
        salvaged: replay.salvaged.len() as u64,
        torn: replay.torn,
    };
    // Blank files are removed first, because writing needs their disk space.
    replay
        .blank
        .iter()
        .try_for_each(|path| disk::remove(path).map_err(at(path)))?;
    let torn = replay.torn + recovery.salvaged;
    let mut obsolete = std::mem::take(&mut replay.obsolete);
    if torn == 0 {
        // Records of obsolete files are all in later segments. On a full disk their space is needed for writing.
        for path in std::mem::take(&mut obsolete) {
            disk::remove(&path).map_err(at(&path))?;
        }
        replay.segments.iter().try_for_each(|segment| truncate(&dir, segment))?;
    }
    let cursors = Cursors::new(&replay.sizes, replay.sealed);
    let mut reader = Reader {
        dir: dir.clone(),
        cursors,
        base,
        base_bytes: 0,
        retention: Retention {
            bytes: config.retain_bytes,
            age: config.retain_for,
        },
        open: None,
    };
    let (writer, durable) = match first_segment(&config, &dir, &replay)? {
        Some(segment) => {
            // Records that are not known to be on disk are written again, so a segment with only such records is
            // obsolete.
            for segment in replay
                .segments
                .extract_if(.., |segment| segment.first_lsn > replay.known_lsn)
            {
                obsolete.push(segment::path(&dir, segment.number));
            }
            writer(&config, &dir, replay, segment)?
        }
        None => writer_without_room(&config, &dir, replay, &mut reader)?,
    };
    header
        .note_durable(durable.borrow().end.reached)
        .and_then(|()| header.sync())
        .map_err(at(&dir))?;
    obsolete
        .iter()
        .try_for_each(|path| disk::remove(path).map_err(at(path)))?;
    reserve::keep(&dir);
    let shared = Shared {
        shard,
        catalog: Arc::clone(&writer.catalog),
        writer: Mutex::new(writer),
        reader: Mutex::new(reader),
        header: Mutex::new(header),
        durable,
        signal: Signal::default(),
        syncing: Mutex::new(()),
        unrecorded: Unrecorded::default(),
        clock,
        entropy,
    };
    {
        let stopped = || OpenError::corrupt(&config.dir, 0, "the journal stopped");
        let reader = shared.reader().map_err(|_| stopped())?;
        let slowest = reader.slowest(&shared.durable.borrow().end);
        shared
            .writer()
            .map_err(|_| stopped())?
            .note_sealed(reader.cursors.sizes(), slowest.bytes);
    }
    Ok((Journal::start(shared, lock, config)?, recovery))
}

/// Truncates a segment behind its last frame, to free the unused disk space. The caller leaves damaged journals as they
/// are, so that the damage can be investigated.
fn truncate(dir: &Path, segment: &RetainedSegment) -> Result<(), OpenError> {
    let path = segment::path(dir, segment.number);
    let file = std::fs::OpenOptions::new().write(true).open(&path).map_err(at(&path))?;
    file.set_len(segment.end).map_err(at(&path))
}

/// Creates the segment in which the writer continues. If the disk has no room for a whole segment, a smaller one is
/// created: it has room for at least one admission, and truncating the old segments makes room for the next one. `None`
/// if the disk has no room for that, either.
fn first_segment(config: &JournalConfig, dir: &Path, replay: &Replay) -> Result<Option<Segment>, OpenError> {
    let salvaged_bytes = replay
        .salvaged
        .iter()
        .map(|(record, _)| record.size_bound() as u64 + 64)
        .sum::<u64>();
    let min_capacity = FIRST_FRAME + replay.tail.len() as u64 + salvaged_bytes + 4 * MAX_PAYLOAD as u64;
    let capacity = config.segment_bytes.max(min_capacity);
    match Segment::create_fitting(dir, replay.last_number + 1, capacity, min_capacity) {
        Ok(segment) => Ok(Some(segment)),
        // Salvaged records are in no valid segment until they are written again.
        Err(error) if disk::is_full(&error) && replay.salvaged.is_empty() => Ok(None),
        Err(error) => Err(at(dir)(error)),
    }
}

/// Makes a writer that waits for disk space: it admits no record, while the durable ones can be sealed. The flush
/// thread creates the segment as soon as the disk has room for it, and deletes sealed segments to make room. The frames
/// that are not known to be on disk wait in memory, and stay in their old files until then.
fn writer_without_room(
    config: &JournalConfig,
    dir: &Path,
    mut replay: Replay,
    reader: &mut Reader,
) -> Result<(Writer, watch::Receiver<Durable>), OpenError> {
    tracing::warn!(
        path = %dir.display(),
        "the disk of the journal is full: calls are refused until sealed records make room; free disk space"
    );
    let number = replay.last_number + 1;
    let (mut heads, mut end) = (reader.base.heads.clone(), reader.start());
    let known = reader.each(reader.start(), replay.known_lsn, &replay.segments, |record| {
        heads.accept(record.entry).map_err(|_| record.damaged())?;
        end = record.end;
        Ok(true)
    });
    known.map_err(|error| at(dir)(std::io::Error::other(error)))?;
    let (durable, durable_receiver) = watch::channel(Durable {
        end,
        hashes: heads.hashes(),
        failed: false,
    });
    let (first_lsn, tail) = (replay.known_lsn + 1, std::mem::take(&mut replay.tail));
    let segment = Segment::without_room(dir, number).map_err(at(dir))?;
    let mut writer = writer_at(config, dir, replay, segment, durable);
    (writer.failing, writer.unsynced) = (true, tail);
    if writer.unsynced.is_empty() {
        // All records are durable, so the newest segment may be deleted, too, once they are sealed.
        let mut catalog = writer.catalog.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        catalog.push(RetainedSegment {
            number,
            first_lsn,
            end: FIRST_FRAME,
            last_time: None,
        });
    }
    Ok((writer, durable_receiver))
}

/// Makes the writer, which always continues in a new segment. Records that are not known to be on disk, and salvaged
/// records, are written to the segment before its head makes it valid.
fn writer(
    config: &JournalConfig,
    dir: &Path,
    mut replay: Replay,
    mut segment: Segment,
) -> Result<(Writer, watch::Receiver<Durable>), OpenError> {
    let (shard, first_lsn, number) = (replay.heads.shard, replay.known_lsn + 1, segment.number);
    let salvaged = std::mem::take(&mut replay.salvaged);
    segment.write(&replay.tail).map_err(at(dir))?;
    let end = RecordEnd {
        reached: replay.heads.reached(),
        segment: number,
        offset: segment.end,
        bytes: replay.bytes,
    };
    let (durable, durable_receiver) = watch::channel(Durable {
        end,
        hashes: replay.heads.hashes(),
        failed: false,
    });
    replay.segments.push(RetainedSegment {
        number,
        first_lsn,
        end: FIRST_FRAME,
        last_time: None,
    });
    let mut writer = writer_at(config, dir, replay, segment, durable);
    for (record, time) in &salvaged {
        let appended = writer.append(record, *time, u64::MAX);
        appended.map_err(|error| at(dir)(std::io::Error::other(error)))?;
    }
    if writer.generation > 0 {
        // The new segment failed. The records to write again are still in the old files, where the next start finds
        // them.
        return Err(at(dir)(std::io::Error::other("the disk rejects writes")));
    }
    let segment = &writer.segment;
    let synced = segment
        .sync()
        .and_then(|()| segment.begin(shard, first_lsn))
        .and_then(|()| segment.sync());
    synced.map_err(at(dir))?;
    writer.unsynced.clear();
    writer.durable.send_replace(writer.ends());
    Ok((writer, durable_receiver))
}

/// A writer that continues in `segment`.
fn writer_at(
    config: &JournalConfig,
    dir: &Path,
    replay: Replay,
    segment: Segment,
    durable: watch::Sender<Durable>,
) -> Writer {
    Writer {
        dir: dir.to_owned(),
        genesis: Genesis::new(replay.heads.shard, &config.cluster, config.checkpoint_key),
        segment_bytes: config.segment_bytes,
        max_bytes: config.max_bytes,
        heads: replay.heads,
        next_number: segment.number + 1,
        segment,
        spare: None,
        catalog: Arc::new(Mutex::new(replay.segments)),
        retired: Vec::new(),
        unsynced: Vec::new(),
        durable,
        generation: 0,
        reserved: 0,
        written: replay.bytes,
        sealed: 0,
        sealed_sizes: ChainSizes::default(),
        waiting: replay.waiting,
        frame: Vec::new(),
        failing: false,
        tries: 0,
        is_disk_full: false,
        leftover: Vec::new(),
    }
}
