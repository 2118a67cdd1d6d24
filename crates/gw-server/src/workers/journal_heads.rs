//! How many records each journal has numbered, noted in a second place each second, and what became of journals whose
//! writers are gone (HD25): numbers that are neither sealed nor kept are reported lost.

use crate::{serve::journal::lost, trust::Trust};
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

/// How often numbers are noted.
const NOTE: Duration = Duration::from_secs(1);
/// A writer without news says so often that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// How often the writers are looked over; one that said nothing between two looks is gone.
const LOOK: Duration = Duration::from_secs(60);

/// Notes and looks until told to end.
pub(crate) async fn watch(
    journal: Arc<Journal>,
    store: Store,
    audit: AuditStore,
    trust: Arc<Trust>,
    end: CancellationToken,
) {
    let mut noted = HashMap::new();
    let mut seen = HashMap::new();
    let mut looked = Instant::now();
    while !end.is_cancelled() {
        if let Err(error) = note(&journal, &store, &mut noted).await {
            tracing::warn!(
                error = format!("{error:#}"),
                "how far the journal got is not noted in the policy store"
            );
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if let Err(error) = look(&journal, &store, &audit, &trust, &mut seen).await {
                tracing::warn!(error = format!("{error:#}"), "lost journals were not looked for");
            }
        }
        end.run_until_cancelled(sleep(NOTE)).await;
    }
    // The last numbers before a planned end.
    let _ = note(&journal, &store, &mut HashMap::new()).await;
}

/// What was noted of a chain, and when.
type Noted = HashMap<ChainId, (u64, Instant)>;

async fn note(journal: &Journal, store: &Store, noted: &mut Noted) -> anyhow::Result<()> {
    for (chain, head) in journal.heads().context("the journal's chains cannot be read")? {
        let fresh = |(size, at): &(u64, Instant)| *size == head.size && at.elapsed() < SIGN_OF_LIFE;
        if noted.get(&chain).is_some_and(fresh) {
            continue;
        }
        store.note_journal_head(chain, head.size).await?;
        noted.insert(chain, (head.size, Instant::now()));
    }
    Ok(())
}

/// Reports chains of writers that said nothing since the last look and left numbers behind that nobody has: one instance
/// tells of them, and each raises its alarm until they were re-anchored.
pub(crate) async fn look(
    journal: &Journal,
    store: &Store,
    audit: &AuditStore,
    trust: &Trust,
    seen: &mut HashMap<ChainId, Timestamp>,
) -> anyhow::Result<()> {
    for head in store.journal_heads().await? {
        let JournalHead {
            chain,
            issued,
            noted_at,
            ..
        } = head;
        let silent = seen.insert(chain, noted_at) == Some(noted_at);
        if chain.shard == journal.shard() || !silent || issued <= trust.accepted(chain) {
            continue;
        }
        let sealed = audit.head(chain).await?.map_or(0, |head| head.size);
        let Some(lost) = lost(issued, 0, sealed) else { continue };
        trust
            .alarm
            .raise(chain, &Finding::of(FindingKind::JournalLost, Some(lost.start)), 0, 0);
        if store.claim_loss_report(chain).await? {
            tracing::error!(
                stream = %chain.stream,
                shard = %chain.shard,
                from = lost.start,
                until = lost.end,
                "journal_lost: a writer is gone and these records of it were never sealed; find its journal directory, or \
                 `ledger-gateway audit salvage` it"
            );
            let mut event = SecurityEvent::new(SecurityKind::JournalLost);
            event.count = Some(lost.end - lost.start);
            event.reason = Some(format!("{}/{}:{}..{}", chain.stream, chain.shard, lost.start, lost.end).into());
            journal.append(event).context("the journal takes no record")?;
        }
    }
    Ok(())
}
