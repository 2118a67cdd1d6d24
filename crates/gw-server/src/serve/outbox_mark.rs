//! How far the audit outbox got, kept in the journal's directory: rows deleted at its end while nobody looked are found by
//! it (spec/70 rule 18).

use gw_audit::StoreId;
use gw_store::{OutboxWitness, audit::OutboxMark};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Mutex, PoisonError},
};
use uuid::Uuid;

const FILE: &str = "outbox-mark";
/// Store, id, sum over both.
const LEN: usize = 16 + 8 + 4;

/// The file and what is in it. A file that cannot be read or written is a warning: the database's own mark is left.
#[derive(Debug)]
pub(crate) struct OutboxMarkFile {
    file: File,
    mark: Mutex<Option<OutboxMark>>,
}

impl OutboxMarkFile {
    /// Opens the file of a directory, or makes it.
    ///
    /// # Errors
    /// When the file can be neither opened nor made.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(directory.join(FILE))?;
        let mut bytes = [0; LEN];
        let mark = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => decode(&bytes),
            Err(_) => None,
        };
        Ok(Self { file, mark: Mutex::new(mark) })
    }

    /// The last id that this instance knows to be committed in a policy store, or 0.
    pub(crate) fn last_id(&self, store: StoreId) -> i64 {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.filter(|mark| mark.store == store).map_or(0, |mark| mark.last_id)
    }
}

impl OutboxWitness for OutboxMarkFile {
    fn note(&self, new: OutboxMark) {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        if mark.is_some_and(|mark| mark.store == new.store && mark.last_id >= new.last_id) {
            return;
        }
        *mark = Some(new);
        if let Err(error) = self.file.write_all_at(&encode(new), 0) {
            tracing::warn!(%error, "the mark of the audit outbox was not written");
        }
    }
}

fn encode(mark: OutboxMark) -> Vec<u8> {
    let mut bytes = [mark.store.0.as_bytes().as_slice(), &mark.last_id.to_le_bytes()].concat();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; LEN]) -> Option<OutboxMark> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let (store, rest) = content.split_first_chunk::<16>()?;
    let last_id = i64::from_le_bytes(*rest.first_chunk()?);
    let intact = u32::from_le_bytes(*sum) == crc32c::crc32c(content);
    intact.then_some(OutboxMark { store: StoreId(Uuid::from_bytes(*store)), last_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl9_the_last_row_is_remembered_over_a_restart() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = StoreId(Uuid::from_u128(4));
        let file = OutboxMarkFile::open(dir.path()).expect("made");
        assert_eq!(file.last_id(store), 0);
        for last_id in [3, 9, 5] {
            file.note(OutboxMark { store, last_id });
        }
        let again = OutboxMarkFile::open(dir.path()).expect("opened");
        assert_eq!(again.last_id(store), 9, "commits are not noted in order");
        assert_eq!(again.last_id(StoreId(Uuid::from_u128(5))), 0, "of that store only");
        std::fs::write(dir.path().join(FILE), [1; LEN]).expect("damaged");
        assert_eq!(OutboxMarkFile::open(dir.path()).expect("opened").last_id(store), 0);
    }
}
