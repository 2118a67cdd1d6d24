//! Verification of stored chains: finds rows that were changed, removed, added or wrongly signed (spec/70 section 5).
//!
//! A [`ChainVerifier`] takes the rows of one chain in order of their numbers and continues after a finding, so that one
//! fault does not hide the next. It reads nothing itself: the caller passes everything outside the rows, such as notes
//! kept elsewhere, erased entries and issued numbers.

mod notes;
mod outbox;
mod report;

pub use crate::finding::{Finding, FindingKind, TableRow};
pub use outbox::OutboxIds;
pub use report::Report;

use crate::chain::{Chain, Head, OrgHead};
use crate::checkpoint::CheckpointPublicKey;
use crate::discontinuity::Discontinuity;
use crate::entry::{ChainId, Content, Entry, Header};
use crate::entry_error::EntryError;
use crate::genesis::Genesis;
use crate::hash::Hash;
use crate::heads::ChainEdge;
use crate::outbox as outbox_rules;
use crate::record::{AdminEntry, Kind, Record};
use crate::tree::{self, Frontier};
use gw_types::{OrgId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest number of findings in the report of one chain. A history that was rewritten from its beginning has one
/// finding per entry, and the first ones are enough.
pub const MAX_FINDINGS: usize = 1000;
/// Ids from this one on leave no room for further rows. A store that only counts up never reaches it.
pub const EXHAUSTED_ID: i64 = 1 << 62;

/// The most records that a writer can have numbered and not sealed; they would fill any disk.
const MAX_UNSEALED: u64 = 1 << 32;

/// Whether a writer can have issued this number while `sealed` entries are sealed.
pub const fn is_plausible_issued(issued: u64, sealed: u64) -> bool {
    issued.saturating_sub(sealed) < MAX_UNSEALED
}

/// A stored row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The entry's number in the row.
    pub seq: u64,
    /// The entry's hash in the row.
    pub hash: Option<Hash>,
    /// The bytes of the entry.
    pub bytes: &'a [u8],
    /// The openings of the entry.
    pub openings: &'a [u8],
    /// The entry as built from the columns of the row, to be compared with the bytes.
    pub columns: Option<&'a Entry>,
    /// The database id of the row, if it has one. Ids grow with the numbers.
    pub id: Option<i64>,
    /// Whether a signed erasure record covers the entry.
    pub erased: bool,
    /// Whether the row's search columns match the entry; the store compares them.
    pub columns_agree: bool,
}

impl<'a> Row<'a> {
    /// A row with only an entry; nothing is compared with its columns, and it has no id and no erasure.
    pub const fn new(seq: u64, hash: Option<Hash>, bytes: &'a [u8], openings: &'a [u8]) -> Self {
        Self {
            seq,
            hash,
            bytes,
            openings,
            columns: None,
            id: None,
            erased: false,
            columns_agree: true,
        }
    }
}

/// The cluster and the keys that a verification trusts.
#[derive(Clone, Copy, Debug)]
pub struct TrustedKeys<'a> {
    /// The cluster that the chain must belong to.
    pub cluster: &'a str,
    /// The keys that may have signed the chain, old ones included.
    pub keys: &'a [CheckpointPublicKey],
}

/// The verification of one chain.
#[derive(Debug)]
pub struct ChainVerifier<'a> {
    id: ChainId,
    trust: TrustedKeys<'a>,
    head: Option<Head>,
    orgs: HashMap<OrgId, OrgHead>,
    /// False after rows of which only the hash is known: then an organization's first row may have any position.
    orgs_known: bool,
    outbox: OutboxIds,
    last_id: Option<i64>,
    /// Whether the time of `head` comes from an entry or an anchor.
    is_time_known: bool,
    frontier: Frontier,
    /// False after a gap that no re-anchoring covers: the tree is then not comparable with signed roots.
    is_complete: bool,
    /// The signed roots in the store, by size.
    signed: BTreeMap<u64, Hash>,
    /// The signed roots kept outside the store, by size.
    anchors: BTreeMap<u64, Hash>,
    /// Era and size of every note in the store.
    noted: BTreeSet<(u64, u64)>,
    /// Era and size of every note that must be in the store.
    expected: BTreeSet<(u64, u64)>,
    discontinuities: Vec<Discontinuity>,
    findings: Vec<Finding>,
    omitted: u64,
    authorized: Vec<Finding>,
    scanned: u64,
    null_hashes: u64,
    signed_edge: Option<ChainEdge>,
    /// The signed size that an earlier verification reported.
    signed_before: u64,
    /// The time of the oldest record that no note covers.
    oldest_unsigned: Option<Timestamp>,
}

