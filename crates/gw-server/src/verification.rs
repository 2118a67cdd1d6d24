//! One pass of verification over the audit store, as the worker and `audit verify` make it (spec/70 section 5).
//!
//! Reads only and takes no lock, so it runs beside the service. What is known apart from the database comes as [`Known`];
//! without it the database is compared with its own signatures alone.

mod anchors;
mod numbers;
#[cfg(test)]
mod tests;

use anchors::Reach;
pub(crate) use numbers::{Numbers, SILENCE, compare_numbers};

use crate::workers::ADMIN_CHAIN;
use anyhow::Context as _;
use gw_audit::{
    Anchor, Chain, ChainId, ChainList, Checkpoint, CheckpointPublicKey, Discontinuity, Erasures, Hash, ShardId, Stream,
    TrustedHeads,
    verify::{ChainVerifier, Finding, FindingKind, Report, Row, TrustedKeys},
};
use gw_store::{
    StoreError,
    audit::{AuditStore, ChainState, SignedNote},
};
use gw_types::{Seconds, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Rows read at once.
const PAGE: u64 = 2000;
/// A writer silent for so long does not live: what it gave out numbers for and did not seal is lost.
const SILENT: Seconds = Seconds(900);
/// An unsigned record dated so far ahead is no record of an instance: those that disagree on the time serve nothing.
const AHEAD: Seconds = Seconds(60);

/// A claim never lasts longer from now on than this: one that does was written by somebody who wants a dead writer to look
/// alive.
const CLAIM: Seconds = Seconds(60);
/// A record that waits for its signature for so long belongs to no living writer, unless its chain is signed right now.
const ABANDONED: Seconds = Seconds(3600);
/// How long that is waited for, and the rest between two looks: a living writer signs what is due within a second.
const SIGNED_WITHIN: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(500);

/// Whether a signed record says that the personal values of an entry were erased.
pub(crate) type Erased<'a> = &'a (dyn Fn(ChainId, u64) -> bool + Send + Sync);

/// What is known of the chains apart from the database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The keys that may have signed.
    pub(crate) keys: Vec<CheckpointPublicKey>,
    /// The trusted heads of an instance.
    pub(crate) heads: TrustedHeads,
    /// Signed notes kept elsewhere.
    pub(crate) notes: Vec<Checkpoint>,
    /// The shard whose journal is here: its instance compares and signs what is not signed yet, now or at its next start.
    pub(crate) shard: Option<ShardId>,
    /// What the policy store says of the numbers that writers gave out.
    pub(crate) numbers: Numbers,
    /// Whether something is attached to the policy store that no migration made.
    pub(crate) is_policy_changed: bool,
}

/// What is known of the administrative chain before the others are looked at.
#[derive(Debug)]
struct Mutations {
    erasures: Erasures,
    reach: Option<Reach>,
    /// Entries that the gateway itself said no mutation wrote, and when it said so.
    foreign: Vec<(u64, Timestamp)>,
}

/// How a pass is made.
pub(crate) struct Pass<'a> {
    pub(crate) cluster: &'a str,
    /// Time between checkpoints.
    pub(crate) interval: Duration,
    pub(crate) now: Timestamp,
    /// Of entries below this number only the stored hash is read.
    pub(crate) since: u64,
    /// How much longer than it reads the pass rests, so that nobody waits behind it.
    pub(crate) rest: u32,
    pub(crate) erased: Erased<'a>,
}

/// Where an earlier pass over a chain ended without a finding.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    report: Report,
    last_note: i64,
}

/// What a pass found of one chain.
#[derive(Debug)]
pub(crate) struct ChainReport {
    pub(crate) chain: ChainId,
    pub(crate) report: Report,
    /// The hash before the first row looked at; zero at the beginning of a chain.
    pub(crate) seed: Hash,
    /// The newest note over what was compared, and where the next pass goes on.
    pub(crate) newest_note: Option<String>,
    pub(crate) verified: Option<Verified>,
}

impl Known {
    /// Every checkpoint of a chain that is kept outside the database; `true` beside those whose note must be in it, too.
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

