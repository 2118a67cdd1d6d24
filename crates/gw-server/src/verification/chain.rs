//! Verifies one chain: its entries, its notes, and what its writer must have done.

use super::{
    ChainReport, Known, MAX_LISTED, Pass, Verified, anchors,
    reads::{Reads, read_failed, value},
    store::Mutations,
};
use crate::workers::ADMIN_CHAIN;
use gw_audit::{
    Anchor, Chain, ChainId, Checkpoint, Discontinuity, Erasures, Hash, Head, Stream,
    verify::{ChainVerifier, Finding, FindingKind, Report, Row, TrustedKeys, is_plausible_issued},
};
use gw_store::{
    StoreError,
    audit::{AuditStore, ChainState, SignedNote, SignedNotes},
};
use gw_types::{Seconds, Timestamp};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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

/// Verifies one chain in the store.
///
/// # Errors
///
/// If the audit store cannot be read. Tampering is a finding, not an error.
#[expect(
    clippy::too_many_arguments,
    reason = "the facts that a chain is compared with; each has one caller"
)]
pub(super) async fn verify_chain(
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

/// Feeds the rows from `next` on to the verifier. Returns the head of the chain as its row in `chains` has it.
async fn read_rows(
    audit: &AuditStore,
    verifier: &mut ChainVerifier<'_>,
    chain: ChainId,
    mut next: u64,
    pass: &Pass<'_>,
    erasures: &Erasures,
) -> Result<Option<Head>, StoreError> {
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
