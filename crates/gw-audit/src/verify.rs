//! Verification of stored chains: what was changed, removed, added or signed wrongly (spec/70 section 5).
//!
//! A [`Walk`] is fed the rows of one chain in order of their numbers and goes on after a finding, so that one
//! fault does not hide the next. It reads nothing itself.

use crate::chain::{Chain, Head, OrgHead};
use crate::checkpoint::{Checkpoint, CheckpointPublicKey};
use crate::code::codes;
use crate::entry::{ChainId, Content, Entry, EntryError, Genesis, Hash, Header};
use crate::record::Kind;
use crate::tree::{self, Frontier};
use gw_types::{OrgId, Timestamp};
use std::collections::{BTreeMap, HashMap};

codes! {
    /// What a verification reports (spec/70 section 5). Some are found by those who read the rows, not here.
    FindingKind {
        /// A row, or its link to the one before, is not what was hashed.
        HashMismatch = "hash_mismatch",
        /// A row without a hash.
        NullEntryHash = "null_entry_hash",
        /// A schema version nobody knows.
        UnknownHashFormatVersion = "unknown_hash_format_version",
        /// The rows do not fit an anchor kept outside.
        AnchorMismatch = "anchor_mismatch",
        /// Rows at the end are gone.
        ChainTruncated = "chain_truncated",
        /// A checkpoint that no known key signed.
        CheckpointSignatureInvalid = "checkpoint_signature_invalid",
        /// Checkpoints could not be read.
        CheckpointReadFailed = "checkpoint_read_failed",
        /// The state to start from could not be read.
        SeedReadFailed = "seed_read_failed",
        /// A row could not be read.
        RowReadFailed = "row_read_failed",
        /// The verification was stopped.
        ContextCanceled = "context_canceled",
        /// Numbers are missing.
        SeqGap = "seq_gap",
        /// A number stands twice.
        SeqDuplicate = "seq_duplicate",
        /// Two different entries with one number.
        Fork = "fork",
        /// The rows do not make the root that was signed.
        RootMismatch = "root_mismatch",
        /// Checkpoints contradict each other.
        InconsistentCheckpoints = "inconsistent_checkpoints",
        /// A row older than the one before.
        TimeRegression = "time_regression",
        /// A personal value is not what was committed to.
        CommitmentMismatch = "commitment_mismatch",
        /// A whole shard is gone.
        ShardMissing = "shard_missing",
        /// Records at the journal's torn end were lost.
        JournalTorn = "journal_torn",
        /// An organization's own rows are not complete.
        OrgGap = "org_gap",
        /// Numbers that were given out are neither sealed nor in a journal.
        JournalLost = "journal_lost",
        /// A chain with entries that was never signed, or whose signed notes are gone.
        CheckpointMissing = "checkpoint_missing",
        /// A personal value is gone without a record of its erasure.
        OpeningMissing = "opening_missing",
        /// Outbox rows that were never sealed.
        OutboxGap = "outbox_gap",
        /// An entry that was made of an outbox row which no mutation wrote so.
        OutboxFault = "outbox_fault",
    }
}

/// One finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The row, if one is concerned.
    pub seq: Option<u64>,
    /// The row's time, as far as it can be read.
    pub time: Option<Timestamp>,
    /// The hash that is stored.
    pub stored: Option<Hash>,
    /// The hash that belongs there.
    pub expected: Option<Hash>,
}

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
}

/// What is known apart from the rows.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// The cluster the chain must belong to.
    pub cluster: &'a str,
    /// The keys that may have signed, old ones included.
    pub keys: &'a [CheckpointPublicKey],
}

/// What a verification came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was found, in the order it was found.
    pub findings: Vec<Finding>,
    /// How many rows were looked at.
    pub scanned: u64,
    /// The end of the chain as the rows have it.
    pub head: Option<Head>,
    /// The tree over the rows: where a later verification goes on.
    pub frontier: Frontier,
    /// The last entry of each organization, for the same purpose.
    pub orgs: Vec<(OrgId, OrgHead)>,
}

