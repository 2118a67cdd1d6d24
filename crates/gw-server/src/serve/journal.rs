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
use gw_audit::{Checkpoint, CheckpointPublicKey, SecurityEvent, SecurityKind};
use gw_journal::{Journal, OpenError, Options, Recovery, Standing, StoredHead};
use gw_store::{ClockJump, audit::AuditStore};
use gw_types::{Seconds, Secret};
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
        tracing::error!(error, reason, seconds = by.as_secs(), "clock_jump: the journal takes no record of it");
    }
}

/// No chain may end below what was signed of it (spec/85 section 3, step 4): then entries were taken away.
pub(crate) async fn nothing_is_missing(audit: &AuditStore, key: &Secret) -> anyhow::Result<()> {
    let key = signing_key(key.expose()).context("the checkpoint key cannot be read")?;
    let keys = [CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes())
        .context("the checkpoint key cannot be used")?];
    for (chain, head) in audit.chains().await.context("the audit store's chains cannot be read")? {
        let size = head.map_or(0, |head| head.size);
        let Some(note) = audit.last_checkpoint(chain).await.context("a checkpoint cannot be read")? else { continue };
        match Checkpoint::open(&note, &keys) {
            Ok(signed) if signed.size > size => bail!(
                "the audit store's chain {} ends at entry {size}, but {} were signed: entries are missing; `ledger-gateway \
                 audit verify` says more",
                signed.origin,
                signed.size
            ),
            Ok(_) => {}
            Err(error) => tracing::warn!(stream = %chain.stream, %error, "a checkpoint is not of the key in use"),
        }
    }
    Ok(())
}
