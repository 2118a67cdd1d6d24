//! spec/70: the audit store accepts entries in order and once, and lists them as they were hashed.

use crate::world::{World, did, on_both_engines};
use gw_audit::{
    AccessRecord, Action, Chain, ChainId, EncodedRecord, Genesis, JournalStart, Record, ResourceType, SecurityEvent,
    SecurityKind, ShardId, Stream,
};
use gw_policy::snapshot::Organization;
use gw_store::{
    StoreError,
    audit::{AccessFilter, AuditFilter, AuditStore, Claim, StatusFilter, ToSeal},
    read::{Paging, Scope},
    record::{NewOrganization, NewUser, OrganizationPatch},
};
use gw_types::{Clock, DenyReason, OrgId, Seconds, testing::FixedEntropy};
use uuid::Uuid;

on_both_engines! {
    the_audit_schema_is_the_golden_one,
    spec70_13_entries_are_sealed_in_order_and_once,
    hd24_a_replaced_writer_is_fenced_off,
    hd24_two_starts_with_one_number_differ,
    hd25_the_highest_issued_number_only_grows,
    spec70_18_a_changed_column_shows,
    spec70_27_access_logs_keep_to_scope_and_filters,
    decision46_waiting_and_sealed_entries_are_one_list,
    hd40_an_entry_keeps_its_number_within_the_organization,
    a_page_of_long_entries_has_fewer_of_them,
    checkpoints_are_kept_once_in_order,
    rl9_ids_that_are_used_up_do_not_stop_sealing,
    rl9_a_note_that_waits_for_the_database_is_known_to_wait,
    rl9_junk_chains_are_read_up_to_a_limit,
}

pub(crate) const LIFE: Seconds = Seconds(30);
pub(crate) const ALL: Paging = Paging { limit: 100, offset: 0 };
pub(crate) const HERE: OrgId = OrgId::fixed(77);

/// The salts of all entries.
pub(crate) const SALTS: FixedEntropy = FixedEntropy(7);

/// A writer of one chain.
pub(crate) struct Writer {
    pub(crate) audit: AuditStore,
    pub(crate) claim: Claim,
    pub(crate) chain: Chain,
    /// Chained entries that are not sealed yet.
    pub(crate) tail: Vec<ToSeal>,
}

fn chain_id(stream: Stream) -> ChainId {
    // All instances share the administrative chain.
    let shard = if stream == Stream::Admin {
        Uuid::nil()
    } else {
        Uuid::from_u128(1)
    };
    ChainId {
        stream,
        shard: ShardId(shard),
    }
}

pub(crate) async fn writer(world: &World, stream: Stream) -> Writer {
    let audit = world.audit().await;
    let id = chain_id(stream);
    let claim = audit.claim(id, "writer", LIFE).await.unwrap();
    assert_eq!((claim.head, claim.issued), (None, None));
    let mut bytes = Vec::new();
    let genesis = Genesis::new(id.shard, "cluster", [3; 32]);
    let (chain, _) = Chain::begin(id, &genesis, world.clock.now(), &mut bytes);
    let first = gw_audit::StoredEntry::new(bytes, Vec::new()).unwrap();
    Writer {
        audit,
        claim,
        chain,
        tail: vec![ToSeal { entry: first }],
    }
}

impl Writer {
    pub(crate) fn append(&mut self, world: &World, record: impl Into<Record>) {
        let draft = EncodedRecord::new(&record.into(), &SALTS);
        let entry = self.chain.entry(draft, world.clock.now()).unwrap();
        self.tail.push(ToSeal { entry });
    }

    pub(crate) async fn seal(&mut self) {
        self.audit.insert_sealed(&self.claim, &self.tail).await.unwrap();
        self.tail.clear();
    }
}

pub(crate) fn call(method: &'static str, status: u16) -> AccessRecord {
    AccessRecord {
        org_id: Some(HERE),
        external_id: Some(did("a")),
        ..AccessRecord::new(method, status)
    }
}

async fn the_audit_schema_is_the_golden_one(world: &World) {
    let audit = world.audit().await;
    audit.check_schema().await.unwrap();
    crate::schema::assert_golden(&format!("audit-{}", world.engine), &audit.schema().await.unwrap());
}

