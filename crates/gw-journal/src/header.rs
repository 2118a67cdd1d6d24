//! The journal's header: the last durable and the last sealed record number (spec/70 rule 12).
//!
//! Two slots are written alternately, so that a torn write leaves the other slot intact. The numbers in the header may
//! lag behind the true ones, but are never ahead of them.

use crate::disk;
use crate::error::{OpenError, at, missing};
use gw_audit::{ShardId, Stream};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"gwjhead\x01";
const SLOTS: [u64; 2] = [0, 4096];
pub(crate) const STREAMS: usize = Stream::ALL.len();
const WORDS: usize = 3 + 2 * STREAMS;
const LEN: usize = 24 + 8 * WORDS + 4;

/// The number of entries in each stream's chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainSizes([u64; STREAMS]);

impl ChainSizes {
    /// The size of a stream's chain.
    pub(crate) fn get(&self, stream: Stream) -> u64 {
        self.0.get(stream as usize).copied().unwrap_or(0)
    }

    /// Sets the size of a stream's chain.
    pub(crate) fn set(&mut self, stream: Stream, size: u64) {
        if let Some(slot) = self.0.get_mut(stream as usize) {
            *slot = size;
        }
    }

    /// The larger size for each stream.
    pub(crate) fn max(mut self, other: &Self) -> Self {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(size, other_size)| *size = (*size).max(other_size));
        self
    }

    /// The first stream whose size is larger than in `other`.
    pub(crate) fn beyond(&self, other: &Self) -> Option<Stream> {
        Stream::ALL
            .iter()
            .copied()
            .find(|stream| self.get(*stream) > other.get(*stream))
    }
}

/// A position in the journal. For the sealed progress, `sizes` are the sealed sizes of each stream, and `lsn` is the
/// last record up to which the records of all streams are sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of the last record.
    pub(crate) lsn: u64,
    /// The sizes of the chains.
    pub(crate) sizes: ChainSizes,
}

/// The header file.
#[derive(Debug)]
pub(crate) struct Header {
    path: PathBuf,
    file: File,
    shard: ShardId,
    generation: u64,
    durable: Progress,
    sealed: Progress,
}

impl Header {
    fn path(dir: &Path) -> PathBuf {
        dir.join("header")
    }

    /// Creates the header of a new journal.
    pub(crate) fn create(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
        let path = Self::path(dir);
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        let (durable, sealed) = (Progress::default(), Progress::default());
        let mut header = Self {
            path,
            file,
            shard,
            generation: 0,
            durable,
            sealed,
        };
        header.save().and_then(|()| header.sync()).map_err(at(&header.path))?;
        Ok(header)
    }

    /// Opens the header of an existing journal.
    pub(crate) fn open(dir: &Path, shard: ShardId) -> Result<Self, OpenError> {
        let path = Self::path(dir);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(missing(&path, "the header is missing"))?;
        let slots = SLOTS.into_iter().filter_map(|slot| {
            let mut bytes = [0; LEN];
            file.read_exact_at(&mut bytes, slot).ok()?;
            decode(&bytes)
        });
        match slots.max_by_key(|(generation, ..)| *generation) {
            Some((generation, header_shard, durable, sealed)) if header_shard == shard => Ok(Self {
                path,
                file,
                shard,
                generation,
                durable,
                sealed,
            }),
            Some(_) => Err(OpenError::corrupt(&path, 0, "the header belongs to another shard")),
            None => Err(OpenError::corrupt(&path, 0, "neither copy of the header can be read")),
        }
    }

    /// The shard that a header names; `None` if neither copy of the header can be read.
    pub(crate) fn shard(dir: &Path) -> Option<ShardId> {
        let file = File::open(Self::path(dir)).ok()?;
        let slots = SLOTS.into_iter().filter_map(|slot| {
            let mut bytes = [0; LEN];
            file.read_exact_at(&mut bytes, slot).ok()?;
            decode(&bytes)
        });
        slots
            .max_by_key(|(generation, ..)| *generation)
            .map(|(_, shard, ..)| shard)
    }

