//! The journal of this instance, opened where the configuration says (spec/70 rule 11, HD25).

use super::{
    fault::Fault,
    stores::{Ground, Secrets, make_private},
};
use crate::{
    config::{Config, Entry as _, Environment, Problem, Report, kind::signing_key, registry::AUDIT_BUFFER_DIR},
    mount,
    trust::HeadsFile,
};
use anyhow::{Context as _, bail};
use gw_audit::{
    ChainEdge, ChainId, Checkpoint, CheckpointPublicKey, SecurityEvent, SecurityKind, ShardId, StoredChain, Stream,
    TrustedHead, TrustedHeads, verify::FindingKind,
};
use gw_journal::{Journal, OpenError, Options, ReadError, Recovery, Standing, StoredHead};
use gw_store::{ClockJump, Store, audit::AuditStore};
use gw_types::{Seconds, Secret};
use std::{ops::Range, path::Path, sync::Arc};
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
    let options = options(config, &secrets.checkpoint)?;
    match Journal::open(options, Arc::clone(&ground.clock), Arc::clone(&ground.entropy)) {
        Ok((journal, recovery)) => {
            if recovery.torn > 0 {
                tracing::warn!(
                    records = recovery.torn,
                    "journal_torn: records at its end were lost with the power"
                );
                note(&journal, SecurityKind::JournalTorn, recovery.torn, None)?;
            }
            if recovery.salvaged > 0 {
                tracing::warn!(
                    records = recovery.salvaged,
                    "records behind a torn place of the journal were saved"
                );
            }
            Ok((journal, recovery))
        }
        Err(error @ OpenError::Held { .. }) => Err(Fault::Held(error.to_string())),
        Err(error @ OpenError::Corrupt { .. }) => Err(Fault::Other(anyhow::Error::from(error).context(
            "the journal is damaged and holds records that are nowhere else: do not delete it; `ledger-gateway audit \
             salvage` says what is whole, and with --confirm goes on with that",
        ))),
        Err(error) => Err(Fault::Other(
            anyhow::Error::from(error).context("the journal cannot be opened"),
        )),
    }
}

