//! Opens the journal of this instance and reconciles it with the audit store (spec/70 rule 11, HD24, HD25).

use super::{
    fault::ServeError,
    stores::{Platform, Secrets, make_private},
};
use crate::{
    config::{Config, Entry as _, Environment, Problem, Report, kind::signing_key, registry::AUDIT_BUFFER_DIR},
    filesystem,
    trust::HeadsFile,
};
use anyhow::{Context as _, bail};
use gw_audit::{
    ChainEdge, ChainId, Checkpoint, CheckpointPublicKey, SecurityEvent, SecurityKind, ShardId, StoredChain, Stream,
    TrustedHead, TrustedHeads,
    outbox::{JOURNAL_COPIED_ALARM, JOURNAL_REWOUND_ALARM},
    verify::{FindingKind, is_plausible_issued},
};
use gw_journal::{Journal, JournalConfig, OpenError, ReadError, Recovery, StoredHead, StreamComparison, Unsealed};
use gw_store::{
    ClockJump, Store,
    audit::{AuditStore, SealedRow},
};
use gw_types::{Seconds, Secret};
use std::{ops::Range, path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// Size of one segment file.
const SEGMENT_BYTES: u64 = 64 << 20;
/// How long sealed segments are retained, so that entries which an audit store loses in a failover can be sealed again
/// (HD25).
const RETAIN_FOR: Seconds = Seconds(24 * 3600);
/// How many bytes of sealed segments are retained at most.
const RETAIN_BYTES: u64 = 1 << 30;
/// The least size of the journal's disk: the segment that is being written, the next one, and room for sealed ones and
/// other files.
const LEAST_DISK_BYTES: u64 = 4 * SEGMENT_BYTES;
/// The cluster name in the origin of every chain.
pub(crate) const CLUSTER: &str = "ledger-gateway";

/// Opens the journal, and returns what a crash left open.
///
/// # Errors
/// If the directory is on an ephemeral file system in production, another process holds the journal, or it is damaged.
pub(super) fn open(config: &Config, secrets: &Secrets, platform: &Platform) -> Result<(Journal, Recovery), ServeError> {
    let dir = config.audit.journal_dir.clone();
    if config.environment == Environment::Production {
        let volatile = filesystem::volatile_kind(&dir).context("the file system of the journal cannot be read")?;
        if let Some(kind) = volatile {
            let mut report = Report::default();
            report.add(Problem::new(
                AUDIT_BUFFER_DIR.name(),
                format!("is on {kind}, which does not survive its container; set it to a persistent volume"),
            ));
            return Err(report.into());
        }
    }
    make_private(&dir)?;
    warn_of_small_disk(&dir);
    let options = options(config, &secrets.checkpoint)?;
    match Journal::open(options, Arc::clone(&platform.clock), Arc::clone(&platform.entropy)) {
        Ok((journal, recovery)) => {
            if recovery.torn > 0 {
                tracing::warn!(
                    records = recovery.torn,
                    "journal_torn: the last records of the journal were lost in a power failure or crash"
                );
                record_event(&journal, SecurityKind::JournalTorn, recovery.torn, None)?;
            }
            if recovery.salvaged > 0 {
                tracing::warn!(
                    records = recovery.salvaged,
                    "records after a torn part of the journal were recovered"
                );
            }
            Ok((journal, recovery))
        }
        Err(error @ OpenError::Held { .. }) => Err(ServeError::Held(error.to_string())),
        Err(error @ OpenError::Corrupt { .. }) => Err(ServeError::Other(anyhow::Error::from(error).context(
            "the journal is damaged and holds records that are nowhere else: do not delete it; `ledger-gateway audit \
             salvage` shows which records are intact, and with --confirm continues with them",
        ))),
        Err(error @ OpenError::SealedMissing { .. }) => Err(ServeError::Other(anyhow::Error::from(error).context(
            "the journal is incomplete, but nothing is lost: all missing records are in the audit log; `ledger-gateway \
             audit salvage --confirm` continues with the other ones",
        ))),
        Err(error @ OpenError::Io { .. }) => Err(ServeError::Other(
            anyhow::Error::from(error).context("the journal cannot be opened"),
        )),
    }
}

fn warn_of_small_disk(dir: &Path) {
    match gw_journal::disk_bytes(dir) {
        Ok(bytes) if bytes < LEAST_DISK_BYTES => tracing::warn!(
            path = %dir.display(),
            bytes,
            least = LEAST_DISK_BYTES,
            "the disk of the journal is too small: calls may be refused although the audit database takes their records"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(
            path = %dir.display(),
            error = &error as &dyn std::error::Error,
            "the size of the journal's disk cannot be read"
        ),
    }
}

/// The journal settings of this deployment.
///
/// # Errors
/// If `checkpoint_key` is no signing key.
pub(crate) fn options(config: &Config, checkpoint_key: &Secret) -> anyhow::Result<JournalConfig> {
    let key = signing_key(checkpoint_key.expose()).context("the checkpoint key cannot be read")?;
    Ok(JournalConfig {
        dir: config.audit.journal_dir.clone(),
        holder: holder(),
        cluster: CLUSTER.to_owned(),
        checkpoint_key: key.verifying_key().to_bytes(),
        max_bytes: config.audit.journal_max_bytes,
        segment_bytes: SEGMENT_BYTES,
        retain_bytes: RETAIN_BYTES,
        retain_for: RETAIN_FOR,
    })
}

/// Names this process in the journal's lock, for the error message of a second process.
pub(crate) fn holder() -> String {
    format!("process {}", std::process::id())
}

/// The entry numbers of a chain that were issued and are lost. `issued` is the count of issued numbers as noted outside
/// the journal, `kept` the count of entries in the journal, and `sealed` that of entries in the audit store.
pub(crate) fn lost(issued: u64, kept: u64, sealed: u64) -> Option<Range<u64>> {
    Some(kept.max(sealed)..issued).filter(|range| !range.is_empty())
}

/// The journal after the comparison with the stores.
#[derive(Debug)]
pub(super) struct Reconciled {
    pub(super) journal: Arc<Journal>,
    pub(super) recovery: Recovery,
    /// The chains with entries that this journal did not write.
    pub(super) foreign_chains: Vec<ChainId>,
    /// The alarms to raise. Each is a finding until the chain that records it is re-anchored.
    pub(super) alarms: Vec<JournalAlarm>,
}

/// An alarm about the journal directory: a code with its details, and the number of affected records.
#[derive(Debug)]
pub(super) struct JournalAlarm {
    pub(super) stream: Stream,
    pub(super) reason: String,
    pub(super) count: Option<u64>,
}

/// Reconciles the journal with the audit store (HD24, HD25). Entries that the store lost are sealed again if the
/// journal still has them. If they are gone, if numbers were issued that the journal does not know, or if another
/// writer continued the shard, the journal abandons the shard for a new one, so that no number is issued twice.
///
/// # Errors
/// If the journal, a store or the trusted heads cannot be read or written.
pub(super) async fn reconcile(
    journal: Journal,
    recovery: Recovery,
    audit: &AuditStore,
    store: &Store,
    heads: &HeadsFile,
    dir: &Path,
) -> anyhow::Result<Reconciled> {
    let shard = journal.shard();
    settle_abandoned(dir, shard, audit, store).await?;
    let noted_heads = store
        .journal_heads()
        .await
        .context("the journal heads in the policy store cannot be read")?;
    let journal_heads = journal.heads().context("the journal's chains cannot be read")?;
    let journaled = Stream::ALL.iter().copied().filter(|stream| *stream != Stream::Admin);
    let mut stored: Vec<_> = journaled.map(StoredHead::empty).collect();
    // The count of issued numbers for each stream, as noted in the audit store and in the policy store.
    let mut issued_counts = Vec::new();
    for (chain, head) in audit
        .chains()
        .await
        .context("the audit store's chains cannot be read")?
    {
        if chain.shard != shard {
            continue;
        }
        let stored_head = stored.iter_mut().find(|stored| stored.stream == chain.stream);
        if let Some((stored_head, head)) = stored_head.zip(head) {
            (stored_head.size, stored_head.hash) = (head.size, head.hash);
        }
        let issued = audit
            .issued(chain)
            .await
            .context("the audit store's chains cannot be read")?
            // Verification reports an impossible number.
            .filter(|issued| is_plausible_issued(*issued, head.map_or(0, |head| head.size)));
        issued_counts.push((chain.stream, issued.map_or(0, |last| last.saturating_add(1))));
    }
    let shard_heads = noted_heads.iter().filter(|head| head.chain.shard == shard);
    issued_counts.extend(shard_heads.map(|head| (head.chain.stream, head.issued)));
    let mut alarms = Vec::new();
    let (journal, is_newest) = note_start(journal, audit).await?;
    if !is_newest {
        tracing::error!(
            %shard,
            "the journal directory is not the newest one of its shard: it was put back to an older state, or another \
             process uses or used a copy of it; records go on in a new shard; find out who copied the directory"
        );
        alarms.push(JournalAlarm {
            stream: Stream::Security,
            reason: format!("{JOURNAL_COPIED_ALARM}{shard}"),
            count: None,
        });
    }
    for stored_head in &stored {
        let stream = stored_head.stream;
        let issued = issued_counts
            .iter()
            .filter(|(noted_stream, _)| *noted_stream == stream)
            .map(|(_, issued)| *issued)
            .max()
            .unwrap_or(0);
        let journal_size = journal_heads
            .iter()
            .find(|(id, _)| id.stream == stream)
            .map_or(0, |(_, head)| head.size);
        if let Some(range) = lost(issued, journal_size, stored_head.size) {
            record_lost(
                &journal,
                stream,
                &range,
                "records with issued numbers are missing in the journal and in the audit store: the journal directory \
                 was put back to an older state, or its disk lost records",
            )?;
            alarms.push(JournalAlarm {
                stream,
                reason: format!("{JOURNAL_REWOUND_ALARM}{stream}:{}..{}", range.start, range.end),
                count: Some(range.end.saturating_sub(range.start)),
            });
        }
    }
    // On a blocking thread, because it reads files.
    let (journal, stored, standings) = spawn_blocking(move || {
        let standings = journal.reconcile(&stored);
        (journal, stored, standings)
    })
    .await
    .context("comparing the journal with the audit store failed")?;
    let mut abandoned = Vec::new();
    for (stream, standing) in standings.context("the journal cannot be compared with the audit store")? {
        match standing {
            StreamComparison::InStep => {}
            StreamComparison::Moved => {
                tracing::warn!(
                    %stream,
                    "the audit store has more or fewer entries of this stream than the journal recorded: another \
                     instance sealed some, or the audit database was restored from a backup; sealing continues at \
                     the end of the store; if nobody restored it, run `ledger-gateway audit verify`"
                );
            }
            StreamComparison::Missing { .. } => abandoned.push((stream, standing)),
            StreamComparison::Foreign => {
                tracing::error!(
                    %stream,
                    "the audit store has entries of this shard that this journal did not write: find out which \
                     instance used a copy of this journal directory"
                );
                abandoned.push((stream, standing));
            }
        }
    }
    if abandoned.is_empty() && alarms.is_empty() {
        return Ok(Reconciled {
            journal: Arc::new(journal),
            recovery,
            foreign_chains: Vec::new(),
            alarms,
        });
    }
    let journal = skip_sealed(journal, audit).await?;
    let trusted = heads.heads();
    let (journal, edges) = spawn_blocking(move || {
        let edges = stored
            .iter()
            .map(|end| sealed_edge(&journal, &trusted, end))
            .collect::<Result<Vec<_>, _>>();
        (journal, edges)
    })
    .await
    .context("reading the journal failed")?;
    let edges = edges.context("the sealed entries of the shard cannot be read from the journal")?;
    heads
        .update(|heads| {
            edges
                .into_iter()
                .flatten()
                .filter(|(chain, head)| heads.advance(*chain, head.clone()))
                .count()
                > 0
        })
        .context("the trusted heads cannot be written")?;
    let (journal, new_recovery) = spawn_blocking(move || journal.into_new_shard())
        .await
        .context("opening a new shard failed")?
        .context("a new shard cannot be opened")?;
    tracing::warn!(from = %shard, to = %journal.shard(), "records go on in a new shard");
    let mut foreign_chains = Vec::new();
    for (stream, standing) in abandoned {
        match standing {
            StreamComparison::Missing { from, until } => {
                record_lost(
                    &journal,
                    stream,
                    &(from..until),
                    "the audit store lost entries that the journal no longer has",
                )?;
            }
            StreamComparison::Foreign => {
                foreign_chains.push(ChainId { stream, shard });
                record_event(&journal, SecurityKind::ShardFenced, 0, Some(stream.as_str().to_owned()))?;
            }
            StreamComparison::InStep | StreamComparison::Moved => {}
        }
    }
    let (journal, _) = note_start(journal, audit).await?;
    settle_abandoned(dir, journal.shard(), audit, store).await?;
    Ok(Reconciled {
        journal: Arc::new(journal),
        recovery: new_recovery,
        foreign_chains,
        alarms,
    })
}

/// Records this start in the directory and in the audit store. Returns false if the directory does not know the newest
/// start of its shard.
///
/// The directory is written first, so that a crash in between leaves a start that only the directory knows. An audit
/// store that lacks starts of the directory was put back to an older state; the comparison of the chains detects that.
async fn note_start(journal: Journal, audit: &AuditStore) -> anyhow::Result<(Journal, bool)> {
    let shard = journal.shard();
    let newest = audit
        .newest_start(shard)
        .await
        .context("the starts of this journal cannot be read in the audit store")?;
    let (journal, starts) = spawn_blocking(move || {
        let starts = journal.newest_start().and_then(|known| {
            let is_newest = match (known, newest) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(known), Some(newest)) => known.number > newest.number || known == newest,
            };
            Ok(if is_newest { Some(journal.note_start()?) } else { None })
        });
        (journal, starts)
    })
    .await
    .context("recording the start in the journal directory failed")?;
    let starts = starts.map_err(|error| {
        let advice = if matches!(error, OpenError::Corrupt { .. }) {
            "the journal directory does not tell whether it is the newest one of its shard, and the records are \
             intact: `ledger-gateway audit salvage --confirm` continues with them in a new shard"
        } else {
            "the start cannot be recorded in the journal directory"
        };
        anyhow::Error::from(error).context(advice)
    });
    let Some(start) = starts? else {
        return Ok((journal, false));
    };
    let is_first = audit
        .note_start(shard, start)
        .await
        .context("the start cannot be recorded in the audit store")?;
    Ok((journal, is_first))
}

