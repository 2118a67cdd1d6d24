//! What this instance knows of the audit log outside its database: the file of trusted heads in the journal's directory,
//! the witness that is told of every signature, and the alarm that a contradiction raises (spec/70 rules 7, 8 and 19).

use crate::webhook::{Post, Webhook};
use anyhow::Context as _;
use gw_audit::{
    ChainEdge, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Discontinuity, SecurityEvent, SecurityKind,
    TrustedHead, TrustedHeads,
    tree::Frontier,
    verify::{Finding, FindingKind},
};
use gw_journal::Journal;
use gw_types::{B256, Clock};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Under what signatures stand in the log: a stable name, to be shipped by.
pub(crate) const LOG_TARGET: &str = "audit.checkpoint";
/// The file in the journal's directory.
pub(crate) const FILE: &str = "trusted-heads";
/// What earlier versions kept: edges without notes.
const EARLIER_FILE: &str = "frontiers.json";

/// The file of trusted heads and what is in it.
#[derive(Debug)]
pub(crate) struct HeadsFile {
    path: PathBuf,
    heads: Mutex<TrustedHeads>,
    is_new: bool,
}

impl HeadsFile {
    /// Opens the file of a journal directory. Without one, what an earlier version kept is taken over; without that
    /// nothing is trusted yet.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        let (heads, is_new) = match read_heads(directory)? {
            Some(heads) => (heads, false),
            None => {
                let earlier = read_earlier(directory)?;
                let is_new = earlier.is_none();
                (earlier.unwrap_or_default(), is_new)
            }
        };
        Ok(Self {
            path,
            heads: Mutex::new(heads),
            is_new,
        })
    }

    /// Whether nothing was known of the chains before this start.
    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// What is trusted now.
    pub(crate) fn heads(&self) -> TrustedHeads {
        self.lock().clone()
    }

    /// Changes what is trusted, and writes the file if `change` says that it did.
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

/// The trusted heads of a directory; `None` if there is no file. A file that cannot be read is an error: to go on without
/// it would be to trust the database.
pub(crate) fn read_heads(directory: &Path) -> anyhow::Result<Option<TrustedHeads>> {
    let path = directory.join(FILE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    };
    let heads = serde_json::from_slice(&text).with_context(|| {
        format!(
            "`{}` is damaged: put back a copy of it; without one, run `ledger-gateway audit verify` with the notes that \
             were logged, then move the file away",
            path.display()
        )
    })?;
    Ok(Some(heads))
}

#[derive(serde::Deserialize)]
struct EarlierEdge {
    size: u64,
    peaks: Vec<B256>,
}

fn read_earlier(directory: &Path) -> anyhow::Result<Option<TrustedHeads>> {
    let Ok(text) = fs::read(directory.join(EARLIER_FILE)) else {
        return Ok(None);
    };
    // It was trusted for nothing: a broken one is as good as none.
    let Ok(edges) = serde_json::from_slice::<BTreeMap<String, EarlierEdge>>(&text) else {
        return Ok(None);
    };
    let mut heads = TrustedHeads::default();
    for (name, EarlierEdge { size, peaks }) in edges {
        if let Some((chain, frontier)) = name.parse().ok().zip(Frontier::resume(size, peaks)) {
            heads.advance(chain, TrustedHead::new(None, &ChainEdge::new(frontier, None), 0));
        }
    }
    Ok(Some(heads))
}

/// Whole and durable, or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Takes over re-anchorings from the store: they are signed, so the store need not be trusted. Says whether any was new.
pub(crate) fn adopt(
    heads: &mut TrustedHeads,
    stored: &[(ChainId, String)],
    cluster: &str,
    keys: &[CheckpointPublicKey],
) -> bool {
    let mut changed = false;
    for (chain, note) in stored {
        match Discontinuity::open(note, cluster, keys) {
            Ok(one) if one.chain == *chain => changed |= heads.re_anchor(note, &one),
            Ok(_) | Err(_) => tracing::warn!(%chain, "a re-anchoring in the audit store is signed by no known key"),
        }
    }
    changed
}

/// Raises a finding once: in the log, in the metrics, in the journal and to the address the operator named.
#[derive(Debug)]
pub(crate) struct TamperAlarm {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    webhook: Option<Webhook>,
    raised: Mutex<HashSet<(ChainId, FindingKind, Option<u64>)>>,
    is_raised: AtomicBool,
}

/// Distinct findings remembered; a history rewritten as a whole has more, and nobody reads them.
const REMEMBERED: usize = 4096;

impl TamperAlarm {
    pub(crate) fn new(journal: Arc<Journal>, clock: Arc<dyn Clock>, webhook: Option<Webhook>) -> Self {
        Self {
            journal,
            clock,
            webhook,
            raised: Mutex::default(),
            is_raised: AtomicBool::new(false),
        }
    }

