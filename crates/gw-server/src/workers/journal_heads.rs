//! Records in the policy store every second how many records the journal has numbered, and reports journals of gone
//! writers (HD25): numbers that are neither sealed nor in a journal are lost.

use crate::{serve::journal::lost, trust::AuditTrust};
use anyhow::Context as _;
use gw_audit::{
    ChainId, SecurityEvent, SecurityKind,
    verify::{Finding, FindingKind},
};
use gw_journal::Journal;
use gw_store::{
    Store,
    audit::{AuditStore, JournalHead},
};
use gw_types::Timestamp;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two records of changed numbers.
const RECORD_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which unchanged numbers are recorded again, to prove that the writer is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Time between two checks of all writers. A writer that recorded nothing between two checks is gone.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Records this journal's numbers and checks the other writers until `end` is cancelled.
pub(crate) async fn watch(
    journal: Arc<Journal>,
    store: Store,
    audit: AuditStore,
    trust: Arc<AuditTrust>,
    end: CancellationToken,
) {
    let mut recorded = HashMap::new();
    let mut last_seen = HashMap::new();
    let mut last_check = Instant::now();
    while !end.is_cancelled() {
        if let Err(error) = record_heads(&journal, &store, &mut recorded).await {
            tracing::warn!(
                error = format!("{error:#}"),
                "the journal's record counts were not written to the policy store; the next attempt is in a second"
            );
        }
        if last_check.elapsed() >= CHECK_INTERVAL {
            last_check = Instant::now();
            if let Err(error) = report_lost_journals(&journal, &store, &audit, &trust, &mut last_seen).await {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the check for lost journals failed; the next attempt is in a minute"
                );
            }
        }
        end.run_until_cancelled(sleep(RECORD_INTERVAL)).await;
    }
    // Record the last numbers before a planned end.
    let _ = record_heads(&journal, &store, &mut HashMap::new()).await;
}

/// The last recorded size of each chain, and the time of that record.
type RecordedHeads = HashMap<ChainId, (u64, Instant)>;

async fn record_heads(journal: &Journal, store: &Store, recorded: &mut RecordedHeads) -> anyhow::Result<()> {
    for (chain, head) in journal.heads().context("the journal's chains cannot be read")? {
        let is_fresh = |(size, time): &(u64, Instant)| *size == head.size && time.elapsed() < HEARTBEAT;
        if recorded.get(&chain).is_some_and(is_fresh) {
            continue;
        }
        store.note_journal_head(chain, head.size).await?;
        recorded.insert(chain, (head.size, Instant::now()));
    }
    Ok(())
}

/// Reports chains whose writer recorded nothing since the last check and whose numbers are neither sealed nor accepted.
/// One instance records the event; every instance raises its alarm until the chain is re-anchored.
pub(crate) async fn report_lost_journals(
    journal: &Journal,
    store: &Store,
    audit: &AuditStore,
    trust: &AuditTrust,
    last_seen: &mut HashMap<ChainId, Timestamp>,
) -> anyhow::Result<()> {
    for head in store.journal_heads().await? {
        let JournalHead {
            chain,
            issued,
            noted_at,
            ..
        } = head;
        let is_silent = last_seen.insert(chain, noted_at) == Some(noted_at);
        if chain.shard == journal.shard() || !is_silent || issued <= trust.accepted(chain) {
            continue;
        }
        let sealed = audit.head(chain).await?.map_or(0, |head| head.size);
        let Some(lost) = lost(issued, 0, sealed) else { continue };
        trust
            .alarm
            .raise(chain, &Finding::new(FindingKind::JournalLost, Some(lost.start)), 0, 0);
        if store.claim_loss_report(chain).await? {
            tracing::error!(
                stream = %chain.stream,
                shard = %chain.shard,
                from = lost.start,
                until = lost.end,
                "journal_lost: a writer is gone and these records of its journal were never sealed; start an instance \
                 on its journal directory, or run `ledger-gateway audit salvage` on the directory"
            );
            let mut event = SecurityEvent::new(SecurityKind::JournalLost);
            event.count = Some(lost.end - lost.start);
            event.reason = Some(format!("{}/{}:{}..{}", chain.stream, chain.shard, lost.start, lost.end).into());
            journal.append(event).context("the journal did not accept the event")?;
        }
    }
    Ok(())
}
