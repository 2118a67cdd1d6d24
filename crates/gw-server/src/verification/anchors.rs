//! What is kept of pruned beginnings of chains: the signed anchors, the columns beside them, and the hashes of what went.

use super::{Known, Pass};
use gw_audit::{
    Anchor, ChainId,
    verify::{Finding, FindingKind},
};
use gw_store::{
    StoreError,
    audit::{AnchorRow, AuditStore},
};
use gw_types::{Seconds, Timestamp};

/// How far the administrative chain reaches: an entry about a prune lies between the two, or is not sealed yet, or is
/// pruned itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The time of the last entry that was pruned.
    pub(super) pruned: Timestamp,
    /// The time of the last entry.
    pub(super) sealed: Timestamp,
}

/// Clocks of instances, and of one instance over time, may differ by so much.
const SLACK: Seconds = Seconds(24 * 3600);

/// What is wrong with the anchors of a chain.
pub(super) async fn compare(
    audit: &AuditStore,
    chain: ChainId,
    known: &Known,
    pass: &Pass<'_>,
    mutations: Option<Reach>,
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    let mut pruned = 0;
    for row in audit.anchor_rows(chain).await? {
        let finding = |kind| Finding::of(kind, row.stored.size.checked_sub(1));
        let opened = Anchor::open(&row.stored.bytes, &row.stored.note, chain, pass.cluster, &known.keys);
        let Some(anchor) = opened.ok().filter(|anchor| anchor.head.size == row.stored.size) else {
            findings.push(finding(FindingKind::AnchorMismatch));
            continue;
        };
        pruned = anchor.head.size;
        if !row.columns_agree || row.entry_agrees == Some(false) || contradicts(&row, &anchor, pass.now, mutations) {
            findings.push(finding(FindingKind::ColumnMismatch));
        }
    }
    if !audit.keeps_hashes_of(chain, pruned).await? {
        findings.push(Finding::of(FindingKind::AnchorMismatch, pruned.checked_sub(1)));
    }
    Ok(findings)
}

/// Whether the time of the prune is none, or its entry is said to be there and is not.
fn contradicts(row: &AnchorRow, anchor: &Anchor, now: Timestamp, mutations: Option<Reach>) -> bool {
    let at = row.created_at;
    let is_absent = row.is_logged
        && row.entry_agrees.is_none()
        && mutations.is_some_and(|reach| reach.pruned < at && at.plus(SLACK) < reach.sealed);
    at < anchor.head.time || at > now.plus(SLACK) || is_absent
}