    /// The durable progress in the header.
    pub(crate) const fn durable(&self) -> Progress {
        self.durable
    }

    /// The sealed progress in the header.
    pub(crate) const fn sealed(&self) -> Progress {
        self.sealed
    }

    /// Writes the progress that an fsync has covered.
    pub(crate) fn note_durable(&mut self, reached: Progress) -> io::Result<()> {
        self.durable = reached;
        self.save()
    }

    /// Writes the progress of sealing.
    pub(crate) fn note_sealed(&mut self, reached: Progress) -> io::Result<()> {
        self.sealed = reached;
        self.save()
    }

    /// Makes the header itself durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        disk::sync(&self.file, &self.path)
    }

    fn save(&mut self) -> io::Result<()> {
        self.generation += 1;
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(self.shard.0.as_bytes());
        for word in [self.generation, self.durable.lsn, self.sealed.lsn]
            .iter()
            .chain(&self.durable.sizes.0)
            .chain(&self.sealed.sizes.0)
        {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        let [even, odd] = SLOTS;
        disk::write(
            &self.file,
            &self.path,
            &bytes,
            if self.generation.is_multiple_of(2) { even } else { odd },
        )
    }
}

fn decode(bytes: &[u8; LEN]) -> Option<(u64, ShardId, Progress, Progress)> {
    let (checked, sum) = bytes.split_last_chunk::<4>()?;
    let (magic, rest) = checked.split_first_chunk::<8>()?;
    let (shard, rest) = rest.split_first_chunk::<16>()?;
    if *magic != MAGIC || u32::from_le_bytes(*sum) != crc32c::crc32c(checked) {
        return None;
    }
    let mut words = rest
        .chunks_exact(8)
        .filter_map(|word| word.first_chunk().copied().map(u64::from_le_bytes));
    let (generation, durable, sealed) = (words.next()?, words.next()?, words.next()?);
    let mut sizes = || {
        let mut sizes = ChainSizes::default();
        sizes.0.iter_mut().zip(&mut words).for_each(|(size, word)| *size = word);
        sizes
    };
    let durable = Progress {
        lsn: durable,
        sizes: sizes(),
    };
    let sealed = Progress {
        lsn: sealed,
        sizes: sizes(),
    };
    Some((generation, ShardId(uuid::Uuid::from_bytes(*shard)), durable, sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(lsn: u64) -> Progress {
        let mut sizes = ChainSizes::default();
        sizes.set(Stream::Access, lsn);
        Progress { lsn, sizes }
    }

    #[test]
    fn rule_12_the_last_numbers_are_stored_separately_from_the_records() {
        let dir = tempfile::tempdir().unwrap();
        let shard = ShardId(uuid::Uuid::from_u128(4));
        let mut header = Header::create(dir.path(), shard).unwrap();
        header.note_durable(reached(9)).unwrap();
        header.note_sealed(reached(5)).unwrap();
        let header = Header::open(dir.path(), shard).unwrap();
        assert_eq!((header.durable(), header.sealed()), (reached(9), reached(5)));
        assert!(Header::open(dir.path(), ShardId(uuid::Uuid::nil())).is_err());
    }

    #[test]
    fn a_torn_write_leaves_the_previous_copy() {
        let dir = tempfile::tempdir().unwrap();
        let shard = ShardId(uuid::Uuid::from_u128(4));
        let mut header = Header::create(dir.path(), shard).unwrap();
        header.note_durable(reached(9)).unwrap();
        header.note_durable(reached(10)).unwrap();
        let newest = if header.generation.is_multiple_of(2) {
            SLOTS[0]
        } else {
            SLOTS[1]
        };
        header.file.write_all_at(&[0xff; 40], newest + 8).unwrap();
        assert_eq!(Header::open(dir.path(), shard).unwrap().durable(), reached(9));
        header.file.write_all_at(&[0xff; 5000], 0).unwrap();
        assert!(Header::open(dir.path(), shard).is_err());
    }
}
