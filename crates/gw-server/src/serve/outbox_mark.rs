//! How far the audit outbox got and what was written to it last, kept in the journal's directory: rows deleted at its end
//! while nobody looked are found by it, and rows that stand in the place of others (spec/70 rule 18).
//!
//! A row's code proves that this gateway made the row, not that its mutation was kept: whoever saw a row of one that was
//! rolled back has a genuine code for an id that is given again. The writer alone knows which rows were committed and
//! which were undone. And a policy store that says to be another one is compared with what was known of the one before.

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
/// Rows that are remembered, each at the place of its id: far more than are written between two looks of the sealer.
const ROWS: u64 = 4096;
/// Id, digest or code, sum over store and both.
const ROW_LEN: usize = 8 + 32 + 4;
/// Policy stores of before that are remembered.
const FORMER: usize = 8;
/// Store, id, what was done about it, sum.
const FORMER_LEN: usize = 16 + 8 + 1 + 4;
/// Codes of undone rows that are remembered; the oldest make room.
const UNDONE: u64 = 4096;

const FORMER_AT: u64 = LEN as u64 + ROWS * ROW_LEN as u64;
const UNDONE_AT: u64 = FORMER_AT + FORMER as u64 * FORMER_LEN as u64;

/// Part of the sums: neither kind is taken for the other, nor for the codes that earlier versions kept of committed rows.
const COMMITTED: &[u8] = b"committed";
const UNDO: &[u8] = b"undone";

/// The file and what is in it. A file that cannot be read or written is a warning: the database's own mark is left.
#[derive(Debug)]
pub(crate) struct OutboxMarkFile {
    file: File,
    known: Mutex<Contents>,
}

/// What the file says.
#[derive(Debug, Default)]
struct Contents {
    mark: Option<OutboxMark>,
    /// Id and digest of the rows of the same store, by place.
    rows: BTreeMap<u64, (i64, [u8; 32])>,
    /// Id and code of rows of the same store whose mutations were undone, by place.
    undone: BTreeMap<u64, (i64, [u8; 32])>,
    /// The place that the next one takes.
    next_undone: u64,
    former: Vec<Former>,
}

/// A policy store that was here before this one.
#[derive(Clone, Copy, Debug)]
struct Former {
    mark: OutboxMark,
    is_told: bool,
    is_compared: bool,
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
        let mut known = Contents {
            mark: read(&file, 0).and_then(|bytes| decode(&bytes)),
            ..Contents::default()
        };
        if let Some(mark) = known.mark {
            known.rows = read_rows(&file, mark.store, COMMITTED, 0, ROWS);
            known.undone = read_rows(&file, mark.store, UNDO, UNDONE_AT, UNDONE);
            known.next_undone = u64::try_from(known.undone.len()).unwrap_or(0) % UNDONE;
        }
        let slots = (0..FORMER).filter_map(|slot| read(&file, former_at(slot)).and_then(|bytes| decode_former(&bytes)));
        known.former = slots
            .filter(|former| known.mark.is_none_or(|mark| mark.store != former.mark.store))
            .collect();
        Ok(Self {
            file,
            known: Mutex::new(known),
        })
    }

    fn known(&self) -> MutexGuard<'_, Contents> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is known of any policy store.
    pub(crate) fn is_blank(&self) -> bool {
        self.known().mark.is_none()
    }

    /// Takes a store for the one of before, where the audit log alone knows of it.
    pub(crate) fn remember_former(&self, mark: OutboxMark) {
        let mut known = self.known();
        known.put_former(mark);
        warn_of(self.write_former(&known));
    }

    /// Notes which policy store is here. The one of before stays known, until it is told of and compared, and after.
    pub(crate) fn adopt(&self, store: StoreId) {
        let mut known = self.known();
        warn_of(self.turn_to(&mut known, store));
    }

    fn turn_to(&self, known: &mut Contents, store: StoreId) -> io::Result<()> {
        let last = known.mark;
        if last.is_some_and(|mark| mark.store == store) {
            return Ok(());
        }
        let back = known.former.iter().position(|former| former.mark.store == store);
        let back = back.map(|at| known.former.remove(at).mark);
        if let Some(last) = last {
            known.put_former(last);
        }
        let mark = back.unwrap_or(OutboxMark { store, last_id: 0 });
        known.mark = Some(mark);
        known.rows.clear();
        known.undone.clear();
        known.next_undone = 0;
        // In this order: what was known of the store before is nowhere else.
        self.write_former(known)?;
        self.file.write_all_at(&encode(mark), 0)
    }

    fn write_former(&self, known: &Contents) -> io::Result<()> {
        for slot in 0..FORMER {
            let bytes = known
                .former
                .get(slot)
                .map_or_else(|| vec![0; FORMER_LEN], |former| encode_former(*former));
            self.file.write_all_at(&bytes, former_at(slot))?;
        }
        Ok(())
    }

    /// The policy stores of before, and the last id known of each.
    pub(crate) fn former(&self) -> Vec<OutboxMark> {
        self.known().former.iter().map(|former| former.mark).collect()
    }

    /// Those that nobody was told of yet.
    pub(crate) fn untold(&self) -> Vec<OutboxMark> {
        self.known()
            .former
            .iter()
            .filter(|former| !former.is_told)
            .map(|former| former.mark)
            .collect()
    }

    /// Those whose ids were not compared with the sealed entries yet.
    pub(crate) fn uncompared(&self) -> Vec<OutboxMark> {
        self.known()
            .former
            .iter()
            .filter(|former| !former.is_compared)
            .map(|former| former.mark)
            .collect()
    }

    pub(crate) fn note_told(&self, store: StoreId) {
        self.note_of_former(store, |former| former.is_told = true);
    }

    pub(crate) fn note_compared(&self, store: StoreId) {
        self.note_of_former(store, |former| former.is_compared = true);
    }

    fn note_of_former(&self, store: StoreId, note: impl Fn(&mut Former)) {
        let mut known = self.known();
        known
            .former
            .iter_mut()
            .filter(|former| former.mark.store == store)
            .for_each(note);
        warn_of(self.write_former(&known));
    }
}

