//! The outbox mark file in the journal's directory: the last id of the audit outbox, and digests of its latest rows. It
//! reveals rows that were deleted at the end of the outbox while the gateway was stopped, and rows that were replaced
//! (spec/70 rule 18).
//!
//! The authentication code of a row proves that this gateway created the row, not that its mutation was committed. An
//! attacker who has seen a row of a rolled-back mutation has a genuine code for an id that is used again later. Only
//! the writer knows which rows were committed and which were rolled back ("undone"), so it records both here.
//!
//! The file also remembers former policy stores. If the policy store changes its identity, its rows are compared with
//! what is known of the former store.

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
/// Bytes of the mark: store, id, checksum over both.
const LEN: usize = 16 + 8 + 4;
/// Committed rows that are remembered, each in the slot of its id. The sealer reads the outbox far more often than once
/// for so many rows.
const ROWS: u64 = 4096;
/// Bytes of a row: id, digest or code, checksum over store and both.
const ROW_LEN: usize = 8 + 32 + 4;
/// FormerStore policy stores that are remembered.
const FORMER: usize = 8;
/// Bytes of a former store: store, id, flags, checksum.
const FORMER_LEN: usize = 16 + 8 + 1 + 4;
/// Undone rows that are remembered; new ones overwrite the oldest.
const UNDONE: u64 = 4096;

/// File offset of the former stores.
const FORMER_AT: u64 = LEN as u64 + ROWS * ROW_LEN as u64;
/// File offset of the undone rows.
const UNDONE_AT: u64 = FORMER_AT + FORMER as u64 * FORMER_LEN as u64;

// Domain separators of the row checksums. With them, a row of one kind is not accepted as the other kind, nor as a
// committed row in the format of earlier versions, which stored codes.
const COMMITTED: &[u8] = b"committed";
const UNDO: &[u8] = b"undone";

/// The outbox mark file, with its contents in memory. A failed write is only a warning, because the database also has a
/// mark.
#[derive(Debug)]
pub(crate) struct OutboxMarkFile {
    file: File,
    contents: Mutex<Contents>,
}

/// The contents of the file.
#[derive(Debug, Default)]
struct Contents {
    mark: Option<OutboxMark>,
    /// Id and digest of committed rows of the store in `mark`, by slot.
    rows: BTreeMap<u64, (i64, [u8; 32])>,
    /// Id and code of undone rows of the store in `mark`, by slot.
    undone: BTreeMap<u64, (i64, [u8; 32])>,
    /// The slot of the next undone row.
    next_undone: u64,
    former: Vec<FormerStore>,
}

/// A former policy store.
#[derive(Clone, Copy, Debug)]
struct FormerStore {
    mark: OutboxMark,
    /// Whether the change of the store was reported.
    is_reported: bool,
    /// Whether its ids were compared with the sealed entries.
    is_compared: bool,
}

