//! Moves the frames that are not durable to another file after a write or fsync failed (HD22).

use crate::disk;
use crate::segment::Segment;
use crate::writer::Durable;
use gw_audit::ShardId;
use std::io;
use std::path::PathBuf;

/// The frames that are not durable, and the parameters of the file they move to. Used with or without the writer's
/// lock.
#[derive(Debug)]
pub(crate) struct Rescue {
    pub(crate) dir: PathBuf,
    pub(crate) shard: ShardId,
    /// The number of a new segment.
    pub(crate) number: u64,
    /// The size of a new segment in bytes.
    pub(crate) capacity: u64,
    /// The smallest size of a file that holds the frames and the room promised to reservations, in bytes.
    pub(crate) min_capacity: u64,
    /// The first record that is not durable.
    pub(crate) first_lsn: u64,
    pub(crate) frames: Vec<u8>,
    /// The durable end once the frames are durable, apart from its segment and offset.
    pub(crate) ends: Durable,
    /// Files without needed records that could not be removed yet.
    pub(crate) leftover: Vec<PathBuf>,
    /// Whether the disk had no room for a new file.
    pub(crate) is_disk_full: bool,
}

impl Rescue {
    /// Writes the frames to `segment` and makes them durable. On failure, returns `None` and removes the segment; a
    /// segment that cannot be removed is added to `leftover`.
    pub(crate) fn move_to(&mut self, mut segment: Segment) -> Option<Segment> {
        if segment.capacity < self.min_capacity || self.fill(&mut segment).is_err() {
            self.discard(segment.path);
            return None;
        }
        Some(segment)
    }

    /// Moves the frames to a new file, like [`Rescue::move_to`].
    pub(crate) fn move_to_new(&mut self) -> Option<Segment> {
        match Segment::create_fitting(&self.dir, self.number, self.capacity, self.min_capacity) {
            Ok(segment) => self.move_to(segment),
            Err(error) => {
                self.is_disk_full = disk::is_full(&error);
                None
            }
        }
    }

    /// Removes the files that earlier attempts left; returns whether all are removed. Until then no further file may be
    /// created, because a disk on which files can be created but not removed would fill up.
    pub(crate) fn remove_leftover(&mut self) -> bool {
        self.leftover.retain(|path| disk::remove(path).is_err());
        self.leftover.is_empty()
    }

    /// Writes the frames, then the head, so that an incomplete segment is never valid.
    fn fill(&self, segment: &mut Segment) -> io::Result<()> {
        segment.write(&self.frames)?;
        segment.sync()?;
        segment.begin(self.shard, self.first_lsn)?;
        segment.sync()
    }

    fn discard(&mut self, path: PathBuf) {
        if disk::remove(&path).is_err() {
            self.leftover.push(path);
        }
    }
}