    /// Whether anything was found since the start.
    pub(crate) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    /// Raises a finding, if it was not raised before. `scanned` rows were looked at, `null_hashes` of them without a hash.
    pub(crate) fn raise(&self, chain: ChainId, finding: &Finding, scanned: u64, null_hashes: u64) {
        self.is_raised.store(true, Ordering::Relaxed);
        {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.len() >= REMEMBERED || !raised.insert((chain, finding.kind, finding.seq)) {
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
                "entries of the audit log are not signed, though they should be: start the instance that wrote them; if it is \
                 gone for good, nobody vouches for them, and `ledger-gateway audit re-anchor` says so in the log"
            }
            FindingKind::JournalLost => {
                "records of a writer that is gone were never sealed: find its journal directory, or `ledger-gateway audit \
                 salvage` it; if it is gone for good, `ledger-gateway audit re-anchor` says so in the log"
            }
            _ => {
                "the audit log was tampered with: run `ledger-gateway audit verify`, keep the database and the journal \
                 directory as they are"
            }
        };
        tracing::error!(%chain, reason, entry = finding.seq, "{advice}");
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        event.reason = Some(format!("{reason} {chain}").into());
        event.count = finding.seq;
        if let Err(error) = self.journal.append(event) {
            tracing::error!(%chain, reason, %error, "the finding is not in the journal");
        }
        if let Some(webhook) = &self.webhook {
            let body = json!({
                "type": SecurityKind::TamperDetected.as_str(),
                "chain": chain.to_string(),
                "reason": reason,
                "row_id": finding.seq,
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

/// Everything together.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) file: HeadsFile,
    pub(crate) alarm: TamperAlarm,
    pub(crate) cluster: &'static str,
    clock: Arc<dyn Clock>,
    witness: Option<Webhook>,
    /// How long a signed list of chains stands.
    interval: Duration,
    listed: Mutex<Option<(Instant, usize)>>,
}

impl Trust {
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

    /// How many numbers of a chain a re-anchoring knew of: what is lost below is decided.
    pub(crate) fn accepted(&self, chain: ChainId) -> u64 {
        let heads = self.file.heads();
        let keys: Vec<_> = heads.keys().collect();
        let notes = heads.discontinuities(chain).iter();
        let known = notes.filter_map(|note| Discontinuity::open(note, self.cluster, &keys).ok());
        known.map(|one| one.issued).max().unwrap_or(0)
    }

    /// Keeps a head that was signed here, and tells the log and the witness of it.
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
        let kept = self.file.update(|heads| {
            heads.remember_key(&key.public());
            heads.advance(chain, TrustedHead::new(Some(note.to_owned()), edge, checkpoint.era()));
            if self.list_is_due(heads) {
                list = Some(heads.sign_list(self.cluster, self.clock.now().micros().unsigned_abs(), key));
            }
            true
        });
        if let Err(error) = kept {
            tracing::error!(%error, "the trusted heads were not written: what is signed from now on is checked against older ones");
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

    /// Once an interval, and whenever there is another chain.
    fn list_is_due(&self, heads: &TrustedHeads) -> bool {
        let chains = heads.heads().count();
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let due = listed.is_none_or(|(at, known)| known != chains || at.elapsed() * 2 >= self.interval);
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
    fn rl2_a_trusted_head_survives_privately_and_a_broken_file_is_not_passed_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = HeadsFile::open(dir.path()).expect("opened");
        assert!(file.is_new() && file.heads().head(chain()).is_none());
        file.update(|heads| heads.advance(chain(), TrustedHead::new(None, &edge(5), 0)))
            .expect("written");
        let mode = fs::metadata(dir.path().join(FILE)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = HeadsFile::open(dir.path()).expect("opened");
        assert!(!again.is_new());
        let head = again.heads().head(chain()).expect("kept").clone();
        assert_eq!(head.edge(), Some(edge(5)));
        fs::write(dir.path().join(FILE), b"{").expect("broken");
        assert!(
            HeadsFile::open(dir.path()).is_err(),
            "to go on would be to trust the database"
        );
    }

    #[test]
    fn rl2_the_edges_of_an_earlier_version_are_taken_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let edge = edge(5);
        let text = json!({ chain().to_string(): { "size": 5, "peaks": edge.frontier().peaks() } });
        fs::write(dir.path().join(EARLIER_FILE), text.to_string()).expect("written");
        let file = HeadsFile::open(dir.path()).expect("opened");
        assert!(!file.is_new());
        let head = file.heads().head(chain()).expect("taken over").clone();
        assert_eq!(
            (head.size, head.root(), head.last),
            (5, Some(edge.frontier().root()), None)
        );
    }
}