impl OutboxMarkFile {
    /// Opens or creates the file in `directory`. Damaged parts of the file are ignored.
    ///
    /// # Errors
    /// If the file can be neither opened nor created.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(directory.join(FILE))?;
        let mut contents = Contents {
            mark: read(&file, 0).and_then(|bytes| decode(&bytes)),
            ..Contents::default()
        };
        if let Some(mark) = contents.mark {
            contents.rows = read_rows(&file, mark.store, COMMITTED, 0, ROWS);
            contents.undone = read_rows(&file, mark.store, UNDO, UNDONE_AT, UNDONE);
            contents.next_undone = u64::try_from(contents.undone.len()).unwrap_or(0) % UNDONE;
        }
        let slots =
            (0..FORMER).filter_map(|slot| read(&file, former_offset(slot)).and_then(|bytes| decode_former(&bytes)));
        contents.former = slots
            .filter(|former| contents.mark.is_none_or(|mark| mark.store != former.mark.store))
            .collect();
        Ok(Self {
            file,
            contents: Mutex::new(contents),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file has no mark of any policy store.
    pub(crate) fn is_blank(&self) -> bool {
        self.lock().mark.is_none()
    }

    /// Adds a former store that only the audit log knows of.
    pub(crate) fn remember_former(&self, mark: OutboxMark) {
        let mut contents = self.lock();
        contents.add_former(mark);
        warn_on_error(self.write_former(&contents));
    }

    /// Sets the current policy store. The previous one stays remembered as a former store.
    pub(crate) fn adopt(&self, store: StoreId) {
        let mut contents = self.lock();
        warn_on_error(self.switch_store(&mut contents, store));
    }

    fn switch_store(&self, contents: &mut Contents, store: StoreId) -> io::Result<()> {
        let last = contents.mark;
        if last.is_some_and(|mark| mark.store == store) {
            return Ok(());
        }
        let known_index = contents.former.iter().position(|former| former.mark.store == store);
        let known_mark = known_index.map(|index| contents.former.remove(index).mark);
        if let Some(last) = last {
            contents.add_former(last);
        }
        let mark = known_mark.unwrap_or(OutboxMark { store, last_id: 0 });
        contents.mark = Some(mark);
        contents.rows.clear();
        contents.undone.clear();
        contents.next_undone = 0;
        // The former stores first: after a crash in between, the mark of the previous store is still in the file.
        self.write_former(contents)?;
        self.file.write_all_at(&encode(mark), 0)
    }

    fn write_former(&self, contents: &Contents) -> io::Result<()> {
        for slot in 0..FORMER {
            let bytes = contents
                .former
                .get(slot)
                .map_or_else(|| vec![0; FORMER_LEN], |former| encode_former(*former));
            self.file.write_all_at(&bytes, former_offset(slot))?;
        }
        Ok(())
    }

    /// The former policy stores, with the last known id of each.
    pub(crate) fn former(&self) -> Vec<OutboxMark> {
        self.lock().former.iter().map(|former| former.mark).collect()
    }

    /// The former policy stores whose replacement was not reported yet.
    pub(crate) fn unreported(&self) -> Vec<OutboxMark> {
        self.lock()
            .former
            .iter()
            .filter(|former| !former.is_reported)
            .map(|former| former.mark)
            .collect()
    }

    /// The former policy stores whose ids were not compared with the sealed entries yet.
    pub(crate) fn uncompared(&self) -> Vec<OutboxMark> {
        self.lock()
            .former
            .iter()
            .filter(|former| !former.is_compared)
            .map(|former| former.mark)
            .collect()
    }

    /// Records that the replacement of a former store was reported.
    pub(crate) fn mark_reported(&self, store: StoreId) {
        self.update_former(store, |former| former.is_reported = true);
    }

    /// Records that the ids of a former store were compared.
    pub(crate) fn note_compared(&self, store: StoreId) {
        self.update_former(store, |former| former.is_compared = true);
    }

    fn update_former(&self, store: StoreId, update: impl Fn(&mut FormerStore)) {
        let mut contents = self.lock();
        contents
            .former
            .iter_mut()
            .filter(|former| former.mark.store == store)
            .for_each(update);
        warn_on_error(self.write_former(&contents));
    }
}

impl Contents {
    fn add_former(&mut self, mark: OutboxMark) {
        if self.former.len() >= FORMER {
            // A settled store makes room. If there is none, the new store is not added: an attacker who exchanges
            // stores repeatedly must not displace those that are remembered.
            let settled = self
                .former
                .iter()
                .position(|former| former.is_reported && former.is_compared);
            let Some(settled) = settled else { return };
            self.former.remove(settled);
        }
        self.former.push(FormerStore {
            mark,
            is_reported: false,
            is_compared: false,
        });
    }
}

fn warn_on_error(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "the audit outbox mark could not be written to the journal directory");
    }
}

fn read<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
}

/// Reads the intact rows of one kind; damaged rows are skipped.
fn read_rows(file: &File, store: StoreId, kind: &[u8], start: u64, capacity: u64) -> BTreeMap<u64, (i64, [u8; 32])> {
    let mut rows = BTreeMap::new();
    for slot in 0..capacity {
        let offset = if start == 0 {
            row_offset(slot)
        } else {
            undone_offset(slot)
        };
        let Some(bytes) = read(file, offset) else { break };
        if let Some(row) = decode_row(store, kind, &bytes) {
            rows.insert(slot, row);
        }
    }
    rows
}

