//! Verification passes over the audit store, for the worker and for `audit verify` (spec/70 section 5).
//!
//! A pass only reads and takes no lock, so it can run while the service writes. [`Known`] holds the facts from outside
//! the database; without them, the database is compared only with its own signatures.

mod anchors;
mod numbers;
mod reads;
#[cfg(test)]
mod tests;

use anchors::AdminSpan;
pub(crate) use numbers::{Numbers, SILENCE, compare_numbers};
use reads::{Reads, read_failed};

use crate::workers::ADMIN_CHAIN;
use anyhow::Context as _;
use gw_audit::{
    AdminEntry, Anchor, Chain, ChainId, ChainList, Checkpoint, CheckpointPublicKey, Discontinuity, Erasures, Hash,
    ShardId, Stream, TrustedHeads,
    verify::{ChainVerifier, Finding, FindingKind, Report, Row, TrustedKeys, is_plausible_issued},
};
use gw_store::{
    IndexCheck, StoreError,
    audit::{AuditStore, ChainState, SignedNote, SignedNotes},
};
use gw_types::{Seconds, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Most rows of one kind that are reported one by one.
const MAX_LISTED: usize = 16;
/// Most chains without an entry that are verified although no trusted head or note names them. Whoever can write the
/// database can insert any number of them.
const MAX_UNKNOWN_EMPTY: usize = 64;
/// Most chains with entries that are verified although no trusted head or note names them.
const MAX_UNKNOWN: usize = 4096;
/// Rows per query.
const PAGE: u64 = 2000;
/// A writer without a claim for this long is gone: the records that it issued numbers for and did not seal are lost.
const SILENT_AFTER: Seconds = Seconds(900);
/// An unsigned record with a time further ahead than this does not come from an instance, because an instance with a
/// wrong clock does not serve requests.
const MAX_CLOCK_AHEAD: Seconds = Seconds(60);

/// Longest remaining lifetime of a genuine claim. A longer claim was forged to make a dead writer look alive, so it is
/// ignored.
const MAX_CLAIM: Seconds = Seconds(60);
/// A record that waits for its signature for this long has no living writer, unless its chain is signed during the
/// check.
const ABANDONED_AFTER: Seconds = Seconds(3600);
/// How long to wait for such a signature. A living writer signs what is due within a second.
const SIGNATURE_WAIT: Duration = Duration::from_secs(3);
/// Time between two checks for the signature.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Limit of the comparison of rows with indexes.
const INDEX_CHECK: Duration = Duration::from_secs(60);

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

/// Facts from the administrative chains and the security events, read before the chains are verified.
#[derive(Debug)]
struct Mutations {
    erasures: Erasures,
    admin_span: Option<AdminSpan>,
    /// Administrative entries that the gateway reported as not written by a mutation, with the time of the report.
    foreign: Vec<(u64, Timestamp)>,
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

async fn verify_store(
    audit: &AuditStore,
    known: &Known,
    pass: &Pass<'_>,
    verified: &BTreeMap<ChainId, Verified>,
    is_wanted: impl Fn(ChainId) -> bool,
    mut on_report: impl FnMut(ChainReport),
) -> anyhow::Result<()> {
    let reads = reads::on_heap(|| Reads::new(audit))
        .await
        .context("the audit store cannot be read")?;
    let mut expected = known.chains(pass.cluster);
    // Findings about the store as a whole are reported with the first chain.
    let mut store_findings = reads.findings();
    let states = match reads.read("chains", || audit.chain_states()).await? {
        Ok(states) => states,
        // Without this table, no row of another table has a chain.
        Err(finding) => {
            let mut report = empty_report(ADMIN_CHAIN, known, pass);
            store_findings.retain(|other| *other != finding);
            store_findings.push(finding);
            store_findings
                .into_iter()
                .for_each(|finding| report.report.add(finding));
            on_report(report);
            return Ok(());
        }
    };
    let stored = match reads.read("discontinuities", || audit.discontinuities()).await? {
        Ok(stored) => stored,
        Err(finding) => {
            store_findings.push(finding);
            Vec::new()
        }
    };
    match reads
        .read("discontinuities", || audit.malformed_discontinuities())
        .await?
    {
        Ok(rows) => store_findings.extend(
            rows.into_iter()
                .take(MAX_LISTED)
                .map(|id| read_failed("discontinuities", Some(id))),
        ),
        Err(finding) => store_findings.push(finding),
    }
    let erasures = reads::on_heap(|| read_erasures(&reads, audit, known, pass.cluster, &mut store_findings)).await?;
    let foreign = reads.read("entries", || audit.foreign_entries()).await?;
    let foreign = foreign.unwrap_or_else(|finding| {
        store_findings.push(finding);
        Vec::new()
    });
    let admin_span = reads
        .read("anchors", || admin_span(audit, &states, known, pass.cluster))
        .await?;
    let mutations = Mutations {
        admin_span: admin_span.unwrap_or_else(|finding| {
            store_findings.push(finding);
            None
        }),
        erasures,
        foreign,
    };
    let mut lost_numbers = known.numbers.gone.clone();
    match reads.read("sequences", || audit.exhausted_ids()).await? {
        Ok(tables) if tables.is_empty() => {}
        Ok(_) => store_findings.push(Finding::new(FindingKind::IdsExhausted, None)),
        Err(finding) => store_findings.push(finding),
    }
    match reads.read("schema", || audit.schema_differences()).await? {
        Ok(objects) if objects.is_empty() && !known.is_policy_changed => {}
        Ok(_) => store_findings.push(Finding::new(FindingKind::SchemaChanged, None)),
        Err(finding) => store_findings.push(finding),
    }
    if known.is_policy_rewound {
        store_findings.push(Finding::new(FindingKind::OutboxFault, None));
    }
    // Reads every row, so it is part of a full pass alone.
    if verified.is_empty() {
        match reads.read("indexes", || audit.check_indexes(INDEX_CHECK)).await? {
            Ok(IndexCheck::Sound) => {}
            Ok(IndexCheck::Faulty(faults)) => {
                (pass.report_index_faults)(&faults);
                store_findings.push(Finding::new(FindingKind::SchemaChanged, None));
            }
            Ok(IndexCheck::Unfinished) => tracing::warn!(
                limit_s = INDEX_CHECK.as_secs(),
                "the audit database is too large to compare all of its indexes with its rows in time; what was \
                 compared agrees"
            ),
            Err(finding) => store_findings.push(finding),
        }
    }
    let (states, skipped) = in_order(states, &expected);
    if skipped > 0 {
        tracing::error!(
            skipped,
            "the audit database has more chains than this deployment can have made: the likely cause is manual SQL; \
             they are not verified; remove the rows of `chains` that no instance wrote"
        );
        store_findings.push(Finding::at(FindingKind::Fork, "chains", None));
    }
    let mut seen = BTreeSet::new();
    store_findings.retain(|finding| seen.insert((finding.kind, finding.place)));
    for state in &states {
        expected.remove(&state.chain);
        lost_numbers.remove(&state.chain);
        if is_wanted(state.chain) {
            let notes = discontinuities(known, &stored, state.chain);
            // A chain that was re-anchored since the earlier pass is verified from its beginning.
            let earlier = verified.get(&state.chain);
            let earlier = earlier.filter(|earlier| earlier.report.discontinuities.len() == notes.len());
            let verification = || verify_chain(&reads, audit, state, known, pass, &mutations, &notes, earlier);
            let mut report = reads::on_heap(verification)
                .await
                .with_context(|| format!("chain {} cannot be read", state.chain))?;
            if !state.chain.can_be() {
                report.report.add(Finding::new(FindingKind::Fork, None));
                report.verified = None;
            }
            for finding in store_findings.drain(..) {
                report.report.add(finding);
                report.verified = None;
            }
            on_report(report);
        }
    }
    let malformed = reads.read("chains", || audit.malformed_chains()).await?;
    let malformed = malformed.unwrap_or_else(|finding| {
        store_findings.push(finding);
        Vec::new()
    });
    for row in malformed.into_iter().take(MAX_LISTED) {
        // The malformed row does not identify its stream.
        let chain = expected.iter().copied().find(|chain| Some(chain.shard) == row.shard);
        let chain = chain.unwrap_or(match row.shard {
            Some(shard) => ChainId {
                stream: Stream::Security,
                shard,
            },
            None => ADMIN_CHAIN,
        });
        let mut report = empty_report(chain, known, pass);
        report.report.add(read_failed("chains", Some(row.id)));
        on_report(report);
    }
    // No chain was there to report them with.
    if !store_findings.is_empty() {
        let mut report = empty_report(ADMIN_CHAIN, known, pass);
        store_findings
            .into_iter()
            .for_each(|finding| report.report.add(finding));
        on_report(report);
    }
    expected.extend(lost_numbers.keys());
    for chain in expected.into_iter().filter(|chain| is_wanted(*chain)) {
        let notes = discontinuities(known, &stored, chain);
        let trust = TrustedKeys {
            cluster: pass.cluster,
            keys: &known.keys,
        };
        let mut verifier = ChainVerifier::with_discontinuities(chain, trust, notes.iter().map(String::as_str), []);
        known
            .anchors(chain, pass.cluster)
            .iter()
            .for_each(|(anchor, _)| verifier.anchor(anchor));
        let signed = verifier.signed_size();
        let mut report = verifier.finish(None);
        report
            .findings
            .retain(|finding| finding.kind != FindingKind::ChainTruncated);
        if signed > 0 {
            report.add(Finding::new(FindingKind::ShardMissing, signed.checked_sub(1)));
        }
        lost_numbers
            .remove(&chain)
            .into_iter()
            .for_each(|issued| report.add_lost(issued));
        on_report(ChainReport {
            chain,
            report,
            seed: Hash::ZERO,
            newest_note: None,
            verified: None,
        });
    }
    Ok(())
}

/// The report of a chain of which nothing was read.
fn empty_report(chain: ChainId, known: &Known, pass: &Pass<'_>) -> ChainReport {
    let trust = TrustedKeys {
        cluster: pass.cluster,
        keys: &known.keys,
    };
    ChainReport {
        chain,
        report: ChainVerifier::new(chain, trust, []).finish(None),
        seed: Hash::ZERO,
        newest_note: None,
        verified: None,
    }
}

/// Puts the chains that must be there first, so that inserted chains do not delay the findings about them, and leaves
/// out surplus other chains. Returns the chains and the number of those left out.
fn in_order(mut states: Vec<ChainState>, expected: &BTreeSet<ChainId>) -> (Vec<ChainState>, usize) {
    let is_known = |state: &ChainState| expected.contains(&state.chain) || state.chain == ADMIN_CHAIN;
    states.sort_by_key(|state| (!is_known(state), state.head.is_none()));
    let (mut empty, mut others, all) = (0, 0, states.len());
    states.retain(|state| {
        if is_known(state) {
            return true;
        }
        let (count, limit) = if state.head.is_none() {
            (&mut empty, MAX_UNKNOWN_EMPTY)
        } else {
            (&mut others, MAX_UNKNOWN)
        };
        *count += 1;
        *count <= limit
    });
    let skipped = all - states.len();
    (states, skipped)
}

/// Returns the value of a read; keeps the finding of a failed one.
fn value<T>(findings: &mut Vec<Finding>, read: Result<T, Finding>) -> Option<T> {
    read.map_err(|finding| findings.push(finding)).ok()
}

/// The re-anchorings of a chain from the store and from the file of trusted heads, ordered by era.
fn discontinuities(known: &Known, stored: &[(ChainId, String)], chain: ChainId) -> Vec<String> {
    let stored = stored
        .iter()
        .filter(|(note_chain, _)| *note_chain == chain)
        .map(|(_, note)| note);
    let distinct: BTreeSet<&String> = stored.chain(known.heads.discontinuities(chain)).collect();
    let mut notes: Vec<_> = distinct.into_iter().cloned().collect();
    notes.sort_by_key(|note| Checkpoint::unverified(note).map_or(0, |note| note.era()));
    notes
}

#[expect(
    clippy::too_many_arguments,
    reason = "the facts that a chain is compared with; each has one caller"
)]
async fn verify_chain(
    reads: &Reads<'_>,
    audit: &AuditStore,
    state: &ChainState,
    known: &Known,
    pass: &Pass<'_>,
    mutations: &Mutations,
    discontinuities: &[String],
    verified: Option<&Verified>,
) -> anyhow::Result<ChainReport> {
    let chain = state.chain;
    // Reads that failed, and rows that cannot be read.
    let mut unread = Vec::new();
    let after = verified.map_or(0, |verified| verified.last_note);
    let notes = reads
        .read("checkpoints", || audit.checkpoints_after(chain, after))
        .await?;
    let SignedNotes { notes, malformed } = value(&mut unread, notes).unwrap_or_default();
    unread.extend(
        malformed
            .into_iter()
            .take(MAX_LISTED)
            .map(|id| read_failed("checkpoints", Some(id))),
    );
    let mut last_note = notes
        .last()
        .map_or(verified.map_or(0, |verified| verified.last_note), |note| note.id);
    let trust = TrustedKeys {
        cluster: pass.cluster,
        keys: &known.keys,
    };
    let texts = notes.iter().map(|note| note.note.as_str());
    let resumed = verified.and_then(|verified| Some((verified, verified.report.head?)));
    let (mut verifier, seed) = match resumed {
        Some((verified, head)) => {
            let resumed_chain = Chain::resume(chain, head, verified.report.orgs.iter().copied());
            let verifier = ChainVerifier::resume_report(&resumed_chain, &verified.report, trust, texts);
            (verifier, head.hash)
        }
        None => {
            let verifier =
                ChainVerifier::with_discontinuities(chain, trust, discontinuities.iter().map(String::as_str), texts);
            (verifier, Hash::ZERO)
        }
    };
    // The entries of the earlier pass are not read again, but their last hash must be unchanged.
    let last_hashes = match resumed {
        Some((_, head)) => {
            let last = || audit.computed_hash(chain, head.size.saturating_sub(1));
            value(&mut unread, reads.read("entries", last).await?).map(|hash| hash.map(|hash| (hash, head.hash)))
        }
        None => None,
    };
    let anchors = known.anchors(chain, pass.cluster);
    anchors.iter().for_each(|(anchor, _)| verifier.anchor(anchor));
    if verified.is_none() {
        anchors
            .iter()
            .filter(|(_, is_note_stored)| *is_note_stored)
            .for_each(|(anchor, _)| verifier.expect_note(anchor));
    }
    let anchor = match resumed {
        Some(_) => None,
        None => value(&mut unread, reads.read("anchors", || audit.anchor(chain)).await?).flatten(),
    };
    notes
        .iter()
        .filter(|note| !note.columns_agree)
        .for_each(|note| verifier.report(note_column_mismatch(note)));
    if resumed.is_none() {
        let compared = || anchors::compare(audit, chain, known, pass, mutations.admin_span);
        value(&mut unread, reads.read("anchors", compared).await?)
            .unwrap_or_default()
            .into_iter()
            .for_each(|finding| verifier.report(finding));
    }
    if let Some(stored) = anchor
        && let Ok(anchor) = Anchor::open(&stored.bytes, &stored.note, chain, pass.cluster, &known.keys)
    {
        let skipped = Box::pin(skip_pruned(audit, &mut verifier, &anchor));
        value(&mut unread, reads.read("hash_tiles", || skipped).await?);
    }
    let mut next = verifier.frontier().size();
    while next < pass.since {
        let hashes = || audit.stored_hashes(chain, next, PAGE.min(pass.since - next));
        let hashes = value(&mut unread, reads.read("entries", hashes).await?).unwrap_or_default();
        let Some(behind) = hashes.last().and_then(|(last, _)| last.checked_add(1)) else {
            break;
        };
        next = behind;
        hashes
            .into_iter()
            .filter(|(seq, _)| *seq < pass.since)
            .for_each(|(seq, hash)| verifier.pruned(seq, hash));
    }
    let rows = Box::pin(read_rows(audit, &mut verifier, chain, next, pass, &mutations.erasures));
    let rows = reads.read("entries", || rows).await?.map_err(|finding| Finding {
        seq: Some(verifier.frontier().size()),
        ..finding
    });
    let stored = value(&mut unread, rows).flatten();
    let strays = || audit.stray_entries(chain, MAX_LISTED as u64);
    let strays = value(&mut unread, reads.read("entries", strays).await?).unwrap_or_default();
    let later = reads
        .read("checkpoints", || audit.checkpoints_after(chain, last_note))
        .await?;
    let later = value(&mut unread, later).unwrap_or_default().notes;
    verifier.signed_meanwhile(later.iter().map(|note| note.note.as_str()));
    later
        .iter()
        .filter(|note| !note.columns_agree)
        .for_each(|note| verifier.report(note_column_mismatch(note)));
    let mut report = verifier.finish(stored.or(state.head));
    unread.into_iter().for_each(|finding| report.add(finding));
    for id in strays {
        report.add(Finding::at(FindingKind::HashMismatch, "entries", Some(id)));
    }
    if let Some(((_, head), last_hashes)) = resumed.zip(last_hashes) {
        let last = head.size.checked_sub(1);
        match last_hashes {
            None => report.add(Finding::new(FindingKind::ChainTruncated, last)),
            Some((stored, expected)) if stored != expected => report.add(Finding {
                stored: Some(stored),
                expected: Some(expected),
                ..Finding::new(FindingKind::HashMismatch, last)
            }),
            Some(_) => {}
        }
    }
    let is_silent = state.leased_until.plus(SILENT_AFTER) < pass.now;
    let sealed = state.head.map_or(0, |head| head.size);
    let is_plausible = state.issued.is_none_or(|issued| is_plausible_issued(issued, sealed));
    let issued_by_silent_writer = state.issued.filter(|_| is_silent && is_plausible);
    let issued_by_gone_writer = known.numbers.gone.get(&chain).copied();
    if let Some(issued) = issued_by_silent_writer
        .map(|last| last.saturating_add(1))
        .max(issued_by_gone_writer)
    {
        report.add_lost(issued);
    }
    let issued = state.issued.map_or(0, |last| last.saturating_add(1));
    if issued < sealed || !is_plausible || known.numbers.beyond.contains(&chain) {
        report.add(Finding::new(FindingKind::ColumnMismatch, sealed.checked_sub(1)));
    }
    let interval = i64::try_from(pass.interval.as_micros()).unwrap_or(i64::MAX);
    let claimed = Some(state.leased_until).filter(|until| *until <= pass.now.plus(MAX_CLAIM));
    let is_unclaimed = claimed.is_none_or(|until| until.plus(SILENT_AFTER) < pass.now);
    // Any instance can continue an administrative chain, because the outbox confirms its entries.
    let is_own = known.shard == Some(chain.shard);
    // No instance has a clock that is so far ahead, so no instance will ever sign such a record.
    let is_ahead = report
        .oldest_unsigned
        .is_some_and(|oldest| oldest > pass.now.plus(MAX_CLOCK_AHEAD));
    // An instance that saw the entries earlier knows their age, whatever times they have now.
    if let Some(oldest) = report.oldest_unsigned {
        let seen = known.heads.unsigned_since(chain, report.signed);
        report.oldest_unsigned = Some(seen.map_or(oldest, |seen| seen.min(oldest)));
    }
    let is_gone = if chain.stream == Stream::Admin || is_own {
        false
    } else if is_unclaimed || is_ahead {
        true
    } else {
        let abandoned = || is_abandoned(audit, &report, chain, pass, known, interval);
        reads.read("checkpoints", abandoned).await?.unwrap_or(false)
    };
    // A signed note that waits for the database is not missing; its writer reports the problem with the database. The
    // instance with the journal signs its own chains while it runs, and detects missing notes by its trusted heads.
    let waiting = reads.read("checkpoints", || audit.is_note_waiting(chain));
    if is_gone || !(is_own || waiting.await?.unwrap_or(false)) {
        let now = if is_ahead {
            Timestamp::from_micros(i64::MAX)
        } else {
            pass.now
        };
        report.add_unsigned(interval, now, is_gone);
    }
    if chain == ADMIN_CHAIN {
        add_foreign(&mut report, &mutations.foreign, discontinuities, known, pass);
    }
    let newest_note = report.signed_edge.as_ref().and_then(|edge| {
        let is_of_edge = |note: &&SignedNote| {
            Checkpoint::unverified(&note.note)
                .is_some_and(|note| note.size == edge.size() && note.root == edge.frontier().root())
        };
        notes.iter().rev().find(is_of_edge).map(|note| note.note.clone())
    });
    // The next pass compares the notes that were signed during this pass.
    last_note = last_note.max(verified.map_or(0, |verified| verified.last_note));
    let verified = report.is_clean().then(|| Verified {
        report: report.clone(),
        last_note,
    });
    Ok(ChainReport {
        chain,
        report,
        seed,
        newest_note,
        verified,
    })
}