    /// The heads of all lists of chains.
    fn listed(&self, cluster: &str) -> Vec<Checkpoint> {
        // The file was trusted when it was read; what came from elsewhere was opened with the keys.
        let own = self.heads.list().and_then(Checkpoint::unverified);
        let lists = self
            .notes
            .iter()
            .chain(own.as_ref())
            .filter_map(|note| ChainList::read(note, cluster));
        lists.flat_map(|list| list.heads).collect()
    }

    /// Every chain that there must be.
    fn chains(&self, cluster: &str) -> BTreeSet<ChainId> {
        let listed = self.listed(cluster);
        let noted = self.notes.iter().chain(&listed).filter(|note| note.size > 0);
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

/// Looks at every chain that `wanted` takes: those in the store, and those that must be.
pub(crate) async fn verify_all(
    audit: &AuditStore,
    known: &Known,
    pass: &Pass<'_>,
    verified: &BTreeMap<ChainId, Verified>,
    wanted: impl Fn(ChainId) -> bool,
    mut found: impl FnMut(ChainReport),
) -> anyhow::Result<()> {
    let states = audit
        .chain_states()
        .await
        .context("the chains of the audit store cannot be read")?;
    let stored = audit
        .discontinuities()
        .await
        .context("the re-anchorings in the audit store cannot be read")?;
    let erasures = read_erasures(audit, known, pass.cluster)
        .await
        .context("the records of erasure cannot be read")?;
    let foreign = audit
        .foreign_entries()
        .await
        .context("the security events in the audit store cannot be read")?;
    let mutations = Mutations {
        reach: reach(audit, &states, known, pass.cluster).await?,
        erasures,
        foreign,
    };
    let mut due = known.chains(pass.cluster);
    let mut gone = known.numbers.gone.clone();
    // What is of no chain stands with the first one.
    let mut of_none = Vec::new();
    if !audit
        .exhausted_ids()
        .await
        .context("the ids of the audit store cannot be read")?
        .is_empty()
    {
        of_none.push(FindingKind::IdsExhausted);
    }
    let foreign = audit
        .foreign_objects()
        .await
        .context("the schema of the audit store cannot be read")?;
    if known.is_policy_changed || !foreign.is_empty() {
        of_none.push(FindingKind::SchemaChanged);
    }
    for state in &states {
        due.remove(&state.chain);
        gone.remove(&state.chain);
        if wanted(state.chain) {
            let notes = discontinuities(known, &stored, state.chain);
            // One that was re-anchored since is another one.
            let earlier = verified.get(&state.chain);
            let earlier = earlier.filter(|earlier| earlier.report.discontinuities.len() == notes.len());
            let report = verify_chain(audit, state, known, pass, &mutations, &notes, earlier).await;
            let mut report = report.with_context(|| format!("chain {} cannot be read", state.chain))?;
            if !state.chain.can_be() {
                report.report.add(Finding::of(FindingKind::Fork, None));
                report.verified = None;
            }
            for kind in of_none.drain(..) {
                report.report.add(Finding::of(kind, None));
                report.verified = None;
            }
            found(report);
        }
    }
    for shard in audit
        .malformed_chains()
        .await
        .context("the chains of the audit store cannot be read")?
    {
        // The row does not say which stream it is of.
        let chain = due.iter().copied().find(|chain| chain.shard == shard);
        let chain = chain.unwrap_or(ChainId {
            stream: Stream::Security,
            shard,
        });
        let trust = TrustedKeys {
            cluster: pass.cluster,
            keys: &known.keys,
        };
        let mut report = ChainVerifier::new(chain, trust, []).finish(None);
        report.add(Finding::of(FindingKind::RowReadFailed, None));
        found(ChainReport {
            chain,
            report,
            seed: Hash::ZERO,
            newest_note: None,
            verified: None,
        });
    }
    due.extend(gone.keys());
    for chain in due.into_iter().filter(|chain| wanted(*chain)) {
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
            report.add(Finding::of(FindingKind::ShardMissing, signed.checked_sub(1)));
        }
        gone.remove(&chain)
            .into_iter()
            .for_each(|issued| report.add_lost(issued));
        found(ChainReport {
            chain,
            report,
            seed: Hash::ZERO,
            newest_note: None,
            verified: None,
        });
    }
    Ok(())
}

/// The re-anchorings of a chain, of the store and of the file, in their order.
fn discontinuities(known: &Known, stored: &[(ChainId, String)], chain: ChainId) -> Vec<String> {
    let stored = stored.iter().filter(|(of, _)| *of == chain).map(|(_, note)| note);
    let all: BTreeSet<&String> = stored.chain(known.heads.discontinuities(chain)).collect();
    let mut all: Vec<_> = all.into_iter().cloned().collect();
    all.sort_by_key(|note| Checkpoint::unverified(note).map_or(0, |note| note.era()));
    all
}

async fn verify_chain(
    audit: &AuditStore,
    state: &ChainState,
    known: &Known,
    pass: &Pass<'_>,
    mutations: &Mutations,
    discontinuities: &[String],
    verified: Option<&Verified>,
) -> anyhow::Result<ChainReport> {
    let chain = state.chain;
    let notes = audit
        .checkpoints_after(chain, verified.map_or(0, |verified| verified.last_note))
        .await?;
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
            let at = Chain::resume(chain, head, verified.report.orgs.iter().copied());
            let verifier = ChainVerifier::resume(&at, verified.report.frontier.clone(), trust, texts);
            (verifier.continuing(&verified.report), head.hash)
        }
        None => {
            let verifier =
                ChainVerifier::with_discontinuities(chain, trust, discontinuities.iter().map(String::as_str), texts);
            (verifier, Hash::ZERO)
        }
    };
    // What was verified before and is not read again must still end where it did.
    let kept = match resumed {
        Some((_, head)) => audit
            .computed_hash(chain, head.size.saturating_sub(1))
            .await?
            .map(|hash| (hash, head.hash)),
        None => None,
    };
    let anchors = known.anchors(chain, pass.cluster);
    anchors.iter().for_each(|(anchor, _)| verifier.anchor(anchor));
    if verified.is_none() {
        anchors
            .iter()
            .filter(|(_, is_kept)| *is_kept)
            .for_each(|(anchor, _)| verifier.expect_note(anchor));
    }
    let anchor = match resumed {
        Some(_) => None,
        None => audit.anchor(chain).await?,
    };
    notes
        .iter()
        .filter(|note| !note.columns_agree)
        .for_each(|note| verifier.report(of_note(note)));
    if resumed.is_none() {
        anchors::compare(audit, chain, known, pass, mutations.reach)
            .await?
            .into_iter()
            .for_each(|one| verifier.report(one));
    }
    if let Some(stored) = anchor
        && let Ok(anchor) = Anchor::open(&stored.bytes, &stored.note, chain, pass.cluster, &known.keys)
    {
        skip_pruned(audit, &mut verifier, &anchor).await?;
    }
    let mut next = verifier.frontier().size();
    while next < pass.since {
        let hashes = audit.stored_hashes(chain, next, PAGE.min(pass.since - next)).await?;
        let Some((last, _)) = hashes.last() else { break };
        next = last.saturating_add(1);
        hashes
            .into_iter()
            .filter(|(seq, _)| *seq < pass.since)
            .for_each(|(seq, hash)| verifier.pruned(seq, hash));
    }
    let rows = read_rows(audit, &mut verifier, chain, next, pass, &mutations.erasures).await;
    let (stored, unreadable) = match rows {
        Ok(stored) => (stored, None),
        // A row that was made unreadable is a finding; a database that does not answer is none.
        Err(StoreError::Row { .. }) => (
            None,
            Some(Finding::of(
                FindingKind::RowReadFailed,
                Some(verifier.frontier().size()),
            )),
        ),
        Err(other) => return Err(other.into()),
    };
    let later = audit.checkpoints_after(chain, last_note).await?;
    verifier.signed_meanwhile(later.iter().map(|note| note.note.as_str()));
    later
        .iter()
        .filter(|note| !note.columns_agree)
        .for_each(|note| verifier.report(of_note(note)));
    let mut report = verifier.finish(stored.or(state.head));
    unreadable.into_iter().for_each(|finding| report.add(finding));
    if let Some((_, head)) = resumed {
        let last = head.size.checked_sub(1);
        match kept {
            None => report.add(Finding::of(FindingKind::ChainTruncated, last)),
            Some((found, expected)) if found != expected => report.add(Finding {
                stored: Some(found),
                expected: Some(expected),
                ..Finding::of(FindingKind::HashMismatch, last)
            }),
            Some(_) => {}
        }
    }
    let is_silent = state.leased_until.plus(SILENT) < pass.now;
    let silent = state.issued.filter(|_| is_silent);
    let gone = known.numbers.gone.get(&chain).copied();
    if let Some(issued) = silent.map(|last| last.saturating_add(1)).max(gone) {
        report.add_lost(issued);
    }
    let sealed = state.head.map_or(0, |head| head.size);
    let issued = state.issued.map_or(0, |last| last.saturating_add(1));
    if issued < sealed || known.numbers.beyond.contains(&chain) {
        report.add(Finding::of(FindingKind::ColumnMismatch, sealed.checked_sub(1)));
    }
    let interval = i64::try_from(pass.interval.as_micros()).unwrap_or(i64::MAX);
    let claimed = Some(state.leased_until).filter(|until| *until <= pass.now.plus(CLAIM));
    let is_unclaimed = claimed.is_none_or(|until| until.plus(SILENT) < pass.now);
    // Any instance goes on with an administrative chain, whose entries the outbox vouches for.
    let is_own = known.shard == Some(chain.shard);
    // Nobody's clock is so far ahead of the others: what is dated so was never going to be signed.
    let is_ahead = report
        .oldest_unsigned
        .is_some_and(|oldest| oldest > pass.now.plus(AHEAD));
    let is_gone = chain.stream != Stream::Admin
        && !is_own
        && (is_unclaimed || is_ahead || is_abandoned(audit, &report, chain, pass, known, interval).await?);
    // A note that was signed and waits for the database is not missing: its writer tells of the database. Who has the journal
    // signs its own chains while it runs, and misses notes by what it trusts.
    if is_gone || !(is_own || audit.is_note_waiting(chain).await?) {
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
        let of_edge = |note: &&SignedNote| {
            Checkpoint::unverified(&note.note)
                .is_some_and(|note| note.size == edge.size() && note.root == edge.frontier().root())
        };
        notes.iter().rev().find(of_edge).map(|note| note.note.clone())
    });
    // What was signed meanwhile is compared by the next pass.
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