/// Records per query while the unsealed records are compared with the store.
const COMPARED: usize = 1000;

/// Marks the unsealed records that the store has already as sealed, so that they are not sealed again in another
/// shard. Another process sealed them, or this one did right before it ended.
async fn skip_sealed(mut journal: Journal, audit: &AuditStore) -> anyhow::Result<Journal> {
    let shard = journal.shard();
    let sizes = audit
        .chains()
        .await
        .context("the audit store's chains cannot be read")?;
    for (chain, _) in sizes.into_iter().filter(|(chain, _)| chain.shard == shard) {
        loop {
            let (returned, batch) = spawn_blocking(move || {
                let batch = journal.unsealed(chain.stream, COMPARED);
                (journal, batch)
            })
            .await
            .context("reading the journal failed")?;
            journal = returned;
            let batch = batch.context("the unsealed records cannot be read from the journal")?;
            let Some(first) = batch.first().map(|record| record.seq) else {
                break;
            };
            let rows = audit
                .rows(chain, first, COMPARED as u64)
                .await
                .context("the entries of the shard cannot be read in the audit store")?;
            let is_stored =
                |(record, row): &(&Unsealed, &SealedRow)| record.seq == row.seq && record.bytes == row.bytes;
            let stored = batch.iter().zip(&rows).take_while(is_stored).count();
            if stored == 0 {
                break;
            }
            let size = first.saturating_add(stored as u64);
            let (returned, marked) = spawn_blocking(move || {
                let marked = journal.mark_sealed(chain.stream, size);
                (journal, marked)
            })
            .await
            .context("marking the records as sealed failed")?;
            journal = returned;
            marked.context("the sealed records cannot be marked in the journal")?;
            // Fewer rows than were asked for: they are long, and the next ones are read on their own.
            if stored < batch.len().min(rows.len()) {
                break;
            }
        }
    }
    Ok(journal)
}

