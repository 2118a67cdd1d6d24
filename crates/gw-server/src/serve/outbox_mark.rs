//! How far the audit outbox got and what was written to it last, kept in the journal's directory: rows deleted at its end
//! while nobody looked are found by it, and rows that stand in the place of others (spec/70 rule 18).
//!
//! A row's code proves that this gateway made the row, not that its mutation was kept: whoever saw a row of one that was
//! rolled back has a genuine code for an id that is given again. The writer alone knows which code was committed.

use gw_audit::StoreId;
use gw_store::{OutboxWitness, audit::OutboxMark};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

const FILE: &str = "outbox-mark";
/// Store, id, sum over both.
const LEN: usize = 16 + 8 + 4;
/// Rows whose codes are remembered, each at the place of its id: far more than are written between two looks of the sealer.
const CODES: u64 = 4096;
/// Id, code, sum over store and both.
const CODE_LEN: usize = 8 + 32 + 4;

/// The file and what is in it. A file that cannot be read or written is a warning: the database's own mark is left.
#[derive(Debug)]
pub(crate) struct OutboxMarkFile {
    file: File,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    mark: Option<OutboxMark>,
    /// Id and code of the rows of the same store, by place.
    codes: BTreeMap<u64, (i64, [u8; 32])>,
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
        let codes = match mark {
            Some(mark) => read_codes(&file, mark.store),
            None => BTreeMap::new(),
        };
        Ok(Self { file, known: Mutex::new(Known { mark, codes }) })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The codes that are there whole; the others are not remembered.
fn read_codes(file: &File, store: StoreId) -> BTreeMap<u64, (i64, [u8; 32])> {
    let mut codes = BTreeMap::new();
    for place in 0..CODES {
        let mut bytes = [0; CODE_LEN];
        if file.read_exact_at(&mut bytes, offset(place)).is_err() {
            break;
        }
        if let Some((id, code)) = decode_code(store, &bytes) {
            codes.insert(place, (id, code));
        }
    }
    codes
}

fn place(id: i64) -> u64 {
    id.unsigned_abs() % CODES
}

fn offset(place: u64) -> u64 {
    (LEN as u64).saturating_add(place.saturating_mul(CODE_LEN as u64))
}

impl OutboxWitness for OutboxMarkFile {
    fn note(&self, new: OutboxMark, codes: &[(i64, [u8; 32])]) {
        let mut known = self.known();
        if known.mark.is_some_and(|mark| mark.store != new.store) {
            *known = Known::default();
        }
        let mut written = Ok(());
        for (id, code) in codes {
            known.codes.insert(place(*id), (*id, *code));
            let bytes = encode_code(new.store, *id, code);
            written = written.and(self.file.write_all_at(&bytes, offset(place(*id))));
        }
        if known.mark.is_none_or(|mark| mark.last_id < new.last_id) {
            known.mark = Some(new);
            written = written.and(self.file.write_all_at(&encode(new), 0));
        }
        if let Err(error) = written {
            tracing::warn!(%error, "the mark of the audit outbox was not written");
        }
    }

    fn last_id(&self, store: StoreId) -> i64 {
        self.known().mark.filter(|mark| mark.store == store).map_or(0, |mark| mark.last_id)
    }

    fn code(&self, store: StoreId, id: i64) -> Option<[u8; 32]> {
        let known = self.known();
        known.mark.filter(|mark| mark.store == store)?;
        known.codes.get(&place(id)).filter(|(of, _)| *of == id).map(|(_, code)| *code)
    }
}

fn encode_code(store: StoreId, id: i64, code: &[u8; 32]) -> Vec<u8> {
    let mut bytes = [id.to_le_bytes().as_slice(), code].concat();
    bytes.extend_from_slice(&code_sum(store, &bytes).to_le_bytes());
    bytes
}

fn decode_code(store: StoreId, bytes: &[u8; CODE_LEN]) -> Option<(i64, [u8; 32])> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let (id, code) = content.split_first_chunk::<8>()?;
    let intact = u32::from_le_bytes(*sum) == code_sum(store, content);
    intact.then_some((i64::from_le_bytes(*id), *code.first_chunk()?))
}

fn code_sum(store: StoreId, content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(store.0.as_bytes()), content)
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
            file.note(OutboxMark { store, last_id }, &[(last_id, [u8::try_from(last_id).expect("small"); 32])]);
        }
        let again = OutboxMarkFile::open(dir.path()).expect("opened");
        assert_eq!(again.last_id(store), 9, "commits are not noted in order");
        assert_eq!(again.last_id(StoreId(Uuid::from_u128(5))), 0, "of that store only");
        let codes = [3, 4, 5, 9].map(|id| again.code(store, id));
        assert_eq!(codes, [Some([3; 32]), None, Some([5; 32]), Some([9; 32])]);
        assert_eq!(again.code(StoreId(Uuid::from_u128(5)), 3), None);
        assert_eq!(again.code(store, 3 + 4096), None, "another id at its place");
        std::fs::write(dir.path().join(FILE), [1; LEN]).expect("damaged");
        assert_eq!(OutboxMarkFile::open(dir.path()).expect("opened").last_id(store), 0);
    }
}
