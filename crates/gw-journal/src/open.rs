//! Opening a journal: which shard the directory holds, what is in it, and where writing goes on.
//!
//! ```text
//! lock            held exclusively, names the holder
//! shard           the id of the shard, written last and replaced as a whole
//! <shard>/        header, base, segments
//! ```

use crate::cursor::{Cursors, RecordEnd};
use crate::disk;
use crate::error::{OpenError, at};
use crate::flush::Signal;
use crate::frame::MAX_PAYLOAD;
use crate::header::{Header, Sizes};
use crate::heads::{Base, Heads, OpenIntents};
use crate::journal::{Journal, Options, Recovery, Shared};
use crate::lock::DirLock;
use crate::reader::{Kept, Reader, Retention};
use crate::replay::{self, Replay};
use crate::salvage;
use crate::segment::{self, FIRST_FRAME, Segment};
use crate::writer::{Durable, Writer};
use gw_audit::{Genesis, ShardId};
use gw_types::{Clock, Entropy};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use uuid::Uuid;

const SHARD: &str = "shard";

/// Opens the journal in a directory that is held already, or makes one there.
pub(crate) fn journal(
    options: Options,
    lock: Arc<DirLock>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Journal, Recovery), OpenError> {
    let shard = match named_shard(&options.dir)? {
        Some(shard) => shard,
        None => {
            let shard = ShardId(entropy.uuid());
            make(&options.dir, shard, OpenIntents::default())?;
            name_shard(&options.dir, shard)?;
            shard
        }
    };
    clear_away(&options.dir, shard)?;
    shard_in(options, shard, lock, clock, entropy)
}

/// The shard that a journal's directory holds; `None` if there is no journal. Takes no lock.
///
/// # Errors
/// [`OpenError`] if the directory cannot be read, or the file that names the shard is damaged.
pub fn shard_of(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    if dir.is_dir() { named_shard(dir) } else { Ok(None) }
}

/// The directory of a shard's files.
pub(crate) fn shard_dir(dir: &Path, shard: ShardId) -> PathBuf {
    dir.join(shard.to_string())
}

