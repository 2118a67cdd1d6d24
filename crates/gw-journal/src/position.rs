//! Where a record stands in the journal.

use gw_audit::Stream;

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The record's stream.
    pub stream: Stream,
    /// The record's number in its chain.
    pub seq: u64,
    /// The record's number in the journal, over all streams.
    pub lsn: u64,
}
