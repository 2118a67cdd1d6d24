//! What this instance knows about the audit log independently of its database: the file of trusted heads in the
//! journal's directory, the witness that receives every signed note, and the alarm for tamper findings (spec/70 rules
//! 7, 8 and 19).

use crate::webhook::{Post, Webhook};
use anyhow::Context as _;
use gw_audit::{
    ChainEdge, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Discontinuity, SecurityEvent, SecurityKind,
    Stream, TrustedHead, TrustedHeads,
    tree::Frontier,
    verify::{Finding, FindingKind, TableRow},
};
use gw_journal::Journal;
use gw_types::{B256, Clock};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The log target of signed notes. The name is stable, so that log shippers can select by it.
pub(crate) const LOG_TARGET: &str = "audit.checkpoint";
/// Name of the file of trusted heads in the journal's directory.
pub(crate) const FILE: &str = "trusted-heads";
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

#[derive(serde::Deserialize)]
struct LegacyEdge {
    size: u64,
    peaks: Vec<B256>,
}

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
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
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

/// Applies the re-anchorings in the audit store to the trusted heads. They are signed, so the store need not be
/// trusted. Returns whether any was new.
pub(crate) fn adopt(
    heads: &mut TrustedHeads,
    stored: &[(ChainId, String)],
    cluster: &str,
    keys: &[CheckpointPublicKey],
) -> bool {
    let mut changed = false;
    for (chain, note) in stored {
        match Discontinuity::open(note, cluster, keys) {
            Ok(discontinuity) if discontinuity.chain == *chain => changed |= heads.re_anchor(note, &discontinuity),
            Ok(_) | Err(_) => {
                tracing::warn!(%chain, "a re-anchoring in the audit store is ignored: no known key signed it")
            }
        }
    }
    changed
}

/// What makes a finding of a chain a different one.
type FindingKey = (ChainId, FindingKind, Option<u64>, Option<TableRow>);

/// Reports each tamper finding once: in the log, the metrics, the journal and to AUDIT_TAMPER_WEBHOOK_URL.
#[derive(Debug)]
pub(crate) struct TamperAlarm {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    webhook: Option<Webhook>,
    raised: Mutex<HashSet<FindingKey>>,
    is_raised: AtomicBool,
    /// Whether the last verification read everything; `None` before the first one.
    is_complete: Mutex<Option<bool>>,
}

/// Most findings that are reported. A history that was rewritten as a whole has more, and further reports would not
/// help.
const MAX_FINDINGS: usize = 4096;

impl TamperAlarm {
    pub(crate) fn new(journal: Arc<Journal>, clock: Arc<dyn Clock>, webhook: Option<Webhook>) -> Self {
        Self {
            journal,
            clock,
            webhook,
            raised: Mutex::default(),
            is_raised: AtomicBool::new(false),
            is_complete: Mutex::default(),
        }
    }

    /// Whether there was a verification, and the last one read everything.
    pub(crate) fn is_verified(&self) -> bool {
        *self.is_complete.lock().unwrap_or_else(PoisonError::into_inner) == Some(true)
    }

    /// Records whether a verification read everything, and returns the same of the one before; `None` for the first.
    pub(crate) fn set_verified(&self, is_complete: bool) -> Option<bool> {
        let mut last = self.is_complete.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(is_complete)
    }

    /// Whether any finding was raised since the process started.
    pub(crate) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    /// Raises a finding about the outbox or the policy store. `reason` is a code, optionally followed by a colon and
    /// the affected ids. The caller must raise each finding only once, and logs the line for the operator.
    pub(crate) fn raise_outbox(&self, reason: String, count: Option<u64>) {
        self.raise_code(Stream::Admin, reason, count);
    }

    /// Raises a finding about a stream that only a security event records. `reason` is a code, optionally followed by a
    /// colon and details. The caller must raise each finding only once, and logs the line for the operator.
    pub(crate) fn raise_code(&self, stream: Stream, reason: String, count: Option<u64>) {
        self.is_raised.store(true, Ordering::Relaxed);
        let (chain, code) = (stream.as_str(), reason.split(':').next().unwrap_or_default().to_owned());
        metrics::counter!("ledger_gateway_audit_chain_integrity_violations_total", "chain" => chain, "reason" => code)
            .increment(1);
        if let Some(webhook) = &self.webhook {
            let body = json!({
                "type": SecurityKind::TamperDetected.as_str(),
                "chain": chain,
                "reason": reason,
                "count": count,
                "detected_at": self.clock.now().to_rfc3339(),
            });
            webhook.post(Post {
                content_type: "application/json",
                body: body.to_string(),
            });
        }
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        event.reason = Some(reason.into());
        event.count = count;
        if let Err(error) = self.journal.append(event) {
            tracing::error!(chain, %error, "the tamper finding could not be recorded in the journal");
        }
    }