impl Contents {
    fn put_former(&mut self, mark: OutboxMark) {
        if self.former.len() >= FORMER {
            // One that is settled makes room, else the newest: who exchanges stores in turn makes none forgotten.
            let settled = self
                .former
                .iter()
                .position(|former| former.is_told && former.is_compared);
            let Some(settled) = settled else { return };
            self.former.remove(settled);
        }
        self.former.push(Former {
            mark,
            is_told: false,
            is_compared: false,
        });
    }
}

fn warn_of(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::warn!(%error, "the mark of the audit outbox was not written");
    }
}

fn read<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
}

/// The rows that are there whole; the others are not remembered.
fn read_rows(file: &File, store: StoreId, kind: &[u8], at: u64, most: u64) -> BTreeMap<u64, (i64, [u8; 32])> {
    let mut rows = BTreeMap::new();
    for place in 0..most {
        let at = if at == 0 { offset(place) } else { undone_at(place) };
        let Some(bytes) = read(file, at) else { break };
        if let Some(row) = decode_row(store, kind, &bytes) {
            rows.insert(place, row);
        }
    }
    rows
}

fn place(id: i64) -> u64 {
    id.unsigned_abs() % ROWS
}

fn offset(place: u64) -> u64 {
    (LEN as u64).saturating_add(place.saturating_mul(ROW_LEN as u64))
}

fn former_at(slot: usize) -> u64 {
    FORMER_AT.saturating_add((slot as u64).saturating_mul(FORMER_LEN as u64))
}

fn undone_at(place: u64) -> u64 {
    UNDONE_AT.saturating_add(place.saturating_mul(ROW_LEN as u64))
}

impl OutboxWitness for OutboxMarkFile {
    fn note(&self, new: OutboxMark, digests: &[(i64, [u8; 32])]) {
        let mut known = self.known();
        let mut written = self.turn_to(&mut known, new.store);
        for (id, digest) in digests {
            known.rows.insert(place(*id), (*id, *digest));
            let bytes = encode_row(new.store, COMMITTED, *id, digest);
            written = written.and(self.file.write_all_at(&bytes, offset(place(*id))));
        }
        if known.mark.is_none_or(|mark| mark.last_id < new.last_id) {
            known.mark = Some(new);
            written = written.and(self.file.write_all_at(&encode(new), 0));
        }
        warn_of(written);
    }

    fn note_undone(&self, store: StoreId, codes: &[(i64, [u8; 32])]) {
        let mut known = self.known();
        let mut written = self.turn_to(&mut known, store);
        for (id, code) in codes {
            let place = known.next_undone;
            known.next_undone = place.saturating_add(1) % UNDONE;
            known.undone.insert(place, (*id, *code));
            let bytes = encode_row(store, UNDO, *id, code);
            written = written.and(self.file.write_all_at(&bytes, undone_at(place)));
        }
        warn_of(written);
    }

