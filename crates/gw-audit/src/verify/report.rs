//! The result of a verification.

use super::{Finding, FindingKind, MAX_FINDINGS, OutboxIds};
use crate::chain::{Head, OrgHead};
use crate::discontinuity::Discontinuity;
use crate::heads::ChainEdge;
use crate::tree::Frontier;
use gw_types::{OrgId, Timestamp};

/// The result of the verification of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The findings in the order they were made; at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// The number of findings beyond [`MAX_FINDINGS`].
    pub omitted: u64,
    /// The edge of the chain at the largest size whose root matches the signed one.
    pub signed_edge: Option<ChainEdge>,
    /// The findings that a signed re-anchoring covers (rule 22).
    pub authorized: Vec<Finding>,
    /// The re-anchorings of the chain.
    pub discontinuities: Vec<Discontinuity>,
    /// The largest signed size that was compared with the rows; 0 if there is none.
    pub signed: u64,
    /// The time of the oldest record that no note covers, if there is one.
    pub oldest_unsigned: Option<Timestamp>,
    /// The number of verified rows.
    pub scanned: u64,
    /// The end of the chain according to the rows.
    pub head: Option<Head>,
    /// The tree over the rows, from which a later verification can resume.
    pub frontier: Frontier,
    /// The last entry of each organization, from which a later verification can resume.
    pub orgs: Vec<(OrgId, OrgHead)>,
    /// The outbox ids of the entries, from which a later verification can resume.
    pub outbox: OutboxIds,
    /// The number of rows without a hash.
    pub null_hashes: u64,
}

impl Report {
    /// Whether there are no findings apart from the authorized ones.
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds a finding that is not about the rows.
    pub fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding)
        } else {
            self.omitted += 1
        }
    }

    /// Adds a finding if a writer issued numbers to records that are neither sealed nor in a journal. `issued` is the
    /// number after the highest issued one. Only for a chain that no running writer uses. The finding is authorized if
    /// a re-anchoring covers the numbers.
    pub fn add_lost(&mut self, issued: u64) {
        let covered = self
            .discontinuities
            .iter()
            .map(|discontinuity| discontinuity.issued)
            .max()
            .unwrap_or(0);
        let sealed = self.head.map_or(0, |head| head.size);
        if issued > sealed {
            let lost = Finding::new(FindingKind::JournalLost, Some(sealed));
            if issued > covered {
                self.add(lost)
            } else {
                self.authorized.push(lost)
            }
        }
    }

    /// Adds a finding if the chain's signature is overdue: the oldest record without a note over it is more than three
    /// intervals older than the newest record. If nothing is signed, or if the writer `is_gone` and so no journal can
    /// be compared with the entries, the record's age at `now` counts instead.
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
                ..Finding::new(kind, Some(self.signed))
            });
        }
    }
}
