//! Checks what remains of a pruned beginning of a chain: the signed anchors, their columns, and the hashes of the
//! pruned entries.

use super::{Known, Pass};
use gw_audit::{
    Anchor, ChainId, Stream,
    verify::{Finding, FindingKind},
};
use gw_store::{
    StoreError,
    audit::{AnchorRow, AuditStore, ChainState},
};
use gw_types::{Seconds, Timestamp};

/// The time span that the entries of all administrative chains cover. The entry about a prune lies in this span, or is
/// not sealed yet, or is pruned itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdminSpan {
    /// Time of the last pruned entry.
    pub(super) pruned: Timestamp,
    /// Time of the last sealed entry.
    pub(super) sealed: Timestamp,
}

/// Largest accepted difference between the clocks of instances, and between times on one instance.
const SLACK: Seconds = Seconds(24 * 3600);

/// The findings about the anchors of a chain.
pub(super) async fn compare(
    audit: &AuditStore,
    chain: ChainId,
    known: &Known,
    pass: &Pass<'_>,
    admin_span: Option<AdminSpan>,
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    let mut pruned = 0;
    for row in audit.anchor_rows(chain).await? {
        let finding = |kind| Finding::new(kind, row.stored.size.checked_sub(1));
        let opened = Anchor::open(&row.stored.bytes, &row.stored.note, chain, pass.cluster, &known.keys);
        let Some(anchor) = opened.ok().filter(|anchor| anchor.head.size == row.stored.size) else {
            findings.push(finding(FindingKind::AnchorMismatch));
            continue;
        };
        pruned = anchor.head.size;
        if !row.columns_agree || row.entry_agrees == Some(false) || contradicts(&row, &anchor, pass.now, admin_span) {
            findings.push(finding(FindingKind::ColumnMismatch));
        }
    }
    if !audit.keeps_hashes_of(chain, pruned).await? {
        findings.push(Finding::new(FindingKind::AnchorMismatch, pruned.checked_sub(1)));
    }
    Ok(findings)
}

/// Whether the time of the prune is impossible, or its audit entry is absent although it should be in a sealed chain.
fn contradicts(row: &AnchorRow, anchor: &Anchor, now: Timestamp, admin_span: Option<AdminSpan>) -> bool {
    let created_at = row.created_at;
    let is_absent = row.is_logged
        && row.entry_agrees.is_none()
        && admin_span.is_some_and(|span| span.pruned < created_at && created_at.plus(SLACK) < span.sealed);
    created_at < anchor.head.time || created_at > now.plus(SLACK) || is_absent
}

/// The time span that all administrative chains cover; `None` if there is no such chain or an anchor is not valid.
pub(super) async fn admin_span(
    audit: &AuditStore,
    states: &[ChainState],
    known: &Known,
    cluster: &str,
) -> Result<Option<AdminSpan>, StoreError> {
    let mut span: Option<AdminSpan> = None;
    for state in states.iter().filter(|state| state.chain.stream == Stream::Admin) {
        let (chain, Some(head)) = (state.chain, state.head) else {
            continue;
        };
        let pruned = match audit.anchor(chain).await? {
            Some(row) => match Anchor::open(&row.bytes, &row.note, chain, cluster, &known.keys) {
                Ok(anchor) => anchor.head.time,
                // `anchors::compare` reports the anchor. Without it, the pruned time is unknown.
                Err(_) => return Ok(None),
            },
            None => Timestamp::from_micros(i64::MIN),
        };
        let before = span.unwrap_or(AdminSpan {
            pruned,
            sealed: head.time,
        });
        span = Some(AdminSpan {
            pruned: before.pruned.max(pruned),
            sealed: before.sealed.min(head.time),
        });
    }
    Ok(span)
}
