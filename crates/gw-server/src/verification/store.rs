//! Verifies the audit store as a whole, and each of its chains.

use super::{
    ChainReport, Known, MAX_LISTED, Pass, Verified,
    anchors::{AdminSpan, admin_span},
    chain::verify_chain,
    reads::{self, Reads, read_failed, value},
};
use crate::workers::ADMIN_CHAIN;
use anyhow::Context as _;
use gw_audit::{
    Anchor, ChainId, Checkpoint, Erasures, Hash, Stream,
    verify::{ChainVerifier, Finding, FindingKind, TrustedKeys},
};
use gw_store::{
    IndexCheck, StoreError,
    audit::{AuditStore, ChainState},
};
use gw_types::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The maximum of verified chains that have no entry and that no trusted head or note names. A writer of the database
/// can insert any number of them.
const MAX_UNKNOWN_EMPTY: usize = 64;
/// The maximum of verified chains that have entries and that no trusted head or note names.
const MAX_UNKNOWN: usize = 4096;
/// Limit of the comparison of rows with indexes.
const INDEX_CHECK: Duration = Duration::from_secs(60);

/// Facts from the administrative chains and the security events, read before the chains are verified.
#[derive(Debug)]
pub(super) struct Mutations {
    pub(super) erasures: Erasures,
    pub(super) admin_span: Option<AdminSpan>,
    /// Administrative entries that the gateway reported as not written by a mutation, with the time of the report.
    pub(super) foreign: Vec<(u64, Timestamp)>,
}

/// [`verify_all`](super::verify_all), with a state that is too large for the stack of a thread.
pub(super) async fn verify_store(
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
