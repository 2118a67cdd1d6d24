//! Findings about the outbox of mutations: gaps and faults of its rows, and the entries that record them.

use super::key;
use crate::world::{CLUSTER, at, chain, chain_id};
use gw_audit::{
    Action, AdminEntry, Checkpoint, Discontinuity, Hash, OutboxFault, Record, ResourceType, SecurityEvent,
    SecurityKind, StoreId, Stream,
    outbox::gap_entry,
    tree,
    verify::{ChainVerifier, Finding, FindingKind, Row, TrustedKeys},
};

/// The entry of a mutation with this outbox id.
fn admin(store: u128, id: u64, fault: Option<OutboxFault>) -> Record {
    AdminEntry {
        action: Action::Create,
        actor_id: None,
        actor_external_id: None,
        ip_address: None,
        correlation_id: None,
        org_id: None,
        resource_type: ResourceType::User,
        resource_id: None,
        resource_name: None,
        old_value: None,
        new_value: None,
        store_id: Some(uuid::Uuid::from_u128(store).into()),
        outbox_id: Some(id),
        outbox_fault: fault,
    }
    .into()
}

/// RL3, RL9: the outbox rows of a policy store must have no gap, and a fault of a row is a finding.
#[test]
fn rl3_gaps_and_faults_of_outbox_rows_are_found() {
    let findings = |rows: &[(u128, u64)], fault: Option<usize>| {
        let fault = |n: usize| (fault == Some(n)).then_some(OutboxFault::Unauthenticated);
        let records: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(n, (store, id))| admin(*store, *id, fault(n)))
            .collect();
        let entries = chain(Stream::Admin, key().public().to_bytes(), &records);
        let keys = [key().public()];
        let mut verifier = ChainVerifier::new(
            chain_id(Stream::Admin),
            TrustedKeys {
                cluster: CLUSTER,
                keys: &keys,
            },
            [],
        );
        for entry in &entries {
            verifier.row(&Row::new(
                entry.header.seq,
                Some(entry.hash),
                &entry.bytes,
                &entry.openings,
            ));
        }
        verifier
            .finish(None)
            .findings
            .iter()
            .map(|finding| (finding.kind, finding.seq.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(&[(1, 5), (1, 6), (1, 7)], None), []);
    assert_eq!(findings(&[(1, 5), (1, 7)], None), [(FindingKind::OutboxGap, 2)]);
    assert_eq!(
        findings(&[(1, 5), (1, 7), (1, 6)], None),
        [],
        "a late row fills its gap"
    );
    assert_eq!(
        findings(&[(1, 5), (2, 1), (1, 6), (2, 2)], None),
        [],
        "each store has its own ids"
    );
    assert_eq!(findings(&[(1, 5), (1, 5)], None), [(FindingKind::OutboxFault, 2)]);
    assert_eq!(findings(&[(1, 5), (1, 6)], Some(1)), [(FindingKind::OutboxFault, 2)]);
}

/// RL9, HD24: entries and events about the outbox or the journal directory stay findings, regardless of later entries,
/// until the chain is re-anchored.
#[test]
fn rl9_entries_about_the_outbox_stay_findings_until_the_chain_is_re_anchored() {
    let store = StoreId(uuid::Uuid::from_u128(7));
    let row = |id: u64| AdminEntry {
        store_id: Some(store),
        outbox_id: Some(id),
        ..AdminEntry::new(Action::Create, ResourceType::User)
    };
    let admin = [row(1), gap_entry(store, &(2..=4), 3), row(5), row(6)].map(Record::from);
    let event = |reason: &'static str| SecurityEvent {
        reason: Some(reason.into()),
        ..SecurityEvent::new(SecurityKind::TamperDetected)
    };
    // The first and the last event only repeat a finding of a verification, so they are not findings themselves.
    let events = [
        "outbox_gap admin/0",
        "outbox_row:altered:2",
        "outbox_ids:lowered:0:3",
        "policy_store_rewound:1..4",
        "journal_rewound:access:3..5",
        "journal_copied:00000000-0000-0000-0000-000000000001",
        "outbox_gap:2..5",
    ];
    let security = events.map(|reason| Record::from(event(reason)));
    for (stream, records, expected) in [
        (Stream::Admin, admin.to_vec(), vec![(FindingKind::OutboxGap, 2)]),
        (
            Stream::Security,
            security.to_vec(),
            vec![
                (FindingKind::OutboxFault, 2),
                (FindingKind::OutboxFault, 3),
                (FindingKind::OutboxFault, 4),
                (FindingKind::JournalLost, 5),
                (FindingKind::Fork, 6),
            ],
        ),
    ] {
        let key = key();
        let entries = chain(stream, key.public().to_bytes(), &records);
        let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
        let size = entries.len() as u64;
        let note = Checkpoint::new(chain_id(stream).origin(CLUSTER), size, tree::root(&leaves)).sign(&key);
        let frontier: tree::Frontier = leaves.iter().copied().collect();
        let re_anchored = Discontinuity {
            chain: chain_id(stream),
            era: 1,
            from: (size, tree::root(&leaves)),
            to: (size, tree::root(&leaves)),
            peaks: frontier.peaks().to_vec(),
            last: leaves.last().copied(),
            intact: size,
            issued: size,
            time: at(5),
            actor: "jane".to_owned(),
            reason: "looked into".to_owned(),
        };
        let verify = |discontinuities: &[String]| {
            let keys = [key.public()];
            let trust = TrustedKeys {
                cluster: CLUSTER,
                keys: &keys,
            };
            let discontinuities = discontinuities.iter().map(String::as_str);
            let notes = [note.as_str()];
            let mut verifier = ChainVerifier::with_discontinuities(chain_id(stream), trust, discontinuities, notes);
            for entry in &entries {
                verifier.row(&Row::new(
                    entry.header.seq,
                    Some(entry.hash),
                    &entry.bytes,
                    &entry.openings,
                ));
            }
            verifier.finish(None)
        };
        let kinds = |findings: &[Finding]| -> Vec<_> {
            findings
                .iter()
                .map(|finding| (finding.kind, finding.seq.unwrap()))
                .collect()
        };
        assert_eq!(kinds(&verify(&[]).findings), expected);
        let accepted = verify(&[re_anchored.sign(CLUSTER, &key)]);
        assert_eq!(
            (accepted.findings.len(), kinds(&accepted.authorized)),
            (0, expected),
            "{:?}",
            accepted.findings
        );
    }
}
