//! Verification of stored chains: what was changed, removed, added or signed wrongly (spec/70 section 5).
//!
//! A [`ChainVerifier`] is fed the rows of one chain in order of their numbers and goes on after a finding, so that one
//! fault does not hide the next. It reads nothing itself: what lies outside the rows (notes kept elsewhere, which
//! entries were erased, which numbers were given out) is handed to it.

mod finding;
mod outbox;

pub use finding::{Finding, FindingKind};
pub use outbox::OutboxIds;

use crate::anchor::Anchor;
use crate::chain::{Chain, Head, OrgHead};
use crate::checkpoint::{Checkpoint, CheckpointPublicKey};
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
        Self { seq, hash, bytes, openings, columns: None, id: None, erased: false, columns_agree: true }
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

/// What a verification came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was found, in the order it was found; at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many findings were not kept.
    pub omitted: u64,
    /// The edge of the chain at the largest size that was signed and is as it was signed.
    pub signed_edge: Option<ChainEdge>,
    /// What was found and is covered by a signed re-anchoring (rule 22).
    pub authorized: Vec<Finding>,
    /// The re-anchorings of the chain.
    pub discontinuities: Vec<Discontinuity>,
    /// The largest size that is signed and was compared; 0 if none is.
    pub signed: u64,
    /// The time of the oldest record that no note covers, if there is one.
    pub oldest_unsigned: Option<Timestamp>,
    /// How many rows were looked at.
    pub scanned: u64,
    /// The end of the chain as the rows have it.
    pub head: Option<Head>,
    /// The tree over the rows: where a later verification goes on.
    pub frontier: Frontier,
    /// The last entry of each organization, for the same purpose.
    pub orgs: Vec<(OrgId, OrgHead)>,
    /// The outbox rows seen, for the same purpose.
    pub outbox: OutboxIds,
    /// Rows without a hash.
    pub null_hashes: u64,
}

