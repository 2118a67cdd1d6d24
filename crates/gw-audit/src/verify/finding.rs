//! What a verification reports (spec/70 section 5).

use crate::code::codes;
use crate::entry::Hash;
use gw_types::Timestamp;

codes! {
    /// What a verification reports (spec/70 section 5). Some are found by those who read the rows, not here.
    FindingKind {
        /// A row, or its link to the one before, is not what was hashed.
        HashMismatch = "hash_mismatch",
        /// A row without a hash.
        NullEntryHash = "null_entry_hash",
        /// The schema version is unknown.
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
        /// A column beside signed bytes, or beside what was sealed, does not say what they say.
        ColumnMismatch = "column_mismatch",
        /// The ids of a table's rows leave no room for further ones.
        IdsExhausted = "ids_exhausted",
        /// An entry that was made of an outbox row which no mutation wrote so.
        OutboxFault = "outbox_fault",
        /// Something is attached to a table, or stands in its place, that no migration made.
        SchemaChanged = "schema_changed",
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

impl Finding {
    /// A finding of which nothing but the row is known.
    pub const fn of(kind: FindingKind, seq: Option<u64>) -> Self {
        Self {
            kind,
            seq,
            time: None,
            stored: None,
            expected: None,
        }
    }
}