/// How the journal of this deployment is kept.
pub(crate) fn options(config: &Config, checkpoint_key: &Secret) -> anyhow::Result<Options> {
    let key = signing_key(checkpoint_key.expose()).context("the checkpoint key cannot be read")?;
    Ok(Options {
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

/// Whom a second process is told about.
pub(crate) fn holder() -> String {
    format!("process {}", std::process::id())
}

/// The numbers of a chain that were given out and are nowhere any more: `issued` numbers were given out as far as is
/// noted outside the journal, the journal knows of `kept`, and the store has `sealed` entries.
pub(crate) fn lost(issued: u64, kept: u64, sealed: u64) -> Option<Range<u64>> {
    Some(kept.max(sealed)..issued).filter(|range| !range.is_empty())
}

/// Brings the journal and the audit store into step (HD24, HD25): what the store lost is sealed again while it is kept
/// here; a shard that somebody else goes on with, or whose entries are gone, is given up for a new one. Returns the chains with
/// entries that this journal did not write, too.
pub(super) async fn in_step(
    journal: Journal,
    recovery: Recovery,
    audit: &AuditStore,
    store: &Store,
    heads: &HeadsFile,
    dir: &Path,
) -> anyhow::Result<(Arc<Journal>, Recovery, Vec<ChainId>)> {
    let shard = journal.shard();
    settle_given_up(dir, shard, audit, store).await?;
    let noted = store
        .journal_heads()
        .await
        .context("what was noted of the journal cannot be read")?;
    let written = journal.heads().context("the journal's chains cannot be read")?;
    let journaled = Stream::ALL.iter().copied().filter(|stream| *stream != Stream::Admin);
    let mut stored: Vec<_> = journaled.map(StoredHead::empty).collect();
    // How many numbers each of two places outside the journal knows of.
    let mut numbered = Vec::new();
    for (chain, head) in audit
        .chains()
        .await
        .context("the audit store's chains cannot be read")?
    {
        if chain.shard != shard {
            continue;
        }
        let known = stored.iter_mut().find(|known| known.stream == chain.stream);
        if let Some((known, head)) = known.zip(head) {
            (known.size, known.hash) = (head.size, head.hash);
        }
        let issued = audit
            .issued(chain)
            .await
            .context("the audit store's chains cannot be read")?;
        numbered.push((chain.stream, issued.map_or(0, |last| last.saturating_add(1))));
    }
    let of_shard = noted.iter().filter(|head| head.chain.shard == shard);
    numbered.extend(of_shard.map(|head| (head.chain.stream, head.issued)));
    for known in &stored {
        let stream = known.stream;
        let issued = numbered
            .iter()
            .filter(|(of, _)| *of == stream)
            .map(|(_, issued)| *issued)
            .max()
            .unwrap_or(0);
        let kept = written
            .iter()
            .find(|(id, _)| id.stream == stream)
            .map_or(0, |(_, head)| head.size);
        if let Some(range) = lost(issued, kept, known.size) {
            note_lost(&journal, stream, &range, "numbered records are gone from the journal")?;
        }
    }
    // Both read files.
    let (journal, stored, standings) = spawn_blocking(move || {
        let standings = journal.reconcile(&stored);
        (journal, stored, standings)
    })
    .await
    .context("comparing the journal with the audit store failed")?;
    let mut given_up = Vec::new();
    for (stream, standing) in standings.context("the journal cannot be compared with the audit store")? {
        match standing {
            Standing::InStep => {}
            Standing::Moved => {
                tracing::warn!(%stream, "the audit store is not where it was left; sealing goes on where it ends");
            }
            Standing::Missing { .. } => given_up.push((stream, standing)),
            Standing::Foreign => {
                tracing::error!(%stream, "the audit store has entries of this shard that this journal did not write");
                given_up.push((stream, standing));
            }
        }
    }
    if given_up.is_empty() {
        return Ok((Arc::new(journal), recovery, Vec::new()));
    }
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
    let edges = edges.context("what was sealed of the shard cannot be read")?;
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
    let (journal, again) = spawn_blocking(move || journal.into_new_shard())
        .await
        .context("opening a new shard failed")?
        .context("a new shard cannot be opened")?;
    tracing::warn!(from = %shard, to = %journal.shard(), "records go on in a new shard");
    let mut foreign = Vec::new();
    for (stream, standing) in given_up {
        match standing {
            Standing::Missing { from, until } => {
                note_lost(
                    &journal,
                    stream,
                    &(from..until),
                    "the audit store lacks entries that are not kept here",
                )?;
            }
            Standing::Foreign => {
                foreign.push(ChainId { stream, shard });
                note(&journal, SecurityKind::ShardFenced, 0, Some(stream.as_str().to_owned()))?;
            }
            Standing::InStep | Standing::Moved => {}
        }
    }
    settle_given_up(dir, journal.shard(), audit, store).await?;
    Ok((Arc::new(journal), again, foreign))
}

/// Tells the stores of chains that were given up while nothing of them was lost.
async fn settle_given_up(dir: &Path, shard: ShardId, audit: &AuditStore, store: &Store) -> anyhow::Result<()> {
    let chains = gw_journal::given_up(dir).context("what is known of given up shards cannot be read")?;
    if chains.is_empty() {
        return Ok(());
    }
    for chain in chains.into_iter().filter(|chain| chain.shard != shard) {
        audit
            .settle_issued(chain)
            .await
            .context("the audit store was not told of a given up shard")?;
        store
            .forget_journal_head(chain)
            .await
            .context("the policy store was not told of a given up shard")?;
    }
    gw_journal::forget_given_up(dir).context("what is known of given up shards stays noted")
}

/// How far the store was seen to hold a chain of a shard that is given up, where that is further than it is signed. The
/// journal is the last to know it: without this, whoever may write to the store could rewrite those entries unseen.
fn sealed_edge(
    journal: &Journal,
    trusted: &TrustedHeads,
    stored: &StoredHead,
) -> Result<Option<(ChainId, TrustedHead)>, ReadError> {
    let chain = ChainId {
        stream: stored.stream,
        shard: journal.shard(),
    };
    let known = trusted.head(chain);
    let Some(mut edge) = known.map_or_else(|| Some(ChainEdge::default()), TrustedHead::edge) else {
        return Ok(None);
    };
    let signed = edge.size();
    let mut continues = true;
    let kept = journal.each_sealed(stored.stream, signed, |seq, bytes| {
        // What the store lost is reported as lost.
        if seq < stored.size {
            continues &= edge.push(seq, gw_audit::tree::leaf(bytes), bytes).is_ok();
        }
    })?;
    let further = kept && continues && edge.size() > signed;
    Ok(further.then(|| (chain, TrustedHead::new(None, &edge, known.map_or(0, |known| known.era)))))
}

/// Says which numbers are lost, in the log and in the journal; the reason there is the range as `access:15..20`.
fn note_lost(journal: &Journal, stream: Stream, range: &Range<u64>, why: &str) -> anyhow::Result<()> {
    let Range { start, end } = range;
    tracing::error!(%stream, from = start, until = end, "journal_lost: {why}");
    note(
        journal,
        SecurityKind::JournalLost,
        end.saturating_sub(*start),
        Some(format!("{stream}:{start}..{end}")),
    )
}

/// A finding about the journal itself, in the journal.
fn note(journal: &Journal, kind: SecurityKind, count: u64, reason: Option<String>) -> anyhow::Result<()> {
    let mut event = SecurityEvent::new(kind);
    (event.count, event.reason) = (Some(count), reason.map(Into::into));
    journal.append(event).map(drop).context("the journal takes no record")
}

/// A jump of the local clock against the database's, in the journal: times of records around it are to be read with care.
pub(super) fn note_clock_jump(journal: &Journal, jump: ClockJump) {
    let (reason, by) = match jump {
        ClockJump::Apart { ahead: true, by } => ("local_ahead", by),
        ClockJump::Apart { ahead: false, by } => ("local_behind", by),
        ClockJump::Confirmed { taken_back } => ("confirmed", taken_back),
    };
    let event = SecurityEvent {
        reason: Some(reason.into()),
        count: Some(by.as_secs()),
        ..SecurityEvent::new(SecurityKind::ClockJump)
    };
    if let Err(error) = journal.append(event) {
        let error = &error as &dyn std::error::Error;
        tracing::error!(
            error,
            reason,
            seconds = by.as_secs(),
            "clock_jump: the journal takes no record of it"
        );
    }
}

/// The store must have every chain as it was signed and trusted last (spec/85 section 3, step 4). `will_restore` says how
/// many entries of a chain are sealed again by themselves, as after a failover (HD25).
pub(crate) async fn nothing_is_missing(
    audit: &AuditStore,
    heads: &TrustedHeads,
    noted: &[Checkpoint],
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
        // The store itself says that there was more, so nothing brings it into step by itself.
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
                Err(error) => tracing::warn!(%chain, %error, "a checkpoint is not of a known key"),
            }
        }
    }
    // What another database keeps of them: the journal's directory may be new.
    for signed in noted {
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
        let at_trusted = match trusted.size.checked_sub(1) {
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
        let trusted = heads.head(chain).map_or(0, |head| head.size);
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
/// own shard. `admin` is how far the outbox restores the administrative chain.
pub(super) fn will_restore(journal: &Journal, admin: u64) -> impl Fn(ChainId) -> u64 {
    let own = journal.heads().unwrap_or_default();
    move |chain| match own.iter().find(|(id, _)| *id == chain) {
        Some((_, head)) => head.size,
        None if chain.stream == Stream::Admin => admin,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::lost;

    #[test]
    fn rl5_lost_numbers_are_those_that_are_nowhere() {
        assert_eq!(lost(20, 15, 10), Some(15..20));
        assert_eq!(lost(20, 10, 15), Some(15..20), "the store has more than the journal");
        assert_eq!(lost(20, 0, 0), Some(0..20), "the journal is gone");
        assert_eq!(lost(20, 20, 3), None);
        assert_eq!(lost(20, 25, 3), None, "the note is behind");
        assert_eq!(lost(0, 0, 0), None);
    }
}
