//! Verification passes over the audit store, for the worker and for `audit verify` (spec/70 section 5).
//!
//! A pass only reads and takes no lock, so it can run while the service writes. [`Known`] holds the facts from outside
//! the database; without them, the database is compared only with its own signatures.

mod anchors;
mod chain;
mod numbers;
mod reads;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use numbers::{Numbers, SILENCE, compare_numbers};

use gw_audit::{
    AdminEntry, ChainId, ChainList, Checkpoint, CheckpointPublicKey, Hash, ShardId, TrustedHeads, verify::Report,
};
use gw_store::audit::AuditStore;
use gw_types::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use store::verify_store;

/// Most rows of one kind that are reported one by one.
const MAX_LISTED: usize = 16;

/// Reports the faults of the indexes of the audit database; each names its index.
pub(crate) type ReportIndexFaults<'a> = &'a (dyn Fn(&[String]) + Send + Sync);

/// Facts about the chains from outside the audit database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Trusted public keys of checkpoints, current and older.
    pub(crate) keys: Vec<CheckpointPublicKey>,
    /// The trusted heads of an instance.
    pub(crate) heads: TrustedHeads,
    /// Signed notes that were kept outside the database.
    pub(crate) notes: Vec<Checkpoint>,
    /// Signed heads that the policy store keeps. Their notes may not have reached the audit store yet.
    pub(crate) signed_heads: Vec<Checkpoint>,
    /// The shard whose journal is on this machine. Its instance compares and signs its unsigned records, now or at its
    /// next start.
    pub(crate) shard: Option<ShardId>,
    /// Contradictions between the policy store and the audit store about issued numbers.
    pub(crate) numbers: Numbers,
    /// Whether the schema of the policy store is not as the migrations made it.
    pub(crate) is_policy_changed: bool,
    /// Whether the policy store has issued fewer outbox ids than are sealed as its own: it is an older copy.
    pub(crate) is_policy_rewound: bool,
    /// Records of erasures that wait in the outbox of the policy store. They must be read before the chains: a record
    /// that is sealed meanwhile is in one of the two.
    pub(crate) waiting_erasures: Vec<AdminEntry>,
}

/// Parameters of a pass.
pub(crate) struct Pass<'a> {
    pub(crate) cluster: &'a str,
    /// Time between checkpoints.
    pub(crate) interval: Duration,
    pub(crate) now: Timestamp,
    /// Only the stored hash is read of entries below this number.
    pub(crate) since: u64,
    /// After each query, the pass sleeps this many times the query's duration, so that it does not slow down other
    /// queries.
    pub(crate) rest: u32,
    pub(crate) report_index_faults: ReportIndexFaults<'a>,
}

/// The end of an earlier pass over a chain without findings, where the next pass continues.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    report: Report,
    last_note: i64,
}

/// The result of a pass over one chain.
#[derive(Debug)]
pub(crate) struct ChainReport {
    pub(crate) chain: ChainId,
    pub(crate) report: Report,
    /// The hash before the first verified row; zero at the beginning of a chain.
    pub(crate) seed: Hash,
    /// The newest note that covers the verified entries.
    pub(crate) newest_note: Option<String>,
    /// Where the next pass continues; `None` if there is a finding.
    pub(crate) verified: Option<Verified>,
}

impl Known {
    /// Every checkpoint of a chain from outside the database, and whether its note must be in the database.
    fn anchors(&self, chain: ChainId, cluster: &str) -> Vec<(Checkpoint, bool)> {
        let origin = chain.origin(cluster);
        let mut anchors: Vec<_> = self
            .notes
            .iter()
            .filter(|note| note.origin == origin)
            .map(|note| (note.clone(), true))
            .collect();
        anchors.extend(
            self.listed(cluster)
                .into_iter()
                .chain(self.signed_heads.iter().cloned())
                .filter(|head| head.origin == origin)
                .map(|head| (head, false)),
        );
        if let Some((head, root)) = self.heads.head(chain).and_then(|head| Some((head, head.root()?))) {
            anchors.push((
                Checkpoint::new(origin, head.size, root).in_era(head.era),
                head.note.is_some(),
            ));
        }
        anchors
    }

    /// The heads of all signed lists of chains.
    fn listed(&self, cluster: &str) -> Vec<Checkpoint> {
        // No signature check here: the file of trusted heads was trusted when it was read, and other notes were opened
        // with the keys.
        let own = self.heads.list().and_then(Checkpoint::unverified);
        let lists = self
            .notes
            .iter()
            .chain(own.as_ref())
            .filter_map(|note| ChainList::read(note, cluster));
        lists.flat_map(|list| list.heads).collect()
    }

    /// Every chain that must be in the database.
    fn chains(&self, cluster: &str) -> BTreeSet<ChainId> {
        let listed = self.listed(cluster);
        let noted = self.notes.iter().chain(&listed).chain(&self.signed_heads);
        let noted = noted.filter(|note| note.size > 0);
        let noted = noted.filter_map(|note| ChainId::from_origin(&note.origin, cluster));
        noted
            .chain(
                self.heads
                    .heads()
                    .filter(|(_, head)| head.size > 0)
                    .map(|(chain, _)| chain),
            )
            .collect()
    }
}

/// Verifies every chain that `is_wanted` accepts, both chains in the store and chains that must be there. Calls
/// `on_report` with each result.
///
/// # Errors
///
/// If the audit store cannot be read. Tampering is a finding, not an error.
pub(crate) async fn verify_all(
    audit: &AuditStore,
    known: &Known,
    pass: &Pass<'_>,
    verified: &BTreeMap<ChainId, Verified>,
    is_wanted: impl Fn(ChainId) -> bool,
    on_report: impl FnMut(ChainReport),
) -> anyhow::Result<()> {
    // On the heap: the state of all its reads is too large for the stack of a thread.
    reads::on_heap(|| verify_store(audit, known, pass, verified, is_wanted, on_report)).await
}