/// Removes the abandoned chains without a loss from the notes in both stores, so that they are not reported as lost.
async fn settle_abandoned(dir: &Path, shard: ShardId, audit: &AuditStore, store: &Store) -> anyhow::Result<()> {
    let chains =
        gw_journal::given_up(dir).context("the list of abandoned shards cannot be read in the journal directory")?;
    if chains.is_empty() {
        return Ok(());
    }
    for chain in chains.into_iter().filter(|chain| chain.shard != shard) {
        audit
            .settle_issued(chain)
            .await
            .context("an abandoned shard cannot be recorded in the audit store")?;
        store
            .forget_journal_head(chain)
            .await
            .context("an abandoned shard cannot be removed from the policy store")?;
    }
    gw_journal::forget_given_up(dir).context("the list of abandoned shards cannot be cleared in the journal directory")
}

/// The trusted head for the sealed entries of a chain that the store contradicts, if there are more than the signed
/// ones. Only the journal knows of these entries: without the head, a writer of the store could rewrite them without a
/// finding.
pub(crate) fn sealed_edge(
    journal: &Journal,
    trusted: &TrustedHeads,
    stored: &StoredHead,
) -> Result<Option<(ChainId, TrustedHead)>, ReadError> {
    let chain = ChainId {
        stream: stored.stream,
        shard: journal.shard(),
    };
    let trusted_head = trusted.head(chain);
    let Some(mut edge) = trusted_head.map_or_else(|| Some(ChainEdge::default()), TrustedHead::edge) else {
        return Ok(None);
    };
    let signed = edge.size();
    let mut continues = true;
    let is_complete = journal.each_sealed(stored.stream, signed, |seq, bytes| {
        // Entries that the store lost are reported as lost instead.
        if seq < stored.size {
            continues &= edge.push(seq, gw_audit::tree::leaf(bytes), bytes).is_ok();
        }
    })?;
    let is_longer = is_complete && continues && edge.size() > signed;
    Ok(is_longer.then(|| (chain, TrustedHead::unsigned(&edge, trusted_head))))
}

