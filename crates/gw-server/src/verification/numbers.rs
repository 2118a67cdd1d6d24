//! Compares the numbers that writers issued, as recorded in the policy store, with the audit store (HD25).
//!
//! Each writer records its numbers in the policy store at least every ten seconds, so a change there proves that it is
//! alive. Its claim in the audit store proves nothing, because anybody who can change that store can renew it. No clock
//! of another machine is used. Records that are being sealed look lost for a moment, so a suspicion is checked
//! repeatedly until the writer proves that it is alive or has been silent for long enough.

use anyhow::Context as _;
use gw_audit::ChainId;
use gw_store::{
    Store,
    audit::{AuditStore, ChainState, JournalHead},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// A writer that records no numbers for this long is gone. It covers three regular records.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// Time between two checks of the suspicions.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The contradictions between the two stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Chains whose writer is gone and whose records are neither sealed nor in the journal of this machine, with the
    /// count of numbers that the writer issued.
    pub(crate) gone: BTreeMap<ChainId, u64>,
    /// Chains whose row in the audit store has more issued numbers than their living writer issued.
    pub(crate) beyond: BTreeSet<ChainId>,
}

/// The numbers of one chain in both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChainNumbers {
    noted: JournalHead,
    /// Issued numbers in the chain's row of the audit store.
    issued: u64,
    /// Sealed entries in the audit store.
    sealed: u64,
}

impl ChainNumbers {
    fn new(noted: JournalHead, states: &[ChainState]) -> Self {
        let state = states.iter().find(|state| state.chain == noted.chain);
        Self {
            noted,
            issued: state
                .and_then(|state| state.issued)
                .map_or(0, |last| last.saturating_add(1)),
            sealed: state.and_then(|state| state.head).map_or(0, |head| head.size),
        }
    }

    fn is_lost(&self) -> bool {
        self.noted.issued > self.sealed
    }

    fn is_beyond(&self) -> bool {
        self.issued > self.noted.issued
    }
}

/// A chain whose numbers differ between the stores.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    first: ChainNumbers,
    last: ChainNumbers,
    /// How often the writer has recorded its numbers since the first check.
    notes: u32,
}

/// Compares the two stores. `journal` is the directory of the journal on this machine, whose records are not lost. A
/// writer that records no numbers for `silence` is gone.
pub(crate) async fn compare_numbers(
    audit: &AuditStore,
    store: &Store,
    journal: &Path,
    silence: Duration,
) -> anyhow::Result<Numbers> {
    let mut numbers = Numbers::default();
    let mut suspicions: BTreeMap<ChainId, Suspicion> = BTreeMap::new();
    let local_shard = gw_journal::shard_of(journal).ok().flatten();
    for chain_numbers in read_chain_numbers(audit, store).await?.into_values() {
        let is_elsewhere = Some(chain_numbers.noted.chain.shard) != local_shard;
        if (chain_numbers.is_lost() && is_elsewhere) || chain_numbers.is_beyond() {
            suspicions.insert(
                chain_numbers.noted.chain,
                Suspicion {
                    first: chain_numbers,
                    last: chain_numbers,
                    notes: 0,
                },
            );
        }
    }
    let started = Instant::now();
    while !suspicions.is_empty() && started.elapsed() < silence {
        sleep(POLL_INTERVAL).await;
        let current = read_chain_numbers(audit, store).await?;
        suspicions.retain(|chain, suspicion| {
            let Some(chain_numbers) = current.get(chain) else {
                return false;
            };
            suspicion.notes += u32::from(chain_numbers.noted.noted_at != suspicion.last.noted.noted_at);
            suspicion.last = *chain_numbers;
            let Suspicion { first, notes, .. } = *suspicion;
            // The first recorded count may be older than the chain's row. The second one includes every number that was
            // issued when the row was read.
            if first.is_beyond() && chain_numbers.noted.issued < first.issued {
                if notes >= 2 {
                    numbers.beyond.insert(*chain);
                }
                return notes < 2;
            }
            first.is_lost() && notes == 0 && chain_numbers.is_lost()
        });
    }
    for (chain, suspicion) in suspicions {
        let chain_numbers = suspicion.last;
        if suspicion.notes == 0 && chain_numbers.is_lost() && Some(chain.shard) != local_shard {
            numbers.gone.insert(chain, chain_numbers.noted.issued);
        }
    }
    Ok(numbers)
}

async fn read_chain_numbers(audit: &AuditStore, store: &Store) -> anyhow::Result<BTreeMap<ChainId, ChainNumbers>> {
    // A writer seals records after it recorded their numbers, or shortly before. So read the chains last.
    let noted = store
        .journal_heads()
        .await
        .context("the journal heads in the policy store cannot be read")?;
    let states = audit
        .chain_states()
        .await
        .context("the chains of the audit store cannot be read")?;
    Ok(noted
        .into_iter()
        .map(|noted| (noted.chain, ChainNumbers::new(noted, &states)))
        .collect())
}
