//! Trusted heads: a start compares the store with them, the sealer signs only a chain that continues them, and the
//! signed list names all of them.

use super::{checkpoint, continued, edge, entries, key, records};
use crate::world::{CLUSTER, at, chain_id};
use gw_audit::{
    ChainId, ChainList, Checkpoint, Head, SigningGuard, StoredChain, StoredEntry, Stream, TrustedHead, TrustedHeads,
    verify::FindingKind,
};

/// What the store says about a chain of these entries, with the hash at the trusted size.
fn stored(entries: &[StoredEntry], trusted: u64) -> StoredChain {
    let head = entries.last().map(|last| Head {
        size: last.header.seq + 1,
        hash: last.hash,
        time: last.header.time,
    });
    let at_trusted = entries
        .iter()
        .find(|entry| entry.header.seq + 1 == trusted)
        .map(|entry| entry.hash);
    StoredChain {
        chain: chain_id(Stream::Access),
        head,
        at_trusted,
    }
}

/// RL2, spec/85 section 3 step 4.
#[test]
fn rl2_a_start_compares_the_store_with_the_trusted_heads() {
    let entries = entries(&key(), &records(0, 19));
    let id = chain_id(Stream::Access);
    let mut heads = TrustedHeads::default();
    assert!(heads.advance(id, TrustedHead::new(None, &edge(&entries[..12]), 0)));
    assert!(
        !heads.advance(id, TrustedHead::new(None, &edge(&entries[..8]), 0)),
        "a head never goes back"
    );
    let kinds = |stored: &[StoredChain], restorable: u64| -> Vec<FindingKind> {
        heads
            .missing_from(stored, |_| restorable)
            .iter()
            .map(|(_, finding)| finding.kind)
            .collect()
    };
    assert_eq!(kinds(&[stored(&entries, 12)], 0), []);
    assert_eq!(kinds(&[stored(&entries[..12], 12)], 0), []);
    assert_eq!(kinds(&[stored(&entries[..11], 12)], 0), [FindingKind::ChainTruncated]);
    assert_eq!(
        kinds(&[stored(&entries[..11], 12)], 12),
        [],
        "the journal restores the missing entry"
    );
    assert_eq!(kinds(&[], 0), [FindingKind::ShardMissing]);
    let forged = continued(&entries[..6], &records(60, 14));
    assert_eq!(kinds(&[stored(&forged, 12)], 0), [FindingKind::AnchorMismatch]);
}

/// RL2: entries that only the journal knows are not needed for a start, but the signed ones below them are.
#[test]
fn rl2_a_start_needs_only_the_signed_entries() {
    let entries = entries(&key(), &records(0, 19));
    let forged = continued(&entries[..10], &records(60, 10));
    let id = chain_id(Stream::Access);
    let signed = TrustedHead::new(Some("note".to_owned()), &edge(&entries[..8]), 0);
    for (trusted, size) in [(None, 0), (Some(&signed), 8)] {
        let head = TrustedHead::unsigned(&edge(&entries[..12]), trusted);
        // A later edge of the journal extends the unsigned head, not the signed part.
        let later = TrustedHead::unsigned(&edge(&entries[..14]), Some(&head));
        assert_eq!((head.signed_part().size, later.signed_part().size), (size, size));
        let mut heads = TrustedHeads::default();
        assert!(heads.advance(id, head) && heads.advance(id, later));
        let text = serde_json::to_string(&heads).unwrap();
        let heads: TrustedHeads = serde_json::from_str(&text).unwrap();
        let missing = |entries: &[StoredEntry], trusted| heads.missing_from(&[stored(entries, trusted)], |_| 0).len();
        assert_eq!(missing(&forged, size), 0, "only unsigned entries were rewritten");
        assert_eq!(missing(&entries[..9], size), 0);
        if size > 0 {
            let forged = continued(&entries[..6], &records(60, 14));
            assert_eq!(missing(&forged, size), 1);
            assert_eq!(missing(&entries[..7], size), 1);
        }
    }
}