async fn spec70_13_entries_are_sealed_in_order_and_once(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    for _ in 0..4 {
        writer.append(world, call("eth_call", 200));
    }
    let all = writer.tail.clone();
    let (audit, claim) = (writer.audit.clone(), writer.claim);
    let ends_at = async |stored: u64| {
        assert_eq!(
            audit.head(claim.chain).await.unwrap().map_or(0, |head| head.size),
            stored
        );
    };
    let gap = audit.insert_sealed(&claim, &all[1..]).await;
    assert!(
        matches!(gap, Err(StoreError::ChainMoved { stored: 0 })),
        "the genesis is missing"
    );
    audit.insert_sealed(&claim, &all[..2]).await.unwrap();
    ends_at(2).await;
    let again = audit.insert_sealed(&claim, &all[..2]).await;
    assert!(
        matches!(again, Err(StoreError::ChainMoved { stored: 2 })),
        "after a crash the writer looks again"
    );
    let torn = [all[2].clone(), all[4].clone()];
    assert!(matches!(
        audit.insert_sealed(&claim, &torn).await,
        Err(StoreError::Rule("batch_in_order"))
    ));
    audit.insert_sealed(&claim, &all[2..]).await.unwrap();
    ends_at(5).await;
    assert_eq!(audit.head(claim.chain).await.unwrap(), Some(writer.chain.head()));

    let rows = audit.rows(claim.chain, 0, 100).await.unwrap();
    let same = rows
        .iter()
        .zip(&all)
        .all(|(row, sealed)| row.bytes == sealed.entry.bytes && row.columns_agree);
    assert!(same && rows.len() == all.len());
    let orgs = audit.org_heads(claim.chain).await.unwrap();
    assert_eq!(
        orgs,
        writer.chain.orgs().collect::<Vec<_>>(),
        "enough to continue the chain"
    );
    assert_eq!(
        audit.chains().await.unwrap(),
        [(claim.chain, Some(writer.chain.head()))]
    );
}

async fn hd24_a_replaced_writer_is_fenced_off(world: &World) {
    let mut old = writer(world, Stream::Access).await;
    old.append(world, call("eth_call", 200));
    let taken = old.audit.claim(old.claim.chain, "thief", LIFE).await;
    assert!(
        matches!(taken, Err(StoreError::OtherInstance(holder)) if holder == "writer"),
        "its lease lasts"
    );
    old.audit.renew(&old.claim, Some(1), LIFE).await.unwrap();
    world.pass_for_leases(31).await;
    let new = old.audit.claim(old.claim.chain, "thief", LIFE).await.unwrap();
    assert!(new.fence > old.claim.fence);
    assert_eq!(new.issued, Some(1), "what the old one gave out is known");
    let late = old.audit.insert_sealed(&old.claim, &old.tail).await;
    assert!(matches!(late, Err(StoreError::Fenced)));
    assert!(matches!(
        old.audit.renew(&old.claim, None, LIFE).await,
        Err(StoreError::Fenced)
    ));
    new_writes(&old, new).await;
}

async fn new_writes(old: &Writer, new: Claim) {
    old.audit.insert_sealed(&new, &old.tail).await.unwrap();
}

async fn hd25_the_highest_issued_number_only_grows(world: &World) {
    let writer = writer(world, Stream::Access).await;
    writer.audit.renew(&writer.claim, Some(40), LIFE).await.unwrap();
    writer.audit.renew(&writer.claim, Some(7), LIFE).await.unwrap();
    writer.audit.renew(&writer.claim, None, LIFE).await.unwrap();
    let again = writer.audit.claim(writer.claim.chain, "writer", LIFE).await.unwrap();
    assert_eq!(again.issued, Some(40));
}

async fn spec70_18_a_changed_column_shows(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    writer.append(
        world,
        AccessRecord {
            denial_reason: Some(DenyReason::Banned),
            ..call("eth_call", 403)
        },
    );
    writer.seal().await;
    for change in [
        "status_code = 200",
        "denial_reason = NULL",
        "external_id = 'did:test:b'",
        "created_at = 1",
    ] {
        world
            .tamper_audit(&format!("UPDATE entries SET {change} WHERE seq = 1"))
            .await;
        let row = writer.audit.rows(writer.claim.chain, 1, 1).await.unwrap().remove(0);
        assert!(!row.columns_agree, "{change}");
    }
}

