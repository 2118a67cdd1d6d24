//! What a verification came to.

use super::{Finding, FindingKind, MAX_FINDINGS, OutboxIds};
use crate::chain::{Head, OrgHead};
use crate::discontinuity::Discontinuity;
use crate::heads::ChainEdge;
use crate::tree::Frontier;
use gw_types::{OrgId, Timestamp};

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
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding)
        } else {
            self.omitted += 1
        }
    }

    /// Adds numbers that were given out to records which are nowhere: `issued` is the number after the highest one, of a
    /// chain that no living writer holds.
    pub fn add_lost(&mut self, issued: u64) {
        let known = self.discontinuities.iter().map(|one| one.issued).max().unwrap_or(0);
        let sealed = self.head.map_or(0, |head| head.size);
        if issued > sealed {
            let lost = Finding::of(FindingKind::JournalLost, Some(sealed));
            if issued > known {
                self.add(lost)
            } else {
                self.authorized.push(lost)
            }
        }
    }

    /// Adds what says that a chain was not signed when it should have been: a record older by three intervals than the
    /// newest one without a note over it; older than that now, where nothing at all is signed, or where the writer
    /// `is_gone`: no journal is left to compare the entries with.
    pub fn add_unsigned(&mut self, interval_micros: i64, now: Timestamp, is_gone: bool) {
        let Some((oldest, head)) = self.oldest_unsigned.zip(self.head) else {
            return;
        };
        let until = if self.signed == 0 || is_gone {
            now.max(head.time)
        } else {
            head.time
        };
        if until.micros().saturating_sub(oldest.micros()) > interval_micros.saturating_mul(3) {
            let kind = FindingKind::CheckpointMissing;
            self.add(Finding {
                time: Some(oldest),
                ..Finding::of(kind, Some(self.signed))
            });
        }
    }
}