/// Whether the claim on a chain is renewed, if it is, by nobody who could sign it: its records wait for far too long, and no
/// signature comes while one is looked for.
async fn is_abandoned(
    audit: &AuditStore,
    report: &Report,
    chain: ChainId,
    pass: &Pass<'_>,
    known: &Known,
    interval: i64,
) -> Result<bool, StoreError> {
    let patience = interval
        .saturating_mul(3)
        .max(i64::from(ABANDONED.0).saturating_mul(1_000_000));
    let is_old = |oldest: Timestamp| pass.now.micros().saturating_sub(oldest.micros()) > patience;
    if !report.oldest_unsigned.is_some_and(is_old) {
        return Ok(false);
    }
    let began = Instant::now();
    loop {
        let newest = audit.newest_checkpoints(chain).await?;
        let mut signed = newest
            .iter()
            .filter_map(|note| Checkpoint::open(&note.note, &known.keys).ok());
        if signed.any(|note| note.size > report.signed && note.origin == chain.origin(pass.cluster)) {
            return Ok(false);
        }
        if began.elapsed() >= SIGNED_WITHIN {
            return Ok(true);
        }
        sleep(LOOK).await;
    }
}

/// Adds the entries that the gateway itself said no mutation wrote. A re-anchoring after it said so accepts them.
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
    let accepted = opened.filter(|one| one.chain == ADMIN_CHAIN).map(|one| one.time).max();
    for (seq, told) in foreign {
        let finding = Finding {
            time: Some(*told),
            ..Finding::of(FindingKind::OutboxFault, Some(*seq))
        };
        if accepted.is_some_and(|accepted| accepted >= *told) {
            report.authorized.push(finding);
        } else {
            report.add(finding);
        }
    }
}