    /// Raises a finding, unless it was raised before. `scanned` is the number of rows checked, `null_hashes` the number
    /// of those without a hash.
    pub(crate) fn raise(&self, chain: ChainId, finding: &Finding, scanned: u64, null_hashes: u64) {
        self.is_raised.store(true, Ordering::Relaxed);
        {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.len() >= MAX_FINDINGS || !raised.insert((chain, finding.kind, finding.seq, finding.place)) {
                return;
            }
        }
        let reason = finding.kind.as_str();
        metrics::counter!(
            "ledger_gateway_audit_chain_integrity_violations_total", "chain" => chain.to_string(), "reason" => reason
        )
        .increment(1);
        let advice = match finding.kind {
            FindingKind::CheckpointMissing => {
                "entries of the audit log are overdue to be signed: start the instance that wrote them; if it is gone \
                 for good, run `ledger-gateway audit re-anchor`, which records that these entries were never signed"
            }
            FindingKind::JournalLost => {
                "records of a stopped writer were never sealed: find its journal directory, and run `ledger-gateway \
                 audit salvage` if it is damaged; if it is gone for good, run `ledger-gateway audit re-anchor`, which \
                 records the loss"
            }
            _ if finding.is_unverified() => {
                "a part of the audit log cannot be verified: check whether the table and its columns exist, whether a \
                 session has locked it, and the privileges of the role; run `ledger-gateway audit verify`"
            }
            _ => {
                "the audit log was tampered with: run `ledger-gateway audit verify`, and leave the database and the \
                 journal directory unchanged"
            }
        };
        let (table, row) = (
            finding.place.map(|place| place.table),
            finding.place.and_then(|place| place.id),
        );
        tracing::error!(%chain, reason, entry = finding.seq, table, row, "{advice}");
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        let place = match (table, row) {
            (Some(table), Some(row)) => format!(" {table}:{row}"),
            (Some(table), None) => format!(" {table}"),
            (None, _) => String::new(),
        };
        event.reason = Some(format!("{reason} {chain}{place}").into());
        event.count = finding.seq;
        if let Err(error) = self.journal.append(event) {
            tracing::error!(%chain, reason, %error, "the tamper finding could not be recorded in the journal");
        }
        if let Some(webhook) = &self.webhook {
            let body = json!({
                "type": SecurityKind::TamperDetected.as_str(),
                "chain": chain.to_string(),
                "reason": reason,
                "row_id": finding.seq,
                "table": table,
                "table_row_id": row,
                "row_time": finding.time.map(gw_types::Timestamp::to_rfc3339),
                "stored_hash": finding.stored,
                "expected_hash": finding.expected,
                "scanned_rows": scanned,
                "null_hash_rows": null_hashes,
                "detected_at": self.clock.now().to_rfc3339(),
            });
            webhook.post(Post {
                content_type: "application/json",
                body: body.to_string(),
            });
        }
    }
}

/// Trusted heads, tamper alarm and witness of this instance.
#[derive(Debug)]
pub(crate) struct AuditTrust {
    pub(crate) file: HeadsFile,
    pub(crate) alarm: TamperAlarm,
    pub(crate) cluster: &'static str,
    clock: Arc<dyn Clock>,
    witness: Option<Webhook>,
    /// How long a signed list of chains is valid.
    interval: Duration,
    listed: Mutex<Option<(Instant, usize)>>,
}

impl AuditTrust {
    pub(crate) fn new(
        file: HeadsFile,
        alarm: TamperAlarm,
        cluster: &'static str,
        clock: Arc<dyn Clock>,
        witness: Option<Webhook>,
        interval: Duration,
    ) -> Self {
        Self {
            file,
            alarm,
            cluster,
            clock,
            witness,
            interval,
            listed: Mutex::default(),
        }
    }

    /// The number of entries of a chain that re-anchorings have accounted for. Losses below it are accepted already.
    pub(crate) fn accepted(&self, chain: ChainId) -> u64 {
        let heads = self.file.heads();
        let keys: Vec<_> = heads.keys().collect();
        let notes = heads.discontinuities(chain).iter();
        let discontinuities = notes.filter_map(|note| Discontinuity::open(note, self.cluster, &keys).ok());
        discontinuities
            .map(|discontinuity| discontinuity.issued)
            .max()
            .unwrap_or(0)
    }

    /// Stores a head that this instance signed, and sends the note to the log and to the witness.
    pub(crate) fn note_signed(
        &self,
        chain: ChainId,
        edge: &ChainEdge,
        checkpoint: &Checkpoint,
        note: &str,
        key: &CheckpointKey,
    ) {
        tracing::info!(target: LOG_TARGET, %chain, size = checkpoint.size, note, "a checkpoint was signed");
        let mut list = None;
        let written = self.file.update(|heads| {
            heads.remember_key(&key.public());
            heads.advance(chain, TrustedHead::new(Some(note.to_owned()), edge, checkpoint.era()));
            if self.list_is_due(heads) {
                list = Some(heads.sign_list(self.cluster, self.clock.now().micros().unsigned_abs(), key));
            }
            true
        });
        if let Err(error) = written {
            tracing::error!(
                %error,
                "the trusted heads could not be written: the audit log is checked against older heads; check the \
                 journal directory"
            );
        }
        if let Some(list) = &list {
            tracing::info!(target: LOG_TARGET, note = list.as_str(), "the list of chains was signed");
        }
        if let Some(witness) = &self.witness {
            for note in [Some(note.to_owned()), list].into_iter().flatten() {
                witness.post(Post {
                    content_type: "text/plain; charset=utf-8",
                    body: note,
                });
            }
        }
    }

    /// Whether half of the interval has passed since the last signed list, or the number of chains has changed.
    fn list_is_due(&self, heads: &TrustedHeads) -> bool {
        let chains = heads.heads().count();
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let due = listed.is_none_or(|(at, listed_chains)| listed_chains != chains || at.elapsed() * 2 >= self.interval);
        if due {
            *listed = Some((Instant::now(), chains));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_audit::{ShardId, Stream};
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
