//! Chains and random records for tests.

use gw_audit::{
    AccessRecord, Action, AdminEntry, AuthMethod, Chain, ChainId, DisclosureAction, DisclosureData, DisclosureRead,
    EncodedRecord, Genesis, MatchedVia, Outcome, Record, ResourceType, SecurityEvent, SecurityKind, SendIntent,
    SendOutcome, ShardId, StoredEntry, Stream, TraceKind,
};
use gw_types::{
    Address, B256, Claim, Claims, DenyReason, DisclosureGrantId, Entropy, Epoch, ExternalId, OrgId, Timestamp, UserId,
};
use proptest::prelude::*;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Entropy from a counter: all salts differ, and every run draws the same ones.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Entropy for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let next = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            chunk.copy_from_slice(&next[..chunk.len()]);
        }
    }
}

pub(crate) const CLUSTER: &str = "test";

pub(crate) fn chain_id(stream: Stream) -> ChainId {
    ChainId {
        stream,
        shard: ShardId(Uuid::from_u128(7)),
    }
}

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + micros)
}

/// A chain of a genesis and these records.
pub(crate) fn chain(stream: Stream, key: [u8; 32], records: &[Record]) -> Vec<StoredEntry> {
    let id = chain_id(stream);
    let mut first = Vec::new();
    let (mut chain, _) = Chain::begin(id, &Genesis::new(id.shard, CLUSTER, key), at(0), &mut first);
    let mut entries = vec![StoredEntry::new(first, Vec::new()).unwrap()];
    let salts = Counter::default();
    for (n, record) in records.iter().enumerate() {
        let encoded = EncodedRecord::new(record, &salts);
        entries.push(chain.entry(encoded, at(10 * (n as i64 + 1))).unwrap());
    }
    entries
}

/// An access record with every field set.
pub(crate) fn full_access() -> AccessRecord {
    AccessRecord {
        external_id: Some(ExternalId::new("did:test:alice").unwrap()),
        ip_address: Some("192.0.2.7".parse().unwrap()),
        response_status: Some(404),
        correlation_id: Some("c0ffee".into()),
        request_params: Some(r#"["0x1"]"#.to_owned()),
        org_id: Some(OrgId::fixed(5)),
        denial_reason: Some(DenyReason::MethodNotAllowed),
        auth_method: AuthMethod::Bearer,
        duration_us: 1234,
        node_called: true,
        upstream_ms: Some(3),
        policy_epoch: Some(Epoch(77)),
        matched_via: Some(MatchedVia::Method),
        trace_kind: Some(TraceKind::Simulation),
        ..AccessRecord::new("eth_call", 403)
    }
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn external_id() -> impl Strategy<Value = ExternalId> {
    "did:test:[a-z0-9]{1,12}".prop_map(|text| ExternalId::new(&text).unwrap())
}

fn org() -> impl Strategy<Value = OrgId> {
    (1_u128..4).prop_map(OrgId::fixed)
}

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::new)
}

fn hash() -> impl Strategy<Value = B256> {
    any::<[u8; 32]>().prop_map(B256::new)
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(values)
}

fn access() -> impl Strategy<Value = Record> {
    let caller = (
        prop::option::of(external_id()),
        prop::option::of(any::<IpAddr>()),
        prop::option::of(text()),
    );
    let call = (
        "[a-zA-Z_]{1,128}",
        any::<u16>(),
        prop::option::of(any::<u16>()),
        prop::option::of(text()),
    );
    let decision = (
        prop::option::of(org()),
        prop::option::of(one_of(DenyReason::ALL)),
        one_of(AuthMethod::ALL),
        prop::option::of(one_of(MatchedVia::ALL)),
        prop::option::of(one_of(TraceKind::ALL)),
    );
    let measurements = (
        any::<u64>(),
        any::<bool>(),
        prop::option::of(any::<u32>()),
        prop::option::of(any::<u64>()),
    );
    (caller, call, decision, measurements).prop_map(|(caller, call, decision, measurements)| {
        Record::Access(AccessRecord {
            external_id: caller.0,
            ip_address: caller.1,
            request_params: caller.2,
            method: call.0.into(),
            status_code: call.1,
            response_status: call.2,
            correlation_id: call.3.map(Into::into),
            org_id: decision.0,
            denial_reason: decision.1,
            auth_method: decision.2,
            rpc_url_id: decision.0.map(|org| gw_types::PersonalUrlId(org.0)),
            matched_via: decision.3,
            trace_kind: decision.4,
            duration_us: measurements.0,
            node_called: measurements.1,
            upstream_ms: measurements.2,
            policy_epoch: measurements.3.map(Epoch),
        })
    })
}