impl Report {
    /// Whether nothing was found, but for what was authorized.
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds what was found apart from the rows.
    pub fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS { self.findings.push(finding) } else { self.omitted += 1 }
    }

    /// Adds numbers that were given out to records which are nowhere: `issued` is the number after the highest one, of a
    /// chain that no living writer holds.
    pub fn add_lost(&mut self, issued: u64) {
        let known = self.discontinuities.iter().map(|one| one.issued).max().unwrap_or(0);
        let sealed = self.head.map_or(0, |head| head.size);
        if issued > sealed {
            let lost = Finding::of(FindingKind::JournalLost, Some(sealed));
            if issued > known { self.add(lost) } else { self.authorized.push(lost) }
        }
    }

    /// Adds what says that a chain was not signed when it should have been: a record older by three intervals than the
    /// newest one without a note over it; older than that now, where nothing at all is signed, or where the writer
    /// `is_gone`, so that nobody is left who would know whether the entries are still what was written.
    pub fn add_unsigned(&mut self, interval_micros: i64, now: Timestamp, is_gone: bool) {
        let Some((oldest, head)) = self.oldest_unsigned.zip(self.head) else { return };
        let until = if self.signed == 0 || is_gone { now.max(head.time) } else { head.time };
        if until.micros().saturating_sub(oldest.micros()) > interval_micros.saturating_mul(3) {
            let kind = FindingKind::CheckpointMissing;
            self.add(Finding { time: Some(oldest), ..Finding::of(kind, Some(self.signed)) });
        }
    }
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

    /// Compares the chain with a checkpoint that is kept outside the store and whose signature was checked.
    pub fn anchor(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { size, root, .. } = *checkpoint;
        if size > self.valid_below(checkpoint.era()) {
            return;
        }
        let first = *self.anchors.entry(size).or_insert(root);
        if first != root || checkpoint.origin != self.id.origin(self.trust.cluster) {
            self.find(FindingKind::InconsistentCheckpoints, size.checked_sub(1), Some(root), Some(first));
        }
        if size == self.frontier.size() {
            self.check_root();
        }
    }

    /// Says that a note kept outside the store must be in it, too. For verifications from the beginning.
    pub fn expect_note(&mut self, checkpoint: &Checkpoint) {
        self.expected.insert((checkpoint.era(), checkpoint.size));
    }

    /// Takes notes that were signed while the rows were read. What they cover was not overdue; they are compared by the
    /// next verification.
    pub fn signed_meanwhile<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        for note in notes {
            let opened = Checkpoint::open(note, self.trust.keys);
            self.noted.extend(opened.as_ref().map(|note| (note.era(), note.size)));
            match opened {
                Ok(checkpoint) if checkpoint.size > self.signed_size() => {
                    self.signed_before = self.signed_before.max(checkpoint.size.min(self.size()));
                    self.oldest_unsigned = None;
                }
                Ok(_) => {}
                Err(_) => self.find(FindingKind::CheckpointSignatureInvalid, None, None, None),
            }
        }
    }

    /// The tree over the rows so far.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The largest size that a note or an anchor speaks of.
    pub fn signed_size(&self) -> u64 {
        let last = |notes: &BTreeMap<u64, Hash>| notes.last_key_value().map_or(0, |(size, _)| *size);
        last(&self.signed).max(last(&self.anchors))
    }

    /// Steps over a row that retention removed and of which only the hash is left (rule 24).
    pub fn pruned(&mut self, seq: u64, hash: Hash) {
        self.orgs_known = false;
        self.outbox.forget();
        if self.place(seq, Some(hash), None) {
            let time = self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time);
            self.advance(seq, hash, time);
        }
    }

    /// Takes a signed anchor after the hashes of all entries below it: from here on rows are complete, organizations' own
    /// ones included.
    pub fn anchored(&mut self, anchor: &Anchor) {
        let root = anchor.frontier().map(|frontier| frontier.root());
        let size = anchor.head.size;
        if self.frontier.size() != size || root != Some(self.frontier.root()) {
            let stored = Some(self.frontier.root());
            self.report(Finding {
                stored,
                expected: root,
                ..Finding::of(FindingKind::AnchorMismatch, size.checked_sub(1))
            });
            return;
        }
        self.head = Some(anchor.head);
        self.orgs = anchor.orgs.iter().copied().collect();
        self.orgs_known = true;
    }

    /// Looks at the next row.
    pub fn row(&mut self, row: &Row<'_>) {
        self.scanned += 1;
        let computed = tree::leaf(row.bytes);
        let header = Header::read(row.bytes).map(|(header, _)| header);
        let time = header.as_ref().ok().map(|header| header.time);
        let finding = |kind| Finding { kind, seq: Some(row.seq), time, stored: row.hash, expected: Some(computed) };
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
        if let Some(expected) = truncated.max(stored.map(|head| head.size)).filter(|expected| *expected > size) {
            self.find(FindingKind::ChainTruncated, expected.checked_sub(1), None, None);
        } else if let Some(stored) = stored {
            let found = self.head.map_or(Hash::ZERO, |head| head.hash);
            if stored.size < size || stored.hash != found {
                self.find(FindingKind::HashMismatch, size.checked_sub(1), Some(stored.hash), Some(found));
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
        let covered = self.signed.range(..=size).chain(self.anchors.range(..=size)).map(|(size, _)| *size).max();
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

    fn take_checkpoints<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        let origin = self.id.origin(self.trust.cluster);
        let (mut last, mut last_era) = (0, 0);
        for note in notes {
            match Checkpoint::open(note, self.trust.keys) {
                Err(_) => self.find(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(checkpoint) => {
                    let Checkpoint { size, root, .. } = checkpoint;
                    let era = checkpoint.era();
                    self.noted.insert((era, size));
                    let known = u64::try_from(self.discontinuities.len()).unwrap_or(u64::MAX);
                    if era > last_era {
                        (last, last_era) = (0, era);
                    }
                    // What was signed before a re-anchoring, and is not so any more, is what that was about.
                    if era == last_era && era <= known && size > self.valid_below(era) {
                        last = last.max(size);
                        continue;
                    }
                    let first = *self.signed.entry(size).or_insert(root);
                    let unknown_era = era != last_era || era > known;
                    if size < last || unknown_era || first != root || checkpoint.origin != origin {
                        let seq = size.checked_sub(1);
                        self.find(FindingKind::InconsistentCheckpoints, seq, Some(root), Some(first));
                    }
                    last = last.max(size);
                }
            }
        }
    }

    fn take_discontinuities<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        for note in notes {
            match Discontinuity::open(note, self.trust.cluster, self.trust.keys) {
                Err(_) => self.find(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(one) if self.discontinuities.contains(&one) => {}
                Ok(one) => {
                    let due = u64::try_from(self.discontinuities.len()).unwrap_or(u64::MAX).saturating_add(1);
                    if one.chain == self.id && one.era == due {
                        self.discontinuities.push(one);
                    } else {
                        self.find(FindingKind::InconsistentCheckpoints, one.to.0.checked_sub(1), None, None);
                    }
                }
            }
        }
        for one in self.discontinuities.clone() {
            if one.to.0 <= self.valid_below(one.era) {
                self.signed.insert(one.to.0, one.to.1);
            }
        }
    }

    /// Up to which size a note of this era still has to hold.
    fn valid_below(&self, era: u64) -> u64 {
        let later = self.discontinuities.iter().filter(|one| one.era > era);
        later.map(|one| one.intact).min().unwrap_or(u64::MAX)
    }

    /// Whether the row with this number is the next one to look at; says what is wrong if another is due.
    fn place(&mut self, seq: u64, hash: Option<Hash>, time: Option<Timestamp>) -> bool {
        let next = self.size();
        if seq > next {
            let covered = self.discontinuities.iter().any(|one| one.covers(next) && one.covers(seq - 1));
            self.report(Finding { time, ..Finding::of(FindingKind::SeqGap, Some(next)) });
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
            let kind = if last.is_some() && last != hash { FindingKind::Fork } else { FindingKind::SeqDuplicate };
            self.report(Finding { kind, seq: Some(seq), time, stored: hash, expected: last });
        }
        seq >= next
    }

    /// Compares a row with what went before and with its own columns and openings.
    fn follow(&mut self, row: &Row<'_>, header: &Header, computed: Hash) {
        let finding =
            |kind, stored, expected| Finding { kind, seq: Some(row.seq), time: Some(header.time), stored, expected };
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
            let due = known.or_else(|| self.orgs_known.then_some(OrgHead { size: 0, hash: Hash::ZERO }));
            if let Some(due) = due.filter(|due| (org.seq, org.prev) != (due.size, due.hash)) {
                self.report(finding(FindingKind::OrgGap, Some(org.prev), Some(due.hash)));
            }
            self.orgs.insert(org.id, OrgHead { size: org.seq.saturating_add(1), hash: computed });
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
        self.head = Some(Head { size: seq.saturating_add(1), hash, time });
        self.frontier.push(hash);
        self.check_root();
    }

    /// Compares the tree with what was signed at this size.
    fn check_root(&mut self) {
        let size = self.frontier.size();
        let (signed, anchor) = (self.signed.get(&size).copied(), self.anchors.get(&size).copied());
        if !self.whole || (signed.is_none() && anchor.is_none()) {
            return;
        }
        let root = self.frontier.root();
        if signed.is_none_or(|signed| signed == root) && anchor.is_none_or(|anchor| anchor == root) {
            let last = self.head.map(|head| head.hash).filter(|hash| *hash != Hash::ZERO);
            self.signed_edge = Some(ChainEdge::new(self.frontier.clone(), last));
        }
        for (expected, kind) in [(signed, FindingKind::RootMismatch), (anchor, FindingKind::AnchorMismatch)] {
            if let Some(expected) = expected.filter(|expected| *expected != root) {
                self.find(kind, size.checked_sub(1), Some(root), Some(expected));
            }
        }
    }

    fn size(&self) -> u64 {
        self.head.map_or(0, |head| head.size)
    }

    fn find(&mut self, kind: FindingKind, seq: Option<u64>, stored: Option<Hash>, expected: Option<Hash>) {
        self.report(Finding { kind, seq, time: None, stored, expected });
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
        let covered = |seq| self.discontinuities.iter().any(|one| one.covers(seq) || (of_outbox && seq < one.to.0));
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