/// Makes the files of a shard without records.
pub(crate) fn make(dir: &Path, shard: ShardId, intents: OpenIntents) -> Result<(), OpenError> {
    let files = shard_dir(dir, shard);
    std::fs::create_dir_all(&files).map_err(at(&files))?;
    Base {
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

/// From here on the directory holds this shard.
pub(crate) fn name_shard(dir: &Path, shard: ShardId) -> Result<(), OpenError> {
    let path = dir.join(SHARD);
    disk::replace(&path, shard.to_string().as_bytes()).map_err(at(&path))
}

pub(crate) fn named_shard(dir: &Path) -> Result<Option<ShardId>, OpenError> {
    let path = dir.join(SHARD);
    match std::fs::read_to_string(&path) {
        Ok(text) => match Uuid::parse_str(text.trim()) {
            Ok(id) => Ok(Some(ShardId(id))),
            Err(_) => Err(OpenError::corrupt(&path, 0, "the shard's id cannot be read")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A directory is named before its first record is written.
            for other in shard_dirs(dir)? {
                if !segment::list(&other)?.is_empty() {
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
        let named = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| Uuid::parse_str(name).is_ok());
        if named && path.is_dir() {
            dirs.push(path);
        }
    }
    Ok(dirs)
}

/// Removes what a move to a new shard left: half of the new one, or all of the old one. A damaged one is never
/// removed: it was given up by a salvage that ended before it could set it aside.
fn clear_away(dir: &Path, shard: ShardId) -> Result<(), OpenError> {
    let mine = shard_dir(dir, shard);
    if !mine.is_dir() {
        return Err(OpenError::corrupt(&mine, 0, "the directory of the shard is missing"));
    }
    for other in shard_dirs(dir)?.into_iter().filter(|other| *other != mine) {
        if !salvage::set_aside_if_damaged(&other)? {
            std::fs::remove_dir_all(&other).map_err(at(&other))?;
        }
    }
    Ok(())
}

/// Opens one shard's files.
pub(crate) fn shard_in(
    options: Options,
    shard: ShardId,
    lock: Arc<DirLock>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Journal, Recovery), OpenError> {
    let dir = shard_dir(&options.dir, shard);
    let mut header = Header::open(&dir, shard)?;
    let base = Base::load(&dir, shard)?;
    let mut found = replay::replay(&dir, &header, &base)?;
    let recovery = Recovery {
        open_intents: found.intents.to_vec(),
        salvaged: found.salvaged.len() as u64,
        torn: found.torn,
    };
    // These first: writing needs the room that they take.
    found
        .blank
        .iter()
        .try_for_each(|path| disk::remove(path).map_err(at(path)))?;
    let mut useless = std::mem::take(&mut found.useless);
    // What is not known to be on disk is written again, so a segment with nothing else in it goes.
    for again in found.kept.extract_if(.., |kept| kept.first_lsn > found.known) {
        useless.push(segment::path(&dir, again.number));
    }
    let (kept, torn) = (found.kept.clone(), found.torn + recovery.salvaged);
    let cursors = Cursors::new(&found.sizes, found.sealed);
    let (writer, durable) = writer(&options, &dir, found)?;
    header
        .note_durable(writer.heads.reached())
        .and_then(|()| header.sync())
        .map_err(at(&dir))?;
    useless
        .iter()
        .try_for_each(|path| disk::remove(path).map_err(at(path)))?;
    if torn == 0 {
        kept.iter().try_for_each(|kept| give_back(&dir, kept))?;
    }
    let reader = Reader {
        dir,
        cursors,
        base,
        base_bytes: 0,
        retention: Retention {
            bytes: options.retain_bytes,
            age: options.retain_for,
        },
        open: None,
    };
    let shared = Shared {
        shard,
        catalog: Arc::clone(&writer.catalog),
        writer: Mutex::new(writer),
        reader: Mutex::new(reader),
        header: Mutex::new(header),
        durable,
        signal: Signal::default(),
        syncing: Mutex::new(()),
        clock,
        entropy,
    };
    {
        let stopped = || OpenError::corrupt(&options.dir, 0, "the journal stopped");
        let reader = shared.reader().map_err(|_| stopped())?;
        let slowest = reader.slowest(&shared.durable.borrow().end);
        shared
            .writer()
            .map_err(|_| stopped())?
            .note_sealed(reader.cursors.sizes(), slowest.bytes);
    }
    Ok((Journal::start(shared, lock, options)?, recovery))
}

/// Gives the unused rest of a full segment back to the disk. Damaged ones stay as they are, for whoever asks why.
fn give_back(dir: &Path, kept: &Kept) -> Result<(), OpenError> {
    let path = segment::path(dir, kept.number);
    let file = std::fs::OpenOptions::new().write(true).open(&path).map_err(at(&path))?;
    file.set_len(kept.end).map_err(at(&path))
}

/// Writing always goes on in a segment of its own. What is not known to be on disk, and what was salvaged, stands in
/// it before it counts. On a disk without room for a whole segment that is a smaller one: it holds what an admission
/// asks for, and what is given back of the old one makes room for the next.
fn writer(options: &Options, dir: &Path, found: Replay) -> Result<(Writer, watch::Receiver<Durable>), OpenError> {
    let (shard, first_lsn) = (found.heads.shard, found.known + 1);
    let salvage = found
        .salvaged
        .iter()
        .map(|(draft, _)| draft.size_bound() as u64 + 64)
        .sum::<u64>();
    let needs = FIRST_FRAME + found.tail.len() as u64 + salvage + 4 * MAX_PAYLOAD as u64;
    let capacity = options.segment_bytes.max(needs);
    let number = found.last_number + 1;
    let mut segment = Segment::create_fitting(dir, number, capacity, needs).map_err(at(dir))?;
    segment.write(&found.tail).map_err(at(dir))?;
    let end = RecordEnd {
        reached: found.heads.reached(),
        segment: number,
        offset: segment.end,
        bytes: found.bytes,
    };
    let (durable, watched) = watch::channel(Durable {
        end,
        hashes: found.heads.hashes(),
        failed: false,
    });
    let mut kept = found.kept;
    kept.push(Kept {
        number,
        first_lsn,
        end: FIRST_FRAME,
        last_time: None,
    });
    let mut writer = Writer {
        dir: dir.to_owned(),
        genesis: Genesis::new(shard, &options.cluster, options.checkpoint_key),
        segment_bytes: options.segment_bytes,
        max_bytes: options.max_bytes,
        heads: found.heads,
        segment,
        spare: None,
        next_number: number + 1,
        catalog: Arc::new(Mutex::new(kept)),
        retired: Vec::new(),
        unsynced: Vec::new(),
        durable,
        generation: 0,
        reserved: 0,
        written: found.bytes,
        sealed: 0,
        sealed_sizes: Sizes::default(),
        waiting: found.waiting,
        frame: Vec::new(),
        failing: false,
        tries: 0,
        leftover: Vec::new(),
    };
    for (draft, time) in &found.salvaged {
        let placed = writer.append(draft, *time, u64::MAX);
        placed.map_err(|error| at(dir)(std::io::Error::other(error)))?;
    }
    if writer.generation > 0 {
        // What is to be written again is only in the file that failed; the next opening finds it where it was.
        return Err(at(dir)(std::io::Error::other("the disk refuses")));
    }
    let segment = &writer.segment;
    let begun = segment
        .sync()
        .and_then(|()| segment.begin(shard, first_lsn))
        .and_then(|()| segment.sync());
    begun.map_err(at(dir))?;
    writer.unsynced.clear();
    writer.durable.send_replace(writer.ends());
    Ok((writer, watched))
}
