//! The journal of this instance, opened where the configuration says (spec/70 rule 11, HD25).

use super::{
    fault::Fault,
    stores::{Ground, Secrets, make_private},
};
use crate::{
    config::{Config, Entry as _, Environment, Problem, Report, kind::signing_key, registry::AUDIT_BUFFER_DIR},
    mount,
};
use anyhow::{Context as _, bail};
use gw_audit::{
    ChainId, Checkpoint, CheckpointPublicKey, SecurityEvent, SecurityKind, StoredChain, Stream, TrustedHeads,
    verify::FindingKind,
};
use gw_journal::{Journal, OpenError, Options, Recovery, Standing, StoredHead};
use gw_store::audit::AuditStore;
use gw_types::Seconds;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Size of one segment file.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Sealed segments are kept this long and this large, so that a failed-over audit store can be sealed again (HD25).
const RETAIN_FOR: Seconds = Seconds(24 * 3600);
const RETAIN_BYTES: u64 = 1 << 30;
/// Names the chains of this deployment.
pub(crate) const CLUSTER: &str = "ledger-gateway";

/// Opens it and finds what a crash left open.
pub(super) fn open(config: &Config, secrets: &Secrets, ground: &Ground) -> Result<(Journal, Recovery), Fault> {
    let dir = config.audit.journal_dir.clone();
    if config.environment == Environment::Production {
        let vanishing = mount::vanishing(&dir).context("the journal's file system cannot be told")?;
        if let Some(kind) = vanishing {
            let mut report = Report::default();
            report.add(Problem::new(
                AUDIT_BUFFER_DIR.name(),
                format!("lies on {kind}, which does not outlive its container"),
            ));
            return Err(report.into());
        }
    }
    make_private(&dir)?;
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    let options = Options {
        dir,
        holder: format!("process {}", std::process::id()),
        cluster: CLUSTER.to_owned(),
        checkpoint_key: key.verifying_key().to_bytes(),
        max_bytes: config.audit.journal_max_bytes,
        segment_bytes: SEGMENT_BYTES,
        retain_bytes: RETAIN_BYTES,
        retain_for: RETAIN_FOR,
    };
    match Journal::open(options, Arc::clone(&ground.clock), Arc::clone(&ground.entropy)) {
        Ok((journal, recovery)) => {
            if recovery.torn > 0 {
                tracing::warn!(records = recovery.torn, "journal_torn: records at its end were lost with the power");
                note(&journal, SecurityKind::JournalTorn, recovery.torn)?;
            }
            if recovery.salvaged > 0 {
                tracing::warn!(records = recovery.salvaged, "records behind a torn place of the journal were saved");
            }
            Ok((journal, recovery))
        }
        Err(error @ OpenError::Held { .. }) => Err(Fault::Held(error.to_string())),
        Err(error) => Err(Fault::Other(anyhow::Error::from(error).context("the journal cannot be opened"))),
    }
}

/// Brings the journal and the audit store into step (HD24, HD25): what the store lost is sealed again while it is kept
/// here; a shard that somebody else goes on with, or whose entries are gone, is given up for a new one.
pub(super) async fn in_step(
    journal: Journal,
    recovery: Recovery,
    audit: &AuditStore,
) -> anyhow::Result<(Arc<Journal>, Recovery)> {
    let shard = journal.shard();
    let written = journal.heads().context("the journal's chains cannot be read")?;
    let mut stored = Vec::new();
    for (chain, head) in audit.chains().await.context("the audit store's chains cannot be read")? {
        if chain.shard != shard {
            continue;
        }
        stored.extend(head.map(|head| StoredHead { stream: chain.stream, size: head.size, hash: head.hash }));
        let issued = audit.issued(chain).await.context("the audit store's chains cannot be read")?;
        let kept = written.iter().find(|(id, _)| *id == chain).map_or(0, |(_, head)| head.size);
        if let Some(last) = issued.filter(|last| *last >= kept) {
            tracing::error!(stream = %chain.stream, from = kept, until = last, "journal_lost: numbered records are gone");
            note(&journal, SecurityKind::JournalLost, last + 1 - kept)?;
        }
    }
    // Both read files.
    let (journal, standing) = spawn_blocking(move || {
        let standing = journal.reconcile(&stored);
        (journal, standing)
    })
    .await
    .context("comparing the journal with the audit store failed")?;
    let (kind, count) = match standing.context("the journal cannot be compared with the audit store")? {
        Standing::InStep => return Ok((Arc::new(journal), recovery)),
        Standing::Moved => {
            tracing::warn!("the audit store is not where it was left; sealing goes on where it ends");
            return Ok((Arc::new(journal), recovery));
        }
        Standing::Missing { stream, from, until } => {
            tracing::error!(%stream, from, until, "journal_lost: the audit store lacks entries that are not kept here");
            (SecurityKind::JournalLost, until - from)
        }
        Standing::Foreign { stream } => {
            tracing::error!(%stream, "the audit store has entries of this shard that this journal did not write");
            (SecurityKind::ShardFenced, 0)
        }
    };
    let (journal, again) = spawn_blocking(move || journal.into_new_shard())
        .await
        .context("opening a new shard failed")?
        .context("a new shard cannot be opened")?;
    tracing::warn!(from = %shard, to = %journal.shard(), "records go on in a new shard");
    note(&journal, kind, count)?;
    Ok((Arc::new(journal), again))
}