/// A verification under way.
#[derive(Debug)]
pub struct Walk<'a> {
    id: ChainId,
    trust: Trust<'a>,
    head: Option<Head>,
    orgs: HashMap<OrgId, OrgHead>,
    frontier: Frontier,
    /// False after a gap: the tree over what is left says nothing any more.
    whole: bool,
    signed: BTreeMap<u64, Hash>,
    findings: Vec<Finding>,
    scanned: u64,
}

impl<'a> Walk<'a> {
    /// Starts at the beginning of a chain. `checkpoints` are its signed notes in the order they were made.
    pub fn new<'n>(id: ChainId, trust: Trust<'a>, checkpoints: impl IntoIterator<Item = &'n str>) -> Self {
        let mut walk = Self {
            id,
            trust,
            head: None,
            orgs: HashMap::new(),
            frontier: Frontier::default(),
            whole: true,
            signed: BTreeMap::new(),
            findings: Vec::new(),
            scanned: 0,
        };
        walk.take_checkpoints(checkpoints);
        walk.check_root();
        walk
    }

    /// Goes on where an earlier verification ended without a finding.
    pub fn resume<'n>(
        chain: &Chain,
        frontier: Frontier,
        trust: Trust<'a>,
        checkpoints: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let mut walk = Self::new(chain.id(), trust, []);
        walk.head = Some(chain.head());
        walk.orgs = chain.orgs().collect();
        walk.whole = frontier.size() == chain.head().size;
        walk.frontier = frontier;
        walk.take_checkpoints(checkpoints);
        walk.check_root();
        walk
    }

    /// Steps over a row that retention removed and of which only the hash is left (rule 24).
    pub fn pruned(&mut self, seq: u64, hash: Hash) {
        if self.place(seq, Some(hash), None) {
            let time = self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time);
            self.advance(seq, hash, time);
        }
    }

    /// Looks at the next row.
    pub fn row(&mut self, row: &Row<'_>) {
        self.scanned += 1;
        let computed = tree::leaf(row.bytes);
        let header = Header::read(row.bytes).map(|(header, _)| header);
        let time = header.as_ref().ok().map(|header| header.time);
        let finding = |kind| Finding { kind, seq: Some(row.seq), time, stored: row.hash, expected: Some(computed) };
        match row.hash {
            None => self.findings.push(finding(FindingKind::NullEntryHash)),
            Some(stored) if stored != computed => self.findings.push(finding(FindingKind::HashMismatch)),
            Some(_) => {}
        }
        if !self.place(row.seq, Some(computed), time) {
            return;
        }
        match header {
            Ok(header) => self.follow(row, &header, computed),
            Err(EntryError::Version(_)) => self.findings.push(finding(FindingKind::UnknownHashFormatVersion)),
            Err(_) => self.findings.push(finding(FindingKind::HashMismatch)),
        }
        let time = time.unwrap_or_else(|| self.head.map_or(Timestamp::from_micros(i64::MIN), |head| head.time));
        self.advance(row.seq, computed, time);
    }

    /// Ends the verification. `stored` is the chain's end as the store remembers it.
    pub fn finish(mut self, stored: Option<Head>) -> Report {
        let size = self.size();
        let truncated = self.signed.range(size + 1..).next_back().map(|(signed, _)| *signed);
        if let Some(expected) = truncated.max(stored.map(|head| head.size)).filter(|expected| *expected > size) {
            self.find(FindingKind::ChainTruncated, expected.checked_sub(1), None, None);
        } else if let Some(stored) = stored {
            let found = self.head.map_or(Hash::ZERO, |head| head.hash);
            if stored.size < size || stored.hash != found {
                self.find(FindingKind::HashMismatch, size.checked_sub(1), Some(stored.hash), Some(found));
            }
        }
        Report {
            findings: self.findings,
            scanned: self.scanned,
            head: self.head,
            frontier: self.frontier,
            orgs: self.orgs.into_iter().collect(),
        }
    }

    fn take_checkpoints<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        let origin = self.id.origin(self.trust.cluster);
        let mut last = 0;
        for note in notes {
            match Checkpoint::open(note, self.trust.keys) {
                Err(_) => self.find(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(checkpoint) => {
                    let Checkpoint { size, root, .. } = checkpoint;
                    let first = *self.signed.entry(size).or_insert(root);
                    if size < last || first != root || checkpoint.origin != origin {
                        let seq = size.checked_sub(1);
                        self.find(FindingKind::InconsistentCheckpoints, seq, Some(root), Some(first));
                    }
                    last = last.max(size);
                }
            }
        }
    }

    /// Whether the row with this number is the next one to look at; says what is wrong if another is due.
    fn place(&mut self, seq: u64, hash: Option<Hash>, time: Option<Timestamp>) -> bool {
        let next = self.size();
        if seq > next {
            self.whole = false;
            self.findings.push(Finding {
                kind: FindingKind::SeqGap,
                seq: Some(next),
                time,
                stored: None,
                expected: None,
            });
        } else if seq < next {
            let last = self.head.filter(|head| head.size == seq + 1).map(|head| head.hash);
            let kind = if last.is_some() && last != hash { FindingKind::Fork } else { FindingKind::SeqDuplicate };
            self.findings.push(Finding { kind, seq: Some(seq), time, stored: hash, expected: last });
        }
        seq >= next
    }

    /// Compares a row with what went before and with its own columns and openings.
    fn follow(&mut self, row: &Row<'_>, header: &Header, computed: Hash) {
        let mut find = |kind, stored, expected| {
            self.findings.push(Finding { kind, seq: Some(row.seq), time: Some(header.time), stored, expected });
        };
        let before = self.head.filter(|head| head.size == row.seq);
        let prev = before.map_or(Hash::ZERO, |head| head.hash);
        if header.chain != self.id || header.seq != row.seq || (header.kind == Kind::Genesis) != (row.seq == 0) {
            find(FindingKind::HashMismatch, row.hash, None);
        }
        // After a gap the row before is not known, and the gap is reported already.
        if (before.is_some() || row.seq == 0) && header.prev != prev {
            find(FindingKind::HashMismatch, Some(header.prev), Some(prev));
        }
        if self.head.is_some_and(|head| header.time < head.time) {
            find(FindingKind::TimeRegression, row.hash, None);
        }
        if let Some(org) = header.org {
            let known = self.orgs.get(&org.id).copied().unwrap_or(OrgHead { size: 0, hash: Hash::ZERO });
            if (org.seq, org.prev) != (known.size, known.hash) {
                find(FindingKind::OrgGap, Some(org.prev), Some(known.hash));
            }
            self.orgs.insert(org.id, OrgHead { size: org.seq.saturating_add(1), hash: computed });
        }
        match Entry::decode(row.bytes, row.openings) {
            Ok(entry) => {
                if row.columns.is_some_and(|columns| *columns != entry) {
                    find(FindingKind::HashMismatch, row.hash, None);
                }
                if let Content::Genesis(genesis) = &entry.content
                    && let Some(kind) = self.trust.refuses(&self.id, genesis)
                {
                    find(kind, row.hash, None);
                }
            }
            Err(EntryError::Commitment | EntryError::Openings(_)) => {
                find(FindingKind::CommitmentMismatch, row.hash, None);
            }
            Err(EntryError::Cbor(_) | EntryError::Version(_) | EntryError::Value) => {
                find(FindingKind::HashMismatch, row.hash, None);
            }
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
        if let Some(signed) = self.signed.get(&size).copied().filter(|_| self.whole) {
            let root = self.frontier.root();
            if signed != root {
                self.find(FindingKind::RootMismatch, size.checked_sub(1), Some(root), Some(signed));
            }
        }
    }

    fn size(&self) -> u64 {
        self.head.map_or(0, |head| head.size)
    }

    fn find(&mut self, kind: FindingKind, seq: Option<u64>, stored: Option<Hash>, expected: Option<Hash>) {
        self.findings.push(Finding { kind, seq, time: None, stored, expected });
    }
}

impl Trust<'_> {
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