/// Reports lost entry numbers in the log and in the journal. The reason in the journal is the range, as
/// `access:15..20`.
fn record_lost(journal: &Journal, stream: Stream, range: &Range<u64>, cause: &str) -> anyhow::Result<()> {
    let Range { start, end } = range;
    tracing::error!(%stream, from = start, until = end, "journal_lost: {cause}");
    record_event(
        journal,
        SecurityKind::JournalLost,
        end.saturating_sub(*start),
        Some(format!("{stream}:{start}..{end}")),
    )
}

/// Appends a security event about the journal to the journal, or keeps it until there is room: the start on a full disk
/// has to succeed, because sealing makes the room.
pub(super) fn record_event(
    journal: &Journal,
    kind: SecurityKind,
    count: u64,
    reason: Option<String>,
) -> anyhow::Result<()> {
    let mut event = SecurityEvent::new(kind);
    (event.count, event.reason) = (Some(count), reason.map(Into::into));
    let is_written = journal.append_or_keep(event).context("the journal accepts no record")?;
    if !is_written {
        tracing::warn!(%kind, "the journal has no room: the security event is recorded as soon as it has");
    }
    Ok(())
}

/// Records a jump of the local clock against the database's clock in the journal. The times of records around the jump
/// are unreliable.
pub(super) fn note_clock_jump(journal: &Journal, jump: ClockJump) {
    let (reason, difference) = match jump {
        ClockJump::Apart { ahead: true, by } => ("local_ahead", by),
        ClockJump::Apart { ahead: false, by } => ("local_behind", by),
        ClockJump::Confirmed { taken_back } => ("confirmed", taken_back),
    };
    let event = SecurityEvent {
        reason: Some(reason.into()),
        count: Some(difference.as_secs()),
        ..SecurityEvent::new(SecurityKind::ClockJump)
    };
    if let Err(error) = journal.append(event) {
        let error = &error as &dyn std::error::Error;
        tracing::error!(
            error,
            reason,
            seconds = difference.as_secs(),
            "clock_jump: the journal accepts no record of the clock jump"
        );
    }
}

