//! A crash at every operation of a salvage: the damaged files stay unchanged, and each record exists exactly once.

use super::disk::{self, Fault};
use super::{append, files, numbers, open, open_still, options, record, sources};
use crate::{OpenError, Salvage, flush};
use std::path::Path;

fn confirm(dir: &Path) -> Option<Result<(), OpenError>> {
    let salvage = Salvage::inspect(dir, "a test").unwrap();
    salvage.refusal()?;
    // A different start value for each call, so that shard ids are unique.
    let entries = std::fs::read_dir(dir).unwrap().count() as u64;
    let (clock, entropy) = sources((entries + 7) << 40);
    Some(salvage.confirm(options(dir), clock, entropy).map(drop))
}

/// Whether a directory still has the damaged file unchanged.
fn is_kept(dir: &Path, bytes: &[u8]) -> bool {
    let dirs = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let mut files = dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()));
    files.any(|path| std::fs::read(path).is_ok_and(|content| content == bytes))
}

#[test]
fn rl5_a_salvage_that_crashes_at_any_operation_can_be_repeated() {
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
        let shard_files = files(dir.path());
        disk::start(Some((at, Fault::Crash)));
        let is_done = confirm(dir.path()).unwrap().is_ok();
        let (operations, _) = disk::stop();
        assert!(is_kept(dir.path(), &damaged), "crash at {at}");
        // A start between the attempts does no harm.
        if open(dir.path()).is_err() {
            assert!(shard_files.is_dir());
            confirm(dir.path()).unwrap().unwrap();
        }
        assert!(confirm(dir.path()).is_none(), "nothing is left to salvage");
        assert!(is_kept(dir.path(), &damaged), "crash at {at}");
        let (journal, _) = open(dir.path()).unwrap();
        let salvaged = numbers(&journal);
        assert!(
            salvaged.len() >= 9 && salvaged.is_sorted_by(|a, b| a < b),
            "crash at {at}: {salvaged:?}"
        );
        assert!(journal.append(record(99)).is_ok());
        if is_done && operations < at {
            break;
        }
    }
}
