//! Verification of stored chains: what was changed, removed, added or signed wrongly (spec/70 section 5).
//!
//! A [`ChainVerifier`] is fed the rows of one chain in order of their numbers and goes on after a finding, so that one
//! fault does not hide the next. It reads nothing itself: what lies outside the rows (notes kept elsewhere, which
//! entries were erased, which numbers were given out) is handed to it.

mod finding;
mod notes;
mod outbox;
mod report;

pub use finding::{Finding, FindingKind};
pub use outbox::OutboxIds;
pub use report::Report;

use crate::chain::{Chain, Head, OrgHead};
use crate::checkpoint::CheckpointPublicKey;
use crate::discontinuity::Discontinuity;
use crate::entry::{ChainId, Content, Entry, EntryError, Genesis, Hash, Header};
use crate::heads::ChainEdge;
use crate::outbox as outbox_rules;
use crate::record::{AdminEntry, Kind, Record};
use crate::tree::{self, Frontier};
use gw_types::{OrgId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Findings kept of one chain: a history rewritten from its beginning has one an entry, and the first ones say it.
pub const MAX_FINDINGS: usize = 1000;
/// Ids from here on leave no room for the rows that follow; no store comes near it by counting.
pub const EXHAUSTED_ID: i64 = 1 << 62;

/// One row as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The number under which it is stored.
    pub seq: u64,
    /// The hash stored with it.
    pub hash: Option<Hash>,
    /// The entry.
    pub bytes: &'a [u8],
    /// What lies beside it.
    pub openings: &'a [u8],
    /// The entry as the columns of the row have it, to be compared.
    pub columns: Option<&'a Entry>,
    /// The id under which the row is listed, if it has one: ids grow with the numbers.
    pub id: Option<i64>,
    /// Whether a signed record says that the entry's personal values were erased.
    pub erased: bool,
    /// Whether the columns to find it by say what the entry says, as the store compared them.
    pub columns_agree: bool,
}

impl<'a> Row<'a> {
    /// A row of which nothing is known beside the entry.
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

/// What is known apart from the rows.
#[derive(Clone, Copy, Debug)]
pub struct TrustedKeys<'a> {
    /// The cluster the chain must belong to.
    pub cluster: &'a str,
    /// The keys that may have signed, old ones included.
    pub keys: &'a [CheckpointPublicKey],
}

/// A verification under way.
#[derive(Debug)]
pub struct ChainVerifier<'a> {
    id: ChainId,
    trust: TrustedKeys<'a>,
    head: Option<Head>,
    orgs: HashMap<OrgId, OrgHead>,
    /// False where rows before were not looked at: then an organization's first row may have any place.
    orgs_known: bool,
    outbox: OutboxIds,
    last_id: Option<i64>,
    /// Whether the time of the chain's end was read of an entry or an anchor.
    is_time_known: bool,
    frontier: Frontier,
    /// False after a gap: the tree over what is left says nothing any more.
    whole: bool,
    signed: BTreeMap<u64, Hash>,
    /// What was signed and kept outside the store.
    anchors: BTreeMap<u64, Hash>,
    /// Era and size of every note in the store, and of those that must be.
    noted: BTreeSet<(u64, u64)>,
    expected: BTreeSet<(u64, u64)>,
    discontinuities: Vec<Discontinuity>,
    findings: Vec<Finding>,
    omitted: u64,
    authorized: Vec<Finding>,
    scanned: u64,
    null_hashes: u64,
    signed_edge: Option<ChainEdge>,
    /// What an earlier verification found signed.
    signed_before: u64,
    /// The time of the oldest record that no note covers.
    oldest_unsigned: Option<Timestamp>,
}

