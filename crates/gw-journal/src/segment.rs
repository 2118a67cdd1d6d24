//! Segment files: preallocated, so that what is promised to be written can be written (HD22).
//!
//! ```text
//! 0     magic:8 shard:16 number:8 first lsn:8 crc32c:4      the head, written when the first record comes
//! 4096  frames
//! ```

use crate::disk;
use crate::error::{OpenError, at};
use gw_audit::ShardId;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where frames begin.
pub(crate) const FIRST_FRAME: u64 = 4096;

const MAGIC: [u8; 8] = *b"gwjseg\0\x01";
const HEAD: usize = 44;
const SUFFIX: &str = "segment";

/// A file being written.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<File>,
    pub(crate) capacity: u64,
    /// Where the next frame goes.
    pub(crate) end: u64,
}

/// What the head of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) shard: ShardId,
    pub(crate) number: u64,
    /// The number of the first record in it.
    pub(crate) first_lsn: u64,
}

impl Segment {
    /// A new file whose bytes are all reserved on disk; empty until its head is written.
    pub(crate) fn create(dir: &Path, number: u64, capacity: u64) -> io::Result<Self> {
        let path = path(dir, number);
        let file = disk::create(&path)?;
        let made = disk::allocate(&file, &path, capacity)
            .and_then(|()| disk::sync(&file, &path))
            .and_then(|()| disk::sync_dir(dir));
        if let Err(error) = made {
            // Half a segment is of no use to anybody; the error is what matters.
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

    /// The same, smaller where the disk has no room for `most` bytes, but of `least` at least.
    pub(crate) fn create_fitting(dir: &Path, number: u64, most: u64, least: u64) -> io::Result<Self> {
        let mut capacity = most;
        loop {
            match Self::create(dir, number, capacity) {
                Err(error) if capacity > least && disk::is_full(&error) => capacity = (capacity / 2).max(least),
                made => return made,
            }
        }
    }

    /// Writes the head; from here on the segment counts.
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

    /// Appends frames.
    pub(crate) fn write(&mut self, frames: &[u8]) -> io::Result<()> {
        disk::write(&self.file, &self.path, frames, self.end)?;
        self.end += frames.len() as u64;
        Ok(())
    }

    /// Makes all of it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        disk::sync(&self.file, &self.path)
    }

    /// The bytes left.
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

/// The head at the start of a segment's bytes.
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

/// The segments in a directory, ascending.
pub(crate) fn list(dir: &Path) -> Result<Vec<u64>, OpenError> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            let number = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .and_then(|stem| stem.parse().ok());
            numbers.push(number.ok_or_else(|| OpenError::corrupt(&path, 0, "a segment without number"))?);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_a_changed_one_does_not() {
        let says = SegmentHead {
            shard: ShardId(uuid::Uuid::from_u128(9)),
            number: 3,
            first_lsn: 77,
        };
        let bytes = head(says);
        assert_eq!(bytes.len(), HEAD);
        assert_eq!(read_head(&bytes), Some(says));
        for at in 0..HEAD {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(read_head(&changed), None, "byte {at}");
        }
        assert_eq!(read_head(&[0; 4096]), None);
    }

    #[test]
    fn hd22_a_segment_has_its_bytes_before_it_is_used() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let segment = Segment::create(dir.path(), 5, 1 << 20).unwrap();
        let meta = segment.file.metadata().unwrap();
        assert_eq!(meta.len(), 1 << 20);
        assert!(meta.blocks() * 512 >= 1 << 20, "allocated, not sparse");
        assert_eq!(list(dir.path()).unwrap(), [5]);
    }
}