fn row_slot(id: i64) -> u64 {
    id.unsigned_abs() % ROWS
}

fn row_offset(slot: u64) -> u64 {
    (LEN as u64).saturating_add(slot.saturating_mul(ROW_LEN as u64))
}

fn former_offset(slot: usize) -> u64 {
    FORMER_AT.saturating_add((slot as u64).saturating_mul(FORMER_LEN as u64))
}

fn undone_offset(slot: u64) -> u64 {
    UNDONE_AT.saturating_add(slot.saturating_mul(ROW_LEN as u64))
}

impl OutboxWitness for OutboxMarkFile {
    fn note(&self, new: OutboxMark, digests: &[(i64, [u8; 32])]) {
        let mut contents = self.lock();
        let mut result = self.switch_store(&mut contents, new.store);
        for (id, digest) in digests {
            contents.rows.insert(row_slot(*id), (*id, *digest));
            let bytes = encode_row(new.store, COMMITTED, *id, digest);
            result = result.and(self.file.write_all_at(&bytes, row_offset(row_slot(*id))));
        }
        if contents.mark.is_none_or(|mark| mark.last_id < new.last_id) {
            contents.mark = Some(new);
            result = result.and(self.file.write_all_at(&encode(new), 0));
        }
        warn_on_error(result);
    }

    fn note_undone(&self, store: StoreId, codes: &[(i64, [u8; 32])]) {
        let mut contents = self.lock();
        let mut result = self.switch_store(&mut contents, store);
        for (id, code) in codes {
            let slot = contents.next_undone;
            contents.next_undone = slot.saturating_add(1) % UNDONE;
            contents.undone.insert(slot, (*id, *code));
            let bytes = encode_row(store, UNDO, *id, code);
            result = result.and(self.file.write_all_at(&bytes, undone_offset(slot)));
        }
        warn_on_error(result);
    }

    fn last_id(&self, store: StoreId) -> i64 {
        let contents = self.lock();
        let marks = contents
            .mark
            .into_iter()
            .chain(contents.former.iter().map(|former| former.mark));
        marks
            .filter(|mark| mark.store == store)
            .map(|mark| mark.last_id)
            .max()
            .unwrap_or(0)
    }

    fn digest(&self, store: StoreId, id: i64) -> Option<[u8; 32]> {
        let contents = self.lock();
        contents.mark.filter(|mark| mark.store == store)?;
        contents
            .rows
            .get(&row_slot(id))
            .filter(|(row_id, _)| *row_id == id)
            .map(|(_, digest)| *digest)
    }

    fn undone(&self, store: StoreId) -> Vec<(i64, [u8; 32])> {
        let contents = self.lock();
        match contents.mark.filter(|mark| mark.store == store) {
            Some(_) => contents.undone.values().copied().collect(),
            None => Vec::new(),
        }
    }

    fn former_stores(&self) -> Vec<StoreId> {
        self.lock().former.iter().map(|former| former.mark.store).collect()
    }
}

fn encode_row(store: StoreId, kind: &[u8], id: i64, value: &[u8; 32]) -> Vec<u8> {
    let mut bytes = [id.to_le_bytes().as_slice(), value].concat();
    bytes.extend_from_slice(&row_sum(store, kind, &bytes).to_le_bytes());
    bytes
}

fn decode_row(store: StoreId, kind: &[u8], bytes: &[u8; ROW_LEN]) -> Option<(i64, [u8; 32])> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let (id, value) = content.split_first_chunk::<8>()?;
    let intact = u32::from_le_bytes(*sum) == row_sum(store, kind, content);
    intact.then_some((i64::from_le_bytes(*id), *value.first_chunk()?))
}

fn row_sum(store: StoreId, kind: &[u8], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(store.0.as_bytes()), kind), content)
}