/// RL2: the sealer signs only a chain that continues the trusted head; entries that the journal restores are signed
/// again.
#[test]
fn rl2_only_a_chain_that_continues_the_trusted_head_is_signed() {
    let entries = entries(&key(), &records(0, 19));
    let origin = chain_id(Stream::Access).origin(CLUSTER);
    #[expect(clippy::result_large_err, reason = "it is that of the function under test")]
    let push = |guard: &mut SigningGuard, entry: &StoredEntry| guard.push(entry.header.seq, entry.hash, &entry.bytes);
    let trusted = || SigningGuard::from_trusted(&TrustedHead::new(None, &edge(&entries[..10]), 0)).unwrap();
    let mut guard = trusted();
    entries[10..].iter().for_each(|entry| push(&mut guard, entry).unwrap());
    assert_eq!(guard.checkpoint(&origin).unwrap(), checkpoint(&entries));
    let forged = continued(&entries[..6], &records(60, 14));
    assert_eq!(
        push(&mut trusted(), &forged[10]).unwrap_err().kind,
        FindingKind::AnchorMismatch
    );
    let mut short = trusted();
    short.rewind();
    entries[..7].iter().for_each(|entry| push(&mut short, entry).unwrap());
    assert_eq!(
        short.checkpoint(&origin).unwrap_err().kind,
        FindingKind::ChainTruncated,
        "shorter than the signed size"
    );
    let mut regrown = short.clone();
    let finding = forged[7..10].iter().find_map(|entry| push(&mut regrown, entry).err());
    assert!(finding.is_some(), "a tail that grew again differs from the signed one");
    entries[7..].iter().for_each(|entry| push(&mut short, entry).unwrap());
    assert_eq!(
        short.checkpoint(&origin).unwrap(),
        checkpoint(&entries),
        "the journal restored the tail"
    );
    let mut guard = SigningGuard::from_checkpoint(&checkpoint(&entries[..8]));
    entries[..8].iter().for_each(|entry| push(&mut guard, entry).unwrap());
    assert!(guard.checkpoint(&origin).is_ok());
    let mut guard = SigningGuard::from_checkpoint(&checkpoint(&entries[..8]));
    assert!(forged[..8].iter().any(|entry| push(&mut guard, entry).is_err()));
}

/// Rule 8: the signed list of chains.
#[test]
fn rl2_8_a_list_of_chains_is_signed_and_strict() {
    let (access, admin) = (chain_id(Stream::Access), chain_id(Stream::Admin));
    let entries = entries(&key(), &records(0, 4));
    let mut heads = TrustedHeads::default();
    heads.advance(access, TrustedHead::new(None, &edge(&entries), 0));
    heads.advance(admin, TrustedHead::new(None, &edge(&entries[..2]), 2));
    let note = heads.sign_list(CLUSTER, 77, &key());
    let opened = Checkpoint::open(&note, &[key().public()]).unwrap();
    let list = ChainList::read(&opened, CLUSTER).unwrap();
    let listed: Vec<_> = list
        .heads
        .iter()
        .map(|head| (head.origin.clone(), head.size, head.era()))
        .collect();
    assert_eq!(listed, [(access.origin(CLUSTER), 5, 0), (admin.origin(CLUSTER), 2, 2)]);
    assert_eq!((opened.size, opened.origin.as_str()), (77, "test/chains"));
    let mut shorter = opened.clone();
    shorter.extensions.pop();
    assert_eq!(ChainList::read(&shorter, CLUSTER), None, "the root is over all lines");
    assert_eq!(ChainList::read(&checkpoint(&entries), CLUSTER), None);
}

/// Rule 19: the age of unsigned entries starts when they are seen first, and ends with a signature.
#[test]
fn the_age_of_unsigned_entries_starts_when_they_are_seen_first() {
    let chain: ChainId = chain_id(Stream::Access);
    let mut heads = TrustedHeads::default();
    assert!(heads.note_unsigned([(chain, 5)], at(10)));
    assert!(!heads.note_unsigned([(chain, 5)], at(20)));
    assert_eq!(heads.unsigned_since(chain, 5), Some(at(10)));
    assert_eq!(
        heads.unsigned_since(chain, 3),
        Some(at(10)),
        "signed notes were removed"
    );
    assert_eq!(heads.unsigned_since(chain, 6), None, "signed since");
    heads.note_unsigned([(chain, 3)], at(30));
    assert_eq!(heads.unsigned_since(chain, 5), Some(at(10)));
    let text = serde_json::to_string(&heads).expect("text");
    assert_eq!(serde_json::from_str::<TrustedHeads>(&text).expect("heads"), heads);
    heads.note_unsigned([(chain, 6)], at(40));
    assert_eq!(heads.unsigned_since(chain, 6), Some(at(40)));
    assert!(heads.note_unsigned([], at(50)));
    assert_eq!(heads.unsigned_since(chain, 6), None);
}