/// A finding about the journal itself, in the journal.
fn note(journal: &Journal, kind: SecurityKind, count: u64) -> anyhow::Result<()> {
    let mut event = SecurityEvent::new(kind);
    event.count = Some(count);
    journal.append(event).map(drop).context("the journal takes no record")
}

/// The store must have every chain as it was signed and trusted last (spec/85 section 3, step 4). `will_restore` says how
/// many entries of a chain are sealed again by themselves, as after a failover (HD25).
pub(crate) async fn nothing_is_missing(
    audit: &AuditStore,
    heads: &TrustedHeads,
    keys: &[CheckpointPublicKey],
    will_restore: impl Fn(ChainId) -> u64,
) -> anyhow::Result<()> {
    let ends = audit.chains().await.context("the audit store's chains cannot be read")?;
    let mut problems = Vec::new();
    for (chain, head) in &ends {
        let size = head.map_or(0, |head| head.size);
        let era = heads.head(*chain).map_or(0, |head| head.era);
        // The store itself says that there was more, so nothing brings it into step by itself.
        for note in audit.newest_checkpoints(*chain).await.context("a checkpoint cannot be read")? {
            match Checkpoint::open(&note.note, keys) {
                Ok(signed) if signed.era() >= era && signed.size > size => problems.push(format!(
                    "chain {chain} ends at entry {size}, but {} were signed: entries are missing",
                    signed.size
                )),
                Ok(_) => {}
                Err(error) => tracing::warn!(%chain, %error, "a checkpoint is not of a known key"),
            }
        }
    }
    let mut stored = Vec::new();
    for (chain, trusted) in heads.heads() {
        let head = ends.iter().find(|(id, _)| *id == chain).and_then(|(_, head)| *head);
        let at_trusted = match trusted.size.checked_sub(1) {
            Some(last) => audit.computed_hash(chain, last).await.context("an entry cannot be read")?,
            None => None,
        };
        stored.push(StoredChain { chain, head, at_trusted });
    }
    for (chain, finding) in heads.missing_from(&stored, will_restore) {
        let trusted = heads.head(chain).map_or(0, |head| head.size);
        let size = ends.iter().find(|(id, _)| *id == chain).and_then(|(_, head)| *head).map_or(0, |head| head.size);
        problems.push(match finding.kind {
            FindingKind::ShardMissing => format!("chain {chain} with {trusted} signed entries is missing as a whole"),
            FindingKind::ChainTruncated => {
                format!("chain {chain} ends at entry {size}, but {trusted} were signed: entries are missing")
            }
            other => format!("chain {chain} is not as it was signed at {trusted} entries ({other})"),
        });
    }
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "the audit store is not what was signed: {}; `ledger-gateway audit verify` says more; if the store was restored \
         from a backup, `ledger-gateway audit re-anchor` goes on from what it has",
        problems.join("; ")
    )
}

/// How many entries of a chain the journal of this instance seals again by itself, where the store lost them: all of its
/// own shard, and the first entry of the administrative chain, which is always the same.
pub(super) fn will_restore(journal: &Journal) -> impl Fn(ChainId) -> u64 {
    let own = journal.heads().unwrap_or_default();
    move |chain| match own.iter().find(|(id, _)| *id == chain) {
        Some((_, head)) => head.size,
        None => u64::from(chain.stream == Stream::Admin),
    }
}