impl<'a> ChainVerifier<'a> {
    /// Starts at the beginning of a chain. `checkpoints` are its signed notes in the order they were made.
    pub fn new<'n>(id: ChainId, trust: TrustedKeys<'a>, checkpoints: impl IntoIterator<Item = &'n str>) -> Self {
        Self::with_discontinuities(id, trust, [], checkpoints)
    }

    /// Starts at the beginning of a chain that was re-anchored: `discontinuities` are the signed notes about that.
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

    /// Goes on where an earlier verification ended without a finding.
    pub fn resume<'n>(
        chain: &Chain,
        frontier: Frontier,
        trust: TrustedKeys<'a>,
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let mut verifier = Self::empty(chain.id(), trust);
        verifier.head = Some(chain.head());
        verifier.is_time_known = true;
        verifier.orgs = chain.orgs().collect();
        verifier.whole = frontier.size() == chain.head().size;
        verifier.frontier = frontier;
        verifier.take_checkpoints(checkpoints);
        verifier.check_root();
        verifier
    }

    /// Takes over what an earlier verification, which this one resumes, knew beside the end of the chain.
    #[must_use]
    pub fn continuing(mut self, earlier: &Report) -> Self {
        self.outbox = earlier.outbox.clone();
        self.signed_before = earlier.signed;
        // A newer note covers it, if there is one at all.
        let covered = self.signed_size() > earlier.signed;
        self.oldest_unsigned = earlier.oldest_unsigned.filter(|_| !covered);
        self.discontinuities.clone_from(&earlier.discontinuities);
        self
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
            whole: true,
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

    /// Steps over a row that retention removed and of which only the hash is left (rule 24).
    pub fn pruned(&mut self, seq: u64, hash: Hash) {
        self.orgs_known = false;
        self.outbox.forget();
        if self.place(seq, Some(hash), None) {
            let time = self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time);
            self.advance(seq, hash, time);
            self.is_time_known = false;
        }
    }

    /// Looks at the next row.
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
        if !self.place(row.seq, Some(computed), time) {
            return;
        }
        match header {
            Ok(header) => self.follow(row, &header, computed),
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

    /// Ends the verification. `stored` is the chain's end as the store remembers it.
    pub fn finish(mut self, stored: Option<Head>) -> Report {
        let size = self.size();
        let truncated = Some(self.signed_size()).filter(|signed| *signed > size);
        if let Some(expected) = truncated
            .max(stored.map(|head| head.size))
            .filter(|expected| *expected > size)
        {
            self.find(FindingKind::ChainTruncated, expected.checked_sub(1), None, None);
        } else if let Some(stored) = stored {
            let found = self.head.map_or(Hash::ZERO, |head| head.hash);
            if stored.size < size || stored.hash != found {
                self.find(
                    FindingKind::HashMismatch,
                    size.checked_sub(1),
                    Some(stored.hash),
                    Some(found),
                );
            } else if self.is_time_known && self.head.is_some_and(|head| head.time != stored.time) {
                self.find(FindingKind::ColumnMismatch, size.checked_sub(1), None, None);
            }
        }
        for (kind, seq) in self.outbox.gaps() {
            self.find(kind, Some(seq), None, None);
        }
        // A note of before a re-anchoring may have been for what is not there any more.
        let decided = self.discontinuities.iter().map(|one| one.from.0).max().unwrap_or(0);
        let missing: Vec<_> = self.expected.difference(&self.noted).map(|(_, noted)| *noted).collect();
        for noted in missing.into_iter().filter(|noted| (decided + 1..=size).contains(noted)) {
            self.find(FindingKind::CheckpointMissing, noted.checked_sub(1), None, None);
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

    /// Whether the row with this number is the next one to look at; says what is wrong if another is due.
    fn place(&mut self, seq: u64, hash: Option<Hash>, time: Option<Timestamp>) -> bool {
        let next = self.size();
        if seq > next {
            let covered = self
                .discontinuities
                .iter()
                .any(|one| one.covers(next) && one.covers(seq - 1));
            self.report(Finding {
                time,
                ..Finding::of(FindingKind::SeqGap, Some(next))
            });
            if covered {
                // As the re-anchoring counted them.
                for missing in next..seq {
                    self.advance(
                        missing,
                        Hash::ZERO,
                        self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time),
                    );
                }
            } else {
                self.whole = false;
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
            });
        }
        seq >= next
    }

    /// Compares a row with what went before and with its own columns and openings.
    fn follow(&mut self, row: &Row<'_>, header: &Header, computed: Hash) {
        let finding = |kind, stored, expected| Finding {
            kind,
            seq: Some(row.seq),
            time: Some(header.time),
            stored,
            expected,
        };
        let before = self.head.filter(|head| head.size == row.seq);
        let prev = before.map_or(Hash::ZERO, |head| head.hash);
        if header.chain != self.id || header.seq != row.seq || (header.kind == Kind::Genesis) != (row.seq == 0) {
            self.report(finding(FindingKind::HashMismatch, row.hash, None));
        }
        // After a gap the row before is not known, and the gap is reported already.
        if (before.is_some() || row.seq == 0) && header.prev != prev {
            self.report(finding(FindingKind::HashMismatch, Some(header.prev), Some(prev)));
        }
        if self.head.is_some_and(|head| header.time < head.time) {
            self.report(finding(FindingKind::TimeRegression, row.hash, None));
        }
        if let Some(org) = header.org {
            let known = self.orgs.get(&org.id).copied();
            let due = known.or_else(|| {
                self.orgs_known.then_some(OrgHead {
                    size: 0,
                    hash: Hash::ZERO,
                })
            });
            if let Some(due) = due.filter(|due| (org.seq, org.prev) != (due.size, due.hash)) {
                self.report(finding(FindingKind::OrgGap, Some(org.prev), Some(due.hash)));
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
                        if let Some(kind) = self.trust.refuses(&self.id, genesis) {
                            self.report(finding(kind, row.hash, None));
                        }
                    }
                    Content::Record(Record::Admin(entry)) => self.follow_outbox(row.seq, entry),
                    Content::Record(Record::Security(event)) => {
                        if outbox_rules::is_alarm(event) {
                            self.report(finding(FindingKind::OutboxFault, row.hash, None));
                        }
                    }
                    Content::Record(Record::Access(_) | Record::SendIntent(_) | Record::SendOutcome(_)) => {}
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

    fn follow_outbox(&mut self, seq: u64, entry: &AdminEntry) {
        if let Some(kind) = self.outbox.see(seq, entry) {
            self.report(Finding::of(kind, Some(seq)));
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

    fn find(&mut self, kind: FindingKind, seq: Option<u64>, stored: Option<Hash>, expected: Option<Hash>) {
        self.report(Finding {
            kind,
            seq,
            time: None,
            stored,
            expected,
        });
    }

    /// Adds a finding of the caller, who reads the rows.
    pub fn report(&mut self, finding: Finding) {
        // Roots and signatures are never excused: what a re-anchoring covers has a root of its own.
        let of_row = !matches!(
            finding.kind,
            FindingKind::RootMismatch
                | FindingKind::AnchorMismatch
                | FindingKind::CheckpointSignatureInvalid
                | FindingKind::InconsistentCheckpoints
        );
        // What the gateway itself wrote of the outbox is as it was signed: a re-anchoring accepts all of it that it saw.
        let of_outbox = matches!(finding.kind, FindingKind::OutboxGap | FindingKind::OutboxFault);
        let covered = |seq| {
            self.discontinuities
                .iter()
                .any(|one| one.covers(seq) || (of_outbox && seq < one.to.0))
        };
        if of_row && finding.seq.is_some_and(covered) {
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
    /// Why a genesis does not belong to what is trusted.
    fn refuses(&self, id: &ChainId, genesis: &Genesis) -> Option<FindingKind> {
        let known = |key: &CheckpointPublicKey| key.to_bytes() == *genesis.checkpoint_key;
        if genesis.shard != id.shard || genesis.cluster != self.cluster {
            Some(FindingKind::HashMismatch)
        } else if !self.keys.is_empty() && !self.keys.iter().any(known) {
            Some(FindingKind::CheckpointSignatureInvalid)
        } else {
            None
        }
    }
}