fn encode(mark: OutboxMark) -> Vec<u8> {
    let mut bytes = [mark.store.0.as_bytes().as_slice(), &mark.last_id.to_le_bytes()].concat();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; LEN]) -> Option<OutboxMark> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let intact = u32::from_le_bytes(*sum) == crc32c::crc32c(content);
    decode_mark(content).filter(|_| intact)
}

fn decode_mark(bytes: &[u8]) -> Option<OutboxMark> {
    let (store, rest) = bytes.split_first_chunk::<16>()?;
    let last_id = i64::from_le_bytes(*rest.first_chunk()?);
    Some(OutboxMark {
        store: StoreId(Uuid::from_bytes(*store)),
        last_id,
    })
}

fn encode_former(former: FormerStore) -> Vec<u8> {
    let FormerStore {
        mark,
        is_reported,
        is_compared,
    } = former;
    let flags = u8::from(is_reported) | (u8::from(is_compared) << 1);
    let mut bytes = [
        mark.store.0.as_bytes().as_slice(),
        &mark.last_id.to_le_bytes(),
        &[flags],
    ]
    .concat();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn decode_former(bytes: &[u8; FORMER_LEN]) -> Option<FormerStore> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if u32::from_le_bytes(*sum) != crc32c::crc32c(content) {
        return None;
    }
    let (flags, mark) = content.split_last()?;
    Some(FormerStore {
        mark: decode_mark(mark)?,
        is_reported: flags & 1 != 0,
        is_compared: flags & 2 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn store(number: u128) -> StoreId {
        StoreId(Uuid::from_u128(number))
    }

    #[test]
    fn rl9_the_last_row_is_remembered_across_a_restart() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = store(4);
        let other_store = StoreId(Uuid::from_u128(5));
        let file = OutboxMarkFile::open(dir.path()).expect("made");
        assert_eq!(file.last_id(store), 0);
        for last_id in [3, 9, 5] {
            file.note(
                OutboxMark { store, last_id },
                &[(last_id, [u8::try_from(last_id).expect("small"); 32])],
            );
        }
        file.note_undone(store, &[(10, [10; 32]), (10, [11; 32])]);
        let reopened = OutboxMarkFile::open(dir.path()).expect("opened");
        assert_eq!(reopened.last_id(store), 9, "commits are not noted in order");
        assert_eq!(reopened.last_id(other_store), 0, "only marks of the same store count");
        let digests = [3, 4, 5, 9].map(|id| reopened.digest(store, id));
        assert_eq!(digests, [Some([3; 32]), None, Some([5; 32]), Some([9; 32])]);
        assert_eq!(reopened.digest(other_store, 3), None);
        assert_eq!(reopened.digest(store, 3 + 4096), None, "another id with the same slot");
        assert_eq!(reopened.undone(store), [(10, [10; 32]), (10, [11; 32])]);
        assert_eq!(reopened.undone(other_store), []);
        std::fs::write(dir.path().join(FILE), [1; LEN]).expect("damaged");
        assert_eq!(OutboxMarkFile::open(dir.path()).expect("opened").last_id(store), 0);
    }

    /// RL3: a changed store identity does not erase the mark of the former store, whenever the process ends.
    #[test]
    fn rl9_the_mark_of_a_former_policy_store_is_remembered() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || OutboxMarkFile::open(dir.path()).expect("opened");
        let (first, second) = (
            OutboxMark {
                store: store(1),
                last_id: 7,
            },
            OutboxMark {
                store: store(2),
                last_id: 1,
            },
        );
        open().note(first, &[(7, [7; 32])]);
        open().note(second, &[(1, [1; 32])]);
        assert_eq!((open().unreported(), open().uncompared()), (vec![first], vec![first]));
        assert_eq!((open().last_id(first.store), open().last_id(second.store)), (7, 1));
        open().mark_reported(first.store);
        assert_eq!((open().unreported(), open().uncompared()), (vec![], vec![first]));
        open().note_compared(first.store);
        assert_eq!((open().uncompared(), open().former()), (vec![], vec![first]));
        // If the first store returns, the second one is a former store to report, and the ids of the first continue.
        open().adopt(first.store);
        assert_eq!((open().unreported(), open().last_id(first.store)), (vec![second], 7));
    }
}
