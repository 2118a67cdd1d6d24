//! What was signed of a chain: notes in the store, notes kept elsewhere, re-anchorings and anchors, and the roots they
//! hold the rows to.

use super::{ChainVerifier, Finding, FindingKind};
use crate::anchor::Anchor;
use crate::checkpoint::Checkpoint;
use crate::discontinuity::Discontinuity;
use crate::entry::Hash;
use crate::heads::ChainEdge;
use std::collections::BTreeMap;

impl ChainVerifier<'_> {
    /// Compares the chain with a checkpoint that is kept outside the store and whose signature was checked.
    pub fn anchor(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { size, root, .. } = *checkpoint;
        if size > self.valid_below(checkpoint.era()) {
            return;
        }
        let first = *self.anchors.entry(size).or_insert(root);
        if first != root || checkpoint.origin != self.id.origin(self.trust.cluster) {
            self.find(
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

    /// The largest size that a note or an anchor speaks of.
    pub fn signed_size(&self) -> u64 {
        let last = |notes: &BTreeMap<u64, Hash>| notes.last_key_value().map_or(0, |(size, _)| *size);
        last(&self.signed).max(last(&self.anchors))
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
            // The anchor is signed: the rows behind it are compared all the same.
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

    pub(super) fn take_discontinuities<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) {
        for note in notes {
            match Discontinuity::open(note, self.trust.cluster, self.trust.keys) {
                Err(_) => self.find(FindingKind::CheckpointSignatureInvalid, None, None, None),
                Ok(one) if self.discontinuities.contains(&one) => {}
                Ok(one) => {
                    let due = u64::try_from(self.discontinuities.len())
                        .unwrap_or(u64::MAX)
                        .saturating_add(1);
                    if one.chain == self.id && one.era == due {
                        self.discontinuities.push(one);
                    } else {
                        self.find(
                            FindingKind::InconsistentCheckpoints,
                            one.to.0.checked_sub(1),
                            None,
                            None,
                        );
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

    /// Compares the tree with what was signed at this size.
    pub(super) fn check_root(&mut self) {
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
        for (expected, kind) in [
            (signed, FindingKind::RootMismatch),
            (anchor, FindingKind::AnchorMismatch),
        ] {
            if let Some(expected) = expected.filter(|expected| *expected != root) {
                self.find(kind, size.checked_sub(1), Some(root), Some(expected));
            }
        }
    }
}