/// Checks that the audit store has every chain as last signed and trusted (spec/85 section 3, step 4). `will_restore`
/// returns the number of entries that a chain has once this instance has sealed lost entries again, as after a failover
/// (HD25).
///
/// # Errors
/// If signed entries are missing or changed, or a store cannot be read.
pub(crate) async fn nothing_is_missing(
    audit: &AuditStore,
    heads: &TrustedHeads,
    signed_heads: &[Checkpoint],
    keys: &[CheckpointPublicKey],
    will_restore: impl Fn(ChainId) -> u64,
) -> anyhow::Result<()> {
    let ends = audit
        .chains()
        .await
        .context("the audit store's chains cannot be read")?;
    let mut problems = Vec::new();
    for (chain, head) in &ends {
        let size = head.map_or(0, |head| head.size);
        let era = heads.head(*chain).map_or(0, |head| head.era);
        // These notes are in the audit store itself, so no failover explains that the entries are missing.
        for note in audit
            .newest_checkpoints(*chain)
            .await
            .context("a checkpoint cannot be read")?
        {
            match Checkpoint::open(&note.note, keys) {
                Ok(signed) if signed.era() >= era && signed.size > size => problems.push(format!(
                    "chain {chain} ends at entry {size}, but {} were signed: entries are missing",
                    signed.size
                )),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%chain, %error, "a checkpoint in the audit store is ignored: no known key signed it")
                }
            }
        }
    }
    // The policy store has copies of signed heads, which help if the journal directory is new.
    for signed in signed_heads {
        let Some(chain) = ChainId::from_origin(&signed.origin, CLUSTER) else {
            continue;
        };
        let era = heads.head(chain).map_or(0, |head| head.era);
        let size = ends
            .iter()
            .find(|(id, _)| *id == chain)
            .and_then(|(_, head)| *head)
            .map_or(0, |head| head.size);
        if signed.era() >= era && signed.size > size.max(will_restore(chain)) {
            problems.push(format!(
                "chain {chain} ends at entry {size}, but {} were signed: entries are missing",
                signed.size
            ));
        }
    }
    let mut stored = Vec::new();
    for (chain, trusted) in heads.heads() {
        let head = ends.iter().find(|(id, _)| *id == chain).and_then(|(_, head)| *head);
        let at_trusted = match trusted.signed_part().size.checked_sub(1) {
            Some(last) => audit
                .computed_hash(chain, last)
                .await
                .context("an entry cannot be read")?,
            None => None,
        };
        stored.push(StoredChain {
            chain,
            head,
            at_trusted,
        });
    }
    for (chain, finding) in heads.missing_from(&stored, will_restore) {
        let trusted = heads.head(chain).map_or(0, |head| head.signed_part().size);
        let size = ends
            .iter()
            .find(|(id, _)| *id == chain)
            .and_then(|(_, head)| *head)
            .map_or(0, |head| head.size);
        problems.push(match finding.kind {
            FindingKind::ShardMissing => format!("chain {chain} with {trusted} signed entries is missing as a whole"),
            FindingKind::ChainTruncated => {
                format!("chain {chain} ends at entry {size}, but {trusted} were signed: entries are missing")
            }
            kind => format!("chain {chain} is not as it was signed at {trusted} entries ({kind})"),
        });
    }
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "the audit store does not match the signed notes: {}; run `ledger-gateway audit verify` for details; if the \
         store was restored from a backup, run `ledger-gateway audit re-anchor` to continue from its entries",
        problems.join("; ")
    )
}

/// Returns a function from a chain to the number of entries up to which this instance restores it, if the store lost
/// entries: all entries of this journal's shard, and `admin_size` entries of the administrative chain.
pub(super) fn will_restore(journal: &Journal, admin_size: u64) -> impl Fn(ChainId) -> u64 {
    let own_heads = journal.heads().unwrap_or_default();
    move |chain| match own_heads.iter().find(|(id, _)| *id == chain) {
        Some((_, head)) => head.size,
        None if chain.stream == Stream::Admin => admin_size,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::lost;

    #[test]
    fn rl5_lost_numbers_are_neither_in_the_journal_nor_in_the_store() {
        assert_eq!(lost(20, 15, 10), Some(15..20));
        assert_eq!(lost(20, 10, 15), Some(15..20), "the store has more than the journal");
        assert_eq!(lost(20, 0, 0), Some(0..20), "the journal is gone");
        assert_eq!(lost(20, 20, 3), None);
        assert_eq!(lost(20, 25, 3), None, "the noted count is older than the journal");
        assert_eq!(lost(0, 0, 0), None);
    }
}