fn admin() -> impl Strategy<Value = Record> {
    let actor = (
        any::<Option<u128>>(),
        prop::option::of(text()),
        prop::option::of(any::<IpAddr>()),
    );
    let resource = (
        one_of(ResourceType::ALL),
        prop::option::of(text()),
        prop::option::of(text()),
    );
    let change = (
        one_of(Action::ALL),
        prop::option::of(org()),
        prop::option::of(text()),
        prop::option::of(text()),
    );
    (actor, resource, change, prop::option::of(text())).prop_map(|(actor, resource, change, correlation)| {
        Record::Admin(AdminEntry {
            actor_id: actor.0.map(UserId::fixed),
            actor_external_id: actor.1.map(Into::into),
            ip_address: actor.2,
            correlation_id: correlation.map(Into::into),
            resource_type: resource.0,
            resource_id: resource.1,
            resource_name: resource.2,
            action: change.0,
            org_id: change.1,
            old_value: change.2,
            new_value: change.3,
            store_id: actor.0.map(|id| Uuid::from_u128(id).into()),
            outbox_id: None,
            outbox_fault: None,
        })
    })
}

fn security() -> impl Strategy<Value = Record> {
    let concerned = (
        prop::option::of(external_id()),
        any::<Option<u128>>(),
        prop::option::of(address()),
    );
    let details = (
        prop::option::of(text()),
        prop::option::of(text()),
        any::<Option<u64>>(),
        prop::option::of(org()),
    );
    (
        one_of(SecurityKind::ALL),
        concerned,
        details,
        prop::option::of(any::<IpAddr>()),
    )
        .prop_map(|(kind, concerned, details, ip)| {
            Record::Security(SecurityEvent {
                external_id: concerned.0,
                user_id: concerned.1.map(UserId::fixed),
                session_id: concerned.1.map(|id| Uuid::from_u128(id).into()),
                address: concerned.2,
                provider: details.0.map(Into::into),
                reason: details.1.clone().map(Into::into),
                correlation_id: details.1.map(Into::into),
                count: details.2,
                org_id: details.3,
                ip_address: ip,
                ..SecurityEvent::new(kind)
            })
        })
}

fn disclosure() -> impl Strategy<Value = Record> {
    let people = (any::<u128>(), any::<Option<u128>>(), prop::option::of(external_id()));
    let summary = (
        any::<Option<u64>>(),
        any::<Option<(i64, i64)>>(),
        prop::option::of(text()),
        prop::collection::vec(address(), 0..4),
    );
    let request = (prop::option::of(any::<IpAddr>()), prop::option::of(text()));
    let kind = (one_of(DisclosureAction::ALL), one_of(DisclosureData::ALL));
    (any::<u128>(), prop::option::of(org()), kind, people, summary, request).prop_map(
        |(grant, org_id, kind, people, summary, request)| {
            Record::Disclosure(DisclosureRead {
                grant_id: DisclosureGrantId::fixed(grant),
                org_id,
                action: kind.0,
                data: kind.1,
                owner_id: UserId::fixed(people.0),
                viewer_id: people.1.map(UserId::fixed),
                viewer_external_id: people.2,
                record_count: summary.0,
                first: summary.1.map(|range| Timestamp::from_micros(range.0)),
                last: summary.1.map(|range| Timestamp::from_micros(range.1)),
                methods: summary.2.map(Into::into),
                addresses: summary.3,
                ip_address: request.0,
                correlation_id: request.1.map(Into::into),
            })
        },
    )
}

fn send() -> impl Strategy<Value = Record> {
    let intent = (
        prop::option::of(external_id()),
        prop::option::of(address()),
        prop::collection::vec(external_id(), 0..30),
        prop::collection::vec(address(), 0..3),
    );
    (hash(), org(), any::<u64>(), intent, any::<[bool; 3]>()).prop_map(|(hash, org_id, nonce, intent, claims)| {
        let names = [Claim::Admin, Claim::Deploy, Claim::Upgrade];
        Record::SendIntent(SendIntent {
            hash,
            org_id,
            nonce,
            subject: intent.0,
            sender: intent.1,
            visible_to: intent.2,
            creates: intent.3,
            claims: names
                .into_iter()
                .zip(claims)
                .filter_map(|(claim, is_held)| is_held.then_some(claim))
                .collect::<Claims>(),
        })
    })
}

fn outcome() -> impl Strategy<Value = Record> {
    (hash(), org(), one_of(Outcome::ALL), any::<Option<i64>>()).prop_map(|(hash, org_id, outcome, node_code)| {
        SendOutcome {
            hash,
            org_id,
            outcome,
            node_code,
        }
        .into()
    })
}

/// A random record of any kind.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    prop_oneof![access(), admin(), security(), disclosure(), send(), outcome()]
}

/// Random records of the access stream.
pub(crate) fn access_records() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(prop_oneof![4 => access(), 1 => send(), 1 => outcome()], 1..6)
}
