//! The signed evidence about a chain: notes in the store, notes kept elsewhere, re-anchorings and anchors, and the
//! comparison of their roots with the rows.

use super::{ChainVerifier, Finding, FindingKind};
use crate::anchor::Anchor;
use crate::checkpoint::Checkpoint;
use crate::discontinuity::Discontinuity;
use crate::hash::Hash;
use crate::heads::ChainEdge;
use std::collections::BTreeMap;

impl ChainVerifier<'_> {
    /// Compares the chain with a checkpoint that is kept outside the store. The caller has checked its signature.
    pub fn anchor(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { size, root, .. } = *checkpoint;
        if size > self.valid_below(checkpoint.era()) {
            return;
        }
        let first = *self.anchors.entry(size).or_insert(root);
        if first != root || checkpoint.origin != self.id.origin(self.trust.cluster) {
            self.report_hashes(
                FindingKind::InconsistentCheckpoints,
                size.checked_sub(1),
                Some(root),
                Some(first),
            );
        }
        if size == self.frontier.size() {
            self.check_root();
        }
    }

    /// Requires that a note kept outside the store is in the store, too. Only for verifications from the beginning of
    /// the chain.
    pub fn expect_note(&mut self, checkpoint: &Checkpoint) {
        self.expected.insert((checkpoint.era(), checkpoint.size));
    }

    /// Takes notes that were signed while the rows were read. The rows they cover are not overdue. The next
    /// verification compares their roots.
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
                Err(_) => self.report_hashes(FindingKind::CheckpointSignatureInvalid, None, None, None),
            }
        }
    }

    /// The largest size of a note or an anchor.
    pub fn signed_size(&self) -> u64 {
        let last = |notes: &BTreeMap<u64, Hash>| notes.last_key_value().map_or(0, |(size, _)| *size);
        last(&self.signed).max(last(&self.anchors))
    }

    /// Takes a signed anchor after the hashes of all entries below it. From there on the rows are complete, also those
    /// of each organization.
    pub fn anchored(&mut self, anchor: &Anchor) {
        let root = anchor.frontier().map(|frontier| frontier.root());
        let size = anchor.head.size;
        if self.frontier.size() != size || root != Some(self.frontier.root()) {
            let stored = Some(self.frontier.root());
            self.report(Finding {
                stored,
                expected: root,
                ..Finding::new(FindingKind::AnchorMismatch, size.checked_sub(1))
            });
            // The anchor is signed, so the rows behind it are compared with it anyway.
            let Some(frontier) = anchor.frontier() else { return };
            self.frontier = frontier;
        }
        self.head = Some(anchor.head);
        self.is_time_known = true;
        self.orgs = anchor.orgs.iter().copied().collect();
        self.orgs_known = true;
    }

    pub(super) fn take_checkpoints<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        let origin = self.id.origin(self.trust.cluster);
        let (mut last, mut last_era) = (0, 0);
        for note in notes {
            match Checkpoint::open(note, self.trust.keys) {
                Err(_) => self.report_hashes(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(checkpoint) => {
                    let Checkpoint { size, root, .. } = checkpoint;
                    let era = checkpoint.era();
                    self.noted.insert((era, size));
                    let known_eras = u64::try_from(self.discontinuities.len()).unwrap_or(u64::MAX);
                    if era > last_era {
                        (last, last_era) = (0, era);
                    }
                    // A later re-anchoring replaced this note, so its root no longer has to match.
                    if era == last_era && era <= known_eras && size > self.valid_below(era) {
                        last = last.max(size);
                        continue;
                    }
                    let first = *self.signed.entry(size).or_insert(root);
                    let is_unknown_era = era != last_era || era > known_eras;
                    if size < last || is_unknown_era || first != root || checkpoint.origin != origin {
                        let seq = size.checked_sub(1);
                        self.report_hashes(FindingKind::InconsistentCheckpoints, seq, Some(root), Some(first));
                    }
                    last = last.max(size);
                }
            }
        }
    }

    pub(super) fn take_discontinuities<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        for note in notes {
            match Discontinuity::open(note, self.trust.cluster, self.trust.keys) {
                Err(_) => self.report_hashes(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(discontinuity) if self.discontinuities.contains(&discontinuity) => {}
                Ok(discontinuity) => {
                    let next_era = u64::try_from(self.discontinuities.len())
                        .unwrap_or(u64::MAX)
                        .saturating_add(1);
                    if discontinuity.chain == self.id && discontinuity.era == next_era {
                        self.discontinuities.push(discontinuity);
                    } else {
                        self.report_hashes(
                            FindingKind::InconsistentCheckpoints,
                            discontinuity.to.0.checked_sub(1),
                            None,
                            None,
                        );
                    }
                }
            }
        }
        for discontinuity in self.discontinuities.clone() {
            let (size, root) = discontinuity.to;
            if size <= self.valid_below(discontinuity.era) {
                self.signed.insert(size, root);
            }
        }
    }

    /// The largest size of a note of this era that is still valid after the later re-anchorings.
    fn valid_below(&self, era: u64) -> u64 {
        let later = self
            .discontinuities
            .iter()
            .filter(|discontinuity| discontinuity.era > era);
        later
            .map(|discontinuity| discontinuity.intact)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Compares the root with the ones signed at this size.
    pub(super) fn check_root(&mut self) {
        let size = self.frontier.size();
        let (signed, anchor) = (self.signed.get(&size).copied(), self.anchors.get(&size).copied());
        if !self.is_complete || (signed.is_none() && anchor.is_none()) {
            return;
        }
        let root = self.frontier.root();
        if signed.is_none_or(|signed| signed == root) && anchor.is_none_or(|anchor| anchor == root) {
            let last = self.head.map(|head| head.hash).filter(|hash| *hash != Hash::ZERO);
            self.signed_edge = Some(ChainEdge::new(self.frontier.clone(), last));
        }
        for (expected, kind) in [
            (signed, FindingKind::RootMismatch),
            (anchor, FindingKind::AnchorMismatch),
        ] {
            if let Some(expected) = expected.filter(|expected| *expected != root) {
                self.report_hashes(kind, size.checked_sub(1), Some(root), Some(expected));
            }
        }
    }
}
