//! Findings of a verification (spec/70 section 5).

use crate::code::codes;
use crate::hash::Hash;
use gw_types::Timestamp;

codes! {
    /// The kind of finding (spec/70 section 5). Some kinds are reported by the callers that read the rows, not by this
    /// crate.
    FindingKind {
        /// A row, or its link to the previous row, does not match the hash.
        HashMismatch = "hash_mismatch",
        /// A row has no hash.
        NullEntryHash = "null_entry_hash",
        /// The schema version is unknown.
        UnknownHashFormatVersion = "unknown_hash_format_version",
        /// The rows do not match an anchor or a checkpoint kept outside the store.
        AnchorMismatch = "anchor_mismatch",
        /// Rows at the end of the chain are missing.
        ChainTruncated = "chain_truncated",
        /// No known key signed the checkpoint.
        CheckpointSignatureInvalid = "checkpoint_signature_invalid",
        /// Checkpoints could not be read.
        CheckpointReadFailed = "checkpoint_read_failed",
        /// The state to resume from could not be read.
        SeedReadFailed = "seed_read_failed",
        /// A row could not be read.
        RowReadFailed = "row_read_failed",
        /// The verification was stopped.
        ContextCanceled = "context_canceled",
        /// Numbers are missing.
        SeqGap = "seq_gap",
        /// A number occurs twice.
        SeqDuplicate = "seq_duplicate",
        /// Two different entries have the same number.
        Fork = "fork",
        /// The rows do not have the signed root.
        RootMismatch = "root_mismatch",
        /// Checkpoints contradict each other.
        InconsistentCheckpoints = "inconsistent_checkpoints",
        /// A row is older than the previous row.
        TimeRegression = "time_regression",
        /// A personal value does not match its commitment.
        CommitmentMismatch = "commitment_mismatch",
        /// A whole shard is missing.
        ShardMissing = "shard_missing",
        /// Records at the journal's torn end were lost.
        JournalTorn = "journal_torn",
        /// Rows of an organization are missing.
        OrgGap = "org_gap",
        /// Numbers that a writer issued are neither sealed nor in a journal.
        JournalLost = "journal_lost",
        /// A chain with entries was never signed, or its signed notes are missing.
        CheckpointMissing = "checkpoint_missing",
        /// A personal value is missing without a record of its erasure.
        OpeningMissing = "opening_missing",
        /// Outbox rows were never sealed.
        OutboxGap = "outbox_gap",
        /// A column does not match the signed bytes or the sealed entry in the same row.
        ColumnMismatch = "column_mismatch",
        /// The ids of a table's rows leave no room for further rows.
        IdsExhausted = "ids_exhausted",
        /// An entry was made from an outbox row that no mutation wrote in this form.
        OutboxFault = "outbox_fault",
        /// A table has an attachment that no migration made, or was replaced by another object.
        SchemaChanged = "schema_changed",
    }
}

/// A row of the database, or a whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableRow {
    /// The table.
    pub table: &'static str,
    /// The id of the row; `None` for the whole table.
    pub id: Option<i64>,
}

/// A finding of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// The number of the affected row, if there is one.
    pub seq: Option<u64>,
    /// The row's time, if it can be read.
    pub time: Option<Timestamp>,
    /// The stored hash.
    pub stored: Option<Hash>,
    /// The expected hash.
    pub expected: Option<Hash>,
    /// The place in the database, if the finding is not about an entry that was read.
    pub place: Option<TableRow>,
}

impl Finding {
    /// A finding with only a kind and a row number.
    pub const fn new(kind: FindingKind, seq: Option<u64>) -> Self {
        Self {
            kind,
            seq,
            time: None,
            stored: None,
            expected: None,
            place: None,
        }
    }

    /// A finding about a row of a table, or about the whole table if there is no `id`.
    pub const fn at(kind: FindingKind, table: &'static str, id: Option<i64>) -> Self {
        Self {
            place: Some(TableRow { table, id }),
            ..Self::new(kind, None)
        }
    }

    /// Whether a part of the verification could not be carried out, for example because a table is missing or locked.
    /// A busy database can cause this, too.
    pub fn is_unverified(&self) -> bool {
        let is_whole_table = self.place.is_some_and(|place| place.id.is_none());
        is_whole_table
            && matches!(
                self.kind,
                FindingKind::RowReadFailed | FindingKind::CheckpointReadFailed
            )
    }
}
