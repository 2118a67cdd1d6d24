//! RL13: a chain whose beginning was pruned according to the rules verifies like an unpruned one; any other removal is
//! found.

use crate::world::{CLUSTER, Counter, at, chain_id};
use gw_audit::{
    AccessRecord, Anchor, AnchorError, Chain, Checkpoint, CheckpointKey, EncodedRecord, Genesis, Hash, Removal,
    RemovalError, StoredEntry, Stream, tree,
    verify::{ChainVerifier, Report, Row, TrustedKeys},
};
use gw_types::{ExternalId, OrgId};
use proptest::prelude::*;

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[9; 32])
}

/// A chain of calls: some of three organizations, some without an organization.
fn calls(count: usize) -> Vec<StoredEntry> {
    let id = chain_id(Stream::Access);
    let mut first = Vec::new();
    let (mut chain, _) = Chain::begin(
        id,
        &Genesis::new(id.shard, CLUSTER, key().public().to_bytes()),
        at(0),
        &mut first,
    );
    let mut entries = vec![StoredEntry::new(first, Vec::new()).unwrap()];
    let salts = Counter::default();
    for n in 0..count {
        let org_id = (n % 4 != 0).then(|| OrgId::fixed(n as u128 % 4));
        let external_id = ExternalId::new(&format!("did:test:{n}")).ok();
        let record = AccessRecord {
            org_id,
            external_id,
            ..AccessRecord::new("eth_call", 200)
        };
        entries.push(
            chain
                .entry(EncodedRecord::new(&record.into(), &salts), at(n as i64))
                .unwrap(),
        );
    }
    entries
}

fn signed_note(entries: &[StoredEntry], size: usize) -> String {
    let leaves: Vec<Hash> = entries[..size].iter().map(|entry| entry.hash).collect();
    let origin = chain_id(Stream::Access).origin(CLUSTER);
    Checkpoint::new(origin, size as u64, tree::root(&leaves)).sign(&key())
}

/// Removes the entries from the anchor `from`, or from the start, up to `end`.
fn prune(entries: &[StoredEntry], from: Option<&Anchor>, end: usize) -> Result<Anchor, RemovalError> {
    let start = from.map_or(0, |anchor| usize::try_from(anchor.head.size).unwrap());
    let mut removal = Removal::after(chain_id(Stream::Access), from).unwrap();
    for entry in &entries[start..end] {
        removal.take(&entry.bytes, &entry.openings, entry.hash.as_slice())?;
    }
    Ok(removal.anchor().unwrap())
}

fn verify(anchor: &Anchor, rest: &[StoredEntry], notes: &[String]) -> Report {
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let frontier = anchor.frontier().unwrap();
    let mut verifier = ChainVerifier::resume(&anchor.chain(), frontier, trust, notes.iter().map(String::as_str));
    for entry in rest {
        let (bytes, openings) = (&*entry.bytes, &*entry.openings);
        verifier.row(&Row::new(entry.header.seq, Some(entry.hash), bytes, openings));
    }
    verifier.finish(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// AU-24: at every prune point, all later checkpoints and inclusion proofs still verify.
    #[test]
    fn rl13_random_prune_points_keep_every_later_checkpoint_and_proof(
        count in 1_usize..160,
        points in proptest::collection::vec(0_usize..160, 1..5),
        signed in proptest::collection::vec(0_usize..160, 1..6),
    ) {
        let entries = calls(count);
        let mut points: Vec<_> = points.into_iter().map(|at| 1 + at % count).collect();
        points.sort_unstable();
        points.dedup();
        let mut signed: Vec<_> = signed.into_iter().map(|at| 1 + at % entries.len()).collect();
        signed.sort_unstable();
        let notes: Vec<_> = signed.iter().map(|size| signed_note(&entries, *size)).collect();
        let mut anchor = None;
        for end in points {
            let next = prune(&entries, anchor.as_ref(), end).unwrap();
            prop_assert_eq!(&next, &prune(&entries, None, end).unwrap(), "in steps or at once");
            let (note, keys) = (next.sign(CLUSTER, &key()), [key().public()]);
            let opened = Anchor::open(&next.bytes(), &note, next.chain, CLUSTER, &keys);
            prop_assert_eq!(opened.as_ref(), Ok(&next));
            let rest = &entries[end..];
            let report = verify(&next, rest, &notes);
            prop_assert_eq!(&report.findings, &[]);
            prop_assert_eq!(report.frontier.size(), entries.len() as u64);

            // The hashes of removed entries stay in the store, so all proofs can still be made.
            let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
            let mut frontier = next.frontier().unwrap();
            frontier.extend(rest.iter().map(|entry| entry.hash));
            prop_assert_eq!(frontier.root(), tree::root(&leaves));
            for entry in rest {
                let at = entry.header.seq;
                let proof = tree::inclusion(&leaves, at);
                prop_assert!(tree::verify_inclusion(&entry.hash, at, leaves.len() as u64, &proof, &frontier.root()));
            }
            for size in signed.iter().filter(|size| **size > end) {
                let proof = tree::consistency(&leaves[..*size], end as u64);
                let (old, new) = (next.frontier().unwrap().root(), tree::root(&leaves[..*size]));
                prop_assert!(tree::verify_consistency(end as u64, &old, *size as u64, &new, &proof));
            }

            // A chain from which too much was removed, or in which a removed entry reappeared, is not clean.
            prop_assert!(!verify(&next, &rest[1.min(rest.len())..], &notes).findings.is_empty() || rest.len() < 2);
            prop_assert!(!verify(&next, &entries[end - 1..], &notes).findings.is_empty());
            anchor = Some(next);
        }
    }
}

#[test]
fn rl13_every_changed_byte_of_an_anchor_is_noticed() {
    let anchor = prune(&calls(20), None, 13).unwrap();
    let (bytes, note, keys) = (anchor.bytes(), anchor.sign(CLUSTER, &key()), [key().public()]);
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert!(
            Anchor::open(&bytes, &note, anchor.chain, CLUSTER, &keys).is_err(),
            "byte {at}"
        );
    }
    let another_chain = chain_id(Stream::Security);
    assert_eq!(
        Anchor::open(&bytes, &note, another_chain, CLUSTER, &keys),
        Err(AnchorError::Mismatch)
    );
    assert_eq!(
        Anchor::open(&bytes, &note, anchor.chain, "else", &keys),
        Err(AnchorError::Mismatch)
    );
    let unrelated_keys = [CheckpointKey::from_seed(&[8; 32]).public()];
    assert!(matches!(
        Anchor::open(&bytes, &note, anchor.chain, CLUSTER, &unrelated_keys),
        Err(AnchorError::Note(_))
    ));
}

#[test]
fn rl13_a_changed_entry_is_evidence_and_is_not_removed() {
    let entries = calls(9);
    let mut changed = entries.clone();
    changed[4].openings = entries[5].openings.clone();
    assert_eq!(prune(&changed, None, 8), Err(RemovalError::Openings));
    let mut changed = entries.clone();
    changed[4].hash = entries[5].hash;
    assert_eq!(prune(&changed, None, 8), Err(RemovalError::Hash));
    let mut changed = entries.clone();
    changed.swap(4, 5);
    assert!(matches!(prune(&changed, None, 8), Err(RemovalError::Chain(_))));
    assert!(prune(&entries, None, 8).is_ok());
    assert!(
        prune(&entries[1..], None, 3).is_err(),
        "a chain begins with its genesis"
    );
}