async fn spec70_27_access_logs_keep_to_scope_and_filters(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    let nowhere = AccessRecord {
        org_id: None,
        external_id: None,
        ..call("eth_chainId", 200)
    };
    let elsewhere = AccessRecord {
        org_id: Some(OrgId::fixed(78)),
        ..call("eth_call", 200)
    };
    let denied = AccessRecord {
        denial_reason: Some(DenyReason::ContractNotPermitted),
        response_status: Some(404),
        correlation_id: Some("call-1".into()),
        ..call("eth_call", 403)
    };
    for record in [
        call("eth_call", 200),
        nowhere,
        elsewhere,
        denied.clone(),
        call("eth_getLogs", 502),
    ] {
        world.clock.pass(1);
        writer.append(world, record);
    }
    writer.seal().await;
    let statuses = async |filter: AccessFilter| -> Vec<(String, u16)> {
        let page = writer.audit.list_access_logs(&filter, ALL).await.unwrap();
        assert_eq!(page.total, page.rows.len() as u64, "rows and total count the same set");
        let rows = page.rows.into_iter().map(|row| row.entry().unwrap().record);
        rows.map(|record| (record.method.into_owned(), record.status_code))
            .collect()
    };
    let here = || AccessFilter::all(Scope::Orgs(vec![HERE]));
    let expected = [("eth_getLogs", 502), ("eth_call", 403), ("eth_call", 200)].map(|(m, s)| (m.to_owned(), s));
    assert_eq!(statuses(here()).await, expected, "newest first");
    assert_eq!(
        statuses(AccessFilter::all(Scope::All)).await.len(),
        5,
        "and those without organization"
    );
    assert!(statuses(AccessFilter::all(Scope::Orgs(Vec::new()))).await.is_empty());
    assert_eq!(
        statuses(AccessFilter {
            status: StatusFilter::Denied,
            ..here()
        })
        .await,
        expected[1..2]
    );
    assert_eq!(
        statuses(AccessFilter {
            status: StatusFilter::Error,
            ..here()
        })
        .await,
        expected[..1]
    );
    assert_eq!(
        statuses(AccessFilter {
            status: StatusFilter::Success,
            ..here()
        })
        .await,
        expected[2..]
    );
    assert_eq!(
        statuses(AccessFilter {
            status: StatusFilter::Code(403),
            ..here()
        })
        .await,
        expected[1..2]
    );
    assert_eq!(
        statuses(AccessFilter {
            method: Some("eth_getLogs".into()),
            ..here()
        })
        .await,
        expected[..1]
    );
    assert_eq!(
        statuses(AccessFilter {
            external_id: Some("did:test:b".into()),
            ..here()
        })
        .await,
        []
    );
    let (from, to) = (
        Some(world.clock.now().minus(Seconds(1))),
        Some(world.clock.now().minus(Seconds(1))),
    );
    assert_eq!(statuses(AccessFilter { from, to, ..here() }).await, expected[1..2]);
    let reasons = Some(vec![DenyReason::ContractNotPermitted]);
    let filter = AccessFilter {
        denial_reasons: reasons,
        correlation_id: Some("call-1".into()),
        ..here()
    };
    let entry = writer
        .audit
        .list_access_logs(&filter, ALL)
        .await
        .unwrap()
        .rows
        .remove(0)
        .entry()
        .unwrap();
    assert_eq!(entry.record, denied, "the whole record, as it was hashed");
}

/// Acts as the sealer of gw-server: chains and seals waiting rows, and returns the ids to mark as sealed.
pub(crate) async fn seal_outbox(world: &World, writer: &mut Writer, limit: u64) -> Vec<i64> {
    let waiting = world.store.outbox(0, limit).await.unwrap();
    let ids = waiting.iter().map(|row| row.id).collect();
    for row in waiting {
        writer.append(world, row.entry);
    }
    writer.seal().await;
    ids
}