/// The finding about a note whose columns say something else.
fn of_note(note: &SignedNote) -> Finding {
    let size = Checkpoint::unverified(&note.note).map_or(0, |note| note.size);
    Finding::of(FindingKind::ColumnMismatch, size.checked_sub(1))
}

/// Steps over the entries that retention removed: their hashes make the roots that were signed of them.
async fn skip_pruned(audit: &AuditStore, verifier: &mut ChainVerifier<'_>, anchor: &Anchor) -> Result<(), StoreError> {
    let mut next = verifier.frontier().size();
    while next < anchor.head.size {
        let leaves = match audit
            .leaves(anchor.chain, next, PAGE.min(anchor.head.size - next))
            .await
        {
            // Found below: the anchor has another tree than the hashes that are left.
            Err(StoreError::Row { .. }) => Vec::new(),
            read => read?,
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

/// How far the administrative chains reach.
async fn reach(
    audit: &AuditStore,
    states: &[ChainState],
    known: &Known,
    cluster: &str,
) -> Result<Option<Reach>, StoreError> {
    let mut found: Option<Reach> = None;
    for state in states.iter().filter(|state| state.chain.stream == Stream::Admin) {
        let (chain, Some(head)) = (state.chain, state.head) else {
            continue;
        };
        let pruned = match audit.anchor(chain).await? {
            Some(row) => match Anchor::open(&row.bytes, &row.note, chain, cluster, &known.keys) {
                Ok(anchor) => anchor.head.time,
                // A finding of its own; what it pruned cannot be told.
                Err(_) => return Ok(None),
            },
            None => Timestamp::from_micros(i64::MIN),
        };
        let before = found.unwrap_or(Reach {
            pruned,
            sealed: head.time,
        });
        found = Some(Reach {
            pruned: before.pruned.max(pruned),
            sealed: before.sealed.min(head.time),
        });
    }
    Ok(found)
}

/// What was erased on purpose: by the records in the administrative chains, and by the anchors of those that were pruned.
async fn read_erasures(audit: &AuditStore, known: &Known, cluster: &str) -> Result<Erasures, StoreError> {
    let records = audit.erasure_records().await?;
    let mut erasures = gw_audit::erasures(&records);
    for (chain, _) in audit.chains().await? {
        if let Some(stored) = audit.anchor(chain).await?
            && let Ok(anchor) = Anchor::open(&stored.bytes, &stored.note, chain, cluster, &known.keys)
        {
            erasures.extend(&anchor.erasures);
        }
    }
    Ok(erasures)
}

/// The rows from a number on; the end of the chain as its row has it.
async fn read_rows(
    audit: &AuditStore,
    verifier: &mut ChainVerifier<'_>,
    chain: ChainId,
    mut next: u64,
    pass: &Pass<'_>,
    erasures: &Erasures,
) -> Result<Option<gw_audit::Head>, StoreError> {
    let mut caught_up = false;
    // Entries and the end move in one transaction: what is sealed meanwhile is read, too, and an end that lies further
    // than the entries is a chain cut short.
    loop {
        let began = Instant::now();
        let rows = audit.rows(chain, next, PAGE).await?;
        for row in &rows {
            let hash = row.hash_readable.then_some(row.hash);
            verifier.row(&Row {
                id: Some(row.id),
                columns_agree: row.columns_agree,
                erased: erasures.covers(chain, row.seq) || (pass.erased)(chain, row.seq),
                ..Row::new(row.seq, hash, &row.bytes, &row.openings)
            });
            next = row.seq.saturating_add(1);
        }
        if rows.is_empty() {
            let stored = audit.head(chain).await?;
            if caught_up || stored.map_or(0, |head| head.size) <= next {
                return Ok(stored);
            }
        } else {
            sleep(began.elapsed().saturating_mul(pass.rest)).await;
        }
        caught_up = rows.is_empty();
    }
}
