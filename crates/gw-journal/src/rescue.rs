//! What is not durable, on its way to another file after a write or fsync failed (HD22).

use crate::disk;
use crate::segment::Segment;
use crate::writer::Durable;
use gw_audit::ShardId;
use std::io;
use std::path::PathBuf;

/// The frames that are not durable, and the file they are to go to. Runs with or without the writer's lock.
#[derive(Debug)]
pub(crate) struct Rescue {
    pub(crate) dir: PathBuf,
    pub(crate) shard: ShardId,
    /// The number of a fresh segment, and its bytes.
    pub(crate) number: u64,
    pub(crate) capacity: u64,
    /// No smaller file holds the frames and what was promised to reservations.
    pub(crate) least: u64,
    /// The first record that is not durable.
    pub(crate) first_lsn: u64,
    pub(crate) frames: Vec<u8>,
    /// What is durable once the frames are, but for where they then lie.
    pub(crate) ends: Durable,
    /// Files that hold nothing that counts and could not be removed.
    pub(crate) leftover: Vec<PathBuf>,
}

impl Rescue {
    /// The segment with everything in it and durable, or nothing: then no half of one is left behind, or it is in
    /// `leftover`.
    pub(crate) fn move_to(&mut self, mut segment: Segment) -> Option<Segment> {
        if segment.capacity < self.least || self.fill(&mut segment).is_err() {
            self.discard(segment.path);
            return None;
        }
        Some(segment)
    }

    /// The same in a fresh file.
    pub(crate) fn move_to_fresh(&mut self) -> Option<Segment> {
        let segment = Segment::create_fitting(&self.dir, self.number, self.capacity, self.least).ok()?;
        self.move_to(segment)
    }

    /// Removes what an earlier try left. As long as that fails no further file is made: a disk that lets files be
    /// made but not removed would fill up.
    pub(crate) fn clear_away(&mut self) -> bool {
        self.leftover.retain(|path| disk::remove(path).is_err());
        self.leftover.is_empty()
    }

    /// The head comes last, so that half of the segment never counts.
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
