//! The file of trusted heads in the journal's directory.

use anyhow::Context as _;
use gw_audit::{ChainEdge, TrustedHead, TrustedHeads, tree::Frontier};
use gw_types::B256;
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Name of the file of trusted heads in the journal's directory.
const FILE: &str = "trusted-heads";
/// Name of the file of earlier versions. It holds chain edges without signed notes.
const LEGACY_FILE: &str = "frontiers.json";

/// The file of trusted heads, with its contents in memory.
#[derive(Debug)]
pub(crate) struct HeadsFile {
    path: PathBuf,
    heads: Mutex<TrustedHeads>,
    is_new: bool,
}

impl HeadsFile {
    /// Opens the file of a journal directory. If there is none, the file of an earlier version is imported; if that is
    /// missing too, nothing is trusted yet.
    ///
    /// # Errors
    /// If the file exists and cannot be read or parsed.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        let (heads, is_new) = match read_heads(directory)? {
            Some(heads) => (heads, false),
            None => {
                let legacy = read_legacy(directory)?;
                let is_new = legacy.is_none();
                (legacy.unwrap_or_default(), is_new)
            }
        };
        Ok(Self {
            path,
            heads: Mutex::new(heads),
            is_new,
        })
    }

    /// Whether no trusted head was on file when this process started.
    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// A copy of the trusted heads.
    pub(crate) fn heads(&self) -> TrustedHeads {
        self.lock().clone()
    }

    /// Applies `change` to the trusted heads, and writes the file if `change` returns `true`.
    pub(crate) fn update(&self, change: impl FnOnce(&mut TrustedHeads) -> bool) -> io::Result<()> {
        let mut heads = self.lock();
        if !change(&mut heads) {
            return Ok(());
        }
        write_whole(&self.path, &serde_json::to_vec_pretty(&*heads)?)
    }

    fn lock(&self) -> MutexGuard<'_, TrustedHeads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the trusted heads of a directory; `None` if there is no file.
///
/// # Errors
/// If the file cannot be read or parsed. Continuing without it would mean to trust the database.
pub(crate) fn read_heads(directory: &Path) -> anyhow::Result<Option<TrustedHeads>> {
    let path = directory.join(FILE);
    let text = match read_regular(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    };
    let heads = serde_json::from_slice(&text).with_context(|| {
        format!(
            "`{}` is damaged: restore a copy of it; if there is none, run `ledger-gateway audit verify` with the \
             signed notes from the log, then move the file away",
            path.display()
        )
    })?;
    Ok(Some(heads))
}

/// Reads a regular file. Opening a pipe would wait for a writer without end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let no_wait = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = OpenOptions::new().read(true).custom_flags(no_wait).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file: find out who replaced it, and restore a copy of it",
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The edge of a chain as earlier versions stored it.
#[derive(serde::Deserialize)]
struct LegacyEdge {
    size: u64,
    peaks: Vec<B256>,
}

/// Reads the file of an earlier version; `None` if there is none, or it cannot be read.
fn read_legacy(directory: &Path) -> anyhow::Result<Option<TrustedHeads>> {
    let Ok(text) = read_regular(&directory.join(LEGACY_FILE)) else {
        return Ok(None);
    };
    // Earlier versions did not base any check on this file, so a damaged one is ignored.
    let Ok(edges) = serde_json::from_slice::<BTreeMap<String, LegacyEdge>>(&text) else {
        return Ok(None);
    };
    let mut heads = TrustedHeads::default();
    for (name, LegacyEdge { size, peaks }) in edges {
        if let Some((chain, frontier)) = name.parse().ok().zip(Frontier::resume(size, peaks)) {
            heads.advance(chain, TrustedHead::new(None, &ChainEdge::new(frontier, None), 0));
        }
    }
    Ok(Some(heads))
}

/// Replaces a file atomically and durably: writes a temporary file, syncs it, renames it and syncs the directory.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("next");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_audit::{ChainId, ShardId, Stream};
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    fn chain() -> ChainId {
        ChainId {
            stream: Stream::Access,
            shard: ShardId(uuid::Uuid::from_u128(1)),
        }
    }

    fn edge(size: u8) -> ChainEdge {
        let frontier: Frontier = (0..size).map(B256::repeat_byte).collect();
        ChainEdge::new(frontier, size.checked_sub(1).map(B256::repeat_byte))
    }

    #[test]
    fn rl2_a_trusted_head_is_stored_privately_and_a_damaged_file_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = HeadsFile::open(dir.path()).expect("opened");
        assert!(file.is_new() && file.heads().head(chain()).is_none());
        file.update(|heads| heads.advance(chain(), TrustedHead::new(None, &edge(5), 0)))
            .expect("written");
        let mode = fs::metadata(dir.path().join(FILE)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let reopened = HeadsFile::open(dir.path()).expect("opened");
        assert!(!reopened.is_new());
        let head = reopened.heads().head(chain()).expect("kept").clone();
        assert_eq!(head.edge(), Some(edge(5)));
        fs::write(dir.path().join(FILE), b"{").expect("broken");
        assert!(
            HeadsFile::open(dir.path()).is_err(),
            "continuing would mean to trust the database"
        );
    }

    #[test]
    fn rl2_a_pipe_in_place_of_the_trusted_heads_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join(FILE),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a pipe");
        let error = read_heads(dir.path()).expect_err("no regular file");
        assert!(format!("{error:#}").contains("not a regular file"), "{error:#}");
    }

    #[test]
    fn rl2_the_edges_of_an_earlier_version_are_imported() {
        let dir = tempfile::tempdir().expect("a directory");
        let edge = edge(5);
        let text = json!({ chain().to_string(): { "size": 5, "peaks": edge.frontier().peaks() } });
        fs::write(dir.path().join(LEGACY_FILE), text.to_string()).expect("written");
        let file = HeadsFile::open(dir.path()).expect("opened");
        assert!(!file.is_new());
        let head = file.heads().head(chain()).expect("taken over").clone();
        assert_eq!(
            (head.size, head.root(), head.last),
            (5, Some(edge.frontier().root()), None)
        );
    }
}
