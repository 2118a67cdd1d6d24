//! A salvage that dies at any operation: the damaged files are there, whole, and so are the records, once.

use super::disk::{self, Fault};
use super::{Counter, append, files, numbers, open, open_still, options, record};
use crate::{OpenError, Salvage, flush};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn confirm(dir: &Path) -> Option<Result<(), OpenError>> {
    let salvage = Salvage::inspect(dir, "a test").unwrap();
    salvage.refusal()?;
    let counter = Arc::new(Counter::default());
    // No shard gets an id twice.
    let entries = std::fs::read_dir(dir).unwrap().count() as u64;
    counter.0.store((entries + 7) << 40, Ordering::Relaxed);
    Some(
        salvage
            .confirm(options(dir), Arc::<Counter>::clone(&counter), counter)
            .map(drop),
    )
}

/// Whether some directory still holds the damaged file, byte for byte.
fn is_kept(dir: &Path, bytes: &[u8]) -> bool {
    let dirs = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let mut files = dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()));
    files.any(|path| std::fs::read(path).is_ok_and(|found| found == bytes))
}

#[test]
fn rl5_a_salvage_that_dies_anywhere_is_done_again() {
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let journal = open_still(dir.path());
        append(&journal, 0..10);
        flush::sync(&journal.shared);
        append(&journal, 10..12);
        flush::sync(&journal.shared);
        drop(journal);
        let path = super::segment(dir.path());
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xee; 10], 4096 + 1200).unwrap();
        let damaged = std::fs::read(&path).unwrap();
        assert!(matches!(open(dir.path()), Err(OpenError::Corrupt { .. })));
        let before = files(dir.path());
        disk::start(Some((at, Fault::Dies)));
        let done = confirm(dir.path()).unwrap().is_ok();
        let (operations, _) = disk::stop();
        assert!(is_kept(dir.path(), &damaged), "death at {at}");
        // A start in between does no harm.
        if open(dir.path()).is_err() {
            assert!(before.is_dir());
            confirm(dir.path()).unwrap().unwrap();
        }
        assert!(confirm(dir.path()).is_none(), "nothing is left to do");
        assert!(is_kept(dir.path(), &damaged), "death at {at}");
        let (journal, _) = open(dir.path()).unwrap();
        let found = numbers(&journal);
        assert!(
            found.len() >= 9 && found.is_sorted_by(|a, b| a < b),
            "death at {at}: {found:?}"
        );
        assert!(journal.append(record(99)).is_ok());
        if done && operations < at {
            break;
        }
    }
}
