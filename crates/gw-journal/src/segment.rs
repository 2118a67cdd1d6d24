//! Segment files: preallocated, so that records with reserved room can be written (HD22).
//!
//! ```text
//! 0     magic:8 shard:16 number:8 first lsn:8 crc32c:4      the head, written before the first record
//! 4096  frames
//! ```

use crate::disk;
use crate::error::{OpenError, at};
use gw_audit::ShardId;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The offset of the first frame.
pub(crate) const FIRST_FRAME: u64 = 4096;

const MAGIC: [u8; 8] = *b"gwjseg\0\x01";
const HEAD: usize = 44;
const SUFFIX: &str = "segment";
/// The free space that a new segment leaves for the small files of the journal: the state behind sealed segments must
/// be saved before they are deleted.
const ROOM_FOR_SMALL_FILES: u64 = 64 << 10;

/// A segment file that is being written.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<File>,
    pub(crate) capacity: u64,
    /// The offset of the next frame.
    pub(crate) end: u64,
}

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) shard: ShardId,
    pub(crate) number: u64,
    /// The number of the first record in the segment.
    pub(crate) first_lsn: u64,
}

impl Segment {
    /// Creates a file whose bytes are all reserved on disk. It counts as blank until its head is written.
    pub(crate) fn create(dir: &Path, number: u64, capacity: u64) -> io::Result<Self> {
        let path = path(dir, number);
        let file = disk::create(&path)?;
        let allocated = disk::allocate(&file, &path, capacity, ROOM_FOR_SMALL_FILES)
            .and_then(|()| disk::sync(&file, &path))
            .and_then(|()| disk::sync_dir(dir));
        if let Err(error) = allocated {
            // An incomplete segment is useless. The caller gets the original error, not one from the removal.
            let _ = disk::remove(&path);
            return Err(error);
        }
        Ok(Self {
            number,
            path,
            file: Arc::new(file),
            capacity,
            end: FIRST_FRAME,
        })
    }

    /// Creates a segment of `max_capacity` bytes, or a smaller one of at least `min_capacity` bytes if the disk is
    /// full.
    pub(crate) fn create_fitting(dir: &Path, number: u64, max_capacity: u64, min_capacity: u64) -> io::Result<Self> {
        let mut capacity = max_capacity;
        loop {
            match Self::create(dir, number, capacity) {
                Err(error) if capacity > min_capacity && disk::is_full(&error) => {
                    capacity = (capacity / 2).max(min_capacity);
                }
                result => return result,
            }
        }
    }

    /// Writes the head, which makes the segment valid.
    pub(crate) fn begin(&self, shard: ShardId, first_lsn: u64) -> io::Result<()> {
        disk::write(
            &self.file,
            &self.path,
            &head(SegmentHead {
                shard,
                number: self.number,
                first_lsn,
            }),
            0,
        )
    }

    /// A segment without a file and without room, for a writer that waits for disk space.
    pub(crate) fn without_room(dir: &Path, number: u64) -> io::Result<Self> {
        Ok(Self {
            number,
            path: path(dir, number),
            file: Arc::new(File::open(dir)?),
            capacity: 0,
            end: FIRST_FRAME,
        })
    }

    /// Appends frames.
    pub(crate) fn write(&mut self, frames: &[u8]) -> io::Result<()> {
        disk::write(&self.file, &self.path, frames, self.end)?;
        self.end += frames.len() as u64;
        Ok(())
    }

    /// Makes the whole file durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        disk::sync(&self.file, &self.path)
    }

    /// The number of free bytes.
    pub(crate) const fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.end)
    }
}

fn head(head: SegmentHead) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(head.shard.0.as_bytes());
    bytes.extend_from_slice(&head.number.to_le_bytes());
    bytes.extend_from_slice(&head.first_lsn.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// Reads the head at the start of a segment's bytes; `None` if it is not valid.
pub(crate) fn read_head(bytes: &[u8]) -> Option<SegmentHead> {
    let (checked, rest) = bytes.split_at_checked(HEAD - 4)?;
    let (magic, fields) = checked.split_first_chunk::<8>()?;
    let (shard, fields) = fields.split_first_chunk::<16>()?;
    let (number, first_lsn) = fields.split_first_chunk::<8>()?;
    let first_lsn = u64::from_le_bytes(*first_lsn.first_chunk()?);
    let sum = u32::from_le_bytes(*rest.first_chunk()?);
    let shard = ShardId(uuid::Uuid::from_bytes(*shard));
    (*magic == MAGIC && sum == crc32c::crc32c(checked)).then_some(SegmentHead {
        shard,
        number: u64::from_le_bytes(*number),
        first_lsn,
    })
}

/// The path of a segment.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:012}.{SUFFIX}"))
}

/// The numbers of the segments in a directory, ascending.
pub(crate) fn list(dir: &Path) -> Result<Vec<u64>, OpenError> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            let number = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .and_then(|stem| stem.parse().ok());
            numbers
                .push(number.ok_or_else(|| OpenError::corrupt(&path, 0, "the name of the segment is not a number"))?);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_a_changed_head_is_not() {
        let written = SegmentHead {
            shard: ShardId(uuid::Uuid::from_u128(9)),
            number: 3,
            first_lsn: 77,
        };
        let bytes = head(written);
        assert_eq!(bytes.len(), HEAD);
        assert_eq!(read_head(&bytes), Some(written));
        for at in 0..HEAD {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(read_head(&changed), None, "byte {at}");
        }
        assert_eq!(read_head(&[0; 4096]), None);
    }

    #[test]
    fn hd22_the_bytes_of_a_segment_are_allocated_before_it_is_used() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let segment = Segment::create(dir.path(), 5, 1 << 20).unwrap();
        let meta = segment.file.metadata().unwrap();
        assert_eq!(meta.len(), 1 << 20);
        assert!(meta.blocks() * 512 >= 1 << 20, "allocated, not sparse");
        assert_eq!(list(dir.path()).unwrap(), [5]);
    }
}