    fn last_id(&self, store: StoreId) -> i64 {
        let known = self.known();
        let marks = known
            .mark
            .into_iter()
            .chain(known.former.iter().map(|former| former.mark));
        marks
            .filter(|mark| mark.store == store)
            .map(|mark| mark.last_id)
            .max()
            .unwrap_or(0)
    }

    fn digest(&self, store: StoreId, id: i64) -> Option<[u8; 32]> {
        let known = self.known();
        known.mark.filter(|mark| mark.store == store)?;
        known
            .rows
            .get(&place(id))
            .filter(|(of, _)| *of == id)
            .map(|(_, digest)| *digest)
    }

    fn undone(&self, store: StoreId) -> Vec<(i64, [u8; 32])> {
        let known = self.known();
        match known.mark.filter(|mark| mark.store == store) {
            Some(_) => known.undone.values().copied().collect(),
            None => Vec::new(),
        }
    }

    fn former_stores(&self) -> Vec<StoreId> {
        self.known().former.iter().map(|former| former.mark.store).collect()
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

fn encode_former(former: Former) -> Vec<u8> {
    let Former {
        mark,
        is_told,
        is_compared,
    } = former;
    let done = u8::from(is_told) | (u8::from(is_compared) << 1);
    let mut bytes = [mark.store.0.as_bytes().as_slice(), &mark.last_id.to_le_bytes(), &[done]].concat();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn decode_former(bytes: &[u8; FORMER_LEN]) -> Option<Former> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if u32::from_le_bytes(*sum) != crc32c::crc32c(content) {
        return None;
    }
    let (done, mark) = content.split_last()?;
    Some(Former {
        mark: decode_mark(mark)?,
        is_told: done & 1 != 0,
        is_compared: done & 2 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn store(number: u128) -> StoreId {
        StoreId(Uuid::from_u128(number))
    }

    #[test]
    fn rl9_the_last_row_is_remembered_over_a_restart() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = store(4);
        let other = StoreId(Uuid::from_u128(5));
        let file = OutboxMarkFile::open(dir.path()).expect("made");
        assert_eq!(file.last_id(store), 0);
        for last_id in [3, 9, 5] {
            file.note(
                OutboxMark { store, last_id },
                &[(last_id, [u8::try_from(last_id).expect("small"); 32])],
            );
        }
        file.note_undone(store, &[(10, [10; 32]), (10, [11; 32])]);
        let again = OutboxMarkFile::open(dir.path()).expect("opened");
        assert_eq!(again.last_id(store), 9, "commits are not noted in order");
        assert_eq!(again.last_id(other), 0, "of that store only");
        let digests = [3, 4, 5, 9].map(|id| again.digest(store, id));
        assert_eq!(digests, [Some([3; 32]), None, Some([5; 32]), Some([9; 32])]);
        assert_eq!(again.digest(other, 3), None);
        assert_eq!(again.digest(store, 3 + 4096), None, "another id at its place");
        assert_eq!(again.undone(store), [(10, [10; 32]), (10, [11; 32])]);
        assert_eq!(again.undone(other), []);
        std::fs::write(dir.path().join(FILE), [1; LEN]).expect("damaged");
        assert_eq!(OutboxMarkFile::open(dir.path()).expect("opened").last_id(store), 0);
    }

    /// RL3: another identity makes nothing forgotten of the one before, whenever the process ends.
    #[test]
    fn rl9_what_was_known_of_a_policy_store_outlives_its_identity() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || OutboxMarkFile::open(dir.path()).expect("opened");
        let (one, two) = (
            OutboxMark {
                store: store(1),
                last_id: 7,
            },
            OutboxMark {
                store: store(2),
                last_id: 1,
            },
        );
        open().note(one, &[(7, [7; 32])]);
        open().note(two, &[(1, [1; 32])]);
        assert_eq!((open().untold(), open().uncompared()), (vec![one], vec![one]));
        assert_eq!((open().last_id(one.store), open().last_id(two.store)), (7, 1));
        open().note_told(one.store);
        assert_eq!((open().untold(), open().uncompared()), (vec![], vec![one]));
        open().note_compared(one.store);
        assert_eq!((open().uncompared(), open().former()), (vec![], vec![one]));
        // And back: the other one is told, and ids go on where they were.
        open().adopt(one.store);
        assert_eq!((open().untold(), open().last_id(one.store)), (vec![two], 7));
    }
}