async fn decision46_waiting_and_sealed_entries_are_one_list(world: &World) {
    let mut writer = writer(world, Stream::Admin).await;
    let mut orgs = Vec::new();
    for n in 0..6 {
        let mut tx = world.begin().await;
        let new = NewOrganization {
            slug: format!("o{n}"),
            ..Default::default()
        };
        orgs.push(tx.create_organization(new).await.unwrap().id);
        tx.commit().await.unwrap();
    }
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("a"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap();
    let list = async |writer: &Writer, filter: &AuditFilter, paging: Paging| {
        let page = writer
            .audit
            .list_audit_logs(&world.store, filter, paging)
            .await
            .unwrap();
        let rows = page.rows.into_iter().map(|row| row.entry().unwrap().id);
        (rows.collect::<Vec<_>>(), page.total)
    };
    let everything = AuditFilter::all(Scope::All);
    let (ids, total) = list(&writer, &everything, ALL).await;
    assert_eq!(total, 7);
    assert!(
        ids.is_sorted_by(|newer, older| newer > older),
        "newest first, each once"
    );

    // Entries are sealed and marked step by step: the list stays the same at every step.
    let sealed = seal_outbox(world, &mut writer, 4).await;
    assert_eq!(
        list(&writer, &everything, ALL).await,
        (ids.clone(), 7),
        "sealed but not forgotten"
    );
    world.store.mark_outbox_sealed(&sealed).await.unwrap();
    assert_eq!(
        list(&writer, &everything, ALL).await,
        (ids.clone(), 7),
        "half here, half there"
    );
    for offset in 0..8 {
        let (page, total) = list(&writer, &everything, Paging { limit: 2, offset }).await;
        let from = usize::try_from(offset).unwrap().min(ids.len());
        assert_eq!(
            (page.as_slice(), total),
            (&ids[from..ids.len().min(from + 2)], 7),
            "offset {offset}"
        );
    }
    let own = AuditFilter::all(Scope::Orgs(vec![orgs[0], orgs[5]]));
    assert_eq!(list(&writer, &own, ALL).await, (vec![ids[1], ids[6]], 2));
    let users = AuditFilter {
        resource_type: Some(ResourceType::User),
        action: Some(Action::Create),
        ..everything.clone()
    };
    assert_eq!(list(&writer, &users, ALL).await.1, 1);
    let one = AuditFilter {
        resource_id: Some(orgs[2].to_string()),
        org: Some(orgs[2]),
        ..everything.clone()
    };
    assert_eq!(list(&writer, &one, ALL).await, (vec![ids[4]], 1));
    assert_eq!(
        list(
            &writer,
            &AuditFilter {
                org: Some(Organization::DEFAULT),
                ..everything.clone()
            },
            ALL
        )
        .await
        .1,
        0
    );

    let sealed = seal_outbox(world, &mut writer, 100).await;
    world.store.mark_outbox_sealed(&sealed).await.unwrap();
    assert_eq!(list(&writer, &everything, ALL).await, (ids, 7), "all sealed");
    let logs = writer
        .audit
        .list_audit_logs(&world.store, &everything, ALL)
        .await
        .unwrap()
        .rows;
    assert!(logs.into_iter().all(|row| row.entry().unwrap().hash.is_some()));
    assert!(world.store.outbox(0, 10).await.unwrap().is_empty());

    // Ids continue from the last one, although the outbox is empty.
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: "next".into(),
        ..Default::default()
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert!(world.store.outbox(*sealed.last().unwrap(), 10).await.unwrap().len() == 1);
}

async fn hd40_an_entry_keeps_its_number_within_the_organization(world: &World) {
    let mut writer = writer(world, Stream::Admin).await;
    let mut orgs = Vec::new();
    for n in 0..3 {
        let mut tx = world.begin().await;
        let new = NewOrganization {
            slug: format!("o{n}"),
            ..Default::default()
        };
        orgs.push(tx.create_organization(new).await.unwrap().id);
        tx.commit().await.unwrap();
    }
    for (org, name) in [(orgs[0], "a"), (orgs[1], "b"), (orgs[0], "c")] {
        let mut tx = world.begin().await;
        tx.update_organization(
            org,
            OrganizationPatch {
                name: Some(name.into()),
                ..Default::default()
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }
    let newest = AuditFilter::all(Scope::All);
    let own = AuditFilter {
        action: Some(Action::Update),
        ..AuditFilter::all(Scope::Orgs(vec![orgs[0]]))
    };
    let numbers = async |writer: &Writer, filter: &AuditFilter| {
        let rows = writer
            .audit
            .list_audit_logs(&world.store, filter, ALL)
            .await
            .unwrap()
            .rows;
        rows.into_iter()
            .map(|row| row.entry().unwrap().org_seq)
            .collect::<Vec<_>>()
    };
    let all = [2, 1, 1, 0, 0, 0].map(Some);
    assert_eq!(numbers(&writer, &newest).await, all);
    for limit in [2, 2, 100] {
        let sealed = seal_outbox(world, &mut writer, limit).await;
        assert_eq!(numbers(&writer, &newest).await, all, "sealed but not forgotten");
        world.store.mark_outbox_sealed(&sealed).await.unwrap();
        assert_eq!(numbers(&writer, &newest).await, all, "half here, half there");
        assert_eq!(numbers(&writer, &own).await, [Some(2), Some(1)], "whatever is filtered");
    }
}

async fn a_page_of_long_entries_has_fewer_of_them(world: &World) {
    let mut access = writer(world, Stream::Access).await;
    for _ in 0..70 {
        let params = Some(format!("\"{}\"", "x".repeat(256 * 1024)));
        access.append(
            world,
            AccessRecord {
                request_params: params,
                ..call("eth_call", 200)
            },
        );
    }
    access.seal().await;
    let mut read = 0;
    while read < 70 {
        let paging = Paging {
            limit: 1000,
            offset: read,
        };
        let page = access
            .audit
            .list_access_logs(&AccessFilter::all(Scope::All), paging)
            .await
            .unwrap();
        let rows = page.rows.len() as u64;
        assert!(page.total == 70 && (1..=16).contains(&rows), "{rows}");
        read += rows;
    }
    assert_eq!(read, 70, "each once");
}

async fn checkpoints_are_kept_once_in_order(world: &World) {
    let mut writer = writer(world, Stream::Security).await;
    writer.append(world, SecurityEvent::new(SecurityKind::Login));
    writer.seal().await;
    let chain = writer.claim.chain;
    for (size, note) in [(1, "one"), (2, "two"), (2, "two")] {
        writer.audit.insert_checkpoint(chain, size, note).await.unwrap();
    }
    let another = writer.audit.insert_checkpoint(chain, 2, "another two").await;
    assert!(
        matches!(another, Err(StoreError::NotKept(_))),
        "RL4: what is not there was not kept: {another:?}"
    );
    assert_eq!(writer.audit.checkpoints(chain).await.unwrap(), ["one", "two"]);
    assert!(
        writer.audit.may_rewrite().await.unwrap(),
        "the test's credential owns the table"
    );
}

/// spec/70 rule 25: a credential that may only insert into the log suffices for sealing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec70_25_sealing_needs_no_right_to_rewrite() {
    let Some(world) = World::postgres().await else { return };
    let owner = world.audit().await;
    for grant in [
        "CREATE ROLE sealer LOGIN",
        "GRANT SELECT, INSERT ON entries, checkpoints TO sealer",
        "GRANT SELECT, INSERT, UPDATE ON chains TO sealer",
        "GRANT SELECT ON anchors, hash_tiles, seaql_migrations TO sealer",
    ] {
        world.tamper_audit(grant).await;
    }
    let sealer = world.audit_as("sealer").await;
    sealer.check_schema().await.unwrap();
    assert!(owner.may_rewrite().await.unwrap() && !sealer.may_rewrite().await.unwrap());
    let id = chain_id(Stream::Access);
    let mut writer = Writer {
        audit: sealer.clone(),
        ..writer(&world, Stream::Access).await
    };
    writer.claim = sealer.claim(id, "writer", LIFE).await.unwrap();
    writer.append(&world, call("eth_call", 200));
    writer.seal().await;
    sealer.insert_checkpoint(id, 2, "note").await.unwrap();
    assert_eq!(sealer.rows(id, 0, 10).await.unwrap().len(), 2);
}

/// RL9, RL4: an exhausted id, an exhausted sequence or one behind its rows is reported and does not stop sealing.
async fn rl9_ids_that_are_used_up_do_not_stop_sealing(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    writer.append(world, call("eth_call", 200));
    writer.seal().await;
    assert_eq!(writer.audit.exhausted_ids().await.unwrap(), []);
    let numbering: &[&str] = match world.engine {
        "sqlite" => &["UPDATE sqlite_sequence SET seq = 9223372036854775807"],
        _ => &[
            "SELECT setval('entries_id_seq', 9223372036854775807), setval('checkpoints_id_seq', 9223372036854775807)",
            "SELECT setval('entries_id_seq', 1)",
        ],
    };
    let row = "UPDATE entries SET id = 9223372036854775807 WHERE seq = 1";
    for change in numbering.iter().chain([&row]) {
        world.tamper_audit(change).await;
        let exhausted = writer.audit.exhausted_ids().await.unwrap();
        assert!(
            exhausted.iter().any(|(table, _)| *table == "entries"),
            "{change}: {exhausted:?}"
        );
        for _ in 0..2 {
            writer.append(world, call("eth_call", 200));
            writer.append(world, call("eth_call", 200));
            writer.seal().await;
        }
        let size = writer.chain.head().size;
        writer
            .audit
            .insert_checkpoint(writer.claim.chain, size, "a note")
            .await
            .unwrap();
    }
    let mut ids: Vec<_> = writer
        .audit
        .rows(writer.claim.chain, 2, 100)
        .await
        .unwrap()
        .iter()
        .map(|row| row.id)
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    ids.dedup();
    assert!(ids.len() >= 8 && ids.iter().all(|id| *id < 1000), "{ids:?}");
    // The repair statement given to the operator works.
    world
        .tamper_audit("UPDATE entries SET id = 500000 WHERE id = 9223372036854775807")
        .await;
    for (_, repair) in writer.audit.exhausted_ids().await.unwrap() {
        world.tamper_audit(&repair).await;
    }
    assert_eq!(writer.audit.exhausted_ids().await.unwrap(), []);
    writer.append(world, call("eth_call", 200));
    writer.seal().await;
}

/// RL9: a lock on the notes is not tampering; the database shows that another process waits.
async fn rl9_a_note_that_waits_for_the_database_is_known_to_wait(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    writer.append(world, call("eth_call", 200));
    writer.seal().await;
    let chain = writer.claim.chain;
    assert!(!writer.audit.is_note_waiting(chain).await.unwrap());
    if world.engine == "postgres" {
        let lock = world
            .lock_audit("LOCK TABLE checkpoints IN SHARE ROW EXCLUSIVE MODE")
            .await;
        let (here, elsewhere) = (writer.audit.clone(), world.audit().await);
        let writing = tokio::spawn(async move { here.insert_checkpoint(chain, 2, "a note").await });
        while !elsewhere.is_note_waiting(chain).await.unwrap() {
            tokio::task::yield_now().await;
        }
        assert!(writer.audit.is_note_waiting(chain).await.unwrap());
        lock.rollback().await.unwrap();
        writing.await.unwrap().unwrap();
        assert!(!elsewhere.is_note_waiting(chain).await.unwrap());
    } else {
        // A note that the store rejected is retried.
        world.tamper_audit("ALTER TABLE checkpoints RENAME TO away").await;
        writer.audit.insert_checkpoint(chain, 2, "a note").await.unwrap_err();
        assert!(writer.audit.is_note_waiting(chain).await.unwrap());
        world.tamper_audit("ALTER TABLE away RENAME TO checkpoints").await;
        writer.audit.insert_checkpoint(chain, 2, "a note").await.unwrap();
    }
    assert!(
        !writer.audit.is_note_waiting(chain).await.unwrap(),
        "what is missing from now on was removed"
    );
}

/// HD24: two processes that start on copies of one journal directory take the same number. Only the first one has it.
async fn hd24_two_starts_with_one_number_differ(world: &World) {
    let audit = world.audit().await;
    let (shard, other) = (ShardId(Uuid::from_u128(1)), ShardId(Uuid::from_u128(2)));
    let start = |number, id| JournalStart {
        number,
        id: Uuid::from_u128(id),
    };
    assert_eq!(audit.newest_start(shard).await.unwrap(), None);
    assert!(audit.note_start(shard, start(1, 1)).await.unwrap());
    assert!(
        audit.note_start(shard, start(1, 1)).await.unwrap(),
        "repeated after a lost answer"
    );
    assert!(audit.note_start(shard, start(2, 2)).await.unwrap());
    assert!(!audit.note_start(shard, start(2, 3)).await.unwrap());
    assert!(audit.note_start(other, start(1, 4)).await.unwrap());
    assert_eq!(audit.newest_start(shard).await.unwrap(), Some(start(2, 2)));
}

/// RL9: rows of `chains` that no instance wrote slow down nothing and displace no chain.
async fn rl9_junk_chains_are_read_up_to_a_limit(world: &World) {
    let mut writer = writer(world, Stream::Security).await;
    writer.seal().await;
    let (shard, hash) = match world.engine {
        "sqlite" => ("randomblob(16)", "zeroblob(32)"),
        _ => ("gen_random_uuid()", "decode(repeat('00', 32), 'hex')"),
    };
    let junk = |from: i64| {
        format!(
            "WITH RECURSIVE n (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {from} + 10049) \
             INSERT INTO chains (id, stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
             SELECT i, 'access', {shard}, 0, 'x', 0, 0, 0, {hash}, 0 FROM n"
        )
    };
    world.tamper_audit(&junk(1000)).await;
    world.tamper_audit(&junk(-20_000)).await;
    let chains = writer.audit.chains().await.unwrap();
    assert_eq!(chains.len(), 10_000);
    assert!(chains.iter().any(|(chain, _)| *chain == writer.claim.chain));
}
