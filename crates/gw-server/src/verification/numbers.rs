//! Numbers that writers gave out, as the policy store has them beside the audit store (HD25).
//!
//! Whether a writer lives is told by what it writes there: each notes its numbers in the policy store every ten seconds at
//! least. Its claim in the audit store, which whoever changes that store can renew, tells nothing. Nobody's clock is asked. What is being sealed looks like a loss for a
//! moment, so a suspicion is looked at until the writer is seen to live, or was silent for long enough.

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

/// A writer that says nothing for so long is gone: three signs of life.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// How often a suspicion is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Where the two stores contradict each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// How many numbers were given out of chains whose writers are gone and whose records are neither sealed nor in the
    /// journal of this machine.
    pub(crate) gone: BTreeMap<ChainId, u64>,
    /// Chains whose row says that more numbers were given out than their living writer did.
    pub(crate) beyond: BTreeSet<ChainId>,
}

/// What both stores say of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    noted: JournalHead,
    /// How many numbers the chain's row says.
    issued: u64,
    sealed: u64,
}

impl Said {
    fn of(noted: JournalHead, states: &[ChainState]) -> Self {
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

/// A chain on which the stores do not agree yet.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    first: Said,
    last: Said,
    /// How often the writer noted its numbers since.
    notes: u32,
}

/// Compares the two stores. `journal` is the directory of the journal on this machine: what it holds is not lost. A writer
/// that says nothing for `silence` is gone.
pub(crate) async fn compare_numbers(
    audit: &AuditStore,
    store: &Store,
    journal: &Path,
    silence: Duration,
) -> anyhow::Result<Numbers> {
    let mut numbers = Numbers::default();
    let mut suspicions: BTreeMap<ChainId, Suspicion> = BTreeMap::new();
    let kept_here = gw_journal::shard_of(journal).ok().flatten();
    for said in read(audit, store).await?.into_values() {
        let is_elsewhere = Some(said.noted.chain.shard) != kept_here;
        if (said.is_lost() && is_elsewhere) || said.is_beyond() {
            suspicions.insert(
                said.noted.chain,
                Suspicion {
                    first: said,
                    last: said,
                    notes: 0,
                },
            );
        }
    }
    let began = Instant::now();
    while !suspicions.is_empty() && began.elapsed() < silence {
        sleep(LOOK).await;
        let now = read(audit, store).await?;
        suspicions.retain(|chain, suspicion| {
            let Some(said) = now.get(chain) else { return false };
            suspicion.notes += u32::from(said.noted.noted_at != suspicion.last.noted.noted_at);
            suspicion.last = *said;
            let Suspicion { first, notes, .. } = *suspicion;
            // A note may have been on its way when the chain was read; the one after it knows every number of then.
            if first.is_beyond() && said.noted.issued < first.issued {
                if notes >= 2 {
                    numbers.beyond.insert(*chain);
                }
                return notes < 2;
            }
            first.is_lost() && notes == 0 && said.is_lost()
        });
    }
    for (chain, suspicion) in suspicions {
        let said = suspicion.last;
        if suspicion.notes == 0 && said.is_lost() && Some(chain.shard) != kept_here {
            numbers.gone.insert(chain, said.noted.issued);
        }
    }
    Ok(numbers)
}

async fn read(audit: &AuditStore, store: &Store) -> anyhow::Result<BTreeMap<ChainId, Said>> {
    // Records are sealed after their numbers are noted here, or soon before: the chains are read last.
    let noted = store
        .journal_heads()
        .await
        .context("what was noted of the journals cannot be read")?;
    let states = audit
        .chain_states()
        .await
        .context("the chains of the audit store cannot be read")?;
    Ok(noted
        .into_iter()
        .map(|noted| (noted.chain, Said::of(noted, &states)))
        .collect())
}