/// Whether a chain has no writer that can sign it, even if its claim is renewed: its records have waited too long for a
/// signature, and none appears within [`SIGNATURE_WAIT`].
async fn is_abandoned(
    audit: &AuditStore,
    report: &Report,
    chain: ChainId,
    pass: &Pass<'_>,
    known: &Known,
    interval: i64,
) -> Result<bool, StoreError> {
    let max_age = interval
        .saturating_mul(3)
        .max(i64::from(ABANDONED_AFTER.0).saturating_mul(1_000_000));
    let is_old = |oldest: Timestamp| pass.now.micros().saturating_sub(oldest.micros()) > max_age;
    if !report.oldest_unsigned.is_some_and(is_old) {
        return Ok(false);
    }
    let started = Instant::now();
    loop {
        let newest = audit.newest_checkpoints(chain).await?;
        let mut signed = newest
            .iter()
            .filter_map(|note| Checkpoint::open(&note.note, &known.keys).ok());
        if signed.any(|note| note.size > report.signed && note.origin == chain.origin(pass.cluster)) {
            return Ok(false);
        }
        if started.elapsed() >= SIGNATURE_WAIT {
            return Ok(true);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Adds a finding for each entry that the gateway reported as not written by a mutation. A re-anchoring after the
/// report accepts the entry.
fn add_foreign(
    report: &mut Report,
    foreign: &[(u64, Timestamp)],
    discontinuities: &[String],
    known: &Known,
    pass: &Pass<'_>,
) {
    let opened = discontinuities
        .iter()
        .filter_map(|note| Discontinuity::open(note, pass.cluster, &known.keys).ok());
    let accepted = opened
        .filter(|discontinuity| discontinuity.chain == ADMIN_CHAIN)
        .map(|discontinuity| discontinuity.time)
        .max();
    for (seq, reported_at) in foreign {
        let finding = Finding {
            time: Some(*reported_at),
            ..Finding::new(FindingKind::OutboxFault, Some(*seq))
        };
        if accepted.is_some_and(|accepted| accepted >= *reported_at) {
            report.authorized.push(finding);
        } else {
            report.add(finding);
        }
    }
}

/// The finding for a note whose columns differ from its text.
fn note_column_mismatch(note: &SignedNote) -> Finding {
    let size = Checkpoint::unverified(&note.note).map_or(0, |note| note.size);
    Finding::new(FindingKind::ColumnMismatch, size.checked_sub(1))
}

/// Feeds the hashes of the pruned entries to the verifier, so that it can compute the signed roots over them.
async fn skip_pruned(audit: &AuditStore, verifier: &mut ChainVerifier<'_>, anchor: &Anchor) -> Result<(), StoreError> {
    let mut next = verifier.frontier().size();
    while next < anchor.head.size {
        let leaves = match audit
            .leaves(anchor.chain, next, PAGE.min(anchor.head.size - next))
            .await
        {
            // Not reported here: `anchored` below finds that the anchor's tree differs from the remaining hashes.
            Err(error) if error.is_about_row() => Vec::new(),
            result => result?,
        };
        if leaves.is_empty() {
            break;
        }
        for leaf in leaves {
            verifier.pruned(next, leaf);
            next += 1;
        }
    }
    verifier.anchored(anchor);
    Ok(())
}

/// The time span that all administrative chains cover; `None` if there is no such chain or an anchor is not valid.
async fn admin_span(
    audit: &AuditStore,
    states: &[ChainState],
    known: &Known,
    cluster: &str,
) -> Result<Option<AdminSpan>, StoreError> {
    let mut span: Option<AdminSpan> = None;
    for state in states.iter().filter(|state| state.chain.stream == Stream::Admin) {
        let (chain, Some(head)) = (state.chain, state.head) else {
            continue;
        };
        let pruned = match audit.anchor(chain).await? {
            Some(row) => match Anchor::open(&row.bytes, &row.note, chain, cluster, &known.keys) {
                Ok(anchor) => anchor.head.time,
                // `anchors::compare` reports the anchor. Without it, the pruned time is unknown.
                Err(_) => return Ok(None),
            },
            None => Timestamp::from_micros(i64::MIN),
        };
        let before = span.unwrap_or(AdminSpan {
            pruned,
            sealed: head.time,
        });
        span = Some(AdminSpan {
            pruned: before.pruned.max(pruned),
            sealed: before.sealed.min(head.time),
        });
    }
    Ok(span)
}

/// The intended erasures: from records in the outbox and in the administrative chains, and from the anchors of pruned
/// chains.
async fn read_erasures(
    reads: &Reads<'_>,
    audit: &AuditStore,
    known: &Known,
    cluster: &str,
    findings: &mut Vec<Finding>,
) -> Result<Erasures, StoreError> {
    let records = value(findings, reads.read("entries", || audit.erasure_records()).await?).unwrap_or_default();
    let mut erasures = gw_audit::erasures(known.waiting_erasures.iter().chain(&records));
    let anchored = value(findings, reads.read("anchors", || audit.anchored_chains()).await?).unwrap_or_default();
    for chain in anchored {
        let stored = value(findings, reads.read("anchors", || audit.anchor(chain)).await?).flatten();
        if let Some(stored) = stored
            && let Ok(anchor) = Anchor::open(&stored.bytes, &stored.note, chain, cluster, &known.keys)
        {
            erasures.extend(&anchor.erasures);
        }
    }
    Ok(erasures)
}

/// Feeds the rows from `next` on to the verifier. Returns the head of the chain as its row in `chains` has it.
async fn read_rows(
    audit: &AuditStore,
    verifier: &mut ChainVerifier<'_>,
    chain: ChainId,
    mut next: u64,
    pass: &Pass<'_>,
    erasures: &Erasures,
) -> Result<Option<gw_audit::Head>, StoreError> {
    // Entries and the head change in one transaction. So rows that are sealed during the pass are read too, and a head
    // beyond the last entry means that the chain was truncated. Rows at or beyond the head are no entries of the chain
    // (`AuditStore::stray_entries`).
    loop {
        let stored = audit.head(chain).await?;
        let end = stored.map_or(0, |head| head.size);
        if end <= next {
            return Ok(stored);
        }
        let started = Instant::now();
        let rows = audit.rows(chain, next, PAGE.min(end - next)).await?;
        let before = next;
        for row in rows.iter().take_while(|row| row.seq < end) {
            let hash = row.hash_readable.then_some(row.hash);
            verifier.row(&Row {
                id: Some(row.id),
                columns_agree: row.columns_agree,
                erased: erasures.covers(chain, row.seq),
                ..Row::new(row.seq, hash, &row.bytes, &row.openings)
            });
            next = row.seq.checked_add(1).unwrap_or(end);
        }
        if next <= before {
            return Ok(stored);
        }
        sleep(started.elapsed().saturating_mul(pass.rest)).await;
    }
}