impl<'a> ChainVerifier<'a> {
    /// Starts at the beginning of a chain. `checkpoints` are the chain's signed notes, oldest first.
    pub fn new<'n>(id: ChainId, trust: TrustedKeys<'a>, checkpoints: impl IntoIterator<Item = &'n str>) -> Self {
        Self::with_discontinuities(id, trust, [], checkpoints)
    }

    /// Starts at the beginning of a chain that was re-anchored. `discontinuities` are the signed notes of its
    /// re-anchorings, oldest first.
    pub fn with_discontinuities<'n>(
        id: ChainId,
        trust: TrustedKeys<'a>,
        discontinuities: impl IntoIterator<Item = &'n str>,
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let mut verifier = Self::empty(id, trust);
        verifier.take_discontinuities(discontinuities);
        verifier.take_checkpoints(checkpoints);
        verifier.check_root();
        verifier
    }

    /// Continues where an earlier verification ended without a finding.
    pub fn resume<'n>(
        chain: &Chain,
        frontier: Frontier,
        trust: TrustedKeys<'a>,
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        Self::resume_after(chain, frontier, trust, &[], checkpoints)
    }

    /// Continues where the verification with this report ended without a finding. Takes over its outbox ids, its signed
    /// size and its re-anchorings.
    pub fn resume_report<'n>(
        chain: &Chain,
        earlier: &Report,
        trust: TrustedKeys<'a>,
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        // Without the re-anchorings, a note of a later era would contradict the chain.
        let frontier = earlier.frontier.clone();
        let mut verifier = Self::resume_after(chain, frontier, trust, &earlier.discontinuities, checkpoints);
        verifier.outbox = earlier.outbox.clone();
        verifier.signed_before = earlier.signed;
        // A note that is newer than the report covers the oldest unsigned record.
        let is_covered = verifier.signed_size() > earlier.signed;
        verifier.oldest_unsigned = earlier.oldest_unsigned.filter(|_| !is_covered);
        verifier
    }

    fn resume_after<'n>(
        chain: &Chain,
        frontier: Frontier,
        trust: TrustedKeys<'a>,
        discontinuities: &[Discontinuity],
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let mut verifier = Self::empty(chain.id(), trust);
        verifier.discontinuities = discontinuities.to_vec();
        verifier.head = Some(chain.head());
        verifier.is_time_known = true;
        verifier.orgs = chain.orgs().collect();
        verifier.is_complete = frontier.size() == chain.head().size;
        verifier.frontier = frontier;
        verifier.take_checkpoints(checkpoints);
        verifier.check_root();
        verifier
    }

    fn empty(id: ChainId, trust: TrustedKeys<'a>) -> Self {
        Self {
            id,
            trust,
            head: None,
            orgs: HashMap::new(),
            orgs_known: true,
            outbox: OutboxIds::default(),
            last_id: None,
            is_time_known: false,
            frontier: Frontier::default(),
            is_complete: true,
            signed: BTreeMap::new(),
            anchors: BTreeMap::new(),
            noted: BTreeSet::new(),
            expected: BTreeSet::new(),
            discontinuities: Vec::new(),
            findings: Vec::new(),
            omitted: 0,
            authorized: Vec::new(),
            scanned: 0,
            null_hashes: 0,
            signed_edge: None,
            signed_before: 0,
            oldest_unsigned: None,
        }
    }

    /// The tree over the rows so far.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Takes the hash of the next row, which retention removed (rule 24).
    pub fn pruned(&mut self, seq: u64, hash: Hash) {
        self.orgs_known = false;
        self.outbox.forget();
        if self.check_seq(seq, Some(hash), None) {
            let time = self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time);
            self.advance(seq, hash, time);
            self.is_time_known = false;
        }
    }

    /// Verifies the next row.
    pub fn row(&mut self, row: &Row<'_>) {
        self.scanned += 1;
        let computed = tree::leaf(row.bytes);
        let header = Header::read(row.bytes).map(|(header, _)| header);
        let time = header.as_ref().ok().map(|header| header.time);
        let finding = |kind| Finding {
            kind,
            seq: Some(row.seq),
            time,
            stored: row.hash,
            expected: Some(computed),
            place: None,
        };
        match row.hash {
            None => {
                self.null_hashes += 1;
                self.report(finding(FindingKind::NullEntryHash));
            }
            Some(stored) if stored != computed => self.report(finding(FindingKind::HashMismatch)),
            Some(_) => {}
        }
        if !row.columns_agree {
            self.report(finding(FindingKind::HashMismatch));
        }
        if let Some(id) = row.id {
            if self.last_id.is_some_and(|last| last >= id) {
                self.report(finding(FindingKind::Fork));
            }
            if id >= EXHAUSTED_ID {
                self.report(finding(FindingKind::IdsExhausted));
            }
            self.last_id = Some(id);
        }
        if !self.check_seq(row.seq, Some(computed), time) {
            return;
        }
        match header {
            Ok(header) => self.check_entry(row, &header, computed),
            Err(EntryError::Version(_)) => self.report(finding(FindingKind::UnknownHashFormatVersion)),
            Err(_) => self.report(finding(FindingKind::HashMismatch)),
        }
        self.is_time_known = time.is_some();
        let time = time.unwrap_or_else(|| self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time));
        if row.seq > 0 && row.seq >= self.signed_size() && self.oldest_unsigned.is_none() {
            self.oldest_unsigned = Some(time);
        }
        self.advance(row.seq, computed, time);
    }

    /// Ends the verification. `stored` is the end of the chain according to the store's own record of it.
    pub fn finish(mut self, stored: Option<Head>) -> Report {
        let size = self.size();
        let truncated = Some(self.signed_size()).filter(|signed| *signed > size);
        if let Some(expected) = truncated
            .max(stored.map(|head| head.size))
            .filter(|expected| *expected > size)
        {
            self.report_hashes(FindingKind::ChainTruncated, expected.checked_sub(1), None, None);
        } else if let Some(stored) = stored {
            let computed = self.head.map_or(Hash::ZERO, |head| head.hash);
            if stored.size < size || stored.hash != computed {
                self.report_hashes(
                    FindingKind::HashMismatch,
                    size.checked_sub(1),
                    Some(stored.hash),
                    Some(computed),
                );
            } else if self.is_time_known && self.head.is_some_and(|head| head.time != stored.time) {
                self.report_hashes(FindingKind::ColumnMismatch, size.checked_sub(1), None, None);
            }
        }
        for (kind, seq) in self.outbox.gaps() {
            self.report_hashes(kind, Some(seq), None, None);
        }
        // A note from before a re-anchoring may have covered entries that are no longer in the store.
        let re_anchored = self
            .discontinuities
            .iter()
            .map(|discontinuity| discontinuity.from.0)
            .max()
            .unwrap_or(0);
        let missing: Vec<_> = self.expected.difference(&self.noted).map(|(_, size)| *size).collect();
        for noted in missing
            .into_iter()
            .filter(|noted| (re_anchored + 1..=size).contains(noted))
        {
            self.report_hashes(FindingKind::CheckpointMissing, noted.checked_sub(1), None, None);
        }
        let covered = self
            .signed
            .range(..=size)
            .chain(self.anchors.range(..=size))
            .map(|(size, _)| *size)
            .max();
        Report {
            findings: self.findings,
            omitted: self.omitted,
            signed_edge: self.signed_edge,
            authorized: self.authorized,
            discontinuities: self.discontinuities,
            signed: covered.unwrap_or(0).max(self.signed_before),
            oldest_unsigned: self.oldest_unsigned,
            outbox: self.outbox,
            null_hashes: self.null_hashes,
            scanned: self.scanned,
            head: self.head,
            frontier: self.frontier,
            orgs: self.orgs.into_iter().collect(),
        }
    }

    /// Whether the row with this number is to be verified next: true for the next number, and for a later one after a
    /// reported gap. A number that was already seen is reported, too.
    fn check_seq(&mut self, seq: u64, hash: Option<Hash>, time: Option<Timestamp>) -> bool {
        let next = self.size();
        if seq > next {
            let covered = self
                .discontinuities
                .iter()
                .any(|discontinuity| discontinuity.covers(next) && discontinuity.covers(seq - 1));
            self.report(Finding {
                time,
                ..Finding::new(FindingKind::SeqGap, Some(next))
            });
            if covered {
                // The root of a re-anchoring counts missing numbers as leaves of zeros.
                for missing in next..seq {
                    self.advance(
                        missing,
                        Hash::ZERO,
                        self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time),
                    );
                }
            } else {
                self.is_complete = false;
            }
        } else if seq < next {
            let last = self.head.filter(|head| head.size == seq + 1).map(|head| head.hash);
            let kind = if last.is_some() && last != hash {
                FindingKind::Fork
            } else {
                FindingKind::SeqDuplicate
            };
            self.report(Finding {
                kind,
                seq: Some(seq),
                time,
                stored: hash,
                expected: last,
                place: None,
            });
        }
        seq >= next
    }

    /// Compares an entry with the end of the chain and with the row's columns and openings.
    fn check_entry(&mut self, row: &Row<'_>, header: &Header, computed: Hash) {
        let finding = |kind, stored, expected| Finding {
            kind,
            seq: Some(row.seq),
            time: Some(header.time),
            stored,
            expected,
            place: None,
        };
        let previous = self.head.filter(|head| head.size == row.seq);
        let prev = previous.map_or(Hash::ZERO, |head| head.hash);
        if header.chain != self.id || header.seq != row.seq || (header.kind == Kind::Genesis) != (row.seq == 0) {
            self.report(finding(FindingKind::HashMismatch, row.hash, None));
        }
        // After a gap the previous row is unknown, and the gap is already reported.
        if (previous.is_some() || row.seq == 0) && header.prev != prev {
            self.report(finding(FindingKind::HashMismatch, Some(header.prev), Some(prev)));
        }
        if self.head.is_some_and(|head| header.time < head.time) {
            self.report(finding(FindingKind::TimeRegression, row.hash, None));
        }
        if let Some(org) = header.org {
            let org_head = self.orgs.get(&org.id).copied();
            let expected = org_head.or_else(|| {
                self.orgs_known.then_some(OrgHead {
                    size: 0,
                    hash: Hash::ZERO,
                })
            });
            if let Some(expected) = expected.filter(|head| (org.seq, org.prev) != (head.size, head.hash)) {
                self.report(finding(FindingKind::OrgGap, Some(org.prev), Some(expected.hash)));
            }
            self.orgs.insert(
                org.id,
                OrgHead {
                    size: org.seq.saturating_add(1),
                    hash: computed,
                },
            );
        }
        match Entry::decode(row.bytes, row.openings) {
            Ok(entry) => {
                if row.columns.is_some_and(|columns| *columns != entry) {
                    self.report(finding(FindingKind::HashMismatch, row.hash, None));
                }
                if entry.erased > 0 && !row.erased {
                    self.report(finding(FindingKind::OpeningMissing, row.hash, None));
                }
                match &entry.content {
                    Content::Genesis(genesis) => {
                        if let Some(kind) = self.trust.check_genesis(&self.id, genesis) {
                            self.report(finding(kind, row.hash, None));
                        }
                    }
                    Content::Record(Record::Admin(entry)) => self.check_outbox(row.seq, entry),
                    Content::Record(Record::Security(event)) => {
                        if let Some(kind) = outbox_rules::alarm_kind(event) {
                            self.add(finding(kind, row.hash, None), true);
                        }
                    }
                    Content::Record(
                        Record::Access(_) | Record::Disclosure(_) | Record::SendIntent(_) | Record::SendOutcome(_),
                    ) => {}
                }
            }
            Err(EntryError::Commitment | EntryError::Openings(_)) => {
                self.report(finding(FindingKind::CommitmentMismatch, row.hash, None));
            }
            Err(EntryError::Cbor(_) | EntryError::Version(_) | EntryError::Value) => {
                self.report(finding(FindingKind::HashMismatch, row.hash, None));
            }
        }
    }

    fn check_outbox(&mut self, seq: u64, entry: &AdminEntry) {
        if let Some(kind) = self.outbox.see(seq, entry) {
            self.report(Finding::new(kind, Some(seq)));
        }
    }

    fn advance(&mut self, seq: u64, hash: Hash, time: Timestamp) {
        self.head = Some(Head {
            size: seq.saturating_add(1),
            hash,
            time,
        });
        self.frontier.push(hash);
        self.check_root();
    }

    fn size(&self) -> u64 {
        self.head.map_or(0, |head| head.size)
    }

    /// Adds a finding without a time.
    fn report_hashes(&mut self, kind: FindingKind, seq: Option<u64>, stored: Option<Hash>, expected: Option<Hash>) {
        self.report(Finding {
            kind,
            seq,
            time: None,
            stored,
            expected,
            place: None,
        });
    }

    /// Adds a finding, also one of the caller that reads the rows. A finding that a re-anchoring covers counts as
    /// authorized.
    pub fn report(&mut self, finding: Finding) {
        let is_about_outbox = matches!(finding.kind, FindingKind::OutboxGap | FindingKind::OutboxFault);
        self.add(finding, is_about_outbox);
    }

    /// Adds a finding. `is_alarm`: the entry itself reports the finding. It is intact and signed by the gateway, so a
    /// re-anchoring also covers it below its `intact` size.
    fn add(&mut self, finding: Finding, is_alarm: bool) {
        // A re-anchoring has a root of its own, so it never covers findings about roots and signatures.
        let is_about_row = !matches!(
            finding.kind,
            FindingKind::RootMismatch
                | FindingKind::AnchorMismatch
                | FindingKind::CheckpointSignatureInvalid
                | FindingKind::InconsistentCheckpoints
        );
        let is_covered = |seq| {
            self.discontinuities
                .iter()
                .any(|discontinuity| discontinuity.covers(seq) || (is_alarm && seq < discontinuity.to.0))
        };
        if is_about_row && finding.seq.is_some_and(is_covered) {
            if self.authorized.len() < MAX_FINDINGS {
                self.authorized.push(finding);
            }
        } else if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.omitted += 1;
        }
    }
}

impl TrustedKeys<'_> {
    /// The finding about a genesis of another shard or cluster, or with an unknown key.
    fn check_genesis(&self, id: &ChainId, genesis: &Genesis) -> Option<FindingKind> {
        let is_genesis_key = |key: &CheckpointPublicKey| key.to_bytes() == *genesis.checkpoint_key;
        if genesis.shard != id.shard || genesis.cluster != self.cluster {
            Some(FindingKind::HashMismatch)
        } else if !self.keys.is_empty() && !self.keys.iter().any(is_genesis_key) {
            Some(FindingKind::CheckpointSignatureInvalid)
        } else {
            None
        }
    }
}
